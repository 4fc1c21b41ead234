import HoldfastStore

/// The statements that copy the links of a many-to-many relationship into the join table of a new model.
struct LinkCopy {
  let relationship: ManagedObjectModel.Relationship
  let mapping: MappingModel
  let former: FormerColumns
  let new: StoreSchema
  /// The links of the former model; nil if there are none.
  let link: LinkMapping?

  init(_ relationship: ManagedObjectModel.Relationship, _ mapping: MappingModel, _ former: FormerColumns, _ new: StoreSchema) {
    (self.relationship, self.mapping, self.former, self.new) = (relationship, mapping, former, new)
    link = mapping.link(relationship)
  }

  private var inverse: ManagedObjectModel.Relationship? {
    relationship.isReflexive ? nil : mapping.destination.inverse(of: relationship)
  }

  /// Whether the join table is already as the new model needs it.
  var isIdentity: Bool {
    guard let link, !link.losesOwners, !link.losesDestinations else { return false }
    let relationship = mapping.relationship(link)
    guard relationship.isManyToMany, relationship.hasInverse else { return false }
    let side = former.schema.link(relationship), mirrored = link.isReversed ? side.inverse : side
    guard mirrored == new.link(self.relationship) else { return false }
    let back = relationship.isReflexive ? nil : mapping.source.inverse(of: relationship)
    let orders = [former.schema.orderColumn(relationship), back.flatMap { former.schema.orderColumn($0) }]
    return (link.isReversed ? orders.reversed() : orders) == [new.orderColumn(self.relationship), inverse.flatMap { new.orderColumn($0) }]
  }

  /// The statement that fills a table; nil if the relationship begins without links.
  func statement(to table: String) -> String? {
    guard let link else { return nil }
    let side = new.link(relationship)
    let orders = [new.orderColumn(relationship), inverse.flatMap { new.orderColumn($0) }]
    let names = ([side.near, side.far] + orders.compactMap { $0 }).map(SQLName.quoted).joined(separator: ", ")
    let places = [orders[0] == nil ? nil : "oa", orders[1] == nil ? nil : "ob"].compactMap { $0 }
    return "INSERT OR IGNORE INTO \(table) (\(names)) SELECT \((["a", "b"] + places).joined(separator: ", ")) FROM (\(former.pairs(link)))"
  }
}
