#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// An error of the stack: what failed, on which object and property, why, and what to do. It holds no attribute values.
///
/// Errors of a store come through as ``/HoldfastStore/StoreError``, unchanged, except where the stack can say more: conflicts and
/// constraint conflicts of a save become context errors that name the objects and keep the store's error as their cause.
///
/// Bridged to `NSError` the error has ``coreDataCode`` in `NSCocoaErrorDomain`, and `localizedDescription` is ``errorDescription``.
public struct ContextError: Error, Sendable {
  /// What kind of failure it is. Open for growth.
  public struct Code: RawRepresentable, Hashable, Sendable {
    /// The name of the code, in lower camel case.
    public let rawValue: String
    /// Makes a code from its name.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// Several validation failures; see ``ContextError/failures``.
    public static let multipleValidationFailures = Code(rawValue: "multipleValidationFailures")
    /// A value that must be there is missing.
    public static let missingMandatoryValue = Code(rawValue: "missingMandatoryValue")
    /// A to-many relationship has too few objects.
    public static let tooFewObjects = Code(rawValue: "tooFewObjects")
    /// A to-many relationship has too many objects.
    public static let tooManyObjects = Code(rawValue: "tooManyObjects")
    /// An object cannot be deleted while there are objects at the other end of a relationship.
    public static let deniedDelete = Code(rawValue: "deniedDelete")
    /// A number is too large for its attribute.
    public static let numberTooLarge = Code(rawValue: "numberTooLarge")
    /// A number is too small for its attribute.
    public static let numberTooSmall = Code(rawValue: "numberTooSmall")
    /// A date is later than the model allows.
    public static let dateTooLate = Code(rawValue: "dateTooLate")
    /// A date is earlier than the model allows.
    public static let dateTooSoon = Code(rawValue: "dateTooSoon")
    /// A text is longer than the model allows.
    public static let stringTooLong = Code(rawValue: "stringTooLong")
    /// A text is shorter than the model allows.
    public static let stringTooShort = Code(rawValue: "stringTooShort")
    /// A text does not match the model's regular expression.
    public static let stringPatternMismatch = Code(rawValue: "stringPatternMismatch")
    /// A text is no URI.
    public static let invalidURI = Code(rawValue: "invalidURI")
    /// A rule of the object's class refuses it or one of its values.
    public static let validation = Code(rawValue: "validation")
    /// A date is no date: not a number, or infinite.
    public static let invalidDate = Code(rawValue: "invalidDate")
    /// A value of a transformable attribute cannot be turned into bytes, or bytes into a value; see ``ContextError/cause``.
    public static let transformationFailed = Code(rawValue: "transformationFailed")
    /// An attribute has the temporary ID of an object that is not saved with it.
    public static let unsavedObjectID = Code(rawValue: "unsavedObjectID")
    /// There is no property of that name.
    public static let unknownProperty = Code(rawValue: "unknownProperty")
    /// There is no entity of that name.
    public static let unknownEntity = Code(rawValue: "unknownEntity")
    /// The entity is abstract: it has no objects of its own.
    public static let abstractEntity = Code(rawValue: "abstractEntity")
    /// A value is not of the property's type.
    public static let wrongType = Code(rawValue: "wrongType")
    /// The object's row does not exist.
    public static let missingObject = Code(rawValue: "missingObject")
    /// The object belongs to another store or to no store of this coordinator.
    public static let foreignObject = Code(rawValue: "foreignObject")
    /// A relationship leads from an object of one store to an object of another; see ``ContextError/objectIDs``.
    public static let externalRelationship = Code(rawValue: "externalRelationship")
    /// The store of an object was removed from the coordinator.
    public static let missingStore = Code(rawValue: "missingStore")
    /// No store of the coordinator takes objects of the entity.
    public static let noStoreForEntity = Code(rawValue: "noStoreForEntity")
    /// Some stores have their changes and others have not; see ``ContextError/savedStoreIdentifiers``.
    public static let incompleteSave = Code(rawValue: "incompleteSave")
    /// Somebody else changed objects that are being saved; see ``ContextError/objectIDs``.
    public static let conflict = Code(rawValue: "conflict")
    /// Objects would share the values of a uniqueness constraint; see ``ContextError/objectIDs``.
    public static let constraintConflict = Code(rawValue: "constraintConflict")
    /// Properties could not be read, and what is to be saved may depend on the placeholders that they returned; see
    /// ``FaultErrorPolicy``.
    public static let unreadValues = Code(rawValue: "unreadValues")
    /// A callback of a save, as ``ManagedObject/willSave()``, saved the context.
    public static let saveInProgress = Code(rawValue: "saveInProgress")
    /// Callbacks before the save change objects for ever.
    public static let endlessSave = Code(rawValue: "endlessSave")
    /// Typed classes do not fit the model.
    public static let classMismatch = Code(rawValue: "classMismatch")
    /// A request asks for what cannot be answered.
    public static let invalidRequest = Code(rawValue: "invalidRequest")
  }

