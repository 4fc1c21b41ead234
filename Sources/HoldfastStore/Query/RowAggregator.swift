import HoldfastSupport

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Computes dictionary results from rows: the reference for stores that aggregate themselves.
///
/// Counts and sums are stored in flat arrays by group and column. Each row costs one lookup of its group, and one addition per column.
public final class RowAggregator {
  private let plan: AggregatePlan
  private let entity: ManagedObjectModel.Entity
  private let columns: [Column]
  /// The values of the grouping properties, by group.
  @exclusivity(unchecked) private var groups: [[StoreValue]] = []
  @exclusivity(unchecked) private var byBytes: [[UInt8]: Int] = [:]
  @exclusivity(unchecked) private var byInteger = HashTable<GroupSlot>()
  @exclusivity(unchecked) private var groupOfNil: Int?
  private let integerSlot: SlotIndex?
  /// The approximate memory used by the groups, in bytes.
  @exclusivity(unchecked) public private(set) var byteCount = 0
  /// By group, then column.
  @exclusivity(unchecked) private var numbers: ContiguousArray<Numbers> = []
  /// The rows of a batch, and the indexes of the first columns of their groups.
  @exclusivity(unchecked) private var pointers: ContiguousArray<RowPointer> = []
  @exclusivity(unchecked) private var places: ContiguousArray<Int> = []
  /// Sums of floating-point numbers, decimals and extremes in the same order; empty if no column needs them.
  @exclusivity(unchecked) private var sums: ContiguousArray<ExactSum> = []
  @exclusivity(unchecked) private var decimals: ContiguousArray<Decimal> = []
  @exclusivity(unchecked) private var extremes: ContiguousArray<StoreValue> = []

  /// How a column processes a row.
  private struct Column {
    enum Kind {
      case group, countAll, count, addIntegers, addReals, addDecimals, minimum, maximum
    }
    let kind: Kind
    let slot: SlotIndex
  }

  /// The state of a column in a group.
  private struct Numbers {
    var count: Int64 = 0
    /// The sum of whole numbers in 128 bits: its low half, and the carry. It can't overflow, however many rows there are.
    var low: Int64 = 0
    var carry: Int64 = 0

    var whole: Int128 { Int128(carry) << 64 + Int128(low) }

    @inline(__always) mutating func add(_ number: Int64) {
      let (sum, hasOverflowed) = low.addingReportingOverflow(number)
      low = sum
      if hasOverflowed { carry += number < 0 ? -1 : 1 }
    }
  }

  /// Creates an aggregator without rows.
  public init(_ plan: AggregatePlan, entity: ManagedObjectModel.Entity) {
    self.plan = plan
    self.entity = entity
    columns = plan.columns.map { RowAggregator.column($0, entity) }
    let kind = plan.groupBy.count == 1 ? entity.layout.kinds[plan.groupBy[0]] : .bytes
    integerSlot = kind == .integer || kind == .key ? plan.groupBy[0] : nil
    if plan.groupBy.isEmpty { append([]) }
  }

  private static func column(_ column: AggregateColumn, _ entity: ManagedObjectModel.Entity) -> Column {
    switch column {
    case .group(let slot): return Column(kind: .group, slot: slot)
    case .count(let slot): return Column(kind: slot == nil ? .countAll : .count, slot: slot ?? 0)
    case .minimum(let slot): return Column(kind: .minimum, slot: slot)
    case .maximum(let slot): return Column(kind: .maximum, slot: slot)
    case .sum(let slot), .average(let slot):
      switch entity.layout.kinds[slot] {
      case .integer, .key: return Column(kind: .addIntegers, slot: slot)
      case .real: return Column(kind: .addReals, slot: slot)
      case .bytes: return Column(kind: .addDecimals, slot: slot)
      }
    }
  }

  /// Adds a row to its group.
  ///
  /// - Parameters:
  ///   - row: The row.
  ///   - idPrefix: The prefix of to-one destination IDs, if these are grouped by.
  public func add(_ row: RowPointer, idPrefix: ManagedObjectID?) {
    let first = groupIndex(row, idPrefix) * columns.count
    for index in columns.indices { add(row, columns[index], first + index) }
  }

