import Foundation
import HoldfastStore
import Synchronization
import Testing

@testable import Holdfast

/// Offers whose discount may not exceed the price. Two contexts can each keep this rule, and break it together.
private final class Offer: ManagedObject {
  override func validateForInsert() throws { try check() }
  override func validateForUpdate() throws { try check() }

  private func check() throws {
    guard let price = self["price"].integer, let discount = self["discount"].integer, discount > price else { return }
    throw PersistenceError.invalid("The discount exceeds the price.", property: "discount")
  }
}

/// Values that a policy composes of two sides: composite attributes, derived attributes, and values that break a rule together.
@Suite struct MergedValueTests {
  typealias Policy = MergePolicyTests.Policy

  // MARK: Composite attributes

  /// A spot in two contexts. Ours has the policy.
  struct Spots {
    let place: TestStore.Place
    let ours: ManagedObjectContext
    let theirs: ManagedObjectContext
    let spot: Spot
    let theirSpot: Spot

    init(_ store: TestStore, _ policy: MergePolicy) throws {
      place = try store.makeAtlas()
      let setup = try place.context()
      setup.spot("A").home = Place(zip: "0150", city: "Oslo", at: Point(longitude: 10, latitude: 59))
      try setup.save()
      (ours, theirs) = try place.twoContexts(policy)
      spot = try #require(try ours.spot(named: "A"))
      theirSpot = try #require(try theirs.spot(named: "A"))
      #expect(spot.home == theirSpot.home && spot.home?.city == "Oslo")
    }

    /// The only spot, as a new context reads it.
    func saved() throws -> Spot {
      try place.close()
      let spots = try place.context().fetch(FetchRequest<Spot>())
      #expect(spots.count == 1)
      return try #require(spots.first)
    }
  }

  @Test(arguments: TestStore.allCases, Policy.allCases)
  func theElementsOfACompositeAttributeAreMergedSeparately(_ store: TestStore, _ policy: Policy) throws {
    let spots = try Spots(store, policy.policy)
    spots.theirSpot.home?.city = "Bergen"
    spots.theirSpot.home?.at?.latitude = 60
    try spots.theirs.save()
    spots.spot.home?.city = "Voss"
    spots.spot.home?.zip = "5003"
    try spots.ours.save()
    let expected = Place(
      zip: policy == .rollback ? "0150" : "5003", city: policy.prefersOurs ? "Voss" : "Bergen",
      at: Point(longitude: 10, latitude: policy == .overwrite ? 59 : 60))
    #expect(spots.spot.home == expected && !spots.ours.hasChanges)
    #expect(try spots.saved().home == expected)
  }

  @Test(arguments: TestStore.allCases, Policy.allCases)
  func aCompositeAttributeThatTheOtherSideClearedKeepsTheChangedElements(_ store: TestStore, _ policy: Policy) throws {
    let spots = try Spots(store, policy.policy)
    spots.theirSpot.home = nil
    try spots.theirs.save()
    spots.spot.home?.city = "Voss"
    try spots.ours.save()
    let expected: Place? =
      switch policy {
      case .objectTrump: Place(city: "Voss")
      case .overwrite: Place(zip: "0150", city: "Voss", at: Point(longitude: 10, latitude: 59))
      case .storeTrump, .rollback: nil
      }
    #expect(spots.spot.home == expected && !spots.ours.hasChanges)
    #expect(try spots.saved().home == expected)
  }

  /// The merged value lacks an element that the model requires. Neither side's own value does.
  @Test(arguments: TestStore.allCases, Policy.allCases)
  func aMergedCompositeAttributeIsValidated(_ store: TestStore, _ policy: Policy) throws {
    let spots = try Spots(store, policy.policy)
    spots.theirSpot.home?.at = nil
    try spots.theirs.save()
    spots.spot.home?.at?.latitude = 60
    if policy == .objectTrump {
      let error = try #require(throws: PersistenceError.self) { try spots.ours.save() }
      #expect(error.code == .missingMandatoryValue && error.property == "home.at.longitude" && error.objectID == spots.spot.objectID)
      #expect(spots.ours.hasChanges && spots.spot.isUpdated)
      #expect(try spots.place.context().spot(named: "A")?.home == Place(zip: "0150", city: "Oslo"))
      // The conflict is resolved, so what is left is to complete the value.
      spots.spot.home?.at = Point(longitude: 5, latitude: 60)
      spots.ours.mergePolicy = .error
    }
    try spots.ours.save()
    let at: Point? =
      switch policy {
      case .objectTrump: Point(longitude: 5, latitude: 60)
      case .overwrite: Point(longitude: 10, latitude: 60)
      case .storeTrump, .rollback: nil
      }
    #expect(spots.spot.home?.at == at)
    #expect(try spots.saved().home == Place(zip: "0150", city: "Oslo", at: at))
  }

