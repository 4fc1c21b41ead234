import Holdfast
import HoldfastStore

/// The expected graph in dictionaries. It implements the rules, without rows, faults or stores.
struct PlainGraph {
  struct Thing {
    var entity: EntityIndex
    var values: [String: StoreValue] = [:]
    /// Targets by relationship; at most one for a to-one relationship.
    var links: [String: [Int]] = [:]
  }

  let model: ManagedObjectModel
  var things: [Int: Thing] = [:]
  /// To-one relationships without inverse that point to deleted things.
  var dangling: Set<[String]> = []
  /// Saved things that were deleted since the last save, with their last values.
  var deleted: [Int: Thing] = [:]
  /// To-one relationships to deleted things that may deny the deletion, until they are set again.
  var held: [[String]: Int] = [:]

  typealias Relationship = ManagedObjectModel.Relationship

  func targets(_ tag: Int, _ relationship: Relationship) -> [Int] { things[tag]?.links[relationship.name] ?? [] }

  func kind(_ entity: EntityIndex) -> [Int] {
    things.filter { model.entities[$0.value.entity].isKind(of: model.entities[entity]) }.keys.sorted()
  }

  mutating func set(_ tag: Int, _ relationship: Relationship, _ target: Int?) {
    held[[String(tag), relationship.name]] = nil
    if targets(tag, relationship).first == target { return }
    for former in targets(tag, relationship) { unlink(tag, relationship, former) }
    dangling.remove([String(tag), relationship.name])
    guard let target else { return }
    if let inverse = model.inverse(of: relationship), !inverse.isToMany {
      for rival in targets(target, inverse) { unlink(target, inverse, rival) }
    }
    link(tag, relationship, target)
  }

  /// Adds a target at a position, or at the end. If a target can have only one owner, it is removed from the previous one.
  mutating func add(_ tag: Int, _ relationship: Relationship, _ target: Int, at place: Int? = nil) {
    if targets(tag, relationship).contains(target) { return }
    if let inverse = model.inverse(of: relationship), !inverse.isToMany {
      for former in targets(target, inverse) { unlink(target, inverse, former) }
    }
    link(tag, relationship, target, at: place)
  }

  private mutating func link(_ tag: Int, _ relationship: Relationship, _ target: Int, at place: Int? = nil) {
    let count = targets(tag, relationship).count
    held[[String(tag), relationship.name]] = nil
    if let inverse = model.inverse(of: relationship) { held[[String(target), inverse.name]] = nil }
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

  /// Deletes a thing and applies the delete rules.
  ///
  /// - Parameter saved: the contents of the store.
  mutating func delete(_ tag: Int, _ saved: PlainGraph) {
    var round = [tag]
    var gone: Set<Int> = []
    while let next = round.popLast() {
      guard gone.insert(next).inserted, let thing = things[next] else { continue }
      for relationship in model.entities[thing.entity].relationships where relationship.deleteRule == .cascade {
        round += targets(next, relationship)
      }
    }
    for tag in gone {
      if saved.things[tag] != nil { deleted[tag] = things[tag] }
      things[tag] = nil
    }
    for (tag, thing) in things {
      for relationship in model.entities[thing.entity].relationships {
        let lost = targets(tag, relationship).contains { gone.contains($0) }
        if !lost { continue }
        if !relationship.isToMany && !relationship.hasInverse { dangling.insert([String(tag), relationship.name]) }
        if !relationship.isToMany, model.inverse(of: relationship)?.deleteRule == .deny, let target = targets(tag, relationship).first,
          deleted[target] != nil
        {
          held[[String(tag), relationship.name]] = target
        }
        things[tag]?.links[relationship.name]?.removeAll { gone.contains($0) }
      }
    }
  }

  // MARK: Comparisons

  /// The things that are in both graphs and have visible changes. For a relationship without inverse, the deletion of a target isn't a
  /// change.
  ///
  /// - Parameter isSaved: whether the reader sees saved changes. Then this exception only applies to to-one relationships.
  func visiblyChanged(since before: PlainGraph, isSaved: Bool = false) -> [Int] {
    things.keys.filter { tag in
      guard let new = things[tag], let old = before.things[tag] else { return false }
      let names = Set(new.values.keys).union(old.values.keys)
      if names.contains(where: { new.values[$0] ?? .null != old.values[$0] ?? .null }) { return true }
      return model.entities[new.entity].relationships.contains { relationship in
        var (now, then) = (new.links[relationship.name] ?? [], old.links[relationship.name] ?? [])
        if !relationship.hasInverse && !(isSaved && relationship.isToMany) {
          then.removeAll { things[$0] == nil }
          now.removeAll { before.deleted[$0] != nil }
        }
        if !relationship.isOrdered { (now, then) = (now.sorted(), then.sorted()) }
        return now != then
      }
    }.sorted()
  }

  // MARK: Saving

  /// The errors that a save must report, each as tag, property and code.
  var failures: [String] {
    var found: [String] = []
    for (tag, thing) in things {
      for relationship in model.entities[thing.entity].relationships {
        if let code = failure(tag, relationship) { found.append("\(tag).\(relationship.name) \(code.rawValue)") }
      }
    }
    for (tag, thing) in deleted {
      for relationship in model.entities[thing.entity].relationships
      where relationship.deleteRule == .deny
        && thing.links[relationship.name, default: []].contains(where: { holds($0, tag, relationship) })
      {
        found.append("\(tag).\(relationship.name) \(PersistenceError.Code.deniedDelete.rawValue)")
      }
    }
    return found.sorted()
  }

  private func failure(_ tag: Int, _ relationship: Relationship) -> PersistenceError.Code? {
    let count = targets(tag, relationship).count
    if !relationship.isToMany {
      let isHeld = held[[String(tag), relationship.name]] != nil
      return relationship.isOptional || isHeld || count > 0 ? nil : .missingMandatoryValue
    }
    if count == 0 && relationship.isOptional { return nil }
    if count < relationship.minCount { return .tooFewObjects }
    return relationship.maxCount > 0 && count > relationship.maxCount ? .tooManyObjects : nil
  }

  /// Whether a thing denies the deletion of another, because its relationship hasn't been set to another one since.
  private func holds(_ target: Int, _ tag: Int, _ relationship: Relationship) -> Bool {
    guard things[target] != nil else { return false }
    guard let inverse = model.inverse(of: relationship), !inverse.isToMany else { return true }
    return held[[String(target), inverse.name]] == tag
  }

  /// The current contents were saved.
  mutating func settle() {
    deleted = [:]
    held = [:]
  }
}
