/// The keys of the objects of an ordered relationship, in their order, with the keys by which the store orders them.
/// Confined to a context.
///
/// Keys lie in chunks of up to a thousand, and each key knows its chunk: a change of one place costs as much as the chunks
/// and their number do, not as much as all keys; only the first change after a save copies all of them. What is new or was moved has no order key until the next save, which puts
/// it between those of its neighbours.
final class OrderedList {
  /// Stands for the order key that is not there yet.
  static let unset = Int64.max

  private struct Entry {
    var key: Int64
    var order: Int64
  }

  private final class Chunk {
    var entries: [Entry]
    /// Its place among the chunks.
    var place: Int

    init(_ entries: [Entry], place: Int) {
      self.entries = entries
      self.place = place
    }
  }

  private static let most = 1024

  private var chunks: [Chunk] = []
  private var chunkOf: [Int64: Chunk] = [:]
  private(set) var count = 0
  /// The list as it was saved last, from the first change on; what a rollback goes back to.
  private var settled: [Entry]?
  /// All entries with the order keys that a save has asked for, until it has succeeded.
  private var assigned: [Entry]?
  /// Raised by every change.
  private var version = 0
  /// The keys that are not hidden, and for which state of list and context that was found; nil for all of them.
  private var visible: (version: Int, stamp: Int, keys: [Int64]?)?

  /// Makes a list.
  ///
  /// - Parameter orders: parallel to the keys; nil when none has an order key yet.
  init(_ keys: some Collection<Int64>, orders: ArraySlice<Int64>? = nil) {
    chunkOf.reserveCapacity(keys.count)
    var entries: [Entry] = []
    var order = orders?.makeIterator()
    for key in keys {
      entries.append(Entry(key: key, order: order?.next() ?? OrderedList.unset))
      if entries.count == OrderedList.most / 2 {
        appendChunk(entries)
        entries = []
      }
    }
    if !entries.isEmpty { appendChunk(entries) }
  }

  private func appendChunk(_ entries: [Entry]) {
    let chunk = Chunk(entries, place: chunks.count)
    chunks.append(chunk)
    for entry in entries { chunkOf[entry.key] = chunk }
    count += entries.count
  }

  // MARK: Reading

  /// All keys in order.
  var keys: [Int64] {
    var keys: [Int64] = []
    keys.reserveCapacity(count)
    for chunk in chunks { for entry in chunk.entries { keys.append(entry.key) } }
    return keys
  }

  /// The keys at those of some positions that there are.
  func keys(in range: Range<Int>) -> [Int64] {
    var (found, start): ([Int64], Int) = ([], 0)
    for chunk in chunks where start < range.upperBound {
      let end = start + chunk.entries.count
      if end > range.lowerBound {
        for place in max(start, range.lowerBound)..<min(end, range.upperBound) { found.append(chunk.entries[place - start].key) }
      }
      start = end
    }
    return found
  }

  /// The key at a position, which there is.
  func key(at position: Int) -> Int64 {
    let (chunk, offset) = find(position)
    return chunk.entries[offset].key
  }

  func contains(_ key: Int64) -> Bool { chunkOf[key] != nil }

  /// The position of a key; nil when it is not in the list.
  func position(of key: Int64) -> Int? {
    guard let chunk = chunkOf[key], let offset = chunk.entries.firstIndex(where: { $0.key == key }) else { return nil }
    return chunks[..<chunk.place].reduce(offset) { $0 + $1.entries.count }
  }

  private func find(_ position: Int) -> (Chunk, Int) {
    var offset = position
    for chunk in chunks {
      if offset < chunk.entries.count { return (chunk, offset) }
      offset -= chunk.entries.count
    }
    preconditionFailure("Position \(position) of an ordered relationship of \(count) objects was asked for.")
  }

  // MARK: Changing

  /// Appends a key that is not in the list.
  func append(_ key: Int64) { insert(key, at: count) }

  /// Inserts a key that is not in the list.
  func insert(_ key: Int64, at position: Int) {
    noteChange()
    let entry = Entry(key: key, order: OrderedList.unset)
    if position == count, chunks.last.map({ $0.entries.count >= OrderedList.most }) ?? true { return appendChunk([entry]) }
    let (chunk, offset) = position == count ? (chunks[chunks.count - 1], chunks[chunks.count - 1].entries.count) : find(position)
    chunk.entries.insert(entry, at: offset)
    chunkOf[key] = chunk
    count += 1
    if chunk.entries.count > OrderedList.most { split(chunk) }
  }

  /// To be called before every change.
  private func noteChange() {
    version += 1
    if settled == nil { settled = chunks.flatMap(\.entries) }
  }

  /// The list is saved as it is, with the order keys that were assigned.
  func settle() {
    if let assigned, assigned.count == count { write(assigned) }
    assigned = nil
    settled = nil
  }

  /// Goes back to what was saved last.
  func revert() {
    guard let settled else { return }
    replaceAll(by: settled)
    self.settled = nil
    assigned = nil
  }

  private func replaceAll(by entries: [Entry]) {
    version += 1
    chunks = []
    chunkOf = [:]
    count = 0
    for start in stride(from: 0, to: entries.count, by: OrderedList.most / 2) {
      appendChunk(Array(entries[start..<min(start + OrderedList.most / 2, entries.count)]))
    }
  }

