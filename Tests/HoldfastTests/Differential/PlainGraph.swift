import Holdfast

/// What a graph should be, in dictionaries: knows the rules, and nothing of rows, faults or stores.
struct PlainGraph {
  struct Thing {
    var entity: Int
    var values: [String: StoreValue] = [:]
    /// Targets by relationship; at most one of a to-one.
    var links: [String: [Int]] = [:]
  }

  let model: ManagedObjectModel
  var things: [Int: Thing] = [:]
  /// To-one relationships without inverse that lead to what was deleted.
  var dangling: Set<[String]> = []

  typealias Relationship = ManagedObjectModel.Relationship

  func targets(_ tag: Int, _ relationship: Relationship) -> [Int] { things[tag]?.links[relationship.name] ?? [] }

  func kind(_ entity: Int) -> [Int] {
    things.filter { model.entities[$0.value.entity].isKind(of: model.entities[entity]) }.keys.sorted()
  }

  mutating func set(_ tag: Int, _ relationship: Relationship, _ target: Int?) {
    if targets(tag, relationship).first == target { return }
    for former in targets(tag, relationship) { unlink(tag, relationship, former) }
    dangling.remove([String(tag), relationship.name])
    guard let target else { return }
    if let inverse = model.inverse(of: relationship), !inverse.isToMany {
      for rival in targets(target, inverse) { unlink(target, inverse, rival) }
    }
    link(tag, relationship, target)
  }

  /// Adds a target at a place, or last. A target that belongs to one object only leaves another.
  mutating func add(_ tag: Int, _ relationship: Relationship, _ target: Int, at place: Int? = nil) {
    if targets(tag, relationship).contains(target) { return }
    if let inverse = model.inverse(of: relationship), !inverse.isToMany {
      for former in targets(target, inverse) { unlink(target, inverse, former) }
    }
    link(tag, relationship, target, at: place)
  }

  private mutating func link(_ tag: Int, _ relationship: Relationship, _ target: Int, at place: Int? = nil) {
    let count = targets(tag, relationship).count
    things[tag]?.links[relationship.name, default: []].insert(target, at: place ?? count)
    guard let inverse = model.inverse(of: relationship), !(relationship.isReflexive && tag == target) else { return }
    things[target]?.links[inverse.name, default: []].append(tag)
  }

  mutating func unlink(_ tag: Int, _ relationship: Relationship, _ target: Int) {
    things[tag]?.links[relationship.name]?.removeAll { $0 == target }
    if let inverse = model.inverse(of: relationship) { things[target]?.links[inverse.name]?.removeAll { $0 == tag } }
  }

  mutating func move(_ tag: Int, _ relationship: Relationship, from: Int, to: Int) {
    guard let moved = things[tag]?.links[relationship.name]?.remove(at: from) else { return }
    things[tag]?.links[relationship.name]?.insert(moved, at: to)
  }

  /// Deletes a thing and what its rules say.
  mutating func delete(_ tag: Int) {
    var round = [tag]
    var gone: Set<Int> = []
    while let next = round.popLast() {
      guard gone.insert(next).inserted, let thing = things[next] else { continue }
      for relationship in model.entities[thing.entity].relationships where relationship.deleteRule == .cascade {
        round += targets(next, relationship)
      }
    }
    for tag in gone { things[tag] = nil }
    for (tag, thing) in things {
      for relationship in model.entities[thing.entity].relationships {
        let lost = targets(tag, relationship).contains { gone.contains($0) }
        if !lost { continue }
        if !relationship.isToMany && !relationship.hasInverse { dangling.insert([String(tag), relationship.name]) }
        things[tag]?.links[relationship.name]?.removeAll { gone.contains($0) }
      }
    }
  }
}
