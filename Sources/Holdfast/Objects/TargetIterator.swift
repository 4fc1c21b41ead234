import HoldfastStore

/// Iterates over the destinations of a to-many relationship, except those being deleted.
///
/// Not generic, so that it is compiled for its one type. In a generic iterator, each iteration would look up types at run time.
struct TargetIterator {
  private let context: ContextCore
  private let destination: EntityIndex
  private let targets: TargetKeys
  /// Kept, because getting it from the destinations retains them.
  private let count: Int
  private let isTransient: Bool
  /// All objects, if some are new: a save during the iteration replaces their keys.
  private var objects: [ManagedObject]?
  private var place = 0

  init(_ owner: ManagedObject, _ index: Int, _ targets: TargetKeys) {
    context = owner.context
    destination = owner.plan.toMany[index].destination
    self.targets = targets
    count = targets.count
    isTransient = index < 0
  }

  init(_ owner: ManagedObject, _ index: Int) {
    self.init(owner, index, owner.targets(index, readsTargets: true))
    if targets.hasTemporaryKeys { objects = (0..<count).compactMap { object($0) } }
  }

  /// The next object, perhaps a fault.
  mutating func next() -> ManagedObject? {
    if let objects { return nextKnown(objects) }
    while place < count {
      defer { place += 1 }
      if let object = object(place) { return object }
    }
    return nil
  }

  private mutating func nextKnown(_ objects: [ManagedObject]) -> ManagedObject? {
    while place < objects.count {
      defer { place += 1 }
      if !objects[place].isDeleted && !objects[place].flags.contains(.detached) { return objects[place] }
    }
    return nil
  }

  /// The object at a place among all destinations; nil if it is being deleted.
  func object(_ place: Int) -> ManagedObject? {
    switch targets {
    case .list(let keys) where isTransient: return context.linkedTarget(destination, keys[place])
    case .list(let keys):
      if place % RowGroup.size == 0 { context.readAhead(destination, keys[place..<min(place + RowGroup.size, keys.count)]) }
      return context.target(destination, keys[place], nil, position: 0)
    case .answer(let siblings, let range):
      return context.target(
        destination, siblings.answer?.targets[range.lowerBound + place] ?? 0, siblings, position: range.lowerBound + place)
    }
  }
}
