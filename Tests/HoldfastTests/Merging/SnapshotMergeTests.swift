import Foundation
import HoldfastStore
import Testing

@testable import Holdfast

/// Snapshots that are edited while their objects change.
@Suite struct SnapshotMergeTests {
  typealias Policy = MergePolicyTests.Policy

  /// Fido, a snapshot of him in which the name and the weight were changed, after he changed his name and age.
  private func edited(_ store: TestStore) throws -> (ManagedObjectContext, Dog, ManagedObjectSnapshot<Dog>) {
    let context = try store.makePlace().context(), fido = context.dog("Fido", age: 3)
    fido.notes = "old"
    try context.save()
    var draft = try ManagedObjectSnapshot(fido)
    #expect(draft.objectID == fido.objectID)
    draft.name = "Draft"
    draft.weight = 5
    fido.name = "Now"
    fido.age = 4
    return (context, fido, draft)
  }

  @Test(arguments: TestStore.allCases, Policy.allCases)
  func anEditedSnapshotIsMergedAsThePolicySays(_ store: TestStore, _ policy: Policy) throws {
    let (context, fido, draft) = try edited(store)
    try draft.apply(to: fido, mergingBy: policy.policy)
    #expect(fido.name == (policy.prefersOurs ? "Draft" : "Now") && fido.age == (policy == .overwrite ? 3 : 4))
    #expect(fido.weight == (policy == .rollback ? nil : 5) && fido.notes == "old")
    try context.save()
  }

  /// The bug: the model has the age in 16 bits, and a snapshot's member sets 64, so equal ages counted as a change.
  @Test(arguments: TestStore.allCases) func anEqualNumberIsNotAChangeIfItIsNarrowerInTheModel(_ store: TestStore) throws {
    let context = try store.makePlace().context(), fido = context.dog("Fido", age: 3)
    try context.save()
    let snapshot = try ManagedObjectSnapshot(fido)
    var draft = snapshot
    draft.age = 3
    let decoded = try JSONDecoder().decode(ManagedObjectSnapshot<Dog>.self, from: JSONEncoder().encode(snapshot))
    #expect(draft == snapshot && decoded == snapshot)
    fido.age = 4
    try draft.apply(to: fido, mergingBy: .error)
    #expect(fido.age == 4)
  }

  /// The bug: applying the snapshot threw `wrongType`, because the text that was set or decoded isn't a URI.
  @Test(arguments: TestStore.withChild) func aSnapshotHasTheTextOfAURI(_ store: TestStore) throws {
    let place = try store.makeAtlas(), context = try place.context(), a = context.spot("A"), b = context.spot("B")
    a.text = "mailto:a@b.c"
    try context.save()
    let snapshot = try ManagedObjectSnapshot(a)
    var draft = snapshot
    #expect(draft.text == "mailto:a@b.c")
    draft.text = "mailto:a@b.c"
    #expect(draft == snapshot)
    draft.text = "mailto:d@e.f"
    try draft.apply(to: a, mergingBy: .error)
    #expect(try a.text == "mailto:d@e.f" && a.value(forKey: "text") == .uri("mailto:d@e.f"))
    let decoded = try JSONDecoder().decode(ManagedObjectSnapshot<Spot>.self, from: JSONEncoder().encode(draft))
    try decoded.apply(to: b)
    #expect(b.text == "mailto:d@e.f")
    try context.save()
  }

  /// The bug: NaN doesn't equal itself, so an unchanged one counted as changed in the snapshot and in the object.
  @Test func anUnchangedNaNIsNotAChange() throws {
    let context = try TestStore.memory.makePlace().context(), fido = context.dog("Fido", age: 3)
    (fido.weight, fido.born) = (Double.nan, Date(timeIntervalSinceReferenceDate: .nan))
    for policy in [MergePolicy.error, .rollback, .mergeByPropertyStoreTrump, .custom { _ in .error }] {
      var draft = try ManagedObjectSnapshot(fido)
      draft.age += 1
      try draft.apply(to: fido, mergingBy: policy)
      #expect(fido.age == draft.age && fido.weight?.isNaN == true)
    }
    // Another value in its place is a change.
    var draft = try ManagedObjectSnapshot(fido)
    draft.weight = 7
    fido.weight = 5
    #expect(try #require(throws: PersistenceError.self) { try draft.apply(to: fido, mergingBy: .error) }.code == .conflict)
    try draft.apply(to: fido, mergingBy: .mergeByPropertyObjectTrump)
    #expect(fido.weight == 7)
  }

