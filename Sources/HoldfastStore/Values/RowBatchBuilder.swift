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
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// Fills batches with rows.
///
/// *Simple*: ``append(key:version:values:)`` appends an array of values. It is all that most stores need.
///
/// *Fast*: Call ``beginRow(key:version:)``, then one `append…` method per slot **in slot order**, then ``endRow()``. Values aren't boxed or
/// checked. The caller guarantees that there is one call per slot, and that it matches the slot's ``CellKind``.
///
/// Appending to a batch of more than 2 GiB traps. A store whose data can have such values checks their sizes before.
///
/// Seal the batch when ``isFull`` is true, and continue with the same builder:
///
/// ```swift
/// let builder = RowBatchBuilder(entity: person, identity: identity)
/// for record in records {
///   try builder.append(key: record.id, version: 1, values: [.int16(record.age), .string(record.name)])
///   if builder.isFull { _ = try sink.take(builder.seal(), .all) }
/// }
/// ```
public final class RowBatchBuilder {
  /// The size in bytes from which a batch is full. A larger row makes a larger batch.
  public static let pageByteCount = 65_536

  /// The layout of the rows.
  public let layout: RowLayout
  private let idPrefix: ManagedObjectID?
  @usableFromInline let stride: Int
  /// The page. Rows begin at its start, their bytes at ``bytesStart``. ``noPage`` while ``capacity`` is 0.
  @usableFromInline @exclusivity(unchecked) var base: UnsafeMutableRawPointer
  @usableFromInline @exclusivity(unchecked) var capacity: Int
  @usableFromInline @exclusivity(unchecked) var bytesStart: Int
  /// The size of the fixed parts of all rows in bytes, including the current row.
  @usableFromInline @exclusivity(unchecked) var used = 0
  /// The size of text and other data in bytes.
  @usableFromInline @exclusivity(unchecked) var bytesUsed = 0
  @usableFromInline @exclusivity(unchecked) var rowStart = 0
  @usableFromInline @exclusivity(unchecked) var rowBytesStart = 0
  @usableFromInline @exclusivity(unchecked) var slot: SlotIndex = 0
  @usableFromInline @exclusivity(unchecked) var rowCount = 0
  /// The page of the last batch, which was small, for the next one. ``bytesStart`` is as it was.
  @exclusivity(unchecked) private var spare: UnsafeMutableRawBufferPointer?

  /// Creates a builder for rows that are objects of an entity.
  public convenience init(entity: ManagedObjectModel.Entity, identity: StoreIdentity) {
    self.init(layout: entity.layout, idPrefix: identity.prefix(for: entity))
  }

  /// Creates a builder for rows of any layout.
  ///
  /// - Parameters:
  ///   - layout: The columns of the rows.
  ///   - idPrefix: The prefix of the rows' object IDs, or nil for rows that aren't objects.
  public init(layout: RowLayout, idPrefix: ManagedObjectID?) {
    self.layout = layout
    self.idPrefix = idPrefix
    stride = layout.fixedByteCount
    bytesStart = 2 * layout.fixedByteCount
    capacity = max(512, 3 * layout.fixedByteCount)
    base = RowBatchBuilder.allocate(capacity)
  }

  deinit {
    if capacity > 0 { free(base) }
    free(spare?.baseAddress)
  }

  /// The number of rows appended since the last ``seal()``.
  @inlinable public var count: Int { rowCount }

  /// Whether the batch is full. If so, call ``seal()``.
  @inlinable public var isFull: Bool { used + bytesUsed + stride > 65_536 }

  // MARK: Rows from values

  /// Appends a row.
  ///
  /// - Parameters:
  ///   - key: The row's key.
  ///   - version: The row's version; see ``RowVersion``.
  ///   - values: One value per slot, in slot order. Whole numbers of another width are converted if they fit.
  /// - Throws: ``StoreError`` with code ``StoreError/Code/wrongType`` if a value doesn't fit its column, or the number of values is wrong.
  ///   The row isn't appended then.
  public func append(key: ObjectKey, version: RowVersion, values: [StoreValue]) throws {
    guard values.count == layout.columns.count else {
      throw StoreError(
        .wrongType, operation: "append a row", reason: "The row has \(values.count) values for \(layout.columns.count) slots.")
    }
    beginRow(key: key, version: version)
    for (slot, value) in zip(layout.slots, values) where !appendValue(value, layout.columns[slot]) {
      cancelRow()
      throw StoreError(.wrongType, operation: "append a row", reason: "The value in slot \(slot) doesn't fit \(layout.columns[slot]).")
    }
    endRow()
  }

