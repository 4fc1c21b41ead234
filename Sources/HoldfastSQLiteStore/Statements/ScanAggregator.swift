import CHoldfastSQLite
import HoldfastStore

/// Groups the rows of a scan and computes each group's numbers, directly from a statement's columns.
///
/// It does the same as ``RowAggregator`` for the most common plans: numbers only, grouped by at most one integer or key.
///
/// Small group values, which keys mostly are, take one table lookup. At 100,000 rows and 1,000 groups it takes 27 ms of processor time,
/// ``RowAggregator`` 74 ms, and SQLite's own `GROUP BY` 139 ms.
struct ScanAggregator {
  private enum Function { case group, countRows, count, sum, average, minimum, maximum }

  /// The state of one aggregate of one group.
  private struct State {
    var count: Int64 = 0
    /// An extreme of floating-point numbers.
    var real = 0.0
    /// A sum or an extreme of integers. 128 bits suffice for the sum of any number of rows.
    var whole: Int128 = 0
  }

  /// The slots to read, in the order of the statement's columns.
  let slots: [SlotIndex]
  private let entity: ManagedObjectModel.Entity
  private let plan: AggregatePlan
  /// The statement's column of each aggregate; -1 for none.
  private let columns: [Int32]
  private let functions: [Function]
  private let isReal: [Bool]
  /// The whole numbers that the attribute of each aggregate can have.
  private let ranges: [ClosedRange<Int64>]
  private let groupColumn: Int32
  private let groupRange: ClosedRange<Int64>
  private var states: [State] = []
  /// Sums of floating-point numbers, in the same order; empty if no aggregate needs them.
  private var sums: [ExactSum] = []
  private let addsReals: Bool
  /// The memory that the sums have allocated, in bytes.
  private var sumByteCount = 0
  private var groupValues: [Int64?] = []
  private var nilGroup = -1
  /// The groups of values from 0 to 65,535, by value; -1 for none.
  private var near: [Int32] = []
  private var far: [Int64: Int] = [:]

  /// Nil if this type doesn't support the plan.
  init?(_ plan: AggregatePlan, entity: ManagedObjectModel.Entity) {
    let slots = plan.slots(of: entity)
    let kinds = entity.layout.kinds
    guard plan.groupBy.count <= 1, plan.groupBy.allSatisfy({ kinds[$0] == .integer || kinds[$0] == .key }),
      slots.allSatisfy({ kinds[$0] != .bytes })
    else { return nil }
    var functions: [Function] = []
    for column in plan.columns {
      switch column {
      case .group(let slot):
        guard plan.groupBy.contains(slot) else { return nil }
        functions.append(.group)
      case .count(let slot): functions.append(slot == nil ? .countRows : .count)
      case .sum: functions.append(.sum)
      case .average: functions.append(.average)
      case .minimum: functions.append(.minimum)
      case .maximum: functions.append(.maximum)
      }
    }
    let place = { (slot: SlotIndex?) -> Int32 in slot.flatMap { slots.firstIndex(of: $0) }.map { Int32($0) } ?? -1 }
    self.plan = plan
    self.entity = entity
    self.slots = slots
    self.functions = functions
    columns = plan.columns.map { place($0.slot) }
    isReal = plan.columns.map { $0.slot.map { kinds[$0] == .real } ?? false }
    addsReals = zip(functions, isReal).contains { ($0 == .sum || $0 == .average) && $1 }
    let range = { (slot: SlotIndex?) -> ClosedRange<Int64> in
      slot.map { ScanAggregator.range(entity.layout.columns[$0]) } ?? Int64.min...Int64.max
    }
    ranges = plan.columns.map { range($0.slot) }
    groupColumn = place(plan.groupBy.first)
    groupRange = range(plan.groupBy.first)
    if plan.groupBy.isEmpty { _ = newGroup(nil) }
  }

  private static func range(_ column: ColumnType) -> ClosedRange<Int64> {
    switch column {
    case .toOne: 0...Int64.max
    case .attribute(let type): type.integerRange ?? Int64.min...Int64.max
    }
  }

  /// The memory of a group, including its entry in a dictionary.
  private var bytesPerGroup: Int {
    functions.count * (MemoryLayout<State>.stride + (addsReals ? MemoryLayout<ExactSum>.stride : 0)) + 48
  }

  // MARK: Rows

  /// Reads all rows of a statement whose columns are ``slots``. Returns nil, or the slot of a value that its attribute can't have.
  mutating func add(_ statement: SQLiteStatement, _ budget: FetchBudget) throws -> SlotIndex? {
    let handle = statement.handle
    var known = (groupValues.count, sumByteCount)
    while try statement.step() {
      guard let group = group(handle) else { return slots[Int(groupColumn)] }
      // A sum takes more memory when a number is added whose size differs much, also without a new group.
      if known != (groupValues.count, sumByteCount) {
        known = (groupValues.count, sumByteCount)
        try budget.check(groupValues.count * bytesPerGroup + sumByteCount)
      }
      for index in functions.indices where !add(handle, index, group * functions.count + index) { return slots[Int(columns[index])] }
    }
    return nil
  }

