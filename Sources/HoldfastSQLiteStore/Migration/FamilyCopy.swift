import HoldfastStore

/// The statement that copies the rows of a root entity and its subentities into the table of a new model.
struct FamilyCopy {
  let mapping: MappingModel
  let former: FormerColumns
  let new: StoreSchema
  let root: ManagedObjectModel.Entity
  /// The store whose file is migrated, and whether this framework created it.
  let store: (uuid: String, isOwn: Bool)

  /// The entities with objects that are copied.
  private(set) var entities: [EntityMapping] = []
  /// The columns of the new table, except for the key, entity and version, with the expression of each entity.
  private(set) var columns: [(name: String, type: String, values: [EntityIndex: String])] = []
  /// The fallback values, in the order of the parameters.
  private(set) var parameters: [(entity: EntityIndex, slot: SlotIndex)] = []
  /// The links that need a table of their own, because the row doesn't contain them.
  private(set) var helpers: [Helper] = []
  /// The relationships whose destination's entity is found after all tables have their rows.
  private(set) var unknownEntities: [ManagedObjectModel.Relationship] = []

  /// A table from rows to the objects at the other end of their links.
  struct Helper: Hashable {
    var name: String
    var link: LinkMapping
    /// Whether the row is the destination's.
    var rowIsDestination: Bool
    /// The property, for errors.
    var path: String
  }

  init(
    _ root: ManagedObjectModel.Entity, _ mapping: MappingModel, _ former: FormerColumns, _ new: StoreSchema,
    _ store: (uuid: String, isOwn: Bool)
  ) {
    (self.root, self.mapping, self.former, self.new, self.store) = (root, mapping, former, new, store)
    entities = root.concreteIndexes.map { mapping.mapping(of: $0) }.filter { $0.source != nil }
    for index in root.familyIndexes { for slot in new.ownSlots(mapping.destination.entities[index]) { addSlot(slot, of: index) } }
    for relationship in new.linksWithoutInverse(root) { addOwner(relationship) }
  }

  /// The declared type of keys, entities and places.
  private static let integer = "INTEGER"

  var formerTable: String? { mapping.sourceRoot(ofRoot: root.index).map { former.schema.tables[$0].name } }

  // MARK: Columns

  private mutating func addSlot(_ slot: SlotIndex, of index: EntityIndex) {
    let table = new.tables[index], kinds = entities.filter { mapping.destination.entities[index].familyIndexes.contains($0.destination) }
    guard let relationship = mapping.destination.entities[index].relationship(inSlot: slot) else {
      var values: [EntityIndex: String] = [:]
      for entity in kinds { values[entity.destination] = attribute(slot, entity) }
      return columns.append(
        (table.columns[slot], StoreSchema.declaration(mapping.destination.entities[index].slots[slot].columnType), values))
    }
    var keys: [EntityIndex: String] = [:], types: [EntityIndex: String] = [:], orders: [EntityIndex: String] = [:], isKnown = true
    let order = new.orderColumn(ofInverse: relationship)
    for entity in kinds {
      guard let link = entity.links[relationship.index.rawValue] else { continue }
      let path = "\(mapping.destination.entities[entity.destination].name).\(relationship.name)"
      let found = other(link, rowIsDestination: false, path)
      keys[entity.destination] = found.key
      types[entity.destination] = found.entity.map { renumbered($0, relationship.destinationIndex) }
      if found.entity == nil { isKnown = false }
      if order != nil { orders[entity.destination] = found.order ?? "CASE WHEN \(found.key) IS NOT NULL THEN Z_PK END" }
    }
    columns.append((table.columns[slot], Self.integer, keys))
    if let column = table.entityColumn(slot) {
      columns.append((column, Self.integer, isKnown ? types : [:]))
      if !isKnown { unknownEntities.append(relationship) }
    }
    if let order { columns.append((order, Self.integer, orders)) }
  }

