import HoldfastStore

/// The keys of an ordered relationship's objects, in order, with the store's order keys. Confined to a context.
///
/// Keys are stored in chunks of up to 1,024, and each key has a reference to its chunk. A change takes time proportional to the size and
/// number of chunks; only the first change after a save copies all keys. New or moved keys have no order key until the next save assigns
/// one between their neighbours'.
///
/// Keys of objects that are deleted or being deleted stay in the list, hidden, so that a rollback can show them at the same position.
/// Positions count the visible keys.
final class OrderedList {
  private typealias Chunk = OrderedChunk
  typealias Entry = OrderedChunk.Entry

  private static let most = 1024

  private var chunks: [Chunk] = []
  private var chunkOf: [ObjectKey: Chunk] = [:]
  private(set) var count = 0
  /// The list at the last save, from the first change on, for a rollback.
  private var settled: [Entry]?
  /// All entries with the order keys assigned by a save, until it succeeds or the list changes.
  private(set) var assigned: [Entry]?
  private var hiddenCount = 0
  /// The generation of the deletions, and the number of their keys, that were applied to the list; nil to apply all again.
  private var compared: (generation: Int, count: Int)?
  /// The keys inserted since then.
  private var uncompared: [ObjectKey] = []

  /// Creates a list.
  ///
  /// - Parameter orders: The order key of each key; nil if none is assigned yet.
  init(_ keys: some Collection<ObjectKey>, orders: ArraySlice<Int64>? = nil) {
    chunkOf.reserveCapacity(keys.count)
    var entries: [Entry] = []
    var order = orders?.makeIterator()
    for key in keys {
      entries.append(Entry(key: key, order: order?.next() ?? OrderKeys.unset))
      if entries.count == OrderedList.most / 2 {
        appendChunk(entries)
        entries = []
      }
    }
    if !entries.isEmpty { appendChunk(entries) }
  }

  /// A list with the same keys whose order keys all are unset. ``revert()`` has the same result as for this one.
  func withoutOrders() -> OrderedList {
    let list = OrderedList(keys)
    list.settled = settled
    return list
  }

  private func appendChunk(_ entries: [Entry]) {
    let chunk = Chunk(entries, place: chunks.count)
    chunks.append(chunk)
    for entry in entries { chunkOf[entry.key] = chunk }
    count += entries.count
  }

  // MARK: Reading

  private var entries: [Entry] { chunks.flatMap(\.entries) }

  /// All keys in order, including hidden ones.
  var keys: [ObjectKey] {
    var keys: [ObjectKey] = []
    keys.reserveCapacity(count)
    for chunk in chunks { for entry in chunk.entries { keys.append(entry.key) } }
    return keys
  }

  /// The number of visible keys.
  var visibleCount: Int { count - hiddenCount }

  /// The visible keys, in order.
  var visibleKeys: [ObjectKey] { hiddenCount == 0 ? keys : chunks.flatMap(\.visibleKeys) }

  /// The keys in a range of positions, clamped to the list.
  func keys(in range: Range<Int>) -> [ObjectKey] {
    var (found, start): ([ObjectKey], Int) = ([], 0)
    for chunk in chunks where start < range.upperBound {
      let end = start + chunk.visibleCount
      if end > range.lowerBound {
        found += chunk.visibleKeys[max(start, range.lowerBound) - start..<min(end, range.upperBound) - start]
      }
      start = end
    }
    return found
  }

  /// The key at a valid position.
  func key(at position: Int) -> ObjectKey {
    let (chunk, offset) = find(position)
    return chunk.entries[offset].key
  }

  /// Whether a key is in the list, hidden or not.
  func contains(_ key: ObjectKey) -> Bool { chunkOf[key] != nil }

  /// The position of a key; nil if it is hidden or not in the list.
  func position(of key: ObjectKey) -> Int? {
    guard let chunk = chunkOf[key], let offset = chunk.offset(of: key), let position = chunk.visiblePosition(of: offset) else { return nil }
    return chunks[..<chunk.place].reduce(position) { $0 + $1.visibleCount }
  }

