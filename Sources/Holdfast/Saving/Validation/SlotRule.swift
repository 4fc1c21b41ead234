import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The rule for an attribute's values: the range of its type, and the model's validation.
enum SlotRule: Sendable {
  case whole(ClosedRange<Int64>)
  case number(ClosedRange<Double>)
  /// The same for single-precision attributes, whose bounds are reported as `Float`.
  case single(ClosedRange<Double>)
  case decimal(Decimal?, Decimal?)
  /// In seconds. A date must be finite even without bounds.
  case date(ClosedRange<Double>)
  case text(TextRule)

  /// Why a value is invalid.
  struct Failure {
    var code: PersistenceError.Code
    var bound: StoreValue?
    var predicate: String?
    /// A sentence without user data.
    var reason: String
  }

  /// Nil when every value is valid.
  init?(_ declaration: AttributeDescription) {
    let bounds = declaration.validation
    switch declaration.type {
    case .integer16, .integer32, .integer64, .boolean:
      let range = declaration.type.integerRange ?? Int64.min...Int64.max
      let (low, high) = (bounds.minimum?.integer ?? range.lowerBound, bounds.maximum?.integer ?? range.upperBound)
      if low == .min && high == .max { return nil }
      self = .whole(max(low, range.lowerBound)...max(low, range.lowerBound, min(high, range.upperBound)))
    case .double, .float:
      if bounds.minimum == nil && bounds.maximum == nil { return nil }
      self = declaration.type == .float ? .single(SlotRule.reals(bounds)) : .number(SlotRule.reals(bounds))
    case .decimal:
      let (low, high) = (SlotRule.decimal(bounds.minimum), SlotRule.decimal(bounds.maximum))
      if low == nil && high == nil { return nil }
      self = .decimal(low, high)
    case .date: self = .date(SlotRule.reals(bounds))
    case .string, .uri:
      guard let rule = TextRule(declaration) else { return nil }
      self = .text(rule)
    case .binaryData, .uuid, .transformable, .objectID, .composite, .undefined: return nil
    }
  }

  private static func reals(_ bounds: AttributeValidation) -> ClosedRange<Double> {
    let low = bounds.minimum?.real ?? -.infinity
    return low...max(low, bounds.maximum?.real ?? .infinity)
  }

  private static func decimal(_ bound: StoreValue?) -> Decimal? {
    if case .decimal(let value) = bound { value } else { nil }
  }

  /// The valid numbers; nil for rules that can't be expressed so.
  var bounds: SlotRange.Bounds? {
    switch self {
    case .whole(let range): return .integers(range)
    case .number(let range), .single(let range): return .reals(range)
    case .date(let range):
      let finite = -Double.greatestFiniteMagnitude...Double.greatestFiniteMagnitude
      return range.overlaps(finite) ? .reals(range.clamped(to: finite)) : nil
    case .decimal, .text: return nil
    }
  }

  @inline(__always) func failure(_ row: RowPointer, _ slot: SlotIndex, _ context: ContextCore) -> Failure? {
    switch self {
    case .whole(let range):
      let value = row.integer(slot)
      return range.contains(value)
        ? nil : SlotRule.outside(value > range.upperBound, .int64(range.lowerBound), .int64(range.upperBound))
    case .number(let range):
      let value = row.real(slot)
      return range.contains(value)
        ? nil : SlotRule.outside(SlotRule.isAbove(value, range), .double(range.lowerBound), .double(range.upperBound))
    case .single(let range):
      let value = row.real(slot)
      return range.contains(value)
        ? nil : SlotRule.outside(SlotRule.isAbove(value, range), .float(Float(range.lowerBound)), .float(Float(range.upperBound)))
    case .date(let range):
      let value = row.real(slot)
      return value.isFinite && range.contains(value) ? nil : SlotRule.date(value, range)
    case .decimal(let low, let high): return SlotRule.decimal(row.value(slot, .decimal), low, high)
    case .text(let rule): return rule.failure(row.bytes(slot), context)
    }
  }

  /// Whether an invalid number violates the upper bound. NaN violates the upper bound if there is one, else the lower.
  @inline(never)
  private static func isAbove(_ value: Double, _ range: ClosedRange<Double>) -> Bool {
    value.isNaN ? range.upperBound.isFinite : value > range.upperBound
  }

  @inline(never)
  private static func outside(_ isTooLarge: Bool, _ low: StoreValue, _ high: StoreValue) -> Failure {
    let bound = isTooLarge ? high : low
    return Failure(
      code: isTooLarge ? .numberTooLarge : .numberTooSmall, bound: bound,
      predicate: "SELF \(isTooLarge ? "<=" : ">=") \(ValidationSentence.text(bound))",
      reason: "The number is \(isTooLarge ? "above the largest" : "below the smallest") value that the attribute or its type allows.")
  }

  @inline(never)
  private static func date(_ value: Double, _ range: ClosedRange<Double>) -> Failure {
    if !value.isFinite { return Failure(code: .invalidDate, reason: "The date isn't a finite number of seconds.") }
    let isTooLate = value > range.upperBound
    let bound = StoreValue.date(isTooLate ? range.upperBound : range.lowerBound)
    return Failure(
      code: isTooLate ? .dateTooLate : .dateTooSoon, bound: bound,
      predicate: "SELF \(isTooLate ? "<=" : ">=") \(ValidationSentence.text(bound))",
      reason: "The date is \(isTooLate ? "later" : "earlier") than the model allows.")
  }

  @inline(never)
  private static func decimal(_ value: StoreValue, _ low: Decimal?, _ high: Decimal?) -> Failure? {
    guard case .decimal(let number) = value else { return nil }
    // NaN violates the upper bound if there is one, else the lower, as for floating-point numbers.
    if let high, number.isNaN || number > high { return outside(true, .decimal(low ?? high), .decimal(high)) }
    if let low, number.isNaN || number < low { return outside(false, .decimal(low), .decimal(high ?? low)) }
    return nil
  }
}
