#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Computes dictionary results from rows: the reference for every store that aggregates itself.
public final class RowAggregator {
  private let plan: AggregatePlan
  private let entity: ManagedObjectModel.Entity
  private var groups: [Group] = []
  private var byBytes: [[UInt8]: Int] = [:]
  private var byInteger: [Int64: Int] = [:]
  private var groupOfNil: Int?
  private let integerSlot: Int?

  private struct Group {
    var values: [StoreValue]
    var states: [State]
  }

  /// What is known of one column of one group.
  private struct State {
    var count: Int64 = 0
    var integer: Int64 = 0
    var overflowed = false
    var real = 0.0
    var decimal = Decimal(0)
    var extreme: StoreValue = .null
  }

  /// Makes an aggregator without rows.
  public init(_ plan: AggregatePlan, entity: ManagedObjectModel.Entity) {
    self.plan = plan
    self.entity = entity
    let kind = plan.groupBy.count == 1 ? entity.layout.kinds[plan.groupBy[0]] : .bytes
    integerSlot = kind == .integer || kind == .key ? plan.groupBy[0] : nil
    if plan.groupBy.isEmpty { groups.append(Group(values: [], states: emptyStates())) }
  }

  private func emptyStates() -> [State] { Array(repeating: State(), count: plan.columns.count) }

  /// Takes a row into its group.
  ///
  /// - Parameter idPrefix: makes the IDs of to-one targets by which is grouped.
  public func add(_ row: RowPointer, idPrefix: ManagedObjectID?) {
    let group = groupIndex(row, idPrefix)
    for index in plan.columns.indices { update(&groups[group].states[index], plan.columns[index], row) }
  }

  private func groupIndex(_ row: RowPointer, _ idPrefix: ManagedObjectID?) -> Int {
    if plan.groupBy.isEmpty { return 0 }
    if let slot = integerSlot {
      guard row.isPresent(slot) else {
        if let known = groupOfNil { return known }
        groupOfNil = newGroup(row, idPrefix)
        return groups.count - 1
      }
      let value = row.integer(slot)
      if let known = byInteger[value] { return known }
      byInteger[value] = newGroup(row, idPrefix)
      return groups.count - 1
    }
    let key = groupBytes(row)
    if let known = byBytes[key] { return known }
    byBytes[key] = newGroup(row, idPrefix)
    return groups.count - 1
  }

  private func newGroup(_ row: RowPointer, _ idPrefix: ManagedObjectID?) -> Int {
    let values = plan.groupBy.map { row.value($0, entity.layout.columns[$0], idPrefix: idPrefix) }
    groups.append(Group(values: values, states: emptyStates()))
    return groups.count - 1
  }

  /// Bytes that are equal for rows of one group and differ otherwise.
  private func groupBytes(_ row: RowPointer) -> [UInt8] {
    var out: [UInt8] = []
    for slot in plan.groupBy {
      guard row.isPresent(slot) else {
        out.append(0)
        continue
      }
      out.append(1)
      if entity.layout.kinds[slot] == .bytes {
        let bytes = row.bytes(slot)
        withUnsafeBytes(of: bytes.count) { out += $0 }
        out += bytes
      } else {
        withUnsafeBytes(of: row.integer(slot)) { out += $0 }
      }
    }
    return out
  }

  private func update(_ state: inout State, _ column: AggregateColumn, _ row: RowPointer) {
    guard let slot = column.slot else {
      state.count += 1
      return
    }
    if case .group = column { return }
    guard row.isPresent(slot) else { return }
    state.count += 1
    switch column {
    case .sum, .average: add(row, slot, to: &state)
    case .minimum: extend(row, slot, &state, by: -1)
    case .maximum: extend(row, slot, &state, by: 1)
    case .count, .group: break
    }
  }

  private func add(_ row: RowPointer, _ slot: Int, to state: inout State) {
    switch entity.layout.kinds[slot] {
    case .integer, .key:
      let (sum, overflow) = state.integer.addingReportingOverflow(row.integer(slot))
      state.integer = sum
      if overflow { state.overflowed = true }
      state.real += Double(row.integer(slot))
    case .real: state.real += row.real(slot)
    case .bytes: state.decimal += DecimalText.value(row.bytes(slot)) ?? 0
    }
  }

  private func extend(_ row: RowPointer, _ slot: Int, _ state: inout State, by sign: Int) {
    let value = row.value(slot, entity.layout.columns[slot], idPrefix: nil)
    if state.extreme == .null || (ValueComparison.order(value, state.extreme, []) ?? -sign).signum() == sign { state.extreme = value }
  }

  /// The answer: a row per group, in the order in which groups were met.
  ///
  /// - Throws: ``StoreError`` with code ``StoreError/Code/unstorableValue`` when a sum of whole numbers overflows.
  public func result() throws -> RowBatch {
    let builder = RowBatchBuilder(layout: plan.layout(in: entity), idPrefix: nil)
    for (index, group) in groups.enumerated() {
      let values = try plan.columns.indices.map { try value(plan.columns[$0], group, group.states[$0]) }
      try builder.append(key: Int64(index), version: 0, values: values)
    }
    return builder.seal()
  }

  private func value(_ column: AggregateColumn, _ group: Group, _ state: State) throws -> StoreValue {
    switch column {
    case .group(let slot): return plan.groupBy.firstIndex(of: slot).map { group.values[$0] } ?? .null
    case .count: return .int64(state.count)
    case .minimum, .maximum: return state.extreme
    case .sum(let slot): return try sum(slot, state)
    case .average(let slot): return average(slot, state)
    }
  }

  private func sum(_ slot: Int, _ state: State) throws -> StoreValue {
    switch entity.layout.kinds[slot] {
    case .integer, .key:
      if state.overflowed {
        throw StoreError(
          .unstorableValue, operation: "add up \(entity.name).\(entity.slots[slot].name)",
          reason: "The sum is beyond 64 bits; ask for the average, or add up fewer rows.")
      }
      return .int64(state.integer)
    case .real: return .double(state.real)
    case .bytes: return .decimal(state.decimal)
    }
  }

  private func average(_ slot: Int, _ state: State) -> StoreValue {
    if state.count == 0 { return .null }
    if entity.layout.kinds[slot] == .bytes { return .decimal(state.decimal / Decimal(state.count)) }
    return .double(state.real / Double(state.count))
  }
}
