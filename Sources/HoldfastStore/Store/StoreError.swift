/// An error of a persistent store: what failed, on what, why, and what to do about it.
///
/// Stores throw this type and nothing else across the boundary; the coordinator wraps any other error that an
/// outside store throws into one with code ``Code/general``. A store error never holds attribute values: only
/// names of entities and properties, keys, paths and the numbers that the operating system or a library gave.
///
/// ``coreDataCode`` is the number that Core Data gives to the same situation. Bridged to `NSError` the error has this number in
/// `NSCocoaErrorDomain`, and `localizedDescription` is ``errorDescription``.
public struct StoreError: Error, Sendable {
  /// What kind of failure it is. Open for growth: a store may define codes of its own.
  public struct Code: RawRepresentable, Hashable, Sendable, Codable {
    /// The name of the code, in lower camel case.
    public let rawValue: String
    /// Makes a code from its name.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// Anything that has no code of its own.
    public static let general = Code(rawValue: "general")
    /// There is no file at the path and the store was not asked to create one.
    public static let notFound = Code(rawValue: "notFound")
    /// The path can't name a store's file: it is empty, too long, or a URL.
    public static let invalidPath = Code(rawValue: "invalidPath")
    /// The operating system refuses access to the file or its folder.
    public static let notPermitted = Code(rawValue: "notPermitted")
    /// The file is not a store of this type.
    public static let notAStore = Code(rawValue: "notAStore")
    /// The file was written by a newer version of the format.
    public static let newerFormat = Code(rawValue: "newerFormat")
    /// The file is damaged.
    public static let damaged = Code(rawValue: "damaged")
    /// The file's schema would run code or compute values, which no store needs.
    public static let unsafeSchema = Code(rawValue: "unsafeSchema")
    /// The store was made with another model.
    public static let incompatibleModel = Code(rawValue: "incompatibleModel")
    /// The model says something that this type of store cannot keep.
    public static let unsupportedModel = Code(rawValue: "unsupportedModel")
    /// A value in the store has a type that its attribute cannot have.
    public static let wrongType = Code(rawValue: "wrongType")
    /// A value does not fit the store, for example a NaN where only numbers can be kept.
    public static let unstorableValue = Code(rawValue: "unstorableValue")
    /// The disk or a quota is full.
    public static let diskFull = Code(rawValue: "diskFull")
    /// The file, or what a request reads of it, has more bytes than the store's options allow.
    public static let tooLarge = Code(rawValue: "tooLarge")
    /// Somebody else replaced, changed or removed the store's file since it was read; nothing was written.
    public static let storeReplaced = Code(rawValue: "storeReplaced")
    /// The save is done and visible, but the disk did not confirm it: a power loss may bring back the previous contents.
    public static let durabilityUnknown = Code(rawValue: "durabilityUnknown")
    /// The save failed while it was committed, and whether it took effect can't be found out. Look at the store before saving again.
    public static let outcomeUnknown = Code(rawValue: "outcomeUnknown")
    /// Reading or writing failed in the operating system.
    public static let inputOutput = Code(rawValue: "inputOutput")
    /// Another connection or process holds the lock, or other requests use all connections, longer than the timeout.
    public static let locked = Code(rawValue: "locked")
    /// All snapshots that the store may hand out at once are in use.
    public static let tooManyReadViews = Code(rawValue: "tooManyReadViews")
    /// The store was opened read-only.
    public static let readOnly = Code(rawValue: "readOnly")
    /// The store is not open, or was closed.
    public static let notOpen = Code(rawValue: "notOpen")
    /// The same file is already open in this process.
    public static let alreadyOpen = Code(rawValue: "alreadyOpen")
    /// A row that was asked for by its key does not exist.
    public static let missingRow = Code(rawValue: "missingRow")
    /// The file of a value that lies in a file of its own is not there.
    public static let missingExternalData = Code(rawValue: "missingExternalData")
    /// Rows were changed by somebody else since they were read; see ``StoreError/conflicts``.
    public static let conflict = Code(rawValue: "conflict")
    /// Rows would break a uniqueness constraint; see ``StoreError/constraintConflicts``.
    public static let constraintConflict = Code(rawValue: "constraintConflict")
    /// The store does not offer the operation; its capabilities say so.
    public static let unsupportedRequest = Code(rawValue: "unsupportedRequest")
    /// The request took longer than the store's options allow, and changed nothing.
    public static let timedOut = Code(rawValue: "timedOut")
    /// The request was cancelled.
    public static let cancelled = Code(rawValue: "cancelled")
    /// An earlier failure left the store unusable until it is reopened.
    public static let failed = Code(rawValue: "failed")
  }

