import FoundationEssentials
import HoldfastMemoryStore
import Testing

@testable import Holdfast

/// Composite attributes: structs and elements, on every store.
@Suite struct CompositeTests {
  private static let oslo = Place(
    zip: "0150", city: "Oslo", at: Point(longitude: 10.75, latitude: 59.9), since: Date(timeIntervalSinceReferenceDate: 5))

  /// Four spots: A in Oslo, B in Bergen without a point, C without a home, D with only a zip.
  private func atlas(_ store: TestStore) throws -> TestStore.Place {
    let place = try store.makeAtlas(), context = try place.context()
    let spots = ["A", "B", "C", "D"].map { context.spot($0) }
    spots[0].home = Self.oslo
    spots[1].home = Place(zip: "5003", city: "Bergen")
    spots[3].home = Place(zip: "9999")
    spots[1].near = spots[0]
    spots[2].near = spots[1]
    try context.save()
    try place.close()
    return place
  }

  @Test(arguments: TestStore.allCases) func aGroupIsReadAndWrittenAsAStruct(_ store: TestStore) throws {
    let place = try atlas(store), context = try place.context()
    let a = try #require(try context.spot(named: "A")), b = try #require(try context.spot(named: "B"))
    let c = try #require(try context.spot(named: "C"))
    #expect(a.home == Self.oslo && b.home == Place(zip: "5003", city: "Bergen") && c.home == nil)
    #expect(a.origin == Point(longitude: 7, latitude: 1))
    a.home?.at = nil
    a.home?.city = "Kristiania"
    c.home = Place(at: Point(longitude: 1, latitude: 2))
    b.home = nil
    try context.save()
    try place.close()
    let again = try place.context()
    #expect(try again.spot(named: "A")?.home == Place(zip: "0150", city: "Kristiania", since: Self.oslo.since))
    #expect(try again.spot(named: "B")?.home == nil && again.spot(named: "C")?.home == Place(at: Point(longitude: 1, latitude: 2)))
    // A struct without values reads as nil.
    let a2 = try #require(try again.spot(named: "A"))
    a2.home = Place()
    #expect(a2.home == nil)
  }

