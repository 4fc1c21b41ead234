/// Names of tables, columns and indexes in SQL.
enum SQLName {
  /// The name as written in a statement: bare if it is a plain word, otherwise in double quotes.
  static func quoted(_ name: String) -> String {
    isPlain(name) ? name : "\"" + name.split(separator: "\"", omittingEmptySubsequences: false).joined(separator: "\"\"") + "\""
  }

  /// Plain words begin with Z here, like all names of the layout except one, so none of them is an SQL keyword.
  private static func isPlain(_ name: String) -> Bool {
    guard let first = name.utf8.first, first == UInt8(ascii: "Z") || name == "REFLEXIVE" else { return false }
    return name.utf8.allSatisfy { (48...57).contains($0) || (65...90).contains($0) || (97...122).contains($0) || $0 == 95 }
  }

  /// `Z` and the name in upper case. Names in models are ASCII. `ZHOME_LATITUDE` is an element of a composite attribute.
  static func prefixed(_ name: String) -> String {
    "Z" + (name.utf8.contains(UInt8(ascii: ".")) ? upper(name.split(separator: ".").joined(separator: "_")) : upper(name))
  }

  /// Names or expressions with a separator between them.
  ///
  /// Written by hand: the first `joined(separator:)` of a process creates types, which takes longer than SQLite takes to compile a statement.
  static func list(_ texts: ArraySlice<String>, separator: String) -> String {
    var list = texts.first ?? ""
    for text in texts.dropFirst() {
      list += separator
      list += text
    }
    return list
  }

  /// The name in upper case.
  static func upper(_ name: String) -> String {
    String(decoding: name.utf8.map { (97...122).contains($0) ? $0 - 32 : $0 }, as: UTF8.self)
  }
}
