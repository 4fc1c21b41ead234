#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// Sealed rows of one concrete entity: the currency between file and object.
///
/// A store decodes its bytes once, straight into batches; the row cache holds them; a managed object is a view on one
/// row. A sealed batch is never written, so it can be shared by threads without locks. Batches are made by
/// ``RowBatchBuilder`` and hold about 64 KiB.
public final class RowBatch: @unchecked Sendable {  // because nothing writes to the bytes after the initialiser
  /// The shape of the rows.
  public let layout: RowLayout
  /// Makes the rows' object IDs: the ID of the entity's objects with key 0. Nil for rows that are not objects, such
  /// as those of a count or of dictionary results.
  public let idPrefix: ManagedObjectID?
  /// The number of rows.
  public let count: Int
  /// The bytes that the rows take.
  public let byteCount: Int
  @usableFromInline let base: UnsafeMutableRawPointer
  /// From one row's start to the next.
  @usableFromInline let stride: Int

  /// Takes over what a builder filled.
  init(layout: RowLayout, idPrefix: ManagedObjectID?, count: Int, byteCount: Int, base: UnsafeMutableRawPointer) {
    self.layout = layout
    self.idPrefix = idPrefix
    self.count = count
    self.byteCount = byteCount
    self.base = base
    stride = layout.fixedByteCount
  }

  deinit { free(base) }

  /// The row at an index, to be read while the batch lives.
  @inlinable @inline(__always) public func pointer(_ index: Int) -> RowPointer { RowPointer(UnsafeRawPointer(base) + index &* stride) }

  /// The row at an index, with the batch.
  public subscript(index: Int) -> RowView {
    precondition(index >= 0 && index < count, "Row \(index) of a batch of \(count) rows was asked for.")
    return RowView(batch: self, index: index)
  }

  /// The ID of the object whose row is at an index; nil for rows that are not objects.
  @inlinable public func objectID(_ index: Int) -> ManagedObjectID? { idPrefix?.withKey(pointer(index).key) }
}

/// One row of a batch, which it keeps alive. The safe face of rows: every access is checked, values are made as
/// ``StoreValue``.
public struct RowView: Sendable {
  /// The batch.
  public let batch: RowBatch
  /// The place in the batch.
  public let index: Int

  /// The object's ID; nil for a row that is not an object.
  public var objectID: ManagedObjectID? { batch.objectID(index) }
  /// The key.
  public var key: Int64 { batch.pointer(index).key }
  /// The version.
  public var version: Int64 { batch.pointer(index).version }
  /// The bytes of the row, for the framework and fast stores.
  public var pointer: RowPointer { batch.pointer(index) }

  /// The value in a slot.
  ///
  /// Never traps on what a store delivered: bytes that are no value of the column's type read as null.
  public subscript(slot: Int) -> StoreValue {
    precondition(
      slot >= 0 && slot < batch.layout.columns.count, "Slot \(slot) of a row with \(batch.layout.columns.count) slots was asked for.")
    return pointer.value(slot, batch.layout.columns[slot], idPrefix: batch.idPrefix)
  }

  /// All values in slot order.
  public var values: [StoreValue] { batch.layout.columns.indices.map { self[$0] } }
}
