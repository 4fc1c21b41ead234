import HoldfastAtomicStore
import HoldfastStore

/// A row that the file that is replaced has and that has changed since, or is gone.
struct RowChange {
  var key: Int64
  var old: RowPointer
  /// Nil for a row that is gone.
  var new: RowPointer?
}

/// What has changed in the rows of an entity since the file that is replaced was written.
struct RowChanges {
  /// Ascending by key, once they are sorted.
  private var changed: [RowChange] = []
  private var added: [Int64] = []

  /// Takes a row as it was and as it is; one of both may be missing.
  mutating func append(_ old: RowPointer?, _ new: RowPointer?) {
    if let old { changed.append(RowChange(key: old.key, old: old, new: new)) } else if let new { added.append(new.key) }
  }

  /// Mostly they have come in this order.
  mutating func sort() {
    if !zip(changed, changed.dropFirst()).allSatisfy({ $0.key < $1.key }) { changed.sort { $0.key < $1.key } }
    if !zip(added, added.dropFirst()).allSatisfy({ $0 < $1 }) { added.sort() }
  }

  /// The changes of rows with keys of a section.
  func changes(in part: FilePart) -> ArraySlice<RowChange> {
    let start = changed.firstPlace { $0.key >= part.first }
    return changed[start..<max(start, changed.firstPlace { $0.key > part.last })]
  }

  /// Whether a section has no change, or is large, has few and no row between its rows that is new.
  func areFew(in part: FilePart) -> Bool {
    let place = added.firstPlace { $0 >= part.first }
    if place < added.count && added[place] <= part.last { return false }
    let count = changes(in: part).count
    return count == 0 || count <= part.count / 4 && part.byteCount >= BinaryWriter.smallByteCount
  }
}

extension Array {
  /// The first place of which something holds that holds of all behind it, too.
  fileprivate func firstPlace(where holds: (Element) -> Bool) -> Int {
    var (low, end) = (0, count)
    while low < end {
      let middle = (low + end) / 2
      if holds(self[middle]) { end = middle } else { low = middle + 1 }
    }
    return low
  }
}