  /// Appends the value of the next slot.
  ///
  /// - Returns: False if the value doesn't fit the column; nothing is appended then.
  public func appendValue(_ value: StoreValue, _ column: ColumnType) -> Bool {
    switch column {
    case .toOne: return appendTarget(value)
    case .attribute(let type):
      guard let value = value.converted(to: type) else { return false }
      return appendFitting(value)
    }
  }

  private func appendTarget(_ value: StoreValue) -> Bool {
    switch value {
    case .null: appendNull()
    case .objectID(let id): append(integer: id.key.rawValue)
    case .int64(let key): append(integer: key)
    default: return false
    }
    return true
  }

  private func appendFitting(_ value: StoreValue) -> Bool {
    switch value {
    case .null: appendNull()
    case .bool(let value): append(integer: value ? 1 : 0)
    case .int16(let value): append(integer: Int64(value))
    case .int32(let value): append(integer: Int64(value))
    case .int64(let value): append(integer: value)
    case .float(let value): append(real: Double(value))
    case .double(let value), .date(let value): append(real: value)
    case .decimal(let value): DecimalText.bytes(value).withUnsafeBytes { append(bytes: $0) }
    case .string(let value), .uri(let value): append(text: value)
    case .uuid(let value): withUnsafeBytes(of: value.uuid) { append(bytes: $0) }
    case .data(let value): value.withUnsafeBytes { append(bytes: $0) }
    case .externalData(let id): append(external: id)
    case .objectID(let value): append(text: value.uriRepresentation)
    }
    return true
  }

  /// Appends text to the next slot.
  public func append(text: String) {
    var text = text
    text.withUTF8 { append(bytes: UnsafeRawBufferPointer($0)) }
  }

  // MARK: Rows slot by slot

  /// Begins a row. Call one `append…` method per slot, then ``endRow()``.
  @inlinable public func beginRow(key: ObjectKey, version: RowVersion) {
    if used + stride > bytesStart || capacity == 0 { growRows() }
    rowStart = used
    rowBytesStart = bytesUsed
    slot = 0
    let row = base + used
    row.storeBytes(of: key.rawValue, as: Int64.self)
    row.storeBytes(of: version.rawValue, toByteOffset: 8, as: Int64.self)
    used += stride
  }

  /// Leaves the next slot without a value.
  @inlinable @inline(__always) public func appendNull() {
    store(0 as UInt64, present: 0)
  }

  /// Appends a whole number, Boolean value or key to the next slot.
  @inlinable @inline(__always) public func append(integer value: Int64) {
    store(UInt64(bitPattern: value), present: 1)
  }

  /// Appends a floating-point number to the next slot. −0.0 becomes 0.0.
  @inlinable @inline(__always) public func append(real value: Double) {
    store((value == 0 ? 0 : value).bitPattern, present: 1)
  }

  /// Appends text, as valid UTF-8, or bytes to the next slot.
  @inlinable public func append(bytes: UnsafeRawBufferPointer) { store(put(bytes), present: 1) }

  /// Appends the name of an external file to the next slot.
  ///
  /// Requires an attribute that allows external storage.
  public func append(external id: UUID) {
    withUnsafeBytes(of: id.uuid) { store(put($0) | RowLayout.externalBit, present: 1) }
  }

  /// Copies text, bytes or an external file name from another row to the next slot.
  public func append(bytesOf row: RowPointer, _ source: SlotIndex) {
    store(put(row.bytes(source)) | (row.isExternal(source) ? RowLayout.externalBit : 0), present: 1)
  }

  /// Copies the number or key in a slot of another row to the next slot.
  public func append(cellOf row: RowPointer, _ source: SlotIndex) { append(integer: row.integer(source)) }

  /// Appends bytes after those of all rows, and returns the cell that refers to them.
  @inlinable @inline(__always) func put(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
    let offset = bytesStart + bytesUsed
    if offset + bytes.count > capacity { growBytes(to: offset + bytes.count) }
    if let source = bytes.baseAddress { (base + offset).copyMemory(from: source, byteCount: bytes.count) }
    bytesUsed += bytes.count
    return UInt64(offset - rowStart) | UInt64(bytes.count) << 32
  }

