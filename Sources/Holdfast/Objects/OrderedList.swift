/// The keys of the objects of an ordered relationship, in their order, with the keys by which the store orders them.
/// Confined to a context.
///
/// Keys lie in chunks of up to a thousand, and each key knows its chunk: a change of one place costs as much as the chunks
/// and their number do, not as much as all keys; only the first change after a save copies all of them. What is new or was
/// moved has no order key until the next save, which puts it between those of its neighbours.
///
/// Keys of objects that are being deleted, or were, stay in the list, hidden: a rollback shows them again where they stood.
/// Positions count the visible keys.
final class OrderedList {
  /// Stands for the order key that is not there yet.
  static let unset = Int64.max

  private typealias Chunk = OrderedChunk
  private typealias Entry = OrderedChunk.Entry

  private static let most = 1024

  private var chunks: [Chunk] = []
  private var chunkOf: [Int64: Chunk] = [:]
  private(set) var count = 0
  /// The list as it was saved last, from the first change on; what a rollback goes back to.
  private var settled: [Entry]?
  /// All entries with the order keys that a save has asked for, until it has succeeded.
  private var assigned: [Entry]?
  private var hiddenCount = 0
  /// How much of which generation of a deletion log the list was compared with; nil when that has to be done anew.
  private var compared: (generation: Int, count: Int)?
  /// The keys that were inserted since.
  private var uncompared: [Int64] = []

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

  /// All keys in order, hidden ones too.
  var keys: [Int64] {
    var keys: [Int64] = []
    keys.reserveCapacity(count)
    for chunk in chunks { for entry in chunk.entries { keys.append(entry.key) } }
    return keys
  }

  /// How many keys are not hidden.
  var visibleCount: Int { count - hiddenCount }

  /// The keys that are not hidden, in order.
  var visibleKeys: [Int64] { hiddenCount == 0 ? keys : chunks.flatMap(\.visibleKeys) }

  /// The keys at those of some positions that there are.
  func keys(in range: Range<Int>) -> [Int64] {
    var (found, start): ([Int64], Int) = ([], 0)
    for chunk in chunks where start < range.upperBound {
      let end = start + chunk.visibleCount
      if end > range.lowerBound {
        found += chunk.visibleKeys[max(start, range.lowerBound) - start..<min(end, range.upperBound) - start]
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

  /// Whether a key is in the list, hidden or not.
  func contains(_ key: Int64) -> Bool { chunkOf[key] != nil }

  /// The position of a key; nil when it is not in the list, or hidden.
  func position(of key: Int64) -> Int? {
    guard let chunk = chunkOf[key], let offset = chunk.offset(of: key), let position = chunk.visiblePosition(of: offset) else { return nil }
    return chunks[..<chunk.place].reduce(position) { $0 + $1.visibleCount }
  }

  private func find(_ position: Int) -> (Chunk, Int) {
    var rest = position
    for chunk in chunks {
      if rest < chunk.visibleCount { return (chunk, chunk.offset(ofVisible: rest)) }
      rest -= chunk.visibleCount
    }
    preconditionFailure("Position \(position) of an ordered relationship of \(visibleCount) objects was asked for.")
  }

  // MARK: Hiding

  /// Hides the keys of deleted objects: of a list that was compared with the log before, only what was deleted or inserted
  /// since is looked at.
  func hide(_ log: DeletionLog, root: Int, _ isDeleted: (Int64) -> Bool) {
    let deleted = log.keys(ofRoot: root)
    if let compared, compared.generation == log.generation, deleted.count - compared.count + uncompared.count < max(count, 8) {
      if deleted.count == compared.count && uncompared.isEmpty { return }
      for key in deleted[compared.count...] { hide(key) }
      for key in uncompared where isDeleted(key) { hide(key) }
    } else {
      showAll()
      for key in keys where isDeleted(key) { hide(key) }
    }
    compared = (log.generation, deleted.count)
    uncompared = []
  }

  /// Shows every key.
  func showAll() {
    guard compared != nil else { return }
    if hiddenCount > 0 { for chunk in chunks { chunk.showAll() } }
    hiddenCount = 0
    forgetComparison()
  }

  private func forgetComparison() {
    compared = nil
    uncompared = []
  }

  private func hide(_ key: Int64) {
    if let chunk = chunkOf[key], let offset = chunk.offset(of: key), chunk.hide(offset) { hiddenCount += 1 }
  }

  /// An object that is being deleted may be inserted.
  private func noteInsertion(_ key: Int64) {
    if compared == nil { return }
    // Nobody looks: it is cheaper to go over all when somebody does.
    if uncompared.count > count { return forgetComparison() }
    uncompared.append(key)
  }

  // MARK: Changing

  /// Appends a key that is not in the list.
  func append(_ key: Int64) { insert(key, at: visibleCount) }

  /// Inserts a key that is not in the list before the one at a position; at the position behind the last, behind hidden
  /// ones too.
  func insert(_ key: Int64, at position: Int) {
    noteChange()
    noteInsertion(key)
    let entry = Entry(key: key, order: OrderedList.unset)
    if position == visibleCount, chunks.last.map({ $0.entries.count >= OrderedList.most }) ?? true { return appendChunk([entry]) }
    let (chunk, offset) =
      position == visibleCount ? (chunks[chunks.count - 1], chunks[chunks.count - 1].entries.count) : find(position)
    chunk.insert(entry, at: offset)
    chunkOf[key] = chunk
    count += 1
    if chunk.entries.count > OrderedList.most { split(chunk) }
  }

  /// To be called before every change.
  private func noteChange() {
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

  /// Removes a key. False when it is not in the list.
  @discardableResult func remove(_ key: Int64) -> Bool {
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
      chunk.take(all[start..<start + chunk.entries.count])
      start += chunk.entries.count
    }
  }
}
