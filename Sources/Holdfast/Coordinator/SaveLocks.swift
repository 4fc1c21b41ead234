import HoldfastStore

/// Serializes changes of one store, or changes of a coordinator's set of stores. It protects writing to stores, not data in memory.
///
/// Its methods trap if the caller's thread holds the lock, because it would then wait for itself.
final class SaveLock: Sendable {
  private let lock = OwnedLock()

  func withLock<Result>(_ body: () throws -> Result) rethrows -> Result {
    checkIsNotHeld()
    return try lock.withLock(body)
  }

  /// - Throws: `timedOut` if the lock is taken until the deadline, and the errors of the closure.
  func withLock<Result>(to operation: String, _ options: RequestOptions, _ body: () throws -> Result) throws -> Result {
    checkIsNotHeld()
    return try lock.withLock(to: operation, options, body)
  }

  /// Returns nil, without calling the closure, if the lock is taken, also by the caller's thread.
  func withLockIfAvailable<Result>(_ body: () throws -> Result) rethrows -> Result? { try lock.withLockIfAvailable(body) }

  private func checkIsNotHeld() {
    precondition(
      !lock.isHeld,
      "A store was saved or changed by code that its own save or change calls, such as an observer of requests or a log handler. "
        + "Do that later, for example in a task.")
  }
}

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
