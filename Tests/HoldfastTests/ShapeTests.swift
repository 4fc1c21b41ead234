import Holdfast
import Testing

/// Relationships without an inverse, and those that are their own inverse, on every store.
@Suite struct ShapeTests {
  private static let model: ManagedObjectModel = {
    do {
      return try ManagedObjectModel(entities: [
        EntityDescription(
          "Team", attributes: [AttributeDescription("name", .string)],
          relationships: [
            .toMany("players", to: "Player", inverse: nil), .toOne("sponsor", to: "Sponsor", inverse: nil),
            .toMany("trophies", to: "Trophy", inverse: nil, deleteRule: .cascade),
            .toMany("debts", to: "Trophy", inverse: nil, deleteRule: .deny),
          ]),
        EntityDescription(
          "Player", attributes: [AttributeDescription("name", .string)],
          relationships: [.toMany("mates", to: "Player", inverse: "mates"), .toOne("partner", to: "Player", inverse: "partner")]),
        EntityDescription("Sponsor", attributes: [AttributeDescription("name", .string)]),
        EntityDescription("Trophy", attributes: [AttributeDescription("name", .string)]),
      ])
    } catch { fatalError("\(error)") }
  }()

  private func place(_ store: TestStore) throws -> TestStore.Place { try store.makePlace(model: Self.model, classes: []) }

  private func make(_ entity: String, _ name: String, _ context: ManagedObjectContext) throws -> ManagedObject {
    let object = try context.insert(entityNamed: entity)
    try object.setValue(.string(name), forKey: "name")
    return object
  }

  private func named(_ entity: String, _ name: String, _ context: ManagedObjectContext) throws -> ManagedObject {
    let predicate = FetchPredicate<ManagedObject>(.comparison(.property("name"), .equalTo, .constant(.string(name)), []))
    return try #require(try context.fetch(FetchRequest<ManagedObject>(entityName: entity, where: predicate)).first)
  }

  private func names(_ object: ManagedObject, _ key: String) throws -> Set<String> {
    Set(try object.toMany(forKey: key).map { try $0.value(forKey: "name").storeValue?.text ?? "" })
  }

  /// Our context gives a partner away and back, while another one takes her.
  @Test(arguments: TestStore.allCases, MergePolicyTests.Policy.allCases)
  func aMutualPairThatIsSetBackFollowsWhatOthersSave(_ store: TestStore, _ policy: MergePolicyTests.Policy) throws {
    let place = try place(store), setup = try place.context(), first = try make("Player", "Bob", setup)
    _ = try make("Player", "Ann", setup)
    try first.setValue(.objectID(make("Player", "Cem", setup).objectID), forKey: "partner")
    try setup.save()
    let (ours, theirs) = (try place.context(), try place.context())
    (ours.mergePolicy, ours.automaticallyMergesChanges) = (policy.policy, true)
    let (ann, bob, cem) = (try named("Player", "Ann", ours), try named("Player", "Bob", ours), try named("Player", "Cem", ours))
    try cem.setValue(.objectID(ann.objectID), forKey: "partner")
    try named("Player", "Ann", theirs).setValue(.objectID(bob.objectID), forKey: "partner")
    try theirs.save()
    try bob.setValue(.objectID(cem.objectID), forKey: "partner")
    try ours.save()
    func partners() throws -> [StoreValue?] { try [ann, bob, cem].map { try $0.value(forKey: "partner").storeValue } }
    let inMemory = try partners()
    try ours.refreshAllObjects()
    #expect(try partners() == inMemory)
    #expect(inMemory == [.objectID(bob.objectID), .objectID(ann.objectID), .null])
  }

