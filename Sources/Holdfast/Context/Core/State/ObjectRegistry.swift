import HoldfastStore
import HoldfastSupport

/// The registered objects of a context, by entity and key. It doesn't keep them alive.
///
/// Entities with the same root share one map, because their keys are unique together. The index of any of these entities finds an object.
struct ObjectRegistry: ~Copyable {
  private let graph: GraphPlan
  /// One map for each entity, by entity index. Only the maps of root entities are used.
  private let maps: FixedArray<IdentityMap>

  init(_ graph: GraphPlan) {
    self.graph = graph
    maps = FixedArray(repeating: IdentityMap(), count: graph.model.entities.count)
  }

  deinit {
    for root in maps.indices { maps[root].destroy() }
    maps.deallocate()
  }

  @inline(__always) private func root(_ entity: EntityIndex) -> Int { graph.entities[entity].root.rawValue }

  /// The object with a key; nil if it isn't registered.
  @inline(__always) func object(_ entity: EntityIndex, _ key: ObjectKey) -> ManagedObject? { maps[root(entity)].object(key) }

  /// Registers an object whose key isn't registered.
  func insert(_ object: ManagedObject) { maps[root(object.flags.entityIndex)].insert(object) }

  /// Removes an object if it is registered.
  func remove(_ object: ManagedObject) { maps[root(object.flags.entityIndex)].remove(object) }

  /// Gives a registered object a key that isn't registered.
  func rekey(_ object: ManagedObject, to key: ObjectKey) { maps[root(object.flags.entityIndex)].rekey(object, to: key) }

  /// The objects of an entity and of all entities with the same root.
  func objects(sharingRootOf entity: EntityIndex) -> [ManagedObject] { maps[root(entity)].objects }

  /// The objects of an entity and its subentities.
  func objects(_ entity: EntityIndex) -> [ManagedObject] {
    let family = graph.entities[entity].family
    return objects(sharingRootOf: entity).filter { family.contains($0.flags.entityIndex) }
  }

  /// The number of positions of the map of an entity, and its capacity. Loops over objects pass all positions.
  func extent(sharingRootOf entity: EntityIndex) -> (positions: Int, capacity: Int) {
    (maps[root(entity)].denseCount, maps[root(entity)].denseCapacity)
  }

  /// All objects, grouped by root entity.
  var objects: [ManagedObject] { maps.indices.flatMap { maps[$0].objects } }

  /// Prepares for inserting a number of objects of an entity.
  func reserve(_ count: Int, _ entity: EntityIndex) { if count > 0 { maps[root(entity)].reserve(count) } }

  /// Prepares for looking up or inserting an object for each row of a group.
  func prepare(for group: RowGroup) {
    maps[root(group.entity)].reserve(group.count)
    maps[root(group.entity)].touch(group)
  }

  /// Prepares for looking up and reading some destinations of a relationship, as far as they are registered.
  func prepare(for targets: ArraySlice<ObjectKey>, of entity: EntityIndex) { maps[root(entity)].touch(targets) }
}
