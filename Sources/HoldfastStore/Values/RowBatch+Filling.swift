#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

extension RowBatch {
  /// Makes a batch that somebody fills column by column, for stores of ours whose bytes are nearly rows.
  ///
  /// - Parameters:
  ///   - layout: the rows' columns.
  ///   - idPrefix: makes the rows' object IDs.
  ///   - count: how many rows there are.
  ///   - bytesCount: how many bytes of text and of other values there are, which follow the rows' fixed parts.
  ///   - fill: writes the rows, as ``RowLayout`` describes them, into bytes that are zero.
  /// - Returns: nil when the batch would be larger than batches can be, or than there is memory; `fill` is not called then.
  package static func filled(
    layout: RowLayout, idPrefix: ManagedObjectID?, count: Int, bytesCount: Int, _ fill: (UnsafeMutableRawPointer) throws -> Void
  ) rethrows -> RowBatch? {
    let (fixed, overflow) = count.multipliedReportingOverflow(by: layout.fixedByteCount)
    let (size, carry) = fixed.addingReportingOverflow(bytesCount)
    // Cells have 31 bits to say where bytes lie.
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
