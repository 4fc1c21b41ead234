public import HoldfastStore

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// An error of a context, coordinator or container: what failed, why, and what to do.
///
/// ``objectID`` and ``property`` identify what failed. The description contains no attribute values; ``validation`` may hold the
/// rejected one.
///
/// Errors of a store are thrown unchanged, as ``/HoldfastStore/StoreError``, with these exceptions. A save throws a `PersistenceError` that
/// names the objects, and whose ``cause`` is the store's error:
///
/// - if a store reports a conflict or a constraint conflict,
/// - if a store fails after others have committed (``Code/incompleteSave``),
/// - if properties couldn't be read (``Code/unreadValues``).
///
/// Bridged to `NSError`, the error has the domain `NSCocoaErrorDomain` and the code ``coreDataCode``. `localizedDescription` is
/// ``errorDescription``.
public struct PersistenceError: Error, Sendable {
  /// The kind of a failure. Later versions may add kinds.
  public struct Code: RawRepresentable, Hashable, Sendable {
    /// The name of the code, in lower camel case.
    public let rawValue: String
    /// Makes a code from its name.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// Several validations failed; see ``PersistenceError/failures``.
    public static let multipleValidationFailures = Code(rawValue: "multipleValidationFailures")
    /// A required value is missing.
    public static let missingMandatoryValue = Code(rawValue: "missingMandatoryValue")
    /// A to-many relationship has fewer objects than its minimum count.
    public static let tooFewObjects = Code(rawValue: "tooFewObjects")
    /// A to-many relationship has more objects than its maximum count.
    public static let tooManyObjects = Code(rawValue: "tooManyObjects")
    /// A relationship with the deny rule still references objects, so its owner can't be deleted.
    public static let deniedDelete = Code(rawValue: "deniedDelete")
    /// A number is above the maximum of its attribute or of the attribute's type.
    public static let numberTooLarge = Code(rawValue: "numberTooLarge")
    /// A number is below the minimum of its attribute or of the attribute's type.
    public static let numberTooSmall = Code(rawValue: "numberTooSmall")
    /// A date is later than the model allows.
    public static let dateTooLate = Code(rawValue: "dateTooLate")
    /// A date is earlier than the model allows.
    public static let dateTooSoon = Code(rawValue: "dateTooSoon")
    /// A text is longer than the model allows.
    public static let stringTooLong = Code(rawValue: "stringTooLong")
    /// A text is shorter than the model allows.
    public static let stringTooShort = Code(rawValue: "stringTooShort")
    /// A text doesn't match the attribute's regular expression.
    public static let stringPatternMismatch = Code(rawValue: "stringPatternMismatch")
    /// A text isn't a valid URI.
    public static let invalidURI = Code(rawValue: "invalidURI")
    /// A validation method of the object's class rejected the object or one of its values.
    public static let validation = Code(rawValue: "validation")
    /// A date isn't a finite number of seconds.
    public static let invalidDate = Code(rawValue: "invalidDate")
    /// The value of a transformable attribute couldn't be encoded or decoded; see ``PersistenceError/cause``.
    public static let transformationFailed = Code(rawValue: "transformationFailed")
    /// An attribute contains the temporary ID of an object that the save doesn't include.
    public static let unsavedObjectID = Code(rawValue: "unsavedObjectID")
    /// The entity has no property of that name.
    public static let unknownProperty = Code(rawValue: "unknownProperty")
    /// The model has no entity of that name.
    public static let unknownEntity = Code(rawValue: "unknownEntity")
    /// The entity is abstract and can't have objects of its own.
    public static let abstractEntity = Code(rawValue: "abstractEntity")
    /// A value doesn't have the property's type.
    public static let wrongType = Code(rawValue: "wrongType")
    /// The object's row does not exist.
    public static let missingObject = Code(rawValue: "missingObject")
    /// The object belongs to another context, or to a store that isn't open here.
    public static let foreignObject = Code(rawValue: "foreignObject")
    /// A relationship references an object of another store; see ``PersistenceError/objectIDs``.
    public static let externalRelationship = Code(rawValue: "externalRelationship")
    /// The store of an object was removed from the coordinator.
    public static let missingStore = Code(rawValue: "missingStore")
    /// No store of the coordinator accepts objects of the entity.
    public static let noStoreForEntity = Code(rawValue: "noStoreForEntity")
    /// The changes were saved in some stores but not in others; see ``PersistenceError/savedStoreIdentifiers``.
    public static let incompleteSave = Code(rawValue: "incompleteSave")
    /// Another context or process changed objects that are being saved; see ``PersistenceError/objectIDs``.
    public static let conflict = Code(rawValue: "conflict")
    /// Objects have the same values of a uniqueness constraint; see ``PersistenceError/objectIDs``.
    public static let constraintConflict = Code(rawValue: "constraintConflict")
    /// Properties couldn't be read and returned placeholders, which the changes may depend on; see ``FaultErrorPolicy``.
    public static let unreadValues = Code(rawValue: "unreadValues")
    /// A context was released with unsaved changes, and not all of them could be kept; see ``ManagedObjectContext``. Or an object was changed
    /// after others had removed it; see ``ManagedObject/isInaccessible``.
    public static let lostChanges = Code(rawValue: "lostChanges")
    /// A callback of a save or merge, such as ``ManagedObject/willSave()`` or a ``MergePolicy``, saved the context, or a handler of
    /// ``ManagedObjectContext/onChange(_:)`` that a save called, or ``ManagedObject/prepareForDeletion()`` in a cascade.
    public static let saveInProgress = Code(rawValue: "saveInProgress")
    /// `willSave()` or a handler of ``ManagedObjectContext/onChange(_:)`` keeps changing other objects without end.
    public static let endlessSave = Code(rawValue: "endlessSave")
    /// Typed classes don't match the model.
    public static let classMismatch = Code(rawValue: "classMismatch")
    /// The generation that a context is pinned to has reached its time limit.
    public static let expiredGeneration = Code(rawValue: "expiredGeneration")
    /// A request asks for something that can't be computed.
    public static let invalidRequest = Code(rawValue: "invalidRequest")
  }

