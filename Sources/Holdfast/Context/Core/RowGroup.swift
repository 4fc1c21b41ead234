import HoldfastStore
import HoldfastSupport

/// Rows of one batch that a store delivered together.
struct RowRun {
  let batch: RowBatch
  let rows: RowSelection

  /// The number of rows.
  var count: Int { rows.count(in: batch) }

  /// The rows in runs of at most a number of rows.
  func windows(of size: Int) -> [RowRun] {
    if count <= size { return [self] }
    let indexes: [UInt32]
    if case .rows(let rows) = rows { indexes = rows } else { indexes = (0..<UInt32(batch.count)).map { $0 } }
    return indexes.windows(of: size).map { RowRun(batch: batch, rows: .rows(Array($0))) }
  }

  func pointer(_ position: Int) -> RowPointer { batch.pointer(index(position)) }

  /// The index in the batch of the row at a position.
  func index(_ position: Int) -> Int {
    switch rows {
    case .all: position
    case .one(let index): index
    case .rows(let rows): Int(rows[position])
    }
  }
}

/// A row of a ``RowGroup`` and its position, in a hash table.
private struct KeyedRow: HashSlot {
  let row: RowPointer?
  let position: Int

  static var free: KeyedRow { KeyedRow(row: nil, position: 0) }
  var isFree: Bool { row == nil }

  static func hash(_ key: ObjectKey) -> Int { multiplicativeHash(key.rawValue) }
  static func hash(_ slot: KeyedRow) -> Int { slot.row.map { hash($0.key) } ?? 0 }
}

/// Up to 1,024 neighbouring rows of one result, whose faults are fired together. Confined to a context.
///
/// The group keeps the rows' batches alive for the objects that use them.
final class RowGroup {
  static let size = 1024

  /// The first run. Most groups have no other runs, so they need no array.
  private let first: RowRun
  private let rest: [RowRun]
  let count: Int
  /// The index of the rows' concrete entity.
  let entity: EntityIndex
  /// Whether the rows are the result of a fetch. The caller of a fetch is likely to read all of them.
  ///
  /// Rows that were prefetched during a graph traversal may be read in another order, or not at all.
  let isFetched: Bool
  /// The store's answer for the first to-many relationship that was fired: the destinations of all rows, in the order of the rows.
  ///
  /// Most groups have no other answers, so they need no array.
  @exclusivity(unchecked) private var firstAnswer: (toManyIndex: Int, siblings: FaultSiblings)?
  @exclusivity(unchecked) private var otherAnswers: [(toManyIndex: Int, siblings: FaultSiblings)] = []
  /// The siblings of to-one destinations, with one element per slot that was read.
  @exclusivity(unchecked) private var columns: [FaultSiblings] = []
  /// The rows by key, when a row was first looked up.
  @exclusivity(unchecked) private var rowsByKey: HashTable<KeyedRow>?
  /// Whether the destinations of all rows can't be read together: there are too many, or one of several stores can't be read.
  @exclusivity(unchecked) var isAnsweredAlone = false
  /// The number of requests for single objects: 8 bits for each to-many index from 0 to 6, and 8 bits for all others together.
  @exclusivity(unchecked) private var askedAlone: UInt64 = 0

  init(_ first: RowRun, _ rest: [RowRun] = [], entity: EntityIndex, isFetched: Bool = false) {
    self.first = first
    self.rest = rest
    self.entity = entity
    self.isFetched = isFetched
    count = rest.reduce(first.count) { $0 + $1.count }
  }

  deinit {
    for place in columns.indices {
      // Faults refer to their siblings, and can outlive the objects that reference them.
      let isUsed = !isKnownUniquelyReferenced(&columns[place]), siblings = columns[place]
      siblings.leaveGroup(with: isUsed ? keys(in: siblings.slot) : [])
    }
  }

  /// Calls a closure with every row, in order.
  func forEachRow(_ body: (Int, RowPointer) -> Void) {
    var position = 0
    RowGroup.forEach(first) { row in
      body(position, row)
      position += 1
    }
    for run in rest {
      RowGroup.forEach(run) { row in
        body(position, row)
        position += 1
      }
    }
  }

  private static func forEach(_ run: RowRun, _ body: (RowPointer) -> Void) {
    switch run.rows {
    case .all: for index in 0..<run.batch.count { body(run.batch.pointer(index)) }
    case .one(let index): body(run.batch.pointer(index))
    case .rows(let rows): for index in rows { body(run.batch.pointer(Int(index))) }
    }
  }

  /// Whether the store of the first row keeps its rows in memory.
  func hasResidentRows(_ places: StorePlaces) -> Bool { first.count > 0 && places.hasResidentRow(first.pointer(0).key) }

  /// The keys of all rows, in order.
  var keys: [ObjectKey] {
    var keys: [ObjectKey] = []
    keys.reserveCapacity(count)
    forEachRow { keys.append($1.key) }
    return keys
  }

