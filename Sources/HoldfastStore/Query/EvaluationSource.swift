/// Provides the evaluator with rows other than the one it tests. Returned rows stay valid until the evaluation ends.
public protocol EvaluationSource: AnyObject {
  /// Returns the row of an object, or nil if it doesn't exist.
  func row(entity: EntityIndex, key: ObjectKey) -> RowPointer?

  /// Returns the keys of the objects in a to-many relationship of a row's object.
  func targets(of row: RowPointer, _ relationship: ManagedObjectModel.Relationship) -> [ObjectKey]
}

/// A source for queries that follow no relationships.
public final class EmptyEvaluationSource: EvaluationSource {
  /// Creates the source.
  public init() {}
  /// Returns nil.
  public func row(entity: EntityIndex, key: ObjectKey) -> RowPointer? { nil }
  /// Returns no keys.
  public func targets(of row: RowPointer, _ relationship: ManagedObjectModel.Relationship) -> [ObjectKey] { [] }
}

/// The relationships that a query follows on one path. The last one may be to-many.
public struct RelationshipPath: Sendable, Hashable {
  /// The relationships, in the order in which they are followed.
  public let relationships: [ManagedObjectModel.Relationship]
}
