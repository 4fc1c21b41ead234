#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif
#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Fills a batch with rows, in one of two ways.
///
/// *Easy*: ``append(key:version:values:)`` takes an array of values; a store author needs no other.
///
/// *Fast*: ``beginRow(key:version:)``, then one `append…` per slot **in slot order**, then ``endRow()``. Nothing is
/// boxed or checked: the caller guarantees that there is one call per slot and that it fits the slot's ``CellKind``.
///
/// Seal when ``isFull`` says so, and go on with the same builder:
///
/// ```swift
/// let builder = RowBatchBuilder(entity: person, identity: identity)
/// for record in records {
///   try builder.append(key: record.id, version: 1, values: [.int16(record.age), .string(record.name)])
///   if builder.isFull { _ = try sink.take(builder.seal(), .all) }
/// }
/// ```
public final class RowBatchBuilder {
  /// The bytes after which a batch counts as full. A longer row makes a longer batch.
  public static let pageByteCount = 65_536

  /// The shape of the rows.
  public let layout: RowLayout
  private let idPrefix: ManagedObjectID?
  @usableFromInline let fixedByteCount: Int
  /// The page; another's while ``capacity`` is 0.
  @usableFromInline @exclusivity(unchecked) var base: UnsafeMutableRawPointer
  @usableFromInline @exclusivity(unchecked) var capacity: Int
  @usableFromInline @exclusivity(unchecked) var used = 0
  @usableFromInline @exclusivity(unchecked) var rowStart = 0
  @usableFromInline @exclusivity(unchecked) var slot = 0
  /// Where the rows begin. The first one always begins at 0, so there is nothing to write down before the second one.
  @usableFromInline @exclusivity(unchecked) var offsets: UnsafeMutablePointer<UInt32>?
  @usableFromInline @exclusivity(unchecked) var offsetCapacity: Int
  @usableFromInline @exclusivity(unchecked) var rowCount = 0

  /// Makes a builder of rows that are objects of an entity.
  public convenience init(entity: ManagedObjectModel.Entity, identity: StoreIdentity) {
    self.init(layout: entity.layout, idPrefix: identity.prefix(for: entity))
  }

  /// Makes a builder of rows of any shape.
  ///
  /// - Parameter idPrefix: makes the rows' object IDs; nil for rows that are not objects.
  public init(layout: RowLayout, idPrefix: ManagedObjectID?) {
    self.layout = layout
    self.idPrefix = idPrefix
    fixedByteCount = layout.fixedByteCount
    capacity = max(512, layout.fixedByteCount)
    base = RowBatchBuilder.allocate(capacity)
    offsetCapacity = 1
  }

  deinit {
    if capacity > 0 { free(base) }
    free(offsets)
  }

  /// The rows appended since the last seal.
  @inlinable public var count: Int { rowCount }

  /// Whether the page is full, so that it is time to ``seal()``.
  @inlinable public var isFull: Bool { used + fixedByteCount > 65_536 }

  // MARK: The easy way

  /// Appends a row.
  ///
  /// - Parameter values: one per slot, in slot order; whole numbers of another width are taken when they fit.
  /// - Throws: ``StoreError`` with code ``StoreError/Code/wrongType`` when a value does not fit its column or the
  ///   number of values is wrong; the row is then left out.
  public func append(key: Int64, version: Int64, values: [StoreValue]) throws {
    guard values.count == layout.columns.count else {
      throw StoreError(
        .wrongType, operation: "append a row", reason: "It has \(values.count) values where there are \(layout.columns.count) slots.")
    }
    beginRow(key: key, version: version)
    for (slot, value) in values.enumerated() where !appendValue(value, layout.columns[slot]) {
      used = rowStart
      throw StoreError(.wrongType, operation: "append a row", reason: "The value in slot \(slot) does not fit \(layout.columns[slot]).")
    }
    endRow()
  }

