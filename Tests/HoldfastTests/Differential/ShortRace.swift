import HoldfastStore

@testable import Holdfast

/// A context has read a part of four objects. It and another context change something, the other one saves, and then the first.
///
/// Everything follows from a number, so that all races can be run.
struct ShortRace: CustomStringConvertible {
  /// The kind of relationship from `a` to `b`. Without `self` in its name, they are of two entities.
  enum Shape: String, CaseIterable {
    case oneToOne, oneToMany, manyToOne, manyToMany, orderedToOne, orderedToMany, oneToOneSelf, manyToManySelf, tree
  }

  /// What a context changes.
  enum Step: String, CaseIterable {
    case link, unlink, linkToOtherB, linkOtherA, deleteA, deleteB, deleteOtherA, deleteOtherB, changeA, changeB
    /// New objects with the unique value of `a`, or with one that both contexts use.
    case insertALinkedToB, insertALinkedToOtherB, insertNewLinkedToB, insertNewLinkedToNew
  }

  /// How the two contexts are related. Another context that is the parent doesn't save its change before its child does.
  enum Relation: String, CaseIterable {
    case siblings, childOfSibling, childOfOther
  }

  private static let policies: [PolicyRace.Policy] = [.storeTrump, .objectTrump, .overwrite, .rollback]
  private static let choices = [policies.count, 2, 33, Step.allCases.count, Step.allCases.count, 2, 2, 2, Relation.allCases.count]

  /// The number of races of a shape.
  static let count = choices.reduce(1, *)

  let shape: Shape
  private let policy: PolicyRace.Policy
  /// Whether `a` and `b` are linked when the race begins.
  private let isLinked: Bool
  /// 32 if the context has all objects as they were saved. Otherwise it has refreshed them, and each bit is something that it has read.
  private let read: Int
  private let own: Step
  private let foreign: Step
  /// Whether the context changes the link from `b`.
  private let isFromB: Bool
  /// Whether the other context saves before the change of this one.
  private let isLate: Bool
  /// Whether the context merges what the other one saves.
  private let merges: Bool
  private let relation: Relation

  init(_ shape: Shape, _ number: Int) {
    var rest = number
    let numbers = ShortRace.choices.map { count in
      defer { rest /= count }
      return rest % count
    }
    self.shape = shape
    policy = ShortRace.policies[numbers[0]]
    (isLinked, read) = (numbers[1] == 1, numbers[2])
    (own, foreign) = (Step.allCases[numbers[3]], Step.allCases[numbers[4]])
    (isFromB, isLate, merges) = (numbers[5] == 1, numbers[6] == 1, numbers[7] == 1)
    relation = Relation.allCases[numbers[8]]
  }

  var description: String {
    "\(shape), \(isLinked ? "" : "not ")linked, read \(read == 32 ? "all" : String(read, radix: 2)), "
      + "\(isLate ? "\(foreign) of the other and then " : "")\(own)\(isFromB ? " from b" : "")"
      + "\(isLate ? "" : " and then \(foreign) of the other"), \(merges ? "merges, " : "")\(policy), \(relation)"
  }

  // MARK: Model

  static func model(_ shape: Shape) throws -> ManagedObjectModel {
    func entity(_ name: String, _ relationships: [RelationshipDescription]) -> EntityDescription {
      EntityDescription(
        name, attributes: [AttributeDescription("tag", .integer64), AttributeDescription("code", .integer64)],
        relationships: relationships, uniquenessConstraints: [["code"]])
    }
    func pair(_ there: RelationshipDescription, _ back: RelationshipDescription) -> [EntityDescription] {
      [entity("A", [there]), entity("B", [back])]
    }
    let entities =
      switch shape {
      case .oneToOne: pair(.toOne("there", to: "B", inverse: "back"), .toOne("back", to: "A", inverse: "there"))
      case .oneToMany: pair(.toMany("there", to: "B", inverse: "back"), .toOne("back", to: "A", inverse: "there"))
      case .manyToOne: pair(.toOne("there", to: "B", inverse: "back"), .toMany("back", to: "A", inverse: "there"))
      case .manyToMany: pair(.toMany("there", to: "B", inverse: "back"), .toMany("back", to: "A", inverse: "there"))
      case .orderedToOne:
        pair(.toMany("there", to: "B", inverse: "back", isOrdered: true), .toOne("back", to: "A", inverse: "there"))
      case .orderedToMany:
        pair(.toMany("there", to: "B", inverse: "back", isOrdered: true), .toMany("back", to: "A", inverse: "there"))
      case .oneToOneSelf: [entity("A", [.toOne("there", to: "A", inverse: "there")])]
      case .manyToManySelf: [entity("A", [.toMany("there", to: "A", inverse: "there")])]
      case .tree: [entity("A", [.toMany("there", to: "A", inverse: "back"), .toOne("back", to: "A", inverse: "there")])]
      }
    return try ManagedObjectModel(entities: entities)
  }

  // MARK: Race

