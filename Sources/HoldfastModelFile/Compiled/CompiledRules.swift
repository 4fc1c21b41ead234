import HoldfastPropertyList
import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Converts the validation predicates of a compiled model back to the bounds in Xcode's editor.
struct CompiledRules {
  private(set) var validation = AttributeValidation.none
  /// The rules that couldn't be converted.
  private(set) var reasons: [String] = []
  private let type: AttributeType

  init(_ type: AttributeType) { self.type = type }

  /// Adds a rule.
  mutating func add(_ predicate: ArchivedPredicate) {
    if case .and(let parts) = predicate, !parts.isEmpty, parts.allSatisfy({ bound($0) != nil }) {
      for part in parts { add(part) }
      return
    }
    guard let bound = bound(predicate) else {
      reasons.append("The rule \(predicate.text.quoted) was omitted, because it isn't a bound, a length or a pattern.")
      return
    }
    if !set(bound) { reasons.append("The rule \(predicate.text.quoted) was omitted, because the attribute has another rule of this kind.") }
  }

  /// Notes a rule that couldn't be read.
  mutating func add(unknown error: ModelFileError) { reasons.append("A rule was omitted. \(error.reason)") }

  private enum Bound {
    case minimum(StoreValue), maximum(StoreValue), minimumLength(Int), maximumLength(Int), pattern(String)
  }

  private func bound(_ predicate: ArchivedPredicate) -> Bound? {
    guard case .comparison("", let left, let comparison, let right) = predicate, comparison.options.isEmpty else { return nil }
    switch (left, comparison.word) {
    case (.evaluatedObject, ">="): return value(right).map { .minimum($0) }
    case (.evaluatedObject, "<="): return value(right).map { .maximum($0) }
    case (.keyPath(.evaluatedObject, "length"), ">="): return length(right).map { .minimumLength($0) }
    case (.keyPath(.evaluatedObject, "length"), "<="): return length(right).map { .maximumLength($0) }
    case (.evaluatedObject, "MATCHES"):
      if case .constant(.string(let text)) = right, type == .string { return .pattern(text) }
      return nil
    default: return nil
    }
  }

  private var hasBounds: Bool {
    switch type {
    case .integer16, .integer32, .integer64, .decimal, .double, .float, .date: true
    default: false
    }
  }

  private func value(_ right: ArchivedExpression) -> StoreValue? {
    guard hasBounds else { return nil }
    switch right {
    case .constant(let constant): return ArchivedValue.value(ofPlain: constant, type)
    case .decimal(let number) where type == .decimal: return .decimal(number)
    // An integer may have been archived as a decimal. A floating-point number has fewer digits.
    case .decimal(let number) where type.integerRange != nil:
      return Int64(number.description).flatMap { ArchivedValue.value(ofPlain: .integer($0), type) }
    case .decimal(let number): return Double(number.description).flatMap { ArchivedValue.value(ofPlain: .real($0), type) }
    default: return nil
    }
  }

  private func length(_ right: ArchivedExpression) -> Int? {
    guard type == .string else { return nil }
    switch right {
    case .constant(.integer(let number)): return Int(exactly: number)
    case .constant(.real(let number)): return Int(exactly: number)
    case .decimal(let number): return Int(number.description)
    default: return nil
    }
  }

  /// Sets a bound. Returns false if the bound already has another value.
  private mutating func set(_ bound: Bound) -> Bool {
    switch bound {
    case .minimum(let value): return Self.set(&validation.minimum, value)
    case .maximum(let value): return Self.set(&validation.maximum, value)
    case .minimumLength(let count): return Self.set(&validation.minimumLength, count)
    case .maximumLength(let count): return Self.set(&validation.maximumLength, count)
    case .pattern(let text): return Self.set(&validation.regularExpression, text)
    }
  }

  private static func set<Value: Equatable>(_ place: inout Value?, _ value: Value) -> Bool {
    if let place { return place == value }
    place = value
    return true
  }
}
