/// Identifies a committed state of a store.
///
/// Views and receipts have tokens. Equal tokens denote the same state; the converse isn't true. Only the store knows which of two tokens is
/// the later one. A token can be encoded, and used after the store is reopened or in another process.
public struct StateToken: Sendable, Hashable, Codable {
  /// The UUID of the store as upper-case text.
  public var storeUUID: String
  /// The store's own description of the state.
  public var bytes: [UInt8]

  /// Creates a token.
  public init(storeUUID: String, bytes: [UInt8]) {
    self.storeUUID = storeUUID
    self.bytes = bytes
  }
}
