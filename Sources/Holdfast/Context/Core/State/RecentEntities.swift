import HoldfastStore

/// The entities that were found last. Consecutive insertions and requests mostly use the same one.
struct RecentEntities {
  /// The class of the last inserted object, and its entity.
  private var inserted: (type: ObjectIdentifier, entity: EntityIndex)?
  /// The entity that was last found by its name.
  private var named: ManagedObjectModel.Entity?

  /// The entity of a class; nil unless the last inserted object is of the class.
  @inline(__always) func entity(of type: ManagedObject.Type) -> EntityIndex? {
    if let inserted, inserted.type == ObjectIdentifier(type) { return inserted.entity }
    return nil
  }

  mutating func note(_ entity: EntityIndex, of type: ManagedObject.Type) { inserted = (ObjectIdentifier(type), entity) }

  /// The entity with a name; nil unless it was the last one. Comparing names is faster than hashing one.
  @inline(__always) func entity(named name: String) -> ManagedObjectModel.Entity? {
    if let named, named.name == name { return named }
    return nil
  }

  mutating func note(_ entity: ManagedObjectModel.Entity) { named = entity }
}
