import HoldfastStore

/// The links of transient relationships of released objects. Confined to the context.
///
/// No caller references these objects any more, but they still exist in the store. An object that is recreated for the same key gets the
/// links back.
final class ParkedLinks {
  private struct Place: Hashable {
    let root: EntityIndex
    let key: ObjectKey
  }

  private var links: [Place: (entity: EntityIndex, states: [ToManyState])] = [:]

  var isEmpty: Bool { links.isEmpty }

  deinit { removeAll() }

  func park(_ root: EntityIndex, _ key: ObjectKey, _ entity: EntityIndex, _ states: [ToManyState]) {
    links[Place(root: root, key: key)] = (entity, states)
  }

  /// The entity of a released object with links.
  func entity(_ root: EntityIndex, _ key: ObjectKey) -> EntityIndex? { links.isEmpty ? nil : links[Place(root: root, key: key)]?.entity }

  /// Removes and returns the links of an object, by index; empty if it has none. The caller owns them.
  func take(_ root: EntityIndex, _ key: ObjectKey) -> [ToManyState] {
    links.isEmpty ? [] : links.removeValue(forKey: Place(root: root, key: key))?.states ?? []
  }

  func removeAll() {
    // Most contexts park no links, and needn't create the types for iterating over them.
    if links.isEmpty { return }
    for parked in links.values { for state in parked.states { state.destroy() } }
    links = [:]
  }
}

extension ContextCore {
  /// The object at the other end of a transient relationship's link, recreated if it was released and has parked links.
  ///
  /// Nil if the object isn't registered and has no parked links, which can't happen for a relationship with an inverse.
  func linked(_ entity: EntityIndex, _ key: ObjectKey) -> ManagedObject? {
    if let registered = registered(entity, key) { return registered }
    return parkedLinks.entity(graph.entities[entity].root, key).map { make($0, key) }
  }

  /// The destination of a transient relationship's link; nil if it is being deleted or was deleted.
  func linkedTarget(_ entity: EntityIndex, _ key: ObjectKey) -> ManagedObject? {
    let known = linked(entity, key)
    return withExtendedLifetime(known) { target(entity, key) }
  }
}
