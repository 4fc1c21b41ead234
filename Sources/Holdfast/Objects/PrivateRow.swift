import HoldfastStore

/// The row that a changed object owns: a header followed by a row in the usual layout, with space for text after it.
///
/// Getters read it like any other row. The struct contains a pointer to the row; the header is in the bytes before it. The block belongs to the
/// pool of the object's context.
struct PrivateRow {
  private struct Header {
    /// The row as it was read, or nil for an object that was never saved. The object's owner keeps it alive.
    var committed: RowPointer?
    var capacity: UInt32
    var used: UInt32
  }

  private static let headerByteCount = 16

  /// The address of the row.
  private var row: UnsafeMutableRawPointer

  /// The row, until a value is set or the row is destroyed.
  var pointer: RowPointer { RowPointer(row) }

  /// Creates a value for a row that is known to be private.
  init(existing row: RowPointer) { self.row = UnsafeMutableRawPointer(mutating: row.base) }

  /// Copies a row.
  ///
  /// - Parameter committed: The row in the store; nil for a new object.
  init(copying source: RowPointer, _ layout: RowLayout, room: Int, committed: RowPointer?, in pool: BlockPool) {
    // The bytes of most rows follow them in order, without gaps.
    var needed = layout.fixedByteCount, isPacked = true
    for slot in layout.byteSlots {
      let bytes = source.bytes(slot)
      if bytes.isEmpty { continue }
      if bytes.baseAddress != source.base + needed { isPacked = false }
      needed += bytes.count
    }
    self.init(startOf: source, isPacked ? needed : layout.fixedByteCount, capacity: needed + room, committed, pool)
    if isPacked { return }
    for slot in layout.byteSlots where source.isPresent(slot) { append(source, slot) }
  }

  /// Copies the default values of a new object. Doesn't look at the layout, because the plan contains the size of the row.
  @inline(__always) init(_ plan: GraphPlan.EntityPlan, room: Int, in pool: BlockPool) {
    self.init(startOf: plan.newRow, plan.newRowByteCount, capacity: plan.newRowByteCount + room, nil, pool)
  }

  func destroy(in pool: BlockPool) { pool.deallocate(row - PrivateRow.headerByteCount, byteCount) }

  private var header: UnsafeMutablePointer<Header> { (row - PrivateRow.headerByteCount).assumingMemoryBound(to: Header.self) }

  var committed: RowPointer? { header.pointee.committed }

  /// The size of the block in bytes.
  var byteCount: Int { PrivateRow.headerByteCount + Int(header.pointee.capacity) }

  /// Sets the version in the row's header, which only a row that is inserted again has.
  func setVersion(_ version: RowVersion) { row.storeBytes(of: version.rawValue, toByteOffset: 8, as: Int64.self) }

  func setKey(_ key: ObjectKey) { row.storeBytes(of: key.rawValue, as: Int64.self) }

  func set(_ slot: SlotIndex, cell: UInt64) {
    row.storeBytes(of: cell, toByteOffset: RowLayout.cellOffset(slot), as: UInt64.self)
    let word = RowLayout.presenceOffset(slot)
    row.storeBytes(of: row.load(fromByteOffset: word, as: UInt64.self) | slot.bit, toByteOffset: word, as: UInt64.self)
  }

  func setNull(_ slot: SlotIndex) {
    row.storeBytes(of: 0, toByteOffset: RowLayout.cellOffset(slot), as: UInt64.self)
    let word = RowLayout.presenceOffset(slot)
    row.storeBytes(of: row.load(fromByteOffset: word, as: UInt64.self) & ~slot.bit, toByteOffset: word, as: UInt64.self)
  }

