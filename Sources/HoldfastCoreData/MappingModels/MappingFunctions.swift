import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The functions of expressions that mapping models may call. As in Core Data, whole numbers give whole numbers: 7 / 2 is 3.
enum MappingFunctions {
  typealias Function = @Sendable ([StoreValue]) throws -> StoreValue

  static func function(_ selector: String, _ argumentCount: Int) -> Function? {
    switch (selector, argumentCount) {
    case ("add:to:", 2): arithmetic({ $0.addingReportingOverflow($1) }, +)
    case ("from:subtract:", 2): arithmetic({ $0.subtractingReportingOverflow($1) }, -)
    case ("multiply:by:", 2): arithmetic({ $0.multipliedReportingOverflow(by: $1) }, *)
    case ("divide:by:", 2): arithmetic({ $0.dividedReportingOverflow(by: $1) }, /)
    case ("uppercase:", 1): text { $0.uppercased() }
    case ("lowercase:", 1): text { $0.lowercased() }
    case ("now", 0): { _ in .date(Date.now) }
    default: nil
    }
  }

  private static func text(_ change: @escaping @Sendable (String) -> String) -> Function {
    { arguments in
      switch arguments[0] {
      case .string(let text): .string(change(text))
      case .null: .null
      default: throw MappingProblem("The argument isn't text.")
      }
    }
  }

  private static func arithmetic(
    _ whole: @escaping @Sendable (Int64, Int64) -> (partialValue: Int64, overflow: Bool),
    _ real: @escaping @Sendable (Double, Double) -> Double
  ) -> Function {
    { arguments in
      if arguments.contains(.null) { return .null }
      if let a = wholeNumber(arguments[0]), let b = wholeNumber(arguments[1]) {
        let (value, overflow) = whole(a, b)
        if overflow { throw MappingProblem("The result is too large, or a divisor is 0.") }
        return .int64(value)
      }
      guard let a = arguments[0].real, let b = arguments[1].real else { throw MappingProblem("An argument isn't a number.") }
      return .double(real(a, b))
    }
  }

  private static func wholeNumber(_ value: StoreValue) -> Int64? {
    switch value {
    case .bool, .int16, .int32, .int64: value.integer
    default: nil
    }
  }
}