  /// The column with the owner of a row in a to-many relationship without an inverse.
  private mutating func addOwner(_ relationship: ManagedObjectModel.Relationship) {
    var keys: [EntityIndex: String] = [:], orders: [EntityIndex: String] = [:]
    let owner = mapping.destination.entities[relationship.entityIndex], path = "\(owner.name).\(relationship.name)"
    if let link = mapping.link(relationship) {
      for entity in entities where entity.source.map(link.destinations.contains) ?? false {
        let found = other(link, rowIsDestination: true, path)
        keys[entity.destination] = found.key
        orders[entity.destination] = found.order ?? "CASE WHEN \(found.key) IS NOT NULL THEN Z_PK END"
      }
    }
    columns.append((new.link(relationship).near, Self.integer, keys))
    if let order = new.orderColumn(relationship) { columns.append((order, Self.integer, orders)) }
  }

  // MARK: Values

  private mutating func attribute(_ slot: SlotIndex, _ entity: EntityMapping) -> String {
    let value = entity.values[slot.rawValue], attribute = mapping.destination.entities[entity.destination].slots[slot]
    guard let source = value.source, let origin = entity.source else { return parameter(value.fallback, slot, entity) }
    var column = SQLName.quoted(former.schema.tables[origin].columns[source])
    if attribute.allowsExternalData && !mapping.source.entities[origin].slots[source].allowsExternalData {
      column = "CASE WHEN typeof(\(column)) = 'blob' THEN CAST(x'01' || \(column) AS BLOB) ELSE \(column) END"
    }
    if case .attribute(let attribute) = attribute, attribute.type == .objectID, mapping.changesObjectIDs { column = renamed(column) }
    return value.fallback == .null ? column : "IFNULL(\(column), \(parameter(value.fallback, slot, entity)))"
  }

  private mutating func parameter(_ value: StoreValue, _ slot: SlotIndex, _ entity: EntityMapping) -> String {
    if value == .null { return "NULL" }
    let column = mapping.destination.entities[entity.destination].layout.columns[slot]
    let known = parameters.firstIndex { parameter in
      let other = mapping.destination.entities[parameter.entity]
      return other.layout.columns[parameter.slot] == column
        && other.slots[parameter.slot].allowsExternalData
          == mapping.destination.entities[entity.destination].slots[slot].allowsExternalData
        && mapping.mapping(of: parameter.entity).values[parameter.slot.rawValue].fallback == value
    }
    if let known { return "?\(known + 1)" }
    parameters.append((entity.destination, slot))
    return "?\(parameters.count)"
  }

  /// The URIs of this store's objects with the new names of their entities. Those of removed objects become NULL.
  private func renamed(_ column: String) -> String {
    let cases = mapping.source.entities.map { entity in
      let prefix = "x-coredata://\(store.uuid)/\(entity.name)/"
      if mapping.dividesFamily(of: entity) { return "WHEN '\(prefix)' THEN \(uriOfFoundObject(column, prefix, entity))" }
      guard let new = newPrefix(entity.index) else { return "WHEN '\(prefix)' THEN NULL" }
      return "WHEN '\(prefix)' THEN '\(new)' || substr(\(column), \(prefix.utf8.count + 1))"
    }
    let name =
      "substr(\(column), 1, \("x-coredata://\(store.uuid)/".utf8.count) + instr(substr(\(column), "
      + "\("x-coredata://\(store.uuid)/".utf8.count + 1)), '/'))"
    return "CASE \(name) \(cases.joined(separator: " ")) ELSE \(column) END"
  }

  /// What the URIs of an entity's objects begin with in the new model; nil if the objects are removed.
  private func newPrefix(_ index: EntityIndex) -> String? {
    mapping.destination(of: index).map { "x-coredata://\(store.uuid)/\(mapping.destination.entities[$0].name)/" }
  }

