import HoldfastStore

extension StoreSchema {
  /// The layout of a new file. On disk: do not change.
  ///
  /// - Parameter numbers: the entity numbers by entity index; those of a new file are the index + 1.
  static func predicted(_ model: ManagedObjectModel, numbers: [Int64]? = nil) -> StoreSchema {
    let numbers = numbers ?? model.entities.map { Int64($0.index + 1) }
    let tables = model.entities.map { entity in
      Table(
        name: SQLName.prefixed(entity.name), number: numbers[entity.index], columns: entity.slots.map { SQLName.prefixed($0.name) })
    }
    var used = UsedNames()
    let sides = namingRelationships(model).map { used.side(of: $0, in: model, numbers: numbers) }
    return StoreSchema(model: model, tables: tables, links: links(model, sides))
  }

  /// Two join tables that would use the same column name for the same entity get digits behind it.
  private struct UsedNames {
    private var counts: [String: Int] = [:]

    mutating func side(of relationship: ManagedObjectModel.Relationship, in model: ManagedObjectModel, numbers: [Int64]) -> LinkSide {
      let inverse = model.inverse(of: relationship)
      let near = unique(StoreSchema.linkColumn(numbers[relationship.entityIndex], inverse.name))
      let far = unique(StoreSchema.linkColumn(numbers[relationship.destinationIndex], relationship.name))
      return LinkSide(table: StoreSchema.linkColumn(numbers[relationship.entityIndex], relationship.name), near: near, far: far)
    }

    private mutating func unique(_ name: String) -> String {
      let count = counts[name, default: 0]
      counts[name] = count + 1
      return count == 0 ? name : name + String(count)
    }
  }

  /// `Z_5LABELS`: the name of a join table and of its columns.
  static func linkColumn(_ number: Int64, _ name: String) -> String { "Z_\(number)\(SQLName.upper(name))" }

  /// Refuses a model of which two parts would have the same name in the file.
  func checkNames() throws(StoreError) {
    var seen: Set<String> = ["Z_PRIMARYKEY", "Z_METADATA", "Z_MODELCACHE"]
    let naming = StoreSchema.namingRelationships(model).map { link($0).table }
    for name in tables.map(\.name) + naming where !seen.insert(name).inserted {
      throw StoreError(
        .unsupportedModel, operation: "lay out the store",
        reason: "Two parts of the model need the table \(name). Rename an entity or a relationship.")
    }
    for (entity, table) in zip(model.entities, tables) {
      for column in table.columns where ["Z_PK", "Z_ENT", "Z_OPT"].contains(column) {
        throw StoreError(
          .unsupportedModel, operation: "lay out the store",
          reason: "A property of \(entity.name) needs the column \(column), which the store uses itself. Rename the property.")
      }
    }
  }
}