  @Test(arguments: TestStore.withChild) func mutualRelationshipsLeadBothWaysAtOnceAndAfterTheSave(_ store: TestStore) throws {
    let place = try place(store), context = try place.context()
    let (ann, bob, cem) = (try make("Player", "Ann", context), try make("Player", "Bob", context), try make("Player", "Cem", context))
    try ann.toMany(forKey: "mates").insert(bob)
    try cem.toMany(forKey: "mates").insert(ann)
    try cem.toMany(forKey: "mates").insert(cem)
    try ann.setValue(.objectID(bob.objectID), forKey: "partner")
    #expect(try names(ann, "mates") == ["Bob", "Cem"] && names(bob, "mates") == ["Ann"] && names(cem, "mates") == ["Ann", "Cem"])
    #expect(try cem.toMany(forKey: "mates").count == 2 && bob.value(forKey: "partner") == .objectID(ann.objectID))
    try context.save()
    let other = try place.context()
    let same = try named("Player", "Ann", other), bobToo = try named("Player", "Bob", other), cemToo = try named("Player", "Cem", other)
    #expect(try names(same, "mates") == ["Bob", "Cem"] && names(bobToo, "mates") == ["Ann"] && names(cemToo, "mates") == ["Ann", "Cem"])
    #expect(try bobToo.value(forKey: "partner") == .objectID(same.objectID))
    try cemToo.setValue(.objectID(same.objectID), forKey: "partner")
    #expect(try bobToo.value(forKey: "partner") == .null && same.value(forKey: "partner") == .objectID(cemToo.objectID))
    try same.toMany(forKey: "mates").remove(cemToo)
    try cemToo.toMany(forKey: "mates").remove(cemToo)
    #expect(try names(cemToo, "mates").isEmpty)
    try other.save()
    let last = try place.context()
    #expect(try names(named("Player", "Cem", last), "mates").isEmpty && names(named("Player", "Ann", last), "mates") == ["Bob"])
    #expect(try named("Player", "Bob", last).value(forKey: "partner") == .null)
    last.delete(try named("Player", "Ann", last))
    try last.save()
    #expect(try names(named("Player", "Bob", place.context()), "mates").isEmpty)
    #expect(try named("Player", "Cem", place.context()).value(forKey: "partner") == .null)
  }

  @Test(arguments: TestStore.withChild) func anObjectOfARelationshipWithoutInverseBelongsToTheOneThatTookItLast(_ store: TestStore) throws {
    let place = try place(store), context = try place.context()
    let (reds, blues) = (try make("Team", "Reds", context), try make("Team", "Blues", context))
    let (ann, bob) = (try make("Player", "Ann", context), try make("Player", "Bob", context))
    try reds.toMany(forKey: "players").formUnion([ann, bob])
    try context.save()
    let other = try place.context()
    let (redsToo, bluesToo) = (try named("Team", "Reds", other), try named("Team", "Blues", other))
    #expect(try names(redsToo, "players") == ["Ann", "Bob"])
    try bluesToo.toMany(forKey: "players").insert(named("Player", "Ann", other))
    try other.save()
    #expect(try names(redsToo, "players") == ["Bob"] && names(bluesToo, "players") == ["Ann"])
    #expect(!redsToo.hasChanges)
    let last = try place.context()
    #expect(try names(named("Team", "Reds", last), "players") == ["Bob"] && names(named("Team", "Blues", last), "players") == ["Ann"])
    _ = blues
  }

