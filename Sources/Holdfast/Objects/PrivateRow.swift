#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// The row that a changed object owns: one block of memory, a small header followed by a row in the layout of every
/// other row, with room behind it for text. A getter does not see the difference.
///
/// A struct around a pointer to the row; the header lies in the bytes before it.
struct PrivateRow {
  private struct Header {
    /// The row as it was read, or nil for an object that was never saved. Kept alive by the object's owner.
    var committed: UnsafeRawPointer?
    var capacity: Int
    var used: Int
  }

  private static let headerByteCount = 32

  /// Where the row begins.
  private(set) var row: UnsafeMutableRawPointer

  /// Finds the block of a row that is known to be private.
  init(existing row: UnsafeRawPointer) { self.row = UnsafeMutableRawPointer(mutating: row) }

  /// Copies a row.
  ///
  /// - Parameter committed: the row as the store has it; nil for a new object.
  init(copying source: RowPointer, room: Int, committed: UnsafeRawPointer?) {
    let length = source.byteCount
    let capacity = length + room
    guard let block = malloc(PrivateRow.headerByteCount + capacity) else { preconditionFailure("There is no memory for a changed row.") }
    row = block + PrivateRow.headerByteCount
    block.storeBytes(of: Header(committed: committed, capacity: capacity, used: length), as: Header.self)
    row.copyMemory(from: source.base, byteCount: length)
  }

  func destroy() { free(row - PrivateRow.headerByteCount) }

  private var header: UnsafeMutablePointer<Header> { (row - PrivateRow.headerByteCount).assumingMemoryBound(to: Header.self) }

  var committed: RowPointer? { header.pointee.committed.map { RowPointer($0) } }

  func setKey(_ key: Int64) { row.storeBytes(of: key, as: Int64.self) }

  func set(_ slot: Int, cell: UInt64) {
    row.storeBytes(of: cell, toByteOffset: RowLayout.cellOffset(slot), as: UInt64.self)
    let word = RowLayout.presenceOffset(slot)
    row.storeBytes(of: row.load(fromByteOffset: word, as: UInt64.self) | 1 << UInt64(slot & 63), toByteOffset: word, as: UInt64.self)
  }

  func setNull(_ slot: Int) {
    row.storeBytes(of: 0, toByteOffset: RowLayout.cellOffset(slot), as: UInt64.self)
    let word = RowLayout.presenceOffset(slot)
    row.storeBytes(of: row.load(fromByteOffset: word, as: UInt64.self) & ~(1 << UInt64(slot & 63)), toByteOffset: word, as: UInt64.self)
  }

  /// Puts bytes into a slot: over the old ones where they fit, else behind everything. The room of the old ones is
  /// regained when the row is saved.
  mutating func set(_ slot: Int, bytes: UnsafeRawBufferPointer) {
    let old = RowPointer(row).bytes(slot)
    var offset = old.baseAddress.map { $0 - UnsafeRawPointer(row) } ?? 0
    if old.isEmpty || bytes.count > old.count {
      let used = header.pointee.used
      if used + bytes.count > header.pointee.capacity { grow(to: used + bytes.count) }
      offset = used
      header.pointee.used = used + bytes.count
    }
    if let source = bytes.baseAddress { (row + offset).copyMemory(from: source, byteCount: bytes.count) }
    set(slot, cell: UInt64(offset) | UInt64(bytes.count) << 32)
  }

  private mutating func grow(to needed: Int) {
    let capacity = max(needed, header.pointee.capacity * 2)
    guard let block = realloc(row - PrivateRow.headerByteCount, PrivateRow.headerByteCount + capacity) else {
      preconditionFailure("There is no memory for a changed row.")
    }
    row = block + PrivateRow.headerByteCount
    header.pointee.capacity = capacity
  }
}
