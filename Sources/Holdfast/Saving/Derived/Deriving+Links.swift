import HoldfastStore

/// Counts and sums over relationships whose links are stored as pairs of keys.
extension Deriving {
  /// The maximum number of objects in the owners' relationships that are read to find existing links.
  private static let mostToCount = 1024

  /// Adds the differences of an aggregate over links.
  ///
  /// Adding an existing link changes nothing, and the context may not know that it exists. So existing links are read from the store. If
  /// another process adds or removes one of them meanwhile, the versions of its ends reveal it.
  func addDifferencesOfLinks(_ place: Int) throws {
    let aggregate = plan.aggregates[place], relationship = aggregate.relationship
    guard relationship.isManyToMany else { return }
    try noteOwnersOfInsertedAgain(place)
    let changes = links(of: relationship)
    let touched = touchedTargets(aggregate)
    if changes.added.isEmpty && changes.removed.isEmpty && touched.isEmpty { return }
    guard let inverse = aggregate.inverse else { return try noteOwnersWithoutInverse(place, changes, touched) }
    let asked = (changes.added + changes.removed).filter { $0.source >= 0 && $0.target >= 0 }
    let former = try knownFormerOwners(aggregate, inverse, asked, touched)
    let destination = relationship.destinationIndex
    let linked = Set((changes.added + changes.removed).map(\.target)).union(touched)
    if aggregate.summed != nil { try stored.read(root: root(destination), linked.filter { savedObject(destination, $0) == nil }) }
    var (added, removed) = ([ObjectKey: [ObjectKey]](), [ObjectKey: [ObjectKey]]())
    for link in changes.added { added[link.target, default: []].append(link.source) }
    for link in changes.removed { removed[link.target, default: []].append(link.source) }
    for target in linked {
      let before = former[target] ?? [], object = savedObject(destination, target)
      var after = object?.isDeleted == true ? [] : before
      if object?.isDeleted != true { after = after.subtracting(removed[target] ?? []).union(added[target] ?? []) }
      let less = aggregate.term(object.map { self.before($0) } ?? rowAfter(destination, target)),
        more = aggregate.term(rowAfter(destination, target))
      // A count only needs to know that the destination exists, so its row isn't read.
      let (minus, plus) = aggregate.summed == nil ? (.whole(1), .whole(1)) : (less, more)
      for owner in before where !after.contains(owner) { add(minus.negated, to: owner, place) }
      for owner in after where !before.contains(owner) { add(plus, to: owner, place) }
      if minus == plus { continue }
      for owner in after where before.contains(owner) {
        add(minus.negated, to: owner, place)
        add(plus, to: owner, place)
      }
    }
  }

  /// Notes the owners of objects that the save inserts again. Their numbers don't include these objects since the deletion.
  private func noteOwnersOfInsertedAgain(_ place: Int) throws {
    let aggregate = plan.aggregates[place]
    guard reusesKeys, aggregate.inverse?.deleteRule == .noAction else { return }
    let again = savedObjects(of: aggregate.relationship.destinationIndex).filter(\.isInsertedAgain).map(\.objectKey)
    let owners = try remainingLinks(to: Set(again), aggregate.relationship).keys
    for owner in owners { noteIncomplete(owner, place) }
    try stored.read(root: aggregate.entity.rootIndex, owners)
  }

  /// The links to missing objects in a many-to-many relationship, by owner. A deletion with the no-action rule leaves them.
  ///
  /// Stores don't return the owners of a missing object, so the links of all owners are read. Objects are seldom inserted again.
  func remainingLinks(to missing: Set<ObjectKey>, _ relationship: ManagedObjectModel.Relationship) throws
    -> [ObjectKey: Set<ObjectKey>]
  {
    if missing.isEmpty { return [:] }
    let entity = context.entities[relationship.entityIndex], collector = RowCollector()
    let isLinked = QueryExpression.comparison(.count(PropertyPath(relationship.name)), .greaterThan, .constant(.int64(0)), [])
    try part.coordinator.fetch(FetchQuery(entity: entity, predicate: isLinked, options: part.options), from: part.store, into: collector)
    var owners: [ObjectKey] = []
    collector.forEach { batch, index in owners.append(batch.pointer(index).key) }
    if owners.isEmpty { return [:] }
    let request = RelationshipRequest(entity: relationship.entityIndex, relationship: relationship.index, sources: owners.sorted())
    var links: [ObjectKey: Set<ObjectKey>] = [:]
    try reader.relationships(request) { owner, targets in
      let found = missing.intersection(targets)
      if !found.isEmpty { links[owner] = found }
    }
    return links
  }

