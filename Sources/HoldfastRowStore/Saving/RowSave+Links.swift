// Links, references to deleted objects, and order.

extension RowSave {
  mutating func changeLinks() throws {
    for changes in request.links {
      let relationship = model.entities[changes.entity].relationships[changes.relationship]
      for link in changes.removed { links.remove(link, relationship) }
      if relationship.hasTargetsToItself {
        try takeTargets(changes.added, relationship)
        continue
      }
      // The order key of a link that exists already is kept.
      if relationship.isOrdered { try links.read(relationship, sources: Set(changes.added.map(\.source))) }
      for link in changes.added { links.add(link, relationship) }
    }
  }

  /// Links destinations that belong to one source each, and removes their links to other sources. Of several new sources, the last one wins.
  private mutating func takeTargets(_ added: [SaveRequest.Link], _ relationship: ManagedObjectModel.Relationship) throws {
    try links.read(relationship, targets: Set(added.map(\.target)))
    var sources: [ObjectKey: Set<ObjectKey>] = [:]
    for link in links.current(relationship) { sources[link.target, default: []].insert(link.source) }
    for link in added {
      for source in sources[link.target] ?? [] where source != link.source {
        links.remove(SaveRequest.Link(source: source, target: link.target), relationship)
      }
      sources[link.target] = [link.source]
      links.add(link, relationship)
    }
  }

  // MARK: References to deleted objects

  /// Removes references to deleted objects from rows and links, after the updates of the request.
  mutating func severReferences() throws {
    for changes in request.entities where !changes.deleted.keys.isEmpty {
      let entity = model.entities[changes.entity], keys = Set(changes.deleted.keys)
      for relationship in entity.relationships where relationship.deleteRule != .noAction {
        if relationship.isManyToMany {
          try severLinks(of: keys, relationship)
        } else if let inverse = model.inverse(of: relationship), !inverse.isToMany {
          try severRows(pointingTo: keys, inverse)
        }
      }
      for relationship in entity.linksWithoutInverse { try removeLinks(relationship, targets: keys) }
    }
  }

  private mutating func severLinks(of keys: Set<ObjectKey>, _ relationship: ManagedObjectModel.Relationship) throws {
    if relationship.storesLinks { try removeLinks(relationship, sources: keys) }
    if let inverse = model.inverse(of: relationship), inverse.storesLinks { try removeLinks(inverse, targets: keys) }
  }

  private mutating func removeLinks(
    _ relationship: ManagedObjectModel.Relationship, sources: Set<ObjectKey>? = nil, targets: Set<ObjectKey>? = nil
  ) throws {
    try links.read(relationship, sources: sources, targets: targets)
    for link in links.current(relationship) where sources?.contains(link.source) != false && targets?.contains(link.target) != false {
      links.remove(link, relationship)
    }
  }

  /// Sets to-one relationships to nil, and raises the version of each row once.
  private mutating func severRows(pointingTo keys: Set<ObjectKey>, _ relationship: ManagedObjectModel.Relationship) throws {
    let entity = model.entities[relationship.entityIndex]
    try rows.read(referencing: keys, relationship)
    for key in rows.keys(of: entity, where: { $0.target(in: relationship.slot).map(keys.contains) ?? false }) {
      let isFirst = raised.insert(rows.place(key, of: entity)).inserted
      rows.change(key, of: entity) { row in
        row?.values[relationship.slot] = .null
        if isFirst, let version = row?.version { row?.version = version.next }
      }
    }
  }

  // MARK: Order

  /// The ordered relationships whose positions are links of their own, because rows or the inverse contain the links.
  private var separatelyOrdered: [ManagedObjectModel.Relationship] { model.orderedRelationships.filter { !$0.storesLinks } }

  /// Removes the positions of objects that no longer belong to an ordered relationship.
  mutating func removeOrderOfMovedRows() throws {
    for relationship in separatelyOrdered {
      guard let inverse = model.inverse(of: relationship) else { continue }
      if inverse.isToMany {
        for link in links.removed(inverse) { links.remove(SaveRequest.Link(source: link.target, target: link.source), relationship) }
      } else {
        for (key, source) in rows.lostTargets(inverse, model.entities[inverse.entityIndex]) {
          links.remove(SaveRequest.Link(source: source, target: key), relationship)
        }
      }
    }
  }

  mutating func setOrder() throws {
    for changes in request.orders {
      let relationship = model.entities[changes.entity].relationships[changes.relationship]
      if relationship.storesLinks { try links.read(relationship, sources: Set(changes.links.map(\.source))) }
      for (link, order) in zip(changes.links, changes.keys) where isLinked(link, relationship) {
        links.add(link, relationship, order: order)
      }
    }
  }

  /// Whether a link exists after the save. Links that the request doesn't concern exist: the context read them.
  private func isLinked(_ link: SaveRequest.Link, _ relationship: ManagedObjectModel.Relationship) -> Bool {
    if relationship.storesLinks { return links.contains(link, relationship) == true }
    guard let inverse = model.inverse(of: relationship) else { return false }
    if inverse.isToMany { return links.contains(SaveRequest.Link(source: link.target, target: link.source), inverse) != false }
    let entity = model.entities[inverse.entityIndex]
    guard rows.isRead(link.target, of: entity) else { return true }
    return rows.current(link.target, of: entity)?.target(in: inverse.slot) == link.source
  }
}
