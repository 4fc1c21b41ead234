import HoldfastStore

/// The errors of reading properties since they were last acknowledged.
struct FaultErrors {
  /// The number of object callbacks being run.
  fileprivate var callbackDepth = 0
  /// The most recent error, including deleted rows.
  var latest: (any Error)?
  /// Whether the current operation throws the errors, so that its result doesn't depend on placeholders.
  let areThrown: Bool
  /// The errors in callbacks during an operation that throws errors.
  ///
  /// Values that the callbacks computed from placeholders remain in their objects even if the operation throws.
  fileprivate(set) var ofCallbacks: [(id: ManagedObjectID, error: any Error)] = []
  /// The first error of each object whose properties returned placeholders, with its index in the order of occurrence.
  private var unread: [ManagedObjectID: (order: Int, error: any Error)] = [:]

  /// The number of errors inserted so far: the index of the next one.
  private var insertionCount = 0

  init() { areThrown = false }

  /// Creates a value without errors that has the callback depth of another.
  fileprivate init(areThrown: Bool, in callbacks: FaultErrors) {
    self.areThrown = areThrown
    callbackDepth = callbacks.callbackDepth
  }

  /// The first error that isn't a deleted row.
  var first: (any Error)? { unread.values.min { $0.order < $1.order }?.error }

  /// The objects that couldn't be read, in the order in which the errors occurred.
  var objectIDs: [ManagedObjectID] { unread.sorted { $0.value.order < $1.value.order }.map(\.key) }

  mutating func insert(_ error: any Error, _ id: ManagedObjectID) {
    if unread[id] != nil { return }
    unread[id] = (insertionCount, error)
    insertionCount += 1
  }

  mutating func remove(_ id: ManagedObjectID) {
    if unread.isEmpty { return }
    unread[id] = nil
    if unread.isEmpty { latest = nil }
  }

  /// Keeps the errors of the objects that the closure accepts, and removes all others.
  mutating func keep(_ isKept: (ManagedObjectID) -> Bool) {
    unread = unread.filter { isKept($0.key) }
    if unread.isEmpty { latest = nil }
  }
}

extension ContextCore {
  /// The most recent error of reading a property, or nil.
  var faultError: (any Error)? { faultErrors.latest }

  /// Allows saves again after properties couldn't be read. Sends no store request.
  func acknowledgeFaultErrors() { faultErrors = FaultErrors(areThrown: faultErrors.areThrown, in: faultErrors) }

  /// Records that a property of an object returns a placeholder because of an error.
  func noteUnread(_ id: ManagedObjectID, _ error: any Error) {
    faultErrors.latest = error
    if faultErrors.areThrown {
      if faultErrors.callbackDepth > 0 { faultErrors.ofCallbacks.append((id, error)) }
      return faultErrors.insert(error, id)
    }
    switch faultErrorPolicy {
    case .failSave: faultErrors.insert(error, id)
    case .placeholder: break
    case .trap: fatalError("A property of \(id) could not be read, and the policy of its context is to trap. \(error)")
    }
  }

  /// Throws if the changes to save may depend on placeholders.
  func refuseUnreadValues() throws {
    guard let error = faultErrors.first else { return }
    let ids = faultErrors.objectIDs
    throw PersistenceError(
      .unreadValues, objectID: ids.count == 1 ? ids[0] : nil,
      reason:
        "Properties of \(ids.count == 1 ? "an object" : "\(ids.count) objects") couldn't be read, and the changes to save may depend on "
        + "the placeholders that they returned. Refresh the objects, or roll back and compute the changes again. If no change depends on "
        + "placeholders, call acknowledgeFaultErrors().",
      objectIDs: ids, cause: error)
  }

  /// Runs a body that reads faults, and throws if a read failed or a row was deleted, so that no result depends on placeholders.
  func refusingFaultErrors<Result>(_ body: () throws -> Result) throws -> Result {
    let (result, errors) = try collectingFaultErrors(body)
    if let error = errors.latest { throw error }
    return result
  }

  /// Runs a body that reads faults, and throws the first error. A deleted row isn't an error.
  func throwingFaultErrors<Result>(_ body: () throws -> Result) throws -> Result {
    let (result, errors) = try collectingFaultErrors(body)
    if let error = errors.first { throw error }
    if faultErrors.latest == nil { faultErrors.latest = errors.latest }
    return result
  }

  private func collectingFaultErrors<Result>(_ body: () throws -> Result) rethrows -> (Result, FaultErrors) {
    let before = faultErrors
    faultErrors = FaultErrors(areThrown: true, in: before)
    defer {
      let ofCallbacks = faultErrors.ofCallbacks
      faultErrors = before
      for (id, error) in ofCallbacks { noteUnread(id, error) }
    }
    let result = try body()
    return (result, faultErrors)
  }

  /// Runs a callback of an object. Values that it computes from placeholders may remain in the object.
  func runningCallback(_ body: () -> Void) {
    faultErrors.callbackDepth += 1
    defer { faultErrors.callbackDepth -= 1 }
    body()
  }
}