  /// The bug: equal texts with other code points weren't a change, so the edit was lost.
  @Test(arguments: TestStore.allCases, [MergePolicy.error, .overwrite])
  func aTextWithOtherCodePointsIsAChange(_ store: TestStore, _ policy: MergePolicy) throws {
    let place = try store.makePlace(), context = try place.context(), fido = context.dog("Ren\u{E9}")
    try context.save()
    var draft = try ManagedObjectSnapshot(fido)
    draft.name = "Rene\u{301}"
    fido.age = 9
    try draft.apply(to: fido, mergingBy: policy)
    try context.save()
    let saved = try place.context().fetch(FetchRequest<Dog>())
    #expect(saved.map { Array($0.name.utf8) } == [Array("Rene\u{301}".utf8)])
  }

  // MARK: Saves of other contexts

  private typealias Two = MergePolicyTests.Two

  /// Fido in two contexts, and a snapshot of ours in which another task has changed the name and the weight.
  private func editedElsewhere(_ store: TestStore) async throws -> (Two, ManagedObjectSnapshot<Dog>) {
    let two = try Two(store, .error) { _, fido in fido.notes = "old" }
    let snapshot = try ManagedObjectSnapshot(two.fido)
    let edited = await Task.detached {
      var draft = snapshot
      draft.name = "Draft"
      draft.weight = 5
      return draft
    }.value
    return (two, edited)
  }

  @Test(arguments: TestStore.allCases, Policy.allCases)
  func aSnapshotThatWasEditedElsewhereIsMergedWithWhatOthersHaveSaved(_ store: TestStore, _ policy: Policy) async throws {
    let (two, edited) = try await editedElsewhere(store)
    two.ours.automaticallyMergesChanges = true
    (two.theirFido.name, two.theirFido.age) = ("Theirs", 4)
    try two.theirs.save()
    try two.ours.processPendingChanges()
    #expect(two.fido.name == "Theirs" && edited.objectID == two.fido.objectID)
    try edited.apply(to: two.fido, mergingBy: policy.policy)
    try two.ours.save()
    let saved = try #require(try two.saved())
    #expect(saved.name == (policy.prefersOurs ? "Draft" : "Theirs") && saved.age == (policy == .overwrite ? 3 : 4))
    #expect(saved.weight == (policy == .rollback ? nil : 5) && saved.notes == "old")
  }

  /// The context hasn't merged what the other one has saved, so its save finds the conflict.
  @Test(arguments: TestStore.allCases)
  func aSnapshotThatIsAppliedToAnOlderObjectIsInConflictWhenItIsSaved(_ store: TestStore) async throws {
    let (two, edited) = try await editedElsewhere(store)
    two.theirFido.notes = "theirs"
    try two.theirs.save()
    try edited.apply(to: two.fido, mergingBy: .error)
    #expect(two.fido.name == "Draft" && two.fido.weight == 5)
    let error = try #require(throws: PersistenceError.self) { try two.ours.save() }
    #expect(error.code == .conflict && error.objectIDs == [two.fido.objectID])
    try two.ours.resolveConflicts(of: error, using: .mergeByPropertyObjectTrump)
    try two.ours.save()
    let saved = try #require(try two.saved())
    #expect(saved.name == "Draft" && saved.weight == 5 && saved.notes == "theirs")
  }