  /// The kind of failure.
  public var code: Code
  /// The object that caused the failure; nil when it isn't a single object.
  public var objectID: ManagedObjectID?
  /// The property that caused the failure; nil when it isn't a single property.
  public var property: String?
  /// Why it failed and what to do, without user data.
  public var reason: String
  /// The rejected value and the rule; nil when the failure isn't about a value.
  public var validation: ValidationFailure?
  /// Each validation failure, with code ``Code/multipleValidationFailures``.
  public var failures: [PersistenceError]
  /// The objects involved in the failure.
  ///
  /// For a conflict, the conflicting objects. For a denied deletion or a wrong object count, the objects in the relationship.
  public var objectIDs: [ManagedObjectID]
  /// The UUIDs of the stores whose changes were saved, with code ``Code/incompleteSave``.
  public var savedStoreIdentifiers: [String]
  /// The underlying error, if any.
  public var cause: (any Error)?

  /// Makes an error.
  public init(
    _ code: Code, objectID: ManagedObjectID? = nil, property: String? = nil, reason: String, failures: [PersistenceError] = [],
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
    case .unreadValues, .lostChanges, .saveInProgress: 134030
    case .conflict: 133020
    case .constraintConflict: 133021
    case .classMismatch, .unknownEntity, .noStoreForEntity: 134020
    default: 134060
    }
  }
}

extension PersistenceError: CustomStringConvertible {
  /// One line with the object, property, reason and code, followed by ``failures`` and ``cause``.
  ///
  /// Control characters are escaped, because the URI of an ID, a name and a path may contain them.
  public var description: String {
    var text = ""
    if let objectID { text += (objectID.uriRepresentation + (property.map { "." + $0 } ?? "") + ": ").escapingControlCharacters() }
    text += "\(reason.escapingControlCharacters(keepsLines: true)) [\(code.rawValue), \(coreDataCode)]"
    for failure in failures { text += "\n  \(failure)" }
    if let cause { text += cause.asPrintableCause }
    return text
  }
}

extension PersistenceError: LocalizedError {
  /// A message for users of an application: ``userMessage(_:text:)`` in English.
  public var errorDescription: String? { userMessage().escapingControlCharacters(keepsLines: true) }
  /// Why it failed and what to do; nil when ``reason`` is empty.
  public var failureReason: String? { reason.isEmpty ? nil : reason }

  /// The domain of the bridged `NSError`.
  public var _domain: String { "NSCocoaErrorDomain" }
  /// The code of the bridged `NSError`.
  public var _code: Int { coreDataCode }
}

extension PersistenceError {
  /// The error for objects whose store was removed.
  static func missingStore(_ objectIDs: [ManagedObjectID] = []) -> PersistenceError {
    PersistenceError(
      .missingStore, objectID: objectIDs.count == 1 ? objectIDs[0] : nil,
      reason: "The store was removed from the coordinator. Add it again and fetch the objects, or discard them: roll back or reset.",
      objectIDs: objectIDs)
  }

  /// The error for an entity that no store holds.
  static func noStore(for entity: ManagedObjectModel.Entity) -> PersistenceError {
    PersistenceError(
      .noStoreForEntity,
      reason: "No store of the coordinator holds objects of \(entity.name). Add a store for this entity or for all entities.")
  }
}