  /// Adds rows of a batch to their groups, column by column.
  public func add(_ batch: RowBatch, _ rows: RowSelection) {
    pointers.removeAll(keepingCapacity: true)
    switch rows {
    case .all: for index in 0..<batch.count { pointers.append(batch.pointer(index)) }
    case .one(let index): pointers.append(batch.pointer(index))
    case .rows(let indexes): for index in indexes { pointers.append(batch.pointer(Int(index))) }
    }
    places.removeAll(keepingCapacity: true)
    for row in pointers { places.append(groupIndex(row, batch.idPrefix) * columns.count) }
    for (index, column) in columns.enumerated() where column.kind != .group {
      if column.kind == .countAll {
        for place in places { numbers[place + index].count += 1 }
      } else {
        for (row, place) in zip(pointers, places) { add(row, column, place + index) }
      }
    }
  }

  @inline(__always) private func add(_ row: RowPointer, _ column: Column, _ place: Int) {
    if column.kind == .countAll {
      numbers[place].count += 1
    } else if column.kind != .group && row.isPresent(column.slot) {
      numbers[place].count += 1
      add(row, column, place, &numbers[place])
    }
  }

  @inline(__always) private func add(_ row: RowPointer, _ column: Column, _ place: Int, _ state: inout Numbers) {
    switch column.kind {
    case .addIntegers: state.add(row.integer(column.slot))
    case .addReals: byteCount += sums[place].add(row.real(column.slot))
    case .addDecimals: decimals[place] += DecimalText.value(row.bytes(column.slot)) ?? 0
    case .minimum: extend(row, column.slot, &extremes[place], by: -1)
    case .maximum: extend(row, column.slot, &extremes[place], by: 1)
    case .group, .countAll, .count: break
    }
  }

  /// NaN isn't part of the order of values, so it is an extreme only if there is no other value.
  private func extend(_ row: RowPointer, _ slot: SlotIndex, _ extreme: inout StoreValue, by sign: Int) {
    let value = row.exactValue(slot, entity.layout.columns[slot])
    if extreme == .null || extreme.isNaN || ValueComparison.order(value, extreme, [])?.signum() == sign { extreme = value }
  }

  // MARK: Groups

  private func groupIndex(_ row: RowPointer, _ idPrefix: ManagedObjectID?) -> Int {
    if plan.groupBy.isEmpty { return 0 }
    if let slot = integerSlot {
      guard row.isPresent(slot) else {
        if let known = groupOfNil { return known }
        groupOfNil = newGroup(row, idPrefix)
        return groups.count - 1
      }
      let value = row.integer(slot)
      let known = byInteger[byInteger.index(hash: multiplicativeHash(value)) { $0.value == value }]
      if !known.isFree { return known.number - 1 }
      byInteger.insert(GroupSlot(value: value, number: newGroup(row, idPrefix) + 1)) { multiplicativeHash($0.value) }
      return groups.count - 1
    }
    let key = groupBytes(row)
    if let known = byBytes[key] { return known }
    // The key, and the value that is read from the same bytes.
    byteCount += 2 * key.count
    byBytes[key] = newGroup(row, idPrefix)
    return groups.count - 1
  }

  private func newGroup(_ row: RowPointer, _ idPrefix: ManagedObjectID?) -> Int {
    append(
      plan.groupBy.map { slot in
        let isNumber = entity.layout.kinds[slot] == .integer
        return isNumber ? row.exactValue(slot, entity.layout.columns[slot]) : row.value(slot, in: entity.layout, idPrefix: idPrefix)
      })
    return groups.count - 1
  }

  private func append(_ values: [StoreValue]) {
    groups.append(values)
    byteCount += RowAggregator.bytesPerGroup + values.count * MemoryLayout<StoreValue>.stride + columns.count * bytesPerColumn
    numbers.append(contentsOf: repeatElement(Numbers(), count: columns.count))
    let kinds = columns.lazy.map(\.kind)
    if kinds.contains(.addReals) { sums.append(contentsOf: repeatElement(ExactSum(), count: columns.count)) }
    if kinds.contains(.addDecimals) { decimals.append(contentsOf: repeatElement(0, count: columns.count)) }
    if kinds.contains(.minimum) || kinds.contains(.maximum) { extremes.append(contentsOf: repeatElement(.null, count: columns.count)) }
  }