  @Test(arguments: TestStore.withChild) func deletingKnowsNothingOfRelationshipsWithoutInverse(_ store: TestStore) throws {
    let place = try place(store), context = try place.context()
    let reds = try make("Team", "Reds", context), sponsor = try make("Sponsor", "S", context)
    let (ann, bob) = (try make("Player", "Ann", context), try make("Player", "Bob", context))
    try reds.toMany(forKey: "players").formUnion([ann, bob])
    try reds.setValue(.objectID(sponsor.objectID), forKey: "sponsor")
    try context.save()
    context.delete(ann)
    context.delete(sponsor)
    #expect(try names(reds, "players") == ["Bob"])
    try context.save()
    let other = try place.context(), team = try named("Team", "Reds", other)
    #expect(try names(team, "players") == ["Bob"])
    let gone: ManagedObject? = team.toOne(1)
    // The parent has saved neither the sponsor nor a row with its key.
    if store == .child { return #expect(gone == nil && other.faultError == nil) }
    // The row points to a deleted sponsor. Reading it returns nil and doesn't trap.
    let name = try gone?.value(forKey: "name").storeValue
    #expect(name == .null && gone?.isInaccessible == true)
    #expect((other.faultError as? PersistenceError)?.code == .missingObject)
  }

  /// The bug: the save succeeded. SQLite lost the link, and other stores kept a link to a missing object.
  @Test(arguments: TestStore.allCases, [MergePolicyTests.Policy?.none, .storeTrump, .objectTrump, .overwrite, .rollback])
  func anObjectThatOthersHaveDeletedIsAConflictIfItIsAddedWithoutInverse(_ store: TestStore, _ policy: MergePolicyTests.Policy?) throws {
    let place = try place(store), setup = try place.context()
    _ = try (make("Team", "Reds", setup), make("Player", "Ann", setup), make("Player", "Bob", setup))
    try setup.save()
    let (ours, theirs) = (try place.context(), try place.context())
    if let policy { ours.mergePolicy = policy.policy }
    let (team, ann, bob) = (try named("Team", "Reds", ours), try named("Player", "Ann", ours), try named("Player", "Bob", ours))
    theirs.delete(try named("Player", "Ann", theirs))
    // A change of the object isn't a conflict, because its row doesn't contain the link.
    try named("Player", "Bob", theirs).setValue(.string("Rob"), forKey: "name")
    try theirs.save()
    try team.toMany(forKey: "players").formUnion([ann, bob])
    if policy == nil {
      let error = try #require(throws: PersistenceError.self) { try ours.save() }
      #expect(error.code == .conflict && error.objectIDs == [ann.objectID] && ours.hasChanges)
      try ours.resolveConflicts(of: error, using: .mergeByPropertyObjectTrump)
    }
    try ours.save()
    #expect(try names(team, "players") == ["Bob"] && !ours.hasChanges)
    #expect(try names(named("Team", "Reds", place.context()), "players") == ["Rob"])
    try place.close()
    #expect(try names(named("Team", "Reds", place.context()), "players") == ["Rob"])
  }

  /// The bug: the list still contained the object, so adding it again had no effect.
  @Test(arguments: TestStore.allCases) func anObjectThatIsInsertedAgainLeavesItsListWithoutInverse(_ store: TestStore) throws {
    let place = try place(store), setup = try place.context()
    let reds = try make("Team", "Reds", setup), ann = try make("Player", "Ann", setup)
    try reds.toMany(forKey: "players").insert(ann)
    try setup.save()
    let ours = try place.context()
    ours.mergePolicy = .overwrite
    let (team, player) = (try named("Team", "Reds", ours), try named("Player", "Ann", ours))
    #expect(try names(team, "players") == ["Ann"])
    try player.setValue(.string("Anna"), forKey: "name")
    setup.delete(ann)
    try setup.save()
    try ours.save()
    #expect(try names(team, "players").isEmpty)
    #expect(try names(named("Team", "Reds", place.context()), "players").isEmpty)
    try team.toMany(forKey: "players").insert(player)
    try ours.save()
    #expect(try names(named("Team", "Reds", place.context()), "players") == ["Anna"])
  }

  @Test(arguments: TestStore.withChild) func deleteRulesHoldWithoutInverse(_ store: TestStore) throws {
    let place = try place(store), context = try place.context()
    let reds = try make("Team", "Reds", context), cup = try make("Trophy", "Cup", context), debt = try make("Trophy", "Debt", context)
    try reds.toMany(forKey: "trophies").insert(cup)
    try reds.toMany(forKey: "debts").insert(debt)
    try context.save()
    let other = try place.context()
    other.delete(try named("Team", "Reds", other))
    #expect(throws: PersistenceError.self) { try other.save() }
    other.rollback()
    other.delete(try named("Trophy", "Debt", other))
    try other.save()
    other.delete(try named("Team", "Reds", other))
    try other.save()
    #expect(try place.context().fetch(FetchRequest<ManagedObject>(entityName: "Trophy")).isEmpty)
  }
}

extension StoreValue {
  /// The text of a text value.
  fileprivate var text: String { if case .string(let text) = self { text } else { "" } }
}