  /// Copies a slot of a row with the same layout. It must also be the next slot.
  public func append(_ slot: SlotIndex, of row: RowPointer) {
    guard row.isPresent(slot) else { return appendNull() }
    switch layout.kinds[slot] {
    case .integer, .key: append(integer: row.integer(slot))
    case .real: append(real: row.real(slot))
    case .bytes: append(bytesOf: row, slot)
    }
  }

  /// Ends the row that ``beginRow(key:version:)`` began.
  @inlinable public func endRow() { rowCount += 1 }

  /// Discards the row that was begun but not ended.
  @inlinable public func cancelRow() {
    used = rowStart
    bytesUsed = rowBytesStart
  }

  /// Appends a copy of a row with the same layout.
  public func append(_ row: RowPointer) { append(row, key: row.key, version: row.version) }

  /// Appends a copy of a row with the same layout, with another key and version.
  public func append(_ row: RowPointer, key: ObjectKey, version: RowVersion) {
    beginRow(key: key, version: version)
    let header = RowLayout.headerByteCount
    (base + rowStart + header).copyMemory(from: row.base + header, byteCount: stride - header)
    for slot in layout.byteSlots where row.isPresent(slot) {
      let cell = put(row.bytes(slot)) | (row.isExternal(slot) ? RowLayout.externalBit : 0)
      (base + rowStart).storeBytes(of: cell, toByteOffset: RowLayout.cellOffset(slot), as: UInt64.self)
    }
    endRow()
  }

  /// Replaces the whole number or key in a slot of the last ended row.
  ///
  /// Requires that a row has ended since the last ``seal()``. Otherwise it traps.
  public func replaceInLastRow(_ slot: SlotIndex, integer value: Int64) {
    lastRow.storeBytes(of: value, toByteOffset: RowLayout.cellOffset(slot), as: Int64.self)
  }

  /// Removes the value from a slot of the last ended row. Has the same requirement as ``replaceInLastRow(_:integer:)``.
  public func removeInLastRow(_ slot: SlotIndex) {
    let row = lastRow, word = RowLayout.presenceOffset(slot)
    let bits = row.load(fromByteOffset: word, as: UInt64.self)
    row.storeBytes(of: bits & ~slot.bit, toByteOffset: word, as: UInt64.self)
    row.storeBytes(of: 0, toByteOffset: RowLayout.cellOffset(slot), as: UInt64.self)
  }

  /// The last ended row. A row that was begun since doesn't change it.
  private var lastRow: UnsafeMutableRawPointer {
    precondition(rowCount > 0, "The builder has no row to change: no row has ended since the last seal().")
    return base + (rowCount - 1) * stride
  }

  /// Returns a batch of the rows appended so far, and empties the builder.
  public func seal() -> RowBatch { capacity > 0 && capacity <= Self.mostKept ? sealCopy() : sealPage() }

  /// The size in bytes up to which a page is copied, and used again for the next rows. It has room for as many.
  private static let mostKept = 4096

  private func sealCopy() -> RowBatch {
    let copy = RowBatchBuilder.allocate(max(used + bytesUsed, 8))
    copy.copyMemory(from: base, byteCount: used)
    (copy + used).copyMemory(from: base + bytesStart, byteCount: bytesUsed)
    shiftCells(of: copy, by: used - bytesStart)
    let batch = RowBatch(layout: layout, idPrefix: idPrefix, count: rowCount, byteCount: used + bytesUsed, base: copy)
    spare = UnsafeMutableRawBufferPointer(start: base, count: capacity)
    (base, capacity) = (RowBatchBuilder.noPage, 0)
    beginPage()
    return batch
  }

  private func sealPage() -> RowBatch {
    // After a full page, the next one is probably similar. After a partly filled page, the builder is probably done: it allocates another
    // page only if another row follows.
    let (wasFull, rows, bytes) = (isFull, used, bytesUsed)
    moveBytes(to: used)
    let byteCount = max(used + bytesUsed, 8)
    let kept =
      capacity == 0
      ? RowBatchBuilder.allocate(8) : capacity - byteCount > 64 ? realloc(base, byteCount) ?? base : base
    let batch = RowBatch(layout: layout, idPrefix: idPrefix, count: rowCount, byteCount: used + bytesUsed, base: kept)
    bytesStart = wasFull ? rows + rows / 16 + stride : 2 * stride
    capacity = wasFull ? bytesStart + bytes + bytes / 8 + 4096 : 0
    base = wasFull ? RowBatchBuilder.allocate(capacity) : RowBatchBuilder.noPage
    beginPage()
    return batch
  }