  /// The destinations that this save deletes, or whose summed value it changes.
  private func touchedTargets(_ aggregate: DerivationPlan.Aggregate) -> Set<ObjectKey> {
    var keys: Set<ObjectKey> = []
    for object in savedObjects(of: aggregate.relationship.destinationIndex) where !object.isInserted {
      if object.isDeleted {
        keys.insert(object.objectKey)
      } else if let summed = aggregate.summed, let old = before(object), let new = after(object),
        Deriving.differ(old, new, summed.slot, object.entity.layout)
      {
        keys.insert(object.objectKey)
      }
    }
    return keys
  }

  /// The owners of destinations before the save, read once.
  private func knownFormerOwners(
    _ aggregate: DerivationPlan.Aggregate, _ inverse: ManagedObjectModel.Relationship, _ asked: [SaveRequest.Link],
    _ touched: Set<ObjectKey>
  ) throws -> [ObjectKey: Set<ObjectKey>] {
    if let known = formerOwners.first(where: { $0.relationship == aggregate.relationship && $0.touched == touched }) { return known.owners }
    let found = try formerOwners(aggregate, inverse, asked, touched)
    formerOwners.append(FormerOwners(relationship: aggregate.relationship, touched: touched, owners: found))
    return found
  }

  /// Reads the owners that destinations had before the save: all owners of touched destinations, and for others at least those in the given
  /// links.
  private func formerOwners(
    _ aggregate: DerivationPlan.Aggregate, _ inverse: ManagedObjectModel.Relationship, _ asked: [SaveRequest.Link],
    _ touched: Set<ObjectKey>
  ) throws -> [ObjectKey: Set<ObjectKey>] {
    var former: [ObjectKey: Set<ObjectKey>] = [:]
    let owners = Set(asked.map(\.source)).sorted()
    if touched.isEmpty, try areFew(aggregate, owners) {
      let wanted = Set(asked), relationship = aggregate.relationship
      if owners.isEmpty { return [:] }
      let request = RelationshipRequest(entity: relationship.entityIndex, relationship: relationship.index, sources: owners)
      try reader.relationships(request) { owner, targets in
        for target in targets where wanted.contains(SaveRequest.Link(source: owner, target: target)) {
          former[target, default: []].insert(owner)
        }
      }
      return former
    }
    let targets = Set(asked.map(\.target)).union(touched).sorted()
    let request = RelationshipRequest(entity: inverse.entityIndex, relationship: inverse.index, sources: targets)
    try reader.relationships(request) { target, owners in former[target] = Set(owners) }
    return former
  }

  /// Whether owners have few objects, according to a count attribute.
  private func areFew(_ aggregate: DerivationPlan.Aggregate, _ owners: [ObjectKey]) throws -> Bool {
    guard let slot = aggregate.countSlot else { return false }
    try stored.read(root: aggregate.entity.rootIndex, owners)
    var count: Int64 = 0
    for owner in owners {
      guard let found = stored.row(root: aggregate.entity.rootIndex, owner), aggregate.entity.familyIndexes.contains(found.entity) else {
        continue
      }
      if !found.row.isPresent(slot) { return false }
      count = count.addingReportingOverflow(max(0, found.row.integer(slot))).partialValue
      if count < 0 || count > Deriving.mostToCount { return false }
    }
    return true
  }

  /// Finds the affected owners in a relationship without an inverse. Only a fetch finds the owners of a destination.
  private func noteOwnersWithoutInverse(
    _ place: Int, _ changes: (added: [SaveRequest.Link], removed: [SaveRequest.Link]), _ touched: Set<ObjectKey>
  ) throws {
    let relationship = plan.aggregates[place].relationship
    for link in changes.added + changes.removed { noteIncomplete(link.source, place) }
    let owners = try part.fetchOwners(of: touched.union(changes.added.map(\.target)), relationship)
    for owner in try stored.take(owners) { noteIncomplete(owner, place) }
    try stored.read(root: root(relationship.entityIndex), (changes.added + changes.removed).map(\.source))
  }
}
