#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#else
  import Darwin
#endif

extension RowBatch {
  /// Creates a batch that the caller fills directly, for stores whose row format is similar to ``RowLayout``. ``RowBatchBuilder`` is simpler.
  ///
  /// Debug builds check that the bytes of every present slot are within the batch.
  ///
  /// - Parameters:
  ///   - layout: The columns of the rows.
  ///   - idPrefix: The prefix of the rows' object IDs.
  ///   - count: The number of rows.
  ///   - bytesCount: The number of bytes of text and other data, which follow the fixed parts of the rows.
  ///   - fill: Writes the rows in the format of ``RowLayout``. The memory is aligned to 8 bytes. Its first `count` times
  ///     ``RowLayout/fixedByteCount`` bytes are zero, and `bytesCount` uninitialized bytes follow.
  /// - Returns: Nil if the batch is larger than the maximum, or memory is exhausted; `fill` isn't called then.
  /// - Throws: The error of `fill`.
  public static func filled<Failure: Error>(
    layout: RowLayout, idPrefix: ManagedObjectID?, count: Int, bytesCount: Int,
    _ fill: (UnsafeMutableRawPointer) throws(Failure) -> Void
  ) throws(Failure) -> RowBatch? {
    precondition(count >= 0 && bytesCount >= 0, "A batch can't have \(count) rows and \(bytesCount) bytes.")
    let (fixed, overflow) = count.multipliedReportingOverflow(by: layout.fixedByteCount)
    let (size, carry) = fixed.addingReportingOverflow(bytesCount)
    // Cells have 31 bits for the offset of their bytes.
    guard !overflow, !carry, size < 1 << 31 else { return nil }
    guard let base = malloc(max(size, 8)) else { return nil }
    memset(base, 0, fixed)
    do throws(Failure) {
      try fill(base)
    } catch {
      free(base)
      throw error
    }
    let batch = RowBatch(layout: layout, idPrefix: idPrefix, count: count, byteCount: size, base: base)
    assert(batch.isWithinBounds, "A filled batch has a cell whose bytes aren't within the batch.")
    return batch
  }

  /// Whether the bytes of every present slot are within the batch.
  private var isWithinBounds: Bool {
    for index in 0..<count {
      let row = pointer(index)
      for slot in layout.byteSlots where row.isPresent(slot) {
        let bytes = row.bytes(slot), start = index * layout.fixedByteCount
        guard let offset = bytes.baseAddress.map({ $0 - row.base }), start + offset + bytes.count <= byteCount else { return false }
      }
    }
    return true
  }
}
