import HoldfastStore

/// Identifies the rows of a ``TableStore`` in state tokens, by a pair of numbers that is different in each state of a store.
public struct GenerationToken: Sendable, Hashable {
  /// A random number of the open store that made the state.
  public var session: UInt64
  /// The number of the state in that session.
  public var number: UInt64

  /// Creates a token.
  public init(session: UInt64, number: UInt64) {
    self.session = session
    self.number = number
  }

  /// The token of a store.
  func stateToken(_ identity: StoreIdentity) -> StateToken {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(16)
    for word in [session, number] {
      for shift in stride(from: 0, to: 64, by: 8) { bytes.append(UInt8(truncatingIfNeeded: word >> shift)) }
    }
    return StateToken(storeUUID: identity.storeUUID, bytes: bytes)
  }
}
