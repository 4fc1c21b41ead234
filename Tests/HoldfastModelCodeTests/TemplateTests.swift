import Foundation
import Holdfast
import HoldfastBinaryStore
import HoldfastJSONStore
import HoldfastMemoryStore
import HoldfastModelCode
import HoldfastSQLiteStore
import HoldfastStore
import HoldfastXMLStore
import TestSupport
import Testing

/// Functions for the fetch request templates of a model. The file `Fleet/FleetModelClasses.swift` is what the generator writes.
@Suite struct TemplateTests {
  private static let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .appendingPathComponent("Fleet/FleetModelClasses.swift")

  /// With `HOLDFAST_WRITE_GENERATED` set, writes the file instead.
  @Test func theFileIsWhatTheGeneratorWrites() throws {
    let code = ModelCode(try FleetModel.model(), name: "Fleet")
    if ProcessInfo.processInfo.environment["HOLDFAST_WRITE_GENERATED"] != nil { try code.writeSingleFile(to: Self.file.path) }
    #expect(code.singleFile.text == (try String(contentsOf: Self.file, encoding: .utf8)))
    #expect(
      code.notes == [
        "Ship.puzzles: The fetched property is declared, but has no accessor. The operator MATCHES isn't supported.",
        "Ship.typos: The fetched property is declared, but has no accessor. Ship has no property nam.",
        "Ship.others: The fetched property is declared, but has no accessor. Ship has no attribute or relationship nam.",
        "Ship.strangers: The fetched property is declared, but has no accessor. The variable $name has no value in a fetched property.",
      ])
  }

  // MARK: Fetching

  private struct Fleet {
    let anna: Ship
    let bella: Ship
    let oslo: Port
    let voyage: Voyage
    let ships: [Ship]
  }

  private func fleet(_ context: ManagedObjectContext) -> Fleet {
    let oslo = Port(context: context, country: "NO", name: "Oslo"), bonn = Port(context: context, name: "Bonn")
    func ship(_ name: String, _ code: String?, tons: Int32, crew: Int64?, _ home: Port?) -> Ship {
      context.insert(Ship.self) { ($0.name, $0.code, $0.tons, $0.crew, $0.home) = (name, code, tons, crew, home) }
    }
    func berth(_ pier: String?) -> Berth {
      var berth = Berth()
      (berth.pier, berth.number) = (pier, 3)
      return berth
    }
    let anna = ship("Anna", "Éa", tons: 1, crew: 1, oslo), bella = ship("Bella", nil, tons: 3, crew: nil, bonn)
    let namesake = ship("Oslo", "Oslo", tons: 5, crew: 7, oslo), small = ship("bella", "EA", tons: 2, crew: 1, oslo)
    (anna.isSold, anna.launched, anna.length) = (true, Date(timeIntervalSinceReferenceDate: 86_400), 100.5)
    (anna.price, anna.registration, anna.berth) = (Decimal(string: "0.1"), UUID(), berth("1"))
    (bella.length, namesake.price) = (12, 2_000_000)
    let nero = Tanker(context: context, hull: "double")
    (nero.name, nero.code, nero.crew, nero.tons, nero.berth) = ("nero", "Oslo", 2, 6, berth(nil))
    nero.launched = Date(timeIntervalSinceReferenceDate: 5)
    let voyage = Voyage(context: context, miles: 5, ship: anna)
    voyage.stops.append(bonn)
    let long = Voyage(context: context, miles: 30, ship: bella)
    long.stops.append(contentsOf: [oslo, bonn])
    _ = Voyage(context: context, miles: 0, ship: bella)
    _ = Voyage(context: context, miles: 0, ship: nero)
    return Fleet(anna: anna, bella: bella, oslo: oslo, voyage: voyage, ships: [anna, bella, namesake, small, nero])
  }

  /// A template's request, the values of its variables, and the same condition in Swift.
  private struct Case {
    let name: String
    let request: FetchRequest<Ship>
    let values: [String: PredicateQuery.Value]
    let holds: (Ship) -> Bool

    init(
      _ name: String, _ request: FetchRequest<Ship>, _ values: [String: PredicateQuery.Value] = [:], _ holds: @escaping (Ship) -> Bool
    ) {
      (self.name, self.request, self.values, self.holds) = (name, request, values, holds)
    }
  }

  private func one(_ object: ManagedObject?) -> PredicateQuery.Value { .single(object.map { .objectID($0.objectID) } ?? .null) }

  private func cases(_ fleet: Fleet) -> [Case] {
    typealias Templates = FleetModelClasses
    let (anna, oslo, voyage) = (fleet.anna, fleet.oslo, fleet.voyage), day = Date(timeIntervalSinceReferenceDate: 86_400)
    func folded(_ text: String?) -> String? { text?.lowercased().replacingOccurrences(of: "é", with: "e") }
    return [
      Case("named", Templates.named(name: "Bella"), ["name": .single("Bella")]) { $0.name == "Bella" },
      Case("coded", Templates.coded(code: "EA"), ["code": .single("EA")]) { $0.code == "EA" },
      Case("coded", Templates.coded(code: nil), ["code": .single(.null)]) { $0.code == nil },
      Case("notCoded", Templates.notCoded(code: "EA"), ["code": .single("EA")]) { $0.code != "EA" },
      Case("uncoded", Templates.uncoded()) { $0.code == nil },
      Case("heavy", Templates.heavy(tons: 2), ["tons": .single(2)]) { $0.tons > 2 && !$0.isSold },
      Case("light", Templates.light()) { $0.tons <= 5 },
      Case("long", Templates.long()) { $0.length.map { $0 >= 100.5 || $0 == 12 } ?? false },
      Case("between", Templates.between(range: 2...3)) { (2...3).contains($0.tons) },
      Case("betweenTwo", Templates.betweenTwo(maximum: 5), ["maximum": .single(5)]) { (3...5).contains($0.tons) && $0.name != "" },
      // Bounds in the wrong order match nothing.
      Case("betweenTwo", Templates.betweenTwo(maximum: 2), ["maximum": .single(2)]) { _ in false },
      Case("crews", Templates.crews(more: 7), ["more": .single(7)]) { [1, 7, nil].contains($0.crew) },
      Case("codes", Templates.codes(codes: ["Oslo", "Éa"]), ["codes": .list(["Oslo", "Éa"])]) { ["Oslo", "Éa"].contains($0.code) },
      Case("begins", Templates.begins(start: "be"), ["start": .single("be")]) { $0.name.lowercased().hasPrefix("be") },
      Case("ends", Templates.ends()) { $0.name.hasSuffix("a") },
      Case("containing", Templates.containing(part: "e"), ["part": .single("e")]) { folded($0.code)?.contains("e") ?? false },
      Case("equalText", Templates.equalText(code: "oslo"), ["code": .single("oslo")]) {
        $0.name.lowercased() == "bella" || folded($0.code) != "oslo"
      },
      Case("sold", Templates.sold()) { $0.isSold },
      Case("priced", Templates.priced()) { $0.price.map { $0 == Decimal(string: "0.1") || $0 > 1_000_000 } ?? false },
      Case("launchedSince", Templates.launchedSince(date: day), ["date": .single(.date(86_400))]) {
        $0.launched.map { $0 >= day } ?? false
      },
      Case("launchedAtStart", Templates.launchedAtStart()) { $0.launched == day },
      Case(
        "registered", Templates.registered(registration: anna.registration),
        ["registration": .single(anna.registration.map { .uuid($0) } ?? .null)]
      ) { $0 == anna },
      Case("registered", Templates.registered(registration: nil), ["registration": .single(.null)]) { $0.registration == nil },
      Case("atPier", Templates.atPier(pier: "1"), ["pier": .single("1")]) { $0.berth?.pier == "1" },
      Case("atPier", Templates.atPier(pier: nil), ["pier": .single(.null)]) { $0.berth != nil && $0.berth?.pier == nil },
      Case("withoutBerth", Templates.withoutBerth()) { $0.berth == nil },
      Case("of", Templates.of(port: oslo), ["port": one(oslo)]) { $0.home == oslo },
      Case("of", Templates.of(port: nil), ["port": one(nil)]) { $0.home == nil },
      Case("homeless", Templates.homeless()) { $0.home == nil },
      Case("ofPorts", Templates.ofPorts(ports: [oslo]), ["ports": .list([.objectID(oslo.objectID)])]) { $0.home == oslo },
      Case("fromCountry", Templates.fromCountry(country: "NO"), ["country": .single("NO")]) { $0.home?.country == "NO" },
      Case("fromCountry", Templates.fromCountry(country: nil), ["country": .single(.null)]) { $0.home?.country == nil },
      Case("itself", Templates.itself(ship: anna), ["ship": one(anna)]) { $0 == anna },
      Case("others", Templates.others(ships: [anna, fleet.bella]), ["ships": .list([anna, fleet.bella].map { .objectID($0.objectID) })]) {
        $0 != anna && $0 != fleet.bella
      },
      Case("travelled", Templates.travelled(miles: 4), ["miles": .single(4)]) { $0.voyages.contains { $0.miles > 4 } },
      Case("idle", Templates.idle()) { !$0.voyages.contains { $0.miles > 0 } },
      Case("modest", Templates.modest()) { $0.voyages.allSatisfy { (1...20).contains($0.miles) } },
      Case("busy", Templates.busy(count: 1), ["count": .single(1)]) { $0.voyages.count > 1 },
      Case("unused", Templates.unused()) { $0.voyages.isEmpty },
      Case("visiting", Templates.visiting(name: "Oslo"), ["name": .single("Oslo")]) {
        $0.voyages.contains { $0.stops.contains { $0.name == "Oslo" } }
      },
      Case("onVoyage", Templates.onVoyage(voyage: voyage), ["voyage": one(voyage)]) { $0.voyages.contains(voyage) },
      Case("onThisVoyage", Templates.onThisVoyage(voyage: voyage), ["voyage": one(voyage)]) { $0.voyages.contains(voyage) },
      Case("sameNames", Templates.sameNames()) { $0.name == $0.home?.name },
      Case("smallCrew", Templates.smallCrew()) { $0.home?.ships.count ?? 0 < $0.voyages.count },
      Case("either", Templates.either(a: "Anna", b: "nero"), ["a": .single("Anna"), "b": .single("nero")]) {
        ["Anna", "nero"].contains($0.name) && ($0.tons < 3 || $0.tons > 4)
      },
      Case("twice", Templates.twice(text: "Oslo"), ["text": .single("Oslo")]) { $0.name == "Oslo" || $0.code == "Oslo" },
      Case(
        "keywords", Templates.keywords(default: "Anna", DateValue: "nero", request: "x"),
        ["default": .single("Anna"), "Date": .single("nero"), "request": .single("x")]
      ) { ["Anna", "nero"].contains($0.name) },
      Case("everything", Templates.everything()) { _ in true },
      Case("nothing", Templates.nothing()) { _ in false },
      Case("kept", Templates.kept()) { _ in true },
      Case("likeStart", Templates.likeStart()) { $0.name.hasPrefix("B") },
      Case("likeEnd", Templates.likeEnd()) { $0.code?.hasSuffix("lo") ?? false },
      Case("likeAnywhere", Templates.likeAnywhere()) { $0.name.lowercased().contains("el") },
      Case("likeWord", Templates.likeWord()) { $0.name.lowercased() == "bella" },
      Case("likeAny", Templates.likeAny()) { $0.code != nil },
      Case("unnamed", Templates.unnamed()) { $0.tons > 2 },
      Case("namedLight", Templates.namedLight()) { $0.tons < 3 },
      Case("far", Templates.far(miles: 4), ["miles": .single(4)]) { $0.voyages.contains { $0.miles > 4 && !$0.stops.isEmpty } },
      Case("calm", Templates.calm()) { !$0.voyages.contains { $0.miles >= 5 || $0.stops.contains { $0.name == "Oslo" } } },
      Case("toPort", Templates.toPort(name: "Oslo"), ["name": .single("Oslo")]) {
        $0.voyages.contains { $0.stops.contains { $0.name == "Oslo" } }
      },
      Case("stopping", Templates.stopping()) { $0.voyages.contains { $0.stops.contains { $0.name.hasPrefix("B") } } },
      Case("unvisited", Templates.unvisited()) { $0.home?.visits.isEmpty ?? true },
    ]
  }

  private static let stores: [@Sendable (TemporaryFolder) -> StoreDescription] = [
    { _ in .memory() }, { .json(at: $0.file("fleet.json")) }, { .xml(at: $0.file("fleet.xml")) },
    { .binary(at: $0.file("fleet.holdfast")) }, { .sqlite(at: $0.file("fleet.sqlite")) },
  ]

  @Test(arguments: stores.indices) func aTemplateFetchesTheObjectsThatItsPredicateDescribes(_ store: Int) throws {
    let folder = TemporaryFolder()
    let context = try PersistentContainer(declaredBy: FleetModelClasses.classes, store: Self.stores[store](folder)).newContext()
    let fleet = fleet(context)
    // First all objects are unsaved, then saved.
    for step in 0..<2 {
      if step == 1 { try context.save() }
      for (number, test) in cases(fleet).enumerated() {
        let found = try context.fetch(test.request), expected = fleet.ships.filter(test.holds)
        #expect(Set(found) == Set(expected) && found.count == expected.count, "\(number) \(test.name) in step \(step): \(test.request)")
      }
    }
    let limited = try context.fetch(FleetModelClasses.limited())
    #expect(limited.count == 2 && !limited.contains { $0 is Tanker })
    #expect(try context.count(for: FleetModelClasses.`class`()) == 1 && context.count(for: FleetModelClasses.all_ports()) == 2)
  }

  /// The same predicates as queries at run time.
  @Test(arguments: stores.indices) func theQueryOfAPredicateSelectsTheSameObjects(_ store: Int) throws {
    let folder = TemporaryFolder()
    let context = try PersistentContainer(declaredBy: FleetModelClasses.classes, store: Self.stores[store](folder)).newContext()
    let fleet = fleet(context), model = try FleetModel.model(), ship = try #require(model.entity(named: "Ship"))
    let texts = Dictionary(uniqueKeysWithValues: FleetModel.predicates.map { ($0.name, $0.text) })
    // A range isn't a value, and a composite attribute is compared by its elements.
    let untested = ["between", "withoutBerth"]
    for step in 0..<2 {
      if step == 1 { try context.save() }
      for (number, test) in cases(fleet).enumerated() where !untested.contains(test.name) {
        let text = try #require(texts[test.name])
        var request = FetchRequest<Ship>()
        request.predicate = try PredicateQuery.query(text, entity: ship, model: model) { variable, path in
          #expect(path.isEmpty)
          return try #require(test.values[variable])
        }.map { FetchPredicate($0) }
        let found = try context.fetch(request), expected = fleet.ships.filter(test.holds)
        #expect(Set(found) == Set(expected) && found.count == expected.count, "\(number) \(text) in step \(step)")
      }
    }
  }

  // MARK: Fetched properties

  @Test(arguments: stores.indices) func aFetchedPropertyHasTheObjectsThatItsPredicateDescribes(_ store: Int) throws {
    let folder = TemporaryFolder()
    let context = try PersistentContainer(declaredBy: FleetModelClasses.classes, store: Self.stores[store](folder)).newContext()
    let fleet = fleet(context), ports = Set(try context.fetch(Port.fetchRequest()))
    for step in 0..<3 {
      if step == 1 { try context.save() }
      // An unsaved change.
      if step == 2 { fleet.bella.home?.country = "NO" }
      for ship in fleet.ships {
        let compatriots = fleet.ships.filter { $0.home?.country == ship.home?.country && $0 != ship }
        #expect(try Set(ship.compatriots) == Set(compatriots), "step \(step)")
        #expect(try Set(ship.initAttribute) == ports && ports.count == 2)
      }
      for port in ports {
        let visitors = fleet.ships.filter { ship in port.visits.contains { $0.ship == ship } && ship.home != port }
        #expect(try Set(port.visitors) == Set(visitors) && port.visitors.count == visitors.count, "step \(step)")
      }
    }
    #expect(try fleet.anna.compatriots.count == 3)
    // By name, with the reason of the note.
    let refused = #expect(throws: PersistenceError.self) { try fleet.anna.fetchedObjects(forProperty: "puzzles") }
    #expect(refused?.code == .invalidRequest && refused?.reason.hasSuffix("The operator MATCHES isn't supported.") == true)
    #expect(throws: QueryError.self) { try fleet.anna.fetchedObjects(forProperty: "typos") }
    #expect(throws: PersistenceError.self) { try fleet.anna.fetchedObjects(forProperty: "others") }
  }

  @Test func everyTemplateIsTestedAndMostSelectSomeObjectsButNotAll() throws {
    let context = try PersistentContainer(declaredBy: FleetModelClasses.classes, store: .memory()).newContext()
    let fleet = fleet(context), cases = cases(fleet)
    #expect(Set(cases.map(\.name)) == Set(FleetModel.predicates.map(\.name)))
    let extreme = cases.filter { test in fleet.ships.allSatisfy(test.holds) || !fleet.ships.contains(where: test.holds) }
    #expect(extreme.map(\.name) == ["betweenTwo", "everything", "nothing", "kept"])
  }

  // MARK: Text

  private func code(_ predicate: String, name: String = "t", of entity: String = "Ship") throws -> ModelCode {
    let model = try FleetModel.model()
    return ModelCode(
      try ManagedObjectModel(
        entities: model.declarations, composites: model.composites,
        fetchRequestTemplates: [FetchRequestDescription(name, entity: entity, predicateFormat: predicate)]), name: "Fleet")
  }

  /// The line of code for a predicate.
  private func line(_ predicate: String) throws -> Substring? {
    try code(predicate).singleFile.text.split(separator: "\n").first { $0.contains("request.predicate = ") }
  }

  @Test(
    arguments: [
      ("name=='a b'", #"$0.name == "a b""#), (#"name == "a\"\\\n""#, #"$0.name == "a\"\\\n""#), ("tons == -3.0", "$0.tons == -3"),
      ("price > 100000000000000.001", #"$0.price > (Decimal(string: "100000000000000.001") ?? 0)"#),
      ("price <= 1.00000000000000000001", #"$0.price <= (Decimal(string: "1.00000000000000000001") ?? 0)"#),
      ("price < 2.50e1", "$0.price < 25"),
      ("tons = 1e3", "$0.tons == 1000"), ("SELF.name <> 'x'", #"$0.name != "x""#), ("#name => 'x'", #"$0.name >= "x""#),
      ("!(!(isSold = false))", "$0.isSold == false"), ("some voyages.miles > -1.5e2", "$0.voyages.any { $0.miles > -150 }"),
      ("crew in {yes, no}", "$0.crew.isIn([1, 0])"), ("FALSEPREDICATE OR ((tons > 2147483647))", "$0.tons > 2_147_483_647"),
      ("home != null and truepredicate", "$0.home != nil"), ("ANY voyages == $v", "$0.voyages.any { $0 == v }"),
      ("NOT tons > 3 AND NOT tons < 1 OR tons == 2", "!($0.tons > 3) && !($0.tons < 1) || $0.tons == 2"),
      ("name = nil", "FetchPredicate(.comparison($0.name.queryExpression, .equalTo, .constant(.null), []))"),
      ("name LIKE 'x**'", #"$0.name.beginsWith("x")"#),
      ("NOT SUBQUERY(voyages, $v, $v.miles > 3).@count = 0", "$0.voyages.any { $0.miles > 3 }"),
      ("registration IN $uuids", "$0.registration.isIn(uuids)"), ("home.visits.@count BETWEEN $r", "$0.home.visits.count.isIn(r)"),
    ] as [(String, String)]) func spellingsOfAPredicateHaveTheSameCode(_ predicate: String, _ expected: String) throws
  {
    let line = try #require(try line(predicate))
    let text = try code(predicate).singleFile.text
    #expect(line.hasSuffix("FetchPredicate<Ship> { \(expected) }") || text.contains("      \(expected)\n"), "\(line)")
  }

  @Test(
    arguments: [
      ("name LIKE 'a*b'", "A query has LIKE only with asterisks at the ends of the pattern."),
      ("name LIKE 'a?'", "A query has LIKE only with asterisks at the ends of the pattern."),
      ("name LIKE 'a\\\\*'", "A query has LIKE only with asterisks at the ends of the pattern."),
      ("name LIKE $x", "The pattern of LIKE must be text."), ("tons LIKE '*5'", "$0.tons isn't text."),
      ("name MATCHES $x", "The operator MATCHES isn't supported."),
      ("name ==[n] 'a'", "Only the options c and d of a comparison are supported."), ("name", "The predicate is incomplete."),
      ("name == 'a", "A text has no end."), ("name == 'a' name", "name isn't expected here."),
      ("(name == 'a'", "The predicate is incomplete."),
      ("tons + 1 == 2", "Arithmetic isn't supported."), ("tons == 1 - 1", "Arithmetic isn't supported."),
      ("length(name) == 2", "Functions such as length aren't supported."), ("now() == launched", "Functions such as now aren't supported."),
      ("launched == CAST('a', 'NSDate')", "Only numbers can be cast, to dates."), ("name == %@", "A predicate in a model has no arguments"),
      ("SUBQUERY(voyages, $v, $v.miles > 1).@count > 1", "A query only knows whether the count of a SUBQUERY is 0."),
      ("tons IN {SUBQUERY(voyages, $v, $v.miles > 1).@count}", "$0.tons is compared with a value of another type."),
      ("SUBQUERY(voyages, $v, $v.miles > 1).@max > 0", "@max isn't expected here."),
      ("SUBQUERY(voyages, $v, $v.miles > 1) > 0", "A query only knows the count of a SUBQUERY."),
      ("SUBQUERY(voyages, $v, $v.miles > tons).@count > 0", "The paths in a SUBQUERY must begin with its variable: $v.tons"),
      ("SUBQUERY(voyages, $v, SUBQUERY($v.stops, $s, $s == $v).@count > 0).@count > 0", "The condition of a SUBQUERY can't use the"),
      ("SUBQUERY(voyages, v, TRUEPREDICATE).@count > 0", "A SUBQUERY needs a variable."),
      ("SUBQUERY(home, $h, $h.name == 'a').@count > 0", "The collection of a SUBQUERY must be a to-many relationship."),
      ("SUBQUERY($x, $h, $h.name == 'a').@count > 0", "The collection of a SUBQUERY must be a relationship."),
      ("ANY SUBQUERY(voyages, $v, $v.miles > 1).@count > 0", "A SUBQUERY has no ANY, ALL or NONE."),
      ("age == 3", "Ship has no attribute or relationship age that a query can use."),
      ("home.age == 3", "Port has no attribute or relationship age that a query can use."),
      ("berth.size == 3", "berth has no element size."),
      ("name.first == 'a'", "name has no element first."), ("tons == 1.5", "$0.tons is compared with a value of another type."),
      ("tons == 3000000000", "$0.tons is compared with a value of another type."),
      ("name == 3", "$0.name is compared with a value of another type."),
      ("isSold == 2", "$0.isSold is compared with a value of another type."),
      ("home == 'Oslo'", "$0.home is compared with a value of another type."),
      ("home IN {nil}", "$0.home is compared with a value of another type."),
      ("home == home", "$0.home and $0.home can't be compared"), ("SELF != SELF", "$0 and $0 can't be compared"),
      ("isSold > $x", "$0.isSold has no order, or the comparison has"),
      ("SELF == nil", "An object isn't optional, so it can't be compared with nil."), ("tons BEGINSWITH $x", "$0.tons isn't text."),
      ("voyages.miles > 3", "The to-many relationship in voyages.miles needs ANY, ALL or NONE."),
      ("voyages == $v", "The to-many relationship in voyages needs ANY, ALL or NONE."),
      ("ANY home.name == 'a'", "ANY, ALL and NONE need a to-many relationship."), ("$a == $b", "A comparison without a property isn't"),
      ("ANY voyages.miles > tons", "Two properties can't be compared behind ANY, ALL or NONE."),
      ("home.name == $x.name", "A property of the"),
      ("name == tons", "$0.name and $0.tons can't be compared"), ("name == $x OR tons == $x", "The variable $x is compared with values of"),
      ("tons IN {}", "An empty list isn't supported."), ("tons BETWEEN {1}", "BETWEEN needs two bounds."),
      ("tons IN 3", "IN needs a list."),
      ("berth == $b", "A query can't compare $0.berth."), ("name == 'a' AND ~", "The character ~ isn't part of any operator."),
      ("tons == 0x1F", "0x isn't a decimal number."), ("name == '\\q'", "The escape sequence \\q isn't supported."),
      (String(repeating: "(", count: 100_000) + "tons == 1", "The predicate is nested too deeply."),
      ("tons == " + String(repeating: "CAST(", count: 100_000), "The predicate is nested too deeply."),
      (String(repeating: "SUBQUERY(voyages, $v, ", count: 100_000), "The predicate is nested too deeply."),
      ("ANY " + String(repeating: "voyages.ship.", count: 50_000) + "tons == 1", "A key path is too long."),
    ] as [(String, String)]) func aPredicateThatAQueryCannotHaveIsNotedWithTheReason(_ predicate: String, _ reason: String) throws
  {
    let code = try code(predicate), notes = code.notes.filter { $0.hasPrefix("Fetch request template") }
    #expect(notes.count == 1 && notes[0].hasPrefix("Fetch request template t: It has no code. \(reason)"), "\(notes)")
    #expect(!code.singleFile.text.contains("func t("))
  }

  @Test func templatesWithSimilarNamesHaveDifferentFunctions() throws {
    let model = try FleetModel.model(), names = ["a b", "a_b", "classes", "a-b", "entity"]
    let text = ModelCode(
      try ManagedObjectModel(
        entities: model.declarations, composites: model.composites,
        fetchRequestTemplates: names.map { FetchRequestDescription($0, entity: "Port") }), name: "Fleet"
    ).singleFile.text
    let functions = text.matches(of: /static func (\w+)\(\) -> FetchRequest<Port> \{\n    Port\./).map { String($0.1) }
    #expect(functions == ["a_b", "a_bRequest", "a_bRequestRequest", "classesRequest", "entityRequest"])
  }

  /// The bug: where the code needs the class or the type, the compiler found the function.
  @Test func aTemplateMayBeNamedLikeAClassOrAType() throws {
    let model = try ManagedObjectModel(
      entities: [EntityDescription("Port", attributes: [AttributeDescription("opened", .date), AttributeDescription("fee", .decimal)])],
      fetchRequestTemplates: [
        FetchRequestDescription("Port", entity: "Port"), FetchRequestDescription("FetchRequest", entity: "Port"),
        FetchRequestDescription("Date", entity: "Port", predicateFormat: "opened > CAST(5.5, \"NSDate\")"),
        FetchRequestDescription("Decimal", entity: "Port", predicateFormat: "fee > 0.5"),
        FetchRequestDescription("FetchPredicate", entity: "Port", predicateFormat: "fee > $fee"),
      ])
    let code = ModelCode(model, name: "Fleet"), text = code.singleFile.text
    #expect(code.notes == [])
    for function in ["PortRequest()", "FetchRequest()", "DateRequest()", "DecimalRequest()", "FetchPredicateRequest(fee: Decimal)"] {
      #expect(text.contains("static func \(function) -> FetchRequest<Port> {"), "\(text)")
    }
    let messages = try SwiftTools.compile(text)
    #expect(!messages.contains("error:"), "\(messages)")
  }

  /// Joins predicates at random.
  private func predicate(_ depth: Int, _ generator: inout SeededGenerator) -> String {
    let simple = FleetModel.predicates.map(\.text)
    guard depth > 0, Int.random(in: 0..<4, using: &generator) > 0 else { return "(\(simple.randomElement(using: &generator) ?? ""))" }
    if Int.random(in: 0..<5, using: &generator) == 0 { return "NOT " + predicate(depth - 1, &generator) }
    let parts = (0..<Int.random(in: 2...5, using: &generator)).map { _ in predicate(depth - 1, &generator) }
    return "(" + parts.joined(separator: Bool.random(using: &generator) ? " AND " : " OR ") + ")"
  }

  @Test func randomCombinationsOfPredicatesCompile() throws {
    var generator = SeededGenerator("random templates")
    let model = try FleetModel.model()
    // The compiler takes long for deeply nested predicates.
    let templates = (0..<TestTier.count(20, full: 400)).map { number in
      let depth = TestTier.isFull || number % 5 == 0 ? 3 : 2
      return FetchRequestDescription("t\(number)", entity: "Ship", predicateFormat: predicate(depth, &generator))
    }
    let code = ModelCode(
      try ManagedObjectModel(entities: model.declarations, composites: model.composites, fetchRequestTemplates: templates), name: "Fleet")
    // A variable can be compared with values of several types, which is noted.
    let notes = code.notes.filter { $0.hasPrefix("Fetch request template") }
    #expect(notes.allSatisfy { $0.contains("is compared with values of different types") } && notes.count < templates.count / 2, "\(notes)")
    let messages = try SwiftTools.compile(code.singleFile.text)
    #expect(!messages.contains("error:"), "\(messages.prefix(4000))")
  }

  /// Whatever a model file contains, the generator ends with code or a note.
  @Test func randomPredicatesHaveCodeOrANote() throws {
    var generator = SeededGenerator("random predicates")
    let pieces = [
      "name", "tons", "voyages", "miles", "home", "SELF", ".", ".@count", "==", "!=", "<", "IN", "BETWEEN", "CONTAINS[cd]", "AND", "OR",
      "NOT",
      "ANY", "ALL", "NONE", "(", ")", "{", "}", ",", "$x", "$y", "1", "-2.5", "'a'", "\"", "nil", "YES", "#", "@", "[", "CAST",
      "TRUEPREDICATE", "LIKE", "'*a'", "SUBQUERY(", "$x.miles",
    ]
    let texts = (0..<TestTier.count(300, full: 5_000)).map { _ in
      (0..<Int.random(in: 1...12, using: &generator)).map { _ in pieces.randomElement(using: &generator) ?? "" }
        .joined(separator: " ")
    }
    let model = try FleetModel.model()
    let templates = texts.enumerated().map { FetchRequestDescription("t\($0)", entity: "Ship", predicateFormat: $1) }
    let code = ModelCode(
      try ManagedObjectModel(entities: model.declarations, composites: model.composites, fetchRequestTemplates: templates), name: "Fleet")
    let functions = Set(code.singleFile.text.matches(of: /static func (t\d+)\(/).map { String($0.1) })
    for (number, text) in texts.enumerated() {
      let beginning = "Fetch request template t\(number): ", isNoted = code.notes.contains { $0.hasPrefix(beginning) }
      #expect(isNoted != functions.contains("t\(number)"), "\(text)")
    }
  }
}
