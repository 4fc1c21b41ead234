import HoldfastStore

/// Compares the objects of two stores whose partners are known.
struct GraphComparison {
  private let first: GraphReader
  private let second: GraphReader
  private let pairs: ObjectPairs
  private let includesValues: Bool
  private let maximumCount: Int
  private var entities: [GraphDifference.Entity] = []
  private var objects: [GraphDifference.Object] = []

  init(_ first: GraphReader, _ second: GraphReader, _ pairs: ObjectPairs, includesValues: Bool, maximumCount: Int) {
    (self.first, self.second, self.pairs) = (first, second, pairs)
    (self.includesValues, self.maximumCount) = (includesValues, maximumCount)
  }

  mutating func run() throws -> GraphDifference {
    for entity in first.model.entities where !entity.isAbstract { try compareObjects(of: entity) }
    return GraphDifference(entities: entities, objects: objects)
  }

  // MARK: Objects

  private mutating func compareObjects(of entity: ManagedObjectModel.Entity) throws {
    let root = entity.rootIndex, left = first.ranks(of: entity), right = second.ranks(of: entity)
    if left.isEmpty && right.isEmpty { return }
    let paired = left.filter { pairs.partner(.first, root, $0) != nil }
    let changedCount = try comparePairs(paired, entity)
    for rank in left where pairs.partner(.first, root, rank) == nil { addSingle(first, entity, rank, .first) }
    for rank in right where pairs.partner(.second, root, rank) == nil { addSingle(second, entity, rank, .second) }
    entities.append(
      GraphDifference.Entity(
        name: entity.name, pairCount: paired.count, changedCount: changedCount, onlyInFirstCount: left.count - paired.count,
        onlyInSecondCount: right.count - paired.count))
  }

  private mutating func addSingle(_ reader: GraphReader, _ entity: ManagedObjectModel.Entity, _ rank: Int, _ side: Side) {
    guard objects.count < maximumCount else { return }
    let id = reader.identity.objectID(entity: entity, key: reader.keys[entity.rootIndex][rank])
    objects.append(
      GraphDifference.Object(
        entityName: entity.name, first: side == .first ? id : nil, second: side == .second ? id : nil, properties: []))
  }

  /// Compares the objects with some ranks in the first store with their partners, and returns how many differ.
  private mutating func comparePairs(_ ranks: [Int], _ entity: ManagedObjectModel.Entity) throws -> Int {
    let properties = entity.graphProperties
    var count = 0
    for start in stride(from: 0, to: ranks.count, by: ObjectChunk.maximumCount) {
      let part = ranks[start..<min(start + ObjectChunk.maximumCount, ranks.count)]
      let chunk = try ObjectChunk(first, entity, part)
      let other = try ObjectChunk(second, entity, part.compactMap { pairs.partner(.first, entity.rootIndex, $0) })
      for index in chunk.keys.indices {
        let different = try properties.filter { try differs(chunk, other, index, $0) }
        if different.isEmpty { continue }
        count += 1
        if objects.count < maximumCount { objects.append(object(chunk, other, index, different)) }
      }
    }
    return count
  }

  private func object(
    _ chunk: ObjectChunk, _ other: ObjectChunk, _ index: Int, _ properties: [GraphProperty]
  ) -> GraphDifference.Object {
    GraphDifference.Object(
      entityName: chunk.entity.name, first: chunk.objectID(index), second: other.objectID(index),
      properties: properties.map { property in
        GraphDifference.Property(name: property.name, first: value(chunk, index, property), second: value(other, index, property))
      })
  }

  private func value(_ chunk: ObjectChunk, _ index: Int, _ property: GraphProperty) -> StoreValue? {
    guard includesValues else { return nil }
    switch property {
    case .attribute(let attribute): return chunk.value(index, attribute.slot)
    case .toOne(let relationship): return chunk.value(index, relationship.slot)
    case .toMany: return nil
    }
  }

  // MARK: Properties

  /// Whether a property of two partners differs.
  private func differs(_ chunk: ObjectChunk, _ other: ObjectChunk, _ index: Int, _ property: GraphProperty) throws -> Bool {
    if case .attribute(let attribute) = property, attribute.type != .objectID, chunk.hasSameBits(index, as: other, index, attribute) {
      return false
    }
    switch (try chunk.content(index, property), try other.content(index, property)) {
    case (.none, .none): return false
    case (.number(let value), .number(let otherValue)): return value != otherValue
    case (.bytes(let bytes), .bytes(let otherBytes)): return bytes != otherBytes
    case (.objects(let root, let ranks, let isOrdered), .objects(let otherRoot, let otherRanks, _)):
      guard root == otherRoot, ranks.count == otherRanks.count else { return true }
      let partners = ranks.compactMap { pairs.partner(.first, root, $0) }
      return isOrdered ? partners != otherRanks : partners.sorted() != otherRanks.sorted()
    default: return true
    }
  }
}
