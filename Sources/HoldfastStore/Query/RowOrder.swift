#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// An order of rows, compiled from sort terms, with ties in key order.
///
/// nil sorts first, NaN after all numbers, and false before true. Unfolded text is sorted by its bytes. Rows that are equal in all terms
/// are in ascending key order. Rows of unsaved objects are last, in insertion order, and so are unsaved destinations of a to-one
/// relationship.
public struct RowOrder {
  typealias Comparison = (RowPointer, RowPointer, any EvaluationSource) -> Int

  private let comparisons: [Comparison]
  /// The relationships that the order follows.
  public let relationshipPaths: [RelationshipPath]

  /// Compiles sort terms.
  ///
  /// - Throws: ``QueryError`` if a path is unknown, or doesn't end at an attribute or to-one relationship in the row.
  public init(_ terms: [SortTerm], entity: ManagedObjectModel.Entity, model: ManagedObjectModel) throws(QueryError) {
    var comparisons: [Comparison] = []
    var relationshipPaths: [RelationshipPath] = []
    for term in terms {
      let path = try ResolvedPath(term.path, from: entity, in: model)
      guard let slot = path.slot, let column = path.column(in: model) else {
        throw QueryError(entity: entity.name, part: term.path.description, reason: "A to-many relationship can't be sorted by.")
      }
      try path.checkIsInRow(entity, term.path)
      if !path.hops.isEmpty { relationshipPaths.append(RelationshipPath(relationships: path.hops)) }
      comparisons.append(RowOrder.comparison(path.hops, slot, column, term))
    }
    self.comparisons = comparisons
    self.relationshipPaths = relationshipPaths
  }

  /// Whether a row sorts before another.
  @inline(__always) public func precedes(_ a: RowPointer, _ b: RowPointer, _ source: any EvaluationSource) -> Bool {
    for comparison in comparisons {
      let order = comparison(a, b, source)
      if order != 0 { return order < 0 }
    }
    return RowOrder.keyPrecedes(a.key, b.key)
  }

  /// Whether a key sorts before another.
  ///
  /// Saved keys are ascending. Temporary keys follow, counting down from -1.
  @inlinable public static func keyPrecedes(_ a: ObjectKey, _ b: ObjectKey) -> Bool {
    (a < 0) == (b < 0) ? (a < 0 ? a > b : a < b) : b < 0
  }

  private static func comparison(
    _ hops: [ManagedObjectModel.Relationship], _ slot: SlotIndex, _ column: ColumnType, _ term: SortTerm
  ) -> Comparison {
    let present = presentOrder(slot, column, term.folding)
    let sign = term.isAscending ? 1 : -1
    if hops.isEmpty {
      return { a, b, _ in
        let (hasA, hasB) = (a.isPresent(slot), b.isPresent(slot))
        if hasA && hasB { return sign * present(a, b) }
        return hasA == hasB ? 0 : hasA ? sign : -sign
      }
    }
    return { a, b, source in
      let endA = PredicateCompiler.follow(hops, a, source).flatMap { $0.isPresent(slot) ? $0 : nil }
      let endB = PredicateCompiler.follow(hops, b, source).flatMap { $0.isPresent(slot) ? $0 : nil }
      switch (endA, endB) {
      case (let endA?, let endB?): return sign * present(endA, endB)
      case (nil, nil): return 0
      case (nil, _): return -sign
      default: return sign
      }
    }
  }

  /// The order of two values, neither of them nil: -1, 0 or 1.
  private static func presentOrder(_ slot: SlotIndex, _ column: ColumnType, _ folding: TextFolding) -> (RowPointer, RowPointer) -> Int {
    switch column.cellKind {
    case .integer:
      return { a, b in
        let (x, y) = (a.integer(slot), b.integer(slot))
        return x < y ? -1 : x > y ? 1 : 0
      }
    case .key:
      return { a, b in
        let (x, y) = (a.key(slot), b.key(slot))
        return x == y ? 0 : keyPrecedes(x, y) ? -1 : 1
      }
    case .real: return { a, b in order(a.real(slot), b.real(slot)) }
    case .bytes:
      if column == .attribute(.decimal) {
        return { a, b in
          order(DecimalText.value(a.bytes(slot)) ?? 0, DecimalText.value(b.bytes(slot)) ?? 0)
        }
      }
      if folding.isEmpty || !column.isText { return { a, b in Bytes.order(a.bytes(slot), b.bytes(slot)).signum() } }
      return { a, b in folding.compare(a.bytes(slot), b.bytes(slot)).signum() }
    }
  }

  /// The order of numbers, with NaN after all others.
  private static func order(_ x: Double, _ y: Double) -> Int {
    if x < y { return -1 }
    if x > y { return 1 }
    return x.isNaN == y.isNaN ? 0 : x.isNaN ? 1 : -1
  }

  /// The order of decimals, with NaN after all others. `Decimal` itself orders NaN first.
  private static func order(_ x: Decimal, _ y: Decimal) -> Int {
    if x.isNaN || y.isNaN { return x.isNaN == y.isNaN ? 0 : x.isNaN ? 1 : -1 }
    return x < y ? -1 : x > y ? 1 : 0
  }
}