  /// Sets the bytes of a slot: in place if they fit, otherwise after all others.
  ///
  /// Replaced bytes are reclaimed when the block is full, and when the row is saved.
  ///
  /// - Parameters:
  ///   - layout: Evaluated only if the block is full. Getting the layout of an object's entity takes two retains and releases.
  ///   - pool: Evaluated only if the block is full, for the same reason.
  mutating func set(
    _ slot: SlotIndex, bytes: UnsafeRawBufferPointer, _ layout: @autoclosure () -> RowLayout, in pool: @autoclosure () -> BlockPool
  ) {
    let old = pointer.bytes(slot)
    var offset = old.baseAddress.map { $0 - UnsafeRawPointer(row) } ?? 0
    if old.isEmpty || bytes.count > old.count {
      if Int(header.pointee.used) + bytes.count > Int(header.pointee.capacity) { return move(slot, bytes, layout(), pool()) }
      offset = Int(header.pointee.used)
      header.pointee.used += UInt32(bytes.count)
    }
    if let source = bytes.baseAddress { (row + offset).copyMemory(from: source, byteCount: bytes.count) }
    set(slot, cell: PrivateRow.cell(offset, bytes.count))
  }

  /// Copies a slot of another row with the same layout.
  mutating func copy(_ slot: SlotIndex, of other: RowPointer, _ layout: RowLayout, in pool: BlockPool) {
    if !other.isPresent(slot) {
      setNull(slot)
    } else if layout.kinds[slot] == .bytes {
      set(slot, bytes: other.bytes(slot), layout, in: pool)
      if other.isExternal(slot) { markExternal(slot) }
    } else {
      set(slot, cell: UInt64(bitPattern: other.integer(slot)))
    }
  }

  private static func cell(_ offset: Int, _ count: Int) -> UInt64 { UInt64(offset) | UInt64(count) << 32 }

  /// Copies the row to a larger block without unused bytes.
  ///
  /// A block is therefore never more than a quarter larger than its contents, however often values are replaced. The new bytes may be in
  /// the old block.
  private mutating func move(_ changed: SlotIndex, _ bytes: UnsafeRawBufferPointer, _ layout: RowLayout, _ pool: BlockPool) {
    let from = pointer
    var kept = layout.fixedByteCount
    for slot in layout.byteSlots where slot != changed { kept += from.bytes(slot).count }
    let needed = kept + bytes.count, hasUnused = kept != Int(header.pointee.used)
    let fresh = PrivateRow(
      startOf: from, hasUnused ? layout.fixedByteCount : kept, capacity: needed + max(32, needed / 4), header.pointee.committed, pool)
    if hasUnused { for slot in layout.byteSlots where slot != changed && from.isPresent(slot) { fresh.append(from, slot) } }
    fresh.append(bytes, changed)
    destroy(in: pool)
    self = fresh
  }

  /// Copies a row's first bytes, at least its fixed part.
  private init(startOf source: RowPointer, _ length: Int, capacity: Int, _ committed: RowPointer?, _ pool: BlockPool) {
    // The bit above an offset is a flag.
    precondition(capacity < 1 << 31, "A row of more than 2 GiB was built.")
    row = pool.allocate(PrivateRow.headerByteCount + capacity) + PrivateRow.headerByteCount
    header.pointee = Header(committed: committed, capacity: UInt32(capacity), used: UInt32(length))
    row.copyMemory(from: source.base, byteCount: length)
  }

  /// Appends the bytes of a slot of another row. The block has enough space.
  private func append(_ source: RowPointer, _ slot: SlotIndex) {
    append(source.bytes(slot), slot)
    if source.isExternal(slot) { markExternal(slot) }
  }

  /// Marks the bytes in a slot as the name of a file.
  private func markExternal(_ slot: SlotIndex) {
    let cell = UnsafeRawPointer(row).load(fromByteOffset: RowLayout.cellOffset(slot), as: UInt64.self)
    set(slot, cell: cell | RowLayout.externalBit)
  }

  /// Appends bytes. The block has enough space.
  private func append(_ bytes: UnsafeRawBufferPointer, _ slot: SlotIndex) {
    let offset = Int(header.pointee.used)
    if let source = bytes.baseAddress { (row + offset).copyMemory(from: source, byteCount: bytes.count) }
    header.pointee.used += UInt32(bytes.count)
    set(slot, cell: PrivateRow.cell(offset, bytes.count))
  }
}
