internal import CBenchmarkSupport

/// SQLite without Holdfast, to compare with.
public enum BareSQL {
  /// Opens a database, runs statements, and closes it.
  ///
  /// - Parameters:
  ///   - script: The statements, separated by semicolons.
  ///   - path: The path of the database, which exists.
  /// - Returns: The first column of the last row as a number; 0 without rows.
  /// - Throws: ``BareSQLError`` if the database can't be opened, or a statement fails.
  @discardableResult public static func run(_ script: String, at path: String) throws -> Int64 {
    var value: Int64 = 0, message = [CChar](repeating: 0, count: 256)
    let code = holdfast_benchmark_sql(path, script, &value, &message, UInt64(message.count))
    if code == 0 { return value }
    let bytes = message.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
    throw BareSQLError(path: path, code: code, message: String(decoding: bytes, as: UTF8.self))
  }
}

/// A failed statement.
public struct BareSQLError: Error, CustomStringConvertible {
  let path: String
  let code: Int32
  let message: String

  /// The path, and SQLite's message with its code.
  public var description: String { "SQLite failed on \(path): \(message) (\(code))." }
}
