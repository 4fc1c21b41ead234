import Holdfast
import HoldfastStore
import Synchronization
import Testing

/// An object whose callbacks change it and others. ``PlainGraph`` computes the same.
///
/// - ``Name/born`` is 1 after the insertion.
/// - ``Name/links`` is the number of the object's links with an inverse, as of the last save.
/// - ``Name/near`` is the sum of ``Name/links`` of the objects at the other ends of these links.
/// - ``Name/lost`` is the number of these links that were lost by the deletion of the other object.
/// - ``Name/seen`` is transient, and the tag of an object that has received its row.
///
/// Every fourth object without such links deletes itself when it is saved.
class Echo: ManagedObject {
  enum Name {
    static let born = "born", links = "links", near = "near", lost = "lost", seen = "seen"
    static let saved = [born, links, near, lost]
  }

  /// The classes of entities with the names of ``RandomModel``.
  static let classes: [ManagedObject.Type] = [Echo0.self, Echo1.self, Echo2.self, Echo3.self, Echo4.self, Echo5.self]

  static let attributes: [AttributeDescription] =
    Name.saved.map { AttributeDescription($0, .integer64, isOptional: true) }
    + [AttributeDescription(Name.seen, .integer64, isOptional: true, isTransient: true)]

  /// What callbacks have found wrong; nil outside of a program.
  @TaskLocal static var complaints: Complaints?

  final class Complaints: Sendable {
    private let all = Mutex<[String]>([])
    var first: String? { all.withLock(\.first) }
    func add(_ text: String) { all.withLock { $0.append(text) } }
  }

  /// The number of calls of `didSave`.
  private(set) var saves = 0
  private var becomesFault = false

  override class var entityName: String { "" }

  override func awakeFromInsert() { set(Name.born, 1) }

  override func awakeFromFetch() {
    complaining {
      let tag = try integer("tag")
      try setValue(.int64(tag), forKey: Name.seen)
    }
  }

  override func prepareForDeletion() {
    complaining { for object in try others() { try object.set(Name.lost, object.integer(Name.lost) + 1) } }
  }

  override func willSave() {
    if isDeleted { return }
    complaining {
      let others = try others()
      if others.isEmpty, try integer("tag") % 4 == 1 { return managedObjectContext.delete(self) }
      set(Name.links, Int64(others.count))
      for object in Set(others + [self]) { object.set(Name.near, try object.others().reduce(0) { try $0 + $1.integer(Name.links) }) }
    }
  }

  override func didSave() {
    saves += 1
    if isDeleted || isInserted || isUpdated { Echo.complaints?.add("\(self) has changes in didSave") }
  }

  override func willTurnIntoFault() {
    if becomesFault || isFault { Echo.complaints?.add("\(self) becomes a fault twice") }
    becomesFault = true
    complaining { _ = try integer("tag") }
  }

  override func didTurnIntoFault() {
    if !becomesFault { Echo.complaints?.add("\(self) has become a fault without notice") }
    becomesFault = false
  }

  private func complaining(_ body: () throws -> Void) {
    do { try body() } catch { Echo.complaints?.add("\(self): \(error)") }
  }

  /// The objects at the other ends of links with an inverse, once for each link.
  private func others() throws -> [Echo] {
    try entity.relationships.filter(\.hasInverse).flatMap { relationship -> [Echo] in
      if relationship.isOrdered { return try ordered(forKey: relationship.name).compactMap { $0 as? Echo } }
      if relationship.isToMany { return try toMany(forKey: relationship.name).compactMap { $0 as? Echo } }
      let target: ManagedObject? = toOne(relationship.slot)
      return [target].compactMap { $0 as? Echo }
    }
  }

  private func integer(_ name: String) throws -> Int64 { try value(forKey: name).storeValue?.integer ?? 0 }

  private func set(_ name: String, _ value: Int64) {
    complaining { if try self.value(forKey: name) != .int64(value) { try setValue(.int64(value), forKey: name) } }
  }
}

private final class Echo0: Echo { override class var entityName: String { "E0" } }
private final class Echo1: Echo { override class var entityName: String { "E1" } }
private final class Echo2: Echo { override class var entityName: String { "E2" } }
private final class Echo3: Echo { override class var entityName: String { "E3" } }
private final class Echo4: Echo { override class var entityName: String { "E4" } }
private final class Echo5: Echo { override class var entityName: String { "E5" } }

extension PlainGraph {
  private func others(_ tag: Int) -> [Int] {
    guard let thing = things[tag] else { return [] }
    return model.entities[thing.entity].relationships.filter(\.hasInverse).flatMap { targets(tag, $0) }
  }

  private mutating func set(_ name: String, of tag: Int, _ value: Int64) { things[tag]?.values[name] = .int64(value) }

  private func count(_ tag: Int, _ name: String) -> Int64 { things[tag]?.values[name]?.integer ?? 0 }

  /// What ``Echo/awakeFromInsert()`` does.
  mutating func awakenEcho(_ tag: Int) { things[tag]?.values[Echo.Name.born] = .int64(1) }

  /// Deletes a thing as objects of ``Echo`` do.
  mutating func deleteEcho(_ tag: Int, _ saved: PlainGraph) {
    let before = self
    delete(tag, saved)
    for gone in before.things.keys where things[gone] == nil {
      for other in before.others(gone) where things[other] != nil {
        set(Echo.Name.lost, of: other, count(other, Echo.Name.lost) + 1)
      }
    }
  }

  /// What ``Echo/willSave()`` does in a save of all changes.
  mutating func saveEchoes(_ saved: PlainGraph) {
    while let lonely = things.keys.sorted().first(where: { $0 % 4 == 1 && others($0).isEmpty }) { deleteEcho(lonely, saved) }
    for tag in things.keys { set(Echo.Name.links, of: tag, Int64(others(tag).count)) }
    for tag in things.keys { set(Echo.Name.near, of: tag, others(tag).reduce(0) { $0 + count($1, Echo.Name.links) }) }
  }
}
