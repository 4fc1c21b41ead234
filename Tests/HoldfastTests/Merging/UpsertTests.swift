import Foundation
import HoldfastMemoryStore
import HoldfastStore
import HoldfastStoreConformance
import Synchronization
import TestSupport
import Testing

@testable import Holdfast

/// What each merge policy makes of objects with the same values of a uniqueness constraint. Dogs have unique chips.
@Suite struct UpsertTests {
  typealias Policy = MergePolicyTests.Policy

  private func stored(_ place: TestStore.Place, _ chip: Int64) throws -> [Dog] {
    try place.close()
    return try place.context().fetch(Dog.self) { $0.chip == chip }
  }

  @Test(arguments: TestStore.allCases, Policy.allCases)
  func aNewObjectBecomesTheStoredOneWithItsUniqueValues(_ store: TestStore, _ policy: Policy) throws {
    let place = try store.makePlace(), setup = try place.context()
    let old = setup.dog("Old", age: 5, owner: setup.person("Ann"))
    (old.chip, old.notes) = (7, "kept")
    old.friends.insert(setup.dog("Rex"))
    try setup.save()
    let id = old.objectID
    let context = try place.context()
    context.mergePolicy = policy.policy
    let new = context.dog("New", owner: context.person("Bob")), max = context.dog("Max")
    (new.chip, new.weight) = (7, 2.5)
    new.friends.insert(max)
    let shot = context.insert(Vaccination.self) {
      $0.kind = "rabies"
      $0.dog = new
    }
    try context.save()
    #expect(new.objectID == id && !new.hasChanges && !context.hasChanges)
    #expect(new.name == (policy.prefersOurs ? "New" : "Old"))
    // The new object's age is the default value, so it isn't merged.
    #expect(new.age == (policy == .overwrite ? 1 : 5) && new.notes == (policy == .overwrite ? nil : "kept"))
    #expect(new.weight == (policy.prefersOurs ? 2.5 : nil) && new.owner?.name == (policy.prefersOurs ? "Bob" : "Ann"))
    #expect(shot.dog === new && new.vaccinations.contains(shot) && max.friendOf.contains(new))
    #expect(new.friends.map(\.name).sorted() == ["Max", "Rex"])
    let owner = new.owner?.name
    let dogs = try stored(place, 7), saved = try #require(dogs.first)
    #expect(dogs.count == 1 && saved.objectID == id && saved.name == new.name && saved.age == new.age && saved.owner?.name == owner)
    #expect(saved.vaccinations.count == 1 && saved.friends.map(\.name).sorted() == ["Max", "Rex"])
    #expect(saved.owner?.dogs.contains(saved) == true)
  }

