import HoldfastStore

/// The statements that copy the links of a many-to-many relationship into the join table of a new model.
struct LinkCopy {
  let relationship: ManagedObjectModel.Relationship
  let mapping: MappingModel
  let former: FormerColumns
  let new: StoreSchema
  /// The links of the former model, from the relationship's side. Usually one.
  let links: [LinkMapping]

  init(_ relationship: ManagedObjectModel.Relationship, _ mapping: MappingModel, _ former: FormerColumns, _ new: StoreSchema) {
    (self.relationship, self.mapping, self.former, self.new) = (relationship, mapping, former, new)
    let inverse = mapping.destination.inverse(of: relationship)
    let own = Self.links(relationship, mapping)
    links = own.isEmpty ? inverse.map { Self.links($0, mapping).map(\.reversed) } ?? [] : own
  }

  private static func links(_ relationship: ManagedObjectModel.Relationship, _ mapping: MappingModel) -> [LinkMapping] {
    var links: [LinkMapping] = []
    for index in mapping.destination.entities[relationship.entityIndex].familyIndexes {
      if let link = mapping.mapping(of: index).links[relationship.index.rawValue], !links.contains(link) { links.append(link) }
    }
    return links
  }

  private var source: ManagedObjectModel.Entity { mapping.destination.entities[relationship.entityIndex] }
  private var destination: ManagedObjectModel.Entity { mapping.destination.destination(of: relationship) }
  private var inverse: ManagedObjectModel.Relationship? {
    relationship.isReflexive ? nil : mapping.destination.inverse(of: relationship)
  }

  /// Whether the join table is already as the new model needs it.
  var isIdentity: Bool {
    guard links.count == 1, let link = links.first, !losesObjects(link) else { return false }
    let relationship = mapping.relationship(link)
    guard relationship.isManyToMany, relationship.hasInverse else { return false }
    let side = former.schema.link(relationship), mirrored = link.isReversed ? side.inverse : side
    guard mirrored == new.link(self.relationship) else { return false }
    let back = relationship.isReflexive ? nil : mapping.source.inverse(of: relationship)
    let orders = [former.schema.orderColumn(relationship), back.flatMap { former.schema.orderColumn($0) }]
    return (link.isReversed ? orders.reversed() : orders) == [new.orderColumn(self.relationship), inverse.flatMap { new.orderColumn($0) }]
  }

  private func losesObjects(_ link: LinkMapping) -> Bool {
    former.loses(link.owner(mapping), besides: source) || former.loses(link.target(mapping), besides: destination)
  }

  /// The statements that fill a table.
  ///
  /// - Parameter rows: The name of the table with the rows of an entity.
  func statements(to table: String, _ rows: (EntityIndex) -> String) -> [String] {
    let side = new.link(relationship)
    let orders = [new.orderColumn(relationship), inverse.flatMap { new.orderColumn($0) }]
    let names = ([side.near, side.far] + orders.compactMap { $0 }).map(SQLName.quoted).joined(separator: ", ")
    return links.map { link in
      // Without an order, that of the keys.
      let places = [orders[0] == nil ? nil : "IFNULL(oa, b)", orders[1] == nil ? nil : "IFNULL(ob, a)"].compactMap { $0 }
      var sql =
        "INSERT OR IGNORE INTO \(table) (\(names)) SELECT \((["a", "b"] + places).joined(separator: ", ")) FROM (\(former.pairs(link)))"
      if losesObjects(link) { sql += " WHERE \(exists("a", source, rows)) AND \(exists("b", destination, rows))" }
      return sql
    }
  }

  private func exists(_ key: String, _ entity: ManagedObjectModel.Entity, _ rows: (EntityIndex) -> String) -> String {
    let numbers = entity.concreteIndexes.map { String(new.tables[$0].number) }.joined(separator: ", ")
    return "EXISTS (SELECT 1 FROM \(rows(entity.index)) AS o WHERE o.Z_PK = \(key) AND o.Z_ENT IN (\(numbers)))"
  }
}
