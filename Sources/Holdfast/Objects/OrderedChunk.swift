import HoldfastStore

/// A range of an ordered list: keys with their order keys. Some keys are hidden. Confined to a context.
final class OrderedChunk {
  struct Entry {
    var key: ObjectKey
    var order: Int64
  }

  private(set) var entries: [Entry]
  /// The index among the chunks of its list.
  var place: Int
  /// The offsets of the entries that are hidden, ascending.
  private var hidden: [Int] = []

  init(_ entries: [Entry], place: Int) {
    self.entries = entries
    self.place = place
  }

  // MARK: Reading

  var hiddenCount: Int { hidden.count }

  var visibleCount: Int { entries.count - hidden.count }

  /// The keys that are not hidden, in order.
  var visibleKeys: [ObjectKey] {
    if hidden.isEmpty { return entries.map(\.key) }
    var rest = hidden[...]
    return entries.indices.compactMap { offset in
      guard rest.first == offset else { return entries[offset].key }
      rest.removeFirst()
      return nil
    }
  }

  func offset(of key: ObjectKey) -> Int? { entries.firstIndex { $0.key == key } }

  /// The offset of the entry at a position among the visible ones. The position must be less than their count.
  func offset(ofVisible position: Int) -> Int {
    var offset = position
    for hidden in hidden {
      if hidden > offset { break }
      offset += 1
    }
    return offset
  }

  /// The position of an entry among the visible ones; nil if it is hidden.
  func visiblePosition(of offset: Int) -> Int? {
    let before = hiddenCount(before: offset)
    return before < hidden.count && hidden[before] == offset ? nil : offset - before
  }

  private func hiddenCount(before offset: Int) -> Int { hidden.firstIndex { $0 >= offset } ?? hidden.count }

  // MARK: Changing

  /// Hides an entry. Returns false if it was already hidden.
  func hide(_ offset: Int) -> Bool {
    let place = hiddenCount(before: offset)
    if place < hidden.count && hidden[place] == offset { return false }
    hidden.insert(offset, at: place)
    return true
  }

  func showAll() { hidden = [] }

  func insert(_ entry: Entry, at offset: Int) {
    for place in hiddenCount(before: offset)..<hidden.count { hidden[place] += 1 }
    entries.insert(entry, at: offset)
  }

  /// Removes an entry. Returns true if it was hidden.
  func remove(at offset: Int) -> Bool {
    let place = hiddenCount(before: offset)
    let wasHidden = place < hidden.count && hidden[place] == offset
    if wasHidden { hidden.remove(at: place) }
    for place in place..<hidden.count { hidden[place] -= 1 }
    entries.remove(at: offset)
    return wasHidden
  }

  /// Removes the second half and returns it as the next chunk.
  func splitOff() -> OrderedChunk {
    let half = entries.count / 2, seen = hiddenCount(before: half)
    let second = OrderedChunk(Array(entries[half...]), place: place + 1)
    second.hidden = hidden[seen...].map { $0 - half }
    entries.removeSubrange(half...)
    hidden.removeSubrange(seen...)
    return second
  }

  /// Replaces the entries with ones of the same keys and other order keys.
  func take(_ entries: ArraySlice<Entry>) { self.entries = Array(entries) }
}
