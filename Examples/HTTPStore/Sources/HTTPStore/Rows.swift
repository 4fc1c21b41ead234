import Foundation
import HoldfastStore
import ServiceAPI

// How entities, relationships and values are named in the service. The entities of one family share a table.

extension ManagedObjectModel {
  func table(of entity: Entity) -> String { entities[entity.rootIndex].name }

  /// The objects of an entity and its subentities.
  func selection(of entity: Entity) -> Selection {
    Selection(table: table(of: entity), types: Set(entity.concreteIndexes.map { entities[$0].name }))
  }

  /// The name of the links of a relationship that stores links.
  func linkName(_ relationship: Relationship) -> String { "\(entities[relationship.entityIndex].name).\(relationship.name)" }

  /// Where the service finds the destinations of a to-many relationship.
  func path(of relationship: Relationship) -> LinkQuery.Path {
    let destination = entities[relationship.destinationIndex], inverse = inverse(of: relationship)
    if relationship.storesLinks { return .links(relationship: linkName(relationship), isInverse: false, table: table(of: destination)) }
    guard let inverse else { preconditionFailure("A relationship without inverse stores its links.") }
    if inverse.storesLinks { return .links(relationship: linkName(inverse), isInverse: true, table: table(of: destination)) }
    return .rows(in: selection(of: destination), field: inverse.name)
  }
}

extension FieldValue {
  /// JSON has no types for decimals, bytes, UUIDs and IDs of objects, so they are texts. References to objects are their keys.
  init(_ value: StoreValue) {
    self =
      switch value {
      case .null: .null
      case .bool(let value): .boolean(value)
      case .int16(let value): .integer(Int64(value))
      case .int32(let value): .integer(Int64(value))
      case .int64(let value): .integer(value)
      case .float(let value): .double(Double(value))
      case .double(let value), .date(let value): .double(value)
      case .decimal(let value): .text(value.description)
      case .string(let value), .uri(let value): .text(value)
      case .uuid(let value), .externalData(let value): .text(value.uuidString)
      case .data(let value): .text(value.base64EncodedString())
      case .objectID(let id): .text(id.uriRepresentation)
      }
  }

  /// The value of an attribute or a reference; nil if it doesn't fit.
  func value(of column: ColumnType) -> StoreValue? {
    switch (self, column) {
    case (.null, _): return .null
    case (.integer(let key), .toOne): return key > 0 ? .int64(key) : nil
    case (.boolean(let value), .attribute(.boolean)): return .bool(value)
    case (.integer(let value), .attribute(let type)): return StoreValue.int64(value).converted(to: type)
    case (.double(let value), .attribute(.date)): return .date(value)
    case (.double(let value), .attribute(let type)): return StoreValue.double(value).converted(to: type)
    case (.text(let text), .attribute(let type)): return FieldValue.value(of: type, text)
    default: return nil
    }
  }

  private static func value(of type: AttributeType, _ text: String) -> StoreValue? {
    switch type {
    case .string: .string(text)
    case .uri: .uri(text)
    case .uuid: UUID(uuidString: text).map { .uuid($0) }
    case .binaryData, .transformable: Data(base64Encoded: text).map { .data($0) }
    case .decimal: (text == Decimal.nan.description ? .nan : Decimal(string: text)).map { .decimal($0) }
    case .objectID: ManagedObjectID(uriRepresentation: text).map { .objectID($0) }
    default: nil
    }
  }
}

/// Makes rows and answers of what the service sent.
struct RowDelivery {
  private let session: HTTPStore.Session
  private let keysOnly: Bool

  init(_ session: HTTPStore.Session, keysOnly: Bool = false) { (self.session, self.keysOnly) = (session, keysOnly) }

  /// Delivers rows in their order. A batch contains rows of one entity.
  func deliver(_ rows: [Row], _ options: RequestOptions, to sink: any RowSink) throws {
    var rest = rows[...]
    while let first = rest.first {
      let entity = try entity(first.type), builder = builder(entity)
      repeat {
        let row = rest.removeFirst(), values = try values(row, entity)
        try builder.append(key: ObjectKey(row.key), version: RowVersion(row.etag), values: keysOnly ? [] : values)
      } while rest.first?.type == first.type && !builder.isFull
      try options.check("fetch rows")
      if try sink.take(builder.seal(), .all) == .enough { return }
    }
  }

  private func builder(_ entity: ManagedObjectModel.Entity) -> RowBatchBuilder {
    RowBatchBuilder(layout: keysOnly ? .keysOnly : entity.layout, idPrefix: session.identity.prefix(for: entity))
  }

  private func entity(_ type: String) throws -> ManagedObjectModel.Entity {
    if let entity = session.model.entity(named: type) { return entity }
    throw StoreError(.damaged, operation: "read rows", reason: "The service sent a row of \(type), which the model doesn't contain.")
  }

  private func values(_ row: Row, _ entity: ManagedObjectModel.Entity) throws -> [StoreValue] {
    guard row.key > 0, row.etag >= 0 else {
      throw StoreError(.damaged, operation: "read rows", reason: "The service sent a row of \(row.type) with an invalid key or entity tag.")
    }
    return try entity.slots.map { slot in
      if let value = (row.fields[slot.name] ?? .null).value(of: slot.columnType) { return value }
      throw StoreError(
        .wrongType, operation: "read rows", reason: "\(slot.name) of the object of \(row.type) with the key \(row.key) has another type.")
    }
  }

  /// The conflict of a row, with the row as it is now.
  func conflict(_ conflict: Conflict) throws -> SaveConflict {
    let id = conflict.condition.row, entity = try entity(conflict.current?.type ?? id.table), builder = builder(entity)
    if let row = conflict.current {
      try builder.append(key: ObjectKey(row.key), version: RowVersion(row.etag), values: values(row, entity))
    }
    return SaveConflict(
      objectID: session.identity.objectID(entity: entity, key: ObjectKey(id.key)), expectedVersion: RowVersion(conflict.condition.ifMatch),
      persisted: conflict.current == nil ? nil : builder.seal()[0])
  }

  func constraintConflict(_ duplicate: Duplicate) throws -> ConstraintConflict {
    func id(_ row: Row) throws -> ManagedObjectID { session.identity.objectID(entity: try entity(row.type), key: ObjectKey(row.key)) }
    return ConstraintConflict(objectID: try id(duplicate.row), existing: try id(duplicate.existing), constraint: duplicate.fields)
  }

  func relationshipAnswer(
    _ sources: [ObjectKey], _ relationship: ManagedObjectModel.Relationship, _ rows: [LinkedRow]
  ) throws -> RelationshipAnswer {
    let bySource = Dictionary(grouping: rows, by: \.source), linked = sources.map { bySource[$0.rawValue] ?? [] },
      flat = linked.flatMap { $0 }
    var offsets: [Int32] = [0]
    for rows in linked { offsets.append(offsets[offsets.count - 1] + Int32(rows.count)) }
    let entities = try flat.map { try $0.type.map { try entity($0).index } ?? relationship.destinationIndex }
    return RelationshipAnswer(
      offsets: offsets, targets: flat.map { ObjectKey($0.key) }, entities: entities,
      orderKeys: relationship.isOrdered ? flat.map { $0.order ?? .max } : nil)
  }
}
