import Foundation
import Holdfast
import HoldfastAtomicStore
import HoldfastBinaryStore
import HoldfastJSONStore
import HoldfastSQLiteStore
import HoldfastStore
import HoldfastXMLStore
import Synchronization
import TestSupport
import Testing

/// Copies and previews of a store while another process saves. Each has the state of one save.
@Suite(.serialized, .ownThreads) struct LiveCopyTests {
  enum Kind: String, CaseIterable, Codable, Sendable {
    case json
    case xml
    case binary
    /// With a log, which may contain the newest pages while the file is copied.
    case sqliteWithLog
    case sqliteWithoutLog

    func description(at path: String) -> StoreDescription {
      // A copy waits for the saves of the other process. On a busy machine, the default timeout of five seconds may be too short.
      let timeout = Duration.seconds(3600), whole = WholeFileOptions(file: DurableFileOptions(lockTimeout: timeout))
      return switch self {
      case .json: .json(at: path, options: JSONStoreOptions(wholeFile: whole))
      case .xml: .xml(at: path, options: XMLStoreOptions(wholeFile: whole))
      case .binary: .binary(at: path, options: BinaryStoreOptions(wholeFile: whole))
      case .sqliteWithLog: .sqlite(at: path, options: SQLiteStoreOptions(busyTimeout: timeout))
      case .sqliteWithoutLog: .sqlite(at: path, options: SQLiteStoreOptions(journalMode: .delete, busyTimeout: timeout))
      }
    }
  }

  /// Each save gives both accounts the same number, and adds an entry. The other entries make the file larger than the cache of one step.
  private static func model(noted: Bool = false) throws -> ManagedObjectModel {
    let note = noted ? [AttributeDescription("note", .string, isOptional: true)] : []
    return try ManagedObjectModel(entities: [
      EntityDescription("Account", attributes: [.init("number", .integer64, default: 0)] + note),
      EntityDescription("Entry", attributes: [.init("text", .string)]),
    ])
  }

  private static let entryCount = 3_000

  private static func change(_ store: StoreDescription, _ body: (ManagedObjectContext) throws -> Void) throws {
    let coordinator = try PersistentStoreCoordinator(model: model(), store: store)
    defer { try? coordinator.close() }
    try body(try ManagedObjectContext(coordinator: coordinator, classes: []))
  }

  private static func fill(_ store: StoreDescription) throws {
    try change(store) { context in
      for name in ["Account", "Account"] { _ = try context.insert(entityNamed: name) }
      for number in 0..<entryCount {
        try context.insert(entityNamed: "Entry").setValue("entry \(number) \(String(repeating: "x", count: 200))", forKey: "text")
      }
      try context.save()
    }
  }

  /// Saves until the value is true.
  private static func save(to store: StoreDescription, _ begun: DispatchSemaphore, until isEnough: borrowing Atomic<Bool>) throws -> Int {
    var number = 0
    try change(store) { context in
      while !isEnough.load(ordering: .acquiring) {
        number += 1
        for account in try context.fetch(FetchRequest<ManagedObject>(entityName: "Account")) {
          try account.setValue(number, forKey: "number")
        }
        try context.insert(entityNamed: "Entry").setValue("save \(number)", forKey: "text")
        try context.save()
        if number == 1 { begun.signal() }
        // Others wait for the end of a save, and not all of them are served in turn.
        Thread.sleep(forTimeInterval: 0.001)
      }
    }
    return number
  }

  /// The number of the save whose state objects have.
  private static func state(_ numbers: [StoreValue], _ entryCount: Int) -> Int {
    demand(numbers.count == 2 && numbers[0] == numbers[1], "The accounts have \(numbers).")
    guard case .int64(let number)? = numbers.first else { return -1 }
    demand(entryCount == Self.entryCount + Int(number), "After \(number) saves there are \(entryCount) entries.")
    return Int(number)
  }

  /// The number of the save whose state a store has.
  private static func state(_ store: StoreDescription) throws -> Int {
    var found = -1
    try change(store) { context in
      let accounts = try context.fetch(FetchRequest<ManagedObject>(entityName: "Account"))
      let numbers = try accounts.map { try $0.value(forKey: "number").storeValue ?? .null }
      found = state(numbers, try context.count(for: FetchRequest<ManagedObject>(entityName: "Entry")))
    }
    return found
  }

  /// Copies a store to the same type and to others, and previews a plan, which runs on a copy.
  private static func copy(_ kind: Kind, in folder: String) throws {
    let store = kind.description(at: folder + "/source")
    var last = 0
    func check(_ number: Int) {
      demand(number >= last, "A copy is older than the one before.")
      last = number
    }
    for round in 0..<TestTier.count(2, full: 40) {
      let same = kind.description(at: folder + "/same \(round)")
      try PersistentStoreCoordinator.replacePersistentStore(same, withCopyOf: store)
      check(try state(same))
      let other = MigratedStore.allCases[round % 4].description(at: folder + "/other \(round)")
      try PersistentStoreCoordinator.copyPersistentStore(store, to: other)
      check(try state(other))
      let seen = Mutex((numbers: [StoreValue](), entryCount: 0))
      var plan = MigrationPlan(from: try model())
      plan.add(try model(noted: true), named: "notes") { stage in
        try stage.forEach("Account") { old, _ in seen.withLock { $0.numbers.append(old["number"]) } }
        try stage.forEach("Entry") { _, _ in seen.withLock { $0.entryCount += 1 } }
      }
      let previews = try PersistentStoreCoordinator.previewMigration(of: store, with: plan)
      demand(previews.count == 1, "\(previews)")
      check(seen.withLock { state($0.numbers, $0.entryCount) })
    }
    demand(last > 0, "Nothing was saved meanwhile.")
  }

  @Test(arguments: Kind.allCases) func copiesAndPreviewsHaveTheStateOfOneSaveWhileAnotherProcessSaves(kind: Kind) async throws {
    if TestTier.isThreadSanitized { return }
    let folder = TemporaryFolder(), path = folder.file("source")
    try Self.fill(kind.description(at: path))
    let isEnough = Shared(), begun = DispatchSemaphore(value: 0), ended = DispatchSemaphore(value: 0)
    let outcome = Mutex<Result<Int, any Error>?>(nil)
    // Not in a task: the test blocks its thread.
    Thread.detachNewThread {
      let result = Result { try Self.save(to: kind.description(at: path), begun, until: isEnough.value) }
      outcome.withLock { $0 = result }
      begun.signal()
      ended.signal()
    }
    Self.wait(begun)
    await #expect(processExitsWith: .success) { [kind = kind as Kind, folder = folder.path as String] in
      try Self.copy(kind, in: folder)
    }
    isEnough.value.store(true, ordering: .releasing)
    Self.wait(ended)
    let count = try #require(try outcome.withLock { $0 }?.get())
    #expect(try Self.state(kind.description(at: path)) == count)
  }

  private final class Shared: Sendable { let value = Atomic(false) }

  private static func wait(_ semaphore: DispatchSemaphore) { semaphore.wait() }
}
