public import HoldfastStore

/// The targets of a to-many relationship as a text file lists them, beside the object.
///
/// Where the other side names the links, those that lead from objects that are not there, left behind by a deletion whose rule does
/// nothing, stand nowhere in the file: this side leaves them out too, or the two would contradict each other.
public final class WrittenLinks {
  @usableFromInline let links: LinkReader
  private let generation: TableGeneration
  private let destination: Int
  /// Whether some are left out. What leads to objects that are not there shows in the text of rows that nobody changes, so nothing can
  /// be copied then.
  public let lacksSome: Bool
  /// The targets that are there, of one object that has others.
  private var found: [Int64] = []

  /// Reads the links of a relationship.
  public init(_ generation: TableGeneration, _ relationship: ManagedObjectModel.Relationship) {
    links = generation.links(of: relationship)
    self.generation = generation
    destination = relationship.destinationIndex
    lacksSome = relationship.isManyToMany && !relationship.namesLinks && generation.hasMissingTargets(relationship)
  }

  private func exists(_ key: Int64) -> Bool { generation.hasRow(entity: destination, key: key) }

  /// Calls `body` with the targets of an object, ascending.
  @inlinable @inline(__always) public func withTargets(of key: Int64, _ body: (UnsafeBufferPointer<Int64>) -> Void) {
    if lacksSome { withTargetsThatExist(of: key, body) } else { body(links.targets(of: key)) }
  }

  @usableFromInline func withTargetsThatExist(of key: Int64, _ body: (UnsafeBufferPointer<Int64>) -> Void) {
    found = links.targets(of: key).filter(exists)
    found.withUnsafeBufferPointer(body)
  }

  /// The targets of an object in their order, with their order keys.
  public func ordered(of key: Int64) -> [(target: Int64, order: Int64)] {
    let targets = links.orderedTargets(of: key)
    return lacksSome ? targets.filter { exists($0.target) } : targets
  }
}
