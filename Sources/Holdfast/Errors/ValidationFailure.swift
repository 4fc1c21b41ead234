public import HoldfastStore

/// The value that a validation rule rejected, and the rule.
///
/// It contains user data, so an error's description never includes it.
public struct ValidationFailure: Sendable, Hashable {
  /// The rejected value; nil when it isn't a single value.
  public var value: StoreValue?
  /// The maximum or minimum value, length or count; nil for other rules.
  public var bound: StoreValue?
  /// The rule as a predicate in Core Data's format: `SELF <= 5`, `length >= 3`, `SELF MATCHES "[A-Z]+"`.
  public var predicate: String?

  /// Creates a validation failure.
  public init(value: StoreValue? = nil, bound: StoreValue? = nil, predicate: String? = nil) {
    self.value = value
    self.bound = bound
    self.predicate = predicate
  }
}

extension PersistenceError {
  /// Returns an error with which a class rejects an object or a property's value.
  ///
  /// - Parameters:
  ///   - message: a sentence for users, without user data; see ``userMessage(_:text:)``.
  ///   - property: the name of the property. Defaults to the property being validated, or to none for the entire object.
  public static func invalid(_ message: String, property: String? = nil) -> PersistenceError {
    PersistenceError(.validation, property: property, reason: message)
  }

  /// The error's details under the keys of Core Data's `userInfo`.
  ///
  /// The keys are `NSValidationErrorObject` (the object's ID), `NSValidationErrorKey`, `NSValidationErrorValue`,
  /// `NSValidationErrorPredicate`, `NSDetailedErrors`, `NSAffectedObjects` and `NSUnderlyingError`. Keys without a value are absent. The
  /// values contain user data.
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
