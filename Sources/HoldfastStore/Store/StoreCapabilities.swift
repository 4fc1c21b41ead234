/// Which comparisons a store answers itself.
public struct ComparisonCapabilities: OptionSet, Sendable, Hashable, Codable {
  /// The bits.
  public let rawValue: UInt32
  /// Makes a set from its bits.
  public init(rawValue: UInt32) { self.rawValue = rawValue }
  /// Equal and unequal, also with nil.
  public static let equality = ComparisonCapabilities(rawValue: 1)
  /// Less, greater, between.
  public static let order = ComparisonCapabilities(rawValue: 2)
  /// Membership in a list of at most ``StoreCapabilities/largestList`` values, nil among them.
  public static let membership = ComparisonCapabilities(rawValue: 4)
  /// Text that begins with, ends with or contains another, compared as bytes.
  public static let substrings = ComparisonCapabilities(rawValue: 8)
  /// The same and equality on text without regard to case or diacritics, by ``TextFolding``.
  public static let folding = ComparisonCapabilities(rawValue: 16)
  /// Remainders of whole numbers as operands of the others.
  public static let remainders = ComparisonCapabilities(rawValue: 32)
  /// All of them.
  public static let all: ComparisonCapabilities = [.equality, .order, .membership, .substrings, .folding, .remainders]
}

/// Which relationships a store follows in predicates and sorts.
public struct TraversalCapabilities: OptionSet, Sendable, Hashable, Codable {
  /// The bits.
  public let rawValue: UInt32
  /// Makes a set from its bits.
  public init(rawValue: UInt32) { self.rawValue = rawValue }
  /// Key paths through to-one relationships of any length.
  public static let toOne = TraversalCapabilities(rawValue: 1)
  /// ANY and ALL over to-many relationships.
  public static let quantifiers = TraversalCapabilities(rawValue: 2)
  /// The number of objects of a to-many relationship.
  public static let counts = TraversalCapabilities(rawValue: 4)
  /// All of them.
  public static let all: TraversalCapabilities = [.toOne, .quantifiers, .counts]
}

/// Some of the attribute types.
public struct AttributeTypes: OptionSet, Sendable, Hashable, Codable {
  /// The bits.
  public let rawValue: UInt32
  /// Makes a set from its bits.
  public init(rawValue: UInt32) { self.rawValue = rawValue }
  /// Whole numbers of 16 bits.
  public static let integer16 = AttributeTypes(rawValue: 1)
  /// Whole numbers of 32 bits.
  public static let integer32 = AttributeTypes(rawValue: 2)
  /// Whole numbers of 64 bits.
  public static let integer64 = AttributeTypes(rawValue: 4)
  /// Decimal numbers.
  public static let decimal = AttributeTypes(rawValue: 8)
  /// Floating-point numbers of 64 bits.
  public static let double = AttributeTypes(rawValue: 16)
  /// Floating-point numbers of 32 bits.
  public static let float = AttributeTypes(rawValue: 32)
  /// Text.
  public static let string = AttributeTypes(rawValue: 64)
  /// Truth values.
  public static let boolean = AttributeTypes(rawValue: 128)
  /// Points in time.
  public static let date = AttributeTypes(rawValue: 256)
  /// Bytes.
  public static let binaryData = AttributeTypes(rawValue: 512)
  /// UUIDs.
  public static let uuid = AttributeTypes(rawValue: 1024)
  /// URIs.
  public static let uri = AttributeTypes(rawValue: 2048)
  /// Bytes that a transformer made.
  public static let transformable = AttributeTypes(rawValue: 4096)
  /// IDs of objects.
  public static let objectID = AttributeTypes(rawValue: 8192)
  /// All that stores keep.
  public static let all = AttributeTypes(rawValue: 0x3FFF)

