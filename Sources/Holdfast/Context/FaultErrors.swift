import HoldfastStore

/// Why properties could not be read since that was acknowledged last.
struct FaultErrors {
  /// The last reason, a deleted row included.
  var latest: (any Error)?
  /// Whether a caller throws the errors, so that no placeholder leaves the context.
  let areThrown: Bool
  /// What callbacks read while a caller throws the errors: what they computed from placeholders stays, whatever the caller does.
  fileprivate(set) var ofCallbacks: [(id: ManagedObjectID, error: any Error)] = []
  /// The error for each object whose properties returned placeholders, and in which order these came.
  private var unread: [ManagedObjectID: (order: Int, error: any Error)] = [:]

  init(areThrown: Bool = false) { self.areThrown = areThrown }

  /// The first of the errors that are no deleted rows.
  var first: (any Error)? { unread.values.min { $0.order < $1.order }?.error }

  /// The objects that could not be read, in the order in which that happened.
  var objectIDs: [ManagedObjectID] { unread.sorted { $0.value.order < $1.value.order }.map(\.key) }

  mutating func insert(_ error: any Error, _ id: ManagedObjectID) {
    if unread[id] == nil { unread[id] = (unread.count, error) }
  }

  mutating func remove(_ id: ManagedObjectID) {
    if unread.isEmpty { return }
    unread[id] = nil
    if unread.isEmpty { latest = nil }
  }

  /// Forgets the errors of objects but for those of some.
  mutating func keep(_ isKept: (ManagedObjectID) -> Bool) {
    unread = unread.filter { isKept($0.key) }
    if unread.isEmpty { latest = nil }
  }
}

extension ManagedObjectContext {
  /// Why a property could not be read lately: the error of the store, or ``ContextError/Code/missingObject`` for a row that was deleted.
  /// Nil when none failed since the errors were acknowledged.
  public var faultError: (any Error)? { faultErrors.latest }

  /// Lets the context save again after properties could not be read; see ``FaultErrorPolicy/failSave``. No store request.
  ///
  /// Call it when nothing that depends on the placeholders is going to be saved. The next access to one of the objects reads its row again. An
  /// object that was changed while its row could not be read can't be saved before it is refreshed.
  public func acknowledgeFaultErrors() { faultErrors = FaultErrors(areThrown: faultErrors.areThrown) }

  /// Notes that a property of an object returns a placeholder because of an error.
  func noteUnread(_ id: ManagedObjectID, _ error: any Error) {
    faultErrors.latest = error
    if faultErrors.areThrown {
      if callbackDepth > 0 { faultErrors.ofCallbacks.append((id, error)) }
      return faultErrors.insert(error, id)
    }
    switch faultErrorPolicy {
    case .failSave: faultErrors.insert(error, id)
    case .placeholder: break
    case .trap: fatalError("A property of \(id) could not be read, and the policy of its context is to trap. \(error)")
    }
  }

  /// Throws when placeholders may be among what is to be saved.
  func refuseUnreadValues() throws {
    guard let error = faultErrors.first else { return }
    let ids = faultErrors.objectIDs
    throw ContextError(
      .unreadValues, objectID: ids.count == 1 ? ids[0] : nil,
      reason:
        "Properties of \(ids.count == 1 ? "an object" : "\(ids.count) objects") couldn't be read, and what is to be saved may depend on "
        + "the placeholders that they returned. Refresh the objects or roll back and compute the changes again, or call "
        + "acknowledgeFaultErrors() if nothing depends on them.",
      objectIDs: ids, cause: error)
  }

  /// Runs a body that reads faults, and throws what could not be read, deleted rows included: nothing is computed from placeholders.
  func refusingFaultErrors<Result>(_ body: () throws -> Result) throws -> Result {
    let (result, errors) = try collectingFaultErrors(body)
    if let error = errors.latest { throw error }
    return result
  }

  /// Runs a body that reads faults, and throws the error of one that could not be read. A deleted row is no error.
  func throwingFaultErrors<Result>(_ body: () throws -> Result) throws -> Result {
    let (result, errors) = try collectingFaultErrors(body)
    if let error = errors.first { throw error }
    if faultErrors.latest == nil { faultErrors.latest = errors.latest }
    return result
  }

  private func collectingFaultErrors<Result>(_ body: () throws -> Result) rethrows -> (Result, FaultErrors) {
    let before = faultErrors
    faultErrors = FaultErrors(areThrown: true)
    defer {
      let ofCallbacks = faultErrors.ofCallbacks
      faultErrors = before
      for (id, error) in ofCallbacks { noteUnread(id, error) }
    }
    let result = try body()
    return (result, faultErrors)
  }

  /// Runs a callback of an object, which may keep what it computes from a placeholder.
  func runningCallback(_ body: () -> Void) {
    callbackDepth += 1
    defer { callbackDepth -= 1 }
    body()
  }
}
