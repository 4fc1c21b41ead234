import Foundation
import HoldfastStore
import HoldfastStoreConformance
import Synchronization
import Testing

@testable import Holdfast

/// What each merge policy makes of changes by two contexts. The first context, *ours*, saves last.
@Suite struct MergePolicyTests {
  /// Fido in two contexts. Ours has the policy.
  struct Two {
    let place: TestStore.Place
    let ours: ManagedObjectContext
    let theirs: ManagedObjectContext
    let fido: Dog
    let theirFido: Dog

    init(_ store: TestStore, _ policy: MergePolicy, _ setUp: (ManagedObjectContext, Dog) throws -> Void = { _, _ in }) throws {
      place = try store.makePlace()
      let setup = try place.context()
      try setUp(setup, setup.dog("Fido", age: 3))
      try setup.save()
      (ours, theirs) = try place.twoContexts(policy)
      fido = try #require(try ours.one(Dog.self) { $0.name == "Fido" })
      theirFido = try theirs.existingDog(fido.objectID)
      _ = fido.age
    }

    /// Fido as a new context reads it; nil if it was deleted.
    func saved() throws -> Dog? {
      try place.close()
      return try place.context().one(Dog.self) { $0.age >= 0 }
    }
  }

  enum Policy: String, CaseIterable, Sendable {
    case storeTrump, objectTrump, overwrite, rollback

    var policy: MergePolicy {
      switch self {
      case .storeTrump: .mergeByPropertyStoreTrump
      case .objectTrump: .mergeByPropertyObjectTrump
      case .overwrite: .overwrite
      case .rollback: .rollback
      }
    }

    /// What a closure returns to decide the same.
    var resolution: MergeResolution {
      switch self {
      case .storeTrump: .mergeByPropertyStoreTrump
      case .objectTrump: .mergeByPropertyObjectTrump
      case .overwrite: .overwrite
      case .rollback: .rollback
      }
    }

    var prefersOurs: Bool { self == .objectTrump || self == .overwrite }
  }

  // MARK: Values

  @Test(arguments: TestStore.allCases, Policy.allCases)
  func attributesAreMergedAsThePolicySays(_ store: TestStore, _ policy: Policy) throws {
    let two = try Two(store, policy.policy)
    two.theirFido.name = "Theirs"
    two.theirFido.notes = "by them"
    try two.theirs.save()
    two.fido.name = "Ours"
    two.fido.weight = 7.5
    try two.ours.save()
    let name = policy.prefersOurs ? "Ours" : "Theirs"
    let notes = policy == .overwrite ? nil : "by them", weight = policy == .rollback ? nil : 7.5
    #expect(two.fido.name == name && two.fido.notes == notes && two.fido.weight == weight && two.fido.age == 3)
    #expect(!two.ours.hasChanges && !two.fido.hasChanges)
    let saved = try #require(try two.saved())
    #expect(saved.name == name && saved.notes == notes && saved.weight == weight && saved.age == 3)
  }

  /// Numbers have any bits, also those that mark the name of an external file in another slot.
  @Test(arguments: TestStore.allCases, Policy.allCases)
  func numbersWithAnyBitsAreMerged(_ store: TestStore, _ policy: Policy) throws {
    for (weight, chip) in [(0.1, Int64(-1)), (-0.3, 3_000_000_000), (.pi, .min + 1)] {
      let two = try Two(store, policy.policy)
      two.theirFido.notes = "by them"
      try two.theirs.save()
      (two.fido.weight, two.fido.chip) = (weight, chip)
      try two.ours.save()
      let isKept = policy != .rollback, saved = try #require(try two.saved())
      #expect(two.fido.weight == (isKept ? weight : nil) && two.fido.chip == (isKept ? chip : nil))
      #expect(saved.weight == (isKept ? weight : nil) && saved.chip == (isKept ? chip : nil))
    }
  }

