/// Objects hear of their rows: when they got one from the store, and when they give it up.
extension ManagedObjectContext {
  /// Notes that an object is about to get its row. It is awakened when what goes on has come to an end.
  func noteFulfilment(_ object: ManagedObject) {
    guard hooks[Int(object.flags.entityIndex)].contains(.awakeFromFetch), object.row == nil || object.isInaccessible else { return }
    fulfilled.append(object)
  }

  /// Calls the objects that got their rows, each once, in that order: before anybody who asked for one sees it.
  ///
  /// What is called may read, and so fulfil, further objects; those are called as well.
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

  /// Runs something during which no object may be awakened, because it holds rows or has changed one end of a relationship
  /// only; objects that got their rows meanwhile are awakened afterwards.
  @inline(__always) func holdingAwakening<Result, Failure: Error>(_ body: () throws(Failure) -> Result) throws(Failure) -> Result {
    if !awakensObjects { return try body() }
    awakeningHolds += 1
    defer { releaseAwakening() }
    return try body()
  }

  /// Lets objects be awakened again that one caller has held.
  func releaseAwakening() {
    awakeningHolds = max(0, awakeningHolds - 1)
    awakenFulfilled()
  }

  /// Whether an object has a row that it can give up, and a class that wants to hear of that.
  func hearsOfFault(_ object: ManagedObject) -> Bool {
    turnsObjectsIntoFaults && object.row != nil && object.flags.isDisjoint(with: [.inaccessible, .detached])
      && hooks[Int(object.flags.entityIndex)].contains(.turnIntoFault)
  }
}
