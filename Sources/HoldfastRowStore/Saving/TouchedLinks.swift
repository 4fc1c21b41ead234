/// The links that a save reads and changes.
struct TouchedLinks<Source: RowSource> {
  /// The links of one relationship.
  private struct Table {
    /// The stored links that have been read, with their order keys.
    var stored: [SaveRequest.Link: Int64] = [:]
    var changes: [SaveRequest.Link: Change] = [:]
  }

  private enum Change {
    case saved(order: Int64)
    case removed

    /// The order key; nil for a removed link.
    var order: Int64? { if case .saved(let order) = self { order } else { nil } }
  }

  private let source: Source
  private let snapshot: Source.Snapshot
  private let model: ManagedObjectModel
  private let options: RequestOptions
  private var tables: [ManagedObjectModel.Relationship: Table] = [:]

  init(_ source: Source, _ snapshot: Source.Snapshot, _ model: ManagedObjectModel, _ options: RequestOptions) {
    self.source = source
    self.snapshot = snapshot
    self.model = model
    self.options = options
  }

  mutating func read(_ relationship: ManagedObjectModel.Relationship, sources: Set<ObjectKey>? = nil, targets: Set<ObjectKey>? = nil) throws
  {
    let query = LinkQuery(relationship: model.linkName(relationship), sources: sources, targets: targets, options: options)
    for link in try source.selectedLinks(query, in: snapshot) {
      tables[relationship, default: Table()].stored[SaveRequest.Link(source: link.source, target: link.target)] = link.order
    }
  }

  /// The links after the changes so far, as far as they have been read or changed.
  func current(_ relationship: ManagedObjectModel.Relationship) -> [SaveRequest.Link] {
    guard let table = tables[relationship] else { return [] }
    return table.stored.keys.filter { table.changes[$0] == nil } + table.changes.filter { $0.value.order != nil }.keys
  }

  /// Whether a link exists; nil if it has been neither read nor changed.
  func contains(_ link: SaveRequest.Link, _ relationship: ManagedObjectModel.Relationship) -> Bool? {
    if let change = tables[relationship]?.changes[link] { return change.order != nil }
    return tables[relationship]?.stored[link] == nil ? nil : true
  }

  /// Adds a link, or changes its order key. Without an order key, that of the existing link is kept.
  mutating func add(_ link: SaveRequest.Link, _ relationship: ManagedObjectModel.Relationship, order: Int64? = nil) {
    let known = tables[relationship]?.changes[link]?.order ?? tables[relationship]?.stored[link]
    tables[relationship, default: Table()].changes[link] = .saved(order: order ?? known ?? .max)
  }

  mutating func remove(_ link: SaveRequest.Link, _ relationship: ManagedObjectModel.Relationship) {
    tables[relationship, default: Table()].changes[link] = .removed
  }

  /// The links that the save removes.
  func removed(_ relationship: ManagedObjectModel.Relationship) -> [SaveRequest.Link] {
    (tables[relationship]?.changes ?? [:]).filter { $0.value.order == nil }.map(\.key)
  }

  /// The links to save and to delete, by relationship, source and target.
  func changes() -> (saved: [StoredLink], deleted: [StoredLink]) {
    var saved: [StoredLink] = [], deleted: [StoredLink] = []
    for (relationship, table) in tables.sorted(by: { ($0.key.entityIndex, $0.key.index) < ($1.key.entityIndex, $1.key.index) }) {
      let name = model.linkName(relationship)
      for (link, change) in table.changes.sorted(by: { $0.key < $1.key }) {
        switch change {
        case .saved(let order):
          saved.append(StoredLink(relationship: name, source: link.source, target: link.target, order: order))
        case .removed: deleted.append(StoredLink(relationship: name, source: link.source, target: link.target))
        }
      }
    }
    return (saved, deleted)
  }
}
