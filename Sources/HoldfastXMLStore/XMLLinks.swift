import HoldfastAtomicStore
import HoldfastStore

/// The targets of a to-many relationship as a file lists them.
///
/// Where the other side names the links, those that lead from objects that are not there, left behind by a deletion whose rule does
/// nothing, stand nowhere in the file: this side leaves them out too.
final class XMLLinks {
  private let links: LinkReader
  private let generation: TableGeneration
  private let destination: Int
  /// Whether some are left out.
  let lacksSome: Bool
  /// The targets that are there, of one object that has others.
  private var found: [Int64] = []

  init(_ generation: TableGeneration, _ relationship: ManagedObjectModel.Relationship) {
    links = generation.links(of: relationship)
    self.generation = generation
    destination = relationship.destinationIndex
    lacksSome = relationship.isManyToMany && !relationship.namesLinks && generation.hasMissingTargets(relationship)
  }

  private func exists(_ key: Int64) -> Bool { generation.hasRow(entity: destination, key: key) }

  /// Calls `body` with the targets of an object, ascending.
  @inline(__always) func withTargets(of key: Int64, _ body: (UnsafeBufferPointer<Int64>) -> Void) {
    if !lacksSome { return body(links.targets(of: key)) }
    found = links.targets(of: key).filter(exists)
    found.withUnsafeBufferPointer(body)
  }

  /// The targets of an object in their order, with their order keys.
  func ordered(of key: Int64) -> [(target: Int64, order: Int64)] {
    let targets = links.orderedTargets(of: key)
    return lacksSome ? targets.filter { exists($0.target) } : targets
  }
}

/// The links of each of a model's listed and of its stated relationships.
struct XMLLists {
  let listed: [XMLLinks]
  let stated: [XMLLinks]

  init(_ generation: TableGeneration, _ model: XMLModel) {
    listed = model.listed.map { XMLLinks(generation, $0) }
    stated = model.stated.map { XMLLinks(generation, $0) }
  }

  /// Whether some are left out.
  var lackSome: Bool { (listed + stated).contains(where: \.lacksSome) }
}
