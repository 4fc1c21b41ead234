import Foundation
import Holdfast
import HoldfastCoreData
import HoldfastModelFile
import HoldfastPropertyList
import HoldfastStore
import TestSupport
import Testing

/// Filters of source objects in mapping models.
@Suite struct MappingFilterTests {
  private typealias Property = MappingModelText.Property

  private let old: ManagedObjectModel
  private let new: ManagedObjectModel

  init() throws {
    let place = CompositeDescription("Place", [.init("city", .string, isOptional: true)])
    old = try model(
      EntityDescription(
        "Dog",
        attributes: [
          .init("name", .string, isOptional: true), .init("age", .integer16, isOptional: true), .init("weight", .double, isOptional: true),
          .init("price", .decimal, isOptional: true), .init("born", .date, isOptional: true), .init("isGood", .boolean, isOptional: true),
          .init("photo", .binaryData, isOptional: true, allowsExternalBinaryDataStorage: true), .init("in", .string, isOptional: true),
          .composite("home", "Place", isOptional: true),
        ],
        relationships: [
          .toOne("owner", to: "Owner", inverse: "dogs"), .toMany("friends", to: "Dog", inverse: "friends"),
          .toMany("walks", to: "Walk", inverse: "dog"),
        ]),
      EntityDescription("Puppy", superentity: "Dog"),
      EntityDescription(
        "Owner", attributes: [.init("name", .string, isOptional: true)], relationships: [.toMany("dogs", to: "Dog", inverse: "owner")]),
      EntityDescription(
        "Walk", attributes: [.init("minutes", .integer32, default: .int32(0))],
        relationships: [.toOne("dog", to: "Dog", inverse: "walks")]), composites: [place])
    new = try model(
      EntityDescription("Cat", attributes: [.init("filter", .integer64, default: 0)]),
      EntityDescription("Dog", relationships: [.toOne("photo", to: "Photo", inverse: "dog")]),
      EntityDescription(
        "Photo", attributes: [.init("bytes", .binaryData, isOptional: true)], relationships: [.toOne("dog", to: "Dog", inverse: "photo")]))
  }

  private func fill(_ context: ManagedObjectContext) throws {
    let ann = try context.add("Owner", "ann", ["name": "Ann"])
    let a = try context.add(
      "Dog", "a",
      [
        "name": "Zoë", "age": .int16(3), "weight": .double(2.5), "price": .decimal(10), "born": .date(100), "isGood": true,
        "photo": .data(Data(repeating: 7, count: 200_000)), "home.city": "Rome", "in": "x",
      ])
    let b = try context.add("Dog", "b", ["name": "rex", "age": .int16(7), "isGood": false, "photo": .data(Data([1]))])
    let c = try context.add("Dog", "c", ["name": "Rex the \"2nd\"", "in": "e\u{301}"])
    // Objects of a subentity have a mapping of their own.
    try context.add("Puppy", "p", ["name": "rex", "age": .int16(3)])
    try a.setValue(ann, forKey: "owner")
    try a.setValue([b], forKey: "friends")
    for (dog, minutes) in [(a, 10), (a, 50), (b, 20)] {
      try context.add("Walk", "w", ["minutes": .int32(Int32(minutes))]).setValue(dog, forKey: "dog")
    }
    try c.setValue([c], forKey: "friends")
  }

  private func plan(_ text: MappingModelText) throws -> MigrationPlan {
    let folder = TemporaryFolder()
    var plan = MigrationPlan(from: old)
    try plan.add(new, mappingModelsAt: [try text.write(to: folder)])
    return plan
  }

