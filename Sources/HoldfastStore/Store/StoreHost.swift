/// Receives a store's reports of changes by others: by other processes, servers or triggers.
///
/// A store gets its host when it opens, and may keep it. The coordinator removes the reported rows from its cache and announces the changes
/// in `savedChanges()`. Reports before ``IncrementalStore/open(model:host:)`` returns and after ``IncrementalStore/close()`` have no effect.
public final class StoreHost: Sendable {
  private let receive: @Sendable (StoreChange) -> Void

  /// A host that ignores all reports, for stores without a coordinator.
  public static let none = StoreHost { _ in }

  /// Creates a host.
  ///
  /// - Parameter receive: Receives each report, on the thread of the store.
  public init(_ receive: @escaping @Sendable (StoreChange) -> Void) { self.receive = receive }

  /// Reports changes by others. The object IDs contain the store's own keys.
  ///
  /// *Requires*: A read view that begins after the call sees the changes. The caller holds no lock that requests to the store take.
  ///
  /// A report of the store's own saves is harmless, but costs cached rows. It can be sent from any thread, at any time, also during a request.
  public func objectsChanged(_ change: StoreChange) { receive(change) }
}