  /// The URI of an object whose row shows its entity, because the former URI can name a superentity. NULL if none exists.
  private func uriOfFoundObject(_ column: String, _ prefix: String, _ entity: ManagedObjectModel.Entity) -> String {
    let names = entity.concreteIndexes.compactMap { index in
      newPrefix(index).map { "WHEN \(former.schema.tables[index].number) THEN '\($0)'" }
    }
    if names.isEmpty { return "NULL" }
    // The column is that of the row, also if the object's table has one of this name. Before the key, there is a "p".
    let reference = "substr(r.\(column), \(prefix.utf8.count + 1))", key = "CAST(substr(r.\(column), \(prefix.utf8.count + 2)) AS INTEGER)"
    return
      "(SELECT CASE o.Z_ENT \(names.joined(separator: " ")) END || \(reference) "
      + "FROM \(SQLName.quoted(former.schema.tables[entity.index].name)) AS o WHERE o.Z_PK = \(key))"
  }

  /// Expressions for the other end of a row's link.
  private mutating func other(_ link: LinkMapping, rowIsDestination: Bool, _ path: String) -> FormerColumns.Local {
    if let local = former.local(link, rowIsDestination: rowIsDestination) {
      let key = SQLName.quoted(local.key)
      let (loses, entities) = rowIsDestination ? (link.losesOwners, link.owners) : (link.losesDestinations, link.destinations)
      // The columns are those of the row, whatever the inner query is.
      func kept(_ column: String) -> String {
        loses ? "CASE WHEN \(former.remains("r." + key, entities)) THEN \(column) END" : column
      }
      return FormerColumns.Local(
        key: kept(key), entity: local.entity.map { kept(SQLName.quoted($0)) }, order: local.order.map { kept(SQLName.quoted($0)) })
    }
    var helper = Helper(name: "", link: link, rowIsDestination: rowIsDestination, path: path)
    if let known = helpers.first(where: { $0.link == link && $0.rowIsDestination == rowIsDestination }) {
      helper = known
    } else {
      helper.name = "Z_HOLDFAST_LINKS_\(root.index.rawValue)_\(helpers.count)"
      helpers.append(helper)
    }
    let isOrdered = rowIsDestination ? mapping.ordering(link) != nil : orderOfInverse(link)
    return FormerColumns.Local(
      key: "(SELECT other FROM \(helper.name) WHERE own = Z_PK)", entity: nil,
      order: isOrdered ? "(SELECT place FROM \(helper.name) WHERE own = Z_PK)" : nil)
  }

  /// Whether the owners of a destination are ordered.
  private func orderOfInverse(_ link: LinkMapping) -> Bool {
    let relationship = mapping.relationship(link)
    return (link.isReversed ? relationship : mapping.source.inverse(of: relationship))?.isOrdered ?? false
  }

  // MARK: Statements

  /// Translates the number of an entity that becomes one of a family of the destination.
  func renumbered(_ column: String, _ member: EntityIndex) -> String {
    let family = mapping.destination.entities[mapping.destination.entities[member].rootIndex].familyIndexes
    let changes = mapping.source.entityIndexes.compactMap { index -> (Int64, Int64)? in
      guard let destination = mapping.destination(of: index), family.contains(destination) else { return nil }
      let (old, new) = (former.schema.tables[index].number, new.tables[destination].number)
      return old == new ? nil : (old, new)
    }
    if changes.isEmpty { return column }
    return "CASE \(column) \(changes.map { "WHEN \($0.0) THEN \($0.1)" }.joined(separator: " ")) ELSE \(column) END"
  }

  /// The expression of a column: one per group of entities with the same.
  private func expression(_ values: [EntityIndex: String]) -> String {
    let kinds = Set(entities.map { values[$0.destination] ?? "NULL" })
    if kinds.count == 1, let only = kinds.first { return only }
    let others = kinds.subtracting(["NULL"])
    if others.count == 1, let only = others.first, isEmptyElsewhere(only, values) { return only }
    let cases = others.sorted().map { kind in
      let numbers = entities.filter { values[$0.destination] == kind }.compactMap(formerNumber)
      return "WHEN Z_ENT IN (\(numbers.joined(separator: ", "))) THEN \(kind)"
    }
    return cases.isEmpty ? "NULL" : "CASE \(cases.joined(separator: " ")) END"
  }

