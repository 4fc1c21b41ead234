public import HoldfastFiles

/// A call of a ``SimulatedFileSystem`` that is to go wrong.
public struct FileFault: Sendable, Hashable {
  /// What the call does instead of what it should.
  public enum Effect: Sendable, Hashable {
    /// It fails with an `errno` number and changes nothing.
    case error(Int32)
    /// It reads or writes at most this many bytes.
    case short(Int)
  }

  /// The call.
  public var operation: StoreFileOperation
  /// Which of the calls from now on: 1 is the next one.
  public var nth: Int
  /// What it does.
  public var effect: Effect
  /// Whether all later calls do the same.
  public var isPersistent: Bool

  /// Makes a fault.
  public init(_ operation: StoreFileOperation, nth: Int = 1, _ effect: Effect, isPersistent: Bool = false) {
    self.operation = operation
    self.nth = nth
    self.effect = effect
    self.isPersistent = isPersistent
  }
}

/// The faults that are still to come, and the calls that were made.
struct FaultPlan: Sendable {
  private var faults: [(fault: FileFault, seen: Int)] = []
  /// How often each call was made.
  private(set) var counts: [StoreFileOperation: Int] = [:]
  /// Shortens every reading and writing by chance.
  var shortening: DiskRandom?

  mutating func add(_ fault: FileFault) { faults.append((fault, 0)) }
  mutating func clear() { faults = [] }

  /// Counts a call and tells what it does: nil for what it should.
  mutating func enter(_ operation: StoreFileOperation) -> FileFault.Effect? {
    counts[operation, default: 0] += 1
    var effect: FileFault.Effect?
    for place in faults.indices where faults[place].fault.operation == operation {
      faults[place].seen += 1
      let (fault, seen) = faults[place]
      if seen == fault.nth || fault.isPersistent && seen > fault.nth { effect = effect ?? fault.effect }
    }
    return effect
  }

  /// How many of the bytes that were asked for a reading or writing deals with.
  mutating func share(of count: Int, _ effect: FileFault.Effect?) -> Int {
    guard count > 0 else { return 0 }
    if case .short(let most) = effect { return min(count, max(most, 1)) }
    guard shortening != nil else { return count }
    return Int.random(in: 1...max(count / 2, 1), using: &shortening!)
  }
}
