import Foundation
import ServiceAPI

/// The rows and links of one store, in memory. A real service has a database here, with an index on each reference.
struct Dataset: Sendable {
  struct Pair: Hashable {
    var source: Int64
    var target: Int64
  }

  /// The positions of a link's ends; nil in relationships without an order.
  struct Orders {
    /// The position of the target among those of the source.
    var ofTarget: Int64?
    /// The position of the source among those of the target.
    var ofSource: Int64?
  }

  /// What a client keeps with the rows. The service doesn't interpret it.
  var info: Data
  var nextKeys: [String: Int64] = [:]
  var tables: [String: [Int64: Row]] = [:]
  var links: [String: [Pair: Orders]] = [:]
  /// Whether the saves with these IDs took effect. The others never will. A real service forgets IDs after some days.
  var saves: [UUID: Bool] = [:]

  func row(_ id: RowID) -> Row? { tables[id.table]?[id.key] }

  /// Returns the first of the new keys; nil if there are none left.
  mutating func reserve(_ range: KeyRange) -> Int64? {
    let first = nextKeys[range.table] ?? 1
    guard (0..<(1 << 56) - first).contains(range.count) else { return nil }
    nextKeys[range.table] = first + range.count
    return first
  }

  // MARK: Reading

  func rows(_ selection: Selection) -> some Sequence<Row> {
    (tables[selection.table] ?? [:]).values.lazy.filter { selection.types.contains($0.type) }
  }

  func answer(_ query: Query) -> QueryAnswer {
    var rows =
      query.keys.map { keys in keys.compactMap { row(RowID(table: query.selection.table, key: $0)) } }
      ?? Array(self.rows(query.selection))
    rows = rows.filter { query.selection.types.contains($0.type) && query.filter?.matches($0) != false }
    if query.answer == .count { return QueryAnswer(rows: [], count: rows.count) }
    rows.sort { query.sorts.order($0, $1) }
    rows = Array(rows.dropFirst(query.offset).prefix(query.limit ?? .max))
    if query.answer == .keys { for index in rows.indices { rows[index].fields = [:] } }
    return QueryAnswer(rows: rows, count: rows.count)
  }

  func answer(_ query: LinkQuery) -> [LinkedRow] {
    let sources = Set(
      query.sources.filter { source in
        row(RowID(table: query.from.table, key: source)).map { query.from.types.contains($0.type) } ?? false
      })
    switch query.path {
    case .rows(let selection, let field):
      return rows(selection).compactMap { row in
        guard case .integer(let source)? = row.fields[field], sources.contains(source) else { return nil }
        var order: Int64?
        if case .integer(let position)? = row.fields[field + ".order"] { order = position }
        return LinkedRow(source: source, key: row.key, type: row.type, order: order)
      }
    case .links(let relationship, let isInverse, let table):
      return (links[relationship] ?? [:]).compactMap { pair, orders in
        let (source, key) = isInverse ? (pair.target, pair.source) : (pair.source, pair.target)
        guard sources.contains(source) else { return nil }
        return LinkedRow(
          source: source, key: key, type: tables[table]?[key]?.type, order: isInverse ? orders.ofSource : orders.ofTarget)
      }
    }
  }
}
