import HoldfastStore

extension FetchRunner {
  /// How SQLite would execute a plan: its statement, and the steps of the query plan (SQLite documentation, "EXPLAIN QUERY PLAN").
  ///
  /// The statement has placeholders instead of values. SQLite's choice of an index depends on values only in a file with statistics, which
  /// another program made with ANALYZE.
  func explanation(of plan: FetchPlan) throws -> String {
    guard let fetch = try statement(for: plan) else { return "No statement, because the file can't have objects of the entity." }
    fetch.reset()
    let statement = try connection.prepare("EXPLAIN QUERY PLAN \(fetch.sql)")
    var lines = [fetch.sql]
    var depths: [Int64: Int] = [:]
    while try statement.step() {
      let depth = depths[statement.int64(1), default: 0] + 1
      depths[statement.int64(0)] = depth
      lines.append(String(repeating: "  ", count: depth) + statement.string(3))
    }
    return lines.joined(separator: "\n")
  }
}
