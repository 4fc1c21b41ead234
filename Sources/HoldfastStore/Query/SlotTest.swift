#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#else
  import Darwin
#endif
#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Compares a slot with a constant. The closure is selected once, so testing a row is a load and a comparison.
struct SlotTest {
  typealias Test = (RowPointer) -> Bool
  let slot: SlotIndex
  let column: ColumnType
  let op: ComparisonOperator
  let constant: StoreValue
  let folding: TextFolding

  /// The result of the comparison for nil.
  var whenNil: Bool {
    switch op {
    case .equalTo: constant == .null
    case .notEqualTo: constant != .null
    default: false
    }
  }

  func compiled() -> Test {
    if constant == .null { return nilTest() }
    switch column.cellKind {
    case .integer: return integerTest() ?? generalTest()
    case .real: return realTest() ?? generalTest()
    case .key: return keyTest()
    case .bytes: return bytesTest() ?? generalTest()
    }
  }

  private func nilTest() -> Test {
    let slot = slot
    switch op {
    case .equalTo: return { !$0.isPresent(slot) }
    case .notEqualTo: return { $0.isPresent(slot) }
    default: return { _ in false }
    }
  }

  private func generalTest() -> Test {
    let (slot, column, op, constant, folding) = (slot, column, op, constant, folding)
    return { ValueComparison.holds($0.exactValue(slot, column), op, constant, folding) }
  }

  private func integerTest() -> Test? {
    guard let number = constant.integer else { return nil }
    let slot = slot
    switch op {
    case .equalTo: return { $0.isPresent(slot) && $0.integer(slot) == number }
    case .notEqualTo: return { !$0.isPresent(slot) || $0.integer(slot) != number }
    case .lessThan: return { $0.isPresent(slot) && $0.integer(slot) < number }
    case .lessThanOrEqualTo: return { $0.isPresent(slot) && $0.integer(slot) <= number }
    case .greaterThan: return { $0.isPresent(slot) && $0.integer(slot) > number }
    case .greaterThanOrEqualTo: return { $0.isPresent(slot) && $0.integer(slot) >= number }
    case .beginsWith, .endsWith, .contains: return { _ in false }
    }
  }

  private func realTest() -> Test? {
    guard let number = constant.real else { return nil }
    let slot = slot
    switch op {
    case .equalTo: return { $0.isPresent(slot) && $0.real(slot) == number }
    case .notEqualTo: return { !$0.isPresent(slot) || $0.real(slot) != number }
    case .lessThan: return { $0.isPresent(slot) && $0.real(slot) < number }
    case .lessThanOrEqualTo: return { $0.isPresent(slot) && $0.real(slot) <= number }
    case .greaterThan: return { $0.isPresent(slot) && $0.real(slot) > number }
    case .greaterThanOrEqualTo: return { $0.isPresent(slot) && $0.real(slot) >= number }
    case .beginsWith, .endsWith, .contains: return { _ in false }
    }
  }

  private func keyTest() -> Test {
    guard case .objectID(let id) = constant else { return { _ in false } }
    let (slot, key) = (slot, id.key)
    switch op {
    case .equalTo: return { $0.isPresent(slot) && $0.key(slot) == key }
    case .notEqualTo: return { !$0.isPresent(slot) || $0.key(slot) != key }
    default: return { _ in false }
    }
  }

  private func bytesTest() -> Test? {
    guard let needle = constant.comparedBytes else { return nil }
    let slot = slot
    if !folding.isEmpty, column.isText { return foldedTest(needle) }
    switch op {
    case .equalTo: return { $0.isPresent(slot) && Bytes.equal($0.bytes(slot), needle) }
    case .notEqualTo: return { !($0.isPresent(slot) && Bytes.equal($0.bytes(slot), needle)) }
    case .lessThan: return { $0.isPresent(slot) && Bytes.order($0.bytes(slot), needle) < 0 }
    case .lessThanOrEqualTo: return { $0.isPresent(slot) && Bytes.order($0.bytes(slot), needle) <= 0 }
    case .greaterThan: return { $0.isPresent(slot) && Bytes.order($0.bytes(slot), needle) > 0 }
    case .greaterThanOrEqualTo: return { $0.isPresent(slot) && Bytes.order($0.bytes(slot), needle) >= 0 }
    case .beginsWith: return { $0.isPresent(slot) && Bytes.hasPrefix($0.bytes(slot), needle) }
    case .endsWith: return { $0.isPresent(slot) && Bytes.hasSuffix($0.bytes(slot), needle) }
    case .contains: return { $0.isPresent(slot) && Bytes.contains($0.bytes(slot), needle) }
    }
  }

  private func foldedTest(_ needle: [UInt8]) -> Test {
    let (slot, op, folding) = (slot, op, folding)
    let folded = needle.withUnsafeBytes { bytes in
      var out: [UInt8] = []
      folding.fold(bytes, into: &out)
      return out
    }
    return { row in
      guard row.isPresent(slot) else { return op == .notEqualTo }
      let text = row.bytes(slot)
      return folded.withUnsafeBytes { needle in
        switch op {
        case .equalTo: return folding.equals(text, folded: needle)
        case .notEqualTo: return !folding.equals(text, folded: needle)
        case .beginsWith: return folding.hasPrefix(text, folded: needle)
        case .endsWith: return folding.hasSuffix(text, folded: needle)
        case .contains: return folding.contains(text, folded: needle)
        case .lessThan: return folding.compare(text, needle) < 0
        case .lessThanOrEqualTo: return folding.compare(text, needle) <= 0
        case .greaterThan: return folding.compare(text, needle) > 0
        case .greaterThanOrEqualTo: return folding.compare(text, needle) >= 0
        }
      }
    }
  }
}

/// Comparisons of bytes without copying them.
public enum Bytes {
  /// Whether two byte sequences are equal.
  @inline(__always) public static func equal(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Bool {
    a.count == b.count && (a.isEmpty || memcmp(a.baseAddress!, b.baseAddress!, a.count) == 0)
  }

  @inline(__always) static func equal(_ a: UnsafeRawBufferPointer, _ b: [UInt8]) -> Bool { b.withUnsafeBytes { equal(a, $0) } }

  static func order(_ a: UnsafeRawBufferPointer, _ b: [UInt8]) -> Int { b.withUnsafeBytes { order(a, $0) } }

  /// Negative, zero or positive. Compares bytes as unsigned numbers; a prefix sorts first.
  public static func order(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Int {
    let shared = min(a.count, b.count)
    if shared > 0 {
      let order = memcmp(a.baseAddress!, b.baseAddress!, shared)
      if order != 0 { return Int(order) }
    }
    return a.count - b.count
  }

  static func hasPrefix(_ a: UnsafeRawBufferPointer, _ b: [UInt8]) -> Bool {
    a.count >= b.count && equal(UnsafeRawBufferPointer(rebasing: a[0..<b.count]), b)
  }

  static func hasSuffix(_ a: UnsafeRawBufferPointer, _ b: [UInt8]) -> Bool {
    a.count >= b.count && equal(UnsafeRawBufferPointer(rebasing: a[(a.count - b.count)...]), b)
  }

  static func contains(_ a: UnsafeRawBufferPointer, _ b: [UInt8]) -> Bool {
    if b.isEmpty { return true }
    guard var start = a.baseAddress else { return false }
    let end = start + a.count
    while end - start >= b.count, let found = memchr(start, Int32(b[0]), end - start - b.count + 1) {
      let place = UnsafeRawPointer(found)
      if memcmp(place, b, b.count) == 0 { return true }
      start = place + 1
    }
    return false
  }
}