  /// The example that books on Core Data have: an object for each photo.
  @Test(arguments: MigratedStore.allCases) func objectsThatFulfilAFilterAreMapped(_ store: MigratedStore) throws {
    let place = MigratedStore.Place(store)
    try place.fill(old, fill)
    var keys: [String: ObjectKey] = [:]
    func read(_ model: ManagedObjectModel) throws -> [String: ObjectKey] {
      var found: [String: ObjectKey] = [:]
      try place.change(model) { context in
        for dog in try context.fetch(FetchRequest<ManagedObject>(entityName: "Dog")) where dog.entity.name == "Dog" {
          found[try Contents.tag(dog)] = dog.objectID.key
        }
      }
      return found
    }
    if store != .coreData { keys = try read(old) }
    var text = MappingModelText()
    text.map("Dog", to: "Dog", filter: "TRUEPREDICATE", attributes: [Property("tag")])
    text.map(
      "Dog", to: "Photo", filter: "photo != nil", attributes: [Property("tag"), Property("bytes", path: "$source.photo")],
      relationships: [Property("dog", path: "$source", mapping: "DogToDog")])
    try PersistentStoreCoordinator.migratePersistentStore(place.description, with: try plan(text))
    #expect(
      try place.contents(new) == [
        "Dog a: photo=a", "Dog b: photo=b", "Dog c: photo=nil", "Photo a: bytes=200000 bytes 7 dog=a", "Photo b: bytes=1 dog=b",
      ])
    // A filter that holds for all objects is none.
    if store != .coreData { #expect(try read(new) == keys) }
  }

  /// Filters, with the dogs for which they hold.
  private static let filters: [(text: String, tags: String)] = [
    ("age > 3", "b"), ("age >= 3", "ab"), ("3 < age", "b"), ("age == 3", "a"), ("age = nil", "c"), ("age != 3", "bc"),
    ("age <> NULL", "ab"),
    ("age BETWEEN {1, 5}", "a"), ("age IN {3, 7}", "ab"), ("age NOT IN {3}", "bc"), ("NOT age IN {3, nil}", "b"), ("age IN {}", ""),
    ("weight < 3", "a"), ("weight == 2.5", "a"), ("weight > -1.5e1", "a"), ("price =< 10", "a"), ("price == 10.0", "a"),
    ("born >= CAST(50, \"NSDate\")", "a"), ("isGood == YES", "a"), ("isGood = false", "b"), ("isGood == 1", "a"),
    ("name == 'rex'", "b"), ("name ==[c] \"REX\"", "b"), ("name BEGINSWITH[cd] 'zoe'", "a"), ("name contains 'ex'", "bc"),
    ("name ENDSWITH \"\\\"2nd\\\"\"", "c"), ("name LIKE 'rex'", "b"), ("name like[c] 'REX*'", "bc"), ("name LIKE '*e*'", "bc"),
    ("name LIKE '*ë'", "a"), ("name LIKE '*'", "abc"), ("name LIKE '**x'", "b"), ("#in LIKE '*\u{301}'", "c"),
    ("#in ENDSWITH '\u{301}'", "c"), ("name IN[cd] {'ZOE', 'Rex'}", "ab"),
    ("age > 3 AND isGood == NO", "b"), ("age > 3 && name == 'no'", ""), ("age == 3 or name BEGINSWITH 'Rex'", "ac"),
    ("age == 3 OR age == 7 AND isGood == YES", "a"), ("(age == 3 OR age == 7) AND isGood == NO", "b"), ("!(age == 3)", "bc"),
    ("NOT (age == 3 || age == nil)", "b"), ("FALSEPREDICATE", ""), ("TRUEPREDICATE AND age == 3", "a"),
    ("owner.name == 'Ann'", "a"), ("SELF.owner.name == nil", "bc"), ("owner == nil", "bc"), ("owner.dogs.@count > 0", "a"),
    ("home.city == 'Rome'", "a"), ("#in == 'x'", "a"), ("photo = nil", "c"), ("name == #in", ""), ("name != owner.name", "abc"),
    ("walks.@count == 2", "a"), ("walks.@count > friends.@count", "a"), ("ANY walks.minutes > 40", "a"), ("SOME walks.minutes < 40", "ab"),
    ("ALL walks.minutes < 40", "bc"), ("NONE walks.minutes > 40", "bc"), ("ANY friends.walks.minutes == 50", "b"),
    ("ANY friends.owner.name == 'Ann'", "b"), ("NOT ANY friends.friends.age == 3", "bc"),
    ("name MATCHES 'r.x'", "b"), ("name matches[c] 'rex.*'", "bc"), ("NOT name MATCHES '.*e.*'", "a"),
    ("name MATCHES '.*x' AND age > 3", "b"), ("age == 3 && home.city MATCHES 'R.*'", "a"), ("SELF.owner.name MATCHES 'A[a-z]+'", "a"),
    ("name MATCHES '.*' && !(age == 3) AND !name MATCHES \"rex\"", "c"), ("home.city MATCHES '.*'", "a"),
    ("SUBQUERY(walks, $w, $w.minutes > 40).@count > 0", "a"),
    ("SUBQUERY(walks, $w, $w.minutes > 15 AND $w.minutes < 30).@count == 0", "ac"),
    ("1 <= SUBQUERY(friends, $f, $f.age == 7).@count", "a"), ("SUBQUERY(friends.walks, $w, $w.minutes == 50).@count != 0", "b"),
    ("subquery(friends, $f, SUBQUERY($f.walks, $w, $w.minutes == 50).@count > 0).@count >= 1", "b"),
    ("0 == SUBQUERY(walks, $w, TRUEPREDICATE).@count OR age == 3", "ac"),
  ]