  /// Two arrays, and their elements in other arrays.
  private static let bytesPerGroup = 128
  private var bytesPerColumn: Int {
    MemoryLayout<Numbers>.stride + (sums.isEmpty ? 0 : MemoryLayout<ExactSum>.stride)
      + (decimals.isEmpty ? 0 : MemoryLayout<Decimal>.stride) + (extremes.isEmpty ? 0 : MemoryLayout<StoreValue>.stride)
  }

  /// Bytes that are equal for rows of the same group and different for others.
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
        // One zero and one NaN: values that sort as equal are in one group.
        let isReal = entity.layout.kinds[slot] == .real, real = isReal ? row.real(slot) + 0.0 : 0
        let bits = isReal ? (real.isNaN ? Double.nan : real).bitPattern : UInt64(bitPattern: row.integer(slot))
        withUnsafeBytes(of: bits) { out += $0 }
      }
    }
    return out
  }

  /// The result: a row per group, in order of first occurrence.
  ///
  /// - Throws: ``StoreError`` with code ``StoreError/Code/unstorableValue`` if a sum of whole numbers overflows.
  public func result() throws -> RowBatch {
    let builder = RowBatchBuilder(layout: plan.layout(in: entity), idPrefix: nil)
    for (group, values) in groups.enumerated() {
      let row = try columns.indices.map { try value(plan.columns[$0], values, group * columns.count + $0) }
      try append(row, ObjectKey(group), to: builder)
    }
    return builder.seal()
  }

  /// Appends a row of results. A number beyond the range of its attribute is in its cell, as in the row of its object.
  private func append(_ values: [StoreValue], _ key: ObjectKey, to builder: RowBatchBuilder) throws {
    let layout = builder.layout
    var fitting = values, large: [(slot: SlotIndex, number: Int64)] = []
    for (place, column) in layout.columns.enumerated() {
      guard case .attribute(let type) = column, type.cellKind == .integer, case .int64(let number) = values[place],
        values[place].converted(to: type) == nil
      else { continue }
      fitting[place] = .int64(0)
      large.append((SlotIndex(place), number))
    }
    try builder.append(key: key, version: 0, values: fitting)
    for (slot, number) in large { builder.replaceInLastRow(slot, integer: number) }
  }

  private func value(_ column: AggregateColumn, _ group: [StoreValue], _ place: Int) throws -> StoreValue {
    switch column {
    case .group(let slot): return plan.groupBy.firstIndex(of: slot).map { group[$0] } ?? .null
    case .count: return .int64(numbers[place].count)
    case .minimum, .maximum: return extremes[place]
    case .sum(let slot): return try sum(slot, place)
    case .average(let slot): return average(slot, place)
    }
  }

  private func sum(_ slot: SlotIndex, _ place: Int) throws -> StoreValue {
    switch entity.layout.kinds[slot] {
    case .integer, .key:
      guard let sum = Int64(exactly: numbers[place].whole) else {
        throw StoreError(
          .unstorableValue, operation: "add up \(entity.name).\(entity.slots[slot].name)",
          reason: "The sum doesn't fit in 64 bits. Ask for the average, or add up fewer rows.")
      }
      return .int64(sum)
    case .real: return .double(sums[place].value)
    case .bytes: return .decimal(decimals[place])
    }
  }

  private func average(_ slot: SlotIndex, _ place: Int) -> StoreValue {
    let count = numbers[place].count
    if count == 0 { return .null }
    switch entity.layout.kinds[slot] {
    case .bytes: return .decimal(decimals[place] / Decimal(count))
    case .real: return .double(sums[place].value / Double(count))
    case .integer, .key: return .double(Double(numbers[place].whole) / Double(count))
    }
  }
}

/// A whole number or key, and its group.
private struct GroupSlot: HashSlot {
  var value: Int64
  /// The group number plus 1, or 0 if the slot is free.
  var number: Int

  static var free: GroupSlot { GroupSlot(value: 0, number: 0) }
  var isFree: Bool { number == 0 }
}
