import HoldfastStore

/// The latest groups of rows that were read for faults. Siblings that are created later get their rows from these groups.
///
/// They are discarded when rows may have changed.
struct RecentGroups {
  private var groups: [RowGroup] = []
  /// The index of the latest group. When there are ``maximumCount`` groups, a new group replaces the one at the next index.
  private var latest = 0
  /// The coordinator's save count when the groups were read.
  private var saveCount = 0
  private static let maximumCount = 8

  var isEmpty: Bool { groups.isEmpty }

  /// Discards groups that were read before the latest save of any context. Call it before using or adding groups.
  mutating func discardOlder(than saveCount: Int) {
    if saveCount == self.saveCount { return }
    self.saveCount = saveCount
    groups = []
  }

  /// Discards all groups.
  mutating func removeAll() { groups = [] }

  /// Adds a group.
  mutating func append(_ group: RowGroup) {
    if groups.count < RecentGroups.maximumCount {
      groups.append(group)
      latest = groups.count - 1
    } else {
      latest = (latest + 1) % RecentGroups.maximumCount
      groups[latest] = group
    }
  }

  /// The row with a key, its group and its position in the group; nil if no group of these entities contains the key.
  func row(_ key: ObjectKey, of family: Range<EntityIndex>) -> (RowGroup, RowPointer, Int)? {
    // Begin with the latest group, which is the most likely to contain the row.
    var place = latest
    for _ in groups.indices {
      let group = groups[place]
      if family.contains(group.entity), let (row, position) = group.row(key) { return (group, row, position) }
      place = place == 0 ? groups.count - 1 : place - 1
    }
    return nil
  }
}
