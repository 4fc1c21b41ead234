import HoldfastStore

/// The errors of reading properties since they were last acknowledged.
struct FaultErrors {
  /// The most recent error, including deleted rows.
  var latest: (any Error)?
  /// Whether the current operation throws the errors, so that its result doesn't depend on placeholders.
  let areThrown: Bool
  /// Whether the operation is a closure of the program, which may change objects.
  fileprivate let isProgram: Bool
  /// ``FaultState/changeCount`` at the first error in a closure of the program; nil if there was none.
  ///
  /// Changes since then may depend on placeholders.
  fileprivate var changeCountAtError: Int?
  /// The errors that remain when the operation throws: changes of objects may depend on their placeholders.
  ///
  /// Those in callbacks, and those in a closure of the program that changed objects afterwards.
  fileprivate var lasting: [(id: ManagedObjectID, error: any Error)] = []
  /// The first error of each object whose properties returned placeholders, with its index in the order of occurrence.
  private var unread: [ManagedObjectID: (order: Int, error: any Error)] = [:]

  /// The number of errors inserted so far: the index of the next one.
  private var insertionCount = 0

  /// Creates a value without errors.
  init(areThrown: Bool = false, isProgram: Bool = false) { (self.areThrown, self.isProgram) = (areThrown, isProgram) }

  /// The first error that isn't a deleted row.
  var first: (any Error)? { unread.values.min { $0.order < $1.order }?.error }

  /// The objects that couldn't be read, in the order in which the errors occurred.
  var objectIDs: [ManagedObjectID] { all.map(\.id) }

  /// The first error of each object, in the order in which they occurred.
  fileprivate var all: [(id: ManagedObjectID, error: any Error)] {
    unread.sorted { $0.value.order < $1.value.order }.map { ($0.key, $0.value.error) }
  }

  mutating func insert(_ error: any Error, _ id: ManagedObjectID) {
    if unread[id] != nil { return }
    unread[id] = (insertionCount, error)
    insertionCount += 1
  }

  /// What ``remove(_:)`` has removed.
  struct Removed {
    fileprivate let id: ManagedObjectID
    fileprivate let unread: (order: Int, error: any Error)
    fileprivate let latest: (any Error)?
  }

  /// Removes the error of an object. Returns nil if it has none.
  @discardableResult mutating func remove(_ id: ManagedObjectID) -> Removed? {
    if unread.isEmpty { return nil }
    guard let removed = unread.removeValue(forKey: id) else { return nil }
    defer { if unread.isEmpty { latest = nil } }
    return Removed(id: id, unread: removed, latest: latest)
  }

  /// Adds the removed error of an object again. Nothing else has changed since.
  mutating func putBack(_ removed: Removed) {
    unread[removed.id] = removed.unread
    latest = removed.latest
  }

  /// Keeps the errors of the objects that the closure accepts, and removes all others.
  mutating func keep(_ isKept: (ManagedObjectID) -> Bool) {
    unread = unread.filter { isKept($0.key) }
    if unread.isEmpty { latest = nil }
  }
}

extension ContextCore {
  /// The most recent error of reading a property, or nil.
  var faultError: (any Error)? { faults.errors.latest }

  /// Allows saves again after properties couldn't be read. Sends no store request.
  func acknowledgeFaultErrors() {
    faults.errors = FaultErrors(areThrown: faults.errors.areThrown, isProgram: faults.errors.isProgram)
  }

  /// Records that a property of an object returns a placeholder because of an error.
  ///
  /// - Parameter lasts: Whether changes of objects already depend on the placeholder.
  func noteUnread(_ id: ManagedObjectID, _ error: any Error, lasts: Bool = false) {
    faults.errors.latest = error
    if faults.errors.areThrown {
      if lasts || faults.isInCallback { faults.errors.lasting.append((id, error)) }
      if faults.errors.isProgram && faults.errors.changeCountAtError == nil { countChanges() }
      return faults.errors.insert(error, id)
    }
    switch faults.errorPolicy {
    case .failSave: faults.errors.insert(error, id)
    case .placeholder: break
    case .trap: fatalError("A property of \(id) could not be read, and the policy of its context is to trap. \(error)")
    }
  }

  /// Throws if the changes to save may depend on placeholders.
  func refuseUnreadValues() throws {
    guard let error = faults.errors.first else { return }
    let ids = faults.errors.objectIDs
    throw PersistenceError(
      .unreadValues, objectID: ids.count == 1 ? ids[0] : nil,
      reason:
        "Properties of \(ids.count == 1 ? "an object" : "\(ids.count) objects") couldn't be read, and the changes to save may depend on "
        + "the placeholders that they returned. Refresh the objects, or roll back and compute the changes again. If no change depends on "
        + "placeholders, call acknowledgeFaultErrors().",
      objectIDs: ids, cause: error)
  }

  /// Runs a body that reads faults, and throws if a read failed or a row was deleted, so that no result depends on placeholders.
  ///
  /// - Parameter isProgram: Whether the body is a closure of the program. If it changes objects after an error, later saves are refused.
  func refusingFaultErrors<Result>(isProgram: Bool = false, _ body: () throws -> Result) throws -> Result {
    let (result, errors) = try collectingFaultErrors(isProgram: isProgram, body)
    if let error = errors.latest { throw error }
    return result
  }

  /// Runs a body that reads faults, and throws the first error. A deleted row isn't an error.
  func throwingFaultErrors<Result>(_ body: () throws -> Result) throws -> Result {
    let (result, errors) = try collectingFaultErrors(body)
    if let error = errors.first { throw error }
    if faults.errors.latest == nil { faults.errors.latest = errors.latest }
    return result
  }

  private func collectingFaultErrors<Result>(
    isProgram: Bool = false, _ body: () throws -> Result
  ) rethrows -> (Result, FaultErrors) {
    let before = faults.errors
    faults.errors = FaultErrors(areThrown: true, isProgram: isProgram)
    defer {
      let isChanged = faults.errors.changeCountAtError.map { $0 != faults.changeCount } ?? false
      let lasting = isChanged ? faults.errors.lasting + faults.errors.all : faults.errors.lasting
      faults.errors = before
      for (id, error) in lasting { noteUnread(id, error, lasts: true) }
    }
    let result = try body()
    return (result, faults.errors)
  }

  /// Counts the changes of objects from now on, including further changes of objects that have changed before.
  private func countChanges() {
    for object in changes.objects { object.flags.remove(.noted) }
    faults.errors.changeCountAtError = faults.changeCount
  }

  /// Counts a change that has ended. An error during the change may have made it incomplete.
  func noteEndOfChange() {
    if faults.errors.changeCountAtError != nil { faults.noteChange() }
  }

  /// Runs a callback of an object. Values that it computes from placeholders may remain in the object.
  func runningCallback(_ body: () -> Void) {
    faults.beginCallback()
    defer { faults.endCallback() }
    body()
  }
}
