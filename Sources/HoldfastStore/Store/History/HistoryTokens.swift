#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// The tokens of a store's history, for stores that keep one.
///
/// A token is the number of a transaction and its time, which distinguishes it from another one with the number in a copy of the store. Both
/// are 64-bit words, big-endian; the time is a floating-point number of seconds since 2001-01-01T00:00:00Z.
public struct HistoryTokens {
  private let storeUUID: String
  private let last: Int64
  /// The number of the first transaction that wasn't deleted; that of the next one if there is none.
  public let first: Int64
  private let time: (Int64) throws -> Date?
  private let error: (StoreError.Code, String) -> StoreError

  /// Creates the tokens of a history.
  ///
  /// - Parameters:
  ///   - storeUUID: The store's UUID.
  ///   - first: The number of the first transaction that wasn't deleted; `last` + 1 if there is none.
  ///   - last: The number of the last transaction, even if it was deleted; 0 if there never was one.
  ///   - error: Creates an error with a code and a reason.
  ///   - time: Returns the time of a transaction; nil if it was deleted.
  public init(
    storeUUID: String, first: Int64, last: Int64, error: @escaping (StoreError.Code, String) -> StoreError,
    time: @escaping (Int64) throws -> Date?
  ) {
    (self.storeUUID, self.first, self.last, self.error, self.time) = (storeUUID, first, last, error, time)
  }

  /// The token of the last transaction.
  ///
  /// - Throws: Errors of reading its time.
  public func current() throws -> StateToken { try token(last) }

  /// The token of the last transaction, for the answer to a request that continues after a token.
  ///
  /// If the last transaction was deleted, its time isn't known any more. The token of the request may still have it, and is returned then.
  /// Without the time, a copy of the store that still has the transaction would refuse the token.
  ///
  /// - Throws: The errors of ``number(of:)``.
  public func current(after token: StateToken?) throws -> StateToken {
    if let token, try time(last) == nil, try number(of: token) == last { return token }
    return try current()
  }

  /// The token of a transaction.
  ///
  /// - Throws: Errors of reading its time.
  public func token(_ number: Int64) throws -> StateToken { token(number, try time(number) ?? Date(timeIntervalSinceReferenceDate: 0)) }

  /// The token of a transaction whose time is known.
  public func token(_ number: Int64, _ time: Date) -> StateToken {
    let words = [UInt64(bitPattern: number), time.timeIntervalSinceReferenceDate.bitPattern]
    return StateToken(
      storeUUID: storeUUID, bytes: words.flatMap { word in (0..<8).map { UInt8(truncatingIfNeeded: word >> (56 - 8 * $0)) } })
  }

  /// The number of a transaction from its token.
  ///
  /// - Throws: `stateUnavailable` if the token is of another store or another copy of it, or later transactions were deleted.
  public func number(of token: StateToken) throws -> Int64 {
    let number = try numberForDeletion(of: token)
    if number < first - 1 {
      throw error(
        .stateUnavailable,
        "Transactions after the token were deleted. Take the current token, then read the objects, and continue with it; or keep more history."
      )
    }
    return number
  }

  /// The number of the last transaction to delete, from its token. Another program may already have deleted it and later ones.
  ///
  /// - Throws: `stateUnavailable` if the token is of another store or another copy of it.
  public func numberForDeletion(of token: StateToken) throws -> Int64 {
    guard token.storeUUID == storeUUID, token.bytes.count == 16 else {
      throw error(
        .stateUnavailable,
        "The token is of another store. Take the current token of this store, then read the objects, and continue with it.")
    }
    let words = (0..<2).map { token.bytes[$0 * 8..<$0 * 8 + 8].reduce(UInt64(0)) { $0 << 8 | UInt64($1) } }
    let number = Int64(bitPattern: words[0])
    func isOther(_ time: Date) -> Bool { time.timeIntervalSinceReferenceDate.bitPattern != words[1] }
    // A token without a time was made when its transaction had been deleted, so a history that still has it is another copy.
    if try number < 0 || number > last || time(number).map(isOther) == true {
      throw error(
        .stateUnavailable,
        "The token isn't of this history: an earlier version or another copy of the file has replaced it. Take the current token, "
          + "then read the objects, and continue with it.")
    }
    return number
  }
}
