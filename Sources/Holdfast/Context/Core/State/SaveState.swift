/// What a context keeps for its saves: whether one is in progress, and why the next one can't begin as usual.
struct SaveState {
  /// Whether a save or a merge is in progress. Its callbacks can't begin another one, nor roll the context back or reset it.
  var isInProgress = false
  /// Whether the save in progress hasn't collected the changes yet. Children that callbacks use may then give new objects permanent IDs.
  var isCallingFirst = false
  /// The objects that have changed since their last `willSave`; nil except while a save calls it.
  var changesSinceCall: ChangesSinceCall?
  /// The objects whose rules saves have left to a later check; nil if saves check the rules of the model themselves. See
  /// ``MigrationStage/completingObjects(_:)``.
  var unchecked: UncheckedObjects?
  /// The save whose outcome is unknown; nil if there is none.
  private(set) var uncertain: UncertainSave?
  /// Why changes were lost since the last rollback; nil if none were. Saves are refused.
  private(set) var loss: PersistenceError?
  /// The compiled regular expressions of the model that saves have used.
  private(set) lazy var patterns = PatternCache()

  /// Keeps a save whose outcome is unknown.
  mutating func keep(_ save: UncertainSave) { uncertain = save }

  /// Removes and returns the save whose outcome is unknown.
  mutating func takeUncertain() -> UncertainSave? {
    defer { uncertain = nil }
    return uncertain
  }

  /// Refuses saves until ``forgetLoss()``. The first reason is kept.
  mutating func noteLoss(_ reason: @autoclosure () -> PersistenceError) {
    if loss == nil { loss = reason() }
  }

  mutating func forgetLoss() { loss = nil }
}
