import HoldfastAtomicStore
import HoldfastStore

/// A row of the old file that was changed or deleted.
struct RowChange {
  var key: Int64
  var old: RowPointer
  /// Nil if the row was deleted.
  var new: RowPointer?
}

/// The changes to an entity's rows since the old file was written.
struct RowChanges {
  /// Ascending by key, after sorting.
  private var changed: [RowChange] = []
  private var added: [Int64] = []

  /// Adds the old and the new version of a row. One of them may be nil.
  mutating func append(_ old: RowPointer?, _ new: RowPointer?) {
    if let old { changed.append(RowChange(key: old.key.rawValue, old: old, new: new)) } else if let new { added.append(new.key.rawValue) }
  }

  /// Sorts the changes by key. They are usually sorted already.
  mutating func sort() {
    if !zip(changed, changed.dropFirst()).allSatisfy({ $0.key < $1.key }) { changed.sort { $0.key < $1.key } }
    if !zip(added, added.dropFirst()).allSatisfy({ $0 < $1 }) { added.sort() }
  }

  /// The changes in a section's range of keys.
  func changes(in part: FilePart) -> ArraySlice<RowChange> {
    let start = changed.firstPlace { $0.key >= part.first }
    return changed[start..<max(start, changed.firstPlace { $0.key > part.last })]
  }

  /// Whether a section can be kept. Its range of keys must have no inserted row. It must have no changes, or few changes and enough bytes.
  func areFew(in part: FilePart) -> Bool {
    let place = added.firstPlace { $0 >= part.first }
    if place < added.count && added[place] <= part.last { return false }
    let count = changes(in: part).count
    return count == 0 || count <= part.count / 4 && part.byteCount >= BinaryWriter.smallByteCount
  }
}

extension Array {
  /// The first index whose element satisfies a predicate, which must hold for all following elements as well.
  fileprivate func firstPlace(where holds: (Element) -> Bool) -> Int {
    var (low, end) = (0, count)
    while low < end {
      let middle = (low + end) / 2
      if holds(self[middle]) { end = middle } else { low = middle + 1 }
    }
    return low
  }
}