  @Test(arguments: TestStore.allCases) func aPolicyOfItsOwnReceivesNumbersWithAnyBits(_ store: TestStore) throws {
    let seen = Mutex<[[String: StoreValue]]>([])
    let two = try Two(
      store,
      .custom { conflict in
        seen.withLock { $0 = [conflict.base ?? [:], conflict.ours ?? [:], conflict.theirs ?? [:]] }
        return .values(["weight": .double(0.3)])
      }
    ) { _, fido in (fido.weight, fido.chip) = (0.1, -1) }
    two.theirFido.weight = 0.2
    try two.theirs.save()
    two.fido.weight = -0.7
    try two.ours.save()
    #expect(seen.withLock { $0.map { $0["weight"] } } == [.double(0.1), .double(-0.7), .double(0.2)])
    #expect(seen.withLock { $0.allSatisfy { $0["chip"] == .int64(-1) } })
    #expect(try two.saved()?.weight == 0.3)
  }

  @Test(arguments: TestStore.allCases, Policy.allCases)
  func aToOneRelationshipIsMergedAtBothEnds(_ store: TestStore, _ policy: Policy) throws {
    let two = try Two(store, policy.policy) { context, fido in
      fido.owner = context.person("Ann")
      context.person("Bob")
      context.person("Cleo")
    }
    let people = try two.ours.fetch(FetchRequest<Person>(sortedBy: [.ascending(\.name)]))
    #expect(people.map { $0.dogs.count } == [1, 0, 0])
    two.theirFido.owner = try two.theirs.one(Person.self) { $0.name == "Bob" }
    try two.theirs.save()
    two.fido.owner = people[2]
    try two.ours.save()
    let owner = policy.prefersOurs ? 2 : 1
    #expect(two.fido.owner === people[owner])
    #expect(people.map { $0.dogs.count } == (0..<3).map { $0 == owner ? 1 : 0 })
    let saved = try #require(try two.saved())
    #expect(saved.owner?.name == people[owner].name && saved.owner?.dogs.contains(saved) == true)
  }

  @Test(arguments: TestStore.allCases, Policy.allCases)
  func anUntouchedRelationshipFollowsTheOtherSideButWhenOverwritten(_ store: TestStore, _ policy: Policy) throws {
    let two = try Two(store, policy.policy) { context, fido in
      fido.owner = context.person("Ann")
      context.person("Bob")
    }
    let people = try two.ours.fetch(FetchRequest<Person>(sortedBy: [.ascending(\.name)]))
    #expect(people.map { $0.dogs.count } == [1, 0])
    two.theirFido.owner = try two.theirs.one(Person.self) { $0.name == "Bob" }
    try two.theirs.save()
    two.fido.age = 4
    try two.ours.save()
    let owner = policy == .overwrite ? 0 : 1
    #expect(two.fido.owner === people[owner] && people.map { $0.dogs.count } == (owner == 0 ? [1, 0] : [0, 1]))
    let saved = try #require(try two.saved())
    #expect(saved.owner?.name == people[owner].name && saved.age == (policy == .rollback ? 3 : 4))
  }

  @Test(arguments: TestStore.allCases, Policy.allCases)
  func aOneToOneRelationshipIsMergedAtBothEnds(_ store: TestStore, _ policy: Policy) throws {
    let two = try Two(store, policy.policy) { context, fido in
      fido.collar = context.insert(Collar.self) { $0.color = "old" }
      context.insert(Collar.self) { $0.color = "ours" }
      context.insert(Collar.self) { $0.color = "theirs" }
    }
    let collars = try two.ours.fetch(FetchRequest<Collar>(sortedBy: [.ascending(\.color)]))  // old, ours, theirs
    #expect(collars.map { $0.dog != nil } == [true, false, false])
    two.theirFido.collar = try two.theirs.one(Collar.self) { $0.color == "theirs" }
    try two.theirs.save()
    two.fido.collar = collars[1]
    try two.ours.save()
    let worn = policy.prefersOurs ? 1 : 2
    #expect(two.fido.collar === collars[worn] && collars.map { $0.dog === two.fido } == (0..<3).map { $0 == worn })
    let saved = try #require(try two.saved())
    #expect(saved.collar?.color == collars[worn].color && saved.collar?.dog === saved)
    let all = try saved.managedObjectContext.fetch(FetchRequest<Collar>(sortedBy: [.ascending(\.color)]))
    #expect(all.map { $0.dog != nil } == (0..<3).map { $0 == worn })
  }

