import Foundation
import HoldfastStore
import Testing

@testable import Holdfast

/// Values that a custom policy returns for properties of every kind.
@Suite struct PolicyValueTests {
  typealias Spots = MergedValueTests.Spots

  /// A policy that returns the same values for each conflict.
  private func returning(_ values: [String: StoreValue]) -> MergePolicy { .custom { _ in .values(values) } }

  /// Merges what others have saved of our spot.
  private func merge(_ spots: Spots) throws {
    let store = try #require(spots.ours.persistentStoreCoordinator.persistentStores.last)
    try spots.ours.mergeChanges(
      from: SavedChanges(storeIdentifier: store.identifier, contextName: "", updated: [spots.spot.objectID]))
  }

  @Test(arguments: TestStore.allCases) func nullClearsACompositeAttribute(_ store: TestStore) throws {
    let answers: [(values: [String: StoreValue], home: Place?)] = [
      (["home": .null], nil), (["home": .null, "home.city": .string("Both")], Place(city: "Both")),
      (["home.at": .null], Place(zip: "0150", city: "Voss")),
    ]
    for (values, home) in answers {
      let spots = try Spots(store, returning(values))
      spots.theirSpot.home?.city = "Bergen"
      try spots.theirs.save()
      spots.spot.home?.city = "Voss"
      try spots.ours.save()
      #expect(spots.spot.home == home && !spots.ours.hasChanges)
      #expect(try spots.saved().home == home)
    }
  }

  @Test(arguments: TestStore.allCases) func transientAttributesAreSet(_ store: TestStore) throws {
    let spots = try Spots(store, returning(["hits": .int64(9), "score": .null, "note": .string("any")]))
    spots.theirSpot.mood = .calm
    try spots.theirs.save()
    spots.spot.mood = .wild
    try spots.ours.save()
    #expect(spots.spot.hits == 9 && spots.spot.score == nil && spots.spot.mood == .wild)
    #expect(try spots.spot.value(forKey: "note") == .string("any"))
  }

  @Test(arguments: TestStore.allCases) func aValueThatCannotBeSetIsAnErrorBeforeAnythingChanges(_ store: TestStore) throws {
    let answers: [(key: String, value: StoreValue, code: PersistenceError.Code)] = [
      ("home", .string("Oslo"), .wrongType), ("home.city", .int16(1), .wrongType), ("home.street", .null, .unknownProperty),
      ("nearby", .null, .wrongType), ("near", .string("A"), .wrongType), ("tail", .null, .unknownProperty),
      ("hits", .string("7"), .wrongType), ("colour", .string("red"), .wrongType), ("colour", .externalData(UUID()), .wrongType),
      ("grade", .int64(.max), .wrongType),
    ]
    for (key, value, code) in answers {
      let spots = try Spots(store, returning([key: value, "mood": .string("calm")]))
      spots.theirSpot.home?.city = "Bergen"
      try spots.theirs.save()
      spots.spot.home?.city = "Voss"
      let error = try #require(throws: PersistenceError.self) { try spots.ours.save() }
      #expect(error.code == .conflict && error.objectIDs == [spots.spot.objectID])
      #expect((error.cause as? PersistenceError)?.code == code, "\(key)")
      #expect(spots.spot.home?.city == "Voss" && spots.spot.mood == nil && spots.spot.isUpdated)
      #expect(try spots.place.context().spot(named: "A")?.home?.city == "Bergen")
    }
  }

  /// The object has a value that its transformer couldn't encode, which its save must report.
  @Test(arguments: TestStore.allCases) func aPolicyThatIsRefusedKeepsTheErrorOfAnEarlierValue(_ store: TestStore) throws {
    let spots = try Spots(store, returning(["colour": .data(Data([1, 2, 3])), "grade": .string("nonsense")]))
    spots.theirSpot.mood = .calm
    try spots.theirs.save()
    spots.spot.mood = .wild
    spots.spot.colour = Colour(red: 0, green: 0, blue: 0)
    try merge(spots)
    let error = try #require(throws: PersistenceError.self) { try spots.ours.save() }
    #expect(error.code == .transformationFailed && error.property == "colour" && spots.spot.colour == nil)
    spots.ours.mergePolicy = returning(["colour": .data(Data([1, 2, 3]))])
    try merge(spots)
    try spots.ours.save()
    let saved = try spots.saved()
    #expect(saved.colour == Colour(red: 1, green: 2, blue: 3) && saved.mood == .wild)
  }

