/// The transient links of objects that are gone while other objects are linked to them: no caller holds them, but they are in the
/// store, and the next object of the same key has the same links. Confined to the context.
final class ParkedLinks {
  private struct Place: Hashable {
    let root: Int
    let key: Int64
  }

  private var links: [Place: (entity: Int, states: [ToManyState])] = [:]

  var isEmpty: Bool { links.isEmpty }

  deinit { removeAll() }

  func park(_ root: Int, _ key: Int64, _ entity: Int, _ states: [ToManyState]) {
    links[Place(root: root, key: key)] = (entity, states)
  }

  /// The entity of an object that has left links.
  func entity(_ root: Int, _ key: Int64) -> Int? { links.isEmpty ? nil : links[Place(root: root, key: key)]?.entity }

  /// The links of an object, by index, which belong to the caller from now on; empty for none.
  func take(_ root: Int, _ key: Int64) -> [ToManyState] {
    links.isEmpty ? [] : links.removeValue(forKey: Place(root: root, key: key))?.states ?? []
  }

  func removeAll() {
    for parked in links.values { for state in parked.states { state.destroy() } }
    links = [:]
  }
}

extension ManagedObjectContext {
  /// The object at the other end of a transient link: registered, or one that takes up the links of one that is gone; nil where there is
  /// neither, which cannot be for a relationship with an inverse.
  func linked(_ entity: Int, _ key: Int64) -> ManagedObject? {
    if let registered = registered(entity, key) { return registered }
    return parkedLinks.entity(graph.entities[entity].root, key).map { make($0, key) }
  }

  /// The object that a transient link leads to; nil when it is being deleted or was.
  func linkedTarget(_ entity: Int, _ key: Int64) -> ManagedObject? {
    let known = linked(entity, key)
    return withExtendedLifetime(known) { target(entity, key, nil, position: 0) }
  }
}
