/// The links that a save adds and removes, at both of their ends, for stores whose history keeps values.
///
/// Links of many-to-many relationships and of those without an inverse are included, but not those that a deletion removes.
public struct HistoryLinks {
  /// The links of one object, by relationship. On disk: do not change.
  public struct Kept: Codable, Sendable, Hashable {
    /// The destinations that were added.
    public var added: [String: [ManagedObjectID]] = [:]
    /// The destinations that were removed.
    public var removed: [String: [ManagedObjectID]] = [:]

    /// Creates an empty list.
    public init() {}
  }

  private struct Owner: Hashable {
    /// Only the owner's row determines its subentity.
    let root: EntityIndex
    let key: ObjectKey
  }

  private let model: ManagedObjectModel
  private var kept: [Owner: Kept] = [:]

  /// Finds the links that a request changes.
  ///
  /// - Parameters:
  ///   - request: The save.
  ///   - plan: What the history keeps. If it keeps no values, no links are collected.
  ///   - model: The model of both.
  ///   - prefixes: An ID of the store for each entity, by index.
  public init(_ request: SaveRequest, _ plan: HistoryPlan, _ model: ManagedObjectModel, prefixes: [ManagedObjectID]) {
    self.model = model
    if !plan.keepsValues { return }
    for changes in request.links {
      let relationship = model.entities[changes.entity].relationships[changes.relationship], inverse = model.inverse(of: relationship)
      for (links, list) in [(changes.added, \Kept.added), (changes.removed, \Kept.removed)] {
        for link in links {
          keep(link.target, in: list, of: relationship, link.source, prefixes)
          if let inverse { keep(link.source, in: list, of: inverse, link.target, prefixes) }
        }
      }
    }
  }

  private mutating func keep(
    _ target: ObjectKey, in list: WritableKeyPath<Kept, [String: [ManagedObjectID]]>, of relationship: ManagedObjectModel.Relationship,
    _ owner: ObjectKey, _ prefixes: [ManagedObjectID]
  ) {
    let owner = Owner(root: model.entities[relationship.entityIndex].rootIndex, key: owner)
    kept[owner, default: Kept()][keyPath: list][relationship.name, default: []].append(
      prefixes[relationship.destinationIndex].withKey(target))
  }

  /// The links of an object of an entity; nil if none changed.
  public func links(of entity: EntityIndex, _ key: ObjectKey) -> Kept? { kept[Owner(root: model.entities[entity].rootIndex, key: key)] }
}
