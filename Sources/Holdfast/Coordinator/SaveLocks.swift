import HoldfastStore

/// The save locks of several stores.
///
/// While it waits for a lock, it holds no other lock, so a busy store doesn't prevent saves in other stores. Then it acquires the other locks
/// without waiting. If one of them is taken, it releases all locks and waits for that one.
struct SaveLocks {
  let stores: [PersistentStore]

  private enum Attempt<Result> {
    case ended(Result)
    /// The lock of this store is taken.
    case taken(Int)
  }

  /// Runs a closure with all locks.
  ///
  /// - Throws: `timedOut` if a lock is taken until the deadline, and the errors of the closure.
  func withLocks<Result>(to operation: String, _ options: RequestOptions, _ body: () throws -> Result) throws -> Result {
    if stores.isEmpty { return try body() }
    var awaited = 0
    while true {
      switch try stores[awaited].saveLock.withLock(to: operation, options, { try withOthers(from: 0, except: awaited, body) }) {
      case .ended(let result): return result
      case .taken(let index): awaited = index
      }
    }
  }

  private func withOthers<Result>(from index: Int, except held: Int, _ body: () throws -> Result) rethrows -> Attempt<Result> {
    if index == stores.count { return .ended(try body()) }
    if index == held { return try withOthers(from: index + 1, except: held, body) }
    return try stores[index].saveLock.withLockIfAvailable { try withOthers(from: index + 1, except: held, body) } ?? .taken(index)
  }
}