  /// Appends the value of the next slot.
  ///
  /// - Returns: false when the value does not fit the column; nothing was appended then.
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
    case .objectID(let id): append(integer: id.key)
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
    case .objectID: return false
    }
    return true
  }

  /// Appends text to the next slot.
  public func append(text: String) {
    var text = text
    text.withUTF8 { append(bytes: UnsafeRawBufferPointer($0)) }
  }

  // MARK: The fast way

  /// Begins a row; one `append…` per slot follows, then ``endRow()``.
  @inlinable public func beginRow(key: Int64, version: Int64) {
    reserve(fixedByteCount)
    rowStart = used
    slot = 0
    let row = base + used
    row.storeBytes(of: key, as: Int64.self)
    row.storeBytes(of: version, toByteOffset: 8, as: Int64.self)
    row.storeBytes(of: 0, toByteOffset: 16, as: UInt64.self)
    used += fixedByteCount
  }

  /// Leaves the next slot without a value.
  @inlinable @inline(__always) public func appendNull() {
    store(0 as UInt64, present: 0)
  }

  /// Puts a whole number, truth value or key into the next slot.
  @inlinable @inline(__always) public func append(integer value: Int64) {
    store(UInt64(bitPattern: value), present: 1)
  }

  /// Puts a floating-point number into the next slot. −0.0 becomes 0.0.
  @inlinable @inline(__always) public func append(real value: Double) {
    store((value == 0 ? 0 : value).bitPattern, present: 1)
  }

  /// Puts text (as valid UTF-8) or bytes into the next slot.
  @inlinable public func append(bytes: UnsafeRawBufferPointer) {
    reserve(bytes.count)
    if let source = bytes.baseAddress { (base + used).copyMemory(from: source, byteCount: bytes.count) }
    store(UInt64(used - rowStart) | UInt64(bytes.count) << 32, present: 1)
    used += bytes.count
  }

  /// Ends the row that ``beginRow(key:version:)`` began.
  @inlinable public func endRow() {
    reserve(8)
    (base + used).storeBytes(of: 0, as: UInt64.self)  // so that equal rows have equal bytes, the padding included
    used = (used + 7) & ~7
    (base + rowStart).storeBytes(of: UInt32(truncatingIfNeeded: used - rowStart), toByteOffset: 16, as: UInt32.self)
    if rowCount == offsetCapacity { growOffsets() }
    if let offsets { offsets[rowCount] = UInt32(truncatingIfNeeded: rowStart) }
    rowCount += 1
  }

  /// Takes back the row that was begun and not ended.
  @inlinable public func cancelRow() { used = rowStart }

  /// Appends a copy of a row of the same layout.
  public func append(_ row: RowPointer) {
    let length = row.byteCount
    reserve(length)
    rowStart = used
    (base + used).copyMemory(from: row.base, byteCount: length)
    used += length
    endRow()
  }

  /// Appends a copy of a row of the same layout under another key and version, as ``append(_:)`` does.
  public func append(_ row: RowPointer, key: Int64, version: Int64) {
    append(row)
    (base + rowStart).storeBytes(of: key, as: Int64.self)
    (base + rowStart).storeBytes(of: version, toByteOffset: 8, as: Int64.self)
  }

  /// Replaces the whole number or key in a slot of the row that was ended last.
  public func replaceInLastRow(_ slot: Int, integer value: Int64) {
    (base + rowStart).storeBytes(of: value, toByteOffset: RowLayout.cellOffset(slot), as: Int64.self)
  }

  /// Makes a batch of the rows appended so far; the builder begins anew.
  public func seal() -> RowBatch {
    let kept = RowBatchBuilder.shrink(base, from: capacity, to: used)
    let keptOffsets = offsets.map { RowBatchBuilder.shrink(UnsafeMutableRawPointer($0), from: offsetCapacity * 4, to: rowCount * 4) }
    let batch = RowBatch(
      layout: layout, idPrefix: idPrefix, count: rowCount, byteCount: used, base: kept,
      offsets: keptOffsets?.assumingMemoryBound(to: UInt32.self))
    // The next page is likely as large as a full one was; a builder that sealed what there was is likely done, and
    // gets a page only when there is another row.
    let wasFull = isFull
    capacity = wasFull ? RowBatchBuilder.pageByteCount + 4096 : 0
    offsetCapacity = wasFull ? rowCount + rowCount / 8 + 4 : 1
    if wasFull { base = RowBatchBuilder.allocate(capacity) }
    offsets = wasFull ? RowBatchBuilder.allocate(offsetCapacity * 4).assumingMemoryBound(to: UInt32.self) : nil
    used = 0
    rowStart = 0
    rowCount = 0
    return batch
  }

  // MARK: Bytes

  @inlinable @inline(__always) func store(_ cell: UInt64, present: UInt64) {
    let row = base + rowStart
    let word = RowLayout.presenceOffset(slot)
    if slot & 63 == 0 { row.storeBytes(of: 0, toByteOffset: word, as: UInt64.self) }
    let bits = row.load(fromByteOffset: word, as: UInt64.self)
    row.storeBytes(of: bits | present << UInt64(slot & 63), toByteOffset: word, as: UInt64.self)
    row.storeBytes(of: cell, toByteOffset: RowLayout.cellOffset(slot), as: UInt64.self)
    slot += 1
  }

  @inlinable @inline(__always) func reserve(_ count: Int) {
    if used + count > capacity { grow(to: used + count) }
  }

  @usableFromInline func grow(to needed: Int) {
    precondition(needed < Int(UInt32.max), "A row of more than 4 GiB was built.")
    let isNew = capacity == 0
    capacity = max(needed + 8, 512, capacity < 32_768 ? capacity * 2 : capacity < 65_536 ? 65_536 + 4096 : capacity * 2)
    guard let grown = realloc(isNew ? nil : base, capacity) else {
      preconditionFailure("There is no memory for \(capacity) bytes of rows.")
    }
    base = grown
  }

  @usableFromInline func growOffsets() {
    offsetCapacity = max(8, offsetCapacity * 2)
    guard let grown = realloc(offsets, offsetCapacity * 4) else { preconditionFailure("There is no memory for row offsets.") }
    if offsets == nil { grown.storeBytes(of: 0, as: UInt32.self) }
    offsets = grown.assumingMemoryBound(to: UInt32.self)
  }

  private static func allocate(_ count: Int) -> UnsafeMutableRawPointer {
    guard let bytes = malloc(count) else { preconditionFailure("There is no memory for \(count) bytes of rows.") }
    return bytes
  }

  private static func shrink(_ bytes: UnsafeMutableRawPointer, from capacity: Int, to count: Int) -> UnsafeMutableRawPointer {
    if capacity == 0 { return allocate(8) }
    return capacity - count > 64 ? realloc(bytes, max(count, 8)) ?? bytes : bytes
  }
}
