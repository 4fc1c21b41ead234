import HoldfastStore

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#else
  import Darwin
#endif

/// A buffer for the columns of a section of rows. It is reused for the next section, to allocate its memory once.
final class RowSectionBuffer {
  @exclusivity(unchecked) private var base: UnsafeMutableRawPointer
  @exclusivity(unchecked) private var capacity = 1 << 16
  @exclusivity(unchecked) private(set) var byteCount = 0
  /// The numbers of the current column, one per row.
  @exclusivity(unchecked) private(set) var numbers: UnsafeMutablePointer<Int64> = .allocate(capacity: 0)
  /// The capacity of ``numbers``.
  @exclusivity(unchecked) private var room = 0

  init() {
    guard let bytes = malloc(capacity) else { preconditionFailure("Out of memory: \(capacity) bytes for rows.") }
    base = bytes
  }

  deinit {
    free(base)
    numbers.deallocate()
  }

  /// The bytes written, valid until the next section begins.
  var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: base, count: byteCount) }

  /// Begins a section.
  ///
  /// - Parameters:
  ///   - rowCount: The maximum number of rows.
  ///   - columnCount: The number of columns.
  ///   - bytesCount: The maximum number of bytes of strings and other values of variable length.
  func begin(rowCount: Int, columnCount: Int, bytesCount: Int) {
    byteCount = 0
    if rowCount > room {
      numbers.deallocate()
      room = rowCount + rowCount / 4
      numbers = .allocate(capacity: room)
    }
    // A column takes at most its full-width numbers, its presence bits, and a few bytes for its form.
    let needed = rowCount * (16 + 8 * columnCount) + columnCount * (32 + 2 * (rowCount / 8 + 1)) + 64 + bytesCount
    if needed <= capacity { return }
    capacity = needed + needed / 4
    guard let bytes = realloc(base, capacity) else { preconditionFailure("Out of memory: \(capacity) bytes for rows.") }
    base = bytes
  }

  // MARK: Putting

  @inline(__always) func put(_ number: some FixedWidthInteger) {
    base.storeBytes(of: number.littleEndian, toByteOffset: byteCount, as: type(of: number))
    byteCount += number.bitWidth / 8
  }

  @inline(__always) func put(_ bytes: UnsafeRawBufferPointer) {
    guard let source = bytes.baseAddress else { return }
    memcpy(base + byteCount, source, bytes.count)
    byteCount += bytes.count
  }

  @inline(__always) func putBits(_ count: Int, _ isSet: (Int) -> Bool) {
    for start in stride(from: 0, to: count, by: 8) {
      var bits: UInt8 = 0
      for index in start..<min(start + 8, count) where isSet(index) { bits |= 1 << UInt8(index - start) }
      put(bits)
    }
  }

  // MARK: Numbers

  /// Writes ``numbers`` as differences from the smallest.
  ///
  /// - Parameter range: The smallest and largest number, not counting rows without a value.
  func putNumbers(_ count: Int, _ range: ClosedRange<Int64>) {
    let (width, least) = RowSectionBuffer.form(range)
    put(width)
    put(least)
    switch width {
    case 0: break
    case 1: putDifferences(count, least, as: UInt8.self)
    case 2: putDifferences(count, least, as: UInt16.self)
    case 4: putDifferences(count, least, as: UInt32.self)
    default: putDifferences(count, least, as: UInt64.self)
    }
  }

  /// The width of a difference in bytes, and the base. A row without a value gets the base.
  static func form(_ range: ClosedRange<Int64>) -> (width: UInt8, least: Int64) {
    let span = UInt64(bitPattern: range.upperBound &- range.lowerBound)
    let width: UInt8 = span == 0 ? 0 : span <= 0xFF ? 1 : span <= 0xFFFF ? 2 : span <= 0xFFFF_FFFF ? 4 : 8
    return (width, width == 8 ? 0 : range.lowerBound)
  }

  @inline(__always) private func putDifferences<Number: FixedWidthInteger>(_ count: Int, _ least: Int64, as: Number.Type) {
    let (numbers, target, size) = (numbers, base + byteCount, MemoryLayout<Number>.size)
    for index in 0..<count {
      let number = Number(truncatingIfNeeded: numbers[index] &- least)
      target.storeBytes(of: number.littleEndian, toByteOffset: index &* size, as: Number.self)
    }
    byteCount += count * size
  }
}

/// The encoding of a column of floating-point numbers. On disk: do not change.
enum RealForm: UInt8 {
  /// As integers, if all values are integers.
  case whole = 1
  /// 32 bits each.
  case single = 4
  /// 64 bits each.
  case double = 8

  /// Doubles below this limit represent every integer exactly.
  static let wholeLimit = 9_007_199_254_740_992.0

  @inline(__always) static func isWhole(_ value: Double) -> Bool {
    abs(value) < wholeLimit && value.rounded(.towardZero) == value
  }
}
