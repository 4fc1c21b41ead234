import HoldfastStore

/// The rows that a query reaches through relationships, read from their stores.
///
/// Before a batch is tested, the rows that it references along the query's relationships are fetched, all rows of a step together.
final class StoreRows: EvaluationSource {
  private let reader: StoreReader
  private let crossings: [QueryCrossing]
  private var rows: [[ObjectKey: RowPointer]]
  private var links: [ManagedObjectModel.Relationship: [ObjectKey: [ObjectKey]]] = [:]
  /// Keeps the memory of the rows alive.
  private var batches: [RowBatch] = []

  init(_ reader: StoreReader, _ model: ManagedObjectModel, _ crossings: [QueryCrossing]) {
    self.reader = reader
    self.crossings = crossings
    rows = Array(repeating: [:], count: model.entities.count)
  }

  func row(entity: EntityIndex, key: ObjectKey) -> RowPointer? { rows[entity][key] }

  func targets(of row: RowPointer, _ relationship: ManagedObjectModel.Relationship) -> [ObjectKey] { links[relationship]?[row.key] ?? [] }

  /// The destinations; nil when they weren't fetched.
  func knownTargets(of key: ObjectKey, _ relationship: ManagedObjectModel.Relationship) -> [ObjectKey]? { links[relationship]?[key] }

  /// Fetches the rows that other rows reference along the query's relationships.
  func prepare(_ pointers: [RowPointer]) throws {
    for crossing in crossings {
      var current = pointers
      for relationship in crossing.relationships { current = try follow(relationship, from: current) }
    }
  }

  private func follow(_ relationship: ManagedObjectModel.Relationship, from current: [RowPointer]) throws -> [RowPointer] {
    var wanted: Set<ObjectKey> = []
    if relationship.isToMany {
      try fetchLinks(relationship, current)
      for row in current { wanted.formUnion(targets(of: row, relationship)) }
    } else {
      for row in current where row.isPresent(relationship.slot) { wanted.insert(row.key(relationship.slot)) }
    }
    try fetchRows(relationship.destinationIndex, wanted)
    return wanted.compactMap { rows[relationship.destinationIndex][$0] }
  }

  private func fetchLinks(_ relationship: ManagedObjectModel.Relationship, _ current: [RowPointer]) throws {
    let sources = Set(current.map(\.key)).filter { $0 >= 0 && links[relationship]?[$0] == nil }.sorted()
    if sources.isEmpty { return }
    let request = RelationshipRequest(entity: relationship.entityIndex, relationship: relationship.index, sources: sources)
    try reader.relationships(request) { source, targets in links[relationship, default: [:]][source] = targets }
  }

  private func fetchRows(_ entity: EntityIndex, _ wanted: Set<ObjectKey>) throws {
    let keys = wanted.filter { $0 >= 0 && rows[entity][$0] == nil }.sorted()
    if keys.isEmpty { return }
    let collector = RowCollector()
    try reader.rows(FaultRequest(entity: entity, keys: keys), into: collector)
    collector.forEach { batch, index in rows[entity][batch.pointer(index).key] = batch.pointer(index) }
    batches += collector.runs.map(\.batch)
  }
}