  /// The set of one type.
  public init(_ type: AttributeType) {
    self =
      switch type {
      case .integer16: .integer16
      case .integer32: .integer32
      case .integer64: .integer64
      case .decimal: .decimal
      case .double: .double
      case .float: .float
      case .string: .string
      case .boolean: .boolean
      case .date: .date
      case .binaryData: .binaryData
      case .uuid: .uuid
      case .uri: .uri
      case .transformable: .transformable
      case .objectID: .objectID
      case .composite, .undefined: []
      }
  }

  /// Whether a type is among them.
  public func contains(_ type: AttributeType) -> Bool { contains(AttributeTypes(type)) }
}

/// What a store does itself, said once as one value. All flags are positive: what is not declared the framework does
/// with the reference evaluator, so a store that declares nothing still answers every query.
///
/// A flag means: *for every request that needs only declared abilities, the store's answer is exactly that of the
/// reference evaluator.* The conformance kit checks each declared ability, and tells about those that are there but
/// not declared.
///
/// A store with limits declares them as numbers. The framework pushes the conjuncts of a predicate and the sorts that stay within all
/// limits, and does the rest itself.
public struct StoreCapabilities: Sendable, Hashable, Codable {
  /// The comparisons that predicates may use.
  public var comparisons: ComparisonCapabilities = []
  /// The attribute types on which ``comparisons`` and sorts hold.
  public var comparedTypes: AttributeTypes = []
  /// AND, OR and NOT of declared comparisons. Without it only the conjuncts of a topmost AND are handed over.
  public var booleanOperators = false
  /// The relationships that predicates and sorts may cross.
  public var traversal: TraversalCapabilities = []
  /// Equality of all properties of a uniqueness constraint with values other than nil, answered without reading all rows,
  /// whatever ``comparisons`` says: one comparison, or an AND of one for each property.
  public var uniqueLookups = false
  /// Sorting by attributes of ``comparedTypes``, made total by the key.
  public var sorting = false
  /// Limit and offset, when predicate and sorts are wholly the store's.
  public var windowing = false
  /// Counting rows without delivering them.
  public var counting = false
  /// Sum, average, smallest, largest and count, for all rows or grouped by properties.
  public var aggregates = false
  /// The maximum number of values in a list of ``ComparisonCapabilities/membership``. Defaults to 0.
  public var largestList = 0
  /// The maximum number of comparisons in a predicate, each BETWEEN, list and literal counted as one. Defaults to no maximum.
  public var maximumConditions = Int.max
  /// The maximum nesting of a predicate: a comparison is one level, each AND, OR, NOT, ANY or ALL around it another. Defaults to no
  /// maximum.
  public var maximumNesting = Int.max
  /// The maximum number of quantifiers (ANY and ALL) inside each other. Defaults to no maximum.
  public var maximumQuantifierNesting = Int.max
  /// The maximum number of to-one relationships that predicate and sorts of a fetch follow together; what several paths have in common
  /// counts once. Defaults to no maximum.
  public var maximumJoins = Int.max
  /// The maximum number of sort terms. Defaults to no maximum.
  public var maximumSortTerms = Int.max
  /// Uniqueness constraints are checked in `prepare`.
  public var uniqueness = false
  /// Read views of the kinds ``ReadViewKind/consistent`` and ``ReadViewKind/snapshot`` don't change while others save.
  public var snapshots = false
  /// Expected versions are compared in `prepare`. Without it the framework compares under its own lock, and a race
  /// with other processes remains.
  public var versions = false
  /// The store keeps the rows it has read in memory, so that asking again costs nothing and no cache is worth its memory.
  public var residentRows = false
  /// Large values of attributes that allow it are kept in files of their own; rows have their names, and `externalData(_:)` gives
  /// the bytes. Without it every value lies in its row, whatever the model allows.
  public var externalData = false
  /// `perform(_:)` takes batch requests.
  public var batchRequests = false
  /// `history(_:)` answers.
  public var history = false

  /// Declares nothing.
  public init() {}
}
