public import HoldfastStore

/// The tables and indexes for a model, computed once when a store opens.
public final class TableSchema: Sendable {
  /// The model.
  public let model: ManagedObjectModel
  /// The identity of the store, for creating object IDs.
  public let identity: StoreIdentity
  /// The scope in which keys are unique.
  public let keySpace: KeySpace
  /// The table of each entity. All entities with the same root share one.
  let tableOfEntity: [Int]
  /// The number of tables.
  let tableCount: Int
  /// The uniqueness constraints of each table.
  let constraints: [[Constraint]]
  /// The properties of each entity that have a uniqueness constraint of their own.
  let uniqueProperties: [[UniqueProperty]]
  /// The to-one relationships of each entity.
  let keySlots: [[KeySlot]]
  /// The storage of each entity's relationships.
  private let storages: [[LinkStorage]]
  /// The number of ``AdjacencyIndex`` instances.
  let adjacencyCount: Int
  /// The ordered relationships. Each has its own ``OrderIndex``.
  var ordered: [ManagedObjectModel.Relationship] { model.orderedRelationships }
  /// The object ID of each entity with key 0.
  let prefixes: [ManagedObjectID]

  /// A uniqueness constraint and the entities that it applies to.
  struct Constraint: Sendable {
    /// The entity that declares the constraint.
    var entity: EntityIndex
    var slots: [SlotIndex]
    var names: [String]
    /// The cell kinds of all slots of the entity.
    var kinds: [CellKind]
    /// The slots with decimals, among ``slots``.
    var decimals: [SlotIndex]
    var entities: Range<EntityIndex>
  }

  /// All uniqueness constraints of the model, each once, under the entity that declares it.
  public let uniqueConstraints: [UniqueConstraint]

  /// The index of a table's constraint in ``uniqueConstraints``.
  func number(ofConstraint place: Int, table: Int) -> Int { constraints[..<table].reduce(place) { $0 + $1.count } }

  /// An attribute or to-one relationship that has a uniqueness constraint of its own.
  struct UniqueProperty: Sendable {
    var name: String
    var slot: SlotIndex
    var column: ColumnType
    /// The index of the constraint among those of the table.
    var constraint: Int
  }

  /// A slot that contains the key of a to-one destination.
  struct KeySlot: Sendable {
    var slot: SlotIndex
    /// The index from the destination's key to the keys of the rows that reference it.
    var adjacency: Int
  }

  /// How the links of a relationship are stored.
  enum LinkStorage: Sendable {
    /// In a slot of the owner's row. The index maps destinations to owners.
    case slot(inverse: Int)
    /// In a slot of the destination's row. The index maps owners to destinations.
    case inverseSlot(forward: Int)
    /// In two separate indexes.
    case links(forward: Int, backward: Int)
  }

  /// Computes the tables of a model.
  public init(model: ManagedObjectModel, identity: StoreIdentity, keySpace: KeySpace = .family) {
    self.model = model
    self.identity = identity
    self.keySpace = keySpace
    prefixes = model.entities.map(identity.prefix)
    let roots = model.entities.map(\.rootIndex).reduce(into: [EntityIndex]()) { if !$0.contains($1) { $0.append($1) } }
    tableOfEntity = model.entities.map { roots.firstIndex(of: $0.rootIndex) ?? 0 }
    tableCount = roots.count
    constraints = roots.map { TableSchema.constraints(of: model.entities.filter { [root = $0] in $0.rootIndex == root }) }
    uniqueConstraints = constraints.joined().map { constraint in
      UniqueConstraint(
        entity: constraint.entity, names: constraint.names, slots: constraint.slots, kinds: constraint.slots.map { constraint.kinds[$0] },
        decimals: constraint.decimals, entities: Array(constraint.entities))
    }
    uniqueProperties = model.entities.map { [constraints, tableOfEntity] entity in
      constraints[tableOfEntity[entity.index]].enumerated().compactMap { place, constraint in
        guard constraint.slots.count == 1, constraint.entities.contains(entity.index) else { return nil }
        let slot = constraint.slots[0]
        return UniqueProperty(name: entity.slots[slot].name, slot: slot, column: entity.layout.columns[slot], constraint: place)
      }
    }
    (storages, adjacencyCount) = TableSchema.storages(model)
    var orderOfAdjacency = [Int?](repeating: nil, count: adjacencyCount)
    for (place, relationship) in model.orderedRelationships.enumerated() {
      switch storages[relationship.entityIndex][relationship.index] {
      case .inverseSlot(let forward), .links(let forward, _): orderOfAdjacency[forward] = place
      case .slot: break
      }
    }
    self.orderOfAdjacency = orderOfAdjacency
    keySlots = model.entities.map { [storages] entity in
      entity.relationships.compactMap {
        guard case .slot(let inverse) = storages[$0.entityIndex][$0.index] else { return nil }
        return KeySlot(slot: $0.slot, adjacency: inverse)
      }
    }
  }

