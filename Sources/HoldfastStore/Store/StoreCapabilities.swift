/// The comparisons that a store evaluates itself.
public struct ComparisonCapabilities: OptionSet, Sendable, Hashable, Codable {
  /// The bits of the set.
  public let rawValue: UInt32
  /// Creates a set from its bits.
  public init(rawValue: UInt32) { self.rawValue = rawValue }
  /// Equal and not equal, including comparisons with nil.
  public static let equality = ComparisonCapabilities(rawValue: 1)
  /// Less than, greater than, and between.
  public static let order = ComparisonCapabilities(rawValue: 2)
  /// Membership in a list of at most ``StoreCapabilities/maximumListCount`` values, which may include nil.
  public static let membership = ComparisonCapabilities(rawValue: 4)
  /// Text that begins with, ends with or contains other text, compared by bytes.
  public static let substrings = ComparisonCapabilities(rawValue: 8)
  /// Comparisons and sort terms of text that ignore case or diacritics; see ``TextFolding``. The kind of comparison,
  /// or ``StoreCapabilities/sorting``, must be declared as well.
  public static let folding = ComparisonCapabilities(rawValue: 16)
  /// Remainders of whole numbers as operands of the other comparisons.
  public static let remainders = ComparisonCapabilities(rawValue: 32)
  /// All comparisons.
  public static let all: ComparisonCapabilities = [.equality, .order, .membership, .substrings, .folding, .remainders]
}

/// The relationships that a store follows in predicates and sorts.
public struct TraversalCapabilities: OptionSet, Sendable, Hashable, Codable {
  /// The bits of the set.
  public let rawValue: UInt32
  /// Creates a set from its bits.
  public init(rawValue: UInt32) { self.rawValue = rawValue }
  /// Key paths through any number of to-one relationships.
  public static let toOne = TraversalCapabilities(rawValue: 1)
  /// ANY and ALL over to-many relationships.
  public static let quantifiers = TraversalCapabilities(rawValue: 2)
  /// The number of destinations of a to-many relationship.
  public static let counts = TraversalCapabilities(rawValue: 4)
  /// All traversals.
  public static let all: TraversalCapabilities = [.toOne, .quantifiers, .counts]
}

/// A set of attribute types.
public struct AttributeTypes: OptionSet, Sendable, Hashable, Codable {
  /// The bits of the set.
  public let rawValue: UInt32
  /// Creates a set from its bits.
  public init(rawValue: UInt32) { self.rawValue = rawValue }
  /// 16-bit whole numbers.
  public static let integer16 = AttributeTypes(rawValue: 1)
  /// 32-bit whole numbers.
  public static let integer32 = AttributeTypes(rawValue: 2)
  /// 64-bit whole numbers.
  public static let integer64 = AttributeTypes(rawValue: 4)
  /// Decimal numbers.
  public static let decimal = AttributeTypes(rawValue: 8)
  /// 64-bit floating-point numbers.
  public static let double = AttributeTypes(rawValue: 16)
  /// 32-bit floating-point numbers.
  public static let float = AttributeTypes(rawValue: 32)
  /// Text.
  public static let string = AttributeTypes(rawValue: 64)
  /// Boolean values.
  public static let boolean = AttributeTypes(rawValue: 128)
  /// Dates.
  public static let date = AttributeTypes(rawValue: 256)
  /// Bytes.
  public static let binaryData = AttributeTypes(rawValue: 512)
  /// UUIDs.
  public static let uuid = AttributeTypes(rawValue: 1024)
  /// URIs.
  public static let uri = AttributeTypes(rawValue: 2048)
  /// Bytes from a value transformer.
  public static let transformable = AttributeTypes(rawValue: 4096)
  /// Object IDs.
  public static let objectID = AttributeTypes(rawValue: 8192)
  /// All types that stores keep.
  public static let all = AttributeTypes(rawValue: 0x3FFF)

