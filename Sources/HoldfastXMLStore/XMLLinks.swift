import HoldfastAtomicStore
import HoldfastStore

/// The targets of a to-many relationship as a file lists them.
///
/// Where the other side names the links, those that lead from objects that are not there, left behind by a deletion whose rule does
/// nothing, stand nowhere in the file: this side leaves them out too.
struct XMLLinks {
  private let links: LinkReader
  private let generation: TableGeneration
  private let destination: Int
  private let mayLack: Bool

  init(_ generation: TableGeneration, _ relationship: ManagedObjectModel.Relationship) {
    links = generation.links(of: relationship)
    self.generation = generation
    destination = relationship.destinationIndex
    mayLack = relationship.isManyToMany && !relationship.namesLinks
  }

  private func exists(_ key: Int64) -> Bool { generation.hasRow(entity: destination, key: key) }

  /// Calls `body` with the targets of an object, ascending.
  @inline(__always) func withTargets(of key: Int64, _ body: (UnsafeBufferPointer<Int64>) -> Void) {
    links.withTargets(of: key) { targets in
      if !mayLack || targets.allSatisfy(exists) { return body(targets) }
      targets.filter(exists).withUnsafeBufferPointer(body)
    }
  }

  /// The targets of an object in their order, with their order keys.
  func ordered(of key: Int64) -> [(target: Int64, order: Int64)] {
    let targets = links.orderedTargets(of: key)
    return mayLack ? targets.filter { exists($0.target) } : targets
  }
}
