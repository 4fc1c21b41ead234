/// Notifies objects when they receive their row from the store, and when they become faults.
extension ContextCore {
  /// Records that an object is about to receive its row. It is awakened at the end of the current operation.
  func noteFulfilment(_ object: ManagedObject) {
    guard bound.hooks(of: object).contains(.awakeFromFetch), object.row == nil || object.isInaccessible else { return }
    awakening.append(object)
  }

  /// Awakens the objects that received their rows, each once, in that order, before the caller receives any of them.
  ///
  /// A callback may read further objects; they are awakened as well.
  func awakenFulfilled() {
    while let object = awakening.takeNext() {
      if object.row == nil || !object.flags.isDisjoint(with: [.inaccessible, .detached]) { continue }
      object.flags.insert(.awakening)
      runningCallback { object.awakeFromFetch() }
      object.flags.remove(.awakening)
    }
  }

  /// Runs a body during which no object may be awakened, because it holds pointers to rows or has changed only one end of a relationship.
  ///
  /// Objects that receive their rows meanwhile are awakened afterwards.
  @inline(__always) func holdingAwakening<Result, Failure: Error>(_ body: () throws(Failure) -> Result) throws(Failure) -> Result {
    if !bound.awakensObjects { return try body() }
    awakening.hold()
    defer { releaseAwakening() }
    return try body()
  }

  /// Ends one hold on awakening.
  func releaseAwakening() {
    awakening.release()
    awakenFulfilled()
  }

  /// Whether an object has a row, and its class overrides a callback for objects that become faults.
  func hearsOfFault(_ object: ManagedObject) -> Bool {
    bound.turnsObjectsIntoFaults && object.row != nil && object.flags.isDisjoint(with: [.inaccessible, .detached])
      && bound.hooks(of: object).contains(.turnIntoFault)
  }
}