  /// The row with a key and its position. If several rows have the key, the first one, which registered objects get as well.
  func row(_ key: ObjectKey) -> (RowPointer, Int)? {
    var found: (RowPointer, Int)?
    if count <= 8 {
      forEachRow { if found == nil, $1.key == key { found = ($1, $0) } }
      return found
    }
    if rowsByKey == nil {
      var rows = HashTable<KeyedRow>(capacity: count)
      forEachRow { rows.insert(KeyedRow(row: $1, position: $0), hash: KeyedRow.hash) }
      rowsByKey = consume rows
    }
    guard let place = rowsByKey?.index(hash: KeyedRow.hash(key), where: { $0.row?.key == key }), let found = rowsByKey?[place] else {
      return nil
    }
    return found.row.map { ($0, found.position) }
  }

  /// A group of only the row at a position.
  func alone(at position: Int) -> RowGroup {
    var position = position
    for run in [first] + rest {
      if position < run.count { return RowGroup(RowRun(batch: run.batch, rows: .one(run.index(position))), entity: entity) }
      position -= run.count
    }
    return self
  }

  /// Counts a request for the destinations of one object. Returns true for the first 32, which is 3% of a full group.
  func isRarelyAsked(_ toManyIndex: Int) -> Bool {
    let shift = UInt64(min(toManyIndex, 7) * 8)
    let asked = askedAlone >> shift & 255
    if asked >= 32 { return false }
    askedAlone += 1 << shift
    return true
  }

  /// The answer of a fired to-many relationship.
  func answer(_ toManyIndex: Int) -> FaultSiblings? {
    if let firstAnswer, firstAnswer.toManyIndex == toManyIndex { return firstAnswer.siblings }
    for other in otherAnswers where other.toManyIndex == toManyIndex { return other.siblings }
    return nil
  }

  /// Adds an answer for an index that has none.
  func setAnswer(_ siblings: FaultSiblings, _ toManyIndex: Int) {
    if firstAnswer == nil { firstAnswer = (toManyIndex, siblings) } else { otherAnswers.append((toManyIndex, siblings)) }
  }

  /// The destinations of a to-one relationship for all rows of the group.
  func column(_ slot: SlotIndex, destination: EntityIndex) -> FaultSiblings {
    for siblings in columns where siblings.slot == slot { return siblings }
    let siblings = FaultSiblings(entity: destination, group: self, slot: slot)
    columns.append(siblings)
    return siblings
  }

  /// The keys in a slot of all rows, ascending, without duplicates.
  fileprivate func keys(in slot: SlotIndex) -> [ObjectKey] {
    var keys: [ObjectKey] = []
    forEachRow { if $1.isPresent(slot) { keys.append($1.key(slot)) } }
    return keys.sortedUniquely()
  }
}

extension ManagedObject {
  /// Makes the object a member of the group that contains its row.
  @inline(__always) final func joinGroup(_ group: RowGroup, at position: Int) {
    owner = group
    self.position = UInt32(truncatingIfNeeded: position)
    flags.insert(.ownedByGroup)
  }
}

/// The objects that were loaded together with a fault. Reading the fault's row also reads theirs. Confined to a context.
final class FaultSiblings {
  /// The index of the objects' entity.
  let entity: EntityIndex
  /// The destinations of a to-many relationship for an entire group; nil for a to-one relationship.
  let answer: RelationshipAnswer?
  /// The group whose rows contain the objects' keys. Nil after the keys were read, at the latest when the group is released.
  ///
  /// The group clears this reference in its deinitializer.
  private unowned(unsafe) var group: RowGroup?
  /// The slot of a to-one relationship; -1 for a to-many one.
  let slot: SlotIndex
  private var keys: [ObjectKey] = []
  /// The number of faults that were read alone.
  @exclusivity(unchecked) private var readAlone = 0

  init(entity: EntityIndex, answer: RelationshipAnswer) {
    self.entity = entity
    self.answer = answer
    slot = -1
  }

  init(entity: EntityIndex, group: RowGroup, slot: SlotIndex) {
    self.entity = entity
    answer = nil
    self.group = group
    self.slot = slot
  }

  /// The entity of the destination at a position; nil if only its row determines it.
  func entity(at position: Int) -> EntityIndex? { answer?.entities.map { $0[position] } }

  /// Counts a request for a single row. Returns true for the first 32.
  func isRarelyRead() -> Bool {
    readAlone += 1
    return readAlone <= 32
  }

  /// Keeps the keys of the group, which is being released, unless they were read before.
  fileprivate func leaveGroup(with keys: @autoclosure () -> [ObjectKey]) {
    if group != nil { self.keys = keys() }
    group = nil
  }

  /// The keys to read together with the one at a position.
  func window(around position: Int) -> ArraySlice<ObjectKey> {
    if let group {
      keys = group.keys(in: slot)
      self.group = nil
    }
    let all = answer?.targets ?? keys
    let start = min(position / RowGroup.size * RowGroup.size, all.count)
    return all[start..<min(start + RowGroup.size, all.count)]
  }
}
