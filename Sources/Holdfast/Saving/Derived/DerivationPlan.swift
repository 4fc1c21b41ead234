import HoldfastStore

/// How the derived attributes of a model are computed, with every name resolved. Created once, if the model has any.
final class DerivationPlan: Sendable {
  /// An attribute that is derived from its own object or from the clock.
  struct Own: Sendable {
    enum Source: Sendable {
      case now
      case copy(SlotIndex)
      case text(Derivation.TextFunction, SlotIndex)
    }

    let slot: SlotIndex
    let type: AttributeType
    let source: Source
  }

  /// An attribute that is copied from an object reached through to-one relationships.
  struct Path: Sendable {
    let number: Int
    /// The entity that declares the attribute.
    let entity: ManagedObjectModel.Entity
    let attribute: ManagedObjectModel.Attribute
    let hops: [ManagedObjectModel.Relationship]
    /// The slot and the type of the copied attribute, in the last object of the path.
    let source: (slot: SlotIndex, type: AttributeType)
    let function: Derivation.TextFunction?
  }

  /// A count or a sum over the objects of a to-many relationship.
  struct Aggregate: Sendable {
    let number: Int
    let entity: ManagedObjectModel.Entity
    let attribute: ManagedObjectModel.Attribute
    let relationship: ManagedObjectModel.Relationship
    let inverse: ManagedObjectModel.Relationship?
    /// The summed attribute; nil for a count.
    let summed: ManagedObjectModel.Attribute?
    /// Whether sums are exact, so that differences can be added to them.
    let isExact: Bool
    /// The slot of a count over the same relationship, if there is one.
    let countSlot: SlotIndex?
  }

  /// An attribute that is derived from other objects, in the rows of one entity.
  struct Following: Sendable {
    let slot: SlotIndex
    /// The attribute's number, which entities that inherit it share.
    let number: Int
    /// The value of a new object to which no change applies: 0 for counts and sums.
    let initial: StoreValue
  }

  /// How a derived slot gets its value.
  enum Derived: Sendable {
    case own(Own)
    case following(Following)
  }

  /// Attributes derived from their own object, by entity index.
  let own: [[Own]]
  /// Attributes derived from other objects, by entity index, in slot order.
  let following: [[Following]]
  /// All derived attributes by entity index, in slot order.
  let all: [[Derived]]
  /// The sorted slots of all derived attributes, by entity index.
  let slots: [[SlotIndex]]
  let paths: [Path]
  let aggregates: [Aggregate]
  /// The number of attributes derived from other objects. One that several entities inherit counts once.
  let followingCount: Int

  /// Nil when the model has no derived attribute.
  init?(_ model: ManagedObjectModel) {
    if model.entities.allSatisfy({ $0.derivedAttributes.isEmpty }) { return nil }
    slots = model.entities.map { $0.derivedAttributes.map(\.slot) }
    let own = model.entities.map { entity in entity.derivedAttributes.compactMap { DerivationPlan.own($0, entity) } }
    var (paths, aggregates): ([Path], [Aggregate]) = ([], [])
    var following: [[Following]] = []
    for entity in model.entities {
      let above = entity.superentityIndex.map { following[$0] } ?? []
      var all = above
      for attribute in entity.derivedAttributes where attribute.derivation?.followsOthers == true {
        if above.contains(where: { $0.slot == attribute.slot }) { continue }
        let number = paths.count + aggregates.count
        if let path = DerivationPlan.path(attribute, entity, model, number) {
          paths.append(path)
        } else if let aggregate = DerivationPlan.aggregate(attribute, entity, model, number) {
          aggregates.append(aggregate)
        } else {
          continue
        }
        let zero = paths.last?.number == number ? StoreValue.null : DerivedNumber.zero.stored(in: attribute.type)
        all.append(Following(slot: attribute.slot, number: number, initial: zero ?? .null))
      }
      following.append(all.sorted { $0.slot < $1.slot })
    }
    (self.paths, self.aggregates, self.following, self.own) = (paths, aggregates, following, own)
    all = model.entityIndexes.map { entity in
      let derived = own[entity].map { ($0.slot, Derived.own($0)) } + following[entity].map { ($0.slot, Derived.following($0)) }
      return derived.sorted { $0.0 < $1.0 }.map(\.1)
    }
    followingCount = paths.count + aggregates.count
  }

  private static func own(_ attribute: ManagedObjectModel.Attribute, _ entity: ManagedObjectModel.Entity) -> Own? {
    let source: Own.Source
    switch attribute.derivation {
    case .now: source = .now
    case .copy(let path) where path.rest.isEmpty:
      guard let slot = entity.slot(named: path.first) else { return nil }
      source = .copy(slot)
    case .text(let function, let path) where path.rest.isEmpty:
      guard let slot = entity.slot(named: path.first) else { return nil }
      source = .text(function, slot)
    default: return nil
    }
    return Own(slot: attribute.slot, type: attribute.type, source: source)
  }

  private static func path(
    _ attribute: ManagedObjectModel.Attribute, _ entity: ManagedObjectModel.Entity, _ model: ManagedObjectModel, _ number: Int
  ) -> Path? {
    let (path, function): (PropertyPath, Derivation.TextFunction?)
    switch attribute.derivation {
    case .copy(let copied): (path, function) = (copied, nil)
    case .text(let changing, let copied): (path, function) = (copied, changing)
    default: return nil
    }
    guard let resolved = try? ResolvedPath(path, from: entity, in: model), case .attribute(let source) = resolved.property else {
      return nil
    }
    return Path(
      number: number, entity: entity, attribute: attribute, hops: resolved.hops, source: (source.slot, source.type), function: function)
  }

  private static func aggregate(
    _ attribute: ManagedObjectModel.Attribute, _ entity: ManagedObjectModel.Entity, _ model: ManagedObjectModel, _ number: Int
  ) -> Aggregate? {
    let (name, summedName): (String, String?)
    switch attribute.derivation {
    case .count(let relationship): (name, summedName) = (relationship, nil)
    case .sum(let relationship, let attribute): (name, summedName) = (relationship, attribute)
    default: return nil
    }
    guard let relationship = entity.relationship(named: name), relationship.isToMany else { return nil }
    var summed: ManagedObjectModel.Attribute?
    if let summedName {
      guard case .attribute(let found)? = model.destination(of: relationship).property(named: summedName) else { return nil }
      summed = found
    }
    let terms = summed?.type ?? .integer64
    return Aggregate(
      number: number, entity: entity, attribute: attribute, relationship: relationship, inverse: model.inverse(of: relationship),
      summed: summed,
      isExact: terms.integerRange != nil && attribute.type.integerRange != nil
        || attribute.type == .decimal && (terms == .decimal || terms.integerRange != nil),
      countSlot: entity.derivedAttributes.first { $0.derivation == .count(relationship: name) }?.slot)
  }
}

extension DerivationPlan.Aggregate {
  /// The number that an object of the relationship adds; 0 when its row is missing.
  func term(_ row: RowPointer?) -> DerivedNumber {
    guard let row else { return .zero }
    guard let summed else { return .whole(1) }
    return row.isPresent(summed.slot) ? DerivedNumber(row.value(summed.slot, summed.type)) : .zero
  }
}