  /// The keys that are not hidden; nil when all are to be seen. Worked out once for each state of the list.
  ///
  /// - Parameter stamp: says which keys are hidden: while it is the same, so are they.
  func visibleKeys(_ stamp: Int, _ isHidden: (Int64) -> Bool) -> [Int64]? {
    if let visible, visible.version == version, visible.stamp == stamp { return visible.keys }
    let all = keys
    let seen = all.filter { !isHidden($0) }
    let found = seen.count == all.count ? nil : seen
    visible = (version, stamp, found)
    return found
  }

  private func split(_ chunk: Chunk) {
    let half = chunk.entries.count / 2
    let second = Chunk(Array(chunk.entries[half...]), place: chunk.place + 1)
    chunk.entries.removeSubrange(half...)
    chunks.insert(second, at: second.place)
    for place in second.place..<chunks.count { chunks[place].place = place }
    for entry in second.entries { chunkOf[entry.key] = second }
  }

  /// Removes a key. False when it is not in the list.
  @discardableResult func remove(_ key: Int64) -> Bool {
    guard chunkOf[key] != nil else { return false }
    noteChange()
    guard let chunk = chunkOf.removeValue(forKey: key), let offset = chunk.entries.firstIndex(where: { $0.key == key }) else {
      return false
    }
    chunk.entries.remove(at: offset)
    count -= 1
    if chunk.entries.isEmpty {
      chunks.remove(at: chunk.place)
      for place in chunk.place..<chunks.count { chunks[place].place = place }
    }
    return true
  }

  /// Puts a key that is in the list at a position, counted without it.
  func move(_ key: Int64, to position: Int) {
    if remove(key) { insert(key, at: position) }
  }

  /// Puts all keys into another order.
  func replaceOrder(by keys: [Int64]) {
    noteChange()
    let known = Dictionary(chunks.lazy.flatMap(\.entries).map { ($0.key, $0.order) }, uniquingKeysWith: { first, _ in first })
    var before = Int64.min
    replaceAll(
      by: keys.map { key in
        // Those that still stand in the order of their keys keep them.
        let order = known[key] ?? OrderedList.unset
        let keeps = order > before && order != OrderedList.unset
        if keeps { before = order }
        return Entry(key: key, order: keeps ? order : OrderedList.unset)
      })
  }

  /// Replaces every key by what a function says of it; those of which it says something negative go.
  func translate(_ translation: (Int64) -> Int64) {
    let all = assigned.map { $0.count == count ? $0 : chunks.flatMap(\.entries) } ?? chunks.flatMap(\.entries)
    assigned = nil
    replaceAll(
      by: all.compactMap { entry in
        let key = translation(entry.key)
        return key >= 0 ? Entry(key: key, order: entry.order) : nil
      })
  }

  // MARK: Order keys

  /// The first order key of a list, and the distance of those that are appended; as Core Data's files have them.
  private static let firstOrder: Int64 = 2048, step: Int64 = 1024

  /// Works out an order key for every key that has none, between those of its neighbours, or new ones for all where there is
  /// no room. They are the list's own when the save has succeeded: ``settle()``.
  ///
  /// - Returns: the keys whose order key is new.
  func assignOrders() -> [(key: Int64, order: Int64)] {
    var all = chunks.flatMap(\.entries)
    dropUnordered(&all)
    var changed: [(key: Int64, order: Int64)] = []
    var start = 0
    while start < all.count {
      guard all[start].order == OrderedList.unset else {
        start += 1
        continue
      }
      let end = all[start...].firstIndex { $0.order != OrderedList.unset } ?? all.count
      guard
        let orders = OrderedList.orders(
          end - start, after: start == 0 ? nil : all[start - 1].order, before: end == all.count ? nil : all[end].order)
      else { return renumber(all) }
      for (place, order) in zip(start..<end, orders) {
        all[place].order = order
        changed.append((all[place].key, order))
      }
      start = end
    }
    assigned = all
    return changed
  }

  /// Order keys of foreign files may repeat.
  private func dropUnordered(_ all: inout [Entry]) {
    var before: Int64?
    for place in all.indices where all[place].order != OrderedList.unset {
      if let before, all[place].order <= before { all[place].order = OrderedList.unset } else { before = all[place].order }
    }
  }

  private static func orders(_ count: Int, after: Int64?, before: Int64?) -> [Int64]? {
    let count = Int64(count)
    switch (after, before) {
    case (nil, nil): return (0..<count).map { firstOrder + $0 * step }
    case (let after?, nil): return after > Int64.max / 2 ? nil : (1...count).map { after + $0 * step }
    case (nil, let before?): return before < Int64.min / 2 ? nil : (0..<count).map { before - (count - $0) * step }
    case (let after?, let before?):
      let (gap, overflow) = before.subtractingReportingOverflow(after)
      if overflow || gap <= count { return nil }
      return (1...count).map { after + gap / (count + 1) * $0 }
    }
  }

  private func renumber(_ all: [Entry]) -> [(key: Int64, order: Int64)] {
    let numbered = all.enumerated().map { Entry(key: $1.key, order: OrderedList.firstOrder + Int64($0) * OrderedList.step) }
    assigned = numbered
    return numbered.map { ($0.key, $0.order) }
  }

  private func write(_ all: [Entry]) {
    var start = 0
    for chunk in chunks {
      chunk.entries = Array(all[start..<start + chunk.entries.count])
      start += chunk.entries.count
    }
  }
}