  /// Whether a column is one of the former table, without values in the rows of the other entities.
  private func isEmptyElsewhere(_ column: String, _ values: [EntityIndex: String]) -> Bool {
    guard formerNames.contains(where: { SQLName.quoted($0) == column }) else { return false }
    return !entities.contains { entity in
      guard values[entity.destination] != column, let source = entity.source else { return false }
      // Core Data's migrations leave default values in rows of all entities. They must not become values of an entity with the column.
      if !store.isOwn && new.tables[entity.destination].columns.contains(where: { SQLName.quoted($0) == column }) { return true }
      return formerNames(of: source).contains { SQLName.quoted($0) == column }
    }
  }

  private func formerNumber(_ entity: EntityMapping) -> String? { entity.source.map { String(former.schema.tables[$0].number) } }

  /// The statement that copies all rows to a table; nil if there are none.
  func statement(to table: String) -> String? {
    guard let formerTable, !entities.isEmpty else { return nil }
    let names = ["Z_PK", "Z_ENT", "Z_OPT"] + columns.map { SQLName.quoted($0.name) }
    let number = onlyNumber.map { String($0) } ?? renumbered("Z_ENT", root.index)
    let values = ["Z_PK", number, "Z_OPT"] + columns.map { expression($0.values) }
    let condition = copiesAllRows ? "" : " WHERE Z_ENT IN (\(entities.compactMap(formerNumber).joined(separator: ", ")))"
    return
      "INSERT INTO \(table) (\(names.joined(separator: ", "))) SELECT \(values.joined(separator: ", ")) FROM \(SQLName.quoted(formerTable)) AS r"
      + condition
  }

  /// The new number of the entity if the former table has rows of one entity only; nil otherwise.
  ///
  /// The former numbers in `Z_ENT` don't matter then: requests read all rows, so another program may have stored any.
  var onlyNumber: Int64? {
    guard entities.count == 1, let source = mapping.sourceRoot(ofRoot: root.index), !former.schema.tables[source].isShared else {
      return nil
    }
    return new.tables[entities[0].destination].number
  }

  /// Whether every row of the former table becomes a row of this one.
  private var copiesAllRows: Bool {
    guard let root = mapping.sourceRoot(ofRoot: root.index) else { return true }
    return mapping.source.entities[root].concreteIndexes.allSatisfy {
      mapping.destination(of: $0).map(self.root.familyIndexes.contains) ?? false
    }
  }

  /// The columns without values that the former table lacks, if it is otherwise as the new model needs it: none if it stays as it is. Nil if
  /// the rows have to be copied.
  var addedColumns: [(name: String, type: String)]? {
    guard let formerTable, formerTable == new.tables[root.index].name, copiesAllRows, helpers.isEmpty, unknownEntities.isEmpty,
      renumbered("Z_ENT", root.index) == "Z_ENT"
    else { return nil }
    let former = formerNames, added = columns.filter { !former.contains($0.name) }
    let isSame =
      columns.count - added.count == former.count
      && columns.allSatisfy { expression($0.values) == (former.contains($0.name) ? SQLName.quoted($0.name) : "NULL") }
    return isSame ? added.map { ($0.name, $0.type) } : nil
  }

  /// The columns of the former table that the former model uses.
  private var formerNames: Set<String> {
    guard let root = mapping.sourceRoot(ofRoot: root.index) else { return [] }
    return mapping.source.entities[root].familyIndexes.reduce(into: []) { $0.formUnion(formerNames(of: $1)) }
  }

  /// The columns of the former table that can have values in the rows of an entity.
  private func formerNames(of index: EntityIndex) -> Set<String> {
    let entity = mapping.source.entities[index], schema = former.schema, table = schema.tables[index]
    var names = Set(table.columns)
    names.formUnion(table.entityColumns.filter { !$0.isEmpty })
    for relationship in entity.relationships where !relationship.isToMany {
      if let order = schema.orderColumn(ofInverse: relationship) { names.insert(order) }
    }
    for relationship in entity.linksWithoutInverse {
      names.insert(schema.link(relationship).near)
      if let order = schema.orderColumn(relationship) { names.insert(order) }
    }
    return names
  }
}
