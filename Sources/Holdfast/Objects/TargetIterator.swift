import HoldfastStore

/// Iterates over the destinations of a to-many relationship, except those being deleted.
///
/// Not generic, so that it is compiled for its one type. In a generic iterator, each iteration would look up types at run time.
struct TargetIterator {
  /// A destination in a list with new objects.
  private struct Known {
    let object: ManagedObject
    /// Whether it replaces an object of a wrong entity. It was never in the graph.
    let isStray: Bool
  }

  private let context: ContextCore
  private let destination: EntityIndex
  /// The keys of an answer or of the object's own list. Kept, because getting them from an answer retains it, for each object.
  private let keys: [ObjectKey]
  /// The places of the destinations among the keys.
  private let places: Range<Int>
  /// The objects that were loaded together with the destinations; nil for an own list.
  private let siblings: FaultSiblings?
  private let isTransient: Bool
  /// All objects, if some are new: a save during the iteration replaces their keys.
  private var objects: [Known]?
  private var place = 0

  init(_ owner: ManagedObject, _ index: Int, _ targets: TargetKeys) {
    context = owner.context
    destination = owner.plan.toMany[index].destination
    switch targets {
    case .answer(let siblings, let range):
      keys = siblings.answer?.targets ?? []
      places = range.clamped(to: keys.indices)
      self.siblings = siblings
    case .list(let list): (keys, places, siblings) = (list, list.indices, nil)
    }
    isTransient = index < 0
  }

  init(_ owner: ManagedObject, _ index: Int, over targets: TargetKeys) {
    self.init(owner, index, targets)
    if targets.hasTemporaryKeys {
      objects = (0..<places.count).compactMap { shown($0).map { Known(object: $0, isStray: $0.flags.contains(.detached)) } }
    }
  }

  /// The number of objects that are brought into the processor's cache together. A processor waits for about ten loads at a time.
  static let window = 8

  /// Prepares for the next objects. Otherwise, finding and reading each of them would wait for memory several times: the objects of one
  /// relationship are spread over the graph. Following the relationships of 1,000 of 100,000 people takes 0.85 of the time.
  private func prepare() {
    let first = places.lowerBound + place
    context.registry.prepare(for: keys[first..<min(first + TargetIterator.window, places.upperBound)], of: destination)
  }

  /// The next object, perhaps a fault.
  mutating func next() -> ManagedObject? {
    if let objects { return nextKnown(objects) }
    while place < places.count {
      defer { place += 1 }
      if place % TargetIterator.window == 0 { prepare() }
      if let object = shown(place) { return object }
    }
    return nil
  }

  /// The object at a place, as a collection shows it; nil if it is being deleted.
  private func shown(_ place: Int) -> ManagedObject? {
    if let object = object(place) { return object }
    let key = keys[places.lowerBound + place]
    // Only a damaged file references an object of a wrong entity. It is replaced with an object without values.
    return context.isDeleted(destination, key) ? nil : context.strayObject(destination, key)
  }

  private mutating func nextKnown(_ objects: [Known]) -> ManagedObject? {
    while place < objects.count {
      defer { place += 1 }
      let known = objects[place]
      if !known.object.isDeleted && (known.isStray || !known.object.flags.contains(.detached)) { return known.object }
    }
    return nil
  }

  /// The object at a place among all destinations; nil if it is being deleted or of a wrong entity.
  func object(_ place: Int) -> ManagedObject? {
    let position = places.lowerBound + place, key = keys[position]
    if let siblings { return context.target(destination, key, siblings, position: position) }
    if isTransient { return context.linkedTarget(destination, key) }
    if place % RowGroup.size == 0 { context.readAhead(destination, keys[place..<min(place + RowGroup.size, keys.count)]) }
    return context.target(destination, key)
  }
}
