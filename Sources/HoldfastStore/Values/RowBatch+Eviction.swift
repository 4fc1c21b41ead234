// Batches in a file that is mapped into memory, for more rows than memory should contain.
extension RowBatch {
  /// Evicts bytes of a mapped file from memory. They are read again when they are used.
  public typealias Eviction = @Sendable (UnsafeRawBufferPointer) -> Void

  /// Returns a batch with the same rows in memory that it doesn't own.
  ///
  /// - Parameter copy: Copies the bytes. Returns their new address, aligned to 8 bytes, and a closure that evicts them. The batch keeps the
  ///   closure, which keeps the memory; the bytes never change. Nil if they can't be copied.
  /// - Returns: Nil if `copy` returned nil.
  public func copied(_ copy: (UnsafeRawBufferPointer) -> (base: UnsafeRawPointer, eviction: Eviction)?) -> RowBatch? {
    guard let place = copy(UnsafeRawBufferPointer(start: base, count: byteCount)) else { return nil }
    return RowBatch(
      layout: layout, idPrefix: idPrefix, count: count, byteCount: byteCount, base: UnsafeMutableRawPointer(mutating: place.base),
      eviction: place.eviction)
  }

  /// Evicts the rows from memory if they are in a mapped file. Pointers to them stay valid. Call it after a loop over the rows.
  @inline(__always) public func evict() { if let eviction { eviction(UnsafeRawBufferPointer(start: base, count: byteCount)) } }
}