  /// They are kept like bytes that the program sets by name, and reading them is an error.
  @Test(arguments: TestStore.allCases) func bytesThatATransformerCannotDecodeAreSavedAndReadAsNil(_ store: TestStore) throws {
    let spots = try Spots(store, returning(["colour": .data(Data([7])), "tags": .data(Data("{".utf8))]))
    spots.theirSpot.colour = Colour(red: 1, green: 1, blue: 1)
    try spots.theirs.save()
    spots.spot.colour = Colour(red: 2, green: 2, blue: 2)
    try spots.ours.save()
    let saved = try spots.saved(), context = saved.managedObjectContext
    #expect(try saved.value(forKey: "colour") == .data(Data([7])))
    #expect(context.faultError == nil && saved.tags == [:] && saved.colour == nil)
    #expect((context.faultError as? PersistenceError)?.code == .transformationFailed)
  }

  // MARK: References

  @Test(arguments: TestStore.allCases) func aReferenceToAnObjectThatWasDeletedIsNotSet(_ store: TestStore) throws {
    let spots = try Spots(store, .custom { .values($0.ours ?? [:]) })
    spots.theirs.spot("B")
    try spots.theirs.save()
    let near = try #require(try spots.ours.spot(named: "B"))
    spots.theirs.delete(try #require(try spots.theirs.spot(named: "B")))
    spots.theirSpot.mood = .calm
    try spots.theirs.save()
    spots.spot.mood = .wild
    spots.spot.near = near
    try spots.ours.save()
    #expect(spots.spot.near == nil && !spots.ours.hasChanges)
    let saved = try spots.saved()
    #expect(saved.near == nil && saved.mood == .wild)
  }

  /// The IDs that a policy receives name an abstract entity if the context doesn't have the objects. The bug: links were set to faults of
  /// that entity, which can't be read.
  @Test(arguments: TestStore.allCases) func referencesToObjectsThatTheContextDoesNotHaveLeadToTheirOwnEntities(_ store: TestStore) throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Animal", isAbstract: true, attributes: [AttributeDescription("name", .string)],
        relationships: [.toMany("visits", to: "Visit", inverse: "animal"), .toOne("tag", to: "Tag", inverse: "animal")]),
      EntityDescription("Bird", superentity: "Animal"),
      EntityDescription("Cat", superentity: "Animal", attributes: [AttributeDescription("lives", .integer16)]),
      EntityDescription(
        "Visit", attributes: [AttributeDescription("note", .string, isOptional: true)],
        relationships: [.toOne("animal", to: "Animal", inverse: "visits")]),
      EntityDescription(
        "Tag", attributes: [AttributeDescription("note", .string, isOptional: true)],
        relationships: [.toOne("animal", to: "Animal", inverse: "tag")]),
    ])
    func animal(of object: ManagedObject) throws -> ManagedObject {
      let relationship = try #require(object.entity.relationship(named: "animal"))
      return try #require(object.toOne(relationship))
    }
    for name in ["Visit", "Tag"] {
      let place = try store.makePlace(model: model, classes: []), setup = try place.context()
      setup.make("Bird", ["name": .string("Pip")])
      setup.make(name).lead("animal", to: setup.make("Cat", ["name": .string("Tom"), "lives": .int16(9)]))
      try setup.save()
      let (ours, theirs) = try place.twoContexts(.custom { .values($0.ours ?? [:]) })
      let object = try #require(try ours.all(name).first)
      object["note"] = .string("ours")
      try #require(try theirs.all(name).first).lead("animal", to: try theirs.all("Bird").first)
      try theirs.save()
      try ours.save()
      let tom = try animal(of: object)
      #expect(tom.entity.name == "Cat" && tom["name"] == .string("Tom") && tom["lives"] == .int16(9), "\(name)")
      #expect(ours.faultError == nil && !ours.hasChanges)
      try place.close()
      let saved = try #require(try place.context().all(name).first)
      #expect(saved["note"] == .string("ours"))
      #expect(try animal(of: saved)["lives"] == .int16(9), "\(name)")
    }
  }

  /// The IDs that a policy receives are temporary: the new objects become stored ones.
  @Test(arguments: TestStore.allCases, [false, true])
  func referencesToNewObjectsThatAreMergedAsWellAreSet(_ store: TestStore, _ isInContext: Bool) throws {
    let place = try store.makeAtlas(), setup = try place.context()
    setup.spot("A").home = Place(zip: "1")
    setup.spot("B").home = Place(zip: "2")
    try setup.save()
    let context = try place.context(), known = try isInContext ? context.fetch(FetchRequest<Spot>()) : []
    context.mergePolicy = .custom { .values($0.ours ?? [:]) }
    let first = context.spot("New B"), second = context.spot("New A")
    first.home = Place(zip: "2")
    second.home = Place(zip: "1")
    (first.near, second.near) = (first, first)
    try context.save()
    #expect(first.isInaccessible == isInContext && second.isInaccessible == isInContext && !context.hasChanges)
    try place.close()
    let saved = try place.context().fetch(FetchRequest<Spot>())
    #expect(saved.map(\.name).sorted() == ["New A", "New B"] && saved.map { $0.near?.name } == ["New B", "New B"])
    withExtendedLifetime(known) {}
  }
}
