import HoldfastStore

/// The location of a row: the page number plus one in the upper 32 bits, the row's index in the page in the lower ones.
struct RowLocation: KeyMapElement {
  var bits: UInt64

  @inline(__always) init(bits: UInt64) { self.bits = bits }
  @inline(__always) init(page: Int, row: Int) { bits = UInt64(page + 1) << 32 | UInt64(row) }

  @inline(__always) static var none: RowLocation { RowLocation(bits: 0) }
  @inline(__always) var isNone: Bool { bits == 0 }
  @inline(__always) var page: Int { Int(bits >> 32) - 1 }
  @inline(__always) var row: Int { Int(bits & 0xFFFF_FFFF) }
}

/// The rows of all entities with the same root, in one generation. Copies share unchanged pages.
///
/// Rows are stored in sealed pages, which are immutable: a new version of a row is stored in another page, and the directory points
/// to it. Invariants:
///
/// 1. A row exists exactly if the directory points to it. All other rows of a page are dead and marked as such.
/// 2. ``Page/live`` is the number of rows in a page that the directory points to. A page without any is released.
/// 3. Each unique index has exactly one entry for each row of its entities that has values in all slots of the constraint.
struct RowTable: Sendable {
  /// A sealed page.
  struct Page: Sendable {
    fileprivate(set) var batch: RowBatch
    let entity: EntityIndex
    var live: Int
    /// A bitmap of the dead rows; empty if there are none.
    private var dead: [UInt64] = []

    init(_ batch: RowBatch, entity: EntityIndex) {
      self.batch = batch
      self.entity = entity
      live = batch.count
    }

    mutating func bury(_ row: Int) {
      if dead.isEmpty { dead = Array(repeating: 0, count: (batch.count + 63) / 64) }
      dead[row >> 6] |= 1 << UInt64(row & 63)
      live -= 1
    }

    /// The rows that aren't dead.
    var liveRows: RowSelection {
      if dead.isEmpty { return .all }
      var rows: [UInt32] = []
      rows.reserveCapacity(live)
      for (place, word) in dead.enumerated() {
        let end = min(64, batch.count - place * 64)
        for bit in 0..<end where word & 1 << UInt64(bit) == 0 { rows.append(UInt32(truncatingIfNeeded: place * 64 + bit)) }
      }
      return .rows(rows)
    }

    func isLive(_ row: Int) -> Bool { dead.isEmpty || dead[row >> 6] & 1 << UInt64(row & 63) == 0 }
  }

  private(set) var pages: [Page?] = []
  private var freePages: [Int] = []
  private var directory = KeyMap<RowLocation>(shift: 10)
  /// The indexes of the table's constraints, in the same order.
  private(set) var unique: [UniqueIndex]

  /// The number of rows by entity index; 0 for entities of other tables.
  private(set) var rowCounts: [Int]
  /// The number of pages smaller than ``smallByteCount``.
  private var smallPageCount = 0
  /// Pages that became less than half live since the last compaction. Some may have been released.
  private var wastefulPages: [Int] = []

  init(constraintCount: Int, entityCount: Int) {
    unique = Array(repeating: UniqueIndex(), count: constraintCount)
    rowCounts = Array(repeating: 0, count: entityCount)
  }

  /// The number of rows.
  var count: Int { directory.count }

  /// The largest key of a row; 0 if there are none.
  var largestKey: ObjectKey { ObjectKey(directory.largestKey ?? 0) }

  /// Calls `body` with the location of each row, in ascending key order.
  func forEachLocation(_ body: (RowLocation) throws -> Void) rethrows { try directory.forEach { try body($1) } }

