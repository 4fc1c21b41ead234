import HoldfastStore

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// Encodes rows of an entity as a section: column by column, so that what is alike lies together and numbers take as many bytes as
/// they differ by. Used again for the next rows, so that its buffer is made once.
final class PageEncoder {
  private let columns: [ColumnType]
  private let kinds: [CellKind]
  /// By slot, whether a value may lie in a file of its own.
  private let mayBeExternal: [Bool]
  @exclusivity(unchecked) private var base: UnsafeMutableRawPointer
  @exclusivity(unchecked) private var capacity = 1 << 16
  @exclusivity(unchecked) private var used = 0
  /// The numbers of the column under way, and where its values lie, one for each row; room for so many.
  @exclusivity(unchecked) private var numbers: UnsafeMutablePointer<Int64> = .allocate(capacity: 0)
  @exclusivity(unchecked) private var sources: UnsafeMutablePointer<UnsafeRawPointer?> = .allocate(capacity: 0)
  @exclusivity(unchecked) private var room = 0

  init(_ entity: ManagedObjectModel.Entity) {
    columns = entity.layout.columns
    kinds = entity.layout.kinds
    let external = entity.externalSlots
    mayBeExternal = entity.slots.indices.map { external.contains($0) }
    guard let bytes = malloc(capacity) else { preconditionFailure("There is no memory for \(capacity) bytes of rows.") }
    base = bytes
  }

  deinit {
    free(base)
    numbers.deallocate()
    sources.deallocate()
  }

  /// Encodes rows that are in the order of their keys.
  ///
  /// - Parameter bytesCount: how many bytes of text and of other values they have.
  /// - Returns: bytes that are valid until the next call.
  func encode(_ rows: [RowPointer], bytesCount: Int) -> UnsafeRawBufferPointer {
    used = 0
    if rows.count > room { makeRoom(rows.count) }
    // No column takes more than its numbers as they are, their presence, and a few bytes that say how they lie.
    reserve(rows.count * (16 + 8 * columns.count) + columns.count * (32 + 2 * (rows.count / 8 + 1)) + 64 + bytesCount)
    rows.withUnsafeBufferPointer { rows in
      putKeys(rows)
      putWhole(rows.count) { rows[$0].version }
      for slot in columns.indices { put(rows, slot) }
    }
    return UnsafeRawBufferPointer(start: base, count: used)
  }

  private func reserve(_ count: Int) {
    if count <= capacity { return }
    capacity = count + count / 4
    guard let bytes = realloc(base, capacity) else { preconditionFailure("There is no memory for \(capacity) bytes of rows.") }
    base = bytes
  }

  @inline(__always) private func put(_ number: some FixedWidthInteger) {
    base.storeBytes(of: number.littleEndian, toByteOffset: used, as: type(of: number))
    used += number.bitWidth / 8
  }

  /// Keys have four bytes each, or eight, so that a small file cannot stand for many rows.
  private func putKeys(_ rows: UnsafeBufferPointer<RowPointer>) {
    let first = rows[0].key, isWide = rows[rows.count - 1].key - first > UInt32.max
    put(isWide ? 8 : 4 as UInt8)
    if isWide {
      for row in rows { put(UInt64(row.key - first)) }
    } else {
      for row in rows { put(UInt32(truncatingIfNeeded: row.key - first)) }
    }
  }

  // MARK: Whole numbers

  /// Puts numbers of all rows.
  @inline(__always) private func putWhole(_ count: Int, _ value: (Int) -> Int64) {
    var (low, high) = (Int64.max, Int64.min)
    for index in 0..<count {
      let value = value(index)
      numbers[index] = value
      low = min(low, value)
      high = max(high, value)
    }
    putNumbers(count, low, high)
  }

  /// Puts numbers of rows that have a value in a slot, of which there is one at least. For the others stands no difference.
  @inline(__always) private func putWhole(_ rows: UnsafeBufferPointer<RowPointer>, presentIn slot: Int, _ value: (RowPointer) -> Int64) {
    var (low, high) = (Int64.max, Int64.min)
    for index in rows.indices where rows[index].isPresent(slot) {
      let value = value(rows[index])
      numbers[index] = value
      low = min(low, value)
      high = max(high, value)
    }
    let least = PageEncoder.form(low, high).least
    for index in rows.indices where !rows[index].isPresent(slot) { numbers[index] = least }
    putNumbers(rows.count, low, high)
  }

  /// Puts the gathered numbers as differences from the least.
  private func putNumbers(_ count: Int, _ low: Int64, _ high: Int64) {
    let (width, least) = PageEncoder.form(low, high)
    put(width)
    put(least)
    switch width {
    case 0: break
    case 1: putDifferences(count, low, as: UInt8.self)
    case 2: putDifferences(count, low, as: UInt16.self)
    case 4: putDifferences(count, low, as: UInt32.self)
    default: putDifferences(count, 0, as: UInt64.self)
    }
  }

