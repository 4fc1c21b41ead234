import Foundation
import HoldfastMemoryStore
import HoldfastSQLiteStore
import HoldfastStore
import HoldfastStoreConformance
import Testing

@testable import Holdfast

/// Less usual sequences of saves, merges and conflicts.
@Suite struct MergeEdgeTests {
  typealias Two = MergePolicyTests.Two

  private func save(_ context: ManagedObjectContext) async throws -> SavedChanges {
    var changes = context.persistentStoreCoordinator.savedChanges().makeAsyncIterator()
    try context.save()
    return try #require(await changes.next(isolation: #isolation))
  }

  // MARK: Upserts

  @Test(arguments: TestStore.allCases) func severalDuplicatesOfAStoredObjectBecomeOne(_ store: TestStore) throws {
    let place = try store.makePlace(), setup = try place.context()
    setup.dog("Old", age: 9).chip = 7
    try setup.save()
    let context = try place.context()
    context.mergePolicy = .mergeByPropertyObjectTrump
    let dogs = ["A", "B", "C"].map { name in
      let dog = context.dog(name)
      dog.chip = 7
      return dog
    }
    dogs[0].friends.insert(dogs[1])
    dogs[1].friends.insert(dogs[1])
    try context.save()
    #expect(dogs.map(\.isInaccessible) == [false, true, true] && dogs[0].name == "C" && dogs[0].age == 9)
    #expect(dogs[0].friends.map(\.objectID) == [dogs[0].objectID])
    try place.close()
    let saved = try place.context().fetch(FetchRequest<Dog>())
    #expect(saved.map(\.name) == ["C"] && saved[0].friends.count == 1)
  }