  /// Calls `body` with each row of an entity in a key range, in ascending key order.
  ///
  /// Rows in a file that can't be read are left out.
  ///
  /// - Parameter body: Returns whether it doesn't need the rows before this one anymore. Those that it needs stay in memory, also after the
  ///   last row.
  func forEachRow(of entity: EntityIndex, keys: ClosedRange<ObjectKey>, _ body: (RowPointer) throws -> Bool) rethrows {
    // Neighboring rows are mostly in one page, which the table keeps alive.
    var number = -1, page: Unmanaged<RowBatch>?, eviction = PageEviction(self)
    try directory.forEach(in: keys.rawValues) { _, location in
      if location.page != number {
        number = location.page
        page = self.entity(location) == entity && batch(location).load() ? Unmanaged.passUnretained(batch(location)) : nil
        if page != nil { eviction.use(number) }
      }
      if let page, try body(page._withUnsafeGuaranteedRef { $0.pointer(location.row) }) { eviction.evictEarlierPages() }
    }
  }

  /// Calls `body` with each row of an entity, in ascending key order. Rows in a file that can't be read are left out.
  func forEachRow(of entity: EntityIndex, _ body: (RowPointer) throws -> Void) rethrows {
    var number = -1, isReadable = true, eviction = PageEviction(self)
    try forEachLocation { location in
      guard self.entity(location) == entity else { return }
      if location.page != number {
        number = location.page
        isReadable = batch(location).load()
        eviction.use(number)
        eviction.evictEarlierPages()
      }
      if isReadable { try body(pointer(location)) }
    }
    eviction.evictEarlierPages(keeping: 0)
  }

  /// The number of pages in a file that stay in memory while rows are used in the order of their keys. After saves of some of the objects,
  /// the rows of neighboring keys are in several pages.
  static let keptPageCount = 8

  /// Evicts pages in a file behind a loop over the rows. If the loop returns to evicted pages often, they stay in memory.
  private struct PageEviction {
    private let pages: [Page?]
    private var rest: Int
    /// The pages in a file that the loop has used and may still need, the latest ones last.
    private var used: [Int] = []

    init(_ table: RowTable) { (pages, rest) = (table.pages, 2 * table.pages.count) }

    mutating func use(_ number: Int) {
      guard rest > 0, pages[number]?.batch.isEvictable == true else { return }
      if let place = used.lastIndex(of: number) { used.remove(at: place) }
      used.append(number)
    }

    /// Evicts the pages that were used before the latest ones.
    mutating func evictEarlierPages(keeping count: Int = RowTable.keptPageCount) {
      while used.count > count && rest > 0 {
        rest -= 1
        pages[used.removeFirst()]?.batch.evict()
      }
    }
  }

  /// Calls `body` with the old and new version of each row of an entity that differs between `old` and this changed copy of it. Takes time
  /// proportional to the number of pages in `old` and of keys near changed ones.
  func forEachChange(
    since old: RowTable, of entity: EntityIndex, keys: ClosedRange<ObjectKey>,
    _ body: (_ old: RowPointer?, _ new: RowPointer?) throws -> Void
  ) rethrows {
    // Page numbers are reused, so compare the pages too.
    let same = old.pages.indices.map { number in
      old.pages[number].map { number < pages.count && pages[number]?.batch === $0.batch } ?? false
    }
    try directory.forEachPair(in: keys.rawValues, with: old.directory) { before, after in
      if before.bits == after.bits && (before.isNone || same[before.page]) { return }
      let was = !before.isNone && old.entity(before) == entity, isNow = !after.isNone && self.entity(after) == entity
      if was || isNow { try body(was ? old.pointer(before) : nil, isNow ? pointer(after) : nil) }
    }
  }

  /// Whether this changed copy of `other` still has the same rows in a key range. False means only that a row may have changed.
  func hasSameLocations(as other: RowTable, keys: ClosedRange<ObjectKey>) -> Bool {
    directory.shares(keys.rawValues, with: other.directory)
  }

  // MARK: Looking up

  /// The location of the row with a key.
  @inline(__always) func location(_ key: ObjectKey) -> RowLocation { directory[key.rawValue] }

  /// The row at a location from the directory.
  @inline(__always) func pointer(_ location: RowLocation) -> RowPointer { batch(location).pointer(location.row) }

  /// The page of a location from the directory, in memory.
  @inline(__always) func batch(_ location: RowLocation) -> RowBatch {
    guard let page = pages[location.page] else { preconditionFailure("The directory of a table points to a released page.") }
    page.batch.load()
    return page.batch
  }

