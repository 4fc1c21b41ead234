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
    /// entity with sub-entities, or an empty name; empty when there is none at all. No list of optional names, of which there is
    /// no other at opening: the type would be made for it.
    var entityColumns: [String]
    /// Whether the table has rows of other entities too, so that `Z_ENT` has to be asked for.
    var isShared: Bool

    /// The column that tells the entity of the target in a slot; nil when the destination has no sub-entities.
    func entityColumn(_ slot: Int) -> String? {
      entityColumns.isEmpty || entityColumns[slot].isEmpty ? nil : entityColumns[slot]
    }
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
  /// The columns of ordered relationships' keys by entity index and place of the relationship; nil where that has no order.
  /// Empty when none has.
  private let orderColumns: [[String?]]

  /// Makes the schema.
  ///
  /// - Parameter orderColumns: parallel to the model's ordered relationships.
  init(model: ManagedObjectModel, tables: [Table], links: [[LinkSide?]], orderColumns: [String]) {
    self.model = model
    self.tables = tables
    self.links = links
    self.orderColumns = StoreSchema.orderColumns(model, orderColumns)
  }

  private static func orderColumns(_ model: ManagedObjectModel, _ names: [String]) -> [[String?]] {
    if names.isEmpty { return [] }
    var columns: [[String?]] = model.entities.map { Array(repeating: nil, count: $0.relationships.count) }
    for (relationship, name) in zip(model.orderedRelationships, names) { columns[relationship.entityIndex][relationship.index] = name }
    return columns
  }

  /// The column with the key by which a target stands among those of its source, in the table of ``places(_:)``; nil for a
  /// relationship without order.
  func orderColumn(_ relationship: ManagedObjectModel.Relationship) -> String? {
    relationship.isOrdered ? orderColumns[relationship.entityIndex][relationship.index] : nil
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

  /// The many-to-many relationships that name their tables, in the order in which column names are given out.
  static func namingRelationships(_ model: ManagedObjectModel) -> [ManagedObjectModel.Relationship] {
    var naming: [ManagedObjectModel.Relationship] = []
    for entity in model.entities.sorted(by: { $0.namingRank < $1.namingRank }) {
      for relationship in entity.relationships
      where relationship.isManyToMany && relationship.namesLinks && relationship.entityIndex == entity.index {
        naming.append(relationship)
      }
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
