import HoldfastStore

/// Finds each object's partner by its ID: the same root entity and key.
enum IDMatching {
  static func run(_ first: GraphReader, _ second: GraphReader, _ pairs: ObjectPairs) {
    for entity in first.model.entities where !entity.isAbstract {
      let root = entity.rootIndex, ranks = [first.ranks(of: entity), second.ranks(of: entity)]
      var (left, right) = (0, 0)
      while left < ranks[0].count && right < ranks[1].count {
        let key = first.keys[root][ranks[0][left]], other = second.keys[root][ranks[1][right]]
        if key == other { pairs.pair(root, ranks[0][left], ranks[1][right]) }
        if key <= other { left += 1 }
        if other <= key { right += 1 }
      }
    }
  }
}

/// Finds each object's partner by the values of its unique keys.
final class KeyMatching {
  private let readers: [GraphReader]
  private let pairs: ObjectPairs
  /// The slots of each unique key, by concrete entity.
  private let keys: [[[SlotIndex]]]

  /// - Parameter names: Properties that are a unique key, by the name of their entity. They replace the entity's uniqueness constraints.
  /// - Throws: ``PersistenceError`` if the model has no such entity, attribute or to-one relationship, or no entity has a unique key.
  init(_ first: GraphReader, _ second: GraphReader, _ pairs: ObjectPairs, _ names: [String: [String]]) throws {
    (readers, self.pairs, keys) = ([first, second], pairs, try Self.keys(first.model, names))
  }

  private static func keys(_ model: ManagedObjectModel, _ names: [String: [String]]) throws -> [[[SlotIndex]]] {
    var given: [EntityIndex: [SlotIndex]] = [:]
    for (name, properties) in names.sorted(by: { $0.key < $1.key }) {
      guard let entity = model.entity(named: name) else {
        throw PersistenceError(
          .unknownEntity, reason: "A unique key is given for the entity \(name), which the model doesn't have. Check the name.")
      }
      guard !properties.isEmpty else {
        throw PersistenceError(.invalidRequest, reason: "The unique key of \(name) is empty. Name at least one property.")
      }
      given[entity.index] = try properties.map { property in
        guard let slot = entity.slot(named: property) else {
          throw PersistenceError(
            .unknownProperty, property: property,
            reason: "\(name) has no stored attribute or to-one relationship \(property), so it can't be in a unique key. Check the name.")
        }
        return slot
      }
    }
    let keys = model.entities.map { entity -> [[SlotIndex]] in
      if entity.isAbstract { return [] }
      var next: EntityIndex? = entity.index
      while let index = next {
        if let slots = given[index] { return [slots] }
        next = model.entities[index].superentityIndex
      }
      return entity.uniqueSlots.filter { !$0.isEmpty }
    }
    if keys.allSatisfy(\.isEmpty) {
      throw PersistenceError(
        .invalidRequest,
        reason: "The model has no uniqueness constraint. Name the properties of a unique key for each entity, or compare by structure.")
    }
    return keys
  }

  /// Pairs objects with equal keys. Objects with a key that no object of the other store has become single; others remain unpaired.
  func run() throws {
    let entities = readers[0].model.entities.filter { !keys[$0.index].isEmpty }
    for entity in entities { try pairObjects(of: entity) }
    try pairDependentObjects(of: entities)
    for entity in entities { try markSingleObjects(of: entity) }
  }

  private func pairObjects(of entity: ManagedObjectModel.Entity) throws {
    for slots in keys[entity.index] {
      let found = try Side.allCases.map { try hashes($0, entity, slots) }
      HashGroups.forEach(found[0], found[1]) { first, second, _ in
        guard first.count == 1 && second.count == 1 else { return }
        pairs.pair(entity.rootIndex, first[0], second[0])
      }
    }
  }

  /// Pairs objects with a destination in a key, which is known when the destination is paired.
  ///
  /// Each object is read once for each key, also if the destinations have such keys themselves: a chain of objects, or a tree.
  private func pairDependentObjects(of entities: [ManagedObjectModel.Entity]) throws {
    let dependent = DependentKeys(readers, pairs)
    for entity in entities {
      for slots in keys[entity.index] where slots.contains(where: { mayBeDestination(entity.slots[$0]) }) {
        dependent.beginKey(root: entity.rootIndex)
        for side in Side.allCases { try addObjects(of: entity, side, slots, to: dependent) }
      }
    }
    try dependent.pairAll()
  }

  private func mayBeDestination(_ slot: ManagedObjectModel.Slot) -> Bool {
    switch slot {
    case .attribute(let attribute): attribute.type == .objectID
    case .toOne: true
    }
  }

