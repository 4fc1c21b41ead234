/// A test of a whole number in a slot of the row itself, which loops over a batch run without closure calls.
///
/// Most conditions on whole numbers have this form. They leave few rows for the rest of the predicate.
struct RangeTest {
  let slot: SlotIndex
  /// The divisor, if the remainder is tested. 0 to test the number itself.
  let divisor: Int64
  let range: ClosedRange<Int64>

  @inline(__always) func holds(_ row: RowPointer) -> Bool {
    guard row.isPresent(slot) else { return false }
    let number = row.integer(slot)
    return range.contains(divisor == 0 ? number : number % divisor)
  }

  /// The range of numbers for which a comparison with a number holds, or nil if it isn't a range.
  static func range(_ op: ComparisonOperator, _ number: Int64) -> ClosedRange<Int64>? {
    switch op {
    case .equalTo: number...number
    case .lessThanOrEqualTo: Int64.min...number
    case .greaterThanOrEqualTo: number...Int64.max
    case .lessThan: number > .min ? Int64.min...(number - 1) : nil
    case .greaterThan: number < .max ? (number + 1)...Int64.max : nil
    case .notEqualTo, .beginsWith, .endsWith, .contains: nil
    }
  }

  /// The rows of a selection that pass the test.
  func select(_ batch: RowBatch, _ rows: RowSelection) -> [UInt32] {
    switch rows {
    case .all:
      [UInt32](unsafeUninitializedCapacity: batch.count) { found, count in
        for index in 0..<batch.count {
          // Writes always, and keeps the element only if the test passes: no branch to mispredict.
          found[count] = UInt32(truncatingIfNeeded: index)
          if holds(batch.pointer(index)) { count += 1 }
        }
      }
    case .one(let index): holds(batch.pointer(index)) ? [UInt32(index)] : []
    case .rows(let indexes):
      [UInt32](unsafeUninitializedCapacity: indexes.count) { found, count in
        for index in indexes {
          found[count] = index
          if holds(batch.pointer(Int(index))) { count += 1 }
        }
      }
    }
  }
}

extension PredicateCompiler {
  /// The range test that is equivalent to a conjunct, or nil if there is none. The conjunct has been compiled before, so it is valid.
  func rangeTest(_ conjunct: QueryExpression, _ entity: ManagedObjectModel.Entity) -> RangeTest? {
    switch conjunct {
    case .comparison(let value, let op, .constant(let constant), []):
      guard let number = constant.integer, let range = RangeTest.range(op, number) else { return nil }
      return rangeTest(of: value, range, entity)
    case .between(let value, let lower, let upper):
      guard let first = lower.integer, let last = upper.integer, first <= last else { return nil }
      return rangeTest(of: value, first...last, entity)
    default: return nil
    }
  }

  private func rangeTest(of value: QueryExpression, _ range: ClosedRange<Int64>, _ entity: ManagedObjectModel.Entity) -> RangeTest? {
    switch value {
    case .property(let path): return integerSlot(path, entity).map { RangeTest(slot: $0, divisor: 0, range: range) }
    case .remainder(.property(let path), let divisor) where divisor > 0:
      return integerSlot(path, entity).map { RangeTest(slot: $0, divisor: divisor, range: range) }
    default: return nil
    }
  }

  private func integerSlot(_ path: PropertyPath, _ entity: ManagedObjectModel.Entity) -> SlotIndex? {
    guard let resolved = try? resolve(path, entity), resolved.hops.isEmpty, let slot = resolved.slot else { return nil }
    return resolved.column(in: model)?.cellKind == .integer ? slot : nil
  }
}