  @Test(arguments: TestStore.allCases) func aCustomPolicyReceivesAndReturnsElements(_ store: TestStore) throws {
    let spots = try Spots(
      store,
      .custom { conflict in
        guard case .string(let ours)? = conflict.ours?["home.city"], case .string(let theirs)? = conflict.theirs?["home.city"],
          conflict.base?["home.city"] == .string("Oslo"), conflict.base?["home.at.latitude"] == .double(59)
        else { return .error }
        return .values(["home.city": .string("\(theirs) and \(ours)"), "home.at.longitude": .double(6)])
      })
    spots.theirSpot.home?.city = "Bergen"
    try spots.theirs.save()
    spots.spot.home = Place(zip: "5003", city: "Voss", at: Point(longitude: 10, latitude: 59))
    try spots.ours.save()
    let expected = Place(zip: "5003", city: "Bergen and Voss", at: Point(longitude: 6, latitude: 59))
    #expect(spots.spot.home == expected)
    #expect(try spots.saved().home == expected)
  }

  /// An element is unique. The elements that the new object sets are merged into the stored object's.
  @Test(arguments: TestStore.allCases, Policy.allCases)
  func theElementsOfAnUpsertAreMergedSeparately(_ store: TestStore, _ policy: Policy) throws {
    let place = try store.makeAtlas(), setup = try place.context()
    setup.spot("A").home = Place(zip: "0150", city: "Oslo", at: Point(longitude: 10, latitude: 59))
    try setup.save()
    let context = try place.context()
    context.mergePolicy = policy.policy
    let new = context.spot("B")
    new.home = Place(zip: "0150", city: "Voss")
    try context.save()
    let expected = Place(
      zip: "0150", city: policy.prefersOurs ? "Voss" : "Oslo", at: policy == .overwrite ? nil : Point(longitude: 10, latitude: 59))
    #expect(new.home == expected && new.name == (policy.prefersOurs ? "B" : "A") && !context.hasChanges)
    let id = new.objectID
    try place.close()
    let saved = try place.context().fetch(FetchRequest<Spot>())
    #expect(saved.map(\.home) == [expected] && saved.map(\.objectID) == [id])
  }

  // MARK: Derived attributes

  /// A dog with an owner and a walk, and two further people.
  private func park(_ store: TestStore) throws -> TestStore.Place {
    let place = try store.park(), context = try place.context()
    let people = ["Ann", "Bob", "Cleo"].map { context.make("Person", ["name": .string($0)]) }
    let dog = context.make("Dog", ["name": .string("Rex")])
    dog.lead("owner", to: people[0])
    context.make("Walk", ["minutes": .int32(1)], dog: dog)
    try context.save()
    return place
  }

  /// Expects that the derived values of an object are those of its own values and links.
  private func expectDerived(_ dog: ManagedObject, in context: ManagedObjectContext, _ location: SourceLocation = #_sourceLocation) throws {
    guard case .string(let name) = dog["name"], case .objectID(let id) = dog["owner"] else {
      Issue.record("The dog has no name or owner.", sourceLocation: location)
      return
    }
    let walks = dog.many("walks").map { $0["minutes"].integer ?? 0 }
    #expect(dog["upperName"] == .string(name.uppercased()) && dog["nameCopy"] == .string(name), sourceLocation: location)
    #expect(try dog["ownerName"] == context.existingObject(with: id)["name"], sourceLocation: location)
    #expect(dog["walkCount"] == .int64(Int64(walks.count)) && dog["minutes"].integer == walks.reduce(0, +), sourceLocation: location)
  }