  @Test(arguments: TestStore.allCases) func elementsAreReachedByName(_ store: TestStore) throws {
    let place = try atlas(store), context = try place.context()
    let a = try #require(try context.spot(named: "A")), b = try #require(try context.spot(named: "B"))
    #expect(try a.value(forKey: "home.city") == .string("Oslo") && a.value(forKeyPath: "home.at.latitude") == .double(59.9))
    #expect(try b.value(forKey: "home.at.latitude") == .null && b.value(forKeyPath: "near.home.city") == .string("Oslo"))
    #expect(try Set(a.value(forKeyPath: "nearby.home.zip").storeValues ?? []) == [.string("5003")])
    #expect(
      try a.value(forKey: "home")
        == .composite([
          "zip": .single(.string("0150")), "city": .single(.string("Oslo")), "since": .single(.date(5)),
          "at": .composite(["longitude": .single(.double(10.75)), "latitude": .single(.double(59.9))]),
        ]))
    #expect(try b.value(forKey: "home").elements?["at"] == .single(.null))
    #expect(
      try b.value(forKeyPath: "near.home.at") == .composite(["longitude": .single(.double(10.75)), "latitude": .single(.double(59.9))]))
    #expect(try context.spot(named: "C")?.value(forKey: "home") == .single(.null))
    try b.setValue(.string("Voss"), forKeyPath: "near.home.city")
    try b.setValue(a.value(forKey: "home.at"), forKey: "home.at")
    #expect(a.home?.city == "Voss" && b.home?.at == Self.oslo.at && b.home?.city == "Bergen")
    try b.setValue(.composite(["city": .single(.string("Hamar")), "at": .single(.null)]), forKey: "home")
    #expect(b.home == Place(city: "Hamar"))
    try b.setValue(.null, forKey: "home")
    #expect(b.home == nil && b.changedValues().keys.sorted() == ["home.city", "home.zip"])
    try context.save()
    try place.close()
    #expect(try place.context().spot(named: "A")?.home?.city == "Voss")
  }

  @Test func whatDoesNotFitAGroupIsRefusedAndChangesNothing() throws {
    let context = try atlas(.memory).context(), a = try #require(try context.spot(named: "A"))
    func code(_ body: () throws -> Void) throws -> PersistenceError.Code {
      try #require(throws: PersistenceError.self, performing: body).code
    }
    #expect(try code { try a.setValue(.string("x"), forKey: "home") } == .wrongType)
    #expect(try code { try a.setValue(.composite(["city": .single(.int16(3))]), forKey: "home") } == .wrongType)
    #expect(try code { try a.setValue(.composite(["at": .single(.double(3))]), forKey: "home") } == .wrongType)
    #expect(try code { try a.setValue(.composite(["zip": .composite([:])]), forKey: "home") } == .wrongType)
    #expect(try code { try a.setValue(.composite(["town": .single(.null)]), forKey: "home") } == .unknownProperty)
    #expect(try code { try a.setValue(.composite([:]), forKey: "name") } == .wrongType)
    #expect(try code { try a.setValue(.composite([:]), forKey: "nothing") } == .unknownProperty)
    #expect(try code { try a.setValue(.string("x"), forKeyPath: "home.town") } == .unknownProperty)
    #expect(try code { try a.setValue(.string("x"), forKeyPath: "near.home.town") } == .unknownProperty)
    #expect(try code { _ = try a.value(forKeyPath: "home.town") } == .unknownProperty)
    #expect(try code { _ = try a.value(forKeyPath: "near.home.at.town") } == .unknownProperty)
    #expect(try code { _ = try a.value(forKeyPath: "home.city.x") } == .unknownProperty)
    #expect(a.home == Self.oslo && !context.hasChanges)
  }

  @Test(arguments: TestStore.allCases) func elementsCanBeUsedInPredicatesAndSorts(_ store: TestStore) throws {
    let context = try atlas(store).context()
    func names(@FetchPredicateBuilder<Spot> _ conditions: (FetchPath<Spot, Spot>) -> FetchPredicate<Spot>) throws -> [String] {
      try context.fetch(FetchRequest<Spot>(sortedBy: [.ascending(\.name)], where: conditions)).map(\.name)
    }
    #expect(try names { $0.home.city == "Oslo" } == ["A"])
    #expect(try names { $0.home == nil } == ["C"] && names { $0.home != nil } == ["A", "B", "D"])
    #expect(try names { $0.home.city == nil } == ["C", "D"])
    #expect(try names { $0.home.at.latitude > 59 } == ["A"])
    #expect(try names { $0.home.zip.beginsWith("5") } == ["B"])
    #expect(try names { $0.origin.longitude.isIn(6...8) } == ["A", "B", "C", "D"])
    #expect(try names { $0.near.home.city == "Oslo" } == ["B"])
    #expect(try names { $0.nearby.any { $0.home.zip.isIn(["5003"]) } } == ["A"])
    let ordered = try context.fetch(
      FetchRequest<Spot>(sortedBy: [.descending(\.home.zip)], limit: 2))
    #expect(ordered.map(\.name) == ["D", "B"])
    // Including unsaved changes.
    try #require(try context.spot(named: "C")).home = Place(city: "Oslo")
    let both = try names { $0.home.city == "Oslo" }
    #expect(both == ["A", "C"])
  }

  @Test(arguments: TestStore.allCases) func elementsMakeGroupsAndSums(_ store: TestStore) throws {
    let context = try atlas(store).context()
    let request = DictionaryFetchRequest<Spot>(
      columns: ["city": .property("home.city"), "count": .count(), "north": .maximum("home.at.latitude")], groupedBy: ["home.city"])
    let found = try context.fetch(request)
    #expect(found.count == 3)
    let typed = try context.aggregate(Spot.self, by: \.home.city) { ($0.count(), $0.maximum(\.home.at.latitude)) }
    #expect(typed.map(\.key) == [nil, "Bergen", "Oslo"] && typed.map(\.value.0) == [2, 1, 1])
    #expect(found.contains { $0["city"] == .string("Oslo") && $0["count"] == .int64(1) && $0["north"] == .double(59.9) })
    #expect(found.contains { $0["city"] == .null && $0["count"] == .int64(2) && $0["north"] == .null })
  }

  @Test(arguments: TestStore.allCases) func anElementCanBeUnique(_ store: TestStore) throws {
    let context = try atlas(store).context()
    let e = context.spot("E")
    e.home = Place(zip: "0150")
    let error = try #require(throws: PersistenceError.self) { try context.save() }
    #expect(error.code == .constraintConflict && error.objectIDs.contains(e.objectID))
    e.home?.zip = "0151"
    try context.save()
  }

  @Test(arguments: TestStore.allCases) func aMandatoryGroupNeedsItsElements(_ store: TestStore) throws {
    let context = try store.makeAtlas().context()
    let spot = context.insert(Spot.self)
    spot.name = "X"
    // The model's default.
    #expect(try spot.value(forKey: "origin.latitude") == .double(1) && spot.value(forKey: "origin.longitude") == .null)
    let error = try #require(throws: PersistenceError.self) { try context.save() }
    #expect(error.code == .missingMandatoryValue && error.property == "origin.longitude")
    spot.origin = Point(longitude: 2, latitude: 3)
    try context.save()
  }

  @Test func aPropertyThatIsNoStoredOneIsAnElementToo() throws {
    struct Celsius: CompositeAttributeValue {
      var kelvin = 0.0
      var degrees: Double {
        get { kelvin - 273.15 }
        set { kelvin = newValue + 273.15 }
      }
      static let elements: CompositeElements<Celsius> = [.attribute("degrees", \.degrees)]
    }
    let model = try ManagedObjectModel(
      entities: [EntityDescription("Day", attributes: [.composite("noon", "Celsius", isOptional: true)])],
      composites: [CompositeDescription("Celsius", [AttributeDescription("degrees", .double)])])
    let context = try ManagedObjectContext(coordinator: PersistentStoreCoordinator(model: model, store: .memory()))
    let day = try context.insert(entityNamed: "Day")
    day[composite: 0] = Celsius(kelvin: 283.15)
    #expect(try day.value(forKey: "noon.degrees") == .double(10))
    let noon: Celsius? = day[composite: 0]
    #expect(noon?.kelvin == 283.15)
  }
}
