/// What a context keeps for reading faults: how it reads them, and the errors.
struct FaultState {
  /// Whether reading a fault also reads its siblings.
  var areFiredInBatches = true
  /// What happens when a property can't be read, unless the current operation throws the errors.
  var errorPolicy = FaultErrorPolicy.failSave
  /// The errors since they were last acknowledged, or those of the current operation if it throws them.
  var errors = FaultErrors()
  /// The number of recorded changes of objects. It shows whether objects have changed since an error.
  private(set) var changeCount = 0
  /// The number of object callbacks being run.
  private var callbackDepth = 0

  var isInCallback: Bool { callbackDepth > 0 }

  mutating func beginCallback() { callbackDepth += 1 }

  mutating func endCallback() { callbackDepth -= 1 }

  /// Counts a change.
  mutating func noteChange() { changeCount += 1 }
}
