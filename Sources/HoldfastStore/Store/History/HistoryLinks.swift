/// The links that a save adds and removes, at both of their ends, and its new orders, for stores whose history keeps values.
///
/// Links of many-to-many relationships and of those without an inverse are included, but not those that a deletion removes.
public struct HistoryLinks {
  /// The links of one object, by relationship. On disk: do not change.
  public struct Kept: Codable, Sendable, Hashable {
    /// The destinations that were added.
    public var added: [String: [ManagedObjectID]] = [:]
    /// The destinations that were removed.
    public var removed: [String: [ManagedObjectID]] = [:]
    /// The destinations with a new place in an ordered relationship, in its order.
    public var placed: [String: [HistoryTransaction.PlacedLink]] = [:]

    /// Creates an empty list.
    public init() {}

    /// Decodes links. What an earlier version didn't write is empty.
    public init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: CodingKeys.self)
      added = try container.decodeIfPresent([String: [ManagedObjectID]].self, forKey: .added) ?? [:]
      removed = try container.decodeIfPresent([String: [ManagedObjectID]].self, forKey: .removed) ?? [:]
      placed = try container.decodeIfPresent([String: [HistoryTransaction.PlacedLink]].self, forKey: .placed) ?? [:]
    }
  }

  private struct Owner: Hashable {
    /// Only the owner's row determines its subentity.
    let root: EntityIndex
    let key: ObjectKey
  }

  private let request: SaveRequest
  private let plan: HistoryPlan
  private let model: ManagedObjectModel
  private let prefixes: [ManagedObjectID]
  private var kept: [Owner: Kept] = [:]

  /// Finds the links that a request changes.
  ///
  /// - Parameters:
  ///   - request: The save.
  ///   - plan: What the history keeps. If it keeps no values, no links are collected.
  ///   - model: The model of both.
  ///   - prefixes: An ID of the store for each entity, by index.
  public init(_ request: SaveRequest, _ plan: HistoryPlan, _ model: ManagedObjectModel, prefixes: [ManagedObjectID]) {
    (self.request, self.plan, self.model, self.prefixes) = (request, plan, model, prefixes)
    if !plan.keepsValues { return }
    for changes in request.links {
      let relationship = model.entities[changes.entity].relationships[changes.relationship]
      // A relationship that is its own inverse has each link in both directions.
      let inverse = relationship.isReflexive ? nil : model.inverse(of: relationship)
      for (links, list) in [(changes.added, \Kept.added), (changes.removed, \Kept.removed)] {
        for link in links {
          keep(link.target, in: list, of: relationship, link.source)
          if let inverse { keep(link.source, in: list, of: inverse, link.target) }
        }
      }
    }
  }

  private mutating func keep(
    _ target: ObjectKey, in list: WritableKeyPath<Kept, [String: [ManagedObjectID]]>, of relationship: ManagedObjectModel.Relationship,
    _ source: ObjectKey
  ) {
    kept[owner(source, relationship), default: Kept()][keyPath: list][relationship.name, default: []].append(id(target, relationship))
  }

  private func owner(_ source: ObjectKey, _ relationship: ManagedObjectModel.Relationship) -> Owner {
    Owner(root: model.entities[relationship.entityIndex].rootIndex, key: source)
  }

  private func id(_ target: ObjectKey, _ relationship: ManagedObjectModel.Relationship) -> ManagedObjectID {
    prefixes[relationship.destinationIndex].withKey(target)
  }

  /// Adds the places of the destinations whose order the save has set. Call it after the changes.
  ///
  /// - Parameter read: Answers a request for destinations from the state after the save.
  public mutating func addPlaces(_ read: (RelationshipRequest) throws -> RelationshipAnswer) rethrows {
    if !plan.keepsValues { return }
    for changes in request.orders {
      let entity = model.entities[changes.entity], relationship = entity.relationships[changes.relationship]
      guard entity.familyIndexes.contains(where: { plan.entities[$0.rawValue].keepsValues }) else { continue }
      let placed = Dictionary(grouping: changes.links, by: \.source).mapValues { Set($0.map(\.target)) }, sources = placed.keys.sorted()
      let answer = try read(RelationshipRequest(entity: changes.entity, relationship: changes.relationship, sources: sources))
      for (place, source) in sources.enumerated() {
        let list = HistoryLinks.destinations(answer, place)
        kept[owner(source, relationship), default: Kept()].placed[relationship.name] = list.indices.compactMap { index in
          guard placed[source]?.contains(list[index]) == true else { return nil }
          return HistoryTransaction.PlacedLink(
            id(list[index], relationship), after: index == 0 ? nil : id(list[index - 1], relationship))
        }
      }
    }
  }

  /// The destinations of a source in their order.
  private static func destinations(_ answer: RelationshipAnswer, _ place: Int) -> [ObjectKey] {
    let range = Int(answer.offsets[place])..<Int(answer.offsets[place + 1])
    guard let keys = answer.orderKeys else { return Array(answer.targets[range]) }
    return range.sorted { (keys[$0], answer.targets[$0]) < (keys[$1], answer.targets[$1]) }.map { answer.targets[$0] }
  }

  /// The links of an object of an entity; nil if none changed.
  public func links(of entity: EntityIndex, _ key: ObjectKey) -> Kept? { kept[Owner(root: model.entities[entity].rootIndex, key: key)] }
}
