import HoldfastStore

/// A save whose outcome is unknown, because its store threw `outcomeUnknown` from the commit. Confined to the context.
///
/// ```text
///             commit throws outcomeUnknown               the store committed
///   changes ───────────────────────────────▶ uncertain ───────────────────────▶ saved, except later changes
///      ▲                                      │  │  ▲ unknown
///      └──────────────────────────────────────┘  │  │
///            the store didn't commit             └──┘
/// ```
///
/// A rollback or reset discards it. The context asks for the outcome before it saves or refreshes anything.
///
/// Invariants:
///
/// 1. A context has at most one uncertain save, and it is of one store. With several stores, the stores before it have committed, and those
///    after it haven't.
/// 2. The objects of the save count as changed. Their rows and their records of links are relative to the store before the save. Adding a
///    link twice has no effect, so the records are also right for destinations that are read after the save took effect.
/// 3. New objects of the save have the permanent keys with which they were sent. So if their rows are fetched, they are found, and a retry
///    inserts no object twice.
/// 4. ``links`` and ``rows`` contain what was sent. A later change is a difference from them.
final class UncertainSave {
  /// The changes that were sent to the store.
  let part: StoreChanges
  /// The rows of ``StoreChanges/published``, before a receipt replaces some of them.
  let rows: [RowBatch]
  /// The changes of each object's to-many relationships, by index. Objects without any are left out.
  let links: [ObjectIdentifier: [ToManyState.Sent]]
  /// The changes for notifications.
  let changes: SavedChanges
  /// The objects of the context that have changes when the save is completed.
  var changedSince: Set<ObjectIdentifier> = []
  private let request: SaveOutcomeRequest

  init(_ part: StoreChanges, _ request: SaveOutcomeRequest, _ changes: SavedChanges) {
    self.part = part
    self.request = request
    self.changes = changes
    rows = part.published.map(\.batch)
    var links: [ObjectIdentifier: [ToManyState.Sent]] = [:]
    for object in part.inserted + part.updated {
      guard let states = object.toMany else { continue }
      links[ObjectIdentifier(object)] = (0..<object.plan.toManyCount).map { states[$0].sent }
    }
    self.links = links
  }

  /// The outcome of the save according to the store; never `unknown`.
  ///
  /// - Throws: ``/HoldfastStore/StoreError`` with code `outcomeUnknown` if the store doesn't know it, or can't be reached.
  ///   ``PersistenceError`` if the store was removed.
  func outcome(_ options: RequestOptions) throws -> SaveOutcome {
    let store = part.store, objects = part.inserted + part.updated + part.deleted
    assert(
      objects.allSatisfy { $0.hasChanges && $0.objectKey >= 0 && $0.flags.contains(.inList) },
      "Invariant 2 or 3 of an uncertain save is broken.")
    guard part.coordinator.persistentStores.contains(store) else { throw PersistenceError.missingStore(objects.map(\.id)) }
    guard store.monitored.answers.supports(SaveOutcomeRequest.self) else {
      throw unknown(
        "This type of store can't report the outcome. Fetch the objects in another context and compare them. Then call "
          + "resolveUncertainSave(wasCommitted:), or roll back.", isRetryable: false)
    }
    let outcome: SaveOutcome
    do {
      outcome = try store.wrapping(SaveOutcomeRequest.operation) { try store.monitored.answers.perform(request, options: options) }
    } catch {
      throw unknown("The request for the outcome failed. Save again later; nothing is lost.", cause: error, isRetryable: true)
    }
    if case .unknown = outcome {
      throw unknown("The store doesn't know the outcome yet. Save again later; nothing is lost.", isRetryable: true)
    }
    return outcome
  }

  private func unknown(_ reason: String, cause: (any Error)? = nil, isRetryable: Bool) -> StoreError {
    StoreError(
      .outcomeUnknown, operation: SaveOutcomeRequest.operation, path: part.store.locationDescription,
      reason: "The commit of the last save failed, and the store may have its changes. \(reason)", cause: cause, isRetryable: isRetryable)
  }
}