  /// The group of the statement's current row; nil if the attribute can't have the value.
  @inline(__always)
  private mutating func group(_ handle: OpaquePointer) -> Int? {
    if groupColumn < 0 { return 0 }
    let value = sqlite3_column_value(handle, groupColumn)
    switch sqlite3_value_type(value) {
    case SQLITE_INTEGER: break
    case SQLITE_NULL:
      if nilGroup < 0 { nilGroup = newGroup(nil) }
      return nilGroup
    default: return nil
    }
    let number = sqlite3_value_int64(value)
    if number >= 0 && number < Int64(near.count), near[Int(number)] >= 0 { return Int(near[Int(number)]) }
    return groupRange.contains(number) ? unusualGroup(number) : nil
  }

  @inline(never)
  private mutating func unusualGroup(_ number: Int64) -> Int {
    if number >= 0 && number < 65_536 {
      if number >= Int64(near.count) { near += repeatElement(-1, count: max(256, Int(number) + 1 - near.count, near.count)) }
      near[Int(number)] = Int32(newGroup(number))
      return Int(near[Int(number)])
    }
    if let known = far[number] { return known }
    let made = newGroup(number)
    far[number] = made
    return made
  }

  private mutating func newGroup(_ value: Int64?) -> Int {
    groupValues.append(value)
    states += repeatElement(State(), count: functions.count)
    if addsReals { sums += repeatElement(ExactSum(), count: functions.count) }
    return groupValues.count - 1
  }

  /// Adds one value to a state; false if its attribute can't have it.
  @inline(__always)
  private mutating func add(_ handle: OpaquePointer, _ index: Int, _ state: Int) -> Bool {
    let function = functions[index]
    if function == .group { return true }
    if function == .countRows {
      states[state].count += 1
      return true
    }
    let value = sqlite3_column_value(handle, columns[index])
    let type = sqlite3_value_type(value)
    if type == SQLITE_NULL { return true }
    if isReal[index] {
      guard type == SQLITE_FLOAT || type == SQLITE_INTEGER else { return false }
      let number = sqlite3_value_double(value)
      add(function, number == 0 ? 0 : number, state)
    } else {
      guard type == SQLITE_INTEGER else { return false }
      let number = sqlite3_value_int64(value)
      guard ranges[index].contains(number) else { return false }
      add(function, number, &states[state])
    }
    return true
  }

  @inline(__always)
  private func add(_ function: Function, _ number: Int64, _ state: inout State) {
    defer { state.count += 1 }
    switch function {
    case .sum, .average: state.whole &+= Int128(number)
    case .minimum: if state.count == 0 || number < state.whole { state.whole = Int128(number) }
    case .maximum: if state.count == 0 || number > state.whole { state.whole = Int128(number) }
    case .group, .countRows, .count: break
    }
  }

  @inline(__always)
  private mutating func add(_ function: Function, _ number: Double, _ state: Int) {
    switch function {
    case .sum, .average: sumByteCount += sums[state].add(number)
    case .minimum: if states[state].count == 0 || number < states[state].real { states[state].real = number }
    case .maximum: if states[state].count == 0 || number > states[state].real { states[state].real = number }
    case .group, .countRows, .count: break
    }
    states[state].count += 1
  }

  // MARK: The result

  /// One row per group, in order of first appearance.
  func result() throws -> RowBatch {
    let builder = RowBatchBuilder(layout: plan.layout(in: entity), idPrefix: nil)
    for group in groupValues.indices {
      builder.beginRow(key: ObjectKey(Int64(group)), version: 0)
      for index in functions.indices { try append(group * functions.count + index, index, groupValues[group], to: builder) }
      builder.endRow()
    }
    return builder.seal()
  }

  private func append(_ place: Int, _ index: Int, _ group: Int64?, to builder: RowBatchBuilder) throws {
    let state = states[place]
    switch functions[index] {
    case .group: if let group { builder.append(integer: group) } else { builder.appendNull() }
    case .count, .countRows: builder.append(integer: state.count)
    case .average:
      if state.count == 0 { return builder.appendNull() }
      builder.append(real: (isReal[index] ? sums[place].value : Double(state.whole)) / Double(state.count))
    case .sum where isReal[index]: builder.append(real: sums[place].value)
    case .sum:
      guard let sum = Int64(exactly: state.whole) else { throw overflow(index) }
      builder.append(integer: sum)
    case .minimum, .maximum:
      if state.count == 0 {
        builder.appendNull()
      } else if isReal[index] {
        builder.append(real: state.real)
      } else {
        builder.append(integer: Int64(truncatingIfNeeded: state.whole))
      }
    }
  }

  private func overflow(_ index: Int) -> StoreError {
    let name = plan.columns[index].slot.map { entity.slots[$0].name } ?? ""
    return StoreError(
      .unstorableValue, operation: "sum \(entity.name).\(name)",
      reason: "The sum doesn't fit in 64 bits. Request the average, or sum fewer rows.")
  }
}

extension AggregatePlan {
  /// The slots of an entity whose values the plan uses, ascending.
  func slots(of entity: ManagedObjectModel.Entity) -> [SlotIndex] {
    let used = groupBy + columns.compactMap(\.slot)
    return entity.slotIndexes.filter { used.contains($0) }
  }
}
