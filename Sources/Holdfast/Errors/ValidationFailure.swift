public import HoldfastStore

/// What a rule of the model or of a class refuses. It holds user data, so it never enters an error's description.
public struct ValidationFailure: Sendable, Hashable {
  /// The value that is refused; nil where that is no single value.
  public var value: StoreValue?
  /// The largest or smallest value, length or count that is allowed; nil where the rule is another.
  public var bound: StoreValue?
  /// The rule in the words of a predicate, as Core Data gives it: `SELF <= 5`, `length >= 3`, `SELF MATCHES "[A-Z]+"`.
  public var predicate: String?

  /// Makes the record.
  public init(value: StoreValue? = nil, bound: StoreValue? = nil, predicate: String? = nil) {
    self.value = value
    self.bound = bound
    self.predicate = predicate
  }
}

extension ContextError {
  /// An error by which a class refuses an object or a value of one of its properties.
  ///
  /// - Parameters:
  ///   - message: a sentence for people, without user data; see ``userMessage(_:text:)``.
  ///   - property: the name of the property; nil for that of the rule, or for the object as a whole.
  public static func invalid(_ message: String, property: String? = nil) -> ContextError {
    ContextError(.validation, property: property, reason: message)
  }

  /// What Core Data gives beside an error's number, under its keys: `NSValidationErrorObject` (the object's ID),
  /// `NSValidationErrorKey`, `NSValidationErrorValue`, `NSValidationErrorPredicate`, `NSDetailedErrors`, `NSAffectedObjects`,
  /// `NSUnderlyingError`. Keys without value are left out. It holds user data.
  public var coreDataUserInfo: [String: any Sendable] {
    var info: [String: any Sendable] = [:]
    if let objectID { info["NSValidationErrorObject"] = objectID }
    if let property { info["NSValidationErrorKey"] = property }
    if let value = validation?.value { info["NSValidationErrorValue"] = value }
    if [.tooFewObjects, .tooManyObjects, .deniedDelete].contains(code) { info["NSValidationErrorValue"] = objectIDs }
    if let predicate = validation?.predicate { info["NSValidationErrorPredicate"] = predicate }
    if !failures.isEmpty { info["NSDetailedErrors"] = failures }
    if !objectIDs.isEmpty { info["NSAffectedObjects"] = objectIDs }
    if let cause { info["NSUnderlyingError"] = cause }
    return info
  }
}
