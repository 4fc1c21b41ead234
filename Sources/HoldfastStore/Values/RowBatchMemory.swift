/// Memory for the rows of a batch that are in a file, for more rows than memory should contain.
public protocol RowBatchMemory: AnyObject, Sendable {
  /// The address of the rows, aligned to 8 bytes. It never changes.
  var base: UnsafeRawPointer { get }

  /// Reads the rows, unless they are in memory.
  ///
  /// If they can't be read, all their bytes are zero, so they are rows without values and keys. The owner of the file knows of the failure.
  ///
  /// - Returns: Whether they could be read.
  @discardableResult func load() -> Bool

  /// Removes the rows from memory.
  func evict()
}

extension RowBatch {
  /// Returns a batch with the same rows in memory that it doesn't own.
  ///
  /// - Parameter copy: Copies the bytes to a file. Returns memory for them, which the batch keeps; nil if they can't be copied.
  /// - Returns: Nil if `copy` returned nil.
  public func copied(_ copy: (UnsafeRawBufferPointer) -> (any RowBatchMemory)?) -> RowBatch? {
    guard let memory = copy(UnsafeRawBufferPointer(start: base, count: byteCount)) else { return nil }
    return RowBatch(
      layout: layout, idPrefix: idPrefix, count: count, byteCount: byteCount, base: UnsafeMutableRawPointer(mutating: memory.base),
      memory: memory)
  }

  /// Whether the rows are in a file, so that they can be evicted.
  public var isEvictable: Bool { memory != nil }

  /// Reads rows in a file, unless they are in memory. Call it before pointers to the rows are used, on one thread at a time.
  ///
  /// - Returns: False if they can't be read; see ``RowBatchMemory/load()``.
  @discardableResult @inlinable @inline(__always) public func load() -> Bool { memory?.load() ?? true }

  /// Evicts rows in a file from memory. Pointers to them can't be used until ``load()`` is called. Call it after a loop over the rows.
  public func evict() { if let memory { memory.evict() } }
}
