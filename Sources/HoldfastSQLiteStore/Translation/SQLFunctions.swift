import CHoldfastSQLite
import HoldfastStore

/// SQL functions for folded text, and stand-ins for functions that exist only in Apple's framework. They are registered on each connection
/// and never become part of a file's schema.
enum SQLFunctions {
  /// `holdfast_fold(text, folding)`: the folded text as bytes, which sort like folded text.
  static let fold = "holdfast_fold"
  /// `holdfast_match(text, folded needle, operator, folding)`: whether a comparison with a constant is true.
  static let match = "holdfast_match"
  /// `holdfast_compare(text, text, operator, folding)`: whether a comparison of two texts is true.
  static let compare = "holdfast_compare"
  /// `holdfast_compare_ids(URI, URI, operator)`: whether a comparison of two object IDs is true.
  static let compareIDs = "holdfast_compare_ids"

  private typealias Function = @convention(c) (OpaquePointer?, Int32, UnsafeMutablePointer<OpaquePointer?>?) -> Void

  static func register(on connection: SQLiteConnection) throws(StoreError) {
    let pure = SQLITE_UTF8 | SQLITE_DETERMINISTIC | 0x8_0000  // and not from a schema: SQLITE_DIRECTONLY
    try register(fold, 2, pure, connection) { context, _, values in SQLFunctions.runFold(context, values) }
    try register(match, 4, pure, connection) { context, _, values in SQLFunctions.runMatch(context, values) }
    try register(compare, 4, pure, connection) { context, _, values in SQLFunctions.runCompare(context, values) }
    try register(compareIDs, 3, pure, connection) { context, _, values in SQLFunctions.runCompareIDs(context, values) }
    guard connection.role == .writer else { return }
    for name in triggerFunctions {
      try register(name, 5, SQLITE_UTF8 | 0x20_0000, connection) { context, _, _ in sqlite3_result_null(context) }  // SQLITE_INNOCUOUS
    }
  }

  /// The functions by which triggers in Core Data's files notify its framework of a change.
  private static let triggerFunctions = [
    "NSCoreDataDATriggerUpdatedAffectedObjectValue", "NSCoreDataDATriggerInsertUpdatedAffectedObjectValue",
    "NSCoreDataTriggerUpdateAffectedObjectValue",
  ]

  private static func register(
    _ name: String, _ arguments: Int32, _ flags: Int32, _ connection: SQLiteConnection, _ function: Function
  ) throws(StoreError) {
    let code = sqlite3_create_function_v2(connection.state.handle, name, arguments, flags, nil, function, nil, nil, nil)
    guard code == SQLiteResultCode.ok else { throw connection.state.failure(code) }
  }

  // MARK: Implementations

  private static func bytes(_ value: OpaquePointer?) -> UnsafeRawBufferPointer {
    let start = sqlite3_value_blob(value)
    return UnsafeRawBufferPointer(start: start, count: Int(sqlite3_value_bytes(value)))
  }

  private static func isNull(_ value: OpaquePointer?) -> Bool { sqlite3_value_type(value) == SQLITE_NULL }

  private static func folding(_ value: OpaquePointer?) -> TextFolding {
    TextFolding(rawValue: UInt8(truncatingIfNeeded: sqlite3_value_int(value)))
  }

  private static func comparison(_ value: OpaquePointer?) -> ComparisonOperator {
    ComparisonOperator(rawValue: Int(sqlite3_value_int(value))) ?? .equalTo
  }

  private static func runFold(_ context: OpaquePointer?, _ values: UnsafeMutablePointer<OpaquePointer?>?) {
    guard let values, !isNull(values[0]) else { return sqlite3_result_null(context) }
    var folded: [UInt8] = []
    folding(values[1]).fold(bytes(values[0]), into: &folded)
    folded.withUnsafeBytes { folded in
      // SQLite needs a pointer even for zero bytes; without one the result would be null.
      let start = folded.baseAddress ?? UnsafeRawPointer(bitPattern: 1)
      sqlite3_result_blob64(context, start, UInt64(folded.count), BoundBytes.copied.destructor)
    }
  }

  private static func runMatch(_ context: OpaquePointer?, _ values: UnsafeMutablePointer<OpaquePointer?>?) {
    guard let values else { return sqlite3_result_null(context) }
    let op = comparison(values[2])
    if isNull(values[0]) { return sqlite3_result_int(context, op == .notEqualTo ? 1 : 0) }
    let folding = folding(values[3])
    let text = bytes(values[0]), needle = bytes(values[1])
    let holds =
      switch op {
      case .notEqualTo: !folding.equals(text, folded: needle)
      case .beginsWith: folding.hasPrefix(text, folded: needle)
      case .endsWith: folding.hasSuffix(text, folded: needle)
      case .contains: folding.contains(text, folded: needle)
      default: folding.equals(text, folded: needle)
      }
    sqlite3_result_int(context, holds ? 1 : 0)
  }

  private static func runCompare(_ context: OpaquePointer?, _ values: UnsafeMutablePointer<OpaquePointer?>?) {
    guard let values else { return sqlite3_result_null(context) }
    let holds = ValueComparison.holds(text(values[0]), comparison(values[2]), text(values[1]), folding(values[3]))
    sqlite3_result_int(context, holds ? 1 : 0)
  }

  private static func runCompareIDs(_ context: OpaquePointer?, _ values: UnsafeMutablePointer<OpaquePointer?>?) {
    guard let values else { return sqlite3_result_null(context) }
    let holds = ValueComparison.holds(id(values[0]), comparison(values[2]), id(values[1]))
    sqlite3_result_int(context, holds ? 1 : 0)
  }

  private static func id(_ value: OpaquePointer?) -> StoreValue {
    if isNull(value) { return .null }
    return ManagedObjectID(rowBytes: bytes(value)).map { .objectID($0) } ?? .null
  }

  private static func text(_ value: OpaquePointer?) -> StoreValue {
    isNull(value) ? .null : .string(String(decoding: bytes(value), as: UTF8.self))
  }
}