  /// Creates a set of one type. It is empty for types that stores don't keep.
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

  /// Whether the set contains a type.
  public func contains(_ type: AttributeType) -> Bool { contains(AttributeTypes(type)) }
}

/// The operations that a store performs itself.
///
/// The framework performs everything else with the reference evaluator. A store that declares nothing therefore still answers every query.
///
/// A store answers a request that needs only declared capabilities exactly like the reference evaluator, or declines it.
/// The conformance kit checks each declared capability, and reports those that work but aren't declared.
///
/// Limits are numbers. The framework sends a store the conjuncts of a predicate and the sort terms that stay within all limits, and
/// evaluates the rest itself.
public struct StoreCapabilities: Sendable, Hashable, Codable {
  /// The comparisons that predicates may use.
  public var comparisons: ComparisonCapabilities = []
  /// The attribute types that ``comparisons`` and sorts support.
  public var comparedTypes: AttributeTypes = []
  /// AND, OR and NOT of declared comparisons. Without it, the store receives only the conjuncts of a top-level AND.
  public var booleanOperators = false
  /// The relationships that predicates and sorts may follow.
  public var traversal: TraversalCapabilities = []
  /// Looking up rows by a uniqueness constraint, without reading all rows.
  ///
  /// The predicate compares each property of the constraint for equality with a value other than nil. It is a single comparison, or an AND
  /// of one per property. This is independent of ``comparisons``.
  public var uniqueLookups = false
  /// Sorting by attributes of ``comparedTypes``, with ties in key order.
  public var sorting = false
  /// Limit and offset, if the store evaluates the entire predicate and all sort terms. Without sort terms, rows are in key order.
  public var windowing = false
  /// Counting rows without delivering them.
  public var counting = false
  /// Sum, average, minimum, maximum and count, of all rows or grouped by properties.
  public var aggregates = false
  /// The maximum number of values in a list of ``ComparisonCapabilities/membership``. Defaults to 0.
  public var maximumListCount = 0
  /// The maximum number of comparisons in a predicate. Each BETWEEN, list and literal counts as one. Defaults to no maximum.
  public var maximumConditions = Int.max
  /// The maximum nesting of a predicate. A comparison is one level; each AND, OR, NOT, ANY or ALL around it adds one. Defaults to no
  /// maximum.
  public var maximumNesting = Int.max
  /// The maximum nesting of quantifiers (ANY and ALL). Defaults to no maximum.
  public var maximumQuantifierNesting = Int.max
  /// The maximum number of to-one relationships that a fetch follows, in its predicate and sorts.
  ///
  /// A prefix that several paths share counts once. Defaults to no maximum.
  public var maximumJoins = Int.max
  /// The maximum number of sort terms. Defaults to no maximum.
  public var maximumSortTerms = Int.max
  /// Checking uniqueness constraints in ``IncrementalStore/prepare(_:options:)``.
  public var uniqueness = false
  /// Read views of the kinds ``ReadViewKind/consistent`` and ``ReadViewKind/snapshot`` that don't change during other saves.
  public var snapshots = false
  /// Comparing expected versions in ``IncrementalStore/prepare(_:options:)``.
  ///
  /// Without it, the framework compares them under the store's save lock before it prepares the save. Another process can still change a
  /// row in between.
  ///
  /// Every store keeps the versions in a save request, whether it declares this capability or not. A row without a version has version 0;
  /// see ``RowVersion``. If the expected and the stored version are both 0, the framework compares the row's values with those that the
  /// context read, except derived attributes.
  public var versions = false
  /// Keeping rows in memory after they were read. Reading them again costs nothing, so the framework doesn't cache them.
  public var residentRows = false
  /// Keeping large values in external files, for attributes that allow it.
  ///
  /// Rows contain the file names, and the store answers ``ExternalDataRequest``. Without it, every value is stored in its row.
  public var externalData = false

  /// Creates capabilities that declare nothing.
  public init() {}
}
