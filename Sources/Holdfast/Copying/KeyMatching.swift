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
    // A key with a relationship is known when the destination is paired.
    var count = try entities.reduce(0) { $0 + (try pairObjects(of: $1)) }
    while count > 0 {
      count = try entities.filter { hasRelationshipInKey($0) }.reduce(0) { $0 + (try pairObjects(of: $1)) }
    }
    for entity in entities { try markSingleObjects(of: entity) }
  }

  private func hasRelationshipInKey(_ entity: ManagedObjectModel.Entity) -> Bool {
    keys[entity.index].joined().contains { entity.relationship(inSlot: $0) != nil }
  }

  private func pairObjects(of entity: ManagedObjectModel.Entity) throws -> Int {
    var count = 0
    for slots in keys[entity.index] {
      let found = try Side.allCases.map { try hashes($0, entity, slots) }
      HashGroups.forEach(found[0], found[1]) { first, second, _ in
        guard first.count == 1 && second.count == 1 else { return }
        pairs.pair(entity.rootIndex, first[0], second[0])
        count += 1
      }
    }
    return count
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
    let content: GraphProperty.Content
    switch entity.slots[slot] {
    case .attribute(let attribute): content = try reader.content(of: row, attribute, entity)
    case .toOne(let relationship):
      let root = reader.model.destination(of: relationship).rootIndex
      guard row.isPresent(slot), let rank = reader.rank(row.key(slot), root) else { return nil }
      content = .objects(root, [rank], isOrdered: true)
    }
    switch content {
    case .none: return nil
    case .objects(let root, let ranks, _):
      // Both stores use the rank in the first one.
      guard let rank = ranks.first, let partner = pairs.partner(side, root, rank) else { return nil }
      return GraphHash.mixed(root.rawValue, UInt64(side == .first ? rank : partner))
    default: return GraphHash.of(content) { _, _ in 0 }
    }
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
