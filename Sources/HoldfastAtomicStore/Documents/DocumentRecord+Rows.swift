import HoldfastStore

extension DocumentRecord {
  /// All objects of a generation.
  ///
  /// - Parameter path: The path of the file, for errors.
  /// - Throws: `unstorableValue` if a cell can't be read as a value, such as an object ID whose store has too many names of entities. It
  ///   would be lost.
  static func all(_ generation: TableGeneration, _ path: String) throws -> [DocumentRecord] {
    var records: [DocumentRecord] = []
    var links: [ManagedObjectModel.Relationship: WrittenLinks] = [:]
    for entity in generation.schema.model.entities where !entity.isAbstract {
      let written = entity.toManyRelationships.filter(isWritten)
      for relationship in written where links[relationship] == nil { links[relationship] = WrittenLinks(generation, relationship) }
      try generation.forEachRow(of: entity.index) { row in
        var record = DocumentRecord(entity: entity.name, key: row.key, version: row.version)
        for (slot, property) in zip(entity.slotIndexes, entity.slots) where row.isPresent(slot) {
          let value = row.value(slot, property.columnType)
          if value == .null {
            throw StoreError(
              .unstorableValue, operation: "write the store", path: path,
              reason: "\(entity.name).\(property.name) of the object with key \(row.key) can't be written. If it is an object ID, its "
                + "store has too many names of entities. Set it to another value.")
          }
          record.values[property.name] = value
        }
        for relationship in written { record.take(relationship, links[relationship]) }
        records.append(record)
      }
    }
    return records
  }

  /// Whether records contain the destinations of a relationship.
  ///
  /// They do if it is to-many, and either ordered or stored as links instead of in rows.
  static func isWritten(_ relationship: ManagedObjectModel.Relationship) -> Bool {
    relationship.isToMany && (relationship.isOrdered || relationship.storesLinks)
  }

  private mutating func take(_ relationship: ManagedObjectModel.Relationship, _ links: WrittenLinks?) {
    guard let links else { return }
    if !relationship.isOrdered { return links.withTargets(of: key) { if !$0.isEmpty { targets[relationship.name] = Array($0) } } }
    let ordered = links.ordered(of: key)
    if ordered.isEmpty { return }
    targets[relationship.name] = ordered.map(\.target)
    let isUsual = ordered.indices.allSatisfy { ordered[$0].order == UsualOrder.key($0) }
    if !isUsual { orderKeys[relationship.name] = ordered.map(\.order) }
  }
}

/// Passes the records of a document to a loader.
final class DocumentLoading {
  private let loader: TableLoader
  private let identity: StoreIdentity
  private let path: String
  private var builders: [RowBatchBuilder?]
  /// The links of relationships that aren't stored in rows.
  private var links: [ManagedObjectModel.Relationship: [SaveRequest.Link]] = [:]
  /// The links and order keys of ordered relationships.
  private var orders: [ManagedObjectModel.Relationship: (links: [SaveRequest.Link], keys: [Int64])] = [:]

  init(_ loader: TableLoader, _ identity: StoreIdentity, _ path: String) {
    self.loader = loader
    self.identity = identity
    self.path = path
    builders = loader.model.entities.map { _ in nil }
  }

  func load(_ records: [DocumentRecord]) throws {
    for record in records { try take(record) }
    for (entity, builder) in builders.enumerated() {
      if let builder, builder.count > 0 { try loader.take(builder.seal(), of: EntityIndex(entity)) }
    }
    for (relationship, links) in links { loader.take(links: links, of: relationship) }
    for (relationship, order) in orders { loader.take(order: order.links, keys: order.keys, of: relationship) }
  }

  private func take(_ record: DocumentRecord) throws {
    guard let entity = loader.model.entity(named: record.entity), !entity.isAbstract else {
      throw damaged("The entity \(StoreError.quotedName(record.entity)) isn't in the model, or is abstract.", record)
    }
    guard TableLoader.keys.contains(record.key), record.version >= 0 else { throw damaged("A record's key or version is invalid.", record) }
    var values = [StoreValue](repeating: .null, count: entity.slots.count)
    var known = 0
    for (slot, property) in entity.slots.enumerated() {
      guard let value = record.values[property.name], value != .null else { continue }
      values[slot] = try self.value(value, property, record)
      known += 1
    }
    for relationship in entity.toManyRelationships where DocumentRecord.isWritten(relationship) {
      if try take(relationship, record) { known += 1 }
    }
    let given = record.values.count { $0.value != .null } + record.targets.count
    guard known == given, record.orderKeys.keys.allSatisfy({ record.hasTargets($0) }) else {
      throw damaged("A record has a field that isn't in the model.", record)
    }
    let builder = builders[entity.index] ?? RowBatchBuilder(layout: entity.layout, idPrefix: identity.prefix(for: entity))
    builders[entity.index] = builder
    do { try builder.append(key: record.key, version: record.version, values: values) } catch {
      throw damaged("A value has the wrong type.", record)
    }
    if builder.isFull { try loader.take(builder.seal(), of: entity.index) }
  }

  private func value(_ value: StoreValue, _ property: ManagedObjectModel.Slot, _ record: DocumentRecord) throws -> StoreValue {
    let converted: StoreValue? =
      switch (property, value) {
      case (.attribute(let attribute), .string(let text)): StoreValue(documentText: text, attribute.type)
      case (.toOne, .string(let text)): Int64(text).map { .int64($0) }
      default: value
      }
    guard let converted, isValid(converted, property) else { throw damaged("The value of \(property.name) is invalid.", record) }
    return converted
  }

  /// Whether a value is in the range that its property has in every file. Its type is checked later.
  private func isValid(_ value: StoreValue, _ property: ManagedObjectModel.Slot) -> Bool {
    switch (property, value) {
    // A context has negative keys for objects that it hasn't saved.
    case (.toOne, .int64(let key)): TableLoader.keys.contains(ObjectKey(key))
    case (.toOne, .objectID(let id)): TableLoader.keys.contains(id.key)
    case (.attribute, .externalData): property.allowsExternalData
    default: true
    }
  }

  /// Adds the destinations of a relationship. Returns whether the record has any.
  private func take(_ relationship: ManagedObjectModel.Relationship, _ record: DocumentRecord) throws -> Bool {
    var targets = record.targets[relationship.name]
    if targets == nil, case .string(let text)? = record.values[relationship.name] {
      targets = DocumentRecord.numbers(text)?.map { ObjectKey($0) }
      if targets == nil { throw damaged("The destinations of \(relationship.name) aren't keys.", record) }
    }
    guard let targets else { return false }
    if !targets.allSatisfy(TableLoader.keys.contains) { throw damaged("The destinations of \(relationship.name) aren't keys.", record) }
    let found = targets.map { SaveRequest.Link(source: record.key, target: $0) }
    if relationship.storesLinks { links[relationship, default: []] += found }
    if relationship.isOrdered {
      let keys = record.orderKeys[relationship.name] ?? targets.indices.map(UsualOrder.key)
      guard keys.count == targets.count else {
        throw damaged("\(relationship.name) has \(targets.count) destinations but \(keys.count) order keys.", record)
      }
      orders[relationship, default: ([], [])].links += found
      orders[relationship, default: ([], [])].keys += keys
    }
    return true
  }

  private func damaged(_ reason: String, _ record: DocumentRecord) -> StoreError {
    let name = loader.model.entity(named: record.entity)?.name ?? "unknown entity"
    return StoreError(
      .damaged, operation: "open the store", path: path,
      reason: "\(reason) Location: \(name), key \(record.key). Restore the file from a backup.")
  }
}