  private func addObjects(
    of entity: ManagedObjectModel.Entity, _ side: Side, _ slots: [SlotIndex], to dependent: DependentKeys
  ) throws {
    let reader = readers[side.rawValue], root = entity.rootIndex, pairs = pairs
    try reader.forEachRow(of: entity) { row in
      guard let rank = reader.rank(row.key, root), pairs.isUnpaired(side, root, rank) else { return }
      var hash: UInt64 = 0, destinations: [(root: EntityIndex, rank: Int)] = []
      for slot in slots {
        switch try Self.part(row.pointer, slot, entity, reader) {
        case nil: return
        case .value(let value)?: hash = GraphHash.mixed(hash, value)
        case .destination(let root, let rank)?: destinations.append((root, rank))
        }
      }
      dependent.add(side, rank, hash, destinations)
    }
  }

  private func markSingleObjects(of entity: ManagedObjectModel.Entity) throws {
    for slots in keys[entity.index] {
      let found = try Side.allCases.map { try hashes($0, entity, slots) }
      HashGroups.forEach(found[0], found[1]) { first, second, _ in
        // A key that several objects have isn't unique. Their structure decides.
        if first.count == 1 && second.isEmpty { pairs.setSingle(.first, entity.rootIndex, first[0]) }
        if second.count == 1 && first.isEmpty { pairs.setSingle(.second, entity.rootIndex, second[0]) }
      }
    }
  }

  /// The hashes of the keys of unpaired objects. Objects with an incomplete key are left out.
  private func hashes(_ side: Side, _ entity: ManagedObjectModel.Entity, _ slots: [SlotIndex]) throws -> [HashGroups.Element] {
    let reader = readers[side.rawValue], root = entity.rootIndex, pairs = pairs
    var found: [HashGroups.Element] = []
    try reader.forEachRow(of: entity) { row in
      guard let rank = reader.rank(row.key, root), pairs.isUnpaired(side, root, rank) else { return }
      var hash: UInt64 = 0
      for slot in slots {
        guard let part = try Self.hash(row.pointer, slot, entity, reader, side, pairs) else { return }
        hash = GraphHash.mixed(hash, part)
      }
      found.append(HashGroups.Element(hash: hash, rank: rank))
    }
    return found
  }

  /// The hash of one value of a key. Nil for no value, and for a destination without a partner.
  private static func hash(
    _ row: RowPointer, _ slot: SlotIndex, _ entity: ManagedObjectModel.Entity, _ reader: GraphReader, _ side: Side, _ pairs: ObjectPairs
  ) throws -> UInt64? {
    switch try part(row, slot, entity, reader) {
    case nil: nil
    case .value(let hash)?: hash
    case .destination(let root, let rank)?: pairs.hash(side, root, rank)
    }
  }

  /// A part of a key.
  private enum Part {
    /// The hash of a value that isn't an object.
    case value(UInt64)
    /// An object, by its root entity and rank.
    case destination(EntityIndex, Int)
  }

  /// One value of a key. Nil for no value, and for a destination that doesn't exist.
  private static func part(
    _ row: RowPointer, _ slot: SlotIndex, _ entity: ManagedObjectModel.Entity, _ reader: GraphReader
  ) throws -> Part? {
    switch entity.slots[slot] {
    case .attribute(let attribute):
      let content = try reader.content(of: row, attribute, entity)
      switch content {
      case .none: return nil
      case .objects(let root, let ranks, _): return ranks.first.map { Part.destination(root, $0) }
      case .number, .bytes: return .value(GraphHash.of(content) { _, _ in 0 })
      }
    case .toOne(let relationship):
      let root = reader.model.destination(of: relationship).rootIndex
      guard row.isPresent(slot), let rank = reader.rank(row.key(slot), root) else { return nil }
      return .destination(root, rank)
    }
  }
}

extension ObjectPairs {
  /// The hash of a paired object, the same for both stores. Nil for an object without a partner.
  fileprivate func hash(_ side: Side, _ root: EntityIndex, _ rank: Int) -> UInt64? {
    // Both stores use the rank in the first one.
    partner(side, root, rank).map { GraphHash.mixed(root.rawValue, UInt64(side == .first ? rank : $0)) }
  }
}

/// Unpaired objects with destinations in a key, which are paired when all of these destinations are.
private final class DependentKeys {
  /// A key of an object.
  private struct Key {
    /// The index in ``roots``.
    var number: Int32
    /// The number of destinations without a partner.
    var missingCount: Int32
    var rank: Int
    /// The hash of the values that aren't destinations.
    var hash: UInt64
    /// The index of the first destination. The others follow it, up to those of the next key.
    var start: Int
  }

  private struct Destination {
    var root: EntityIndex
    var rank: Int
    /// The index of the key.
    var key: Int
    /// The index of another destination that is the same object; -1 for none.
    var next: Int
  }

