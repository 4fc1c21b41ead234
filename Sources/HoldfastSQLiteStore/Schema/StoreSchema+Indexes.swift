import HoldfastStore

extension StoreSchema {
  /// An index of a file. On disk: do not change.
  struct Index: Sendable {
    /// The purpose of an index. Names are assigned in this order, so an index added to a model doesn't take a constraint's name.
    enum Purpose: CaseIterable {
      case relationship, uniqueness, fetch
    }

    /// The table with which an index is created.
    enum Owner: Hashable {
      /// The table of the entity at an index in the model.
      case entity(EntityIndex)
      /// A join table.
      case linkTable(String)
    }

    let owner: Owner
    let purpose: Purpose
    /// The name. No other index or table of the file has it, ignoring case.
    var name: String
    let table: String
    /// The indexed columns, as in SQL: `ON ZENTRY (ZDATE COLLATE BINARY DESC)`.
    let definition: String
    /// The end of ``definition`` that restricts the rows; empty for all rows.
    let condition: String

    /// The statement that creates it.
    var sql: String { "CREATE \(purpose == .uniqueness ? "UNIQUE " : "")INDEX \(SQLName.quoted(name)) \(definition)" }

    init(_ owner: Owner, _ purpose: Purpose, name: String, table: String, columns: [String], condition: String = "") {
      self.owner = owner
      self.purpose = purpose
      self.name = name
      self.table = table
      self.condition = condition
      definition = "ON \(SQLName.quoted(table)) (\(columns.joined(separator: ", ")))\(condition)"
    }
  }

  /// The indexes of a new file, in order of creation. If the name of an index is already used, a number is added to it.
  var indexes: [Index] {
    let declared =
      model.entities.filter { $0.superentityIndex == nil }.flatMap { $0.familyIndexes.flatMap(declaredIndexes) } + namedLinks.map(linkIndex)
    var names = IndexNames(besides: tables.map(\.name) + namedLinks.map { link($0).table } + StoreSchema.systemTableNames)
    var named = declared
    for purpose in Index.Purpose.allCases {
      for place in named.indices where named[place].purpose == purpose { named[place].name = names.free(named[place].name) }
    }
    return named
  }

  /// The indexes of an entity's table: foreign keys, `Z_ENT` in a shared table, uniqueness constraints, and fetch indexes.
  private func declaredIndexes(_ index: EntityIndex) -> [Index] {
    if missingEntities.contains(index) { return [] }
    let entity = model.entities[index], table = tables[index]
    var columns = ownSlots(entity).filter { entity.relationship(inSlot: $0) != nil }.map { table.columns[$0] }
    if entity.superentityIndex == nil {
      columns += linksWithoutInverse(entity).map { link($0).near }
      if table.isShared { columns.append("Z_ENT") }
    }
    let relationships = columns.map {
      Index(.entity(index), .relationship, name: "\(table.name)_\($0)_INDEX", table: table.name, columns: [SQLName.quoted($0)])
    }
    return relationships + uniqueIndexes(entity) + fetchIndexes(entity)
  }

  /// The index for the opposite direction of a join table.
  private func linkIndex(_ relationship: ManagedObjectModel.Relationship) -> Index {
    let side = link(relationship)
    return Index(
      .linkTable(side.table), .relationship, name: "\(side.table)_\(side.far)_INDEX", table: side.table,
      columns: [SQLName.quoted(side.far), SQLName.quoted(side.near)])
  }

  /// The unique index of each constraint that an entity declares. A constraint declared twice has one index.
  private func uniqueIndexes(_ entity: ManagedObjectModel.Entity) -> [Index] {
    var seen: Set<[String]> = []
    let declared = entity.uniquenessConstraints.dropFirst(entity.inheritedConstraintCount).filter { seen.insert($0).inserted }
    return declared.map { names in
      // Rows of other entities have no value in the entity's own columns. If all columns are inherited, a condition excludes those rows.
      let isInherited = !names.contains { entity.slot(named: $0).map(ownSlots(entity).contains) ?? false }
      let numbers = entity.concreteIndexes.map { String(tables[$0].number) }.joined(separator: ", ")
      return Index(
        .entity(entity.index), .uniqueness, name: "Z_\(entity.name)_UNIQUE_\(names.joined(separator: "_"))",
        table: tables[entity.index].name, columns: names.compactMap { orderedColumn($0, of: entity) },
        condition: isInherited ? " WHERE Z_ENT IN (\(numbers))" : "")
    }
  }

  /// The fetch indexes of an entity.
  private func fetchIndexes(_ entity: ManagedObjectModel.Entity) -> [Index] {
    entity.indexes.compactMap { declared in
      // An index over ranges in several dimensions would be a separate table, which Holdfast's queries don't use.
      guard declared.elements.allSatisfy({ $0.kind == .binary }) else { return nil }
      let columns = declared.elements.compactMap { orderedColumn($0.property, of: entity, isAscending: $0.isAscending) }
      // A property without a column can't be indexed.
      guard !columns.isEmpty, columns.count == declared.elements.count else { return nil }
      return Index(
        .entity(entity.index), .fetch, name: "Z_\(entity.name)_\(declared.name)", table: tables[entity.index].name, columns: columns)
    }
  }

  private func orderedColumn(_ property: String, of entity: ManagedObjectModel.Entity, isAscending: Bool = true) -> String? {
    entity.slot(named: property).map {
      "\(SQLName.quoted(tables[entity.index].columns[$0])) COLLATE BINARY \(isAscending ? "ASC" : "DESC")"
    }
  }
}

/// Gives every index a unique name.
struct IndexNames {
  /// The used names, in upper case: SQLite ignores the case of ASCII letters in names.
  private var used: Set<String>

  /// Marks the names of tables and other indexes as used.
  init(besides names: [String]) { used = Set(names.map(SQLName.upper)) }

  /// The name itself if it isn't used, otherwise with `_2`, `_3` and so on after it.
  mutating func free(_ name: String) -> String {
    // Index names can be any text, and SQL ends at a zero byte.
    let name = name.utf8.contains(0) ? name.split(separator: "\0", omittingEmptySubsequences: false).joined(separator: "_") : name
    var candidate = name, number = 1
    while !used.insert(SQLName.upper(candidate)).inserted {
      number += 1
      candidate = "\(name)_\(number)"
    }
    return candidate
  }
}