  private func find(_ position: Int) -> (Chunk, Int) {
    var rest = position
    for chunk in chunks {
      if rest < chunk.visibleCount { return (chunk, chunk.offset(ofVisible: rest)) }
      rest -= chunk.visibleCount
    }
    preconditionFailure("Position \(position) of an ordered relationship of \(visibleCount) objects was requested.")
  }

  // MARK: Hiding

  /// Hides the keys of deleted objects. After the first call, it checks only keys deleted or inserted since the last one.
  ///
  /// - Returns: The number of keys that were compared with those of deleted objects.
  @discardableResult
  func hide(_ deletions: Deletions, root: EntityIndex) -> Int {
    let deletedCount = deletions.count(root: root)
    var keysToCompare = uncompared
    if let compared, compared == (deletions.generation, deletedCount), uncompared.isEmpty { return 0 }
    if let compared, compared.generation == deletions.generation, deletedCount - compared.count + uncompared.count < max(count, 8) {
      for key in deletions.keys(root: root, from: compared.count) { hide(key) }
    } else {
      showAll()
      keysToCompare = keys
    }
    for key in keysToCompare where deletions.contains(key, root: root) { hide(key) }
    compared = (deletions.generation, deletedCount)
    uncompared = []
    return keysToCompare.count
  }

  /// Shows every key.
  func showAll() {
    // A comparison that was forgotten leaves its keys hidden.
    guard compared != nil || hiddenCount > 0 else { return }
    if hiddenCount > 0 { for chunk in chunks { chunk.showAll() } }
    hiddenCount = 0
    forgetComparison()
  }

  private func forgetComparison() {
    compared = nil
    uncompared = []
  }

  private func hide(_ key: ObjectKey) {
    if let chunk = chunkOf[key], let offset = chunk.offset(of: key), chunk.hide(offset) { hiddenCount += 1 }
  }

  /// An object that is being deleted may be inserted.
  private func noteInsertion(_ key: ObjectKey) {
    if compared == nil { return }
    // The list hasn't been read for long: checking all keys on the next read is cheaper.
    if uncompared.count > count { return forgetComparison() }
    uncompared.append(key)
  }

  // MARK: Changing

  /// Appends a key that is not in the list.
  func append(_ key: ObjectKey) { insert(key, at: visibleCount) }

  /// Inserts a key that isn't in the list before a position. At the end position, hidden keys come before it too.
  func insert(_ key: ObjectKey, at position: Int) {
    noteChange()
    noteInsertion(key)
    let entry = Entry(key: key, order: OrderKeys.unset)
    if position == visibleCount, chunks.last.map({ $0.entries.count >= OrderedList.most }) ?? true { return appendChunk([entry]) }
    let (chunk, offset) =
      position == visibleCount ? (chunks[chunks.count - 1], chunks[chunks.count - 1].entries.count) : find(position)
    chunk.insert(entry, at: offset)
    chunkOf[key] = chunk
    count += 1
    if chunk.entries.count > OrderedList.most { split(chunk) }
  }

  /// Call it before every change.
  private func noteChange() {
    if settled == nil { settled = entries }
    // A save that failed has assigned order keys to the former list. The next one may not assign any, if it needs none.
    assigned = nil
  }

  /// Accepts the list as saved, with the assigned order keys.
  func settle() {
    if let assigned, assigned.count == count { write(assigned) }
    assigned = nil
    settled = nil
  }

  /// Accepts the list as it was sent in a save. Order keys of later changes are unset.
  ///
  /// - Returns: Whether destinations were added, removed or moved since.
  func settle(as sent: [Entry]) -> Bool {
    let orders = Dictionary(sent.map { ($0.key, $0.order) }, uniquingKeysWith: { first, _ in first })
    let now = keys, isChanged = now != sent.map(\.key)
    replaceAll(by: now.map { Entry(key: $0, order: orders[$0] ?? OrderKeys.unset) })
    settled = isChanged ? sent : nil
    assigned = nil
    return isChanged
  }

  /// The keys at the last save; nil if the list is unchanged.
  var settledKeys: [ObjectKey]? { settled?.map(\.key) }

  /// Reverts to the last save.
  func revert() {
    guard let settled else { return }
    replaceAll(by: settled)
    self.settled = nil
    assigned = nil
  }

