/// A value for a placeholder of a statement.
enum SQLBinding: Sendable, Hashable {
  case null
  case integer(Int64)
  case real(Double)
  case text(String)
  case blob([UInt8])
  /// Bytes compared with text that need not be UTF-8.
  case rawText([UInt8])
  /// The values of a ``ListTable``.
  case list(BoundList)
}