  /// How many bytes the difference of a number takes, and from what.
  private static func form(_ low: Int64, _ high: Int64) -> (width: UInt8, least: Int64) {
    let range = UInt64(bitPattern: high &- low)
    let width: UInt8 = range == 0 ? 0 : range <= 0xFF ? 1 : range <= 0xFFFF ? 2 : range <= 0xFFFF_FFFF ? 4 : 8
    return (width, width == 8 ? 0 : low)
  }

  @inline(__always) private func putDifferences<Number: FixedWidthInteger>(_ count: Int, _ low: Int64, as: Number.Type) {
    let (numbers, target) = (numbers, base + used)
    for index in 0..<count {
      target.storeBytes(
        of: Number(truncatingIfNeeded: numbers[index] &- low).littleEndian, toByteOffset: index &* MemoryLayout<Number>.size,
        as: Number.self)
    }
    used += count * MemoryLayout<Number>.size
  }

  private func makeRoom(_ count: Int) {
    numbers.deallocate()
    sources.deallocate()
    room = count + count / 4
    (numbers, sources) = (.allocate(capacity: room), .allocate(capacity: room))
  }

  // MARK: Columns

  private func put(_ rows: UnsafeBufferPointer<RowPointer>, _ slot: Int) {
    let present = rows.reduce(0) { $0 + ($1.isPresent(slot) ? 1 : 0) }
    if present == 0 { return put(0 as UInt8) }
    let isFull = present == rows.count
    put(isFull ? 1 : 2 as UInt8)
    if !isFull { putBits(rows.count) { rows[$0].isPresent(slot) } }
    switch kinds[slot] {
    case .integer, .key:
      if isFull {
        putWhole(rows.count) { rows[$0].integer(slot) }
      } else {
        putWhole(rows, presentIn: slot) { $0.integer(slot) }
      }
    case .real: putReals(rows, slot)
    case .bytes: putBytes(rows, slot)
    }
  }

  @inline(__always) private func putBits(_ count: Int, _ isSet: (Int) -> Bool) {
    for start in stride(from: 0, to: count, by: 8) {
      var bits: UInt8 = 0
      for index in start..<min(start + 8, count) where isSet(index) { bits |= 1 << UInt8(index - start) }
      put(bits)
    }
  }

  /// Numbers of 32 bits as such; others as whole numbers where all are, or else as they are.
  private func putReals(_ rows: UnsafeBufferPointer<RowPointer>, _ slot: Int) {
    if columns[slot] == .attribute(.float) {
      put(RealForm.single.rawValue)
      for row in rows { put(Float(row.real(slot)).bitPattern) }
    } else if rows.allSatisfy({ PageEncoder.isWhole($0.real(slot)) }) {
      put(RealForm.whole.rawValue)
      putWhole(rows, presentIn: slot) { Int64($0.real(slot)) }
    } else {
      put(RealForm.double.rawValue)
      for row in rows { put(row.real(slot).bitPattern) }
    }
  }

  @inline(__always) private static func isWhole(_ value: Double) -> Bool {
    abs(value) < RealForm.wholeLimit && value.rounded(.towardZero) == value
  }

  private func putBytes(_ rows: UnsafeBufferPointer<RowPointer>, _ slot: Int) {
    if mayBeExternal[slot] && rows.contains(where: { $0.isExternal(slot) }) {
      put(1 as UInt8)
      putBits(rows.count) { rows[$0].isExternal(slot) }
    } else {
      put(0 as UInt8)
    }
    var (low, high) = (Int64.max, Int64.min)
    for index in rows.indices {
      if rows[index].isPresent(slot) {
        let bytes = rows[index].bytes(slot)
        (sources[index], numbers[index]) = (bytes.baseAddress, Int64(bytes.count))
        low = min(low, Int64(bytes.count))
        high = max(high, Int64(bytes.count))
      } else {
        (sources[index], numbers[index]) = (nil, -1)
      }
    }
    for index in rows.indices where numbers[index] < 0 { numbers[index] = PageEncoder.form(low, high).least }
    putNumbers(rows.count, low, high)
    putSources(rows.count)
  }

  /// Puts the values at the gathered places. In pages that were read from a file, the values of a column lie one behind the other: what
  /// does is copied at once.
  private func putSources(_ count: Int) {
    var start: UnsafeRawPointer?, end: UnsafeRawPointer?
    for index in 0..<count {
      guard let source = sources[index] else { continue }
      if source != end {
        put(UnsafeRawBufferPointer(start: start, count: start.map { $0.distance(to: end ?? $0) } ?? 0))
        start = source
      }
      end = source + Int(numbers[index])
    }
    put(UnsafeRawBufferPointer(start: start, count: start.map { $0.distance(to: end ?? $0) } ?? 0))
  }

  @inline(__always) private func put(_ bytes: UnsafeRawBufferPointer) {
    guard let source = bytes.baseAddress else { return }
    memcpy(base + used, source, bytes.count)
    used += bytes.count
  }
}

/// How a column of floating-point numbers lies in a section. On disk: do not change.
enum RealForm: UInt8 {
  /// As whole numbers, which all of them are.
  case whole = 1
  /// 32 bits each.
  case single = 4
  /// 64 bits each.
  case double = 8

  /// Whole numbers below are exact.
  static let wholeLimit = 9_007_199_254_740_992.0
}
