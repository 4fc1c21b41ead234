import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Builds tables from the contents of a damaged file: removes what contradicts itself, and references to objects that are lost.
struct TableRecovery {
  private let schema: TableSchema
  private let header: StoreFileHeader
  private var rows: [[RowBatch]]
  private var request: SaveRequest
  private var report: RepairReport
  /// Where the row of each key is, by table.
  private var places: [[ObjectKey: Place]]
  /// The external files that are missing or damaged.
  private let lostFiles: Set<UUID>
  /// Whether something is lost, so that references to missing objects may be due to it.
  private let isDamaged: Bool
  private var model: ManagedObjectModel { schema.model }

  private struct Place {
    var entity: EntityIndex
    var batch: Int32
    var row: Int32
  }

  init(_ contents: TableLoader.Contents, lostFiles: Set<UUID>, _ report: RepairReport) {
    self.lostFiles = lostFiles
    (header, schema, rows, request) = (contents.header, contents.schema, contents.rows, contents.request)
    self.report = report
    isDamaged = !report.isComplete
    places = Array(repeating: [:], count: schema.tableCount)
  }

  mutating func run() throws -> (store: LoadedStore, report: RepairReport) {
    removeRepeatedKeys()
    for entity in model.entityIndexes { rows[entity] = cleaned(entity) }
    request.links = request.links.map { cleaned($0) }
    let generation = try generation()
    for entity in model.entities where !entity.isAbstract {
      report.objectCounts[entity.name] = rows[entity.index].reduce(0) { $0 + $1.count }
    }
    let nextKeys = header.nextKeys(schema, largestKeys: generation.tables.map(\.largestKey))
    return (LoadedStore(header: header, generation: generation, nextKeys: nextKeys), report)
  }

  // MARK: Rows

  private func table(_ entity: EntityIndex) -> Int { schema.keySpace == .family ? schema.tableOfEntity[entity] : 0 }

  /// Removes rows whose keys aren't keys, and all rows with a key that several rows have: at least one of them is wrong.
  private mutating func removeRepeatedKeys() {
    var seen: [Set<ObjectKey>] = Array(repeating: [], count: schema.tableCount), repeated = seen
    for entity in model.entityIndexes {
      for batch in rows[entity] {
        for index in 0..<batch.count where !seen[table(entity)].insert(batch.pointer(index).key).inserted {
          repeated[table(entity)].insert(batch.pointer(index).key)
        }
      }
    }
    for entity in model.entityIndexes {
      var kept: [RowBatch] = []
      for batch in rows[entity] {
        let builder = RowBatchBuilder(entity: model.entities[entity], identity: schema.identity)
        for index in 0..<batch.count {
          let row = batch.pointer(index)
          guard TableLoader.keys.contains(row.key), !repeated[table(entity)].contains(row.key) else {
            report.unreadableCount += 1
            continue
          }
          places[table(entity)][row.key] = Place(entity: entity, batch: Int32(kept.count), row: Int32(builder.count))
          builder.append(row)
        }
        kept.append(builder.seal())
      }
      rows[entity] = kept
    }
  }

  private func place(_ key: ObjectKey, _ entity: EntityIndex) -> Place? {
    guard let place = places[table(entity)][key], model.entities[entity].familyIndexes.contains(place.entity) else { return nil }
    return place
  }

  /// The rows of an entity without references to missing objects, those that the other end of a pair contradicts, and names of lost files.
  private mutating func cleaned(_ entity: EntityIndex) -> [RowBatch] {
    let relationships = model.entities[entity].relationships.filter { !$0.isToMany }
    let files = lostFiles.isEmpty ? [] : model.entities[entity].externalSlots
    if relationships.isEmpty && files.isEmpty { return rows[entity] }
    return rows[entity].map { batch in
      let builder = RowBatchBuilder(entity: model.entities[entity], identity: schema.identity)
      for index in 0..<batch.count {
        let row = batch.pointer(index)
        builder.append(row)
        for relationship in relationships where row.isPresent(relationship.slot) && !isSound(relationship, row) {
          builder.removeInLastRow(relationship.slot)
          count(relationship)
        }
        for slot in files where row.externalID(slot).map(lostFiles.contains) == true {
          builder.removeInLastRow(slot)
          report.lostValueCounts["\(model.entities[entity].name).\(model.entities[entity].slots[slot].name)", default: 0] += 1
        }
      }
      return builder.seal()
    }
  }

  private func isSound(_ relationship: ManagedObjectModel.Relationship, _ row: RowPointer) -> Bool {
    guard let place = place(row.key(relationship.slot), relationship.destinationIndex) else { return !removesDangling(relationship) }
    guard let inverse = model.inverse(of: relationship), !inverse.isToMany else { return true }
    let other = rows[place.entity][Int(place.batch)].pointer(Int(place.row))
    return other.isPresent(inverse.slot) && other.key(inverse.slot) == row.key
  }

  /// Whether references to missing objects are removed. A deletion may leave some, without an inverse or by its delete rule.
  private func removesDangling(_ relationship: ManagedObjectModel.Relationship) -> Bool {
    if let inverse = model.inverse(of: relationship), inverse.deleteRule != .noAction { return true }
    return isDamaged
  }

  private mutating func count(_ relationship: ManagedObjectModel.Relationship) {
    report.removedReferenceCounts["\(model.entities[relationship.entityIndex].name).\(relationship.name)", default: 0] += 1
  }

  // MARK: Links

  private mutating func cleaned(_ changes: SaveRequest.LinkChanges) -> SaveRequest.LinkChanges {
    var changes = changes
    let relationship = model.entities[changes.entity].relationships[changes.relationship]
    var links = changes.added.filter { link in
      guard removesDangling(relationship) else { return true }
      let isKept = place(link.source, relationship.entityIndex) != nil && place(link.target, relationship.destinationIndex) != nil
      if !isKept { count(relationship) }
      return isKept
    }
    // Only the row of one end may be left.
    if relationship.isReflexive { links += links.map { SaveRequest.Link(source: $0.target, target: $0.source) } }
    changes.added = Set(links).sorted()
    return changes
  }

  // MARK: Tables

  /// The tables. Of rows with the same unique values, the first ones stay.
  private mutating func generation() throws -> TableGeneration {
    while true {
      var request = request
      request.entities = model.entityIndexes.filter { !rows[$0].isEmpty }.map { entity in
        var changes = SaveRequest.EntityChanges(entity: entity)
        changes.inserted = rows[entity].filter { $0.count > 0 }
        return changes
      }
      do { return try TableSave.next(request, after: TableGeneration(empty: schema)) } catch let error as StoreError
        where error.code == .constraintConflict && !error.constraintConflicts.isEmpty
      { remove(Set(error.constraintConflicts.map(\.objectID))) }
    }
  }

  private mutating func remove(_ ids: Set<ManagedObjectID>) {
    for entity in model.entityIndexes {
      rows[entity] = rows[entity].map { batch in
        let builder = RowBatchBuilder(entity: model.entities[entity], identity: schema.identity)
        for index in 0..<batch.count {
          let row = batch.pointer(index)
          if ids.contains(schema.prefixes[entity].withKey(row.key)) {
            places[table(entity)][row.key] = nil
            report.unreadableCount += 1
          } else {
            places[table(entity)][row.key]?.row = Int32(builder.count)
            builder.append(row)
          }
        }
        return builder.seal()
      }
    }
    for entity in model.entityIndexes { rows[entity] = cleaned(entity) }
    request.links = request.links.map { cleaned($0) }
  }
}
