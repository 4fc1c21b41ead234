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
  /// Membership in a list of at most ``StoreCapabilities/largestList`` values.
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

/// What a store does itself, said once as one value. All flags are positive: what is not declared the framework does
/// with the reference evaluator, so a store that declares nothing still answers every query.
///
/// A flag means: *for every request that needs only declared abilities, the store's answer is exactly that of the
/// reference evaluator.* The conformance kit checks each declared ability, and tells about those that are there but
/// not declared.
public struct StoreCapabilities: Sendable, Hashable, Codable {
  /// The comparisons that predicates may use.
  public var comparisons: ComparisonCapabilities = []
  /// The attribute types on which ``comparisons`` and sorts hold.
  public var comparedTypes: Set<AttributeType> = []
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
  /// The most values in a list of ``ComparisonCapabilities/membership``.
  public var largestList = 0
  /// Uniqueness constraints are checked in `prepare`.
  public var uniqueness = false
  /// Read views of kind ``ReadViewKind/snapshot`` stay as they were while others save.
  public var snapshots = false
  /// Expected versions are compared in `prepare`. Without it the framework compares under its own lock, and a race
  /// with other processes remains.
  public var versions = false
  /// All rows lie in memory anyway, so that asking again costs nothing and no cache is worth its memory.
  public var residentRows = false
  /// `perform(_:)` takes batch requests.
  public var batchRequests = false
  /// `history(_:)` answers.
  public var history = false

  /// Declares nothing.
  public init() {}
}
