/// Identifies a committed state of a store.
///
/// Read views and save receipts contain tokens. Equal tokens identify the same state, but a state can have several tokens. Only the store
/// can determine which of two tokens is later. A token can be encoded, and used in another process or after the store is reopened.
public struct StateToken: Sendable, Hashable, Codable {
  /// The UUID of the store as upper-case text.
  public var storeUUID: String
  /// The state, in an encoding that only the store interprets.
  public var bytes: [UInt8]

  /// Creates a token.
  public init(storeUUID: String, bytes: [UInt8]) {
    self.storeUUID = storeUUID
    self.bytes = bytes
  }
}
