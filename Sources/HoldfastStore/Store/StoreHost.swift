import Synchronization

/// Receives a store's reports of changes by other processes, servers or triggers.
///
/// A store receives its host when it opens, and may keep it. The coordinator removes the reported rows from its cache and announces the
/// changes in `savedChanges()`. Reports have no effect before ``IncrementalStore/open(model:host:)`` returns, or after the store is closed or
/// removed from the coordinator.
public final class StoreHost: Sendable {
  /// The configuration with which the store is opened; nil if it may have objects of all entities.
  ///
  /// Most stores needn't know it. A file of Core Data may have been created for a configuration, and then has no place for the objects of
  /// other entities.
  public let configuration: String?
  private let receive: @Sendable (StoreChange) -> Void
  private let check = Mutex<OtherSavesCheck?>(nil)
  private let load = Mutex<(@Sendable (RequestOptions) throws -> Void)?>(nil)

  /// A host that ignores all reports, for stores without a coordinator.
  public static var none: StoreHost { StoreHost { _ in } }

  /// Creates a host.
  ///
  /// - Parameters:
  ///   - configuration: The configuration with which the store is opened. Defaults to none.
  ///   - receive: Receives each report, on the thread that calls ``objectsChanged(_:)``.
  public init(configuration: String? = nil, _ receive: @escaping @Sendable (StoreChange) -> Void) {
    (self.configuration, self.receive) = (configuration, receive)
  }

  /// Reports changes that weren't saved through this store. The object IDs contain the store's own keys.
  ///
  /// *Requires*: A read view that begins after the call sees the changes. The caller holds no lock that requests to the store acquire.
  ///
  /// Any thread can call this method at any time, even during a request. Don't report saves of this store: that removes their rows from the
  /// cache and announces the changes twice. If nothing else retains the coordinator, the call closes the store.
  public func objectsChanged(_ change: StoreChange) { receive(change) }

  /// Gives the host a function that finds out whether another process may have saved since its last call. Call it while the store opens.
  ///
  /// For stores whose rows aren't in memory. The coordinator calls the function before it uses rows that it has read earlier, on any thread,
  /// and discards these rows if it returns true. So the function must be fast: SQLite compares a few bytes of shared memory. Saves of this
  /// store don't count. The function must not retain the host.
  ///
  /// One thread at a time calls the function, and others wait for it. It may send requests to the store itself. It must not use a context or
  /// wait for another thread that does: reading a fault in the function traps.
  public func setCheckForOtherSaves(_ haveOthersSaved: @escaping @Sendable () -> Bool) {
    check.withLock { $0 = OtherSavesCheck(haveOthersSaved) }
  }

  /// The function that the store has given; nil if it has given none.
  package var checkForOtherSaves: OtherSavesCheck? { check.withLock { $0 } }

  /// Gives the host a function that makes the store see what other processes have saved. Call it while the store opens.
  ///
  /// For stores that see it only when they save. The coordinator calls the function before a save computes values from rows of the store,
  /// under the store's save lock. The function receives the options of the save, whose deadline limits its waiting. It must not retain the
  /// host.
  public func setLoadingOfOtherSaves(_ loadOtherSaves: @escaping @Sendable (RequestOptions) throws -> Void) {
    load.withLock { $0 = loadOtherSaves }
  }

  /// The function that the store has given; nil if it has given none.
  package var loadingOfOtherSaves: (@Sendable (RequestOptions) throws -> Void)? { load.withLock { $0 } }
}

/// Whether another process may have saved. A struct, because a function in an optional or in a mutex is called through others.
package struct OtherSavesCheck: Sendable {
  package let haveOthersSaved: @Sendable () -> Bool

  init(_ haveOthersSaved: @escaping @Sendable () -> Bool) { self.haveOthersSaved = haveOthersSaved }
}
