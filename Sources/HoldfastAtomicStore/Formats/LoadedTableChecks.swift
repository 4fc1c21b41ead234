import HoldfastStore

/// Checks the tables read from a file for contradictions that a save can't produce. Each check returns a description of the
/// problem, or nil.
///
/// A reference to a missing object isn't a contradiction: if the delete rule is "no action", deleting an object leaves references to it.
struct LoadedTableChecks {
  private let generation: TableGeneration
  private let request: SaveRequest
  private let schema: TableSchema
  private var model: ManagedObjectModel { schema.model }

  init(_ generation: TableGeneration, _ request: SaveRequest) {
    self.generation = generation
    self.request = request
    schema = generation.schema
  }

  /// Checks that keys are in the valid range.
  func keys(_ header: StoreFileHeader) -> String? {
    let keys = generation.tables.map(\.largestKey).filter { $0 != 0 }
    if keys.allSatisfy(TableLoader.keys.contains) && header.nextKeys.values.allSatisfy(TableLoader.nextKeys.contains) { return nil }
    return "An object's key isn't between \(TableLoader.keys.lowerBound) and \(TableLoader.keys.upperBound)."
  }

  /// If keys are unique in the entire store, checks that no relationship points to an object whose root entity differs from the
  /// destination's.
  func targets() -> String? {
    if schema.keySpace == .family { return nil }
    for relationship in model.entities.flatMap(\.ownRelationships) {
      let table = schema.tableOfEntity[relationship.destinationIndex]
      let others = generation.tables.indices.filter { $0 != table && generation.tables[$0].count > 0 }
      if others.isEmpty { continue }
      var strayed: ObjectKey?
      func look(_ target: ObjectKey) {
        if generation.tables[table].location(target).isNone, others.contains(where: { !generation.tables[$0].location(target).isNone }) {
          strayed = target
        }
      }
      switch schema.storage(of: relationship) {
      case .slot(let index): generation.adjacencies[index].forEachSource(look)
      case .links(_, let backward): generation.adjacencies[backward].forEachSource(look)
      case .inverseSlot: break
      }
      if let strayed { return "\(name(relationship)) points to object \(strayed), which isn't an object of the destination entity." }
    }
    return nil
  }

  /// Checks that no link occurs twice, and that each destination of a to-many relationship without an inverse has one owner. Also checks
  /// that both ends of a to-many relationship that is its own inverse match.
  func links() -> String? {
    for changes in request.links {
      let relationship = relationship(changes.entity, changes.relationship)
      guard relationship.isManyToMany else {
        return "The format has passed links of the relationship \(name(relationship)), which are part of the rows."
      }
      let index = generation.adjacencies[generation.forwardIndex(of: relationship)]
      var agrees = index.count == changes.added.count, odd: ObjectKey?
      if relationship.isReflexive {
        index.forEach { link in
          if exists(link.target, relationship.destinationIndex), !contains(index, link.target, link.source) {
            (agrees, odd) = (false, link.source)
          }
        }
      }
      if !agrees {
        odd = odd ?? zip(changes.added, changes.added.dropFirst()).first { $0 == $1 }?.0.source
        return
          "Links of the relationship \(name(relationship)) contradict each other: a link occurs twice, a destination has two owners, "
          + "or only one end contains the link.\(LoadedTableChecks.at(odd))"
      }
    }
    return nil
  }

  /// Checks that both ends of each one-to-one relationship match.
  func pairs() -> String? {
    for relationship in model.entities.flatMap(\.ownRelationships) where !relationship.isToMany && !relationship.inverseIsToMany {
      guard let inverse = model.inverse(of: relationship), case .slot(let index) = schema.storage(of: relationship),
        case .slot(let back) = schema.storage(of: inverse)
      else { continue }
      var odd: ObjectKey?
      // The index maps destinations to the rows that reference them.
      generation.adjacencies[index].forEach { link in
        if exists(link.source, relationship.destinationIndex), !contains(generation.adjacencies[back], link.target, link.source) {
          odd = link.target
        }
      }
      if odd != nil { return "The relationship \(name(relationship)) and its inverse don't match.\(LoadedTableChecks.at(odd))" }
    }
    return nil
  }

  /// Checks that the list of an ordered relationship contains each linked object exactly once, and no other objects.
  func orders() -> String? {
    for changes in request.orders {
      let relationship = relationship(changes.entity, changes.relationship)
      var next = 0, odd: ObjectKey?
      generation.adjacencies[generation.forwardIndex(of: relationship)].forEach { link in
        if next < changes.links.count, changes.links[next] == link {
          next += 1
        } else if exists(link.source, relationship.entityIndex) {
          odd = odd ?? link.source
        }
      }
      if next < changes.links.count { odd = odd ?? changes.links[next].source }
      if odd != nil {
        return "The list of the ordered relationship \(name(relationship)) doesn't contain exactly the owner's destinations."
          + LoadedTableChecks.at(odd)
      }
    }
    return nil
  }

  /// Checks that links that the file contains at both ends match.
  func stated(_ stated: [(LinkDigest, ManagedObjectModel.Relationship)]) -> String? {
    for (links, relationship) in stated {
      var links = links, last: (source: ObjectKey, exists: Bool) = (ObjectKey(.min), false)
      generation.adjacencies[generation.forwardIndex(of: relationship)].forEach { link in
        if link.source != last.source { last = (link.source, exists(link.source, relationship.entityIndex)) }
        if last.exists { links.subtract(source: link.source, target: link.target) }
      }
      if links.isEven { continue }
      let which = links.odd.map { " For example, only one end contains the link from object \($0.source) to object \($0.target)." } ?? ""
      return "The links of the relationship \(name(relationship)) and of its inverse don't match.\(which)"
    }
    return nil
  }

  private static func at(_ key: ObjectKey?) -> String { key.map { " See object \($0)." } ?? "" }

  private func relationship(_ entity: EntityIndex, _ index: RelationshipIndex) -> ManagedObjectModel.Relationship {
    model.entities[entity].relationships[index]
  }

  private func name(_ relationship: ManagedObjectModel.Relationship) -> String {
    "\(relationship.name) of \(model.entities[relationship.entityIndex].name)"
  }

  private func exists(_ key: ObjectKey, _ entity: EntityIndex) -> Bool { generation.hasRow(entity: entity, key: key) }

  private func contains(_ index: AdjacencyIndex, _ source: ObjectKey, _ target: ObjectKey) -> Bool {
    index.withTargets(of: source) { LinkOrder.contains($0, target) }
  }
}
