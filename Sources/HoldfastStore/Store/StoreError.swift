/// An error of a persistent store: what failed, where, why, and what to do.
///
/// Stores throw only this type. The coordinator wraps other errors in a store error with code ``Code/general``, and a
/// `CancellationError` in one with code ``Code/cancelled``. It keeps only the kind of a `DecodingError` or `EncodingError`, because these
/// can quote values.
///
/// A store error contains names of entities and properties, keys, paths, and error codes of the operating system or a library. It never
/// contains attribute values.
///
/// ``coreDataCode`` is the code that Core Data uses for the same failure. An error bridged to `NSError` has this code in
/// `NSCocoaErrorDomain`, and its `localizedDescription` is ``errorDescription``.
public struct StoreError: Error, Sendable {
  /// The kind of failure. Stores may define additional codes.
  public struct Code: RawRepresentable, Hashable, Sendable, Codable {
    /// The name of the code, in lower camel case.
    public let rawValue: String
    /// Creates a code from its name.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// A failure without a specific code.
    public static let general = Code(rawValue: "general")
    /// The file doesn't exist, and the store wasn't opened to create it.
    public static let notFound = Code(rawValue: "notFound")
    /// The path isn't usable for a file: it is empty, too long, or a URL, or a folder's name isn't UTF-8.
    public static let invalidPath = Code(rawValue: "invalidPath")
    /// The operating system denied access to the file or its folder.
    public static let notPermitted = Code(rawValue: "notPermitted")
    /// The file isn't a store of this type.
    public static let notAStore = Code(rawValue: "notAStore")
    /// The file has a newer version of the format.
    public static let newerFormat = Code(rawValue: "newerFormat")
    /// The file is damaged.
    public static let damaged = Code(rawValue: "damaged")
    /// The file's schema would run code or compute values, which stores never need.
    public static let unsafeSchema = Code(rawValue: "unsafeSchema")
    /// The store was created with a different model.
    public static let incompatibleModel = Code(rawValue: "incompatibleModel")
    /// The model uses a feature that this type of store doesn't support.
    public static let unsupportedModel = Code(rawValue: "unsupportedModel")
    /// A stored value has a type that its attribute doesn't allow.
    public static let wrongType = Code(rawValue: "wrongType")
    /// The store can't represent a value, such as NaN in some stores.
    public static let unstorableValue = Code(rawValue: "unstorableValue")
    /// The disk or a quota is full.
    public static let diskFull = Code(rawValue: "diskFull")
    /// The file, or what a request reads of it, exceeds a limit in the store's options.
    public static let tooLarge = Code(rawValue: "tooLarge")
    /// Another process replaced, changed or removed the store's file since it was read. Nothing was written.
    public static let storeReplaced = Code(rawValue: "storeReplaced")
    /// The save took effect, but the disk didn't confirm it. A power failure may restore the previous contents.
    public static let durabilityUnknown = Code(rawValue: "durabilityUnknown")
    /// The commit failed, and it is unknown whether the save took effect; see ``SaveOutcomeRequest``.
    public static let outcomeUnknown = Code(rawValue: "outcomeUnknown")
    /// The operating system failed to read or write.
    public static let inputOutput = Code(rawValue: "inputOutput")
    /// The wait for a lock or a free connection exceeded the timeout.
    ///
    /// Another connection or process holds the lock, or other requests use all connections.
    public static let locked = Code(rawValue: "locked")
    /// The maximum number of snapshots is in use.
    public static let tooManyReadViews = Code(rawValue: "tooManyReadViews")
    /// The store was opened read-only.
    public static let readOnly = Code(rawValue: "readOnly")
    /// The store isn't open.
    public static let notOpen = Code(rawValue: "notOpen")
    /// The same file, or another store with its UUID, is already open in this process.
    public static let alreadyOpen = Code(rawValue: "alreadyOpen")
    /// A row requested by key doesn't exist.
    public static let missingRow = Code(rawValue: "missingRow")
    /// The external file of a value is missing.
    public static let missingExternalData = Code(rawValue: "missingExternalData")
    /// Rows changed in the store since they were read; see ``StoreError/conflicts``.
    public static let conflict = Code(rawValue: "conflict")
    /// Rows violate a uniqueness constraint; see ``StoreError/constraintConflicts``.
    public static let constraintConflict = Code(rawValue: "constraintConflict")
    /// The store doesn't support the operation; see ``StoreCapabilities``.
    public static let unsupportedRequest = Code(rawValue: "unsupportedRequest")
    /// The request took longer than the store's options allow. It changed nothing.
    public static let timedOut = Code(rawValue: "timedOut")
    /// The connection to the store was lost, or couldn't be made. A save with this error didn't take effect.
    public static let connectionLost = Code(rawValue: "connectionLost")
    /// The request was cancelled.
    public static let cancelled = Code(rawValue: "cancelled")
    /// The store doesn't keep the requested state, or the history after it, anymore.
    public static let stateUnavailable = Code(rawValue: "stateUnavailable")
    /// The store can't be used, or not until it is reopened. For example, the process was forked after the store was opened.
    public static let failed = Code(rawValue: "failed")
  }

