/// An order by a property, for the objects of a class.
public struct FetchSortDescriptor<Root: ManagedObject>: Sendable, Hashable {
  /// The term.
  public let term: SortTerm

  /// Wraps a term, for requests that are made at run time.
  public init(_ term: SortTerm) { self.term = term }

  /// The order by a property of a class above this one: `FetchSortDescriptor(inherited: FetchSortDescriptor(\Animal.name))`.
  public init<Above: ManagedObject>(inherited descriptor: FetchSortDescriptor<Above>) {
    precondition(ClassBinding.isKind(Root.self, of: Above.self), "\(Root.self) does not inherit from \(Above.self).")
    term = descriptor.term
  }

  /// Sorts by an attribute: nil first, text by its UTF-8 bytes unless folded.
  public init<Value: AttributeValue>(_ path: KeyPath<Root, Value>, ascending: Bool = true, folding: TextFolding = []) {
    term = SortTerm(KeyPathNames.path(path, in: Root.self), isAscending: ascending, folding: folding)
  }

  /// Sorts by an attribute of an object that to-one relationships lead to: `FetchSortDescriptor((\Dog.owner).then(\.name))`.
  public init<Value: AttributeValue>(_ value: FetchValue<Root, Value>, ascending: Bool = true, folding: TextFolding = []) {
    let path = value.path ?? PropertyPath("<a count or remainder, which cannot be sorted by>")
    term = SortTerm(path, isAscending: ascending, folding: folding)
  }
}

/// Which objects are wanted, in which order, and how many.
///
/// ```swift
/// var request = FetchRequest<Dog>(where: \.age > 3, sortedBy: [FetchSortDescriptor(\Dog.name)])
/// request.fetchLimit = 10
/// let dogs = try context.fetch(request)
/// ```
public struct FetchRequest<Result: ManagedObject>: Sendable, Hashable {
  /// The name of the entity; that of the class unless said.
  public var entityName: String
  /// What is kept does not depend on the class, so that the stack can work on it without generic code.
  @usableFromInline var expression: QueryExpression?
  @usableFromInline var sorts: [SortTerm]
  /// How many objects to leave out at the beginning.
  public var fetchOffset: Int
  /// How many objects at the most; 0 for all, as in Core Data.
  public var fetchLimit: Int
  /// Whether changes of the context that were not saved count. True unless said; dictionary results never show them.
  public var includesPendingChanges = true
  /// Whether objects of sub-entities are wanted too. True unless said.
  public var includesSubentities = true

  /// Makes a request for the objects of a class.
  @inlinable public init(
    where predicate: FetchPredicate<Result>? = nil, sortedBy sortDescriptors: [FetchSortDescriptor<Result>] = [], offset: Int = 0,
    limit: Int = 0
  ) {
    self.init(entityName: Result.entityName, where: predicate, sortedBy: sortDescriptors, offset: offset, limit: limit)
  }

  /// Makes a request for the objects of an entity.
  @inlinable public init(
    entityName: String, where predicate: FetchPredicate<Result>? = nil, sortedBy sortDescriptors: [FetchSortDescriptor<Result>] = [],
    offset: Int = 0, limit: Int = 0
  ) {
    self.entityName = entityName
    expression = predicate?.expression
    sorts = sortDescriptors.isEmpty ? [] : sortDescriptors.map { $0.term }
    fetchOffset = offset
    fetchLimit = limit
  }

  /// Which objects; nil for all.
  public var predicate: FetchPredicate<Result>? {
    get { expression.map { FetchPredicate($0) } }
    set { expression = newValue?.expression }
  }

  /// The order; empty for any. With a limit or offset it is always made total by the object ID (of several stores, the one that
  /// was added first comes first); objects that were never saved come last, in the order in which they were inserted.
  public var sortDescriptors: [FetchSortDescriptor<Result>] {
    get { sorts.map { FetchSortDescriptor($0) } }
    set { sorts = newValue.map { $0.term } }
  }
}

/// What a dictionary result has under a name.
public enum DictionaryColumn: Sendable, Hashable {
  /// The value of a property by which is grouped.
  case property(String)
  /// How many objects; with a property, how many in which it has a value.
  case count(String? = nil)
  /// The sum of an attribute.
  case sum(String)
  /// The average of an attribute; null when there is no value.
  case average(String)
  /// The smallest value of an attribute; null when there is none.
  case minimum(String)
  /// The largest value of an attribute; null when there is none.
  case maximum(String)
}

/// Asks for values computed from objects instead of objects: for all, or for each group of objects with equal values.
///
/// ```swift
/// let request = DictionaryFetchRequest<Dog>(columns: ["breed": .property("breed"), "age": .average("age")], groupedBy: ["breed"])
/// ```
///
/// Dictionary results come from the store as it is: changes that were not saved do not count.
public struct DictionaryFetchRequest<Root: ManagedObject>: Sendable, Hashable {
  /// The name of the entity; that of the class unless said.
  public var entityName: String
  /// Which objects count; nil for all.
  public var predicate: FetchPredicate<Root>?
  /// What each result has, by the name under which it is found.
  public var columns: [String: DictionaryColumn]
  /// The attributes and to-one relationships whose values make groups; empty for one group of all objects.
  public var propertiesToGroupBy: [String]
  /// Whether objects of sub-entities count too. True unless said.
  public var includesSubentities = true

  /// Makes a request.
  public init(
    entityName: String = Root.entityName, where predicate: FetchPredicate<Root>? = nil, columns: [String: DictionaryColumn],
    groupedBy propertiesToGroupBy: [String] = []
  ) {
    self.entityName = entityName
    self.predicate = predicate
    self.columns = columns
    self.propertiesToGroupBy = propertiesToGroupBy
  }
}
