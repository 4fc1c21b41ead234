import HoldfastStore

/// Where each part of a model lies in one file: tables, columns, entity numbers, join tables.
///
/// Made either by prediction, for a file that this framework laid out, or from what an existing file has.
final class StoreSchema: Sendable {
  /// The table of an entity.
  struct Table: Sendable, Hashable {
    /// The name.
    var name: String
    /// What stands in `Z_ENT`, and what `Z_PRIMARYKEY` calls the entity.
    var number: Int64
    /// The columns by slot.
    var columns: [String]
    /// By slot the column that tells the entity of a to-one relationship's target, where the relationship leads to an
    /// entity with sub-entities.
    var entityColumns: [String?]
    /// Whether the table has rows of other entities too, so that `Z_ENT` has to be asked for.
    var isShared: Bool
  }

  /// The join table of a many-to-many pair, seen from one of its two sides; or for a to-many relationship without inverse
  /// the table of its targets, in which a column has the key of the object that each belongs to.
  struct LinkSide: Sendable, Hashable {
    /// The name.
    var table: String
    /// The column with the key of the object that has the relationship.
    var near: String
    /// The column with the key of the object that the relationship leads to.
    var far: String

    /// The same table from the other side.
    var inverse: LinkSide { LinkSide(table: table, near: far, far: near) }
  }

  let model: ManagedObjectModel
  /// The tables by entity index.
  let tables: [Table]
  /// The join tables by entity index and place of the relationship; nil where the relationship is not many-to-many.
  let links: [[LinkSide?]]
  /// The columns of ordered relationships' keys, in the order of ``orderedRelationships(_:)``.
  private let orderColumns: [String]

  init(model: ManagedObjectModel, tables: [Table], links: [[LinkSide?]], orderColumns: [String]) {
    self.model = model
    self.tables = tables
    self.links = links
    self.orderColumns = orderColumns
  }

  /// The relationships that have an order, in the order of entities and names.
  static func orderedRelationships(_ model: ManagedObjectModel) -> [ManagedObjectModel.Relationship] {
    var ordered: [ManagedObjectModel.Relationship] = []
    for entity in model.entities {
      for relationship in entity.toManyRelationships where relationship.isOrdered && relationship.entityIndex == entity.index {
        ordered.append(relationship)
      }
    }
    return ordered
  }

  /// The column with the key by which a target stands among those of its source, in the table of ``places(_:)``; nil for a
  /// relationship without order.
  func orderColumn(_ relationship: ManagedObjectModel.Relationship) -> String? {
    if !relationship.isOrdered { return nil }
    for (place, ordered) in StoreSchema.orderedRelationships(model).enumerated()
    where ordered.entityIndex == relationship.entityIndex && ordered.index == relationship.index {
      return orderColumns[place]
    }
    return nil
  }

  /// The column of a to-one relationship's order among the targets of its inverse; nil when that has none.
  func orderColumn(ofInverse relationship: ManagedObjectModel.Relationship) -> String? {
    relationship.isToMany ? nil : model.inverse(of: relationship).flatMap { orderColumn($0) }
  }

  /// The table with the links of a to-many relationship, and its columns for the source's and the target's key.
  func places(_ relationship: ManagedObjectModel.Relationship) -> LinkSide {
    if relationship.isManyToMany { return link(relationship) }
    guard let inverse = model.inverse(of: relationship) else {
      preconditionFailure("\(relationship.name) has neither links nor an inverse that points back.")
    }
    let table = tables[inverse.entityIndex]
    return LinkSide(table: table.name, near: table.columns[inverse.slot], far: "Z_PK")
  }

  /// The join table of a many-to-many relationship.
  func link(_ relationship: ManagedObjectModel.Relationship) -> LinkSide {
    guard let side = links[relationship.entityIndex][relationship.index] else {
      preconditionFailure("\(relationship.name) is not a many-to-many relationship.")
    }
    return side
  }

  /// The many-to-many relationships that name their tables, in the order in which column names are given out: entities by
  /// name without regard to case, a super entity before its sub-entities.
  static func namingRelationships(_ model: ManagedObjectModel) -> [ManagedObjectModel.Relationship] {
    var naming: [ManagedObjectModel.Relationship] = []
    var isVisited = [Bool](repeating: false, count: model.entities.count)
    func visit(_ entity: ManagedObjectModel.Entity) {
      if isVisited[entity.index] { return }
      isVisited[entity.index] = true
      if let above = entity.superentityIndex { visit(model.entities[above]) }
      for relationship in entity.relationships
      where relationship.isManyToMany && relationship.namesLinks && relationship.entityIndex == entity.index {
        naming.append(relationship)
      }
    }
    // Entities stand in the order of their names, unless there are sub-entities among them.
    let inherits = model.entities.contains { $0.superentityIndex != nil }
    for entity in inherits ? model.entities.sorted(by: { SQLName.upper($0.name) < SQLName.upper($1.name) }) : model.entities {
      visit(entity)
    }
    return naming
  }

  /// Spreads the sides of the naming relationships over both ends.
  static func links(_ model: ManagedObjectModel, _ sides: [LinkSide]) -> [[LinkSide?]] {
    var links: [[LinkSide?]] = model.entities.map { Array(repeating: nil, count: $0.relationships.count) }
    for (relationship, side) in zip(namingRelationships(model), sides) {
      links[relationship.entityIndex][relationship.index] = side
      if relationship.hasInverse && !relationship.isReflexive {
        links[relationship.destinationIndex][relationship.inverseIndex] = side.inverse
      }
    }
    return links
  }
}
