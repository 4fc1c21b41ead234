import HoldfastStore

/// Where a row lies: the page's number plus one in the upper half, the row's place in the page in the lower.
struct RowLocation: KeyMapElement {
  var bits: UInt64

  @inline(__always) init(bits: UInt64) { self.bits = bits }
  @inline(__always) init(page: Int, row: Int) { bits = UInt64(page + 1) << 32 | UInt64(row) }

  @inline(__always) static var none: RowLocation { RowLocation(bits: 0) }
  @inline(__always) var isNone: Bool { bits == 0 }
  @inline(__always) var page: Int { Int(bits >> 32) - 1 }
  @inline(__always) var row: Int { Int(bits & 0xFFFF_FFFF) }
}

/// The rows of all entities that share a root, at one point in time. Copies share what they do not change.
///
/// Rows lie in sealed pages, which are never written: a new version of a row lies in another page, and the directory
/// leads to it. What must stay true:
///
/// 1. A row is there exactly when the directory leads to it; every other row of a page is dead, and marked so.
/// 2. ``Page/live`` of a page is the number of its rows to which the directory leads; a page without any is let go.
/// 3. Each unique index has exactly one entry per row of its entities in which no slot of the constraint is empty.
struct RowTable: Sendable {
  /// A sealed page.
  struct Page: Sendable {
    let batch: RowBatch
    let entity: Int
    var live: Int
    /// A bit for each dead row; empty while there is none.
    private var dead: [UInt64] = []

    init(_ batch: RowBatch, entity: Int) {
      self.batch = batch
      self.entity = entity
      live = batch.count
    }

    mutating func bury(_ row: Int) {
      if dead.isEmpty { dead = Array(repeating: 0, count: (batch.count + 63) / 64) }
      dead[row >> 6] |= 1 << UInt64(row & 63)
      live -= 1
    }

    /// The rows that are not dead.
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
  /// The indexes of the table's constraints, in their order.
  private(set) var unique: [UniqueIndex]

  /// How many rows of each entity there are, by the entity's index; 0 for entities of other tables.
  private(set) var rowCounts: [Int]
  /// How many pages are smaller than ``smallByteCount``.
  private var smallPageCount = 0
  /// Pages that were under half live at some time since the last compaction; some may be gone.
  private var wastefulPages: [Int] = []

  init(constraintCount: Int, entityCount: Int) {
    unique = Array(repeating: UniqueIndex(), count: constraintCount)
    rowCounts = Array(repeating: 0, count: entityCount)
  }

  /// How many rows there are.
  var count: Int { directory.count }

  /// The largest key of a row; 0 when there is none.
  var largestKey: Int64 { directory.largestKey ?? 0 }

  /// Calls `body` with the location of every row, ascending by key.
  func forEachLocation(_ body: (RowLocation) throws -> Void) rethrows { try directory.forEach { try body($1) } }

  /// Calls `body` with every row of an entity with a key in a range, ascending by key.
  func forEachRow(of entity: Int, keys: ClosedRange<Int64>, _ body: (RowPointer) throws -> Void) rethrows {
    // Neighbours mostly lie in one page, which the table keeps alive.
    var number = -1, page: Unmanaged<RowBatch>?
    try directory.forEach(in: keys) { _, location in
      if location.page != number {
        number = location.page
        page = self.entity(location) == entity ? Unmanaged.passUnretained(batch(location)) : nil
      }
      if let page { try body(page._withUnsafeGuaranteedRef { $0.pointer(location.row) }) }
    }
  }

  /// Calls `body` with the rows of an entity with keys in a range that another table has and this one, its changed copy, has not or
  /// has changed, and with those that this one has instead or that are new. Takes time in proportion to the pages of the
  /// other table and to the keys beside changed ones.
  func forEachChange(
    since old: RowTable, of entity: Int, keys: ClosedRange<Int64>, _ body: (_ old: RowPointer?, _ new: RowPointer?) throws -> Void
  ) rethrows {
    // The number of a page that was let go is given to another one.
    let same = old.pages.indices.map { number in
      old.pages[number].map { number < pages.count && pages[number]?.batch === $0.batch } ?? false
    }
    try directory.forEachPair(in: keys, with: old.directory) { before, after in
      if before.bits == after.bits && (before.isNone || same[before.page]) { return }
      let was = !before.isNone && old.entity(before) == entity, isNow = !after.isNone && self.entity(after) == entity
      if was || isNow { try body(was ? old.pointer(before) : nil, isNow ? pointer(after) : nil) }
    }
  }

  /// Whether rows with keys in a range are known to be those of another table, of which this one is a changed copy.
  func hasSameLocations(as other: RowTable, keys: ClosedRange<Int64>) -> Bool { directory.shares(keys, with: other.directory) }

  // MARK: Looking up

  /// Where the row with a key lies.
  @inline(__always) func location(_ key: Int64) -> RowLocation { directory[key] }

  /// The row at a location that the directory gave.
  @inline(__always) func pointer(_ location: RowLocation) -> RowPointer { batch(location).pointer(location.row) }

