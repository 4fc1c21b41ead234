import HoldfastStore

/// The layout of a model in one file: tables, columns, entity numbers, join tables.
///
/// It is predicted for a file that this framework created, and otherwise read from the file.
final class StoreSchema: Sendable {
  /// The table of an entity.
  struct Table: Sendable, Hashable {
    /// The table's name.
    var name: String
    /// The entity's number in `Z_ENT` and `Z_PRIMARYKEY`.
    var number: Int64
    /// The columns by slot.
    var columns: [String]
    /// The columns for the destination object's entity, by slot: empty if the slot has none.
    ///
    /// Only to-one relationships to an entity with subentities have one. The array is empty if no slot has one. The strings aren't
    /// optional, because that type would be created at every opening for this array alone.
    var entityColumns: [String]
    /// Whether the table also has rows of other entities, so that `Z_ENT` has to be checked.
    var isShared: Bool

    /// The column for the destination object's entity of a slot; nil if the destination has no subentities.
    func entityColumn(_ slot: SlotIndex) -> String? {
      entityColumns.isEmpty || entityColumns[slot].isEmpty ? nil : entityColumns[slot]
    }
  }

  /// The join table of a many-to-many pair, seen from one side. For a to-many relationship without an inverse, it is the destination's
  /// table, in which a column contains the owner's key.
  struct LinkSide: Sendable, Hashable {
    /// The table's name.
    var table: String
    /// The column with the owner's key.
    var near: String
    /// The column with the destination object's key.
    var far: String

    /// The same table seen from the other side.
    var inverse: LinkSide { LinkSide(table: table, near: far, far: near) }
  }

  let model: ManagedObjectModel
  /// The tables by entity index.
  let tables: [Table]
  /// The entities of the model that the file lacks, because Core Data created it for a configuration. Their tables have no name.
  let missingEntities: [EntityIndex]
  /// The join tables by entity index and relationship index; nil for relationships that aren't many-to-many, and for those of entities that
  /// the file lacks.
  let links: [[LinkSide?]]
  /// The order columns by entity index and relationship index; nil for unordered relationships. Empty if no relationship is ordered.
  private let orderColumns: [[String?]]

  /// Creates a schema.
  ///
  /// - Parameters:
  ///   - orderColumns: The order columns, parallel to the model's ordered relationships.
  ///   - missing: The entities that the file lacks. Defaults to none.
  init(
    model: ManagedObjectModel, tables: [Table], links: [[LinkSide?]], orderColumns: [String], missing: [EntityIndex] = []
  ) {
    self.model = model
    self.tables = tables
    missingEntities = missing
    self.links = links
    self.orderColumns = StoreSchema.orderColumns(model, orderColumns)
  }

  private static func orderColumns(_ model: ManagedObjectModel, _ names: [String]) -> [[String?]] {
    if names.isEmpty { return [] }
    var columns: [[String?]] = model.entities.map { Array(repeating: nil, count: $0.relationships.count) }
    for (relationship, name) in zip(model.orderedRelationships, names) { columns[relationship.entityIndex][relationship.index] = name }
    return columns
  }

  /// The entity with a number in the file; nil if there is none.
  func entity(numbered number: Int64) -> EntityIndex? {
    tables.firstIndex { $0.number == number }.map { EntityIndex($0) }.flatMap { missingEntities.contains($0) ? nil : $0 }
  }

  /// The column with the order of destination objects, in the table of ``places(_:)``; nil for an unordered relationship.
  func orderColumn(_ relationship: ManagedObjectModel.Relationship) -> String? {
    relationship.isOrdered ? orderColumns[relationship.entityIndex][relationship.index] : nil
  }

  /// The order column of a to-one relationship's inverse; nil if the inverse is unordered.
  func orderColumn(ofInverse relationship: ManagedObjectModel.Relationship) -> String? {
    relationship.isToMany ? nil : model.inverse(of: relationship).flatMap { orderColumn($0) }
  }

  /// The table with the links of a to-many relationship, and its columns for the owner's and the destination object's key.
  func places(_ relationship: ManagedObjectModel.Relationship) -> LinkSide {
    if relationship.isManyToMany { return link(relationship) }
    guard let inverse = model.inverse(of: relationship) else {
      preconditionFailure("\(relationship.name) has neither links nor an inverse.")
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

  /// The many-to-many relationships after which tables are named, in the order in which column names are assigned.
  static func namingRelationships(_ model: ManagedObjectModel) -> [ManagedObjectModel.Relationship] {
    var naming: [ManagedObjectModel.Relationship] = []
    for entity in model.entities.sorted(by: { $0.namingRank < $1.namingRank }) {
      for relationship in entity.relationships
      where relationship.storesLinks && relationship.entityIndex == entity.index {
        naming.append(relationship)
      }
    }
    return naming
  }

  /// Assigns the join table of each naming relationship to both of its ends.
  ///
  /// - Parameter sides: The join tables, parallel to the naming relationships; nil for one that the file lacks.
  static func links(_ model: ManagedObjectModel, _ sides: [LinkSide?]) -> [[LinkSide?]] {
    var links: [[LinkSide?]] = model.entities.map { Array(repeating: nil, count: $0.relationships.count) }
    for case (let relationship, let side?) in zip(namingRelationships(model), sides) {
      links[relationship.entityIndex][relationship.index] = side
      if relationship.hasInverse && !relationship.isReflexive {
        links[relationship.destinationIndex][relationship.inverseIndex] = side.inverse
      }
    }
    return links
  }
}