  @Test(arguments: TestStore.allCases, Policy.allCases)
  func derivedValuesAreComputedFromTheMergedOnes(_ store: TestStore, _ policy: Policy) throws {
    let place = try park(store), (ours, theirs) = try place.twoContexts(policy.policy)
    let dog = try ours.all("Dog")[0], people = try ours.all("Person"), theirDog = try theirs.all("Dog")[0]
    #expect(dog["upperName"] == .string("REX") && dog["ownerName"] == .string("Ann") && dog["walkCount"] == .int64(1))
    theirDog["name"] = .string("Theirs")
    theirDog.lead("owner", to: try theirs.all("Person")[1])
    theirs.make("Walk", ["minutes": .int32(10)], dog: theirDog)
    try theirs.save()
    dog["name"] = .string("Ours")
    dog.lead("owner", to: people[2])
    ours.make("Walk", ["minutes": .int32(100)], dog: dog)
    try ours.save()
    #expect(dog["name"] == .string(policy.prefersOurs ? "Ours" : "Theirs"))
    #expect(dog["ownerName"] == .string(policy.prefersOurs ? "Cleo" : "Bob"))
    // A rollback discards the links of the dog as well.
    #expect(dog["walkCount"] == .int64(policy == .rollback ? 2 : 3) && dog["minutes"] == .int32(policy == .rollback ? 11 : 111))
    try expectDerived(dog, in: ours)
    try place.expectRight("under \(policy)")
  }

  /// A value that a policy returns for a derived attribute has no effect, and policies don't receive derived values.
  @Test(arguments: TestStore.allCases) func aPolicyDoesNotDetermineDerivedValues(_ store: TestStore) throws {
    let place = try park(store), (ours, theirs) = try place.twoContexts(), seen = Mutex<[Set<String>]>([])
    ours.mergePolicy = .custom { conflict in
      seen.withLock { $0 = [conflict.base, conflict.ours, conflict.theirs].map { Set(($0 ?? [:]).keys) } }
      return .values(["name": .string("Both"), "upperName": .string("wrong"), "walkCount": .int64(7)])
    }
    let dog = try ours.all("Dog")[0]
    _ = dog["name"]
    try theirs.all("Dog")[0]["name"] = .string("Theirs")
    try theirs.save()
    dog["name"] = .string("Ours")
    try ours.save()
    #expect(seen.withLock { $0.count == 3 && $0.allSatisfy { $0 == ["name", "owner", "breed", "collar"] } })
    #expect(dog["name"] == .string("Both"))
    try expectDerived(dog, in: ours)
    try place.expectRight("after a policy that returns derived values")
  }

  @Test(arguments: TestStore.allCases, Policy.allCases)
  func derivedValuesOfAnObjectThatIsInsertedAgainAreComputedAgain(_ store: TestStore, _ policy: Policy) throws {
    let place = try park(store), (ours, theirs) = try place.twoContexts(policy.policy)
    let dog = try ours.all("Dog")[0]
    #expect(dog["walkCount"] == .int64(1) && dog["minutes"] == .int32(1))
    theirs.delete(try theirs.all("Dog")[0])
    try theirs.save()
    dog["name"] = .string("Ours")
    ours.make("Walk", ["minutes": .int32(100)], dog: dog)
    try ours.save()
    #expect(try place.context().all("Dog").count == (policy.prefersOurs ? 1 : 0))
    if policy.prefersOurs {
      // The walk that was deleted with the dog isn't inserted again.
      #expect(dog["walkCount"] == .int64(1) && dog["minutes"] == .int32(100) && dog["upperName"] == .string("OURS"))
      try expectDerived(dog, in: ours)
    }
    try place.expectRight("under \(policy)")
  }

  // MARK: Validation