  private func replaceAll(by entries: [Entry]) {
    forgetComparison()
    chunks = []
    chunkOf = [:]
    count = 0
    hiddenCount = 0
    for start in stride(from: 0, to: entries.count, by: OrderedList.most / 2) {
      appendChunk(Array(entries[start..<min(start + OrderedList.most / 2, entries.count)]))
    }
  }

  private func split(_ chunk: Chunk) {
    let second = chunk.splitOff()
    chunks.insert(second, at: second.place)
    for place in second.place..<chunks.count { chunks[place].place = place }
    for entry in second.entries { chunkOf[entry.key] = second }
  }

  /// Removes a key. Returns false if it isn't in the list.
  @discardableResult func remove(_ key: ObjectKey) -> Bool {
    guard chunkOf[key] != nil else { return false }
    noteChange()
    guard let chunk = chunkOf.removeValue(forKey: key), let offset = chunk.offset(of: key) else { return false }
    if chunk.remove(at: offset) { hiddenCount -= 1 }
    count -= 1
    if chunk.entries.isEmpty {
      chunks.remove(at: chunk.place)
      for place in chunk.place..<chunks.count { chunks[place].place = place }
    }
    return true
  }

  /// Removes keys that have left the list by a save. Neither a rollback nor the next save concerns them.
  func lose(_ lost: [ObjectKey]) {
    let lost = Set(lost), before = settled
    for key in lost { remove(key) }
    settled = before?.filter { !lost.contains($0.key) }
  }

  /// Moves a key of the list to a position, counted without it.
  func move(_ key: ObjectKey, to position: Int) {
    if remove(key) { insert(key, at: position) }
  }

  /// Reorders all keys. As many of them as possible keep their order keys, so that a save sends few.
  func replaceOrder(by keys: [ObjectKey]) {
    noteChange()
    let known = Dictionary(chunks.lazy.flatMap(\.entries).map { ($0.key, $0.order) }, uniquingKeysWith: { first, _ in first })
    var entries = keys.map { Entry(key: $0, order: OrderKeys.unset) }
    let orders = keys.map { known[$0] ?? OrderKeys.unset }
    for place in OrderKeys.longestAscent(orders) { entries[place].order = orders[place] }
    replaceAll(by: entries)
  }

  /// Replaces every key with the result of a function, and removes keys whose result is nil.
  func translate(_ translation: (ObjectKey) -> ObjectKey?) {
    let all = assigned.flatMap { $0.count == count ? $0 : nil } ?? entries
    assigned = nil
    replaceAll(by: OrderedList.translated(all, translation))
  }

  /// Replaces every key like ``translate(_:)``, but keeps the assigned order keys apart, because it is unknown whether they are saved.
  func translateUnsettled(_ translation: (ObjectKey) -> ObjectKey?) {
    assigned = assigned.map { OrderedList.translated($0, translation) }
    replaceAll(by: OrderedList.translated(entries, translation))
  }

  private static func translated(_ entries: [Entry], _ translation: (ObjectKey) -> ObjectKey?) -> [Entry] {
    entries.compactMap { entry in translation(entry.key).map { Entry(key: $0, order: entry.order) } }
  }

  // MARK: Order keys

  /// Assigns an order key to every key without one, between its neighbours', or new ones to all keys if there is no gap.
  ///
  /// They take effect after the save, in ``settle()``.
  ///
  /// - Returns: The keys with a new order key.
  func assignOrders() -> [(key: ObjectKey, order: Int64)] {
    var all = entries
    let changed = OrderKeys.assign(to: &all)
    assigned = all
    return changed
  }

  /// Forgets the order keys that a save has assigned, because they aren't saved.
  func forgetAssigned() { assigned = nil }

  /// All keys in order, including hidden ones, with their order keys. Those without one get what ``assignOrders()`` would assign.
  func orderedEntries() -> [Entry] {
    var all = entries
    OrderKeys.assign(to: &all)
    return all
  }

  private func write(_ all: [Entry]) {
    var start = 0
    for chunk in chunks {
      chunk.take(all[start..<start + chunk.entries.count])
      start += chunk.entries.count
    }
  }
}