  /// The reference makes the stored object, which the context doesn't have when the save is refused.
  @Test(arguments: TestStore.allCases) func anUpsertOfAnObjectThatReferencesTheStoredOneReferencesItself(_ store: TestStore) throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Node", attributes: [AttributeDescription("code", .integer16)], relationships: [.toOne("next", to: "Node", inverse: nil)],
        uniquenessConstraints: [["code"]])
    ])
    let place = try store.makePlace(model: model, classes: []), (context, setup) = try place.twoContexts(.overwrite)
    let stored = try setup.insert(entityNamed: "Node")
    try stored.setValue(StoreValue.int16(7), forKey: "code")
    try setup.save()
    let node = try context.insert(entityNamed: "Node")
    try node.setValue(StoreValue.int16(7), forKey: "code")
    try node.setValue(StoreValue.objectID(stored.objectID), forKey: "next")
    try context.save()
    #expect(!context.hasChanges && node.isInaccessible)
    let saved = try place.context().fetch(FetchRequest<ManagedObject>(entityName: "Node"))
    #expect(try saved.map(\.objectID) == [stored.objectID] && saved[0].value(forKey: "next") == .objectID(stored.objectID))
  }

  // MARK: Versions

  @Test(arguments: TestStore.allCases) func anObjectThatIsInsertedAgainConflictsWithOlderReads(_ store: TestStore) throws {
    let two = try Two(store, .mergeByPropertyObjectTrump), third = try two.place.context()
    let stale = try third.existingDog(two.fido.objectID)
    #expect(stale.age == 3)
    two.theirs.delete(two.theirFido)
    try two.theirs.save()
    two.fido.name = "Ours"
    try two.ours.save()
    stale.age = 9
    let error = try #require(throws: PersistenceError.self) { try third.save() }
    #expect(error.code == .conflict)
    #expect(try two.saved()?.name == "Ours")
  }

  @Test(arguments: TestStore.allCases) func twoContextsInsertTheSameObjectAgain(_ store: TestStore) throws {
    let two = try Two(store, .mergeByPropertyObjectTrump), third = try two.place.context()
    let late = try third.existingDog(two.fido.objectID)
    #expect(late.age == 3)
    two.theirs.delete(two.theirFido)
    try two.theirs.save()
    late.name = "Late"
    let error = try #require(throws: PersistenceError.self) { try third.save() }
    try third.resolveConflicts(of: error, using: .mergeByPropertyObjectTrump)
    two.fido.notes = "by the first"
    try two.ours.save()
    third.mergePolicy = .mergeByPropertyObjectTrump
    try third.save()
    let saved = try #require(try two.saved())
    #expect(saved.name == "Late" && saved.age == 3)
  }

  @Test(arguments: TestStore.allCases) func anOwnerAndItsMemberAreInsertedAgainTogether(_ store: TestStore) throws {
    let place = try store.makePlace(), setup = try place.context()
    setup.dog("Fido", age: 3, owner: setup.person("Ann"))
    try setup.save()
    let context = try place.context(), other = try place.context()
    context.mergePolicy = .mergeByPropertyObjectTrump
    let fido = try #require(try context.one(Dog.self) { $0.name == "Fido" }), ann = try #require(fido.owner)
    #expect(ann.dogs.count == 1)
    for dog in try other.fetch(FetchRequest<Dog>()) { other.delete(dog) }
    for person in try other.fetch(FetchRequest<Person>()) { other.delete(person) }
    try other.save()
    ann.city = "Rome"
    fido.age = 4
    context.dog("New", age: 1, owner: ann)
    try context.save()
    #expect(Set(ann.dogs.map(\.name)) == ["Fido", "New"] && fido.owner === ann)
    try place.close()
    let saved = try #require(try place.context().fetch(FetchRequest<Person>()).first)
    #expect(saved.city == "Rome" && Set(saved.dogs.map(\.name)) == ["Fido", "New"])
  }

  // MARK: Merging

  @Test(arguments: TestStore.allCases) func changesMadeAfterTheMergedSaveWasReadStay(_ store: TestStore) async throws {
    for policy in [MergePolicy.rollback, .mergeByPropertyStoreTrump, .error] {
      let two = try Two(store, policy)
      two.theirFido.name = "Theirs"
      let changes = try await save(two.theirs)
      try two.ours.refresh(two.fido, mergeChanges: false)
      #expect(two.fido.name == "Theirs")
      two.fido.name = "Ours"
      try two.ours.mergeChanges(from: changes)
      #expect(two.fido.name == "Ours")
      try two.ours.save()
      // The context's own save, as a stream delivers it.
      let own = SavedChanges(storeIdentifier: changes.storeIdentifier, contextName: "", updated: [two.fido.objectID])
      two.ours.delete(two.fido)
      try two.ours.mergeChanges(from: own)
      #expect(two.fido.isDeleted)
      try two.ours.save()
      #expect(try two.saved() == nil)
    }
  }

  @Test(arguments: TestStore.allCases) func anOldMessageOfADeletionDoesNotRemoveAnObjectThatExistsAgain(_ store: TestStore) async throws {
    let two = try Two(store, .mergeByPropertyObjectTrump)
    two.theirs.delete(two.theirFido)
    let deletion = try await save(two.theirs)
    two.fido.name = "Ours"
    try two.ours.save()
    try two.ours.mergeChanges(from: deletion)
    #expect(!two.fido.isInaccessible)
    two.fido.name = "Again"
    try two.ours.save()
    #expect(try two.saved()?.name == "Again")
  }

  @Test(arguments: TestStore.allCases) func aContextThatMergesItselfSavesOverADeletion(_ store: TestStore) throws {
    let two = try Two(store, .mergeByPropertyObjectTrump)
    two.ours.automaticallyMergesChanges = true
    two.fido.name = "Ours"
    two.theirs.delete(two.theirFido)
    try two.theirs.save()
    try two.ours.save()
    try two.ours.processPendingChanges()
    #expect(!two.fido.isInaccessible && two.fido.name == "Ours")
    #expect(try two.saved()?.name == "Ours")
  }

  @Test(arguments: TestStore.allCases) func eachObjectIsReportedOnce(_ store: TestStore) async throws {
    let two = try Two(store, .mergeByPropertyStoreTrump) { context, _ in context.dog("Rex", age: -1) }
    let rex = try #require(try two.ours.one(Dog.self) { $0.name == "Rex" })
    two.theirs.delete(two.theirFido)
    try two.theirs.existingDog(rex.objectID).name = "Max"
    let changes = try await save(two.theirs)
    two.fido.age = 5
    rex.notes = "ours"
    try two.ours.processPendingChanges()
    var heard: [ObjectChanges] = []
    let observation = two.ours.onChange { _, changes in heard.append(changes) }
    try two.ours.mergeChanges(from: changes)
    #expect(heard == [ObjectChanges(deleted: [two.fido.objectID], refreshed: [rex.objectID])])
    withExtendedLifetime(observation) {}
  }

  /// The bug: handlers didn't receive that the owner had the dog again.
  @Test(arguments: TestStore.allCases) func aMergeThatRevertsADeletionReportsTheOwner(_ store: TestStore) async throws {
    let two = try Two(store, .rollback) { context, fido in fido.owner = context.person("Ann") }
    let ann = try #require(two.fido.owner)
    var heard: [ObjectChanges] = []
    let observation = two.ours.onChange { _, changes in heard.append(changes) }
    two.ours.delete(two.fido)
    try two.ours.processPendingChanges()
    #expect(heard == [ObjectChanges(updated: [ann.objectID], deleted: [two.fido.objectID])])
    two.theirFido.age = 10
    let changes = try await save(two.theirs)
    heard = []
    try two.ours.mergeChanges(from: changes)
    #expect(heard == [ObjectChanges(updated: [ann.objectID], refreshed: [two.fido.objectID])])
    #expect(!two.fido.isDeleted && two.fido.age == 10 && ann.dogs.contains(two.fido) && !two.ours.hasChanges)
    withExtendedLifetime(observation) {}
  }

  // MARK: Detection

  @Test(arguments: TestStore.allCases) func aDetectedConflictFailsTheSaveUnderEveryPolicy(_ store: TestStore) async throws {
    for policy in MergePolicyTests.Policy.allCases {
      for deletes in [false, true] {
        let two = try Two(store, policy.policy)
        try two.ours.detectConflicts(for: two.fido)
        if deletes { two.theirs.delete(two.theirFido) } else { two.theirFido.age = 10 }
        let changes = try await save(two.theirs)
        try two.ours.mergeChanges(from: changes)
        two.ours.person("Ann")
        let error = try #require(throws: PersistenceError.self) { try two.ours.save() }
        #expect(error.code == .conflict && error.objectIDs == [two.fido.objectID])
        try two.ours.resolveConflicts(of: error, using: policy.policy)
        try two.ours.save()
        #expect(two.fido.isInaccessible == deletes && (deletes || two.fido.age == 10))
      }
    }
  }

  /// A refused save and one without changes don't end it.
  @Test(arguments: TestStore.allCases) func aConflictIsDetectedUntilTheObjectIsAFaultOrTheContextHasNoChanges(_ store: TestStore) throws {
    let ends: [(people: Int, end: (Two) throws -> Void)] = [
      (1, { $0.ours.rollback() }), (1, { $0.ours.reset() }), (2, { try $0.ours.refresh($0.fido, mergeChanges: false) }),
    ]
    for (people, end) in ends {
      let two = try Two(store, .mergeByPropertyObjectTrump)
      try two.ours.detectConflicts(for: two.fido)
      two.theirFido.age = 10
      try two.theirs.save()
      try two.ours.save()
      let ann = two.ours.person("Ann"), id = two.fido.objectID
      for _ in 0..<2 {
        let error = try #require(throws: PersistenceError.self) { try two.ours.save() }
        #expect(error.code == .conflict && error.objectIDs == [id] && ann.isInserted)
      }
      try end(two)
      two.ours.person("Bob")
      try two.ours.save()
      #expect(try two.place.context().count(for: FetchRequest<Person>()) == people)
    }
  }

  @Test(arguments: TestStore.allCases) func aConflictIsNotDetectedForAnObjectThatDoesNotExist(_ store: TestStore) throws {
    let two = try Two(store, .error)
    try two.ours.refresh(two.fido, mergeChanges: false)
    two.theirs.delete(two.theirFido)
    try two.theirs.save()
    let error = try #require(throws: PersistenceError.self) { try two.ours.detectConflicts(for: two.fido) }
    #expect(error.code == .missingObject && error.objectID == two.fido.objectID)
    two.ours.person("Ann")
    try two.ours.save()
  }

  /// The bug: the call returned, and changes that depend on the values of the object were saved.
  @Test(arguments: TestStore.allCases, [false, true])
  func aConflictIsNotDetectedForAnObjectThatHasLeftTheGraph(_ store: TestStore, _ resets: Bool) async throws {
    let two = try Two(store, .mergeByPropertyStoreTrump), id = two.fido.objectID
    two.theirs.delete(two.theirFido)
    let changes = try await save(two.theirs)
    if resets { two.ours.reset() } else { try two.ours.mergeChanges(from: changes) }
    let error = try #require(throws: PersistenceError.self) { try two.ours.detectConflicts(for: two.fido) }
    #expect(error.code == .missingObject && error.objectID == id)
    two.ours.person("Ann")
    try two.ours.save()
  }

  /// Until then it keeps the values on which other changes depend.
  @Test(arguments: TestStore.allCases, [false, true])
  func anObjectWhoseConflictIsDetectedIsReadAgainWhenTheContextIsRolledBack(_ store: TestStore, _ deletes: Bool) throws {
    let two = try Two(store, .error)
    two.ours.automaticallyMergesChanges = true
    try two.ours.detectConflicts(for: two.fido)
    if deletes { two.theirs.delete(two.theirFido) } else { two.theirFido.age = 10 }
    try two.theirs.save()
    try two.ours.processPendingChanges()
    #expect(two.fido.age == 3)
    two.ours.rollback()
    #expect(two.fido.age == (deletes ? 0 : 10) && two.fido.isInaccessible == deletes)
    two.ours.person("Ann")
    try two.ours.save()
  }

  /// Until then, the child reads what its parent has kept.
  @Test(arguments: TestStore.allCases) func aChildReadsSuchAnObjectAgainWhenItsParentIsRolledBack(_ store: TestStore) throws {
    let two = try Two(store, .error), child = ManagedObjectContext(parent: two.ours)
    for context in [two.ours, child] { context.automaticallyMergesChanges = true }
    let fido = try child.existingDog(two.fido.objectID)
    #expect(fido.age == 3)
    try two.ours.detectConflicts(for: two.fido)
    two.theirFido.age = 10
    try two.theirs.save()
    try two.ours.processPendingChanges()
    try child.processPendingChanges()
    #expect(fido.age == 3)
    two.ours.rollback()
    try child.processPendingChanges()
    #expect(fido.age == 10)
  }

  /// The save of the child succeeds, because only a later one of the parent can be in conflict.
  @Test(arguments: TestStore.allCases) func aConflictThatAChildDetectsFailsTheSaveOfItsParent(_ store: TestStore) throws {
    let two = try Two(store, .error), child = ManagedObjectContext(parent: two.ours)
    try child.detectConflicts(for: child.existingDog(two.fido.objectID))
    let ann = child.person("Ann")
    try child.save()
    two.theirFido.age = 10
    try two.theirs.save()
    let error = try #require(throws: PersistenceError.self) { try two.ours.save() }
    #expect(error.code == .conflict && error.objectIDs == [two.fido.objectID] && !ann.objectID.isTemporaryID)
    try two.ours.resolveConflicts(of: error, using: .mergeByPropertyStoreTrump)
    try two.ours.save()
    #expect(try two.place.context().count(for: FetchRequest<Person>()) == 1)
  }

  /// The bug: the link, which only the row of the dog contains, made the person count as changed. The policy resolved its conflict, or the
  /// parent didn't detect it.
  @Test(arguments: TestStore.allCases, [false, true])
  func aDetectedConflictOfAnObjectThatOnlyOthersReferenceFailsTheSave(_ store: TestStore, _ savesChild: Bool) throws {
    let two = try Two(store, .mergeByPropertyStoreTrump) { context, _ in context.person("Ann") }
    let context = savesChild ? ManagedObjectContext(parent: two.ours) : two.ours
    let ann = try #require(try context.one(Person.self) { $0.name == "Ann" })
    try context.detectConflicts(for: ann)
    try context.existingDog(two.fido.objectID).owner = ann
    if savesChild { try context.save() }
    let theirAnn = try #require(try two.theirs.one(Person.self) { $0.name == "Ann" })
    theirAnn.name = "Anna"
    try two.theirs.save()
    let error = try #require(throws: PersistenceError.self) { try two.ours.save() }
    #expect(error.code == .conflict && error.objectIDs == [ann.objectID])
    try two.ours.resolveConflicts(of: error, using: .mergeByPropertyStoreTrump)
    try two.ours.save()
    #expect(try two.saved()?.owner?.name == "Anna")
  }

  /// The bug: the save of a child made its parent detect conflicts of an unchanged end of a changed one-to-one relationship, as if the program
  /// had called `detectConflicts(for:)`. No policy resolved them.
  @Test(arguments: TestStore.allCases) func aPolicyOfAParentResolvesConflictsOfEndsThatItsChildHasNotChanged(_ store: TestStore) throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription("Spouse", relationships: [.toOne("spouse", to: "Spouse", inverse: "spouse")])
    ])
    let place = try store.makePlace(model: model, classes: []), top = try place.context()
    let ids = try (0..<3).map { _ in try top.insert(entityNamed: "Spouse") }
    try ids[0].setValue(ids[1], forKey: "spouse")
    try top.save()
    let parent = ManagedObjectContext(parent: top), child = ManagedObjectContext(parent: parent)
    func spouse(_ number: Int, _ context: ManagedObjectContext) throws -> ManagedObject {
      try context.existingObject(with: ids[number].objectID)
    }
    let first = try spouse(0, child)
    _ = try first.value(forKey: "spouse")
    try ids[1].setValue(nil as ManagedObject?, forKey: "spouse")
    // The child reads the second object with the change, and still has the first one without it.
    let second = try spouse(1, child), third = try spouse(2, child)
    #expect(try second.value(forKey: "spouse") == StoreValue.null)
    try first.setValue(third, forKey: "spouse")
    try child.save()
    try top.save()
    parent.mergePolicy = .rollback
    try parent.save()
    #expect(!parent.hasChanges)
    withExtendedLifetime((second, third)) {}
  }

  /// The bug: discarding the change of a deleted object restored the link of its former partner, which the context didn't have, and saved it.
  @Test(arguments: TestStore.allCases) func aPairThatIsTakenBackIsNotSavedIfItsObjectWasDeleted(_ store: TestStore) throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription("Spouse", relationships: [.toOne("spouse", to: "Spouse", inverse: "spouse")])
    ])
    let place = try store.makePlace(model: model, classes: []), setup = try place.context()
    let all = try (0..<4).map { _ in try setup.insert(entityNamed: "Spouse") }
    try all[0].setValue(all[1], forKey: "spouse")
    try setup.save()
    let ids = all.map(\.objectID), ours = try place.context(), theirs = try place.context()
    ours.automaticallyMergesChanges = true
    try ours.existingObject(with: ids[0]).setValue(try ours.existingObject(with: ids[2]), forKey: "spouse")
    try theirs.existingObject(with: ids[3]).setValue(try theirs.existingObject(with: ids[0]), forKey: "spouse")
    try theirs.save()
    try ours.processPendingChanges()
    for number in [0, 3] { theirs.delete(try theirs.existingObject(with: ids[number])) }
    try theirs.save()
    ours.mergePolicy = .rollback
    try ours.save()
    let found = try place.context().fetch(FetchRequest<ManagedObject>(entityName: "Spouse"))
    #expect(Set(found.map(\.objectID)) == [ids[1], ids[2]])
    for spouse in found { #expect(!spouse.readRow.isPresent(spouse.entity.relationships[0].slot)) }
  }

  /// Four objects, of which the first two are linked one-to-one. Our context has read the first one only. The other context then links the
  /// second with the fourth one, and ours links the first with the third one.
  private struct Spouses {
    let place: TestStore.Place
    let ids: [ManagedObjectID]
    let ours: ManagedObjectContext, theirs: ManagedObjectContext
    let first: ManagedObject

    /// - Parameter deletes: Whether the other context deletes the second object instead.
    init(_ store: TestStore, deletes: Bool = false) throws {
      let model = try ManagedObjectModel(entities: [
        EntityDescription("Spouse", relationships: [.toOne("spouse", to: "Spouse", inverse: "spouse")])
      ])
      place = try store.makePlace(model: model, classes: [])
      let setup = try place.context(), all = try (0..<4).map { _ in try setup.insert(entityNamed: "Spouse") }
      try all[0].setValue(all[1], forKey: "spouse")
      try setup.save()
      ids = all.map(\.objectID)
      (ours, theirs) = try place.twoContexts()
      first = try ours.existingObject(with: ids[0])
      let second = try theirs.existingObject(with: ids[1])
      if deletes { theirs.delete(second) } else { try second.setValue(try theirs.existingObject(with: ids[3]), forKey: "spouse") }
      try theirs.save()
      try first.setValue(try ours.existingObject(with: ids[2]), forKey: "spouse")
    }

    /// The partner of each object in the store, by number. Nil for an object without one, and for one that was deleted.
    func saved() throws -> [Int?] {
      let context = try place.context(), found = try context.fetch(FetchRequest<ManagedObject>(entityName: "Spouse"))
      return try ids.map { id -> Int? in
        guard let spouse = found.first(where: { $0.objectID == id }) else { return nil }
        guard case .objectID(let partner)? = try spouse.value(forKey: "spouse").storeValue else { return nil }
        return ids.firstIndex(of: partner)
      }
    }
  }

  /// The bug: the former partner was linked again, although another context had given it another partner or deleted it. The next save took it
  /// from that partner, or threw.
  @Test(arguments: TestStore.allCases, [false, true])
  func aDiscardedLinkDoesNotChangeAFormerPartnerThatOthersHaveChanged(_ store: TestStore, _ deletes: Bool) throws {
    let expected: [Int?] = deletes ? [nil, nil, nil, nil] : [nil, 3, nil, 1]
    for refreshes in [false, true] {
      let spouses = try Spouses(store, deletes: deletes)
      if refreshes {
        try spouses.ours.refresh(spouses.first, mergeChanges: false)
      } else {
        try spouses.ours.discardChanges(of: [spouses.first.objectID])
      }
      try spouses.ours.save()
      #expect(try spouses.saved() == expected, "refreshes: \(refreshes)")
    }
  }

  /// The bug: the same, if the context didn't have the former partner.
  @Test(arguments: TestStore.allCases, MergePolicyTests.Policy.allCases)
  func aResolvedConflictDoesNotChangeAFormerPartnerThatOthersHaveChanged(_ store: TestStore, _ policy: MergePolicyTests.Policy) throws {
    let spouses = try Spouses(store)
    let error = try #require(throws: PersistenceError.self) { try spouses.ours.save() }
    try spouses.ours.resolveConflicts(of: error, using: policy.policy)
    try spouses.ours.save()
    let expected: [Int?] = policy.prefersOurs ? [2, 3, 0, 1] : [nil, 3, nil, 1]
    #expect(try spouses.saved() == expected)
  }

  /// The bug: the save threw `missingObject` when it read the former partner, which the context didn't have any more, under every policy.
  @Test(arguments: TestStore.allCases, MergePolicyTests.Policy.allCases)
  func aFormerPartnerThatOthersHaveDeletedIsAConflict(_ store: TestStore, _ policy: MergePolicyTests.Policy) throws {
    for isResolvedBySave in [false, true] {
      let spouses = try Spouses(store, deletes: true)
      if isResolvedBySave {
        spouses.ours.mergePolicy = policy.policy
      } else {
        let error = try #require(throws: PersistenceError.self) { try spouses.ours.save() }
        #expect(error.code == .conflict && error.objectIDs.contains(spouses.first.objectID))
        try spouses.ours.resolveConflicts(of: error, using: policy.policy)
      }
      try spouses.ours.save()
      let expected: [Int?] = policy.prefersOurs ? [2, nil, 0, nil] : [nil, nil, nil, nil]
      #expect(try spouses.saved() == expected, "resolved by the save: \(isResolvedBySave)")
    }
  }

  /// The list of the post contains the tag already, so only the tag records the link. The save reads the list of the tag.
  ///
  /// The bug: it threw `missingObject` then, which no policy resolves.
  @Test(arguments: TestStore.allCases) func anUnreadObjectThatIsLinkedAgainAfterItsDeletionIsAConflict(_ store: TestStore) throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription("Post", relationships: [.toMany("tags", to: "Tag", inverse: "posts")]),
      EntityDescription("Tag", relationships: [.toMany("posts", to: "Post", inverse: "tags")]),
    ])
    let place = try store.makePlace(model: model, classes: []), setup = try place.context()
    let stored = try setup.insert(entityNamed: "Post"), first = try setup.insert(entityNamed: "Tag")
    try stored.setValue([first], forKey: "tags")
    try setup.save()
    let (ours, theirs) = try place.twoContexts()
    let post = try ours.existingObject(with: stored.objectID), tags = try post.toMany(forKey: "tags")
    #expect(tags.count == 1)
    tags.insert(try ours.insert(entityNamed: "Tag"))
    try ours.save()
    theirs.delete(try theirs.existingObject(with: first.objectID))
    try theirs.save()
    let tag = try ours.object(with: first.objectID)
    try tag.toMany(forKey: "posts").insert(post)
    let error = try #require(throws: PersistenceError.self) { try ours.save() }
    #expect(error.code == .conflict && error.objectIDs == [tag.objectID])
    try ours.resolveConflicts(of: error, using: .rollback)
    try ours.save()
    #expect(tags.count == 1 && tag.isInaccessible && !ours.hasChanges)
  }

  /// The bug: a custom policy of a context that merges automatically set a reference to an object that the context didn't have, and that was
  /// deleted. The save then threw.
  @Test(arguments: TestStore.allCases) func aPolicyDoesNotLinkADeletedObjectThatTheContextDoesNotHave(_ store: TestStore) throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Spouse", attributes: [AttributeDescription("name", .string, isOptional: true)],
        relationships: [.toOne("spouse", to: "Spouse", inverse: "spouse")])
    ])
    let place = try store.makePlace(model: model, classes: []), setup = try place.context()
    let all = try (0..<2).map { _ in try setup.insert(entityNamed: "Spouse") }
    try all[0].setValue(all[1], forKey: "spouse")
    try setup.save()
    let (ours, theirs) = try place.twoContexts(.custom { .values($0.ours ?? [:]) })
    ours.automaticallyMergesChanges = true
    let first = try ours.existingObject(with: all[0].objectID)
    try first.setValue("ours", forKey: "name")
    try theirs.existingObject(with: all[0].objectID).setValue("theirs", forKey: "name")
    theirs.delete(try theirs.existingObject(with: all[1].objectID))
    try theirs.save()
    try ours.save()
    #expect(try first.value(forKey: "name") == StoreValue.string("ours"))
    let found = try place.context().fetch(FetchRequest<ManagedObject>(entityName: "Spouse"))
    #expect(found.map(\.objectID) == [first.objectID])
    for spouse in found { #expect(!spouse.readRow.isPresent(spouse.entity.relationships[0].slot)) }
  }

  @Test func aConflictIsDetectedInAStoreWithoutChanges() throws {
    let model = try ManagedObjectModel(
      entities: [
        EntityDescription("Left", attributes: [AttributeDescription("name", .string)]),
        EntityDescription("Right", attributes: [AttributeDescription("name", .string)]),
      ], configurations: [ConfigurationDescription("left", ["Left"]), ConfigurationDescription("right", ["Right"])])
    let coordinator = try PersistentStoreCoordinator(
      model: model, stores: [.memory().with(configuration: "left"), .memory().with(configuration: "right")])
    let ours = try ManagedObjectContext(coordinator: coordinator), theirs = try ManagedObjectContext(coordinator: coordinator)
    let left = try ours.insert(entityNamed: "Left")
    try left.setValue("l", forKey: "name")
    try ours.save()
    try ours.detectConflicts(for: left)
    try theirs.existingObject(with: left.objectID).setValue("changed", forKey: "name")
    try theirs.save()
    try ours.insert(entityNamed: "Right").setValue("r", forKey: "name")
    let error = try #require(throws: PersistenceError.self) { try ours.save() }
    #expect(error.code == .conflict && error.objectIDs == [left.objectID])
  }

  @Test func aConflictIsDetectedInAReadOnlyStore() throws {
    let model = try ManagedObjectModel(
      entities: ["Left", "Right"].map { EntityDescription($0, attributes: [AttributeDescription("name", .string, isOptional: true)]) },
      configurations: [ConfigurationDescription("left", ["Left"]), ConfigurationDescription("right", ["Right"])])
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("holdfast-locked-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let path = folder.appendingPathComponent("left.sqlite").path
    let first = try PersistentStoreCoordinator(model: model, store: .sqlite(at: path).with(configuration: "left"))
    let setup = try ManagedObjectContext(coordinator: first), id = try setup.insert(entityNamed: "Left")
    try setup.save()
    let uri = id.objectID.uriRepresentation
    try first.close()
    let second = try PersistentStoreCoordinator(
      model: model, stores: [.sqlite(at: path, isReadOnly: true).with(configuration: "left"), .memory().with(configuration: "right")])
    let context = try ManagedObjectContext(coordinator: second)
    let left = try context.existingObject(with: #require(second.managedObjectID(forURIRepresentation: uri)))
    try context.detectConflicts(for: left)
    _ = try context.insert(entityNamed: "Right")
    try context.save()
    #expect(!context.hasChanges)
  }

  // MARK: Order

  @Test(arguments: TestStore.allCases) func anUnsavedOrderOutlastsChangesOfItsObjects(_ store: TestStore) throws {
    let place = try Lists(store, ["a", "b", "c", "d"]).place
    for saves in [false, true] {
      let ours = try place.context(), theirs = try place.context()
      ours.mergePolicy = .mergeByPropertyObjectTrump
      ours.automaticallyMergesChanges = !saves
      let own = try #require(try ours.fetch(FetchRequest<ManagedObject>(entityName: "List")).first),
        items = try own.ordered(forKey: "items")
      let names = try items.map { try $0.value(forKey: "name").single }
      #expect(names.count >= 3)
      items.replaceAll(with: items.reversed())
      let expected = try items.map { try $0.value(forKey: "name").single }
      let last = try #require(items.first)
      let gone = try theirs.existingObject(with: last.objectID)
      if saves { try last.setValue("\(names.count)", forKey: "name") }
      if saves { try gone.setValue("theirs", forKey: "name") } else { theirs.delete(gone) }
      try theirs.save()
      try ours.processPendingChanges()
      let now = try items.map { try $0.value(forKey: "name").single }
      #expect(Array(now.suffix(2)) == Array(expected.suffix(2)))
      try ours.save()
      let fresh = try #require(try place.context().fetch(FetchRequest<ManagedObject>(entityName: "List")).first)
      let saved = try fresh.ordered(forKey: "items").map { try $0.value(forKey: "name").single }
      #expect(Array(saved.suffix(2)) == Array(expected.suffix(2)) && saved.count == expected.count - (saves ? 0 : 1))
    }
  }

  /// A property that only one side has changed gets that side's value, under each policy but `rollback`.
  @Test(arguments: TestStore.allCases, MergePolicyTests.Policy.allCases)
  func anOrderIsKeptIfTheOtherSideHasChangedOnlyTheOwner(_ store: TestStore, _ policy: MergePolicyTests.Policy) throws {
    let lists = try Lists(store, ["a", "b", "c"]), (ours, theirs) = try lists.place.twoContexts(policy.policy)
    let items = try lists.items(ours), list = try lists.list("list", ours)
    try lists.list("list", theirs).setValue("renamed", forKey: "name")
    try theirs.save()
    items.move(from: 2, to: 0)
    items.remove(at: 1)
    items.insert(try Lists.newItem("new", ours), at: 1)
    try ours.save()
    let expected = policy == .rollback ? ["a", "b", "c"] : ["c", "new", "b"]
    #expect(try Lists.names(of: items) == expected && !ours.hasChanges)
    #expect(try list.value(forKey: "name") == StoreValue.string(policy == .overwrite ? "list" : "renamed"))
    #expect(try Lists.names(of: lists.items(lists.reopened())) == expected)
  }

  /// The other context removes an item and appends one. Ours moves an item and appends one, or only appends one.
  @Test(arguments: TestStore.allCases, MergePolicyTests.Policy.allCases)
  func aListThatBothChangeIsMergedAsThePolicySays(_ store: TestStore, _ policy: MergePolicyTests.Policy) throws {
    for moves in [true, false] {
      let lists = try Lists(store, ["a", "b", "c", "d"]), ours = try lists.place.context(), theirs = try lists.place.context()
      ours.mergePolicy = policy.policy
      let items = try lists.items(ours), theirItems = try lists.items(theirs)
      #expect(try Lists.names(of: items) == ["a", "b", "c", "d"])
      theirItems.remove(at: 1)
      theirItems.append(try Lists.newItem("theirs", theirs))
      try theirs.save()
      if moves { items.move(from: 3, to: 0) }
      items.append(try Lists.newItem("ours", ours))
      try ours.save()
      let expected =
        switch policy {
        case .rollback: ["a", "c", "d", "theirs"]
        case .objectTrump where moves, .overwrite where moves: ["d", "a", "c", "ours", "theirs"]
        default: ["a", "c", "d", "theirs", "ours"]
        }
      #expect(try Lists.names(of: items) == expected && !ours.hasChanges, "moves: \(moves)")
      let saved = try lists.reopened()
      #expect(try Lists.names(of: lists.items(saved)) == expected, "moves: \(moves)")
      // What has left the list still exists.
      #expect(try saved.count(for: FetchRequest<ManagedObject>(entityName: "Item")) == 6)
    }
  }

  @Test(arguments: TestStore.allCases) func aListWithAnUnsavedOrderIsReadAgainOnceForAllItsObjects(_ store: TestStore) throws {
    let lists = try Lists(store, (0..<60).map { "\($0)" }), ours = try lists.place.context(), theirs = try lists.place.context()
    ours.automaticallyMergesChanges = true
    let items = try lists.items(ours), all = Array(items)
    for item in all { _ = try item.value(forKey: "name") }
    items.move(from: 59, to: 0)
    for item in all.prefix(40) { theirs.delete(try theirs.existingObject(with: item.objectID)) }
    try theirs.save()
    let before = ours.persistentStoreCoordinator.requestCounts.relationships
    try ours.processPendingChanges()
    // Once as the list of an object that is merged itself, and once for all that have left it.
    #expect(ours.persistentStoreCoordinator.requestCounts.relationships - before <= 2)
    #expect(Array(items) == [all[59]] + all[40..<59])
    withExtendedLifetime(all) {}
  }

  /// The item, of an entity before that of its list, is in conflict, too.
  @Test(arguments: TestStore.allCases, [MergePolicyTests.Policy.objectTrump, .overwrite])
  func aListThatIsInsertedAgainKeepsItsNewItems(_ store: TestStore, _ policy: MergePolicyTests.Policy) throws {
    let lists = try Lists(store, ["old"]), place = lists.place
    let ours = try place.context(), theirs = try place.context(), mine = try ours.existingObject(with: lists.id)
    ours.mergePolicy = policy.policy
    let items = try mine.ordered(forKey: "items")
    for item in items { try item.setValue("changed", forKey: "name") }
    try mine.setValue("changed", forKey: "name")
    for name in ["b", "a", "c"] { try items.append(Lists.newItem(name, ours)) }
    items.move(from: 1, to: 0)
    theirs.delete(try theirs.existingObject(with: lists.id))
    try theirs.save()
    try ours.save()
    func names(_ items: OrderedToMany<ManagedObject>) throws -> [String] {
      try items.map { try $0.value(forKey: "name").storeValue.map { "\($0)" } ?? "" }
    }
    let saved = try lists.items(place.context())
    #expect(try names(saved) == names(items))
    #expect(try names(saved).count { !$0.contains("changed") } == 3)
  }

  @Test(arguments: TestStore.allCases, [MergePolicyTests.Policy.objectTrump, .overwrite])
  func aListThatIsInsertedAgainKeepsTheOrderOfItsNewItems(_ store: TestStore, _ policy: MergePolicyTests.Policy) throws {
    let lists = try Lists(store, []), (ours, theirs) = try lists.place.twoContexts(policy.policy)
    let mine = try ours.existingObject(with: lists.id), items = try mine.ordered(forKey: "items")
    try mine.setValue("changed", forKey: "name")
    for name in ["c", "b", "a"] { try items.insert(Lists.newItem(name, ours), at: 0) }
    #expect(try Lists.names(of: items) == ["a", "b", "c"])
    theirs.delete(try theirs.existingObject(with: lists.id))
    try theirs.save()
    try ours.save()
    #expect(try Lists.names(of: items) == ["a", "b", "c"])
    #expect(try Lists.names(of: lists.items(lists.reopened())) == ["a", "b", "c"])
  }

  /// Another context has inserted the list again before. The items are ordered between both insertions and the save.
  @Test(arguments: TestStore.allCases, [MergePolicyTests.Policy.objectTrump, .overwrite])
  func aListThatBothInsertAgainKeepsTheOrderOfItsNewItems(_ store: TestStore, _ policy: MergePolicyTests.Policy) throws {
    let lists = try Lists(store, []), (ours, theirs) = try lists.place.twoContexts(), third = try lists.place.context()
    let mine = try ours.existingObject(with: lists.id), items = try mine.ordered(forKey: "items")
    let other = try theirs.existingObject(with: lists.id)
    theirs.mergePolicy = .mergeByPropertyObjectTrump
    try mine.setValue("ours", forKey: "name")
    for name in ["a", "b", "c"] { try items.append(Lists.newItem(name, ours)) }
    third.delete(try third.existingObject(with: lists.id))
    try third.save()
    let error = try #require(throws: PersistenceError.self) { try ours.save() }
    try ours.resolveConflicts(of: error, using: policy.policy)
    items.reverse()
    try other.setValue("theirs", forKey: "name")
    try theirs.save()
    ours.mergePolicy = policy.policy
    try ours.save()
    #expect(try Lists.names(of: items) == ["c", "b", "a"] && !ours.hasChanges)
    #expect(try Lists.names(of: lists.items(lists.reopened())) == ["c", "b", "a"])
  }

  /// The bug: our context had the list in memory before the other one appended the item. So the save neither reported the list nor changed
  /// its version, and the other context kept the item in it.
  @Test(arguments: TestStore.allCases, [MergePolicyTests.Policy.rollback, .storeTrump])
  func aListWhoseDeletionIsUndoneLosesAnItemThatWasMoved(_ store: TestStore, _ policy: MergePolicyTests.Policy) throws {
    for processes in [false, true] {
      let lists = try Lists(store, [], also: "other"), (ours, theirs) = try lists.place.twoContexts(policy.policy)
      theirs.automaticallyMergesChanges = true
      let list = try lists.list("list", ours), other = try lists.list("other", ours)
      let items = try lists.items(ours), theirItems = try lists.items(theirs)
      // Keeps the list as the object's own one, not only as an answer of the store.
      items.reverse()
      ours.delete(list)
      if processes { try ours.processPendingChanges() }
      try theirItems.append(Lists.newItem("a", theirs))
      try theirs.save()
      try lists.item("a", ours).setValue(other, forKey: "list")
      try ours.save()
      #expect(Array(items).isEmpty && !list.isInaccessible && !ours.hasChanges)
      try theirs.processPendingChanges()
      #expect(Array(theirItems).isEmpty)
      #expect(try Lists.names(of: lists.list("other", theirs).ordered(forKey: "items")) == ["a"])
      let saved = try lists.reopened()
      #expect(try Array(lists.items(saved)).isEmpty)
      #expect(try Lists.names(of: lists.list("other", saved).ordered(forKey: "items")) == ["a"])
    }
  }

  // MARK: External data

  private func makeCats() throws -> ManagedObjectModel {
    var photo = AttributeDescription("photo", .binaryData, isOptional: true)
    photo.allowsExternalBinaryDataStorage = true
    return try ManagedObjectModel(entities: [
      EntityDescription("Cat", attributes: [AttributeDescription("name", .string), photo])
    ])
  }

  /// The context that has saved the value has its bytes, and the store's row has the name of a file.
  @Test(arguments: TestStore.allCases) func aLargeValueThatOnlyOneContextHasChangedIsKept(_ store: TestStore) throws {
    let large = Data(repeating: 1, count: 300_000), larger = Data(repeating: 2, count: 400_000)
    // With the last one, the changes of the other context are merged before the save.
    for policy in [MergePolicy.mergeByPropertyStoreTrump, .mergeByPropertyObjectTrump, .overwrite, .error] {
      let place = try store.makePlace(model: makeCats(), classes: []), (ours, theirs) = try place.twoContexts(policy)
      let cat = try ours.insert(entityNamed: "Cat")
      try cat.setValue("Tom", forKey: "name")
      try cat.setValue(large, forKey: "photo")
      try ours.save()
      ours.automaticallyMergesChanges = policy.fixed == .error
      let their = try theirs.existingObject(with: cat.objectID)
      try their.setValue("Theirs", forKey: "name")
      try cat.setValue(larger, forKey: "photo")
      try theirs.save()
      try ours.save()
      try place.close()
      let saved = try #require(try place.context().fetch(FetchRequest<ManagedObject>(entityName: "Cat")).first)
      #expect(try saved.value(forKey: "photo").single == .data(larger))
      let name = policy.fixed == .overwrite ? "Tom" : "Theirs"
      #expect(try saved.value(forKey: "name").single == .string(name))
    }
  }

  @Test(arguments: [TestStore.sqlite, .json, .xml, .binary]) func valuesInExternalFilesSurviveConflicts(_ store: TestStore) throws {
    let model = try makeCats()
    let large = Data(repeating: 1, count: 300_000), larger = Data(repeating: 2, count: 400_000)
    for policy in MergePolicyTests.Policy.allCases + [.objectTrump] {
      for deletes in [false, true] {
        let place = try store.makePlace(model: model, classes: []), setup = try place.context()
        let cat = try setup.insert(entityNamed: "Cat")
        try cat.setValue("Tom", forKey: "name")
        try cat.setValue(large, forKey: "photo")
        try setup.save()
        let ours = try place.context(), own = try ours.existingObject(with: cat.objectID)
        ours.mergePolicy = policy.policy
        if deletes { setup.delete(cat) } else { try cat.setValue(larger, forKey: "photo") }
        try setup.save()
        try own.setValue("Ours", forKey: "name")
        do { try ours.save() } catch let error as PersistenceError where deletes && policy.prefersOurs {
          // The file is gone, and the value isn't in memory.
          #expect(error.code == .conflict && error.property == "photo")
          try own.setValue(large, forKey: "photo")
          try ours.save()
        }
        try place.close()
        let saved = try place.context().fetch(FetchRequest<ManagedObject>(entityName: "Cat"))
        #expect(saved.count == (deletes && !policy.prefersOurs ? 0 : 1))
        guard let saved = saved.first else { continue }
        // The context may have the former value in memory, which it then overwrites.
        if deletes { #expect(try saved.value(forKey: "photo").single == .data(large)) }
        if !deletes && policy != .overwrite { #expect(try saved.value(forKey: "photo").single == .data(larger)) }
        #expect(try saved.value(forKey: "name").single == .string(policy == .rollback ? "Tom" : "Ours"))
      }
    }
  }

  // MARK: Callbacks

  @Test func anObjectThatIsFirstChangedByAMergeIsAboutToBeSaved() throws {
    final class Stamped: ManagedObject {
      enum Slot { static let code: SlotIndex = 0, count: SlotIndex = 1 }
      override class var entityName: String { "Stamped" }
      var code: Int {
        get { self[Slot.code] }
        set { self[Slot.code] = newValue }
      }
      var count: Int {
        get { self[Slot.count] }
        set { self[Slot.count] = newValue }
      }
      var calls = 0
      override func willSave() { calls += 1 }
      override class var properties: [PropertyBinding] {
        [.attribute("code", \Stamped.code, slot: Slot.code), .attribute("count", \Stamped.count, slot: Slot.count)]
      }
    }
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Stamped",
        attributes: [AttributeDescription("code", .integer16), AttributeDescription("count", .integer16, default: .int16(0))],
        uniquenessConstraints: [["code"]])
    ])
    let container = try PersistentContainer(model: model, classes: [Stamped.self], store: .memory()), context = container.newContext()
    context.mergePolicy = .mergeByPropertyObjectTrump
    let stored = context.insert(Stamped.self)
    stored.code = 1
    try context.save()
    #expect(stored.calls == 1)
    let new = context.insert(Stamped.self)
    new.code = 1
    new.count = 5
    try context.save()
    #expect(stored.count == 5 && stored.calls == 2 && new.calls == 1)
  }
}

extension PropertyValue {
  /// The value of an attribute; nil for other properties.
  fileprivate var single: StoreValue? { if case .single(let value) = self { value } else { nil } }
}
