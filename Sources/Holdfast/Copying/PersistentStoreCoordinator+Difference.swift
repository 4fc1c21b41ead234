public import HoldfastStore

// Comparisons of stores of any type. No store is open meanwhile.
extension PersistentStoreCoordinator {
  /// Compares the objects of two stores, which may be of different types: their entities, values and links.
  ///
  /// Each object of the first store is compared with its partner in the second one, which `matching` finds. An object differs if a stored
  /// property does:
  ///
  /// - Numbers and dates are compared bit by bit, except that both zeros are equal. Text and bytes are compared byte by byte, also those in
  ///   external files. Values of derived attributes are compared like others.
  /// - Relationships are equal if the partners of the destinations are the destinations; in order, if the relationship is ordered. A link
  ///   whose destination doesn't exist is ignored. Each end of a link is a property, so a walk with another dog changes `dog` of the walk,
  ///   and `walks` of both dogs.
  /// - An attribute whose value is the ID of an object of the same store is compared like a to-one relationship.
  ///
  /// ```swift
  /// let difference = try PersistentStoreCoordinator.difference(
  ///   between: .json(at: "dogs.json"), and: .sqlite(at: "dogs.sqlite"), matching: .structure)
  /// print(difference.isEmpty ? "The stores are equal." : "\(difference)")
  /// ```
  ///
  /// Reads the objects in batches, most of them twice. The memory for each object of a SQLite store is up to 100 bytes. Other stores need
  /// memory for all objects. Takes time O(*n* log *n*). By structure, this holds for graphs whose objects mostly have different values;
  /// objects with equal values are read again for each link on the way to a difference, on average up to 64 times.
  ///
  /// - Parameters:
  ///   - first: A store that isn't open. Its objects aren't changed, and with ``/HoldfastStore/StoreDescription/readOnly()`` neither are
  ///     its files.
  ///   - second: Another store that isn't open, with the same guarantee.
  ///   - model: The model of both stores. Defaults to the one that the first store contains, or else the second one.
  ///   - matching: How the partner of an object is found. Defaults to IDs.
  ///   - includesValues: Whether the result contains the values that differ. Defaults to false.
  ///   - maximumCount: The maximum number of objects in ``GraphDifference/objects``. Defaults to 1,000. The numbers of differences are always
  ///     exact.
  /// - Throws: ``/HoldfastStore/StoreError``: the errors of opening and reading both stores; `notFound` if one of them doesn't exist;
  ///   `alreadyOpen` while this process has one of them open, and if both are the same store; `incompatibleModel` if the stores have different
  ///   versions of the model; `missingExternalData` if the external file of a value is missing; `cancelled` if the task was cancelled.
  ///   ``/HoldfastStore/MigrationError`` with code `missingSourceModel` if no store contains a model.
  ///   ``PersistenceError`` for ``GraphDifference/Matching/uniqueKeys(_:)``: `unknownEntity` or `unknownProperty` if the model doesn't have a
  ///   name, `invalidRequest` if no entity has a unique key.
  public static func difference(
    between first: StoreDescription, and second: StoreDescription, model: ManagedObjectModel? = nil,
    matching: GraphDifference.Matching = .objectIDs, includesValues: Bool = false, maximumCount: Int = 1_000
  ) throws -> GraphDifference {
    let own = try model ?? cachedModel(for: first), model = try own ?? cachedModel(for: second)
    return try opening(first, second, model, explainsMismatch: own == nil) { reader in
      try opening(second, first, model, explainsMismatch: true) { other in
        let pairs = try ObjectPairs(reader, other, matching)
        var comparison = GraphComparison(reader, other, pairs, includesValues: includesValues, maximumCount: maximumCount)
        return try comparison.run()
      }
    }
  }

  private static func opening<Result>(
    _ description: StoreDescription, _ other: StoreDescription, _ model: ManagedObjectModel?, explainsMismatch: Bool,
    _ body: (GraphReader) throws -> Result
  ) throws -> Result {
    do {
      return try StoreCopier.reading(description, model) { reader, _ in try body(reader) }
    } catch let error as StoreError where error.code == .incompatibleModel && error.operation != operation && explainsMismatch {
      throw StoreError(
        .incompatibleModel, operation: operation, path: description.location?.description,
        reason: "It has another version of the model than the store\(other.location.map { " at \($0)" } ?? "") with which it is compared. "
          + "Migrate the older one, or a copy of it, to the newer version, and compare again.", cause: error)
    }
  }

  private static var operation: String { "compare the store" }
}

extension ObjectPairs {
  /// Finds the partners of all objects.
  convenience init(_ first: GraphReader, _ second: GraphReader, _ matching: GraphDifference.Matching) throws {
    self.init(first, second)
    switch matching {
    case .objectIDs: IDMatching.run(first, second, self)
    case .uniqueKeys(let names):
      try KeyMatching(first, second, self, names).run()
      try StructureMatching(first, second, self).run()
    case .structure: try StructureMatching(first, second, self).run()
    }
  }
}