  private func shop(_ store: TestStore) throws -> TestStore.Place {
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Offer",
        attributes: [
          AttributeDescription("code", .integer64), AttributeDescription("discount", .integer32, default: .int32(0)),
          AttributeDescription("price", .integer32, default: .int32(50), validation: .range(.int32(0), .int32(100))),
        ], uniquenessConstraints: [["code"]])
    ])
    let place = try store.makePlace(model: model, classes: [Offer.self]), context = try place.context(), offer = context.insert(Offer.self)
    (offer["code"], offer["price"]) = (.int64(1), .int32(40))
    try context.save()
    return place
  }

  /// The price and discount of the only offer, as a new context reads it.
  private func stored(_ place: TestStore.Place) throws -> [StoreValue] {
    let offers = try place.context().fetch(FetchRequest<Offer>())
    #expect(offers.count == 1)
    return offers.flatMap { [$0["price"], $0["discount"]] }
  }

  @Test(arguments: TestStore.allCases, Policy.allCases)
  func mergedValuesThatBreakARuleTogetherAreNotSaved(_ store: TestStore, _ policy: Policy) throws {
    let place = try shop(store), (ours, theirs) = try place.twoContexts(policy.policy)
    let offer = try #require(try ours.fetch(FetchRequest<Offer>()).first)
    #expect(offer["price"] == .int32(40))
    for other in try theirs.fetch(FetchRequest<Offer>()) { other["price"] = .int32(20) }
    try theirs.save()
    offer["discount"] = .int32(30)
    switch policy {
    case .storeTrump, .objectTrump:
      let error = try #require(throws: PersistenceError.self) { try ours.save() }
      #expect(error.code == .validation && error.property == "discount" && error.objectID == offer.objectID, "\(error)")
      #expect(try stored(place) == [.int32(20), .int32(0)])
      // The object has the merged values, with the change of this context.
      #expect(offer["price"] == .int32(20) && offer["discount"] == .int32(30) && offer.isUpdated)
      #expect(throws: PersistenceError.self) { try ours.save() }
      offer["discount"] = .int32(10)
      ours.mergePolicy = .error
      try ours.save()
      #expect(try stored(place) == [.int32(20), .int32(10)])
    case .overwrite:
      try ours.save()
      #expect(try stored(place) == [.int32(40), .int32(30)])
    case .rollback:
      try ours.save()
      #expect(try stored(place) == [.int32(20), .int32(0)] && offer["discount"] == .int32(0))
    }
    #expect(!ours.hasChanges)
  }

  @Test(arguments: TestStore.allCases) func valuesOfACustomPolicyAreValidated(_ store: TestStore) throws {
    let place = try shop(store), (ours, theirs) = try place.twoContexts()
    let offer = try #require(try ours.fetch(FetchRequest<Offer>()).first)
    #expect(offer["price"] == .int32(40))
    for other in try theirs.fetch(FetchRequest<Offer>()) { other["price"] = .int32(20) }
    try theirs.save()
    offer["price"] = .int32(30)
    ours.mergePolicy = .custom { _ in .values(["price": .int32(101)]) }
    let error = try #require(throws: PersistenceError.self) { try ours.save() }
    #expect(error.code == .numberTooLarge && error.property == "price" && error.coreDataCode == 1610, "\(error)")
    #expect(try stored(place) == [.int32(20), .int32(0)])
    #expect(offer["price"] == .int32(101) && offer.isUpdated)
    // There is no conflict any more, so the policy isn't called.
    offer["price"] = .int32(100)
    try ours.save()
    #expect(try stored(place) == [.int32(100), .int32(0)])
  }

  @Test(arguments: TestStore.allCases) func anUpsertThatBreaksARuleIsNotSaved(_ store: TestStore) throws {
    let place = try shop(store), context = try place.context()
    context.mergePolicy = .mergeByPropertyObjectTrump
    let new = context.insert(Offer.self)
    // The price is the default, so the stored one is kept.
    (new["code"], new["discount"]) = (.int64(1), .int32(45))
    let error = try #require(throws: PersistenceError.self) { try context.save() }
    #expect(error.code == .validation && error.property == "discount", "\(error)")
    #expect(try stored(place) == [.int32(40), .int32(0)])
    #expect(context.hasChanges)
    for offer in try context.fetch(FetchRequest<Offer>()) { offer["discount"] = .int32(35) }
    try context.save()
    #expect(try stored(place) == [.int32(40), .int32(35)])
  }
}