  @Test(arguments: TestStore.allCases) func aSnapshotOfADeletedObjectCanBeInserted(_ store: TestStore) async throws {
    let (two, edited) = try await editedElsewhere(store)
    two.ours.automaticallyMergesChanges = true
    two.theirs.delete(two.theirFido)
    try two.theirs.save()
    try two.ours.processPendingChanges()
    let error = try #require(throws: PersistenceError.self) { try edited.apply(to: two.fido, mergingBy: .mergeByPropertyObjectTrump) }
    #expect(error.code == .missingObject && !two.ours.hasChanges)
    let new = try two.ours.insert(edited)
    try two.ours.save()
    #expect(new.objectID != edited.objectID)
    let saved = try #require(try two.saved())
    #expect(saved.name == "Draft" && saved.age == 3 && saved.weight == 5 && saved.notes == "old")
  }

  /// The bug: the key of the missing object was saved.
  @Test(arguments: TestStore.allCases, [false, true])
  func aSnapshotDoesNotReferenceAnObjectThatWasDeleted(_ store: TestStore, _ isSaved: Bool) throws {
    let place = try store.makePlace(), context = try place.context(), ann = context.person("Ann"), fido = context.dog("Fido", owner: ann)
    try context.save()
    var draft = try ManagedObjectSnapshot(fido)
    draft.notes = "edited"
    context.delete(ann)
    if isSaved { try context.save() }
    try draft.apply(to: fido)
    #expect(fido.owner == nil && fido.notes == "edited")
    try draft.apply(to: fido, mergingBy: .overwrite)
    let copy = try context.insert(draft)
    #expect(fido.owner == nil && copy.owner == nil && copy.notes == "edited")
    try context.save()
    let saved = try place.context().fetch(FetchRequest<Dog>())
    #expect(saved.map(\.notes) == ["edited", "edited"] && saved.allSatisfy { $0.toOneID(Dog.Slot.owner) == nil })
  }

  // MARK: Destinations that are new

  /// The bug: its new ID counted as a change, so `rollback` set nothing, and `overwrite` threw after setting other properties.
  @Test(arguments: TestStore.allCases, Policy.allCases)
  func aDestinationThatWasSavedSinceIsTheSame(_ store: TestStore, _ policy: Policy) throws {
    let place = try store.makePlace(), context = try place.context(), ann = context.person("Ann"), fido = context.dog("Fido", owner: ann)
    var draft = try ManagedObjectSnapshot(fido)
    draft.name = "Draft"
    try context.save()
    try draft.apply(to: fido, mergingBy: policy.policy)
    #expect(fido.name == "Draft" && fido.owner === ann)
    try context.save()
    let saved = try place.context().fetch(FetchRequest<Dog>())
    #expect(saved.map(\.name) == ["Draft"] && saved.map { $0.owner?.name } == ["Ann"])
  }

  @Test(arguments: TestStore.allCases, Policy.allCases)
  func anotherDestinationIsAChangeIfTheFormerWasSavedSince(_ store: TestStore, _ policy: Policy) throws {
    let context = try store.makePlace().context(), ann = context.person("Ann"), bob = context.person("Bob")
    let fido = context.dog("Fido", owner: ann)
    var draft = try ManagedObjectSnapshot(fido)
    draft.name = "Draft"
    try context.save()
    fido.owner = bob
    try draft.apply(to: fido, mergingBy: policy.policy)
    #expect(fido.name == (policy == .rollback ? "Fido" : "Draft") && fido.owner === (policy == .overwrite ? ann : bob))
    try context.save()
  }

  @Test(arguments: TestStore.allCases) func aSnapshotReferencesADestinationThatWasSavedSince(_ store: TestStore) throws {
    let place = try store.makePlace(), context = try place.context(), ann = context.person("Ann"), fido = context.dog("Fido", owner: ann)
    let snapshot = try ManagedObjectSnapshot(fido)
    try context.obtainPermanentIDs(for: [ann])
    #expect(try context.insert(snapshot).owner === ann)
    try context.save()
    fido.owner = nil
    try snapshot.apply(to: fido)
    #expect(try fido.owner === ann && context.insert(snapshot).owner === ann)
    try context.save()
    let saved = try place.context().fetch(FetchRequest<Dog>())
    #expect(saved.map { $0.owner?.name } == ["Ann", "Ann", "Ann"])
  }

