import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Passes the rows and links of a file to the loader of a new model as they are read, so that no tables of the former model are needed.
///
/// Only for a mapping that ``MappingModel/isRowByRow``. Contradictions in the file show in the new tables, where their reason is less clear. So
/// after a failure, ``TableMigration`` is tried.
final class StreamedMigration: LoaderReceiver {
  private let mapping: MappingModel
  private let loader: TableLoader
  private let header: (StoreFileHeader) -> StoreFileHeader
  private var rows: [(RowMigration, RowBatchBuilder)?] = []
  /// The new relationships that have the links of a former one.
  private var relationships: [RelationshipPlace: [ManagedObjectModel.Relationship]] = [:]
  /// The header and the schema of the file.
  private(set) var former: (header: StoreFileHeader, schema: TableSchema)?
  /// The largest key in each table of the file.
  private(set) var largestKeys: [ObjectKey] = []
  /// The external files that the file's rows name.
  private(set) var externalIDs: Set<UUID> = []

  private struct RelationshipPlace: Hashable {
    var entity: EntityIndex
    var relationship: RelationshipIndex
  }

  /// - Parameters:
  ///   - loader: A loader of the new model.
  ///   - header: Returns the new file's header for that of the file.
  init(_ mapping: MappingModel, to loader: TableLoader, header: @escaping (StoreFileHeader) -> StoreFileHeader) {
    (self.mapping, self.loader, self.header) = (mapping, loader, header)
    for new in mapping.destination.entities.flatMap(\.ownRelationships) {
      guard let old = mapping.link(new).flatMap({ mapping.forward($0) }) else { continue }
      relationships[RelationshipPlace(entity: old.entityIndex, relationship: old.index), default: []].append(new)
    }
  }

  func begin(_ header: StoreFileHeader, _ schema: TableSchema) throws {
    former = (header, schema)
    largestKeys = Array(repeating: 0, count: schema.tableCount)
    let new = try loader.beginTables(self.header(header))
    rows = mapping.source.entities.map { entity in
      mapping.destination(of: entity.index).flatMap { RowMigration(mapping.mapping(of: $0), mapping, schema.identity, nil) }.map {
        ($0, RowBatchBuilder(layout: $0.new.layout, idPrefix: new.prefixes[$0.new.index]))
      }
    }
  }

  func take(_ batch: RowBatch, of entity: EntityIndex) throws {
    guard let former else { return }
    let table = former.schema.tableOfEntity[entity], external = mapping.source.entities[entity].externalSlots
    for index in 0..<batch.count {
      let row = batch.pointer(index)
      largestKeys[table] = max(largestKeys[table], row.key)
      for slot in external { if let id = row.externalID(slot) { externalIDs.insert(id) } }
      guard let (migration, builder) = rows[entity.rawValue] else { continue }
      migration.append(row, to: builder) { _, link in
        guard let slot = mapping.forward(link)?.slot, row.isPresent(slot) else { return nil }
        return row.key(slot)
      }
      if builder.isFull { try loader.take(builder.seal(), of: migration.new.index) }
    }
  }

  func take(links: [SaveRequest.Link], of relationship: ManagedObjectModel.Relationship) {
    for new in destinations(of: relationship) { loader.take(links: links, of: new) }
  }

  func take(order links: [SaveRequest.Link], keys: [Int64], of relationship: ManagedObjectModel.Relationship) {
    for new in destinations(of: relationship) { loader.take(order: links, keys: keys, of: new) }
  }

  func take(stated links: LinkDigest, of relationship: ManagedObjectModel.Relationship) {
    for new in destinations(of: relationship) { loader.take(stated: links, of: new) }
  }

  private func destinations(of relationship: ManagedObjectModel.Relationship) -> [ManagedObjectModel.Relationship] {
    relationships[RelationshipPlace(entity: relationship.entityIndex, relationship: relationship.index)] ?? []
  }

  /// Builds the new tables, for writing them.
  func finish() throws -> LoadedStore {
    for case let (migration, builder)? in rows where builder.count > 0 { try loader.take(builder.seal(), of: migration.new.index) }
    var loaded = try loader.finish()
    loaded.generation = loaded.generation.withoutUniqueIndexes()
    return loaded
  }
}

extension MappingModel {
  /// Whether each row and link of the destination follows from one row or link of the source.
  var isRowByRow: Bool {
    if looksForObjects { return false }
    return destination.entities.flatMap(\.ownRelationships).allSatisfy { new in
      guard let link = link(new) else { return true }
      if link.needsSingleDestination || link.needsSingleOwner || link.losesOwners || link.losesDestinations { return false }
      guard let old = forward(link), old.inverseIsToMany == new.inverseIsToMany else { return false }
      return old.isToMany == new.isToMany && old.isOrdered == new.isOrdered && old.storesLinks == new.storesLinks
        && old.hasInverse == new.hasInverse && old.isReflexive == new.isReflexive
    }
  }

  /// The relationship of the owner that has the links.
  fileprivate func forward(_ link: LinkMapping) -> ManagedObjectModel.Relationship? {
    link.isReversed ? source.inverse(of: relationship(link)) : relationship(link)
  }
}
