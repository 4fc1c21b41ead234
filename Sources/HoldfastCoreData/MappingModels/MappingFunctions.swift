import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The functions of single values that expressions of mapping models may call. Those of lists are in ``MappingAggregate``.
enum MappingFunctions {
  typealias Function = @Sendable ([StoreValue]) throws -> StoreValue

  static func function(_ selector: String, _ argumentCount: Int) -> Function? {
    switch (selector, argumentCount) {
    case ("add:to:", 2): arithmetic { try $0.adding($1) }
    case ("from:subtract:", 2): arithmetic { try $0.subtracting($1) }
    case ("multiply:by:", 2): arithmetic { try $0.multiplied(by: $1) }
    case ("divide:by:", 2): arithmetic { try $0.divided(by: $1) }
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

  /// Arithmetic of two numbers. Without one of them, the result is nil.
  private static func arithmetic(_ operation: @escaping @Sendable (MappingNumber, MappingNumber) throws -> MappingNumber) -> Function {
    { arguments in
      if arguments.contains(.null) { return .null }
      guard let a = MappingNumber(arguments[0]), let b = MappingNumber(arguments[1]) else {
        throw MappingProblem("An argument isn't a number.")
      }
      return try operation(a, b).value
    }
  }
}
