public import HoldfastStore

/// The destinations of a to-many relationship that a text file stores with their owner.
///
/// Deleting an object leaves its links behind if the delete rule is "no action". The side that stores the links doesn't write them, because
/// a missing object has no row in the file. The other side omits them too, so that both sides match.
public final class WrittenLinks {
  @usableFromInline let links: LinkReader
  private let generation: TableGeneration
  private let destination: EntityIndex
  /// Whether some destinations are omitted.
  @usableFromInline let lacksSome: Bool
  /// A buffer for the existing destinations of one object.
  private var found: [ObjectKey] = []

  /// Creates a reader for the links of a relationship.
  public init(_ generation: TableGeneration, _ relationship: ManagedObjectModel.Relationship) {
    links = generation.links(of: relationship)
    self.generation = generation
    destination = relationship.destinationIndex
    lacksSome = relationship.isManyToMany && !relationship.namesLinks && generation.hasMissingTargets(relationship)
  }

  private func exists(_ key: ObjectKey) -> Bool { generation.hasRow(entity: destination, key: key) }

  /// Calls `body` with the destinations of an object, ascending.
  @inlinable @inline(__always) public func withTargets(of key: ObjectKey, _ body: (UnsafeBufferPointer<ObjectKey>) -> Void) {
    if lacksSome { withTargetsThatExist(of: key, body) } else { body(links.targets(of: key)) }
  }

  @usableFromInline func withTargetsThatExist(of key: ObjectKey, _ body: (UnsafeBufferPointer<ObjectKey>) -> Void) {
    found = links.targets(of: key).filter(exists)
    found.withUnsafeBufferPointer(body)
  }

  /// The destinations of an object with their order keys, sorted by order key.
  public func ordered(of key: ObjectKey) -> [(target: ObjectKey, order: Int64)] {
    let targets = links.orderedTargets(of: key)
    return lacksSome ? targets.filter { exists($0.target) } : targets
  }
}
