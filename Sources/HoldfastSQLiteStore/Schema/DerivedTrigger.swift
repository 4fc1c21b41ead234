/// Recognises Core Data's triggers for derived attributes by their text.
///
/// ```text
/// CREATE TRIGGER … AFTER event ON table FOR EACH ROW [WHEN condition] BEGIN
///   UPDATE table SET column = expression WHERE Z_PK = …;
///   SELECT NSCoreData…(…) FROM table WHERE …;
/// END
/// ```
///
/// Every UPDATE sets one derived attribute's column in the row with a key. Expressions use columns, numbers and a few functions, and read
/// one table of the model at a time. So a trigger takes as long as a query for the rows of one relationship.
struct DerivedTrigger {
  private let derivedColumns: [String: Set<String>]

  /// - Parameter derivedColumns: The columns of derived attributes, by table, in upper case.
  init(_ derivedColumns: [String: Set<String>]) { self.derivedColumns = derivedColumns }

  func recognises(_ statement: SQLTokens) -> Bool {
    let tokens = Array(statement)
    guard tokens.count > 8, tokens[0].isWord("CREATE"), tokens[1].isWord("TRIGGER"), tokens[3].isWord("AFTER"),
      // A trigger's name may also be BEGIN.
      let begin = tokens[4...].firstIndex(where: { $0.isWord("BEGIN") }), tokens.last?.isWord("END") == true,
      Self.isHarmless(tokens[4..<begin])
    else { return false }
    let statements = tokens[(begin + 1)..<(tokens.count - 1)].split { $0.isSymbol(";") }
    return !statements.isEmpty && statements.allSatisfy { isUpdate($0) || isNotice($0) }
  }

  private typealias Tokens = ArraySlice<SQLTokens.Token>

  private func isUpdate(_ tokens: Tokens) -> Bool {
    let list = Array(tokens)
    guard list.count > 9, list[0].isWord("UPDATE"), let table = list[1].name, list[2].isWord("SET"), let column = list[3].name,
      list[4].isSymbol("="), derivedColumns[table]?.contains(column) == true,
      let place = Self.lastCondition(list), Self.namesOneRow(list[place...])
    else { return false }
    // Only one column: a second one would follow a comma outside of parentheses.
    return Self.isHarmless(list[5...]) && !Self.hasOuterComma(list[5..<place])
  }

  /// Whether a condition begins with `Z_PK = NEW.…` or `Z_PK = OLD.…`, and the rest only restricts it.
  private static func namesOneRow(_ condition: Tokens) -> Bool {
    let list = Array(condition)
    guard list.count > 5, list[1].name == "Z_PK", list[2].isSymbol("="), list[3].isWord("NEW") || list[3].isWord("OLD"),
      list[4].isSymbol("."),
      list.count == 6 || list[6].isWord("AND")
    else { return false }
    return !list.contains { $0.isWord("OR") }
  }

  private func isNotice(_ tokens: Tokens) -> Bool {
    let list = Array(tokens)
    guard list.count > 3, list[0].isWord("SELECT"), list[1].kind == .word, list[2].isSymbol("("),
      String(decoding: list[1].bytes, as: UTF8.self).hasPrefix("NSCoreData")
    else { return false }
    return Self.isHarmless(list[1...])
  }

  /// The index of the WHERE that belongs to the statement and not to a query in it.
  private static func lastCondition(_ tokens: [SQLTokens.Token]) -> Int? {
    var depth = 0
    for (place, token) in tokens.enumerated() {
      if token.isSymbol("(") { depth += 1 }
      if token.isSymbol(")") { depth -= 1 }
      if depth == 0 && token.isWord("WHERE") { return place }
    }
    return nil
  }

  private static func hasOuterComma(_ tokens: Tokens) -> Bool {
    var depth = 0
    for token in tokens {
      if token.isSymbol("(") { depth += 1 }
      if token.isSymbol(")") { depth -= 1 }
      if depth == 0 && token.isSymbol(",") { return true }
    }
    return false
  }

  /// Whether the tokens call only known functions and don't generate rows that aren't in the file.
  private static func isHarmless(_ tokens: Tokens) -> Bool {
    var previous: SQLTokens.Token?
    var depth = 0
    /// The depth of parentheses of the current table list.
    var tables: Int?
    var queries = 0
    for token in tokens {
      if token.kind == .word && refused.contains(where: { token.isWord($0) }) { return false }
      if SchemaCheck.isFunction(token, after: previous) { return false }
      if token.isSymbol("("), let previous, previous.kind == .word || previous.kind == .quotedName {
        let isKeyword = keywords.contains { previous.isWord($0) }
        if !isKeyword && !functions.contains(where: { previous.isWord($0) }) && !isAppleFunction(previous) { return false }
      }
      // A query reads one table. `FROM a, b` and `FROM (…)` could take unlimited time.
      if previous?.isWord("FROM") == true && token.name == nil { return false }
      if token.isSymbol("(") { depth += 1 }
      if token.isSymbol(")") { depth -= 1 }
      if token.isWord("FROM") { tables = depth }
      if token.isWord("WHERE") || tables.map({ depth < $0 }) == true { tables = nil }
      if tables == depth && token.isSymbol(",") { return false }
      if token.isWord("SELECT") { queries += 1 }
      previous = token
    }
    return queries <= 1
  }

  private static func isAppleFunction(_ token: SQLTokens.Token) -> Bool {
    token.kind == .word && String(decoding: token.bytes, as: UTF8.self).hasPrefix("NSCoreData")
  }

  private static let keywords: [StaticString] = ["WHEN", "AND", "OR", "NOT", "IN", "SELECT", "WHERE", "THEN", "ELSE", "BETWEEN", "SET"]
  private static let functions: [StaticString] = [
    "IFNULL", "COALESCE", "NULLIF", "COUNT", "SUM", "TOTAL", "MIN", "MAX", "AVG", "ABS", "ROUND", "LENGTH", "LOWER", "UPPER", "CAST",
    "JULIANDAY", "STRFTIME",
  ]
  private static let refused: [StaticString] = [
    "WITH", "RECURSIVE", "JOIN", "UNION", "INTERSECT", "EXCEPT", "VALUES", "REPLACE", "RAISE", "PRAGMA", "ATTACH", "OVER", "BEGIN",
  ]
}
