#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

extension RowBatch {
  /// Creates a batch that the caller fills directly, for stores with a similar row format.
  ///
  /// - Parameters:
  ///   - layout: The columns of the rows.
  ///   - idPrefix: The prefix of the rows' object IDs.
  ///   - count: The number of rows.
  ///   - bytesCount: The number of bytes of text and other data, which follow the fixed parts of the rows.
  ///   - fill: Writes the rows in the format of ``RowLayout``. The fixed parts are zero at first.
  /// - Returns: Nil if the batch is larger than the maximum, or memory is exhausted; `fill` isn't called then.
  package static func filled(
    layout: RowLayout, idPrefix: ManagedObjectID?, count: Int, bytesCount: Int, _ fill: (UnsafeMutableRawPointer) throws -> Void
  ) rethrows -> RowBatch? {
    let (fixed, overflow) = count.multipliedReportingOverflow(by: layout.fixedByteCount)
    let (size, carry) = fixed.addingReportingOverflow(bytesCount)
    // Cells have 31 bits for the offset of their bytes.
    guard !overflow, !carry, size < 1 << 31 else { return nil }
    guard let base = malloc(max(size, 8)) else { return nil }
    memset(base, 0, fixed)
    do {
      try fill(base)
    } catch {
      free(base)
      throw error
    }
    return RowBatch(layout: layout, idPrefix: idPrefix, count: count, byteCount: size, base: base)
  }
}