  /// What kind of failure it is.
  public var code: Code
  /// The object at fault, when it is one.
  public var objectID: ManagedObjectID?
  /// The property at fault, when it is one.
  public var property: String?
  /// Why it failed and what to do, as sentences without user data.
  public var reason: String
  /// The value that a rule refuses, and the rule; nil for failures that are about no value.
  public var validation: ValidationFailure?
  /// Each validation failure, with code ``Code/multipleValidationFailures``.
  public var failures: [ContextError]
  /// The objects of a conflict; those that a relationship leads to and a deletion is denied for, or that are too few or too many.
  public var objectIDs: [ManagedObjectID]
  /// The UUIDs of the stores that have their changes, with code ``Code/incompleteSave``.
  public var savedStoreIdentifiers: [String]
  /// The error beneath, when there is one.
  public var cause: (any Error)?

  /// Makes an error.
  public init(
    _ code: Code, objectID: ManagedObjectID? = nil, property: String? = nil, reason: String, failures: [ContextError] = [],
    objectIDs: [ManagedObjectID] = [], savedStoreIdentifiers: [String] = [], cause: (any Error)? = nil
  ) {
    self.code = code
    self.objectID = objectID
    self.property = property
    self.reason = reason
    self.failures = failures
    self.objectIDs = objectIDs
    self.savedStoreIdentifiers = savedStoreIdentifiers
    self.cause = cause
  }

  /// The number that Core Data uses for the same situation.
  public var coreDataCode: Int {
    switch code {
    case .multipleValidationFailures: 1560
    case .missingMandatoryValue: 1570
    case .tooFewObjects: 1580
    case .tooManyObjects: 1590
    case .deniedDelete: 1600
    case .numberTooLarge: 1610
    case .numberTooSmall: 1620
    case .dateTooLate: 1630
    case .dateTooSoon: 1640
    case .invalidDate: 1650
    case .stringTooLong: 1660
    case .stringTooShort: 1670
    case .stringPatternMismatch: 1680
    case .invalidURI: 1690
    case .wrongType, .unknownProperty, .validation, .transformationFailed, .unsavedObjectID: 1550
    case .missingObject, .missingStore: 133000
    case .foreignObject, .externalRelationship: 133010
    case .incompleteSave: 134040
    case .unreadValues, .saveInProgress: 134030
    case .conflict: 133020
    case .constraintConflict: 133021
    case .classMismatch, .unknownEntity, .noStoreForEntity: 134020
    default: 134060
    }
  }
}

extension ContextError: CustomStringConvertible {
  /// One line that tells what failed, on what and why, then the failures and causes beneath.
  public var description: String {
    var text = ""
    if let objectID { text += objectID.uriRepresentation + (property.map { "." + $0 } ?? "") + ": " }
    text += "\(reason) [\(code.rawValue), \(coreDataCode)]"
    for failure in failures { text += "\n  \(failure)" }
    if let cause { text += " Cause: \(cause)" }
    return text
  }
}

extension ContextError: LocalizedError {
  /// The sentence for people who use an application, the error's `localizedDescription`: ``userMessage(_:text:)`` in English.
  public var errorDescription: String? { userMessage() }
  /// Why it failed, and what to do.
  public var failureReason: String? { reason.isEmpty ? nil : reason }

  /// The domain of the bridged `NSError`.
  public var _domain: String { "NSCocoaErrorDomain" }
  /// The number of the bridged `NSError`.
  public var _code: Int { coreDataCode }
}

extension ContextError {
  /// The store of objects was removed.
  static func missingStore(_ objectIDs: [ManagedObjectID] = []) -> ContextError {
    ContextError(
      .missingStore, objectID: objectIDs.count == 1 ? objectIDs[0] : nil,
      reason: "The store was removed from the coordinator. Add it again and fetch anew, or give the objects up: roll back or reset.",
      objectIDs: objectIDs)
  }

  /// No store has objects of an entity.
  static func noStore(for entity: ManagedObjectModel.Entity) -> ContextError {
    ContextError(
      .noStoreForEntity,
      reason: "No store of the coordinator has objects of \(entity.name). Add one whose configuration names the entity, or none.")
  }
}