  @Test(arguments: MigratedStore.allCases) func filtersHoldForTheObjectsThatTheyDescribe(_ store: MigratedStore) throws {
    var text = MappingModelText()
    for (index, filter) in Self.filters.enumerated() {
      text.map(
        "Dog", to: "Cat", name: "filter \(index)", filter: filter.text,
        attributes: [
          Property("tag"), Property("filter", expression: TestExpression.constant(.integer(Int64(index))).archive),
        ])
    }
    let place = MigratedStore.Place(store)
    try place.fill(old, fill)
    try PersistentStoreCoordinator.migratePersistentStore(place.description, with: try plan(text))
    var found = [String](repeating: "", count: Self.filters.count)
    try place.change(new) { context in
      for cat in try context.fetch(FetchRequest<ManagedObject>(entityName: "Cat")) {
        let index = try #require(try cat.value(forKey: "filter").storeValue?.integer)
        found[Int(index)] += try Contents.tag(cat)
      }
    }
    for (filter, tags) in zip(Self.filters, found) { #expect(String(tags.sorted()) == filter.tags, "\(filter.text)") }
  }

  @Test func filtersThatAreNotSupportedAreNamed() throws {
    let wrong = [
      "", "age", "age >", "> 3", "age > 3 4", "age == 3 AND", "(age == 3", "age == 3)", "age == {3}", "age BETWEEN {1}", "age IN 3",
      "colour == 3", "owner.colour == 3", "age == 'three'", "name > 3", "name CONTAINS 3", "name LIKE 'a*b'",
      "name LIKE 'a?'", "name == 'open", "name ==[l] 'x'", "name ==[ 'x'", "name ==[c 'x'", "age NOT > 3", "walks.minutes > 3",
      "walks == nil", "ANY age > 3", "ANY walks == nil", "ANY walks.@count > 1", "ALL owner.name == 'x'", "uppercase(name) == 'X'",
      "age + 1 > 3", "age > $LIMIT", "walks.@sum.minutes > 3", "SELF == nil", "3 == 3", "friends..age == 3", "age == 1e999",
      "CAST('x', 'NSDate') == born", "born > CAST(3, 'NSNumber')", "SUBQUERY(walks, $w, $w.minutes > 3).@count > 1", "age ~ 3",
      "name MATCHES 'a' OR age == 3", "(name MATCHES 'a')", "name MATCHES '('", "age MATCHES 'a'", "walks.tag MATCHES 'a'",
      "name MATCHES[d] 'a'", "name MATCHES[l] 'a'", "name MATCHES 3", "name MATCHES owner.name", "name NOT MATCHES 'a'", "'a' MATCHES name",
      "SUBQUERY(walks, $w, minutes > 3).@count > 0", "SUBQUERY(owner, $o, $o.name == 'x').@count > 0",
      "SUBQUERY(walks, $w, $w.minutes > 3) > 0", "SUBQUERY(walks, w, w.minutes > 3).@count > 0",
      "ANY SUBQUERY(walks, $w, TRUEPREDICATE).@count > 0",
      "SUBQUERY(walks, $w, $w.minutes > owner.age).@count > 0", "SUBQUERY(walks, $w, $w.tag MATCHES 'a').@count > 0",
      "SUBQUERY(walks.minutes, $w, TRUEPREDICATE).@count > 0", "SUBQUERY(walks, $w, $w == nil).@count > 0",
      "SUBQUERY(walks, $w).@count > 0",
      String(repeating: "SUBQUERY(friends, $f, ", count: 200), "15 < ANY walks.minutes", "name == in.x", "AND", "photo == 'x'",
      "owner.age IN {1}", "'x' CONTAINS name",
      "ANY " + String(repeating: "friends.", count: 50) + "age == 3", "ANY " + String(repeating: "friends.", count: 200_000) + "age == 3",
      String(repeating: "(", count: 1_000) + "age == 3", String(repeating: "NOT ", count: 1_000) + "age == 3",
    ]
    for filter in wrong {
      var text = MappingModelText()
      text.map("Dog", to: "Dog", filter: filter, attributes: [Property("tag")])
      // Xcode writes an empty text for no filter.
      if filter.isEmpty {
        _ = try plan(text)
        continue
      }
      let error = #expect(throws: MigrationError.self, "\(filter.prefix(80))") { try plan(text) }
      #expect(error?.code == .invalidMappingModel && error?.problems.map(\.path) == ["entity mapping DogToDog"], "\(filter.prefix(80))")
      #expect(error?.problems.first?.reason.contains("can't be used. ") == true, "\(error?.problems.first?.reason.suffix(200) ?? "")")
    }
  }

  /// Texts of other programs are read or refused, and nothing else.
  @Test func randomFiltersAreReadOrRefused() throws {
    let parts = [
      "age", "name", "walks", "walks.minutes", "owner.name", "friends.@count", "SELF", "@count", "$x", "#in", "3", "-2.5", "'a'", "\"b",
      "nil",
      "YES", "==", "!=", "<", "=>", "[c]", "[", "]", "(", ")", "{", "}", ",", "AND", "OR", "NOT", "!", "ANY", "ALL", "NONE", "IN",
      "BETWEEN",
      "LIKE", "CONTAINS", "CAST", "TRUEPREDICATE", "MATCHES", "SUBQUERY", "$w", "$w.minutes", ".@count", "name MATCHES 'a.*'",
      "SUBQUERY(walks, $w, $w.minutes > 3).@count > 0", "age == 3", "name LIKE 'a*'", ".", "..", "\\", "é", "\u{0}",
    ]
    var random = SeededGenerator("Filters"), accepted = 0
    for _ in 0..<TestTier.count(2_000, full: 20_000) {
      let filter = (0..<Int.random(in: 1...9, using: &random)).map { _ in parts.randomElement(using: &random) ?? "" }
      var text = MappingModelText()
      text.map("Dog", to: "Dog", filter: filter.joined(separator: Bool.random(using: &random) ? " " : ""), attributes: [Property("tag")])
      do {
        _ = try plan(text)
        accepted += 1
      } catch {
        #expect(error is MigrationError || error is ModelFileError, "HOLDFAST_SEED=\(random.seed) \(filter)")
      }
    }
    #expect(accepted > 0)
  }

  /// Only inserted objects are checked, and links lead to them.
  @Test(arguments: MigratedStore.allCases) func linksLeadOnlyToObjectsThatFulfilTheFilter(_ store: MigratedStore) throws {
    let friends = [RelationshipDescription.toMany("friends", to: "Dog", inverse: "friends")]
    let age = AttributeDescription("age", .integer16, isOptional: true)
    let dogs = try model(EntityDescription("Dog", attributes: [age], relationships: friends))
    let next = try model(EntityDescription("Dog", attributes: [.init("age", .integer16)], relationships: friends))
    var text = MappingModelText(), plan = MigrationPlan(from: dogs)
    let folder = TemporaryFolder(), place = MigratedStore.Place(store)
    text.map("Dog", to: "Dog", filter: "age != nil", attributes: [Property("tag"), Property("age")], relationships: [Property("friends")])
    try plan.add(next, mappingModelsAt: [try text.write(to: folder)])
    try place.fill(dogs) { context in
      let old = try ["a", "b"].map { try context.add("Dog", $0, ["age": .int16(3)]) }
      try old[0].setValue([old[1], try context.add("Dog", "c")], forKey: "friends")
    }
    try PersistentStoreCoordinator.migratePersistentStore(place.description, with: plan)
    #expect(try place.contents(next) == ["Dog a: age=3 friends=[b]", "Dog b: age=3 friends=[a]"])
  }
}
