/// Reads rows and destinations by key, for queries that follow relationships.
public protocol RelatedRowReader: AnyObject {
  /// Delivers the rows with certain keys.
  func rows(_ request: FaultRequest, into sink: any RowSink) throws
  /// Calls a closure with the destinations of each source of a to-many relationship. There may be any number of sources.
  func relationships(_ request: RelationshipRequest, _ body: (ObjectKey, [ObjectKey]) -> Void) throws
}

/// The rows that a query reaches through relationships, read from their stores.
///
/// Before a batch is tested, the rows that it references along the query's relationships are fetched: for each relationship of a path, all
/// rows together.
public final class RelatedRows: EvaluationSource {
  private let reader: any RelatedRowReader
  private let model: ManagedObjectModel
  private let relationshipPaths: [RelationshipPath]
  private var rows: [[ObjectKey: RowPointer]]
  private var links: [ManagedObjectModel.Relationship: [ObjectKey: [ObjectKey]]] = [:]
  /// Keeps the memory of the rows alive.
  private var batches: [RowBatch] = []

  /// Prepares to read rows along the relationships of a query.
  ///
  /// - Parameters:
  ///   - reader: Reads rows and destinations.
  ///   - model: The store's model.
  ///   - relationshipPaths: The relationships that the query follows.
  public init(_ reader: any RelatedRowReader, _ model: ManagedObjectModel, _ relationshipPaths: [RelationshipPath]) {
    self.reader = reader
    self.model = model
    self.relationshipPaths = relationshipPaths
    rows = Array(repeating: [:], count: model.entities.count)
  }

  /// The row with a key; nil if there is none, or it wasn't fetched.
  public func row(entity: EntityIndex, key: ObjectKey) -> RowPointer? { rows[entity][key] }

  /// The destinations of a row; empty if they weren't fetched.
  public func targets(of row: RowPointer, _ relationship: ManagedObjectModel.Relationship) -> [ObjectKey] {
    links[relationship]?[row.key] ?? []
  }

  /// The destinations; nil when they weren't fetched.
  package func knownTargets(of key: ObjectKey, _ relationship: ManagedObjectModel.Relationship) -> [ObjectKey]? {
    links[relationship]?[key]
  }

  /// Fetches the rows that other rows reference along the query's relationships. Keeps them as long as this object exists.
  ///
  /// - Throws: The errors of the reader; ``StoreError`` with code `damaged` if it delivers rows with another layout.
  public func prepare(_ pointers: [RowPointer]) throws {
    for path in relationshipPaths {
      var current = pointers
      for relationship in path.relationships { current = try follow(relationship, from: current) }
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
    try reader.rows(FaultRequest(entity: entity, keys: keys), into: Keeper(self, entity))
  }

  /// Keeps the rows of a request.
  private final class Keeper: RowSink {
    private let rows: RelatedRows
    private let entity: EntityIndex
    init(_ rows: RelatedRows, _ entity: EntityIndex) { (self.rows, self.entity) = (rows, entity) }

    func take(_ batch: RowBatch, _ selection: RowSelection) throws -> SinkDemand {
      try batch.checkLayout(of: entity, in: rows.model)
      rows.batches.append(batch)
      selection.forEach(in: batch) { rows.rows[entity][batch.pointer($0).key] = batch.pointer($0) }
      return .more
    }
  }
}
