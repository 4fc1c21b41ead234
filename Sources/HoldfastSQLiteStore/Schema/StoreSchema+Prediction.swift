import HoldfastStore
import Synchronization

extension StoreSchema {
  /// The schema that was predicted last. A program mostly opens stores of one model.
  private static let latest = Mutex<StoreSchema?>(nil)

  /// The layout of a store that this framework has created, as ``predicted(_:numbers:)`` returns it.
  static func own(_ model: ManagedObjectModel) -> StoreSchema {
    if let known = latest.withLock({ $0 }), known.model === model { return known }
    let schema = predicted(model)
    latest.withLock { $0 = schema }
    return schema
  }

  /// The layout of a new file. On disk: do not change.
  ///
  /// - Parameter numbers: The entity numbers by entity index. In a new file they are the index + 1. An entity that the file lacks has the
  ///   maximum, so that its columns don't take the names of others.
  static func predicted(_ model: ManagedObjectModel, numbers: [Int64]? = nil) -> StoreSchema {
    let numbers = numbers ?? model.entities.map { Int64($0.index.rawValue + 1) }
    let tables = tables(model, numbers)
    var used = UsedNames()
    let sides = namingRelationships(model).map { used.side(of: $0, in: model, numbers: numbers) }
    let schema = StoreSchema(model: model, tables: tables, links: links(model, sides), orderColumns: [])
    let orders = model.orderedRelationships.map { predictedOrderColumn($0, schema) }
    return orders.isEmpty ? schema : StoreSchema(model: model, tables: tables, links: schema.links, orderColumns: orders)
  }

  /// The order column of a relationship, named after its column: `Z_FOK_8LABELS` beside `Z_8LABELS`, `Z_FOK_OWNER` beside `ZOWNER`.
  static func predictedOrderColumn(_ relationship: ManagedObjectModel.Relationship, _ schema: StoreSchema) -> String {
    let side = schema.places(relationship)
    let named = relationship.isManyToMany && !relationship.hasTargetsToItself && !relationship.isReflexive ? side.far : side.near
    return "Z_FOK_" + named.dropFirst(named.hasPrefix("Z_") ? 2 : 1)
  }

  /// One table for each root entity and its subentities, named after the root entity.
  private static func tables(_ model: ManagedObjectModel, _ numbers: [Int64]) -> [Table] {
    if model.entities.allSatisfy({ $0.familyIndexes.count == 1 }) { return separateTables(model, numbers) }
    let none = Table(name: "", number: 0, columns: [], entityColumns: [], isShared: false)
    var tables = [Table](repeating: none, count: model.entities.count)
    var used = [[String]](repeating: [], count: model.entities.count)
    func lay(_ entity: ManagedObjectModel.Entity) {
      if !tables[entity.index].name.isEmpty { return }
      if let above = entity.superentityIndex { lay(model.entities[above]) }
      let inherited = entity.superentityIndex.map { tables[$0].columns } ?? []
      var columns = inherited + Array(repeating: "", count: entity.slots.count - inherited.count)
      for slot in ownSlots(entity, from: inherited.count) {
        columns[slot] = free(SQLName.prefixed(entity.slots[slot].name), &used[entity.rootIndex])
      }
      let root = model.entities[entity.rootIndex]
      tables[entity.index] = Table(
        name: SQLName.prefixed(root.name), number: numbers[entity.index], columns: columns,
        entityColumns: entity.slotIndexes.map { entityColumn(entity, $0, columns[$0], model, numbers) },
        isShared: root.familyIndexes.count > 1)
    }
    // By number, which may differ from the model's order in another program's file.
    for index in model.entityIndexes.sorted(by: { numbers[$0] < numbers[$1] }) { lay(model.entities[index]) }
    return tables
  }

  /// The tables of a model without inheritance. A separate path keeps opening a store fast.
  private static func separateTables(_ model: ManagedObjectModel, _ numbers: [Int64]) -> [Table] {
    model.entities.map { entity in
      Table(
        name: SQLName.prefixed(entity.name), number: numbers[entity.index], columns: entity.slots.map { SQLName.prefixed($0.name) },
        entityColumns: [], isShared: false)
    }
  }

  /// The slots that an entity doesn't inherit, attributes first.
  private static func ownSlots(_ entity: ManagedObjectModel.Entity, from start: Int) -> [SlotIndex] {
    let own = entity.slotIndexes.dropFirst(start)
    return own.filter { entity.relationship(inSlot: $0) == nil } + own.filter { entity.relationship(inSlot: $0) != nil }
  }

  /// A column name that isn't used yet. If properties of several entities in one table have the same name, all except the first get digits
  /// after it.
  private static func free(_ name: String, _ used: inout [String]) -> String {
    var (candidate, count) = (name, 0)
    while used.contains(candidate) {
      count += 1
      candidate = name + String(count)
    }
    used.append(candidate)
    return candidate
  }

  /// The column with the destination object's entity, such as `Z5_OWNER` beside `ZOWNER`; empty if the destination has no subentities.
  private static func entityColumn(
    _ entity: ManagedObjectModel.Entity, _ slot: SlotIndex, _ column: String, _ model: ManagedObjectModel, _ numbers: [Int64]
  ) -> String {
    guard let relationship = entity.relationship(inSlot: slot) else { return "" }
    let destination = model.destination(of: relationship)
    return destination.familyIndexes.count > 1 ? "Z\(numbers[destination.index])_\(column.dropFirst())" : ""
  }

  /// Assigns column names of join tables. If several columns have the same name, all except the first get digits after it.
  private struct UsedNames {
    private var counts: [String: Int] = [:]

    mutating func side(of relationship: ManagedObjectModel.Relationship, in model: ManagedObjectModel, numbers: [Int64]) -> LinkSide {
      guard let inverse = model.inverse(of: relationship) else {
        let destination = model.entities[model.destination(of: relationship).rootIndex]
        let near = StoreSchema.linkColumn(numbers[relationship.entityIndex], relationship.name, hasUnderscore: false)
        return LinkSide(table: SQLName.prefixed(destination.name), near: near, far: "Z_PK")
      }
      if relationship.isReflexive {
        let name = StoreSchema.linkColumn(numbers[relationship.entityIndex], relationship.name)
        return LinkSide(table: name, near: name, far: "REFLEXIVE")
      }
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

  /// The name of a join table or of its columns, such as `Z_5LABELS`. Without the underscore, the name of a column in the destination's
  /// table.
  static func linkColumn(_ number: Int64, _ name: String, hasUnderscore: Bool = true) -> String {
    "Z\(hasUnderscore ? "_" : "")\(number)\(SQLName.upper(name))"
  }
}
