import HoldfastStore

/// The changed objects that may reference some objects by relationships without an inverse.
///
/// One pass over the changed objects finds them for all of these objects. A pass for each would take time proportional to the square of
/// their number.
struct ForeignReferences {
  /// By the root entity and the key of the referenced object.
  private var owners: [EntityIndex: [ObjectKey: [ManagedObject]]] = [:]
  /// The relationships without an inverse that can reference the objects, by the owner's entity; empty if there are none.
  private var relationships: [[ManagedObjectModel.Relationship]] = []

  init(to objects: [ManagedObject], in context: ContextCore) {
    if objects.isEmpty { return }
    for object in objects { owners[object.plan.root, default: [:]][object.objectKey] = [] }
    let relationships = context.entities.map { entity in
      (entity.relationships + entity.transientRelationships).filter { relationship in
        !relationship.hasInverse && owners[context.graph.entities[relationship.destinationIndex].root] != nil
      }
    }
    if relationships.allSatisfy(\.isEmpty) { return }
    self.relationships = relationships
    for owner in context.changes.objects { note(owner) }
  }

  /// Notes what an object references now.
  mutating func note(_ owner: ManagedObject) {
    if relationships.isEmpty || owner.isDeleted { return }
    let graph = owner.context.graph
    for relationship in relationships[owner.flags.entityIndex.rawValue] {
      let root = graph.entities[relationship.destinationIndex].root
      owner.forEachKnownKey(relationship) { note(owner, root, $0) }
    }
  }

  private mutating func note(_ owner: ManagedObject, _ root: EntityIndex, _ key: ObjectKey) {
    owners[root]?[key]?.append(owner)
  }

  /// Notes that an object references another one from now on.
  mutating func note(_ owner: ManagedObject, referencing object: ManagedObject) { note(owner, object.plan.root, object.objectKey) }

  /// The objects that may reference one of the objects, each once.
  func owners(of object: ManagedObject) -> [ManagedObject] {
    var seen: Set<ObjectIdentifier> = []
    return owners[object.plan.root]?[object.objectKey]?.filter { seen.insert(ObjectIdentifier($0)).inserted } ?? []
  }
}

extension ManagedObject {
  /// Calls a closure with the keys of a relationship's destinations that are in memory. Sends no store request.
  fileprivate final func forEachKnownKey(_ relationship: ManagedObjectModel.Relationship, _ body: (ObjectKey) -> Void) {
    if relationship.isToMany || relationship.isTransient {
      _ = knows(relationship) { key in
        body(key)
        return false
      }
      // A destination can be added to a list that isn't in memory.
      if !relationship.isTransient, let toMany { for key in toMany[relationship.toManyIndex].added { body(key) } }
    } else if let key = row?.destinationKey(relationship.slot) {
      body(key)
    }
  }
}
