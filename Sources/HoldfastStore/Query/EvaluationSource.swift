/// Where the evaluator finds rows beyond the one it looks at. Rows that it returns stay where they are until the
/// evaluation is over.
public protocol EvaluationSource: AnyObject {
  /// The row of an object, or nil when there is none.
  func row(entity: Int, key: Int64) -> RowPointer?

  /// The keys of the objects that a to-many relationship of the row's object leads to.
  func targets(of row: RowPointer, _ relationship: ManagedObjectModel.Relationship) -> [Int64]
}

/// A source for queries that do not leave their row.
public final class NoFurtherRows: EvaluationSource {
  /// Makes the source.
  public init() {}
  /// Nothing.
  public func row(entity: Int, key: Int64) -> RowPointer? { nil }
  /// Nothing.
  public func targets(of row: RowPointer, _ relationship: ManagedObjectModel.Relationship) -> [Int64] { [] }
}

/// A way that a query leaves its row: to-one relationships, the last one possibly to-many.
public struct QueryCrossing: Sendable, Hashable {
  /// The relationships in the order in which they are followed.
  public let relationships: [ManagedObjectModel.Relationship]
}