  /// The concrete entity of the row at a location.
  @inline(__always) func entity(_ location: RowLocation) -> EntityIndex { pages[location.page]?.entity ?? -1 }

  /// The row with a key, or nil.
  @inline(__always) func row(_ key: ObjectKey) -> RowPointer? {
    let location = directory[key.rawValue]
    return location.isNone ? nil : pointer(location)
  }

  /// The row with a key and its batch, or nil.
  func view(_ key: ObjectKey) -> RowView? {
    let location = directory[key.rawValue]
    return location.isNone ? nil : batch(location)[location.row]
  }

  /// The rows of a page that aren't dead.
  func liveRows(_ number: Int) -> RowSelection { pages[number]?.liveRows ?? .rows([]) }

  // MARK: Changing

  /// Adds a sealed batch as a page and points the directory to its rows. Previous rows with the same keys become dead.
  mutating func adopt(_ batch: RowBatch, entity: EntityIndex) {
    guard batch.count > 0 else { return }
    let number = freePages.popLast() ?? pages.count
    if number == pages.count { pages.append(nil) }
    pages[number] = Page(batch, entity: entity)
    rowCounts[entity] += batch.count
    if batch.byteCount < RowTable.smallByteCount { smallPageCount += 1 }
    var row = 0
    while row < batch.count {
      let first = batch.pointer(row).key.rawValue, start = row
      repeat { row += 1 } while row < batch.count && batch.pointer(row).key.rawValue == first &+ Int64(row - start)
      point(first, row - start) { RowLocation(page: number, row: start + $0) }
    }
  }

  /// Points the directory to the rows of consecutive keys.
  private mutating func point(_ first: Int64, _ length: Int, _ location: (Int) -> RowLocation) {
    if length > 1 {
      for before in directory.set(from: first, length, location) { release(before) }
    } else {
      let before = directory.set(first, location(0))
      if !before.isNone { release(before) }
    }
  }

  /// Removes the row with a key.
  mutating func remove(_ key: ObjectKey) {
    let before = directory.set(key.rawValue, .none)
    if !before.isNone { release(before) }
  }

  private mutating func release(_ row: RowLocation) {
    let number = row.page
    pages[number]?.bury(row.row)
    guard let page = pages[number] else { return }
    rowCounts[page.entity] -= 1
    if page.live * 2 < page.batch.count, (page.live + 1) * 2 >= page.batch.count { wastefulPages.append(number) }
    if page.live > 0 { return }
    pages[number] = nil
    freePages.append(number)
    if page.batch.byteCount < RowTable.smallByteCount { smallPageCount -= 1 }
  }

  // MARK: Rows in a file

  /// Moves the pages that an earlier version of the table hasn't to a temporary file.
  mutating func spill(to spill: RowSpill, after base: RowTable) {
    for number in pages.indices {
      guard let batch = pages[number]?.batch, number >= base.pages.count || base.pages[number]?.batch !== batch else { continue }
      pages[number]?.batch = spill.kept(batch)
    }
  }

  // MARK: Uniqueness

  /// The key of the row that has the same values of a constraint as another row, or nil.
  @inline(__always) func key(like row: RowPointer, hash: UInt64, _ constraint: TableSchema.Constraint, at place: Int) -> ObjectKey? {
    unique[place].key(hash: hash) { key in
      self.row(key).map { $0.hasSameValues(as: row, in: constraint.slots, constraint.kinds) } ?? false
    }
  }

  /// Reserves capacity for more values in the index of a constraint.
  mutating func reserveValues(_ count: Int, at place: Int) { unique[place].reserve(count) }