  private let readers: [GraphReader]
  private let pairs: ObjectPairs
  /// The root entity of the objects with each key, once for each side.
  private var roots: [EntityIndex] = []
  private var keys: [Key] = []
  private var destinations: [Destination] = []
  /// The index of the last destination that is an unpaired object, by side, root entity and rank; -1 for none.
  private var last: [[[Int]]]
  /// The indexes of the keys whose destinations are all paired.
  private var ready: [Int] = []

  init(_ readers: [GraphReader], _ pairs: ObjectPairs) {
    (self.readers, self.pairs) = (readers, pairs)
    last = readers.map { reader in reader.keys.map { _ in [Int]() } }
  }

  /// Begins the objects with another key.
  func beginKey(root: EntityIndex) { roots += [root, root] }

  func add(_ side: Side, _ rank: Int, _ hash: UInt64, _ found: [(root: EntityIndex, rank: Int)]) {
    let index = keys.count
    var key = Key(number: Int32(roots.count - 2 + side.rawValue), missingCount: 0, rank: rank, hash: hash, start: destinations.count)
    for (root, rank) in found {
      var destination = Destination(root: root, rank: rank, key: index, next: -1)
      if pairs.partner(side, root, rank) == nil {
        if last[side.rawValue][root].isEmpty {
          last[side.rawValue][root] = Array(repeating: -1, count: readers[side.rawValue].keys[root].count)
        }
        destination.next = last[side.rawValue][root][rank]
        last[side.rawValue][root][rank] = destinations.count
        key.missingCount += 1
      }
      destinations.append(destination)
    }
    keys.append(key)
    if key.missingCount == 0 { ready.append(index) }
  }

  /// Pairs objects with equal keys. Each pair can complete the keys of others.
  func pairAll() throws {
    while !ready.isEmpty {
      try GraphReader.checkCancellation()
      var found: [Int: [[HashGroups.Element]]] = [:]
      for index in ready {
        let number = Int(keys[index].number), side = number % 2, rank = keys[index].rank
        // Another key may have paired the object since.
        guard pairs.isUnpaired(side == 0 ? .first : .second, roots[number], rank), let hash = hash(index) else { continue }
        found[number / 2, default: [[], []]][side].append(HashGroups.Element(hash: hash, rank: rank))
      }
      ready = []
      for (number, elements) in found.sorted(by: { $0.key < $1.key }) {
        HashGroups.forEach(elements[0], elements[1]) { first, second, _ in
          if first.count == 1 && second.count == 1 { pair(roots[2 * number], first[0], second[0]) }
        }
      }
    }
  }

  /// Pairs two objects, unless one of them was paired by another key.
  private func pair(_ root: EntityIndex, _ first: Int, _ second: Int) {
    guard pairs.isUnpaired(.first, root, first), pairs.isUnpaired(.second, root, second) else { return }
    pairs.pair(root, first, second)
    complete(.first, root, first)
    complete(.second, root, second)
  }

  /// Notes that a destination has a partner.
  private func complete(_ side: Side, _ root: EntityIndex, _ rank: Int) {
    if last[side.rawValue][root].isEmpty { return }
    var next = last[side.rawValue][root][rank]
    while next >= 0 {
      let key = destinations[next].key
      keys[key].missingCount -= 1
      if keys[key].missingCount == 0 { ready.append(key) }
      next = destinations[next].next
    }
  }

  /// The hash of a key whose destinations are all paired.
  private func hash(_ index: Int) -> UInt64? {
    let side: Side = keys[index].number % 2 == 0 ? .first : .second
    var hash = keys[index].hash
    for place in keys[index].start..<(index + 1 < keys.count ? keys[index + 1].start : destinations.count) {
      guard let part = pairs.hash(side, destinations[place].root, destinations[place].rank) else { return nil }
      hash = GraphHash.mixed(hash, part)
    }
    return hash
  }
}

/// Groups objects of two stores by hashes.
enum HashGroups {
  struct Element {
    var hash: UInt64
    var rank: Int
  }

  /// Calls a closure for each hash with the ranks of the first and the second store's objects, ascending. One of the lists may be empty.
  static func forEach(_ first: [Element], _ second: [Element], _ body: ([Int], [Int], UInt64) throws -> Void) rethrows {
    let first = sorted(first), second = sorted(second)
    var (left, right) = (0, 0)
    while left < first.count || right < second.count {
      let hash = min(left < first.count ? first[left].hash : .max, right < second.count ? second[right].hash : .max)
      try body(run(first, &left, hash), run(second, &right, hash), hash)
    }
  }

  private static func sorted(_ elements: [Element]) -> [Element] { elements.sorted { ($0.hash, $0.rank) < ($1.hash, $1.rank) } }

  private static func run(_ elements: [Element], _ index: inout Int, _ hash: UInt64) -> [Int] {
    var ranks: [Int] = []
    while index < elements.count && elements[index].hash == hash {
      ranks.append(elements[index].rank)
      index += 1
    }
    return ranks
  }
}
