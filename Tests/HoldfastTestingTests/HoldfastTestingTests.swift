import Foundation
import Holdfast
import HoldfastStore
import HoldfastStoreConformance
import TestSupport
import Testing

@testable import HoldfastTesting

final class Keeper: ManagedObject {
  override class var declaration: EntityDeclaration? {
    var declaration = EntityDeclaration(Keeper.self)
    declaration.properties.append(.property("name", \Keeper.name, default: ""))
    declaration.properties.append(.property("animals", \Keeper.animals, inverse: \Animal.keeper))
    return declaration
  }
  var name: String {
    get { self[property: SlotIndex(0)] }
    set { self[property: SlotIndex(0)] = newValue }
  }
  var animals: ToMany<Animal> { toMany(0) }
}

final class Animal: ManagedObject {
  override class var declaration: EntityDeclaration? {
    var declaration = EntityDeclaration(Animal.self)
    declaration.properties.append(.property("age", \Animal.age, default: 0))
    declaration.properties.append(.property("born", \Animal.born))
    declaration.properties.append(.property("keeper", \Animal.keeper))
    declaration.properties.append(.property("name", \Animal.name, default: ""))
    return declaration
  }
  var age: Int {
    get { self[property: SlotIndex(0)] }
    set { self[property: SlotIndex(0)] = newValue }
  }
  var born: Date? {
    get { self[property: SlotIndex(1)] }
    set { self[property: SlotIndex(1)] = newValue }
  }
  var keeper: Keeper? {
    get { self[property: SlotIndex(2)] }
    set { self[property: SlotIndex(2)] = newValue }
  }
  var name: String {
    get { self[property: SlotIndex(3)] }
    set { self[property: SlotIndex(3)] = newValue }
  }
}

/// Containers, fixtures and budgets for tests of programs.
@Suite struct HoldfastTestingTests {
  @Test func containersShareNothing() throws {
    let first = try TestContainer(for: Keeper.self), second = try TestContainer(for: Keeper.self)
    let context = first.newContext()
    context.insert(Keeper.self) { $0.name = "Ann" }
    try context.save()
    #expect(try first.newContext().count(Keeper.self) == 1)
    #expect(try second.newContext().count(Keeper.self) == 0)
  }

  @Test func aSaveFailsAsTheTestSays() throws {
    let test = try TestContainer(for: Keeper.self), context = test.newContext()
    context.insert(Keeper.self) { $0.name = "Ann" }
    test.faults.fail(.commit, with: StoreError(.diskFull, operation: "save", reason: "A test said so."))
    #expect(throws: StoreError.self) { try context.save() }
    #expect(context.hasChanges)
    try context.save()
    #expect(try test.newContext().count(Keeper.self) == 1)
  }

  @Test func aContainerHasTheWrittenModel() throws {
    let model = try FullModel.model()
    let context = try TestContainer(model: model).newContext()
    #expect(context.persistentStoreCoordinator.model.entities.count == model.entities.count)
  }

  // MARK: Budgets

  private func filled() throws -> TestContainer {
    let test = try TestContainer(for: Keeper.self)
    try test.container.withContext { context in
      for name in ["Ann", "Bob"] {
        let keeper = context.insert(Keeper.self) { $0.name = name }
        for age in 0..<3 { context.insert(Animal.self) { ($0.name, $0.age, $0.keeper) = ("\(name) \(age)", age, keeper) } }
      }
      try context.save()
    }
    return test
  }

  @Test func requestsWithinTheBudgetAreNoIssue() throws {
    let test = try filled(), context = test.newContext()
    let animals = try expectRequests(atMost: 1, to: test.coordinator) { try context.fetch(Animal.self) }
    let ages = expectRequests(atMost: 0, to: test.coordinator) { animals.map(\.age).sorted() }
    #expect(ages == [0, 0, 1, 1, 2, 2])
  }