  /// Objects of different entities can have the same key.
  ///
  /// The bug: when a new dog became a saved one, a new person with the dog's former key was replaced by the person with its present one.
  @Test(arguments: TestStore.allCases) func aDestinationStaysTheSameIfAnObjectOfAnotherEntityIsMerged(_ store: TestStore) throws {
    let context = try store.makeKennelsOfTwo().context()
    context.mergePolicy = .mergeByPropertyObjectTrump
    let cleo = context.person("Cleo"), pet = context.dog("Pet", owner: cleo), new = context.dog("New"), collar = context.insert(Collar.self)
    new.chip = 1
    collar.dog = new
    let petSnapshot = try ManagedObjectSnapshot(pet), collarSnapshot = try ManagedObjectSnapshot(collar)
    // In most stores, both get the key 3.
    try context.obtainPermanentIDs(for: [cleo])
    try context.obtainPermanentIDs(for: [new])
    try context.save()
    (pet.owner, collar.dog) = (nil, nil)
    try petSnapshot.apply(to: pet)
    try collarSnapshot.apply(to: collar)
    #expect(pet.owner === cleo && collar.dog === new && new.chip == 1)
    try context.save()
  }

  // MARK: Decisions

  @Test func contradictionsAreErrorsAndOtherChangesAreMerged() throws {
    let (_, fido, draft) = try edited(.memory)
    let error = try #require(throws: PersistenceError.self) { try draft.apply(to: fido, mergingBy: .error) }
    #expect(error.code == .conflict && error.objectIDs == [fido.objectID] && fido.name == "Now" && fido.weight == nil)
    var other = try ManagedObjectSnapshot(fido)
    other.weight = 9
    fido.age = 8
    try other.apply(to: fido, mergingBy: .error)
    #expect(fido.weight == 9 && fido.age == 8 && fido.name == "Now")
  }

  @Test func withoutChangesOfTheObjectEveryPolicyAppliesTheSnapshot() throws {
    for policy in [MergePolicy.error, .rollback, .mergeByPropertyStoreTrump, .custom { _ in .error }] {
      let context = try TestStore.memory.makePlace().context(), fido = context.dog("Fido")
      var draft = try ManagedObjectSnapshot(fido)
      draft.name = "Draft"
      try draft.apply(to: fido, mergingBy: policy)
      #expect(fido.name == "Draft")
    }
  }

  @Test func aCustomPolicyReceivesTheThreeStates() throws {
    struct Refusal: Error {}
    let (_, fido, draft) = try edited(.memory)
    try draft.apply(
      to: fido,
      mergingBy: .custom { conflict in
        guard conflict.base?["name"] == .string("Fido"), conflict.ours?["name"] == .string("Draft"), conflict.theirs?["age"] == .int16(4),
          conflict.base?["age"] == .int16(3), conflict.ours?["age"] == .int16(3)
        else { return .error }
        return .values(["name": .string("Both")])
      })
    #expect(fido.name == "Both" && fido.weight == 5 && fido.age == 4)
    #expect(throws: PersistenceError.self) { try draft.apply(to: fido, mergingBy: .custom { _ in throw Refusal() }) }
  }

  @Test func aCustomPolicyWithAValueThatCannotBeSetChangesNothing() throws {
    let (_, fido, draft) = try edited(.memory), (name, age, weight) = (fido.name, fido.age, fido.weight)
    for values in [["name": StoreValue.string("Both"), "weight": .string("heavy")], ["unknown": .null]] {
      #expect(throws: PersistenceError.self) { try draft.apply(to: fido, mergingBy: .custom { _ in .values(values) }) }
      #expect(fido.name == name && fido.age == age && fido.weight == weight)
    }
  }

