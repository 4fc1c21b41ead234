#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#else
  import Darwin
#endif

/// Sealed rows of one concrete entity.
///
/// Batches carry rows from a store's file to managed objects. A store decodes its bytes once, directly into batches. The row cache keeps
/// batches, and a managed object refers to one row.
///
/// ``RowBatchBuilder`` creates batches of about 64 KiB. A sealed batch never changes, so threads can share it without locks.
public final class RowBatch: @unchecked Sendable {  // because the rows never change; those in a file are used on one thread
  /// The layout of the rows.
  public let layout: RowLayout
  /// The prefix of the rows' object IDs: an ID of the entity with key 0.
  ///
  /// Nil for rows that aren't objects, such as a count or dictionary results.
  public let idPrefix: ManagedObjectID?
  /// The number of rows.
  public let count: Int
  /// The size of the rows in bytes.
  public let byteCount: Int
  @usableFromInline let base: UnsafeMutableRawPointer
  /// The distance between the starts of two rows, in bytes.
  @usableFromInline let stride: Int
  /// The memory of rows that are in a file; nil if it is the batch's own.
  @usableFromInline let memory: (any RowBatchMemory)?

  /// Takes ownership of a builder's memory, unless the bytes have another owner.
  init(
    layout: RowLayout, idPrefix: ManagedObjectID?, count: Int, byteCount: Int, base: UnsafeMutableRawPointer,
    memory: (any RowBatchMemory)? = nil
  ) {
    self.memory = memory
    self.layout = layout
    self.idPrefix = idPrefix
    self.count = count
    self.byteCount = byteCount
    self.base = base
    stride = layout.fixedByteCount
  }

  deinit { if memory == nil { free(base) } }

  /// The row at an index. Use it only while the batch is alive, and its rows are in memory; see ``load()``.
  @inlinable @inline(__always) public func pointer(_ index: Int) -> RowPointer { RowPointer(UnsafeRawPointer(base) + index &* stride) }

  /// The row at an index, which keeps the batch alive.
  public subscript(index: Int) -> RowView {
    precondition(index >= 0 && index < count, "Row \(index) is out of range: the batch has \(count) rows.")
    return RowView(batch: self, index: index)
  }

  /// The object ID of a row, or nil for rows that aren't objects.
  @inlinable public func objectID(_ index: Int) -> ManagedObjectID? { idPrefix?.withKey(pointer(index).key) }
}

/// A row of a batch, with checked access to values as ``StoreValue``. It keeps the batch alive.
public struct RowView: Sendable {
  /// The batch.
  public let batch: RowBatch
  /// The index of the row in the batch.
  public let index: Int

  /// The object's ID, or nil for a row that isn't an object.
  public var objectID: ManagedObjectID? { batch.objectID(index) }
  /// The key.
  public var key: ObjectKey { batch.pointer(index).key }
  /// The row's version; see ``RowVersion``.
  public var version: RowVersion { batch.pointer(index).version }
  /// Unchecked access to the row, for the framework and fast stores.
  public var pointer: RowPointer { batch.pointer(index) }

  /// The value in a slot.
  ///
  /// Bytes that aren't a value of the column's type read as null. Only an index out of range traps.
  ///
  /// A to-one destination is an object ID. It is a key as a whole number if the batch's layout is neither of a model nor decoded.
  public subscript(slot: SlotIndex) -> StoreValue {
    precondition(
      batch.layout.slots.contains(slot), "Slot \(slot) is out of range: the row has \(batch.layout.columns.count) slots.")
    return pointer.value(slot, in: batch.layout, idPrefix: batch.idPrefix)
  }

  /// All values, in slot order.
  public var values: [StoreValue] { batch.layout.slots.map { self[$0] } }
}
