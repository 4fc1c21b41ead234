import Holdfast
import HoldfastSQLiteStore
import HoldfastStore
import TestSupport

/// A store that two processes change under a merge policy.
///
/// It has a few accounts. Members belong to accounts, in the order of the account, and may have one of them as their home.
///
/// - Both processes add to the sums of the accounts, set their texts, and insert members with few numbers, which are unique.
/// - Each process has a counter in each account, and members of its own with their links. The other process doesn't change them.
struct ProcessRace: Codable, Sendable {
  enum Policy: String, Codable, CaseIterable, Sendable {
    case error, storeTrump, objectTrump, overwrite, rollback
    /// Adds what both sides have added to a sum, and otherwise prefers this side.
    case adding

    var policy: MergePolicy {
      switch self {
      case .error: .error
      case .storeTrump: .mergeByPropertyStoreTrump
      case .objectTrump: .mergeByPropertyObjectTrump
      case .overwrite: .overwrite
      case .rollback: .rollback
      case .adding: Policy.addingSums
      }
    }

    private static let addingSums = MergePolicy.custom { conflict in
      guard case .int64(let base)? = conflict.base?["sum"], case .int64(let ours)? = conflict.ours?["sum"],
        case .int64(let theirs)? = conflict.theirs?["sum"]
      else { return .mergeByPropertyObjectTrump }
      return .values(["sum": .int64(theirs + ours - base)])
    }

    /// Whether no addition to a sum is lost. With the other policies, the processes don't change sums.
    var keepsSums: Bool { self == .error || self == .adding }
  }

  static let processes = 2
  static let accounts = 3
  /// The numbers of members that both processes insert are below this one.
  static let sharedNumbers = 12
  /// The number of a process's first own member is the number of the process plus one, times this number.
  static let stride = 1_000_000

  static let model = Harbour.made([
    EntityDescription(
      "Account",
      attributes: [
        AttributeDescription("number", .integer64), AttributeDescription("sum", .integer64, default: .int64(0)),
        AttributeDescription("text", .string, default: .string("")), AttributeDescription("counter0", .integer64, default: .int64(0)),
        AttributeDescription("counter1", .integer64, default: .int64(0)),
      ],
      relationships: [
        .toMany("members", to: "Member", inverse: "accounts", isOrdered: true), .toMany("guests", to: "Member", inverse: "home"),
      ]),
    EntityDescription(
      "Member", attributes: [AttributeDescription("number", .integer64), AttributeDescription("text", .string)],
      relationships: [.toMany("accounts", to: "Account", inverse: "members"), .toOne("home", to: "Account", inverse: "guests")],
      uniquenessConstraints: [["number"]]),
  ])

  let store: FileStore
  let folder: String
  let policy: Policy
  /// The number of saves of each process.
  let saves: Int
  let seed: UInt64

  var path: String { folder + "/accounts" }
  func logPath(_ process: Int) -> String { folder + "/log\(process)" }

  /// A store whose locks may be held long.
  private var description: StoreDescription {
    if case .sqlite(let journal) = store {
      return .sqlite(at: path, options: SQLiteStoreOptions(journalMode: journal, busyTimeout: .seconds(3600), checkpointPages: 20))
    }
    return store.description(at: path, file: Inserting.options)
  }

  func open() throws -> ManagedObjectContext {
    try ManagedObjectContext(coordinator: PersistentStoreCoordinator(model: ProcessRace.model, store: description))
  }

  /// Makes the folder, and the store with its accounts.
  func begin() throws {
    TestFile.makeFolder(folder)
    let context = try open()
    for number in 0..<ProcessRace.accounts {
      try context.insert(entityNamed: "Account").setValue(.int64(Int64(number)), forKey: "number")
    }
    try context.save()
    try context.persistentStoreCoordinator.close()
  }

  /// All objects of an entity by number.
  static func objects(_ entity: String, _ context: ManagedObjectContext) throws -> [ManagedObject] {
    let numbered = try context.fetch(FetchRequest<ManagedObject>(entityName: entity)).map { ($0, try $0.integer("number")) }
    return numbered.sorted { $0.1 < $1.1 }.map { $0.0 }
  }
}

extension ManagedObject {
  /// The value of an integer attribute.
  func integer(_ name: String) throws -> Int {
    guard case .single(.int64(let number)) = try value(forKey: name) else {
      throw PersistenceError(.wrongType, objectID: objectID, property: name, reason: "The value is missing.")
    }
    return Int(number)
  }

  /// The value of a text attribute.
  func text(_ name: String) throws -> String {
    guard case .single(.string(let text)) = try value(forKey: name) else {
      throw PersistenceError(.wrongType, objectID: objectID, property: name, reason: "The value is missing.")
    }
    return text
  }
}