  /// How the links of a relationship are stored.
  func storage(of relationship: ManagedObjectModel.Relationship) -> LinkStorage {
    storages[relationship.entityIndex][relationship.index]
  }

  /// For each ``AdjacencyIndex``, the index of its relationship's ``OrderIndex``; nil if unordered.
  let orderOfAdjacency: [Int?]

  /// The index of a relationship's ``OrderIndex``; nil if unordered.
  func order(of relationship: ManagedObjectModel.Relationship) -> Int? {
    relationship.isOrdered ? ordered.firstIndex { $0.entityIndex == relationship.entityIndex && $0.index == relationship.index } : nil
  }

  private static func constraints(of family: [ManagedObjectModel.Entity]) -> [Constraint] {
    var found: [Constraint] = []
    for entity in family {
      // Inherited constraints belong to the superentity and apply to all its subentities.
      for place in entity.inheritedConstraintCount..<entity.uniqueSlots.count {
        // A constraint that is declared twice counts once.
        let names = entity.uniquenessConstraints[place]
        if found.contains(where: { $0.entity == entity.index && $0.names == names }) { continue }
        found.append(
          Constraint(
            entity: entity.index, slots: entity.uniqueSlots[place], names: names, kinds: entity.layout.kinds,
            decimals: entity.uniqueSlots[place].filter { entity.layout.columns[$0] == .attribute(.decimal) },
            entities: entity.familyIndexes))
      }
    }
    return found
  }

  private static func storages(_ model: ManagedObjectModel) -> ([[LinkStorage]], Int) {
    var count = 0
    var storages = model.entities.map { entity in entity.relationships.map { _ in LinkStorage.slot(inverse: -1) } }
    for relationship in model.entities.flatMap(\.ownRelationships) {
      let (entity, place) = (relationship.entityIndex, relationship.index)
      if !relationship.isToMany {
        storages[entity][place] = .slot(inverse: count)
        if relationship.inverseIsToMany && relationship.hasInverse {
          storages[relationship.destinationIndex][relationship.inverseIndex] = .inverseSlot(forward: count)
        }
        count += 1
      } else if relationship.storesLinks {
        storages[entity][place] = .links(forward: count, backward: count + 1)
        if relationship.hasInverse && !relationship.isReflexive {
          storages[relationship.destinationIndex][relationship.inverseIndex] = .links(forward: count + 1, backward: count)
        }
        count += 2
      }
    }
    return (storages, count)
  }
}

/// A uniqueness constraint.
///
/// No two rows of its entities have the same values, unless one of the values is missing or NaN.
public struct UniqueConstraint: Sendable {
  /// The entity that declares it.
  public let entity: EntityIndex
  /// The names of its properties.
  public let names: [String]
  /// The slots of its properties.
  public let slots: [SlotIndex]
  /// The cell kinds of these slots.
  public let kinds: [CellKind]
  /// The slots with decimals, among ``slots``.
  let decimals: [SlotIndex]
  /// The entities to which it applies, ascending: the declaring entity and its subentities.
  public let entities: [EntityIndex]
}
