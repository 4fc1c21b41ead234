/// A row of a table.
package struct Row: Sendable, Codable {
  package var table: String
  package var type: String
  package var key: Int64
  /// The row's entity tag: a number that ascends with each change.
  package var etag: Int64
  package var fields: [String: FieldValue]

  package init(table: String, type: String, key: Int64, etag: Int64, fields: [String: FieldValue] = [:]) {
    (self.table, self.type, self.key, self.etag, self.fields) = (table, type, key, etag, fields)
  }
}

/// The rows of some types in a table.
package struct Selection: Sendable, Codable {
  package var table: String
  package var types: Set<String>

  package init(table: String, types: Set<String>) { (self.table, self.types) = (table, types) }
}

/// A request for rows, in the order of the sorts and then of the keys.
package struct Query: Sendable, Codable {
  package enum Answer: String, Sendable, Codable { case rows, keys, count }

  package var selection: Selection
  /// The keys of the rows; nil for all rows.
  package var keys: Set<Int64>?
  package var filter: Filter?
  package var sorts: [Sort] = []
  package var offset = 0
  package var limit: Int?
  package var answer = Answer.rows

  package init(_ selection: Selection) { self.selection = selection }
}

/// The rows without fields if only keys were requested, and the number of rows.
package struct QueryAnswer: Sendable, Codable {
  package var rows: [Row]
  package var count: Int

  package init(rows: [Row], count: Int) { (self.rows, self.count) = (rows, count) }
}

package struct Sort: Sendable, Codable {
  package var field: String
  package var isAscending: Bool

  package init(field: String, isAscending: Bool) { (self.field, self.isAscending) = (field, isAscending) }
}

/// A condition on a row.
package indirect enum Filter: Sendable, Codable {
  case compare(left: Operand, is: Comparison, right: Operand)
  case and(filters: [Filter])
  case or(filters: [Filter])
  case not(filter: Filter)

  package enum Operand: Sendable, Codable {
    case key
    case field(name: String)
    case constant(value: FieldValue)
  }

  package enum Comparison: String, Sendable, Codable {
    case equal, notEqual, less, lessOrEqual, greater, greaterOrEqual, beginsWith, endsWith, contains
  }
}

/// A request for the objects that are linked to some sources. Sources that don't exist have none.
package struct LinkQuery: Sendable, Codable {
  package enum Path: Sendable, Codable {
    /// The rows with a source's key in a field.
    case rows(in: Selection, field: String)
    /// The other ends of links. The inverse leads from targets to sources.
    case links(relationship: String, isInverse: Bool, table: String)
  }

  package var from: Selection
  package var sources: [Int64]
  package var path: Path

  package init(from: Selection, sources: [Int64], path: Path) { (self.from, self.sources, self.path) = (from, sources, path) }
}

/// An object that is linked to a source.
package struct LinkedRow: Sendable, Codable {
  package var source: Int64
  package var key: Int64
  /// Nil if the row doesn't exist.
  package var type: String?
  package var order: Int64?

  package init(source: Int64, key: Int64, type: String?, order: Int64?) {
    (self.source, self.key, self.type, self.order) = (source, key, type, order)
  }
}

/// A request for new keys; the answer is the first one.
package struct KeyRange: Sendable, Codable {
  package var table: String
  package var count: Int64

  package init(table: String, count: Int64) { (self.table, self.count) = (table, count) }
}
