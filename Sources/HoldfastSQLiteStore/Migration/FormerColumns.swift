import HoldfastStore

/// Where the values and links of the former model are in a file.
struct FormerColumns {
  let mapping: MappingModel
  let schema: StoreSchema

  /// Columns of an object's own row: the key of the object at the other end of a link, and the place in that object's order.
  struct Local: Hashable {
    var key: String
    var entity: String?
    var order: String?
  }

  /// The columns of a link in the row of one of its ends; nil if that row doesn't contain the link.
  func local(_ link: LinkMapping, rowIsDestination: Bool) -> Local? {
    let relationship = mapping.relationship(link)
    if rowIsDestination == link.isReversed {
      guard !relationship.isToMany else { return nil }
      return local(relationship)
    }
    if relationship.hasTargetsToItself { return Local(key: schema.link(relationship).near, order: schema.orderColumn(relationship)) }
    guard let inverse = mapping.source.inverse(of: relationship), !inverse.isToMany else { return nil }
    return local(inverse)
  }

  private func local(_ toOne: ManagedObjectModel.Relationship) -> Local {
    let table = schema.tables[toOne.entityIndex]
    return Local(key: table.columns[toOne.slot], entity: table.entityColumn(toOne.slot), order: schema.orderColumn(ofInverse: toOne))
  }

  /// A query for all links of a relationship between objects that remain: the keys of the owner and the destination as `a` and `b`, the
  /// destination's place in the owner's order as `oa`, and the owner's place in the destination's order as `ob`.
  ///
  /// Without an order, the place is the key. With one, it may be missing in another program's file.
  func pairs(_ link: LinkMapping) -> String {
    let relationship = mapping.relationship(link)
    let (a, b, oa, ob) = link.isReversed ? ("b", "a", "ob", "oa") : ("a", "b", "oa", "ob")
    func select(_ owner: String, _ destination: String, _ order: String?, _ inverseOrder: String?, _ table: String) -> String {
      let names = [owner, destination, order ?? destination, inverseOrder ?? owner].map(SQLName.quoted)
      let (near, far) = link.isReversed ? (names[1], names[0]) : (names[0], names[1])
      var sql =
        "SELECT \(names[0]) AS \(a), \(names[1]) AS \(b), \(names[2]) AS \(oa), \(names[3]) AS \(ob) "
        + "FROM \(SQLName.quoted(table)) AS l WHERE \(names[0]) IS NOT NULL AND \(names[1]) IS NOT NULL"
      if link.losesOwners { sql += " AND \(remains("l." + near, link.owners))" }
      if link.losesDestinations { sql += " AND \(remains("l." + far, link.destinations))" }
      return sql
    }
    if !relationship.isToMany {
      let local = local(relationship)
      return select("Z_PK", local.key, nil, local.order, schema.tables[relationship.entityIndex].name)
    }
    let side = schema.places(relationship)
    let inverse = relationship.isManyToMany && !relationship.isReflexive ? mapping.source.inverse(of: relationship) : nil
    return select(side.near, side.far, schema.orderColumn(relationship), inverse.flatMap { schema.orderColumn($0) }, side.table)
  }

  /// The condition that a key is that of an object of some entities of one family.
  func remains(_ key: String, _ entities: [EntityIndex]) -> String {
    guard let first = entities.first else { return "0" }
    let numbers = entities.map { String(schema.tables[$0].number) }.joined(separator: ", ")
    return "EXISTS (SELECT 1 FROM \(SQLName.quoted(schema.tables[first].name)) AS o WHERE o.Z_PK = \(key) AND o.Z_ENT IN (\(numbers)))"
  }
}