  @Test func theRequestsBeyondTheBudgetAreListed() throws {
    let test = try filled(), record = RequestRecord()
    let observation = test.coordinator.observeRequests { record.add($0) }
    _ = try test.newContext().count(Keeper.self)
    _ = try test.newContext().fetch(Animal.self)
    observation.cancel()
    #expect(record.excess(over: 2) == nil)
    #expect(
      record.excess(over: 1) == """
        2 requests were sent, but at most 1 is allowed:
          fetch Keeper: 1 returned
          fetch Animal: 6 returned
        """)
  }

  @Test(.testContainer(for: Keeper.self)) func requestsOfAnAsynchronousBodyCount() async throws {
    let container = TestContainer.current.container
    try await expectRequests(atMost: 2) {
      try await container.performBackgroundTask { context in
        context.insert(Keeper.self) { $0.name = "Ann" }
        try context.save()
      }
    }
    let count = try await expectRequests(atMost: 1) { try await container.performBackgroundTask { try $0.count(Keeper.self) } }
    #expect(count == 1)
  }

  @Test func aContainerRecordsItsRequests() throws {
    let test = try filled(), context = test.newContext()
    test.removeRequests()
    let keeper = try #require(try context.fetchOne(Keeper.self) { $0.name == "Ann" })
    #expect(keeper.animals.count == 3)
    #expect(test.requests.map(\.operation) == [.fetch, .relationships] && test.requests.map(\.entity) == ["Keeper", "Keeper"])
    test.removeRequests()
    #expect(keeper.name == "Ann" && test.requests.isEmpty)
  }

  @Test func moreRequestsThanAllowedAreAnIssue() throws {
    let test = try filled(), context = test.newContext()
    try withKnownIssue {
      _ = try expectRequests(atMost: 0, to: test.coordinator) { try context.count(Keeper.self) }
    } matching: { issue in
      issue.comments.contains { $0.rawValue.contains("1 request was sent, but at most 0 are allowed") }
    }
  }

  @Test(.testContainer(for: Keeper.self)) func moreRequestsOfAnAsynchronousBodyAreAnIssue() async throws {
    let container = TestContainer.current.container
    try await withKnownIssue {
      let count = try await expectRequests(atMost: 0) { try await container.performBackgroundTask { try $0.count(Keeper.self) } }
      #expect(count == 0)
    } matching: { issue in
      issue.comments.contains { $0.rawValue.contains("1 request was sent, but at most 0 are allowed") }
    }
  }

  @Test func theBodysErrorIsThrown() throws {
    struct Failure: Error {}
    let test = try filled()
    #expect(throws: Failure.self) { try expectRequests(atMost: 0, to: test.coordinator) { throw Failure() } }
  }

  // MARK: Traits

  @Test(.testContainer(for: Keeper.self), arguments: 0..<3) func eachCaseHasItsOwnContainer(_ number: Int) throws {
    let context = TestContainer.current.newContext()
    #expect(try context.count(Keeper.self) == 0)
    context.insert(Keeper.self) { $0.name = "\(number)" }
    try context.save()
  }

  @Test(.testContainer(for: Keeper.self), .requests(atMost: 3)) func savingTakesThreeRequests() throws {
    let context = TestContainer.current.newContext()
    context.insert(Keeper.self) { $0.name = "Ann" }
    try expectRequests(atMost: 2) { try context.save() }
    #expect(try context.count(Keeper.self) == 1)
  }

  /// Runs a body in the scope of a trait that limits requests, as part of the current case.
  private func withBudget(of limit: Int, _ body: @Sendable () async throws -> Void) async throws {
    let trait = RequestBudgetTrait.requests(atMost: limit)
    try await trait.provideScope(for: try #require(Test.current), testCase: Test.Case.current, performing: body)
  }

  @Test(.testContainer(for: Keeper.self)) func aCaseBeyondItsBudgetHasAnIssue() async throws {
    @Sendable func count() throws { _ = try TestContainer.current.newContext().count(Keeper.self) }
    try await withBudget(of: 1) { try count() }
    try await withKnownIssue {
      try await withBudget(of: 1) {
        try count()
        try count()
      }
    } matching: { issue in
      issue.comments.contains { $0.rawValue.contains("2 requests were sent, but at most 1 is allowed") }
    }
  }

  @Test func aBudgetWithoutAContainerIsAnIssueAndTheCaseRuns() async throws {
    try await confirmation { confirm in
      try await withKnownIssue {
        try await withBudget(of: 1) { confirm() }
      } matching: { issue in
        issue.comments.contains { $0.rawValue.contains("A budget needs a container") }
      }
    }
  }

  @Suite(.testContainer(for: Keeper.self)) struct OfASuite {
    @Test func testsOfASuiteHaveContainers() throws { #expect(try TestContainer.current.newContext().count(Animal.self) == 0) }
  }

  // MARK: Fixtures

  @Test(.testContainer(for: Keeper.self)) func fixturesAreLinkedByNames() throws {
    let context = TestContainer.current.newContext()
    let fixtures = try context.insertFixtures(
      """
      {
        "Animal": [
          { "$name": "fido", "name": "Fido", "age": 3, "born": "2023-05-01", "keeper": "ann" },
          { "name": "Rex", "born": "2023-05-01T12:00:00Z", "keeper": null },
          { "$name": "sam", "born": 3.5 }
        ],
        "Keeper": [{ "$name": "ann", "name": "Ann", "animals": ["sam"] }]
      }
      """)
    let fido: Animal = try fixtures["fido"], ann: Keeper = try fixtures["ann"], sam: Animal = try fixtures["sam"]
    #expect(fido.name == "Fido" && fido.age == 3 && fido.keeper === ann && sam.keeper === ann && sam.name == "")
    #expect(fido.born == Date(timeIntervalSinceReferenceDate: 704_592_000) && sam.born == Date(timeIntervalSinceReferenceDate: 3.5))
    #expect(try context.fetch(Animal.self) { $0.name == "Rex" }.first?.born == fido.born?.addingTimeInterval(43_200))
    try context.save()
    #expect(throws: FixtureError.self) { let _: Keeper = try fixtures["fido"] }
    let error = #expect(throws: FixtureError.self) { let _: Keeper = try fixtures["bob"] }
    #expect(error?.description == "bob: No fixture has this name. The names are: ann, fido, sam.")
  }

  @Test(arguments: [
    ("[]", "the document"), (#"{"Dog": [{}]}"#, "Dog[0]"), (#"{"Animal": [{}, {"age": "old"}]}"#, "Animal[1].age"),
    (#"{"Animal": [{"age": 1.5}]}"#, "Animal[0].age"), (#"{"Animal": [{"size": 1}]}"#, "Animal[0].size"),
    (#"{"Animal": [{"keeper": "ann"}]}"#, "Animal[0].keeper"), (#"{"Animal": [{"keeper": ["ann"]}]}"#, "Animal[0].keeper"),
    (#"{"Keeper": [{"animals": "a"}]}"#, "Keeper[0].animals"), (#"{"Keeper": [{"animals": ["a"]}]}"#, "Keeper[0].animals[0]"),
    (#"{"Keeper": [{"$name": "a", "animals": ["a"]}]}"#, "Keeper[0].animals"), (#"{"Keeper": [{"$name": 1}]}"#, "Keeper[0].$name"),
    (#"{"Keeper": [{"$name": "a"}, {"$name": "a"}]}"#, "Keeper[1].$name"), (#"{"Animal": [{"born": "soon"}]}"#, "Animal[0].born"),
    (#"{"Animal": [{"born": "2026-11-25T18:00"}]}"#, "Animal[0].born"),
    (#"{"Animal": [{"born": "2026-11-25 18:00:00Z"}]}"#, "Animal[0].born"),
    // The bug: these were other days and times.
    (#"{"Animal": [{"born": "2026-02-30"}]}"#, "Animal[0].born"), (#"{"Animal": [{"born": "2023-02-29T12:00:00Z"}]}"#, "Animal[0].born"),
    (#"{"Animal": [{"born": "2026-11-25T24:00:00Z"}]}"#, "Animal[0].born"),
    (#"{"Animal": [{"born": "2026-11-25T10:61:00+01:00"}]}"#, "Animal[0].born"),
  ]) func aMistakeInADocumentIsNamedWithItsPlace(_ document: String, _ place: String) throws {
    let context = try TestContainer(for: Keeper.self).newContext()
    let error = #expect(throws: FixtureError.self) { try context.insertFixtures(document) }
    #expect(error?.place == place, "\(String(describing: error))")
  }

  @Test(.testContainer(for: Keeper.self)) func timesHaveZonesAndFractions() throws {
    let context = TestContainer.current.newContext()
    let times = ["2001-01-01T00:00:00Z": 0, "2001-01-01T02:00:00+02:00": 0, "2000-12-31T23:30:00.25-0030": 0.25, "2001-01-02": 86400]
    for (text, seconds) in times {
      let fixtures = try context.insertFixtures(#"{"Animal": [{"$name": "a", "born": "\#(text)"}]}"#), animal: Animal = try fixtures["a"]
      #expect(animal.born == Date(timeIntervalSinceReferenceDate: seconds), "\(text)")
    }
  }

  @Test func everyKindOfAttributeHasAForm() throws {
    let model = try ManagedObjectModel(
      entities: [
        EntityDescription(
          "Item",
          attributes: [
            .init("a", .boolean), .init("b", .integer16), .init("c", .float), .init("d", .double), .init("e", .decimal), .init("f", .uuid),
            .init("g", .uri), .init("h", .binaryData), .init("i", .decimal), .init("j", .objectID),
          ])
      ])
    let context = try TestContainer(model: model).newContext()
    try context.insertFixtures(
      """
      {"Item": [{"a": true, "b": -3, "c": 1.5, "d": 2, "e": 0.1, "f": "5F0E3A9C-1111-4222-8333-0123456789AB", "g": "a:b", "h": "AQI=",
                 "i": "12345678901234567890.5", "j": null}]}
      """)
    let item = try #require(context.insertedObjects.first)
    let expected: [String: StoreValue] = [
      "a": true, "b": .int16(-3), "c": .float(1.5), "d": 2.0, "e": .decimal(Decimal(string: "0.1")!),
      "f": .uuid(UUID(uuidString: "5F0E3A9C-1111-4222-8333-0123456789AB")!), "g": .uri("a:b"), "h": .data(Data([1, 2])),
      "i": .decimal(Decimal(string: "12345678901234567890.5")!), "j": .null,
    ]
    for (key, value) in expected { #expect(try item.value(forKey: key) == .single(value), "\(key)") }
  }

  @Test func numbersHaveTheRangeOfTheirAttribute() throws {
    let types = [AttributeType.double, .float, .decimal]
    let model = try ManagedObjectModel(
      entities: [EntityDescription("Item", attributes: types.map { .init($0.rawValue, $0, isOptional: true) })])
    let context = try TestContainer(model: model).newContext()
    func insert(_ number: String, _ type: AttributeType) throws -> PropertyValue {
      let fixtures = try context.insertFixtures("{\"Item\": [{\"$name\": \"a\", \"\(type.rawValue)\": \(number)}]}")
      let item: ManagedObject = try fixtures["a"]
      return try item.value(forKey: type.rawValue)
    }
    for number in [1e200, -1.5e-200, 1.5e-40, .greatestFiniteMagnitude] {
      #expect(try insert("\(number)", .double) == .single(.double(number)))
    }
    #expect(try insert("1.5e30", .float) == .single(.float(1.5e30)) && insert("1.5e100", .decimal).storeValue != .null)
    for (number, type) in [("1e200", AttributeType.decimal), ("1e200", .float), ("1e100", .float)] {
      let error = #expect(throws: FixtureError.self) { _ = try insert(number, type) }
      #expect(error?.place == "Item[0].\(type.rawValue)", "\(number)")
    }
  }

  private static func prices() throws -> ManagedObjectContext {
    let model = try ManagedObjectModel(
      entities: [EntityDescription("Item", attributes: [AttributeDescription("price", .decimal, isOptional: true)])])
    return try TestContainer(model: model).newContext()
  }

  @Test(arguments: [("-1.5", Decimal(-1.5)), ("1e3", Decimal(1000)), ("007", Decimal(7)), ("NaN", Decimal.nan)])
  func aDecimalCanBeText(_ text: String, _ number: Decimal) throws {
    let fixtures = try Self.prices().insertFixtures(#"{"Item": [{"$name": "a", "price": "\#(text)"}]}"#)
    let item: ManagedObject = try fixtures["a"], price = try item.value(forKey: "price")
    #expect(number.isNaN ? price.storeValue?.isNaN == true : price == .single(.decimal(number)), "\(price)")
  }

  /// The bug: Foundation's decoder reads these numbers as integers, too, without their fractions.
  @Test(arguments: ["1.0000000000000001", "12345678901234567.25"])
  func aDecimalNearAnIntegerKeepsItsFraction(_ number: String) throws {
    let fixtures = try Self.prices().insertFixtures(#"{"Item": [{"$name": "a", "price": \#(number)}]}"#)
    let item: ManagedObject = try fixtures["a"], price = try item.value(forKey: "price"), expected = try #require(Decimal(string: number))
    #expect(price == .single(.decimal(expected)), "\(price)")
  }

  @Test(arguments: ["1.0000000000000001", "12345678901234567.25", "1.5"])
  func aNumberWithAFractionIsRefusedForAnInteger(_ number: String) throws {
    let model = try ManagedObjectModel(entities: [EntityDescription("Item", attributes: [.init("amount", .integer64)])])
    let context = try TestContainer(model: model).newContext()
    let error = #expect(throws: FixtureError.self) { try context.insertFixtures(#"{"Item": [{"amount": \#(number)}]}"#) }
    #expect(error?.place == "Item[0].amount")
  }

  @Test(arguments: ["34.0", "3.4e1", "9223372036854775807", "-9223372036854775808"])
  func aNumberWithoutFractionFitsAnInteger(_ number: String) throws {
    let model = try ManagedObjectModel(entities: [EntityDescription("Item", attributes: [.init("amount", .integer64)])])
    let fixtures = try TestContainer(model: model).newContext().insertFixtures(#"{"Item": [{"$name": "a", "amount": \#(number)}]}"#)
    let item: ManagedObject = try fixtures["a"]
    #expect(try item.value(forKey: "amount") == .single(.int64(Int64(number) ?? 34)))
  }

  @Test(arguments: ["", "ten", "12 apples", "1,5", "1.2.3", "--1", "1e"]) func aTextThatIsNoDecimalIsRefused(_ text: String) throws {
    let context = try Self.prices()
    let error = #expect(throws: FixtureError.self) { try context.insertFixtures(#"{"Item": [{"price": "\#(text)"}]}"#) }
    #expect(error?.place == "Item[0].price")
  }

  private static func routes() throws -> ManagedObjectContext {
    let model = try ManagedObjectModel(
      entities: [
        EntityDescription("Route", relationships: [.toMany("stops", to: "Stop", inverse: "route", isOrdered: true)]),
        EntityDescription(
          "Stop",
          attributes: [
            .composite("place", "Place", isOptional: true), AttributeDescription("note", .string, isOptional: true, isTransient: true),
          ], relationships: [.toOne("route", to: "Route", inverse: "stops")]),
      ],
      composites: [
        CompositeDescription(
          "Place", [AttributeDescription("city", .string, isOptional: true), .composite("point", "Point", isOptional: true)]),
        CompositeDescription("Point", [AttributeDescription("x", .double, isOptional: true)]),
      ])
    return try TestContainer(model: model).newContext()
  }

  @Test func compositesAreObjectsAndOrderedRelationshipsAreArrays() throws {
    let context = try Self.routes()
    let fixtures = try context.insertFixtures(
      """
      {
        "Route": [{ "$name": "route", "stops": ["b", "a"] }],
        "Stop": [{ "$name": "a", "place": { "city": "Oslo", "point": { "x": 2.5 } } }, { "$name": "b", "place": null }]
      }
      """)
    let route: ManagedObject = try fixtures["route"], a: ManagedObject = try fixtures["a"], b: ManagedObject = try fixtures["b"]
    #expect(try route.value(forKey: "stops") == .objects([b, a]))
    let place: [String: PropertyValue] = ["city": .single(.string("Oslo")), "point": .composite(["x": .single(.double(2.5))])]
    #expect(try a.value(forKey: "place") == .composite(place) && b.value(forKey: "place") == .single(.null))
  }

  @Test func elementsOfACompositeThatAreNotInTheDocumentHaveTheirDefaults() throws {
    let model = try ManagedObjectModel(
      entities: [EntityDescription("Stop", attributes: [.composite("place", "Place")])],
      composites: [
        CompositeDescription(
          "Place",
          [
            AttributeDescription("city", .string, isOptional: true), AttributeDescription("floor", .integer16, default: .int16(1)),
            .composite("point", "Point"),
          ]),
        CompositeDescription(
          "Point", [AttributeDescription("x", .double, isOptional: true), AttributeDescription("y", .double, default: .double(2))]),
      ])
    let context = try TestContainer(model: model).newContext()
    let fixtures = try context.insertFixtures(
      """
      {"Stop": [
        { "$name": "a", "place": { "city": "Oslo", "point": { "x": 1 } } }, { "$name": "b", "place": { "floor": 3, "point": null } }
      ]}
      """)
    let a: ManagedObject = try fixtures["a"], b: ManagedObject = try fixtures["b"]
    func values(_ object: ManagedObject) throws -> [StoreValue] {
      try ["place.city", "place.floor", "place.point.x", "place.point.y"].map { path in
        if case .single(let value) = try object.value(forKeyPath: path) { value } else { .null }
      }
    }
    #expect(try values(a) == [.string("Oslo"), .int16(1), .double(1), .double(2)])
    #expect(try values(b) == [.null, .int16(3), .null, .null])
  }

  @Test(arguments: [
    (#"{"place": 3}"#, "place"), (#"{"place": {"town": "Oslo"}}"#, "place.town"), (#"{"place": {"city": 3}}"#, "place.city"),
    (#"{"place": {"point": [1]}}"#, "place.point"), (#"{"note": "n"}"#, "note"),
  ]) func aMistakeInACompositeIsNamedWithItsPlace(_ stop: String, _ place: String) throws {
    let context = try Self.routes()
    let error = #expect(throws: FixtureError.self) { try context.insertFixtures("{\"Stop\": [\(stop)]}") }
    #expect(error?.place == "Stop[0].\(place)", "\(String(describing: error))")
  }
}
