/// A request to create a store from what can be read of a damaged store of the same type.
///
/// ``StoreDescription/administration`` of the new store answers it. The damaged store isn't changed.
///
/// - Objects keep their keys, and the store keeps its UUID and metadata as far as they can be read.
/// - A row that doesn't have the form of its entity isn't recovered. What had to be assumed, because its description is lost, is in
///   ``RepairReport/notes``. Damage that changes a value to another one of the same type is found only if the type of store has digests.
/// - References to objects that weren't recovered are removed. Values are recovered even if the model's validation rules need others that
///   are lost.
/// - There must be nothing at the new store's location, and no other process may use the damaged store. If the request fails, no new store
///   exists.
public struct RepairRequest: StoreRequest {
  /// The location of the damaged store.
  public var source: StoreLocation
  /// The store's model; nil for the one in the store. Without any, references aren't checked.
  public var model: ManagedObjectModel? {
    get { encodedModel?.model }
    set { encodedModel = newValue.map { CodableModel($0) } }
  }

  private var encodedModel: CodableModel?

  /// Creates a request.
  public init(source: StoreLocation, model: ManagedObjectModel? = nil) {
    self.source = source
    encodedModel = model.map { CodableModel($0) }
  }

  /// What was recovered.
  public typealias Answer = RepairReport
  /// A verb phrase for errors.
  public static var operation: String { "repair the store" }
}

/// What was recovered of a damaged store, and what wasn't.
public struct RepairReport: Sendable, Hashable {
  /// The numbers of recovered objects, by the name of their entity. Without a model, by the name of their table.
  public var objectCounts: [String: Int] = [:]
  /// The number of damaged places: pages of a SQLite file, and parts of other files.
  public var damagedPlaceCount = 0
  /// The number of objects that were found and can't be read. In SQLite files, also other rows: definitions, links, and those of other
  /// programs.
  public var unreadableCount = 0
  /// The number of recovered objects beside unreadable ones, in the same page. Their values may be damaged as well.
  public var suspectCount = 0
  /// About how many objects were in damaged places, because other places of that size contain as many. 0 for binary files, whose directory
  /// counts them.
  public var estimatedLostCount = 0
  /// The numbers of removed references, by relationship: "Dog.owner". Their objects weren't recovered, or the other end contradicts them.
  public var removedReferenceCounts: [String: Int] = [:]
  /// The numbers of lost values of recovered objects, by attribute: "Dog.photo". Their external files are missing or damaged, or the values
  /// can't be read. They are nil now.
  public var lostValueCounts: [String: Int] = [:]
  /// Everything else that differs from the damaged store, as sentences. They contain no values.
  public var notes: [String] = []

  /// Creates an empty report.
  public init() {}

  /// The number of recovered objects.
  public var objectCount: Int { objectCounts.values.reduce(0, +) }

  /// Whether nothing was damaged or lost.
  public var isComplete: Bool {
    damagedPlaceCount == 0 && unreadableCount == 0 && removedReferenceCounts.isEmpty && lostValueCounts.isEmpty && notes.isEmpty
  }
}

extension RepairReport: CustomStringConvertible {
  /// The report as lines of text.
  public var description: String {
    func list(_ counts: [String: Int]) -> String {
      counts.sorted { $0.key < $1.key }.map { "\n  \($0.key): \($0.value)" }.joined()
    }
    var text = "\(objectCount) objects recovered" + (objectCounts.isEmpty ? "" : ":") + list(objectCounts)
    if isComplete { return text + "\nNothing was damaged." }
    if damagedPlaceCount > 0 {
      text += "\nDamaged places: \(damagedPlaceCount)" + (estimatedLostCount > 0 ? ", with about \(estimatedLostCount) objects" : "")
    }
    if unreadableCount > 0 { text += "\nObjects that can't be read: \(unreadableCount)" }
    if suspectCount > 0 { text += "\nObjects beside these, whose values may be wrong: \(suspectCount)" }
    if !removedReferenceCounts.isEmpty { text += "\nRemoved references:" + list(removedReferenceCounts) }
    if !lostValueCounts.isEmpty { text += "\nLost values, which are nil now:" + list(lostValueCounts) }
    return text + notes.map { "\n\($0)" }.joined()
  }
}