  /// The constraint is that of their superentity.
  @Test(arguments: TestStore.allCases, Policy.allCases)
  func objectsOfDifferentEntitiesNeverBecomeOne(_ store: TestStore, _ policy: Policy) throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Animal", attributes: [AttributeDescription("chip", .integer64)], uniquenessConstraints: [["chip"]]),
      EntityDescription("Cat", superentity: "Animal"), EntityDescription("Dog", superentity: "Animal"),
    ])
    let place = try store.makePlace(model: model, classes: []), setup = try place.context()
    try setup.insert(entityNamed: "Cat").setValue(7, forKey: "chip")
    try setup.save()
    let context = try place.context()
    context.mergePolicy = policy.policy
    let dog = try context.insert(entityNamed: "Dog")
    for chip in [7, 8] {
      try dog.setValue(chip, forKey: "chip")
      // Neither does one of two new objects.
      if chip == 8 { try context.insert(entityNamed: "Animal").setValue(8, forKey: "chip") }
      let error = #expect(throws: PersistenceError.self) { try context.save() }
      #expect(error?.code == .constraintConflict && error?.coreDataCode == 133021)
      #expect(context.hasChanges && dog.isInserted)
    }
    try dog.setValue(9, forKey: "chip")
    try context.save()
    #expect(try context.fetch(FetchRequest<ManagedObject>(entityName: "Animal")).count == 3)
  }

  /// Under `overwrite`, the stored dog loses his collar, whose color this context hasn't changed.
  @Test(arguments: TestStore.allCases)
  func anObjectThatOnlyAnUpsertUnlinksIsNotOverwritten(_ store: TestStore) throws {
    let place = try store.makePlace(), setup = try place.context()
    let old = setup.dog("Old")
    (old.chip, old.collar) = (7, setup.insert(Collar.self) { $0.color = "red" })
    try setup.save()
    let (ours, theirs) = try place.twoContexts(.overwrite)
    let collar = try #require(try ours.fetch(FetchRequest<Collar>()).first)
    #expect(collar.color == "red" && collar.dog?.name == "Old")
    try #require(try theirs.fetch(FetchRequest<Collar>()).first).color = "green"
    try theirs.save()
    ours.dog("New").chip = 7
    try ours.save()
    #expect(collar.color == "green" && collar.dog == nil && !ours.hasChanges)
    let dog = try #require(try stored(place, 7).first)
    #expect(dog.name == "New" && dog.collar == nil)
    #expect(try place.context().fetch(FetchRequest<Collar>()).map(\.color) == ["green"])
  }

  @Test(arguments: TestStore.allCases, Policy.allCases)
  func aNewObjectIsMergedIntoTheOneInTheContext(_ store: TestStore, _ policy: Policy) throws {
    let place = try store.makePlace(), context = try place.context()
    let old = context.dog("Old", age: 5, owner: context.person("Ann"))
    old.chip = 7
    try context.save()
    context.mergePolicy = policy.policy
    let new = context.dog("New", owner: context.person("Bob"))
    new.chip = 7
    let shot = context.insert(Vaccination.self) {
      $0.kind = "rabies"
      $0.dog = new
    }
    old.notes = "unsaved"
    try context.save()
    #expect(new.isInaccessible && !old.isInaccessible && shot.dog === old && !context.hasChanges)
    #expect(old.name == (policy.prefersOurs ? "New" : "Old") && old.owner?.name == (policy.prefersOurs ? "Bob" : "Ann"))
    #expect(old.notes == (policy == .overwrite ? nil : "unsaved"))
    let dogs = try stored(place, 7)
    #expect(dogs.map(\.name) == [old.name] && dogs[0].vaccinations.count == 1 && dogs[0].notes == old.notes)
  }

  /// A store with a dog that one context has read, and another one has changed since.
  private func outdated(
    _ store: TestStore, _ policy: MergePolicy
  ) throws -> (place: TestStore.Place, context: ManagedObjectContext, dog: Dog) {
    let place = try store.makePlace(), setup = try place.context()
    setup.dog("Old", age: 5, owner: setup.person("Ann")).chip = 7
    setup.person("Bob")
    try setup.save()
    let (ours, theirs) = try place.twoContexts(policy)
    let dog = try #require(try ours.one(Dog.self) { $0.chip == 7 }), theirDog = try #require(try theirs.one(Dog.self) { $0.chip == 7 })
    #expect(dog.name == "Old" && dog.owner?.name == "Ann")
    (theirDog.name, theirDog.age, theirDog.notes) = ("Theirs", 6, "by them")
    theirDog.owner = try theirs.one(Person.self) { $0.name == "Bob" }
    try theirs.save()
    return (place, ours, dog)
  }

  /// The result is as if the context had read the stored object now: the new values are saved, although the context has equal ones.
  @Test(arguments: TestStore.allCases, Policy.allCases)
  func aNewObjectIsMergedIntoAnOutdatedOneInTheContext(_ store: TestStore, _ policy: Policy) throws {
    let (place, context, dog) = try outdated(store, policy.policy)
    let ann = try #require(try context.one(Person.self) { $0.name == "Ann" }), new = context.dog("Old", age: 5, owner: ann)
    new.chip = 7
    try context.save()
    #expect(new.isInaccessible && !dog.isInaccessible && !context.hasChanges)
    let notes = policy == .overwrite ? nil : "by them"
    func check(_ dog: Dog?) {
      #expect(dog?.name == (policy.prefersOurs ? "Old" : "Theirs") && dog?.age == (policy.prefersOurs ? 5 : 6) && dog?.notes == notes)
      #expect(dog?.owner?.name == (policy.prefersOurs ? "Ann" : "Bob"))
    }
    check(dog)
    let dogs = try stored(place, 7)
    #expect(dogs.count == 1)
    check(dogs.first)
  }

  @Test(arguments: TestStore.allCases)
  func aCustomPolicyReceivesTheStoredValuesOfAnOutdatedObjectInTheContext(_ store: TestStore) throws {
    let policy = MergePolicy.custom { conflict in
      conflict.theirs?["name"] == .string("Theirs") && conflict.theirs?["age"] == .int16(6) ? .rollback : .error
    }
    let (_, context, dog) = try outdated(store, policy)
    context.dog("New").chip = 7
    try context.save()
    #expect(dog.name == "Theirs" && dog.age == 6 && !context.hasChanges)
  }

  @Test(arguments: TestStore.allCases)
  func aPolicyThatRefusesLeavesAnOutdatedObjectInTheContextAsItIs(_ store: TestStore) throws {
    let (_, context, dog) = try outdated(store, .custom { _ in .error })
    let new = context.dog("New")
    new.chip = 7
    let error = #expect(throws: PersistenceError.self) { try context.save() }
    #expect(error?.code == .constraintConflict && new.isInserted && new.name == "New")
    #expect(!dog.isFault && !dog.hasChanges && dog.name == "Old" && dog.age == 5 && dog.owner?.name == "Ann")
  }

  /// The object in the context gets the transient values that it lacks under each policy, as a new object that takes a stored one's place
  /// keeps its own.
  @Test(arguments: TestStore.allCases, Policy.allCases)
  func transientValuesAreMergedIntoTheObjectInTheContext(_ store: TestStore, _ policy: Policy) throws {
    let names = ["both", "given", "kept", "preset"]
    let transients = names.map {
      AttributeDescription($0, .string, isOptional: true, isTransient: true, default: $0 == "preset" ? .string("default") : nil)
    }
    let model = try ManagedObjectModel(entities: [
      EntityDescription("Dog", attributes: [AttributeDescription("chip", .integer64)] + transients, uniquenessConstraints: [["chip"]])
    ])
    let context = try store.makePlace(model: model, classes: []).context()
    context.mergePolicy = policy.policy
    let old = try context.insert(entityNamed: "Dog")
    try old.setValue(7, forKey: "chip")
    try context.save()
    for name in ["both", "kept", "preset"] { try old.setValue("old", forKey: name) }
    let new = try context.insert(entityNamed: "Dog")
    try new.setValue(7, forKey: "chip")
    for name in ["both", "given"] { try new.setValue("new", forKey: name) }
    try context.save()
    #expect(new.isInaccessible && !old.isInaccessible && !context.hasChanges)
    let values = try names.map { try old.value(forKey: $0).storeValue }
    let isOverwritten = policy == .overwrite
    let expected: [StoreValue] = [
      .string(policy.prefersOurs ? "new" : "old"), .string("new"), isOverwritten ? .null : .string("old"),
      .string(isOverwritten ? "default" : "old"),
    ]
    #expect(values == expected)
  }

  /// The bug: the policy discarded transient values with the changes.
  @Test(arguments: TestStore.allCases) func aChangedObjectThatIsRevertedKeepsItsTransientValues(_ store: TestStore) throws {
    let note = AttributeDescription("note", .string, isOptional: true, isTransient: true)
    let model = try ManagedObjectModel(entities: [
      EntityDescription("Dog", attributes: [AttributeDescription("chip", .integer64), note], uniquenessConstraints: [["chip"]])
    ])
    let context = try store.makePlace(model: model, classes: []).context()
    let first = try context.insert(entityNamed: "Dog"), dog = try context.insert(entityNamed: "Dog")
    try first.setValue(7, forKey: "chip")
    try dog.setValue(8, forKey: "chip")
    try context.save()
    context.mergePolicy = .rollback
    try dog.setValue("kept", forKey: "note")
    try dog.setValue(7, forKey: "chip")
    try context.save()
    #expect(try dog.value(forKey: "chip").storeValue == .int64(8) && dog.value(forKey: "note").storeValue == .string("kept"))
  }

  /// The bug: the object in the context got the transient destination of the new one under each policy, and its own lost the link.
  @Test(arguments: TestStore.allCases, Policy.allCases)
  func aTransientReferenceOfTheObjectInTheContextIsReplacedLikeAStoredOne(_ store: TestStore, _ policy: Policy) throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription("Bed", relationships: [.toOne("dog", to: "Dog", inverse: "bed", isTransient: true)]),
      EntityDescription(
        "Dog", attributes: [AttributeDescription("chip", .integer64)],
        relationships: [
          .toOne("bed", to: "Bed", inverse: "dog", isTransient: true), .toOne("rest", to: "Bed", inverse: nil, isTransient: true),
        ], uniquenessConstraints: [["chip"]]),
    ])
    let context = try store.makePlace(model: model, classes: []).context()
    context.mergePolicy = policy.policy
    let old = try context.insert(entityNamed: "Dog"), beds = try (0..<2).map { _ in try context.insert(entityNamed: "Bed") }
    try old.setValue(7, forKey: "chip")
    try context.save()
    try old.setValue(beds[0], forKey: "bed")
    let new = try context.insert(entityNamed: "Dog")
    try new.setValue(7, forKey: "chip")
    for name in ["bed", "rest"] { try new.setValue(beds[1], forKey: name) }
    try context.save()
    #expect(new.isInaccessible && !old.isInaccessible)
    let (kept, lost) = policy.prefersOurs ? (beds[1], beds[0]) : (beds[0], beds[1])
    #expect(try old.value(forKey: "bed").storeValue == .objectID(kept.objectID))
    #expect(try old.value(forKey: "rest").storeValue == .objectID(beds[1].objectID))
    #expect(try kept.value(forKey: "dog").storeValue == .objectID(old.objectID) && lost.value(forKey: "dog") == .single(.null))
  }

  @Test(arguments: TestStore.allCases, Policy.allCases)
  func severalNewObjectsWithTheSameValuesBecomeOne(_ store: TestStore, _ policy: Policy) throws {
    let place = try store.makePlace(), context = try place.context()
    context.mergePolicy = policy.policy
    let ann = context.person("Ann")
    for name in ["First", "Second", "Third"] {
      let dog = context.dog(name, owner: ann)
      dog.chip = 7
    }
    context.dog("Other", owner: ann).chip = 8
    try context.save()
    #expect(ann.dogs.count == 2 && !context.hasChanges)
    #expect(try stored(place, 7).map(\.name) == [policy.prefersOurs ? "Third" : "First"])
  }

  /// The IDs were requested, or the objects are from a child.
  @Test(arguments: TestStore.allCases, Policy.allCases)
  func severalNewObjectsWithPermanentIDsBecomeOneInTheSameOrder(_ store: TestStore, _ policy: Policy) throws {
    for isOfChild in [false, true] {
      let place = try store.makePlace(), context = try place.context()
      let source = isOfChild ? ManagedObjectContext(parent: context) : context
      context.mergePolicy = policy.policy
      let dogs = ["First", "Second", "Third"].map { name -> Dog in
        let dog = source.dog(name)
        dog.chip = 7
        return dog
      }
      if isOfChild { try source.save() } else { try source.obtainPermanentIDs(for: dogs) }
      try context.save()
      #expect(try stored(place, 7).map(\.name) == [policy.prefersOurs ? "Third" : "First"])
    }
  }

  /// The IDs of some were requested, so later objects have smaller keys than earlier ones. Another one may be stored.
  @Test(arguments: TestStore.allCases, Policy.allCases)
  func severalNewObjectsOfWhichSomeHavePermanentIDsBecomeOneInTheSameOrder(_ store: TestStore, _ policy: Policy) throws {
    for (mask, isStored) in (1..<7).flatMap({ [($0, false), ($0, true)] }) {
      let place = try store.makePlace(), setup = try place.context(), comment = Comment(rawValue: "mask \(mask), stored: \(isStored)")
      if isStored { setup.dog("Old").chip = 7 }
      try setup.save()
      let context = try place.context(), friend = context.dog("Friend")
      context.mergePolicy = policy.policy
      let dogs = ["First", "Second", "Third"].map { name -> Dog in
        let dog = context.dog(name)
        dog.chip = 7
        friend.friends.insert(dog)
        return dog
      }
      try context.obtainPermanentIDs(for: dogs.indices.filter { mask >> $0 & 1 == 1 }.map { dogs[$0] })
      try context.save()
      #expect(dogs.map(\.isInaccessible) == [false, true, true] && friend.friends.contains(dogs[0]) && friend.friends.count == 1, comment)
      let saved = try stored(place, 7)
      #expect(saved.map(\.name) == [policy.prefersOurs ? "Third" : isStored ? "Old" : "First"], comment)
      #expect(saved.first?.friendOf.count == 1, comment)
    }
  }

  /// A policy sees the stored values in each conflict with a stored object, and those of the first new object otherwise.
  @Test(arguments: TestStore.allCases)
  func aCustomPolicyReceivesTheFirstObjectsValues(_ store: TestStore) throws {
    let place = try store.makePlace(), context = try place.context()
    context.mergePolicy = .custom { conflict in
      guard case .int16(let ours)? = conflict.ours?["age"], conflict.theirs?["name"] == .string("First") else { return .error }
      return .values(["age": .int16(ours)])
    }
    let dogs = (0..<3).map { context.dog(["First", "Second", "Third"][$0], age: 10 + $0) }
    for dog in dogs { dog.chip = 7 }
    try context.obtainPermanentIDs(for: [dogs[2]])
    try context.save()
    #expect(dogs.map(\.isInaccessible) == [false, true, true] && dogs[0].age == 12)
    #expect(try stored(place, 7).map(\.age) == [12])
  }

  /// The context has saved the deletion of the other object before, and another context has inserted that again.
  @Test(arguments: TestStore.allCases, [false, true])
  func aNewObjectThatBecomesOneDeletedHereBeforeKeepsItsLinks(_ store: TestStore, _ isReverse: Bool) throws {
    let place = try store.makePlace(), context = try place.context(), old = context.dog("Old"), rex = context.dog("Rex")
    old.chip = 7
    try context.save()
    let other = try place.context()
    try other.existingDog(old.objectID).age = 9
    context.delete(old)
    try context.save()
    other.mergePolicy = .overwrite
    try other.save()
    let new = context.dog("New")
    new.chip = 7
    if isReverse { rex.friends.insert(new) } else { new.friends.insert(rex) }
    context.mergePolicy = .mergeByPropertyObjectTrump
    try context.save()
    let dogs = try stored(place, 7)
    #expect(dogs.map(\.name) == ["New"] && dogs.first.map { isReverse ? $0.friendOf.count : $0.friends.count } == 1)
  }

  /// Another process deletes the other object after the store has refused the save. The object is a fault of the context, or isn't in it.
  @Test(arguments: [TestStore.memory, .json, .xml, .binary, .sqlite], [false, true])
  func aNewObjectIsInsertedIfTheOtherOneIsDeletedMeanwhile(_ store: TestStore, _ isFault: Bool) throws {
    let place = try store.makePlace(), setup = try place.context(), old = setup.dog("Old")
    old.chip = 7
    try setup.save()
    var deletion = SaveRequest.EntityChanges(entity: old.entity.index)
    deletion.deleted = SaveRequest.KeyedRows(keys: [old.objectKey], expectedVersions: [old.readRow.version])
    let rival = Rival(SaveRequest(entities: [deletion]))
    let (context, _) = try place.recording { RacedStore($0, rival) }
    context.mergePolicy = .mergeByPropertyObjectTrump
    let fault = try isFault ? context.object(with: old.objectID) : nil
    let new = context.dog("New")
    new.chip = 7
    try context.save()
    #expect(new.name == "New" && !context.hasChanges && new.objectID != old.objectID)
    #expect(try context.fetch(FetchRequest<Dog>()) == [new])
    withExtendedLifetime(fault) {}
  }

  /// The context has the values of the other object. Under a policy that prefers the store, the new object was lost.
  @Test(arguments: [TestStore.memory, .json, .xml, .binary, .sqlite], Policy.allCases)
  func aNewObjectIsInsertedIfTheOneInTheContextIsDeletedMeanwhile(_ store: TestStore, _ policy: Policy) throws {
    let place = try store.makePlace(), setup = try place.context(), old = setup.dog("Old")
    old.chip = 7
    try setup.save()
    var deletion = SaveRequest.EntityChanges(entity: old.entity.index)
    deletion.deleted = SaveRequest.KeyedRows(keys: [old.objectKey], expectedVersions: [old.readRow.version])
    let rival = Rival(SaveRequest(entities: [deletion]))
    let (context, _) = try place.recording { RacedStore($0, rival) }
    context.mergePolicy = policy.policy
    let known = try context.existingDog(old.objectID), new = context.dog("New")
    #expect(known.name == "Old")
    new.chip = 7
    try context.save()
    #expect(!new.isInaccessible && new.name == "New" && new.objectID != old.objectID && !context.hasChanges)
    #expect(try context.fetch(FetchRequest<Dog>()) == [new])
    withExtendedLifetime(known) {}
  }

  @Test(arguments: TestStore.allCases)
  func importingTheSameDataTwiceChangesNothing(_ store: TestStore) throws {
    let place = try store.makePlace()
    for round in 0..<3 {
      let context = try place.context()
      context.mergePolicy = .mergeByPropertyObjectTrump
      for chip in 0..<40 {
        let dog = context.dog("Dog \(chip)", age: 1 + round)
        dog.chip = Int64(chip)
        if chip % 2 == 0 { dog.friends.insert(context.registeredDogs.first { $0.chip == Int64(max(0, chip - 2)) } ?? dog) }
      }
      try context.save()
      #expect(context.registeredDogs.filter { $0.isInaccessible }.isEmpty)
    }
    try place.close()
    let context = try place.context()
    #expect(try context.count(Dog.self) == 40 && context.fetch(FetchRequest<Dog>()).allSatisfy { $0.age == 3 })
    #expect(try context.fetch(FetchRequest<Dog>()).reduce(0) { $0 + $1.friends.count } == 20)
  }

  @Test(arguments: TestStore.allCases)
  func twoSavedObjectsNeverBecomeOne(_ store: TestStore) throws {
    let place = try store.makePlace(), context = try place.context()
    let fido = context.dog("Fido", age: 3), rex = context.dog("Rex")
    (fido.chip, rex.chip) = (1, 2)
    try context.save()
    for policy in [Policy.objectTrump, .overwrite] {
      context.mergePolicy = policy.policy
      fido.chip = 2
      fido.age = 4
      let error = try #require(throws: PersistenceError.self) { try context.save() }
      #expect(error.code == .constraintConflict && error.objectIDs == [fido.objectID] && fido.chip == 2 && fido.age == 4)
      context.rollback()
    }
    for policy in [Policy.storeTrump, .rollback] {
      context.mergePolicy = policy.policy
      fido.chip = 2
      fido.age = 4
      try context.save()
      #expect(fido.chip == 1 && fido.age == (policy == .storeTrump ? 4 : 3))
      fido.age = 3
      try context.save()
    }
  }

  /// The constraint is of an attribute that is derived from the changed one.
  @Test(arguments: TestStore.allCases, [Policy.storeTrump, .rollback])
  func aChangedObjectWithADerivedValueOfAnotherOneIsReverted(_ store: TestStore, _ policy: Policy) throws {
    let entity = EntityDescription(
      "Tag",
      attributes: [
        AttributeDescription("name", .string, isOptional: true), AttributeDescription("size", .integer16, isOptional: true),
        .derived("folded", .string, "canonical:(name)"),
      ], uniquenessConstraints: [["folded"]])
    let place = try store.makePlace(model: try ManagedObjectModel(entities: [entity]), classes: []), setup = try place.context()
    setup.make("Tag", ["name": .string("Alpha")])
    let beta = setup.make("Tag", ["name": .string("Beta")])
    try setup.save()
    let context = try place.context(), tag = try context.existingObject(with: beta.objectID)
    context.mergePolicy = policy.policy
    (tag["name"], tag["size"]) = (.string("ALPHA"), .int16(7))
    try context.save()
    let size = policy == .storeTrump ? StoreValue.int16(7) : .null
    #expect(tag["name"] == .string("Beta") && tag["size"] == size && !context.hasChanges)
    let saved = try place.context().existingObject(with: beta.objectID)
    #expect(saved["name"] == .string("Beta") && saved["folded"] == .string("beta") && saved["size"] == size)
  }

  /// The bug: stores that don't check uniqueness took the derived value of each changed object for a new one, and SQLite took one that is
  /// derived again. The object with the smaller key got the value, and the one that had it was reverted.
  @Test(arguments: TestStore.allCases, [false, true])
  func aChangedObjectKeepsItsDerivedValueThatAnotherOneWouldGet(_ store: TestStore, _ isDerivedAgain: Bool) throws {
    let entity = EntityDescription(
      "Tag",
      attributes: [
        AttributeDescription("name", .string, isOptional: true), AttributeDescription("size", .integer16, isOptional: true),
        .derived("folded", .string, "canonical:(name)"),
      ], uniquenessConstraints: [["folded"]])
    let model = try ManagedObjectModel(entities: [entity])
    for policy in [Policy.storeTrump, .rollback] {
      let place = try store.makePlace(model: model, classes: []), context = try place.context()
      let alpha = context.make("Tag", ["name": .string("Alpha")]), beta = context.make("Tag", ["name": .string("Beta")])
      try context.save()
      context.mergePolicy = policy.policy
      alpha["name"] = .string("bETA")
      beta["size"] = .int16(7)
      if isDerivedAgain { beta["name"] = .string("BETA") }
      try context.save()
      #expect(alpha["name"] == .string("Alpha") && !context.hasChanges)
      #expect(beta["name"] == .string(isDerivedAgain ? "BETA" : "Beta") && beta["size"] == .int16(7), "\(policy)")
      let saved = try place.context().existingObject(with: beta.objectID)
      #expect(saved["folded"] == .string("beta") && saved["size"] == .int16(7), "\(policy)")
    }
  }

  /// They reference each other, and themselves, by relationships without an inverse and by IDs in attributes.
  ///
  /// The bug: an object's own ID in an attribute remained the temporary one, so the save failed.
  @Test(arguments: TestStore.allCases, [false, true])
  func newObjectsThatReferenceEachOtherBecomeStoredOnes(_ store: TestStore, _ isKnown: Bool) throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Node",
        attributes: [
          AttributeDescription("name", .string, isOptional: true), AttributeDescription("own", .objectID, isOptional: true),
          AttributeDescription("other", .objectID, isOptional: true),
        ], relationships: [.toOne("next", to: "Node", inverse: nil), .toMany("nodes", to: "Node", inverse: nil)],
        uniquenessConstraints: [["name"]])
    ])
    let names = ["a", "b", "c"], place = try store.makePlace(model: model, classes: []), setup = try place.context()
    let stored = names.map { setup.make("Node", ["name": .string($0)]) }
    try setup.save()
    let ids = stored.map(\.objectID), context = try place.context()
    context.mergePolicy = .mergeByPropertyObjectTrump
    let known = isKnown ? try context.all("Node") : []
    let new = names.map { context.make("Node", ["name": .string($0)]) }
    for (index, node) in new.enumerated() {
      let next = new[(index + 1) % 3]
      node.lead("next", to: next)
      node["own"] = .objectID(node.objectID)
      node["other"] = .objectID(next.objectID)
    }
    new[0].many("nodes").formUnion(new)
    try context.save()
    #expect(!context.hasChanges && known.allSatisfy { !$0.isInaccessible })
    for checked in [context, try place.context()] {
      let nodes = try ids.map { try checked.existingObject(with: $0) }
      #expect(try checked.all("Node").count == 3)
      for (index, node) in nodes.enumerated() {
        let next = StoreValue.objectID(ids[(index + 1) % 3])
        #expect(node["name"] == .string(names[index]) && node["own"] == .objectID(ids[index]))
        #expect(node["next"] == next && node["other"] == next)
      }
      #expect(nodes.map { $0.many("nodes").count } == [3, 0, 0] && nodes.allSatisfy { nodes[0].many("nodes").contains($0) })
    }
  }

  private static let breed = EntityDescription(
    "Breed", attributes: [AttributeDescription("number", .integer64, isOptional: true)], uniquenessConstraints: [["number"]])

  /// A store with breeds, numbered from 0 on, and a context in which new breeds become these.
  private func storedBreeds(_ count: Int, _ model: ManagedObjectModel) throws -> (TestStore.Place, ManagedObjectContext) {
    let place = try TestStore.memory.makePlace(model: model, classes: []), setup = try place.context()
    for number in 0..<count { setup.make("Breed", ["number": .int64(Int64(number))]) }
    try setup.save()
    let context = try place.context()
    context.mergePolicy = .mergeByPropertyObjectTrump
    return (place, context)
  }

  /// The bug: each merged object was looked for in all changed objects.
  @Test func manyNewObjectsBecomeStoredOnesInLinearTime() throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Dog", attributes: [AttributeDescription("breedID", .objectID, isOptional: true)],
        relationships: [.toOne("breed", to: "Breed", inverse: nil)]),
      Self.breed,
    ])
    func time(_ count: Int) throws -> Duration {
      let (place, context) = try storedBreeds(count, model)
      let dogs = (0..<count).map { number in
        let dog = context.make("Dog"), breed = context.make("Breed", ["number": .int64(Int64(number))])
        dog.lead("breed", to: breed)
        dog["breedID"] = .objectID(breed.objectID)
        return dog
      }
      let time = try processorTime { try context.save() }
      #expect(dogs.allSatisfy { $0["breed"] != .null && $0["breed"] == $0["breedID"] })
      #expect(try place.context().count(for: FetchRequest<ManagedObject>(entityName: "Breed")) == count)
      return time
    }
    // Sixteen times as many objects; quadratic time would be 256 times as long.
    try expectCost(below: 80, times: { try time(500) }) { try time(8_000) }
  }

  /// The bug: each object that was inserted again, and leaves the context, was looked for in all changed objects.
  @Test func theReferencesToManyObjectsThatLeaveTheContextAreFoundTogether() throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription("Dog", relationships: [.toOne("breed", to: "Breed", inverse: nil)]), Self.breed,
    ])
    let (place, context) = try storedBreeds(30, model), other = try place.context(), breeds = try context.all("Breed")
    context.mergePolicy = .error
    for (number, breed) in breeds.enumerated() { breed["number"] = .int64(Int64(1_000 + number)) }
    for breed in try other.all("Breed") { other.delete(breed) }
    try other.save()
    let error = try #require(throws: PersistenceError.self) { try context.save() }
    try context.resolveConflicts(of: error, using: .mergeByPropertyObjectTrump)
    #expect(breeds.count == 30 && breeds.allSatisfy(\.isInserted))
    let dogs = breeds.map { breed in
      let dog = context.make("Dog")
      dog.lead("breed", to: breed)
      return dog
    }
    let references = ForeignReferences(to: breeds, in: context.core)
    for (dog, breed) in zip(dogs, breeds) { #expect(references.owners(of: breed) == [dog]) }
    try context.resolveConflicts(of: error, using: .rollback)
    #expect(dogs.allSatisfy { $0["breed"] == .null } && breeds.allSatisfy { !$0.isInserted && $0.isInaccessible })
    try context.save()
    let fresh = try place.context(), saved = try fresh.all("Dog")
    #expect(try saved.count == 30 && saved.allSatisfy { $0["breed"] == .null } && fresh.all("Breed").isEmpty)
  }

  /// The bug: for each merged object, all objects of a list without an inverse that contained it were removed and added again.
  @Test(arguments: [false, true]) func aListOfManyNewObjectsBecomesOneOfStoredOnesInLinearTime(isOrdered: Bool) throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription("List", relationships: [.toMany("breeds", to: "Breed", inverse: nil, isOrdered: isOrdered)]),
      Self.breed,
    ])
    func time(_ count: Int) throws -> Duration {
      let (place, context) = try storedBreeds(count, model)
      let list = context.make("List"), numbers = (0..<count).map { StoreValue.int64(Int64($0 * 7 % count)) }
      let breeds = numbers.map { context.make("Breed", ["number": $0]) }
      if isOrdered { try list.ordered(forKey: "breeds").append(contentsOf: breeds) } else { list.many("breeds").formUnion(breeds) }
      let time = try processorTime { try context.save() }
      for checked in [context, try place.context()] {
        let list = try checked.existingObject(with: list.objectID)
        if isOrdered {
          #expect(try list.ordered(forKey: "breeds").map { $0["number"] } == numbers)
        } else {
          #expect(Set(list.many("breeds").map { $0["number"] }) == Set(numbers))
        }
        #expect(try checked.all("Breed").count == count)
      }
      return time
    }
    // Sixteen times as many objects; quadratic time would be 256 times as long. No count is a multiple of 7, so the numbers are different.
    try expectCost(below: 80, times: { try time(500) }) { try time(8_000) }
  }

  /// The other object keeps its position if it comes before the new one, and otherwise takes that of the new one.
  @Test(arguments: TestStore.allCases) func anObjectInAListTwiceKeepsTheFirstPosition(_ store: TestStore) throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription("List", relationships: [.toMany("breeds", to: "Breed", inverse: nil, isOrdered: true)]),
      EntityDescription(
        "Breed", attributes: [AttributeDescription("name", .string, isOptional: true)], uniquenessConstraints: [["name"]]),
    ])
    let place = try store.makePlace(model: model, classes: []), setup = try place.context()
    let list = setup.make("List"), breeds = ["a", "b", "c", "d"].map { setup.make("Breed", ["name": .string($0)]) }
    try list.ordered(forKey: "breeds").append(contentsOf: breeds)
    try setup.save()
    for (position, names) in [
      (0, ["c", "a", "b", "d"]), (1, ["a", "c", "b", "d"]), (3, ["a", "b", "c", "d"]), (4, ["a", "b", "c", "d"]),
    ] {
      let expected = names.map { StoreValue.string($0) }
      let context = try place.context()
      context.mergePolicy = .mergeByPropertyObjectTrump
      let same = try context.existingObject(with: list.objectID).ordered(forKey: "breeds")
      same.insert(context.make("Breed", ["name": .string("c")]), at: position)
      try context.save()
      #expect(same.map { $0["name"] } == expected && !context.hasChanges, "\(position)")
      let other = try place.context().existingObject(with: list.objectID).ordered(forKey: "breeds")
      #expect(other.map { $0["name"] } == expected, "\(position)")
      try setup.refreshAllObjects()
      let former = try list.ordered(forKey: "breeds")
      former.replaceAll(with: breeds)
      try setup.save()
    }
  }

  /// The same save changes the object that has the value already. Either of them is the first one.
  @Test(arguments: TestStore.allCases, [false, true])
  func aChangedObjectIsRevertedAlsoIfTheOtherOneIsChanged(_ store: TestStore, _ isFirst: Bool) throws {
    let place = try store.makePlace(), setup = try place.context()
    setup.dog("Fido").chip = 1
    setup.dog("Rex").chip = 2
    try setup.save()
    let context = try place.context(), dogs = try context.fetch(FetchRequest<Dog>(sortedBy: [.ascending(\.chip)]))
    let (taker, other) = isFirst ? (dogs[0], dogs[1]) : (dogs[1], dogs[0]), chip = taker.chip
    context.mergePolicy = .mergeByPropertyStoreTrump
    other.age = 9
    (taker.chip, taker.age) = (other.chip, 8)
    try context.save()
    #expect(taker.chip == chip && taker.age == 8 && other.age == 9 && !context.hasChanges)
  }

  /// The context has read the other object, or hasn't.
  @Test(arguments: TestStore.allCases, Policy.allCases)
  func aChangedObjectWithAValueOfAnotherEntityIsRevertedOrTheSaveFails(_ store: TestStore, _ policy: Policy) throws {
    for name in ["Tom", "nobody"] {
      let place = try store.makePlace(model: Menagerie.model, classes: Menagerie.classes), setup = try place.context()
      setup.animal(Cat.self, "Tom").chip = 7
      setup.animal(Parrot.self, "Polly").chip = 8
      try setup.save()
      let context = try place.context(), polly = try #require(try context.one(Parrot.self) { $0.words == 0 })
      let tom = try context.one(Cat.self) { $0.name == name }
      context.mergePolicy = policy.policy
      (polly.chip, polly.words) = (7, 3)
      if policy.prefersOurs {
        let error = #expect(throws: PersistenceError.self) { try context.save() }
        #expect(error?.code == .constraintConflict && error?.objectIDs == [polly.objectID] && polly.chip == 7 && polly.words == 3)
      } else {
        try context.save()
        #expect(polly.chip == 8 && polly.words == (policy == .storeTrump ? 3 : 0) && !context.hasChanges)
      }
      withExtendedLifetime(tom) {}
    }
  }

  @Test(arguments: TestStore.allCases)
  func aCustomPolicyReceivesTheValuesOfAnotherEntity(_ store: TestStore) throws {
    let place = try store.makePlace(model: Menagerie.model, classes: Menagerie.classes), setup = try place.context()
    setup.animal(Cat.self, "Tom").chip = 7
    setup.animal(Parrot.self, "Polly").chip = 8
    try setup.save()
    let context = try place.context(), polly = try #require(try context.one(Parrot.self) { $0.words == 0 })
    context.mergePolicy = .custom { conflict in
      conflict.theirs?["lives"] == .int16(9) && conflict.theirs?["name"] == .string("Tom") ? .rollback : .error
    }
    polly.chip = 7
    try context.save()
    #expect(polly.chip == 8 && !context.hasChanges)
  }

  @Test(arguments: TestStore.allCases)
  func aCustomPolicyDecidesAboutDuplicates(_ store: TestStore) throws {
    let place = try store.makePlace(), setup = try place.context()
    let old = setup.dog("Old", age: 5)
    old.chip = 7
    try setup.save()
    let context = try place.context()
    context.mergePolicy = .custom { conflict in
      guard conflict.kind == .uniqueness(["chip"]), conflict.base == nil, conflict.existingObjectID != nil,
        case .int16(let ours)? = conflict.ours?["age"], case .int16(let theirs)? = conflict.theirs?["age"]
      else { return .error }
      return .values(["age": .int16(ours + theirs)])
    }
    let new = context.dog("New", age: 10)
    new.chip = 7
    try context.save()
    #expect(new.age == 15 && new.name == "New")
    context.mergePolicy = .custom { _ in .error }
    let newest = context.dog("Newest")
    newest.chip = 7
    #expect(throws: PersistenceError.self) { try context.save() }
    #expect(newest.isInserted && newest.name == "Newest")
    #expect(try stored(place, 7).map(\.age) == [15])
  }

  /// The bug: a store that doesn't check uniqueness itself named the object that gets the value, which is reverted, as the existing one. The
  /// links of the new object became its links.
  @Test(arguments: TestStore.allCases, [Policy.storeTrump, .rollback])
  func aNewObjectBecomesTheOneThatKeepsTheValueAndNotTheOneThatGetsIt(_ store: TestStore, _ policy: Policy) throws {
    let place = try store.makePlace(), context = try place.context()
    let taker = context.dog("Taker"), keeper = context.dog("Keeper")
    (taker.chip, keeper.chip) = (6, 7)
    try context.save()
    context.mergePolicy = policy.policy
    taker.chip = 7
    keeper.age = 9
    let new = context.dog("New")
    new.chip = 7
    let shot = context.insert(Vaccination.self) {
      $0.kind = "rabies"
      $0.dog = new
    }
    try context.save()
    #expect(new.isInaccessible && shot.dog === keeper && taker.vaccinations.isEmpty)
    #expect(taker.chip == 6 && keeper.chip == 7 && keeper.age == 9 && keeper.name == "Keeper" && !context.hasChanges)
  }

  /// The bug: the same, if this context hasn't changed the object that keeps the value.
  @Test(arguments: TestStore.allCases, [Policy.storeTrump, .rollback])
  func aNewObjectBecomesTheUnchangedOneThatKeepsTheValueAndNotTheOneThatGetsIt(_ store: TestStore, _ policy: Policy) throws {
    let place = try store.makePlace(), context = try place.context()
    let taker = context.dog("Taker"), keeper = context.dog("Keeper")
    (taker.chip, keeper.chip) = (6, 7)
    try context.save()
    context.mergePolicy = policy.policy
    taker.chip = 7
    let new = context.dog("New")
    new.chip = 7
    let shot = context.insert(Vaccination.self) {
      $0.kind = "rabies"
      $0.dog = new
    }
    try context.save()
    #expect(new.isInaccessible && shot.dog === keeper && taker.vaccinations.isEmpty)
    #expect(taker.chip == 6 && keeper.chip == 7 && keeper.name == "Keeper" && !context.hasChanges)
  }

  /// The bug: the new object became the follower, which was reverted only afterwards.
  @Test(arguments: TestStore.allCases, [Policy.storeTrump, .rollback])
  func aNewObjectBecomesTheOneThatGetsTheValueBack(_ store: TestStore, _ policy: Policy) throws {
    let place = try store.makePlace(), context = try place.context()
    let keeper = context.dog("Keeper"), taker = context.dog("Taker"), follower = context.dog("Follower")
    (keeper.chip, taker.chip, follower.chip) = (7, 6, 5)
    try context.save()
    context.mergePolicy = policy.policy
    (taker.chip, follower.chip) = (7, 6)
    let new = context.dog("New")
    new.chip = 6
    let shot = context.insert(Vaccination.self) {
      $0.kind = "rabies"
      $0.dog = new
    }
    try context.save()
    #expect(new.isInaccessible && shot.dog === taker && follower.vaccinations.isEmpty && keeper.vaccinations.isEmpty)
    #expect(taker.chip == 6 && taker.name == "Taker" && follower.chip == 5 && keeper.chip == 7 && !context.hasChanges)
  }

  /// Each object gets the value of the next one, and the last value is taken. The bug: each attempt reverted only the last of them, and the
  /// save gave up after 100.
  @Test(arguments: TestStore.allCases, [Policy.storeTrump, .rollback])
  func aLongChainOfChangedObjectsIsReverted(_ store: TestStore, _ policy: Policy) throws {
    let place = try store.makePlace(), context = try place.context(), chips: ClosedRange<Int64> = 1...150
    let dogs = chips.map { chip in
      let dog = context.dog("Dog \(chip)")
      dog.chip = chip
      return dog
    }
    context.dog("Keeper").chip = chips.upperBound + 1
    try context.save()
    context.mergePolicy = policy.policy
    for (dog, chip) in zip(dogs, chips) { dog.chip = chip + 1 }
    let coordinator = context.core.persistentStoreCoordinator, former = coordinator.requestCounts.saves
    try context.save()
    #expect(coordinator.requestCounts.saves - former <= 3)
    #expect(zip(dogs, chips).allSatisfy { $0.chip == $1 } && !context.hasChanges)
    #expect(try stored(place, 150).map(\.name) == ["Dog 150"])
  }

  /// A store that commits another save when it has refused one, as another process would.
  private final class LateRivalStore: ForwardingStore {
    let base: any IncrementalStore
    let rival = Mutex<SaveRequest?>(nil)

    init(_ base: any IncrementalStore) { self.base = base }

    func prepare(_ request: SaveRequest, options: RequestOptions) throws -> any PreparedSave {
      do { return try base.prepare(request, options: options) } catch {
        let next = rival.withLock { rival in
          defer { rival = nil }
          return rival
        }
        if let next { try base.prepare(next, options: options).commit() }
        throw error
      }
    }
  }

  /// The bug: the first object was reverted, although the second one gets the value after all.
  @Test(arguments: [Policy.storeTrump, .rollback])
  func aChainIsNotRevertedIfTheObjectWithTheLastValueIsDeletedMeanwhile(_ policy: Policy) throws {
    let place = try TestStore.sqlite.makePlace(), setup = try place.context()
    let names = ["First", "Second", "Keeper"]
    for (index, name) in names.enumerated() { setup.dog(name).chip = Int64(index + 1) }
    try setup.save()
    let keeper = try #require(try setup.one(Dog.self) { $0.name == "Keeper" })
    var changes = SaveRequest.EntityChanges(entity: keeper.entity.index)
    changes.deleted.keys = [keeper.objectKey]
    changes.deleted.expectedVersions = [keeper.committedRow?.version ?? 0]
    let deletion = SaveRequest(entities: [changes]), box = Mutex<LateRivalStore?>(nil)
    let (context, _) = try place.recording { base in
      let raced = LateRivalStore(base)
      box.withLock { $0 = raced }
      return raced
    }
    context.mergePolicy = policy.policy
    let first = try #require(try context.one(Dog.self) { $0.name == "First" })
    let second = try #require(try context.one(Dog.self) { $0.name == "Second" })
    (first.chip, second.chip) = (2, 3)
    box.withLock { $0?.rival.withLock { $0 = deletion } }
    try context.save()
    #expect(first.chip == 2 && second.chip == 3 && !context.hasChanges)
    let fresh = try ManagedObjectContext(coordinator: context.persistentStoreCoordinator, classes: Kennel.classes)
    let chips = try fresh.fetch(FetchRequest<Dog>()).map { $0.chip ?? 0 }
    #expect(chips.sorted() == [2, 3])
  }

  /// The order of the changes doesn't matter. Stores that check uniqueness write rows in the order of their keys.
  @Test(arguments: TestStore.allCases)
  func ofTwoChangedObjectsWithTheSameValueTheOneThatWasInsertedFirstKeepsIt(_ store: TestStore) throws {
    let place = try store.makePlace(), context = try place.context(), first = context.dog("First"), second = context.dog("Second")
    (first.chip, second.chip) = (1, 2)
    try context.save()
    (second.chip, first.chip) = (9, 9)
    let error = try #require(throws: PersistenceError.self) { try context.save() }
    #expect(error.code == .constraintConflict && error.objectIDs == [second.objectID])
    context.mergePolicy = .mergeByPropertyStoreTrump
    try context.save()
    #expect(first.chip == 9 && second.chip == 2 && !context.hasChanges)
  }

  /// The new object's ID is in an attribute of another one, perhaps already as a permanent ID.
  @Test(arguments: [false, true]) func attributesGetTheIDOfTheObjectThatRemains(_ isPermanent: Bool) throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription("Tag", attributes: [AttributeDescription("name", .string)], uniquenessConstraints: [["name"]]),
      EntityDescription("Note", attributes: [AttributeDescription("about", .objectID, isOptional: true)]),
    ])
    let context = try ManagedObjectContext(coordinator: PersistentStoreCoordinator(model: model, store: .memory()))
    context.mergePolicy = .mergeByPropertyObjectTrump
    func tag() throws -> ManagedObject {
      let tag = try context.insert(entityNamed: "Tag")
      try tag.setValue("sea", forKey: "name")
      return tag
    }
    let old = try tag()
    try context.save()
    let new = try tag(), note = try context.insert(entityNamed: "Note")
    if isPermanent { try context.obtainPermanentIDs(for: [new]) }
    try note.setValue(.objectID(new.objectID), forKey: "about")
    try context.save()
    #expect(try note.value(forKey: "about").storeValue == .objectID(old.objectID))
    #expect(try context.fetch(FetchRequest<ManagedObject>(entityName: "Tag")) == [old])
  }

  @Test(arguments: TestStore.allCases)
  func aFailedSaveWithDuplicatesCanBeResolved(_ store: TestStore) throws {
    let place = try store.makePlace(), context = try place.context()
    context.dog("Old").chip = 7
    try context.save()
    let new = context.dog("New")
    new.chip = 7
    context.person("Ann")
    let error = try #require(throws: PersistenceError.self) { try context.save() }
    #expect(error.code == .constraintConflict && error.objectIDs == [new.objectID])
    try context.discardChanges(of: error.objectIDs)
    try context.save()
    #expect(try context.count(Dog.self) == 1 && context.count(Person.self) == 1)
  }
}

