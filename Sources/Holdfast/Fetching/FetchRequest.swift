/// A sort order by one property, for the objects of a class. It contains a ``/HoldfastStore/SortTerm``, which stores receive.
///
/// ```swift
/// let walks = try context.fetch(Walk.self, sortedBy: [.descending(\.minutes), .ascending(\.dog.name, folding: .caseInsensitive)])
/// ```
public struct FetchSortDescriptor<Root: ManagedObject>: Sendable, Hashable {
  /// The untyped sort term.
  public let term: SortTerm

  /// Creates a sort descriptor from a term, for requests that are composed at run time.
  public init(_ term: SortTerm) { self.term = term }

  /// Creates a sort descriptor from one for a superclass.
  ///
  /// Traps when `Root` doesn't inherit from that class.
  public init<Above: ManagedObject>(inherited descriptor: FetchSortDescriptor<Above>) {
    precondition(ClassBinding.isKind(Root.self, of: Above.self), "\(Root.self) does not inherit from \(Above.self).")
    term = descriptor.term
  }

  /// Sorts by an attribute in ascending order, also by one of a to-one relationship's destination. Nil precedes every value.
  ///
  /// Text is compared by its UTF-8 bytes, after folding if `folding` isn't empty.
  public static func ascending<Value: AttributeValue>(
    _ path: FetchKeyPath<Root, Value>, folding: TextFolding = []
  ) -> FetchSortDescriptor {
    FetchSortDescriptor(path, isAscending: true, folding)
  }

  /// Sorts by an attribute in descending order: the reverse of ``ascending(_:folding:)``.
  public static func descending<Value: AttributeValue>(
    _ path: FetchKeyPath<Root, Value>, folding: TextFolding = []
  ) -> FetchSortDescriptor {
    FetchSortDescriptor(path, isAscending: false, folding)
  }

  private init<Value>(_ keyPath: FetchKeyPath<Root, Value>, isAscending: Bool, _ folding: TextFolding) {
    let expression = KeyPathNames.cached(keyPath) { FetchPath<Root, Root>.object[keyPath: keyPath].queryExpression }
    guard case .property(let path)? = expression else { preconditionFailure("The object itself can't be sorted by; name a property.") }
    term = SortTerm(path, isAscending: isAscending, folding: folding)
  }
}

/// A key path such as `\.minutes` or `\.dog.name`, which only consists of what a query can evaluate.
public typealias FetchKeyPath<Root: ManagedObject, Value> = KeyPath<FetchPath<Root, Root>, FetchPath<Root, Value>>

/// A request for objects that match a predicate, in an order.
///
/// A ``/HoldfastStore/FetchRequestDescription`` is a template in a model, with its predicate as text.
///
/// ```swift
/// var request = FetchRequest<Walk>(sortedBy: [.ascending(\.minutes)]) { $0.minutes > 30 }
/// request.fetchLimit = 10
/// let walks = try context.fetch(request)
/// ```
public struct FetchRequest<Result: ManagedObject>: Sendable, Hashable {
  /// The name of the entity. Defaults to the entity of the class.
  public var entityName: String
  /// Stored untyped, like ``sorts``, so that the framework needs no generic code to process it.
  @usableFromInline var expression: QueryExpression?
  @usableFromInline var sorts: [SortTerm]
  /// The number of objects to skip. Defaults to 0. Executing a request with a negative offset or limit traps.
  public var fetchOffset: Int
  /// The maximum number of objects; nil, the default, for no limit. With 0, which is no limit in Core Data, there are none.
  public var fetchLimit: Int?
  /// Whether the result reflects unsaved changes of the context. Defaults to true.
  public var includesPendingChanges = true
  /// Whether the result includes objects of subentities. Defaults to true.
  public var includesSubentities = true

  /// Creates a request for the objects of a class.
  @inlinable public init(
    where predicate: FetchPredicate<Result>? = nil, sortedBy sortDescriptors: [FetchSortDescriptor<Result>] = [], offset: Int = 0,
    limit: Int? = nil
  ) {
    self.init(entityName: Result.entityName, where: predicate, sortedBy: sortDescriptors, offset: offset, limit: limit)
  }