  /// What kind of failure it is.
  public var code: Code
  /// What was being done, as a verb phrase: "open the store", "save 12 rows of Person".
  public var operation: String
  /// The path or name of what it was done to; nil when there is no file.
  public var path: String?
  /// Why it failed and what to do, as sentences without user data.
  public var reason: String
  /// The error beneath, when there is one.
  public var cause: (any Error)?
  /// Whether the same call may succeed later without any change by the caller.
  public var isRetryable: Bool
  /// The rows that were changed by somebody else, with code ``Code/conflict``.
  public var conflicts: [SaveConflict]
  /// The rows that would break a uniqueness constraint, with code ``Code/constraintConflict``.
  public var constraintConflicts: [ConstraintConflict]

  /// Makes an error.
  public init(
    _ code: Code, operation: String, path: String? = nil, reason: String, cause: (any Error)? = nil, isRetryable: Bool = false,
    conflicts: [SaveConflict] = [], constraintConflicts: [ConstraintConflict] = []
  ) {
    self.code = code
    self.operation = operation
    self.path = path
    self.reason = reason
    self.cause = cause
    self.isRetryable = isRetryable
    self.conflicts = conflicts
    self.constraintConflicts = constraintConflicts
  }

  /// The number that Core Data uses for the same situation.
  public var coreDataCode: Int {
    switch code {
    case .incompatibleModel: 134100
    case .unsupportedModel: 134020
    case .notAStore, .newerFormat: 134000
    case .notFound, .invalidPath, .notPermitted, .damaged, .unsafeSchema, .alreadyOpen, .tooLarge: 134080
    case .diskFull, .inputOutput, .readOnly, .unstorableValue, .durabilityUnknown, .outcomeUnknown: 134030
    case .conflict, .storeReplaced: 134050
    case .constraintConflict: 133021
    case .missingRow, .missingExternalData: 133000
    case .locked, .tooManyReadViews, .timedOut: 134090
    case .unsupportedRequest: 134091
    case .notOpen, .failed, .cancelled: 134070
    default: 134060
    }
  }
}

extension StoreError: CustomStringConvertible {
  /// One line that tells what failed, on what and why, with the causes beneath.
  public var description: String {
    "\(sentence) [\(code.rawValue), \(coreDataCode)]" + (cause.map { " Cause: \($0)" } ?? "")
  }

  /// What failed, on what and why. Paths and names may have any characters.
  var sentence: String { "Could not \(operation)\(path.map { " at \($0)" } ?? ""): \(reason)".escapingControlCharacters() }
}

/// One row that could not be saved because it is no longer as the saving context knew it.
public struct SaveConflict: Sendable {
  /// The object.
  public var objectID: ManagedObjectID
  /// The version that the context had read.
  public var expectedVersion: Int64
  /// The row as it is in the store now, or nil when it was deleted there.
  public var persisted: RowView?

  /// Makes a conflict.
  public init(objectID: ManagedObjectID, expectedVersion: Int64, persisted: RowView?) {
    self.objectID = objectID
    self.expectedVersion = expectedVersion
    self.persisted = persisted
  }
}

/// One row that would give two objects the same values of a uniqueness constraint.
public struct ConstraintConflict: Sendable {
  /// The object being saved.
  public var objectID: ManagedObjectID
  /// The object that has the values already, when it is known.
  public var existing: ManagedObjectID?
  /// The names of the constraint's properties, as declared.
  public var constraint: [String]

  /// Makes a conflict.
  public init(objectID: ManagedObjectID, existing: ManagedObjectID?, constraint: [String]) {
    self.objectID = objectID
    self.existing = existing
    self.constraint = constraint
  }
}