  /// Runs the race in a new place.
  ///
  /// - Throws: A ``RaceFault`` if what is saved isn't as it must be.
  func run(_ place: TestStore.Place, _ model: ManagedObjectModel) throws {
    let other = try place.context(), parent = relation == .childOfSibling ? try place.context() : other
    let context = relation == .siblings ? try place.context() : ManagedObjectContext(parent: parent)
    let family = Array(sequence(first: context) { $0.parent })
    for one in family { one.mergePolicy = policy.policy }
    for one in family where one !== other { one.automaticallyMergesChanges = merges }
    if relation != .childOfOther { other.mergePolicy = .mergeByPropertyObjectTrump }
    let objects = try ["A", "B", "A", "B"].map { name in
      try context.insert(entityNamed: model.entities.count == 1 ? "A" : name)
    }
    for (number, object) in objects.enumerated() {
      for name in ["tag", "code"] { try object.setValue(.int64(Int64(number)), forKey: name) }
    }
    if isLinked { try link(objects[0], objects[1], true, isFromB: false) }
    for one in family { try one.save() }
    try prepare(context, objects)
    let changed = try !isLate && change(own, objects, context, tag: 10, isFromB: isFromB)
    _ = try change(foreign, objects.map { try other.object(with: $0.objectID) }, other, tag: 20, isFromB: false)
    if relation != .childOfOther { try other.save() }
    guard try isLate ? change(own, objects, context, tag: 10, isFromB: isFromB) : changed else { return }
    let before = try RaceContents(place.context(), model, isSound: true)
    for one in family {
      let expectation = relation == .siblings ? try SaveExpectation(one, policy, before) : nil
      if try !save(one, place, model, before) { return }
      if one.hasChanges { throw RaceFault("The context has changes after the save.") }
      try expectation?.check(RaceContents(place.context(), model))
    }
    let after = try RaceContents(place.context(), model, isSound: true)
    for one in family.reversed() {
      try one.refreshAllObjects()
      let own = try RaceContents(one, model)
      if own != after { throw RaceFault("The context differs: \(own.differences(from: after))") }
    }
  }

  /// Saves. Returns false if the save was refused because the policy can't insert an object again that the context hasn't read.
  private func save(
    _ context: ManagedObjectContext, _ place: TestStore.Place, _ model: ManagedObjectModel, _ before: RaceContents
  ) throws -> Bool {
    do { try context.save() } catch let error as PersistenceError where error.code == .conflict {
      if policy == .storeTrump || policy == .rollback { throw RaceFault("The policy didn't resolve the conflict: \(error)") }
      let after = try RaceContents(place.context(), model, isSound: true)
      if after != before { throw RaceFault("The refused save has changed objects: \(after.differences(from: before))") }
      return false
    }
    return true
  }

  private func prepare(_ context: ManagedObjectContext, _ objects: [ManagedObject]) throws {
    if read == 32 { return }
    try context.refreshAllObjects()
    context.firesFaultsInBatches = read & 16 == 0
    if read & 1 != 0 { _ = try objects[0].value(forKey: "tag") }
    if read & 2 != 0 { _ = try objects[1].value(forKey: "tag") }
    if read & 4 != 0 { _ = try targets(of: objects[0]) }
    if read & 8 != 0 { _ = try targets(of: objects[1]) }
    if read & 16 != 0 { for object in objects[2...] { _ = try targets(of: object) } }
  }

  private func targets(of object: ManagedObject) throws -> [[ManagedObject]] {
    try object.entity.relationships.map { try RaceContents.targets(object, $0) }
  }

  /// Changes something. Returns false if the context finds an object that it can't change.
  private func change(
    _ step: Step, _ objects: [ManagedObject], _ context: ManagedObjectContext, tag: Int64, isFromB: Bool
  ) throws -> Bool {
    do {
      switch step {
      case .link: try link(objects[0], objects[1], true, isFromB: isFromB)
      case .unlink: try link(objects[0], objects[1], false, isFromB: isFromB)
      case .linkToOtherB: try link(objects[0], objects[3], true, isFromB: isFromB)
      case .linkOtherA: try link(objects[2], objects[1], true, isFromB: isFromB)
      case .deleteA: context.delete(objects[0])
      case .deleteB: context.delete(objects[1])
      case .deleteOtherA: context.delete(objects[2])
      case .deleteOtherB: context.delete(objects[3])
      case .changeA: try objects[0].setValue(.int64(tag), forKey: "tag")
      case .changeB: try objects[1].setValue(.int64(tag), forKey: "tag")
      case .insertALinkedToB: try link(insert(like: objects[0], 0, context, tag), objects[1], true, isFromB: isFromB)
      case .insertALinkedToOtherB: try link(insert(like: objects[0], 0, context, tag), objects[3], true, isFromB: isFromB)
      case .insertNewLinkedToB: try link(insert(like: objects[0], 8, context, tag), objects[1], true, isFromB: isFromB)
      case .insertNewLinkedToNew:
        let a = try insert(like: objects[0], 8, context, tag), b = try insert(like: objects[1], 9, context, tag)
        try link(a, b, true, isFromB: isFromB)
      }
      return true
    } catch let error as PersistenceError where error.code == .missingObject || error.code == .unreadValues {
      return false
    }
  }

  private func insert(like object: ManagedObject, _ code: Int64, _ context: ManagedObjectContext, _ tag: Int64) throws -> ManagedObject {
    let new = try context.insert(entityNamed: object.entity.name)
    try new.setValue(.int64(code), forKey: "code")
    try new.setValue(.int64(tag), forKey: "tag")
    return new
  }

  private func link(_ a: ManagedObject, _ b: ManagedObject, _ isAddition: Bool, isFromB: Bool) throws {
    let names = a.entity.relationships.map(\.name) + b.entity.relationships.map(\.name)
    let (object, target, name) = isFromB ? (b, a, names.contains("back") ? "back" : "there") : (a, b, "there")
    guard let relationship = object.entity.relationships.first(where: { $0.name == name }) else { return }
    if !relationship.isToMany {
      if isAddition || object.toOne(relationship) === target { object.setToOne(relationship, isAddition ? target : nil) }
    } else if isAddition {
      try object.toMany(forKey: name).insert(target)
    } else {
      try object.toMany(forKey: name).remove(target)
    }
  }
}