  /// Creates a request for the objects of a class that match the conditions of a closure.
  @inlinable public init(
    sortedBy sortDescriptors: [FetchSortDescriptor<Result>] = [], offset: Int = 0, limit: Int? = nil,
    @FetchPredicateBuilder<Result> where conditions: (FetchPath<Result, Result>) -> FetchPredicate<Result>
  ) {
    self.init(where: FetchPredicate(conditions), sortedBy: sortDescriptors, offset: offset, limit: limit)
  }

  /// Creates a request for the objects of an entity.
  @inlinable public init(
    entityName: String, where predicate: FetchPredicate<Result>? = nil, sortedBy sortDescriptors: [FetchSortDescriptor<Result>] = [],
    offset: Int = 0, limit: Int? = nil
  ) {
    self.entityName = entityName
    expression = predicate?.expression
    sorts = sortDescriptors.isEmpty ? [] : sortDescriptors.map { $0.term }
    fetchOffset = offset
    fetchLimit = limit
  }

  /// The condition that objects must match; nil for all objects.
  public var predicate: FetchPredicate<Result>? {
    get { expression.map { FetchPredicate($0) } }
    set { expression = newValue?.expression }
  }

  /// The sort order; when empty, objects come in any order.
  ///
  /// With a limit or offset, the object ID breaks ties, so that the order is total. Among several stores, objects of the store that was
  /// added first come first. Objects with temporary IDs come last, in the order of their insertion.
  public var sortDescriptors: [FetchSortDescriptor<Result>] {
    get { sorts.map { FetchSortDescriptor($0) } }
    set { sorts = newValue.map { $0.term } }
  }
}

extension FetchPathMembers where Self: ManagedObject {
  /// A request for all objects of the class, as in Core Data: `Dog.fetchRequest()`.
  public static func fetchRequest() -> FetchRequest<Self> { FetchRequest() }
}

/// A column of a dictionary result.
@nonexhaustive public enum DictionaryFetchColumn: Sendable, Hashable {
  /// The value of a property that the request groups by.
  case property(String)
  /// The number of objects; with a property, only of objects that have a value for it.
  case count(String? = nil)
  /// The sum of an attribute's values; 0 when there are none. The request throws if a sum of whole numbers doesn't fit in 64 bits.
  case sum(String)
  /// The average of an attribute's values; null when there are none.
  case average(String)
  /// The minimum of an attribute's values; null when there are none.
  case minimum(String)
  /// The maximum of an attribute's values; null when there are none.
  case maximum(String)
}

/// A request for values that are computed from objects, such as counts and averages.
///
/// If the class and its properties are known, ``ManagedObjectContext/aggregate(_:by:_:where:)`` has typed results. Use this request to group by
/// several properties, or for an entity that is known at run time only.
///
/// Each result is computed from all objects, or from a group of objects with equal values:
///
/// ```swift
/// let request = DictionaryFetchRequest<Dog>(columns: ["breed": .property("breed"), "age": .average("age")], groupedBy: ["breed"])
/// ```
///
/// Results reflect what is saved in the store. They never include unsaved changes of a context.
public struct DictionaryFetchRequest<Root: ManagedObject>: Sendable, Hashable {
  /// The name of the entity. Defaults to the entity of the class.
  public var entityName: String
  /// The condition that objects must match; nil for all objects.
  public var predicate: FetchPredicate<Root>?
  /// The columns of each result, by name.
  public var columns: [String: DictionaryFetchColumn]
  /// The attributes and to-one relationships to group by; empty for one group of all objects.
  public var propertiesToGroupBy: [String]
  /// Whether objects of subentities are included. Defaults to true.
  public var includesSubentities = true

  /// Creates a request.
  public init(
    entityName: String = Root.entityName, where predicate: FetchPredicate<Root>? = nil, columns: [String: DictionaryFetchColumn],
    groupedBy propertiesToGroupBy: [String] = []
  ) {
    self.entityName = entityName
    self.predicate = predicate
    self.columns = columns
    self.propertiesToGroupBy = propertiesToGroupBy
  }
}
