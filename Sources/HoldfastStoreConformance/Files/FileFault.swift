public import HoldfastFiles

/// A failure of one call to a ``SimulatedFileSystem``.
public struct FileFault: Sendable, Hashable {
  /// What the call does instead of succeeding.
  public enum Effect: Sendable, Hashable {
    /// Fails with an `errno` value and changes nothing.
    case error(Int32)
    /// Reads or writes at most this many bytes.
    case short(Int)
  }

  /// The operation that fails.
  public var operation: StoreFileOperation
  /// The number of the call that fails. 1 is the next call.
  public var nth: Int
  /// What the call does.
  public var effect: Effect
  /// Whether all later calls fail in the same way.
  public var isPersistent: Bool

  /// Creates a fault.
  public init(_ operation: StoreFileOperation, nth: Int = 1, _ effect: Effect, isPersistent: Bool = false) {
    self.operation = operation
    self.nth = nth
    self.effect = effect
    self.isPersistent = isPersistent
  }
}

/// The pending faults, and the calls made so far.
struct FaultPlan: Sendable {
  private var faults: [(fault: FileFault, seen: Int)] = []
  /// The number of calls of each operation.
  private(set) var counts: [StoreFileOperation: Int] = [:]
  /// If set, shortens all reads and writes randomly.
  var shortening: DiskRandom?

  mutating func add(_ fault: FileFault) { faults.append((fault, 0)) }
  mutating func clear() { faults = [] }

  /// Counts a call and returns its fault, or nil if the call should succeed.
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

  /// The number of bytes that a read or write transfers.
  mutating func share(of count: Int, _ effect: FileFault.Effect?) -> Int {
    guard count > 0 else { return 0 }
    if case .short(let most) = effect { return min(count, max(most, 1)) }
    guard shortening != nil else { return count }
    return Int.random(in: 1...max(count / 2, 1), using: &shortening!)
  }
}