extension ManagedObjectContext {
  fileprivate var registeredDogs: [Dog] { registeredObjects.compactMap { $0 as? Dog } }
}

/// What another process saves after a store has refused a save.
private final class Rival: Sendable {
  private let request: SaveRequest
  private let isDue = Mutex(false)

  init(_ request: SaveRequest) { self.request = request }

  func noteRefusal() { isDue.withLock { $0 = true } }

  func save(in store: any IncrementalStore) throws {
    let wasDue = isDue.withLock { isDue in
      defer { isDue = false }
      return isDue
    }
    if wasDue { _ = try store.prepare(request, options: RequestOptions()).commit() }
  }
}

/// A store that another process changes between a refused save and the next reading of the store.
private final class RacedStore: ForwardingStore {
  let base: any IncrementalStore
  private let rival: Rival

  init(_ base: any IncrementalStore, _ rival: Rival) { (self.base, self.rival) = (base, rival) }

  func prepare(_ request: SaveRequest, options: RequestOptions) throws -> any PreparedSave {
    do { return try base.prepare(request, options: options) } catch {
      rival.noteRefusal()
      throw error
    }
  }

  func beginRead(_ kind: ReadViewKind, options: RequestOptions) throws -> any ReadView {
    try rival.save(in: base)
    return try base.beginRead(kind, options: options)
  }
}