  /// The kind of failure.
  public var code: Code
  /// The failed operation as a verb phrase: "open the store", "save 12 rows of Person".
  public var operation: String
  /// The path or name of the file, or nil if there is none.
  public var path: String?
  /// Why it failed and what to do, as sentences without user data.
  public var reason: String
  /// The underlying error, if any.
  public var cause: (any Error)?
  /// Whether the same call may succeed later without changes by the caller.
  public var isRetryable: Bool
  /// The rows that changed in the store since they were read, with code ``Code/conflict``.
  public var conflicts: [SaveConflict]
  /// The rows that violate a uniqueness constraint, with code ``Code/constraintConflict``.
  public var constraintConflicts: [ConstraintConflict]

  /// Creates an error.
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

  /// The code that Core Data uses for the same failure.
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
    case .locked, .tooManyReadViews, .timedOut, .connectionLost: 134090
    case .unsupportedRequest: 134091
    case .stateUnavailable: 134301
    case .notOpen, .failed, .cancelled: 134070
    default: 134060
    }
  }
}

extension StoreError: CustomStringConvertible {
  /// What failed, where and why, in one line, followed by the cause.
  public var description: String {
    "\(sentence) [\(code.rawValue), \(coreDataCode)]" + (cause?.asPrintableCause ?? "")
  }

  /// What failed, where and why. Control characters are escaped, because paths and names may contain them.
  var sentence: String { "Could not \(operation)\(path.map { " at \($0)" } ?? ""): \(reason)".escapingControlCharacters() }
}

/// A row that changed in the store since the saving context read it.
public struct SaveConflict: Sendable {
  /// The object.
  public var objectID: ManagedObjectID
  /// The version that the context read.
  public var expectedVersion: RowVersion
  /// The row in the store now, or nil if it was deleted.
  public var persisted: RowView?

  /// Creates a conflict.
  public init(objectID: ManagedObjectID, expectedVersion: RowVersion, persisted: RowView?) {
    self.objectID = objectID
    self.expectedVersion = expectedVersion
    self.persisted = persisted
  }
}

/// A row that would duplicate another row's values of a uniqueness constraint.
public struct ConstraintConflict: Sendable {
  /// The object being saved.
  public var objectID: ManagedObjectID
  /// The object that already has the values, if known.
  public var existing: ManagedObjectID?
  /// The names of the constraint's properties, in declaration order.
  public var constraint: [String]

  /// Creates a conflict.
  public init(objectID: ManagedObjectID, existing: ManagedObjectID?, constraint: [String]) {
    self.objectID = objectID
    self.existing = existing
    self.constraint = constraint
  }
}
