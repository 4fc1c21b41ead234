import HoldfastStore

/// Encodes rows of an entity as a section. Values are stored by column, and numbers with the width of their range.
final class RowSectionEncoder {
  private let columns: [ColumnType]
  private let kinds: [CellKind]
  /// For each slot, whether its value can be in an external file.
  private let mayBeExternal: [Bool]
  private let buffer: RowSectionBuffer
  /// Pointers to the values of the current column, one per row, and their capacity.
  @exclusivity(unchecked) private var sources: UnsafeMutablePointer<UnsafeRawPointer?> = .allocate(capacity: 0)
  @exclusivity(unchecked) private var room = 0

  init(_ entity: ManagedObjectModel.Entity, _ buffer: RowSectionBuffer) {
    columns = entity.layout.columns
    kinds = entity.layout.kinds
    let external = entity.externalSlots
    mayBeExternal = entity.slotIndexes.map { external.contains($0) }
    self.buffer = buffer
  }

  deinit { sources.deallocate() }

  /// Encodes rows, which must be sorted by key.
  ///
  /// - Parameter bytesCount: The number of bytes of the rows' strings and other values of variable length.
  /// - Returns: Bytes that are valid until the buffer begins the next section.
  func encode(_ rows: [RowPointer], bytesCount: Int) -> UnsafeRawBufferPointer {
    buffer.begin(rowCount: rows.count, columnCount: columns.count, bytesCount: bytesCount)
    if rows.count > room { makeRoom(rows.count) }
    rows.withUnsafeBufferPointer { rows in
      putKeys(rows)
      putWhole(rows.count) { rows[$0].version.rawValue }
      for slot in 0..<SlotIndex(columns.count) { put(rows, slot) }
    }
    return buffer.bytes
  }

  private func makeRoom(_ count: Int) {
    sources.deallocate()
    room = count + count / 4
    sources = .allocate(capacity: room)
  }

  /// Keys always have four or eight bytes, so that a small file can't contain a huge number of rows.
  private func putKeys(_ rows: UnsafeBufferPointer<RowPointer>) {
    let first = rows[0].key.rawValue, isWide = rows[rows.count - 1].key.rawValue - first > UInt32.max
    buffer.put(isWide ? 8 : 4 as UInt8)
    if isWide {
      for row in rows { buffer.put(UInt64(row.key.rawValue - first)) }
    } else {
      for row in rows { buffer.put(UInt32(truncatingIfNeeded: row.key.rawValue - first)) }
    }
  }

  // MARK: Whole numbers

  /// Writes the numbers of all rows.
  @inline(__always) private func putWhole(_ count: Int, _ value: (Int) -> Int64) {
    let numbers = buffer.numbers
    var (low, high) = (Int64.max, Int64.min)
    for index in 0..<count {
      let value = value(index)
      numbers[index] = value
      low = min(low, value)
      high = max(high, value)
    }
    buffer.putNumbers(count, low...high)
  }

  /// Writes the numbers of rows that have a value in a slot; there must be at least one. Other rows get the difference 0.
  @inline(__always) private func putWhole(
    _ rows: UnsafeBufferPointer<RowPointer>, presentIn slot: SlotIndex, _ value: (RowPointer) -> Int64
  ) {
    let numbers = buffer.numbers
    var (low, high) = (Int64.max, Int64.min)
    for index in rows.indices where rows[index].isPresent(slot) {
      let value = value(rows[index])
      numbers[index] = value
      low = min(low, value)
      high = max(high, value)
    }
    let least = RowSectionBuffer.form(low...high).least
    for index in rows.indices where !rows[index].isPresent(slot) { numbers[index] = least }
    buffer.putNumbers(rows.count, low...high)
  }

  // MARK: Columns

  private func put(_ rows: UnsafeBufferPointer<RowPointer>, _ slot: SlotIndex) {
    let present = rows.reduce(0) { $0 + ($1.isPresent(slot) ? 1 : 0) }
    if present == 0 { return buffer.put(0 as UInt8) }
    let isFull = present == rows.count
    buffer.put(isFull ? 1 : 2 as UInt8)
    if !isFull { buffer.putBits(rows.count) { rows[$0].isPresent(slot) } }
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

  /// Writes 32-bit numbers unchanged, and others as integers if all of them are integers.
  private func putReals(_ rows: UnsafeBufferPointer<RowPointer>, _ slot: SlotIndex) {
    if columns[slot] == .attribute(.float) {
      buffer.put(RealForm.single.rawValue)
      for row in rows { buffer.put(Float(row.real(slot)).bitPattern) }
    } else if rows.allSatisfy({ RealForm.isWhole($0.real(slot)) }) {
      buffer.put(RealForm.whole.rawValue)
      putWhole(rows, presentIn: slot) { Int64($0.real(slot)) }
    } else {
      buffer.put(RealForm.double.rawValue)
      for row in rows { buffer.put(row.real(slot).bitPattern) }
    }
  }

  private func putBytes(_ rows: UnsafeBufferPointer<RowPointer>, _ slot: SlotIndex) {
    if mayBeExternal[slot] && rows.contains(where: { $0.isExternal(slot) }) {
      buffer.put(1 as UInt8)
      buffer.putBits(rows.count) { rows[$0].isExternal(slot) }
    } else {
      buffer.put(0 as UInt8)
    }
    let numbers = buffer.numbers
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
    for index in rows.indices where numbers[index] < 0 { numbers[index] = RowSectionBuffer.form(low...high).least }
    buffer.putNumbers(rows.count, low...high)
    putSources(rows.count)
  }

  /// Writes the values at the collected pointers. In a page read from a file, a column's values are contiguous; contiguous values
  /// are copied at once.
  private func putSources(_ count: Int) {
    let numbers = buffer.numbers
    var start: UnsafeRawPointer?, end: UnsafeRawPointer?
    for index in 0..<count {
      guard let source = sources[index] else { continue }
      if source != end {
        buffer.put(UnsafeRawBufferPointer(start: start, count: start.map { $0.distance(to: end ?? $0) } ?? 0))
        start = source
      }
      end = source + Int(numbers[index])
    }
    buffer.put(UnsafeRawBufferPointer(start: start, count: start.map { $0.distance(to: end ?? $0) } ?? 0))
  }
}