  /// The page of a location that the directory gave.
  @inline(__always) func batch(_ location: RowLocation) -> RowBatch {
    guard let page = pages[location.page] else { preconditionFailure("The directory of a table leads to a page that was let go.") }
    return page.batch
  }

  /// The concrete entity of the row at a location.
  @inline(__always) func entity(_ location: RowLocation) -> Int { pages[location.page]?.entity ?? -1 }

  /// The row with a key, or nil.
  @inline(__always) func row(_ key: Int64) -> RowPointer? {
    let location = directory[key]
    return location.isNone ? nil : pointer(location)
  }

  /// The row with a key and its batch, or nil.
  func view(_ key: Int64) -> RowView? {
    let location = directory[key]
    return location.isNone ? nil : batch(location)[location.row]
  }

  /// The rows of a page that are not dead.
  func liveRows(_ number: Int) -> RowSelection { pages[number]?.liveRows ?? .rows([]) }

  // MARK: Changing

  /// Takes a sealed batch over as a page and leads to its rows. The row that had a key before is dead then.
  mutating func adopt(_ batch: RowBatch, entity: Int) {
    guard batch.count > 0 else { return }
    let number = freePages.popLast() ?? pages.count
    if number == pages.count { pages.append(nil) }
    pages[number] = Page(batch, entity: entity)
    rowCounts[entity] += batch.count
    if batch.byteCount < RowTable.smallByteCount { smallPageCount += 1 }
    for row in 0..<batch.count {
      let before = directory.set(batch.pointer(row).key, RowLocation(page: number, row: row))
      if !before.isNone { release(before) }
    }
  }

  /// Removes the row with a key.
  mutating func remove(_ key: Int64) {
    let before = directory.set(key, .none)
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

  // MARK: Uniqueness

  /// The key of a row that has a row's values of a constraint, or nil.
  @inline(__always) func key(like row: RowPointer, hash: UInt64, _ constraint: TableSchema.Constraint, at place: Int) -> Int64? {
    unique[place].key(hash: hash) { key in
      self.row(key).map { Hashing.same($0, row, constraint.slots, constraint.kinds) } ?? false
    }
  }

  /// Enters the values of a constraint of rows that are in the table.
  ///
  /// - Parameter taken: called with the key of each row whose values another row has, and with that row's key; such a row was
  ///   not entered.
  mutating func enter(_ entries: [UniqueIndex.Entry], _ constraint: TableSchema.Constraint, at place: Int, taken: (Int64, Int64) -> Void) {
    // The index is taken out meanwhile, so that the rows can be looked at.
    var index = UniqueIndex()
    swap(&index, &unique[place])
    index.insert(entries, isSame: { isSame($0, $1, constraint) }, taken: taken)
    swap(&index, &unique[place])
  }

  private func isSame(_ a: Int64, _ b: Int64, _ constraint: TableSchema.Constraint) -> Bool {
    guard let a = row(a), let b = row(b) else { return false }
    return Hashing.same(a, b, constraint.slots, constraint.kinds)
  }

  /// Takes the values of a constraint of a row out of its index.
  mutating func forget(_ row: RowPointer, _ constraint: TableSchema.Constraint, at place: Int) {
    guard let hash = Hashing.hash(row, constraint.slots, constraint.kinds, seed: Hashing.seed) else { return }
    unique[place].remove(hash: hash, key: row.key)
  }

  // MARK: Compaction

  /// Below this many bytes a page counts as small.
  private static let smallByteCount = RowBatchBuilder.pageByteCount / 4
  /// How many small pages may lie about, because every save makes at least one.
  private static let smallPageLimit = 32

  /// Copies what lives in pages that are mostly dead into new pages, and small pages into large ones when there are too
  /// many of them.
  mutating func compact(_ schema: TableSchema) {
    let tooManySmall = smallPageCount > RowTable.smallPageLimit
    guard tooManySmall || !wastefulPages.isEmpty else { return }
    let moved = pages.indices.filter { number in
      guard let page = pages[number] else { return false }
      return page.live * 2 < page.batch.count || (tooManySmall && page.batch.byteCount < RowTable.smallByteCount)
    }
    wastefulPages = []
    // All copies are made before any is led to, so that no page takes the number of one that is still read.
    for (entity, copies) in moved.isEmpty ? [] : copies(of: moved, schema) {
      for copy in copies { adopt(copy, entity: entity) }
    }
  }

  private func copies(of numbers: [Int], _ schema: TableSchema) -> [(Int, [RowBatch])] {
    Set(numbers.compactMap { pages[$0]?.entity }).sorted().map { entity in
      let builder = RowBatchBuilder(entity: schema.model.entities[entity], identity: schema.identity)
      var copies: [RowBatch] = []
      for number in numbers {
        guard let page = pages[number], page.entity == entity else { continue }
        for row in 0..<page.batch.count where page.isLive(row) {
          builder.append(page.batch.pointer(row))
          if builder.isFull { copies.append(builder.seal()) }
        }
      }
      if builder.count > 0 { copies.append(builder.seal()) }
      return (entity, copies)
    }
  }
}