  private func beginPage() {
    used = 0
    bytesUsed = 0
    rowStart = 0
    rowCount = 0
  }

  // MARK: Bytes

  /// An address that no process can write to, used while no page is allocated. The previous page belongs to a batch, so writing a
  /// slot before beginning a row crashes instead of changing that batch.
  private static var noPage: UnsafeMutableRawPointer {
    UnsafeMutableRawPointer(bitPattern: MemoryLayout<UInt64>.alignment)!
  }

  @inlinable @inline(__always) func store(_ cell: UInt64, present: UInt64) {
    let row = base + rowStart
    let word = RowLayout.presenceOffset(slot)
    if slot.rawValue & 63 == 0 { row.storeBytes(of: 0, toByteOffset: word, as: UInt64.self) }
    let bits = row.load(fromByteOffset: word, as: UInt64.self)
    row.storeBytes(of: bits | present << UInt64(slot.rawValue & 63), toByteOffset: word, as: UInt64.self)
    row.storeBytes(of: cell, toByteOffset: RowLayout.cellOffset(slot), as: UInt64.self)
    slot = slot.advanced(by: 1)
  }

  /// Makes room for more rows: twice as many as before. Allocates a page if there is none.
  @usableFromInline func growRows() {
    let isNew = capacity == 0
    if isNew, let page = spare, let start = page.baseAddress {
      (base, capacity, spare) = (start, page.count, nil)
      return
    }
    let start = isNew ? max(bytesStart, 2 * stride) : max(2 * bytesStart, used + stride)
    let needed = start + bytesUsed + max(bytesUsed, 64)
    if isNew || needed > capacity { grow(to: needed, isNew) }
    moveBytes(to: start)
  }

  @usableFromInline func growBytes(to needed: Int) {
    let roomy = capacity < 65_536 ? capacity * 2 : capacity + capacity / 4
    grow(to: max(needed + 8, min(roomy, Self.maximumByteCount)), false)
  }

  /// The bit above an offset marks external values.
  private static let maximumByteCount = 1 << 31 - 1

  private func grow(to needed: Int, _ isNew: Bool) {
    precondition(needed <= Self.maximumByteCount, "A batch can't be larger than 2 GiB.")
    capacity = needed
    guard let grown = realloc(isNew ? nil : base, capacity) else {
      preconditionFailure("Out of memory: \(capacity) bytes of rows couldn't be allocated.")
    }
    base = grown
  }

  /// Moves the bytes of all rows within the page and updates their cells. Requires that no row is begun.
  private func moveBytes(to start: Int) {
    let shift = start - bytesStart
    if shift == 0 { return }
    (base + start).copyMemory(from: base + bytesStart, byteCount: bytesUsed)
    shiftCells(of: base, by: shift)
    bytesStart = start
  }

  /// Updates the cells of rows whose bytes were moved.
  private func shiftCells(of rows: UnsafeMutableRawPointer, by shift: Int) {
    if shift == 0 { return }
    // Also if there are no bytes: cells of empty texts contain the offset where bytes begin.
    for slot in layout.byteSlots {
      let (word, bit, cell) = (RowLayout.presenceOffset(slot), slot.bit, RowLayout.cellOffset(slot))
      var row = rows
      for _ in 0..<rowCount {
        if row.load(fromByteOffset: word, as: UInt64.self) & bit != 0 {
          let before = row.load(fromByteOffset: cell, as: UInt64.self)
          row.storeBytes(of: UInt64(bitPattern: Int64(bitPattern: before) &+ Int64(shift)), toByteOffset: cell, as: UInt64.self)
        }
        row += stride
      }
    }
  }

  private static func allocate(_ count: Int) -> UnsafeMutableRawPointer {
    guard let bytes = malloc(count) else { preconditionFailure("Out of memory for \(count) bytes of rows.") }
    return bytes
  }
}
