public import HoldfastStore

/// An object of the former version of a model, during a migration. It can be read, and not changed.
///
/// Each destination that is read sends a request to the store. Reading values sends none, except for those in external files.
public struct FormerObject {
  let reader: GraphReader
  let entity: ManagedObjectModel.Entity
  let row: RowView

  /// The name of the object's entity.
  public var entityName: String { entity.name }
  /// The object's key, which the migrated object has as well.
  public var key: ObjectKey { row.key }

  /// The value of an attribute by its name, or by its path for an element of a composite; null if it has none. Traps if the entity has no such
  /// attribute.
  ///
  /// If a value in an external file can't be read, the subscript returns null, and the stage throws the reason: nothing is changed then.
  /// ``value(_:)`` throws it at once.
  public subscript(name: String) -> StoreValue {
    do { return try value(name) } catch {
      reader.unread = reader.unread ?? error
      return .null
    }
  }

  /// The value of an attribute, as ``subscript(_:)`` returns it.
  ///
  /// - Throws: ``/HoldfastStore/StoreError`` if its external file can't be read.
  public func value(_ name: String) throws -> StoreValue {
    guard let slot = entity.slot(named: name), entity.relationship(inSlot: slot) == nil else {
      preconditionFailure("\(entity.name) of the former model has no attribute \(name).")
    }
    let value = row.pointer.value(slot, entity.layout.columns[slot])
    guard case .externalData = value else { return value }
    return try reader.bytes(row.pointer, slot, of: entity).map { .data($0) } ?? .null
  }

  /// The destination of a to-one relationship; nil if there is none. Traps if the entity has no such relationship.
  ///
  /// - Throws: ``/HoldfastStore/StoreError`` if the store can't be read.
  public func object(_ name: String) throws -> FormerObject? {
    let relationship = relationship(name, isToMany: false)
    guard row.pointer.isPresent(relationship.slot) else { return nil }
    return try reader.objects([ObjectKey(row.pointer.integer(relationship.slot))], of: relationship.destinationIndex).first
  }

  /// The destinations of a to-many relationship, in their order if it is ordered. Traps if the entity has no such relationship.
  ///
  /// - Throws: ``/HoldfastStore/StoreError`` if the store can't be read.
  public func objects(_ name: String) throws -> [FormerObject] {
    let relationship = relationship(name, isToMany: true)
    return try reader.objects(try reader.targets(of: row.key, relationship), of: relationship.destinationIndex)
  }

  private func relationship(_ name: String, isToMany: Bool) -> ManagedObjectModel.Relationship {
    guard let relationship = entity.relationship(named: name), relationship.isToMany == isToMany else {
      preconditionFailure("\(entity.name) of the former model has no \(isToMany ? "to-many" : "to-one") relationship \(name).")
    }
    return relationship
  }
}

extension GraphReader {
  /// Objects by their keys, in the same order. Missing ones are left out.
  func objects(_ keys: [ObjectKey], of entity: EntityIndex) throws -> [FormerObject] {
    var rows: [ObjectKey: FormerObject] = [:]
    try forEachRow(keys, of: entity) { entity, row in rows[row.key] = FormerObject(reader: self, entity: entity, row: row) }
    return keys.compactMap { rows[$0] }
  }
}