  /// Rearranges the indexes for a list of constraints in another order. An index that is missing is built.
  ///
  /// - Requires: No two rows have the same values of a constraint that isn't in the former list.
  mutating func rearrangeUniqueIndexes(of former: [TableSchema.Constraint], to constraints: [TableSchema.Constraint]) {
    let indexes = unique
    unique = constraints.map { _ in UniqueIndex() }
    for (place, constraint) in constraints.enumerated() {
      if let known = former.firstIndex(where: { $0.entity == constraint.entity && $0.names == constraint.names }) {
        unique[place] = indexes[known]
        continue
      }
      var entries: [UniqueIndex.Entry] = []
      for entity in constraint.entities {
        forEachRow(of: entity) { row in
          if let hash = Hashing.hash(row, constraint) { entries.append(UniqueIndex.Entry(hash: hash, key: row.key)) }
        }
      }
      enter(entries, constraint, at: place) { _, _ in }
    }
  }

  /// Releases the indexes of all constraints. The table can only be read then.
  mutating func releaseUniqueIndexes() { unique = unique.map { _ in UniqueIndex() } }

  /// Adds the values of rows in the table to the index of a constraint.
  ///
  /// - Parameter taken: Called with the key of each row that wasn't added, and the key of the existing row that has its values.
  mutating func enter(
    _ entries: [UniqueIndex.Entry], _ constraint: TableSchema.Constraint, at place: Int, taken: (ObjectKey, ObjectKey) -> Void
  ) {
    // Take the index out of the table, so that the closure can access the rows.
    var index = UniqueIndex()
    swap(&index, &unique[place])
    index.insert(entries, isSame: { isSame($0, $1, constraint) }, taken: taken)
    swap(&index, &unique[place])
  }

  private func isSame(_ a: ObjectKey, _ b: ObjectKey, _ constraint: TableSchema.Constraint) -> Bool {
    guard let a = row(a), let b = row(b) else { return false }
    return a.hasSameValues(as: b, in: constraint.slots, constraint.kinds)
  }

  /// Removes a row's values from the index of a constraint.
  mutating func forget(_ row: RowPointer, _ constraint: TableSchema.Constraint, at place: Int) {
    guard let hash = Hashing.hash(row, constraint) else { return }
    unique[place].remove(hash: hash, key: row.key)
  }

  // MARK: Compaction

  /// The size in bytes below which a page counts as small.
  private static let smallByteCount = RowBatchBuilder.pageByteCount / 4
  /// The number of small pages that triggers compaction, in addition to one for each entity. Every save adds at least one.
  private static let smallPageLimit = 32

  /// Whether merging small pages would leave far fewer. Pages of different entities can't be merged.
  private var hasTooManySmallPages: Bool {
    if smallPageCount <= RowTable.smallPageLimit { return false }
    return smallPageCount - rowCounts.reduce(0) { $0 + ($1 > 0 ? 1 : 0) } > RowTable.smallPageLimit
  }

  /// Copies the live rows of mostly dead pages into new pages, and merges small pages if there are too many.
  mutating func compact(_ schema: TableSchema) {
    let tooManySmall = hasTooManySmallPages
    guard tooManySmall || !wastefulPages.isEmpty else { return }
    let moved = pages.indices.filter { number in
      guard let page = pages[number] else { return false }
      return page.live * 2 < page.batch.count || (tooManySmall && page.batch.byteCount < RowTable.smallByteCount)
    }
    wastefulPages = []
    // Make all copies first, so that no new page takes the number of a page that is still being read.
    for (entity, copies) in moved.isEmpty ? [] : copies(of: moved, schema) {
      for copy in copies { adopt(copy, entity: entity) }
    }
  }

  private func copies(of numbers: [Int], _ schema: TableSchema) -> [(EntityIndex, [RowBatch])] {
    Set(numbers.compactMap { pages[$0]?.entity }).sorted().map { entity in
      let builder = RowBatchBuilder(entity: schema.model.entities[entity], identity: schema.identity)
      var copies: [RowBatch] = []
      for number in numbers {
        guard let page = pages[number], page.entity == entity else { continue }
        if !page.batch.load() { continue }
        for row in 0..<page.batch.count where page.isLive(row) {
          builder.append(page.batch.pointer(row))
          if builder.isFull { copies.append(builder.seal()) }
        }
        page.batch.evict()
      }
      if builder.count > 0 { copies.append(builder.seal()) }
      return (entity, copies)
    }
  }
}