  @Test func aSnapshotIsEqualByItsValues() throws {
    let context = try TestStore.memory.makePlace().context(), fido = context.dog("Fido"), rex = context.dog("Fido")
    var draft = try ManagedObjectSnapshot(fido)
    #expect(try draft == ManagedObjectSnapshot(rex) && draft.hashValue == ManagedObjectSnapshot(rex).hashValue)
    draft.name = "Draft"
    #expect(try draft != ManagedObjectSnapshot(rex))
  }

  private static let decimals = [
    "0", "-1.5", "123456789012345", "12345678901234567890123456789012345678", "0.00000000000000000000000000000000000001", "NaN",
  ]

  /// The bug: a NaN made the whole text invalid, and the decoder refused some decimals of 38 digits.
  @Test(arguments: decimals) func aDecimalIsDecodedAsItWasEncoded(_ text: String) throws {
    let context = try TestStore.memory.makePlace().context(), fido = context.dog("Fido", age: 3), rex = context.dog("Rex", age: 5)
    fido.price = text == "NaN" ? Decimal.nan : Decimal(string: text)
    let body = try JSONEncoder().encode(ManagedObjectSnapshot(fido))
    try JSONDecoder().decode(ManagedObjectSnapshot<Dog>.self, from: body).apply(to: rex)
    #expect(rex.name == "Fido" && rex.price?.description == text)
  }

  @Test func aDecimalIsDecodedFromANumberAndFromItsText() throws {
    func price(_ content: String) throws -> Decimal? {
      try JSONDecoder().decode(ManagedObjectSnapshot<Dog>.self, from: Data("{\"price\": \(content)}".utf8)).price
    }
    #expect(try price("1.25") == Decimal(string: "1.25") && price("\"1.25\"") == Decimal(string: "1.25") && price("null") == nil)
    for content in ["\"\"", "\"1.25x\"", "true"] { #expect(throws: DecodingError.self, "\(content)") { try price(content) } }
  }

  /// Another version of the program encoded it: it has a property that the class lacks, and lacks others.
  @Test(arguments: [TestStore.memory, .sqlite]) func aSnapshotOfAnotherVersionSetsOnlyWhatItHas(_ store: TestStore) throws {
    let place = try store.makePlace(), context = try place.context(), fido = context.dog("Fido", age: 3)
    (fido.notes, fido.chip, fido.isGood) = ("kept", 7, false)
    try context.save()
    func decoded(_ text: String) throws -> ManagedObjectSnapshot<Dog> {
      try JSONDecoder().decode(ManagedObjectSnapshot<Dog>.self, from: Data(text.utf8))
    }
    let draft = try decoded(#"{"name": "Old", "age": 9, "tail": {"length": 5}}"#)
    #expect(draft.objectID == nil && draft.name == "Old" && draft.age == 9)
    #expect(try #require(throws: PersistenceError.self) { try draft.apply(to: fido, mergingBy: .error) }.code == .conflict)
    for policy in [MergePolicy.rollback, .mergeByPropertyStoreTrump] { try draft.apply(to: fido, mergingBy: policy) }
    #expect(fido.name == "Fido" && fido.age == 3 && !context.hasChanges)
    for policy in [MergePolicy.mergeByPropertyObjectTrump, .overwrite] {
      try draft.apply(to: fido, mergingBy: policy)
      #expect(fido.name == "Old" && fido.age == 9 && fido.notes == "kept" && fido.chip == 7 && !fido.isGood)
      context.rollback()
    }
    try draft.apply(to: fido)
    #expect(fido.name == "Old" && fido.age == 9 && fido.notes == "kept" && fido.chip == 7 && !fido.isGood)
    let new = try context.insert(draft)
    #expect(new.name == "Old" && new.age == 9 && new.isGood && new.notes == nil)
    // A value of another type is an error, and sets nothing.
    #expect(throws: (any Error).self) { try decoded(#"{"name": 5}"#) }
    #expect(throws: (any Error).self) { try decoded(#"{"age": "nine"}"#) }
    try context.save()
    #expect(try namesOfDogs(place.context()) == ["Old", "Old"])
  }
}
