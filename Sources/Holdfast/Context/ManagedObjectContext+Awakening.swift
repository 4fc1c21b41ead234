/// Notifies objects when they receive their row from the store, and when they become faults.
extension ManagedObjectContext {
  /// Records that an object is about to receive its row. It is awakened at the end of the current operation.
  func noteFulfilment(_ object: ManagedObject) {
    guard hooks[Int(object.flags.entityIndex)].contains(.awakeFromFetch), object.row == nil || object.isInaccessible else { return }
    fulfilled.append(object)
  }

  /// Awakens the objects that received their rows, each once, in that order, before the caller receives any of them.
  ///
  /// A callback may read further objects; they are awakened as well.
  func awakenFulfilled() {
    if fulfilled.isEmpty || awakeningHolds > 0 { return }
    while nextToAwake < fulfilled.count {
      let object = fulfilled[nextToAwake]
      nextToAwake += 1
      if object.row == nil || !object.flags.isDisjoint(with: [.inaccessible, .detached]) { continue }
      object.flags.insert(.awakening)
      runningCallback { object.awakeFromFetch() }
      object.flags.remove(.awakening)
    }
    fulfilled = []
    nextToAwake = 0
  }

  /// Runs a body during which no object may be awakened, because it holds pointers to rows or has changed only one end of a relationship.
  ///
  /// Objects that receive their rows meanwhile are awakened afterwards.
  @inline(__always) func holdingAwakening<Result, Failure: Error>(_ body: () throws(Failure) -> Result) throws(Failure) -> Result {
    if !awakensObjects { return try body() }
    awakeningHolds += 1
    defer { releaseAwakening() }
    return try body()
  }

  /// Ends one hold on awakening.
  func releaseAwakening() {
    awakeningHolds = max(0, awakeningHolds - 1)
    awakenFulfilled()
  }

  /// Whether an object has a row to give up and a class that overrides the callbacks for that.
  func hearsOfFault(_ object: ManagedObject) -> Bool {
    turnsObjectsIntoFaults && object.row != nil && object.flags.isDisjoint(with: [.inaccessible, .detached])
      && hooks[Int(object.flags.entityIndex)].contains(.turnIntoFault)
  }
}
