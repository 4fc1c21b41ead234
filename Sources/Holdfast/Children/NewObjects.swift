import HoldfastStore

/// The objects that a child's save inserts into its parent, and the links among them.
///
/// A link to an object that exists in the parent is added like any other. Links among new objects usually fill empty lists, so they are
/// sorted by counting, and each list is filled at once.
struct NewObjects {
  /// The new objects of an entity: consecutive numbers in the order of the keys.
  private struct Part {
    var first = 0
    var count = 0
    var firstKey: ObjectKey = 0
    /// Whether the keys are consecutive.
    var isDense = true
  }

  /// The objects by number.
  private(set) var objects: ContiguousArray<ManagedObject> = []
  /// By entity.
  private var parts: [Part]

  init(entityCount: Int) { parts = Array(repeating: Part(), count: entityCount) }

  /// Adds objects. All objects of an entity are added one after the other, ascending by key.
  mutating func append(_ object: ManagedObject, _ entity: EntityIndex) {
    if parts[entity].count == 0 {
      (parts[entity].first, parts[entity].firstKey) = (objects.count, object.objectKey)
    } else if parts[entity].firstKey.distance(to: object.objectKey) != parts[entity].count {
      parts[entity].isDense = false
    }
    parts[entity].count += 1
    objects.append(object)
  }

  /// The number of the new object with a key; nil if there is none.
  ///
  /// - Parameter family: The entity of the object, with its subentities.
  @inline(__always) func number(of key: ObjectKey, _ family: Range<EntityIndex>) -> Int? {
    for entity in family.rawValues {
      let part = parts[entity]
      if part.count == 0 || key < part.firstKey { continue }
      if !part.isDense {
        if let number = search(key, part) { return number }
      } else if part.firstKey.distance(to: key) < part.count {
        return part.first + part.firstKey.distance(to: key)
      }
    }
    return nil
  }

  private func search(_ key: ObjectKey, _ part: Part) -> Int? {
    var low = part.first, high = part.first + part.count
    while low < high {
      let middle = (low + high) / 2
      if objects[middle].objectKey < key { low = middle + 1 } else { high = middle }
    }
    return low < part.first + part.count && objects[low].objectKey == key ? low : nil
  }

  /// Links that belong to lists of new objects.
  struct Links {
    fileprivate var owners: [UInt32] = []
    fileprivate var targets: [ObjectKey] = []

    /// - Parameter capacity: The number of links that are likely to be added.
    init(capacity: Int) {
      owners.reserveCapacity(capacity)
      targets.reserveCapacity(capacity)
    }

    mutating func append(owner: Int, _ target: ObjectKey) {
      owners.append(UInt32(truncatingIfNeeded: owner))
      targets.append(target)
    }
  }

  /// Appends the destinations to the lists of a to-many relationship, in the order of the links.
  ///
  /// A list isn't empty if the parent has linked an object that is inserted again as a fault, perhaps to the same objects. Nor is one that
  /// got objects of another entity before.
  func fill(_ index: Int, _ links: Links) {
    if links.owners.isEmpty { return }
    // First the number of each owner's links, then the place of its next one.
    var next = [UInt32](repeating: 0, count: objects.count + 1)
    for owner in links.owners { next[Int(owner) + 1] += 1 }
    for number in objects.indices { next[number + 1] += next[number] }
    var sorted = links.targets
    for (owner, target) in zip(links.owners, links.targets) {
      sorted[Int(next[Int(owner)])] = target
      next[Int(owner)] += 1
    }
    var start = 0
    for number in objects.indices where Int(next[number]) > start {
      let states = objects[number].toManyStates(), keys = sorted[start..<Int(next[number])]
      if states[index].contents.isEmpty {
        states[index].append(new: keys)
      } else {
        for key in keys { _ = states[index].add(key, isNew: false) }
      }
      start = Int(next[number])
    }
  }
}