  @Test(arguments: TestStore.allCases, Policy.allCases)
  func toManyLinksAreMergedOneByOne(_ store: TestStore, _ policy: Policy) throws {
    let two = try Two(store, policy.policy) { context, fido in
      let rex = context.dog("Rex"), bob = context.dog("Bob")
      fido.friends.insert(rex)
      fido.friends.insert(bob)
      context.dog("Ann")
      context.dog("Zoe")
    }
    func dog(_ name: String, _ context: ManagedObjectContext) throws -> Dog { try #require(try context.one(Dog.self) { $0.name == name }) }
    #expect(two.fido.friends.count == 2)
    two.theirFido.friends.insert(try dog("Ann", two.theirs))
    two.theirFido.friends.remove(try dog("Rex", two.theirs))
    try two.theirs.save()
    two.fido.friends.insert(try dog("Zoe", two.ours))
    two.fido.friends.remove(try dog("Bob", two.ours))
    try two.ours.save()
    let friends = policy == .rollback ? ["Ann", "Bob"] : ["Ann", "Zoe"]
    #expect(two.fido.friends.map(\.name).sorted() == friends)
    try two.place.close()
    let context = try two.place.context(), saved = try dog("Fido", context)
    #expect(saved.friends.map(\.name).sorted() == friends)
    #expect(try context.fetch(FetchRequest<Dog>()).filter { $0.friendOf.contains(saved) }.map(\.name).sorted() == friends)
  }

  // MARK: Deletions

  @Test(arguments: TestStore.allCases, Policy.allCases)
  func aChangedObjectThatWasDeletedIsInsertedAgainOrRemoved(_ store: TestStore, _ policy: Policy) throws {
    let two = try Two(store, policy.policy) { context, fido in fido.owner = context.person("Ann") }
    let ann = try #require(two.fido.owner)
    #expect(ann.dogs.count == 1)
    two.theirs.delete(two.theirFido)
    try two.theirs.save()
    two.fido.age = 9
    ann.city = "Rome"
    try two.ours.save()
    #expect(two.fido.isInaccessible == !policy.prefersOurs && !two.ours.hasChanges)
    #expect(ann.dogs.count == (policy.prefersOurs ? 1 : 0))
    let id = two.fido.objectID
    let saved = try two.saved()
    #expect(saved?.age == (policy.prefersOurs ? 9 : nil) && (saved.map { $0.owner?.city == "Rome" } ?? true))
    if policy.prefersOurs { #expect(saved?.objectID == id && saved?.owner?.dogs.count == 1) }
    #expect(try two.place.context().one(Person.self) { $0.name == "Ann" }?.city == "Rome")
  }

  @Test(arguments: TestStore.allCases, Policy.allCases)
  func aDeletionOfAChangedObjectIsSavedOrTakenBack(_ store: TestStore, _ policy: Policy) throws {
    let two = try Two(store, policy.policy) { context, fido in
      fido.owner = context.person("Ann")
      fido.collar = context.insert(Collar.self)
      fido.friends.insert(context.dog("Rex", age: -1))
    }
    let ann = try #require(two.fido.owner), rex = try #require(two.fido.friends.first)
    two.theirFido.name = "Theirs"
    try two.theirs.save()
    let weight = two.fido.weight
    two.fido.weight = 7.5
    two.ours.delete(two.fido)
    try two.ours.processPendingChanges()
    #expect(ann.dogs.isEmpty && rex.friendOf.isEmpty)
    try two.ours.save()
    #expect(two.fido.isInaccessible == policy.prefersOurs && !two.ours.hasChanges)
    #expect(ann.dogs.count == (policy.prefersOurs ? 0 : 1) && rex.friendOf.count == ann.dogs.count)
    let saved = try two.saved()
    #expect(saved?.name == (policy.prefersOurs ? nil : "Theirs"))
    if !policy.prefersOurs {
      #expect(saved?.owner?.name == "Ann" && saved?.friends.count == 1)
      #expect(saved?.weight == (policy == .rollback ? weight : 7.5))
    }
    // The collar was deleted by a rule and isn't in conflict.
    if let saved { #expect(saved.collar == nil) }
    #expect(try two.place.context().count(Collar.self) == 0)
  }

  @Test(arguments: TestStore.allCases, Policy.allCases)
  func anObjectThatBothDeleteIsGone(_ store: TestStore, _ policy: Policy) throws {
    let two = try Two(store, policy.policy)
    two.theirs.delete(two.theirFido)
    try two.theirs.save()
    two.ours.delete(two.fido)
    two.ours.person("Ann")
    try two.ours.save()
    #expect(try !two.ours.hasChanges && two.saved() == nil && two.place.context().count(Person.self) == 1)
  }

  // MARK: Custom policies

  @Test(arguments: TestStore.allCases)
  func aCustomPolicyReceivesAllThreeStates(_ store: TestStore) throws {
    let seen = Seen()
    let two = try Two(
      store,
      .custom { conflict in
        seen.add(conflict)
        guard case .int16(let ours)? = conflict.ours?["age"], case .int16(let theirs)? = conflict.theirs?["age"],
          case .int16(let base)? = conflict.base?["age"]
        else { return .error }
        return .values(["age": .int16(ours + theirs - base)])
      })
    two.theirFido.age += 10
    two.theirFido.notes = "kept"
    try two.theirs.save()
    two.fido.age += 1
    try two.ours.save()
    let saved = try #require(try two.saved())
    #expect(saved.age == 14 && saved.notes == "kept" && two.fido.age == 14)
    let conflict = try #require(seen.conflicts.first)
    #expect(seen.conflicts.count == 1 && conflict.kind == .update && conflict.entityName == "Dog" && conflict.objectID == two.fido.objectID)
    #expect(conflict.base?["notes"] == .null && conflict.theirs?["notes"] == .string("kept") && conflict.theirs?["owner"] == .null)
  }

  /// The object was changed on one side and deleted on the other one: deleted by ours, or by theirs.
  @Test(arguments: TestStore.allCases, [true, false])
  func aCustomPolicyDecidesAboutDeletions(_ store: TestStore, _ isOurs: Bool) throws {
    let resolutions: [MergeResolution] = [
      .mergeByPropertyStoreTrump, .mergeByPropertyObjectTrump, .overwrite, .rollback, .values(["notes": .string("by the policy")]),
    ]
    for resolution in resolutions {
      let seen = Seen()
      let two = try Two(
        store,
        .custom { conflict in
          seen.add(conflict)
          return resolution
        })
      if isOurs { two.ours.delete(two.fido) } else { two.fido.age = 10 }
      if isOurs { two.theirFido.age = 10 } else { two.theirs.delete(two.theirFido) }
      try two.theirs.save()
      try two.ours.save()
      let conflict = try #require(seen.conflicts.first), former = StoreValue.int16(3), later = StoreValue.int16(10)
      #expect(seen.conflicts.count == 1 && conflict.kind == (isOurs ? .deletedInContext : .deletedInStore))
      #expect(conflict.objectID == two.fido.objectID && conflict.existingObjectID == nil && conflict.base?["age"] == former)
      #expect(conflict.ours?["age"] == (isOurs ? nil : later) && conflict.theirs?["age"] == (isOurs ? later : nil))
      // Values keep the object, whichever side has deleted it.
      let isKept: Bool
      switch resolution {
      case .mergeByPropertyObjectTrump, .overwrite: isKept = !isOurs
      case .values: isKept = true
      default: isKept = isOurs
      }
      #expect(two.fido.isInaccessible == !isKept && !two.ours.hasChanges, "\(resolution)")
      let id = two.fido.objectID, saved = try two.saved(), notes: String? = if case .values = resolution { "by the policy" } else { nil }
      #expect(saved?.objectID == (isKept ? id : nil) && saved?.age == (isKept ? 10 : nil) && saved?.notes == notes, "\(resolution)")
    }
  }

  @Test(arguments: TestStore.allCases)
  func aPolicyThatThrowsRefusesOrAnswersNonsenseChangesNothing(_ store: TestStore) throws {
    struct Refusal: Error {}
    let answers: [@Sendable (MergeConflict) throws -> MergeResolution] = [
      { _ in throw Refusal() }, { _ in .error }, { _ in .values(["age": .string("nonsense")]) }, { _ in .values(["tail": .null]) },
      { _ in .values(["friends": .null]) }, { _ in .values(["owner": .int64(1)]) },
    ]
    for answer in answers {
      let two = try Two(store, .custom(answer)) { context, _ in context.dog("Rex", age: -1) }
      let rex = try #require(try two.ours.one(Dog.self) { $0.name == "Rex" })
      two.theirFido.age = 10
      try two.theirs.save()
      two.fido.age = 11
      rex.name = "Max"
      let error = try #require(throws: PersistenceError.self) { try two.ours.save() }
      #expect(error.code == .conflict && error.coreDataCode == 133020 && error.objectIDs == [two.fido.objectID])
      #expect(two.fido.age == 11 && two.fido.isUpdated && rex.name == "Max" && rex.isUpdated)
      #expect(!"\(error)".contains("nonsense"))
      two.ours.mergePolicy = .mergeByPropertyObjectTrump
      try two.ours.save()
      #expect(try two.saved()?.age == 11)
    }
  }

  /// Another context, which saves again at each attempt.
  private final class Rival: @unchecked Sendable {  // because each test uses it on one thread
    let dog: Dog
    var count = 0

    init(_ dog: Dog) { self.dog = dog }

    func save() throws {
      count += 1
      dog.age += 1
      try dog.managedObjectContext.save()
    }
  }

  @Test(arguments: TestStore.allCases) func aSaveThatAlwaysMeetsANewConflictGivesUp(_ store: TestStore) throws {
    let two = try Two(store, .error), rival = Rival(two.theirFido)
    try rival.save()
    two.ours.mergePolicy = .custom { _ in
      try rival.save()
      return .mergeByPropertyObjectTrump
    }
    two.fido.name = "Ours"
    let error = try #require(throws: PersistenceError.self) { try two.ours.save() }
    #expect(error.code == .conflict && error.objectIDs == [two.fido.objectID] && rival.count == 1 + 100)
    #expect(two.fido.name == "Ours" && two.fido.isUpdated)
    two.ours.mergePolicy = .mergeByPropertyObjectTrump
    try two.ours.save()
    let saved = try #require(try two.saved())
    #expect(saved.name == "Ours" && saved.age == 3 + 101)
  }

  /// The bug: it tried again as many times as it had new and changed objects, and looked at all of them each time.
  @Test(arguments: TestStore.allCases) func aLargeSaveThatAlwaysMeetsANewConflictGivesUpAsEarly(_ store: TestStore) throws {
    let two = try Two(store, .error), rival = Rival(two.theirFido)
    try rival.save()
    two.ours.mergePolicy = .custom { _ in
      try rival.save()
      return .mergeByPropertyObjectTrump
    }
    two.fido.name = "Ours"
    for number in 0..<150 { two.ours.person("Person \(number)") }
    let error = try #require(throws: PersistenceError.self) { try two.ours.save() }
    #expect(error.code == .conflict && error.objectIDs == [two.fido.objectID] && rival.count == 1 + 100)
    two.ours.mergePolicy = .mergeByPropertyObjectTrump
    try two.ours.save()
    let saved = try #require(try two.saved())
    #expect(saved.name == "Ours" && !two.ours.hasChanges)
  }

  /// Conflicts that a policy has seen.
  private final class Seen: @unchecked Sendable {  // because each test uses it on one thread
    var conflicts: [MergeConflict] = []
    func add(_ conflict: MergeConflict) { conflicts.append(conflict) }
  }

  // MARK: Failed saves

  @Test(arguments: TestStore.allCases)
  func theConflictsOfAFailedSaveCanBeResolved(_ store: TestStore) throws {
    for (policy, name) in [(MergePolicy.mergeByPropertyObjectTrump, "Ours"), (.rollback, "Theirs")] {
      let two = try Two(store, .error)
      two.theirFido.name = "Theirs"
      try two.theirs.save()
      two.fido.name = "Ours"
      two.ours.person("Ann")
      let error = try #require(throws: PersistenceError.self) { try two.ours.save() }
      #expect(throws: PersistenceError.self) { try two.ours.resolveConflicts(of: error, using: .error) }
      #expect(two.fido.name == "Ours")
      try two.ours.resolveConflicts(of: error, using: policy)
      #expect(two.fido.name == name)
      try two.ours.save()
      #expect(try two.saved()?.name == name && two.place.context().count(Person.self) == 1)
    }
  }

  @Test(arguments: TestStore.allCases)
  func changesOfSomeObjectsCanBeDiscarded(_ store: TestStore) throws {
    let two = try Two(store, .error) { context, fido in
      fido.owner = context.person("Ann")
      context.dog("Rex", age: -1, owner: fido.owner)
    }
    let rex = try #require(try two.ours.one(Dog.self) { $0.name == "Rex" }), ann = try #require(two.fido.owner)
    two.fido.name = "Changed"
    two.fido.owner = two.ours.person("Bob")
    two.ours.delete(rex)
    let new = two.ours.dog("New", age: -1, owner: ann)
    try two.ours.processPendingChanges()
    #expect(ann.dogs.map(\.name) == ["New"])
    try two.ours.discardChanges(of: [two.fido.objectID, rex.objectID, new.objectID])
    #expect(two.fido.name == "Fido" && two.fido.owner === ann && !rex.isDeleted)
    #expect(ann.dogs.map(\.name).sorted() == ["Fido", "Rex"])
    try two.ours.save()
    let context = try two.place.context()
    #expect(try context.fetch(FetchRequest<Dog>()).map(\.name).sorted() == ["Fido", "Rex"] && context.count(Person.self) == 2)
  }

  @Test(arguments: TestStore.allCases)
  func aConflictIsDetectedForAnUnchangedObjectOnRequest(_ store: TestStore) throws {
    let two = try Two(store, .error)
    try two.ours.detectConflicts(for: two.fido)
    two.theirFido.age = 10
    try two.theirs.save()
    let ann = two.ours.person("Ann")
    let error = try #require(throws: PersistenceError.self) { try two.ours.save() }
    #expect(error.code == .conflict && error.objectIDs == [two.fido.objectID] && ann.isInserted)
    try two.ours.resolveConflicts(of: error, using: .mergeByPropertyObjectTrump)
    #expect(two.fido.age == 10)
    try two.ours.save()
    // The next save doesn't compare it any more.
    two.theirFido.age = 11
    try two.theirs.save()
    ann.city = "Rome"
    try two.ours.save()
    #expect(two.fido.age == 10)
  }

  @Test func aResolvedConflictTakesOneReadAndOneMoreSave() throws {
    for store in [TestStore.sqlite, .memory] {
      let place = try store.makePlace(), setup = try place.context()
      setup.dog("Fido")
      setup.dog("Rex")
      try setup.save()
      let (ours, requests) = try place.recording()
      ours.mergePolicy = .mergeByPropertyObjectTrump
      let theirs = try ManagedObjectContext(coordinator: ours.persistentStoreCoordinator, classes: Kennel.classes)
      let dogs = try ours.fetch(FetchRequest<Dog>())
      for dog in try theirs.fetch(FetchRequest<Dog>()) { dog.age += 1 }
      try theirs.save()
      for dog in dogs { dog.name += "!" }
      requests.clear()
      try ours.save()
      let names = requests.requests.map { "\($0)".prefix { $0 != "(" } }
      #expect(names == ["prepare", "beginRead", "rows", "prepare", "commit"], "\(store): \(names)")
    }
  }
}

extension ManagedObjectContext {
  func existingDog(_ id: ManagedObjectID) throws -> Dog { try #require(try existingObject(with: id) as? Dog) }
}
