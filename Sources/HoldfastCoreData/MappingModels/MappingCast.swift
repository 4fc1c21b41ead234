import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// `CAST` in expressions of mapping models, for the types whose result is the same as in Core Data. Without a value, it is nil.
enum MappingCast {
  /// The function that casts to a class; nil for a class that isn't supported.
  static func function(_ className: String) -> MappingFunctions.Function? {
    let cast: @Sendable (StoreValue) throws -> StoreValue?
    switch className {
    case "NSString": cast = text
    case "NSNumber": cast = number
    case "NSDecimalNumber": cast = decimal
    case "NSDate": cast = date
    default: return nil
    }
    return { arguments in
      if arguments[0] == .null { return .null }
      guard let result = try cast(arguments[0]) else {
        throw MappingProblem("A value can't be cast to \(className). Set the property in a policy.")
      }
      return result
    }
  }

  /// Core Data's text of a floating-point number or a date depends on the system.
  private static func text(_ value: StoreValue) -> StoreValue? {
    switch value {
    case .string(let text), .uri(let text): .string(text)
    case .bool(let isTrue): .string(isTrue ? "1" : "0")
    case .int16, .int32, .int64: value.integer.map { .string("\($0)") }
    case .decimal(let number): number.isNaN ? nil : .string("\(number)")
    case .uuid(let id): .string(id.uuidString)
    default: nil
    }
  }

  private static func number(_ value: StoreValue) -> StoreValue? {
    switch value {
    case .bool, .int16, .int32, .int64, .float, .double, .decimal: value
    case .date(let seconds): .double(seconds)
    case .string(let text): number(text)
    default: nil
    }
  }

  /// Core Data reads a leading zero as that of an octal number, so such a text is refused.
  private static func number(_ text: String) -> StoreValue? {
    if text.wholeMatch(of: /[+-]?(0|[1-9][0-9]*)/) != nil { return Int64(text).map { .int64($0) } }
    // The standard library returns infinity for a number that is too large.
    guard text.wholeMatch(of: /[+-]?[0-9]*\.[0-9]+/) != nil, let number = Double(text), number.isFinite else { return nil }
    return .double(number)
  }

  private static func decimal(_ value: StoreValue) throws -> StoreValue? {
    if case .string(let text) = value { return DecimalText.number(text).map { .decimal($0) } }
    if case .date = value { return nil }
    return try MappingNumber(value).map { .decimal(try $0.decimal) }
  }

  private static func date(_ value: StoreValue) -> StoreValue? {
    switch value {
    case .date: value
    case .bool, .int16, .int32, .int64: value.integer.map { .date(Double($0)) }
    case .float(let number): .date(Double(number))
    case .double(let number): .date(number)
    case .decimal(let number): Double(number.description).map { .date($0) }
    default: nil
    }
  }
}
