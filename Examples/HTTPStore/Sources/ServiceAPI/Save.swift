/// The changes of one save, which take effect together or not at all, in the order of the properties.
package struct Save: Sendable, Codable {
  /// The rows that must be unchanged.
  package var conditions: [Condition] = []
  package var deleted: [RowID] = []
  /// Rows with the fields that change, and their new entity tags.
  package var updated: [Row] = []
  package var inserted: [Row] = []
  package var unique: [Uniqueness] = []
  /// Links to remove. Missing ones aren't an error.
  package var unlinked: [Link] = []
  package var linked: [Link] = []
  /// References to deleted rows.
  package var severed: [Severing] = []
  /// Positions in ordered relationships.
  package var positions: [Position] = []
  /// Changes that keep the row's entity tag. Missing rows are skipped.
  package var derived: [FieldChange] = []

  package init() {}
}

package struct RowID: Sendable, Codable, Hashable {
  package var table: String
  package var key: Int64

  package init(table: String, key: Int64) { (self.table, self.key) = (table, key) }
}

/// A row that must exist with an entity tag.
package struct Condition: Sendable, Codable {
  package var row: RowID
  package var ifMatch: Int64

  package init(_ row: RowID, ifMatch: Int64) { (self.row, self.ifMatch) = (row, ifMatch) }
}

/// Fields that no two rows may have in common. Null and NaN are never in common.
package struct Uniqueness: Sendable, Codable {
  package var rows: Selection
  package var fields: [String]
  /// The rows that the save inserts or changes.
  package var keys: Set<Int64>

  package init(_ rows: Selection, fields: [String], keys: Set<Int64>) { (self.rows, self.fields, self.keys) = (rows, fields, keys) }
}

package struct Link: Sendable, Codable {
  package var relationship: String
  package var source: Int64
  package var target: Int64
  /// Whether linking removes the target from other sources.
  package var isExclusive: Bool

  package init(_ relationship: String, source: Int64, target: Int64, isExclusive: Bool = false) {
    (self.relationship, self.source, self.target, self.isExclusive) = (relationship, source, target, isExclusive)
  }
}

/// References to remove, because the rows with these keys are deleted.
package struct Severing: Sendable, Codable {
  package enum References: Sendable, Codable {
    /// Sets a field to null, and raises the entity tag once for each save.
    case field(name: String, of: Selection)
    case linksFromSources(relationship: String)
    case linksToTargets(relationship: String)
  }

  package var references: References
  package var keys: Set<Int64>

  package init(_ references: References, keys: Set<Int64>) { (self.references, self.keys) = (references, keys) }
}

/// The position of an object among those that are linked to another one.
package enum Position: Sendable, Codable {
  case ofTarget(link: Link, order: Int64)
  case ofSource(link: Link, order: Int64)
  /// The position of a row with a reference. It is lost when the reference changes.
  case ofRow(row: RowID, reference: String, order: Int64)
}

/// A change to one field.
package struct FieldChange: Sendable, Codable {
  package enum Change: Sendable, Codable {
    case set(value: FieldValue)
    /// Adds to a number, which stays null if it is null. A sum outside the range refuses the save.
    case add(amount: Int64, from: Int64, through: Int64)
    /// Adds to a decimal number, whose text the field contains.
    case addDecimal(amount: String)
  }

  package var row: RowID
  package var field: String
  package var change: Change

  package init(_ row: RowID, field: String, _ change: Change) { (self.row, self.field, self.change) = (row, field, change) }
}

/// A condition that doesn't hold, and the row as it is now; nil if it was deleted.
package struct Conflict: Sendable, Codable {
  package var condition: Condition
  package var current: Row?

  package init(_ condition: Condition, current: Row?) { (self.condition, self.current) = (condition, current) }
}

/// A row that has unique fields in common with another one.
package struct Duplicate: Sendable, Codable {
  package var row: Row
  package var existing: Row
  package var fields: [String]

  package init(_ row: Row, of existing: Row, fields: [String]) { (self.row, self.existing, self.fields) = (row, existing, fields) }
}

/// Why the service refused a save. Nothing was changed.
package enum Refusal: Error, Sendable, Codable {
  /// Rows don't meet their conditions.
  case conflict(conflicts: [Conflict])
  /// Rows have fields in common that must be unique.
  case notUnique(duplicates: [Duplicate])
  /// The row to insert exists.
  case keyInUse(row: RowID)
  /// The sum doesn't fit the field.
  case doesNotFit(row: RowID, field: String)
}

/// What became of a save.
package struct SaveFate: Sendable, Codable {
  /// Whether it took effect. If not, it never will.
  package var tookEffect: Bool

  package init(tookEffect: Bool) { self.tookEffect = tookEffect }
}
