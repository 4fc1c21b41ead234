import HoldfastStore
import HoldfastSupport

/// The checks that most rows of an entity pass: values that are required, and ranges of numbers and dates.
///
/// They have no references, so checking a row retains and copies nothing. If a row doesn't pass, the slot checks find out why.
struct QuickChecks {
  /// The presence bits of the slots that need a value, in words.
  private let required: FixedArray<UInt64>
  private let ranges: FixedArray<SlotRange>
  /// Whether the entity has no other checks.
  let areAll: Bool

  /// - Parameter wordCount: The number of words with presence bits in a row.
  init(_ slots: [SlotCheck], wordCount: Int, areAll: Bool) {
    required = FixedArray(repeating: 0, count: wordCount)
    for check in slots where check.isMandatory { required[check.slot.word] |= check.slot.bit }
    let found = slots.compactMap(\.range)
    ranges = FixedArray(repeating: SlotRange(slot: 0, bounds: .integers(0...0)), count: found.count)
    for (place, range) in found.enumerated() { ranges[place] = range }
    self.areAll = areAll
  }

  func deallocate() {
    required.deallocate()
    ranges.deallocate()
  }

  @inline(__always) func accept(_ row: RowPointer) -> Bool {
    for word in required.indices where row.presence(ofWord: word) & required[word] != required[word] { return false }
    for place in ranges.indices where !ranges[place].accepts(row) { return false }
    return true
  }

  /// Whether an object is valid, and nothing else has to be checked.
  @inline(__always) func areEnough(for object: ManagedObject) -> Bool {
    if !areAll { return false }
    guard object.flags.contains(.hasPrivateRow), let row = object.row else { return true }
    return accept(row)
  }
}

/// The numbers that a slot can have.
struct SlotRange {
  enum Bounds {
    case integers(ClosedRange<Int64>)
    case reals(ClosedRange<Double>)
  }

  let slot: SlotIndex
  let bounds: Bounds

  @inline(__always) func accepts(_ row: RowPointer) -> Bool {
    switch bounds {
    case .integers(let range): range.contains(row.integer(slot)) || !row.isPresent(slot)
    case .reals(let range): range.contains(row.real(slot)) || !row.isPresent(slot)
    }
  }
}
