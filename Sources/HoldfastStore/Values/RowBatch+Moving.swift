#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#else
  import Darwin
#endif

/// Converts keys between a store's own range and that of a coordinator with several stores.
///
/// The lower bits are the store's key, the upper bits the store.
extension RowBatch {
  /// Returns a copy of the batch with its keys moved to another range.
  ///
  /// The cost is one `memcpy` and one write per key.
  ///
  /// - Parameters:
  ///   - distance: The number to add to each key.
  ///   - range: The keys that can be moved.
  ///   - movesRowKeys: Whether to move the keys of the rows, as for objects, and not only those of to-one destinations.
  /// - Returns: Nil if a key is outside the range.
  package func moved(by distance: Int, from range: Range<ObjectKey>, movesRowKeys: Bool) -> RowBatch? {
    let size = max(byteCount, 8)
    guard let copy = malloc(size) else { preconditionFailure("Out of memory: \(size) bytes of rows couldn't be allocated.") }
    copy.copyMemory(from: base, byteCount: byteCount)
    let moved = RowBatch(layout: layout, idPrefix: idPrefix, count: count, byteCount: byteCount, base: copy)
    if movesRowKeys {
      for index in 0..<count {
        let row = copy + index &* stride
        let key = row.load(as: ObjectKey.self)
        guard range.contains(key) else { return nil }
        row.storeBytes(of: key.advanced(by: distance), as: ObjectKey.self)
      }
    }
    for slot in layout.slots where layout.kinds[slot] == .key {
      let offset = RowLayout.cellOffset(slot)
      for index in 0..<count where pointer(index).isPresent(slot) {
        let row = copy + index &* stride
        let key = row.load(fromByteOffset: offset, as: ObjectKey.self)
        guard range.contains(key) else { return nil }
        row.storeBytes(of: key.advanced(by: distance), toByteOffset: offset, as: ObjectKey.self)
      }
    }
    return moved
  }

  /// Whether all keys in the selected rows, with to-one destinations, are in a range.
  package func hasKeys(in range: Range<ObjectKey>, _ rows: RowSelection, checksRowKeys: Bool) -> Bool {
    func holds(_ row: RowPointer) -> Bool {
      if checksRowKeys && !range.contains(row.key) { return false }
      for slot in layout.slots where layout.kinds[slot] == .key && row.isPresent(slot) {
        if !range.contains(row.key(slot)) { return false }
      }
      return true
    }
    switch rows {
    case .all: return (0..<count).allSatisfy { holds(pointer($0)) }
    case .one(let index): return holds(pointer(index))
    case .rows(let indexes): return indexes.allSatisfy { holds(pointer(Int($0))) }
    }
  }
}
