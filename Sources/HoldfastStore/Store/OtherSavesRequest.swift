/// A request for a function that finds out whether another process has saved.
///
/// For stores without rows in memory. The coordinator requests it once, when the store is opened, and calls the function before it uses rows
/// that it has read earlier. So the function must be fast: SQLite compares a few bytes of shared memory. It is called on any thread.
public struct OtherSavesRequest: StoreRequest {
  /// Creates a request.
  public init() {}

  /// Returns whether another process may have saved since the last call. Saves of this store don't count.
  public typealias Answer = @Sendable () -> Bool
  /// A verb phrase for errors.
  public static var operation: String { "notice saves of other processes" }
}
