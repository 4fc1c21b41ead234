#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// Moves keys between the numbers that a store uses and those that a stack of several stores uses: the lower bits are the
/// store's key, the upper ones say which store.
extension RowBatch {
  /// A copy of the page in which keys lie in another range: one `memcpy`, then a store per key.
  ///
  /// - Parameters:
  ///   - distance: is added to keys.
  ///   - range: the keys that can be moved.
  ///   - movesRowKeys: whether the rows are objects, whose keys are moved too, and not only those of to-one targets.
  /// - Returns: nil when a key lies outside the range.
  package func moved(by distance: Int64, from range: Range<Int64>, movesRowKeys: Bool) -> RowBatch? {
    let size = max(byteCount, 8)
    guard let copy = malloc(size) else { preconditionFailure("There is no memory for \(size) bytes of rows.") }
    copy.copyMemory(from: base, byteCount: byteCount)
    let moved = RowBatch(layout: layout, idPrefix: idPrefix, count: count, byteCount: byteCount, base: copy)
    if movesRowKeys {
      for index in 0..<count {
        let row = copy + index &* stride
        let key = row.load(as: Int64.self)
        guard range.contains(key) else { return nil }
        row.storeBytes(of: key &+ distance, as: Int64.self)
      }
    }
    for slot in layout.kinds.indices where layout.kinds[slot] == .key {
      let offset = RowLayout.cellOffset(slot)
      for index in 0..<count where pointer(index).isPresent(slot) {
        let row = copy + index &* stride
        let key = row.load(fromByteOffset: offset, as: Int64.self)
        guard range.contains(key) else { return nil }
        row.storeBytes(of: key &+ distance, toByteOffset: offset, as: Int64.self)
      }
    }
    return moved
  }

  /// Whether all keys of the rows at some places, and of their to-one targets, lie in a range.
  package func hasKeys(in range: Range<Int64>, _ rows: RowSelection, checksRowKeys: Bool) -> Bool {
    func holds(_ row: RowPointer) -> Bool {
      if checksRowKeys && !range.contains(row.key) { return false }
      for slot in layout.kinds.indices where layout.kinds[slot] == .key && row.isPresent(slot) {
        if !range.contains(row.integer(slot)) { return false }
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
