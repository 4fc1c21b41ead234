import Foundation
import Holdfast
import HoldfastCoreData
import HoldfastModelFile
import HoldfastPropertyList
import HoldfastStore
import TestSupport
import Testing

/// Migrations by Core Data's mapping models.
@Suite struct MappingModelTests {
  private typealias Property = MappingModelText.Property

  private let first: ManagedObjectModel
  private let second: ManagedObjectModel

  init() throws {
    first = try model(
      EntityDescription(
        "Person",
        attributes: [
          .init("name", .string, default: ""), .init("age", .integer32, isOptional: true), .init("old", .string, isOptional: true),
        ],
        relationships: [.toOne("home", to: "Home", inverse: "people"), .toMany("friends", to: "Person", inverse: "friends")]),
      EntityDescription(
        "Home", attributes: [.init("street", .string, isOptional: true)],
        relationships: [
          .toMany("people", to: "Person", inverse: "home"), .toOne("city", to: "City", inverse: "homes"),
        ]),
      EntityDescription(
        "City", attributes: [.init("code", .integer16, default: .int16(0))], relationships: [.toMany("homes", to: "Home", inverse: "city")])
    )
    second = try model(
      EntityDescription(
        "Human",
        attributes: [
          .init("name", .string, default: ""), .init("age", .integer16, isOptional: true), .init("code", .integer64, isOptional: true),
          .init("street", .string, isOptional: true), .init("friendCount", .integer64, default: 0), .init("note", .string, default: "none"),
          .init("double", .integer64, isOptional: true),
        ],
        relationships: [.toOne("city", to: "City", inverse: "humans"), .toMany("friends", to: "Human", inverse: "friends")]),
      EntityDescription(
        "City", attributes: [.init("code", .integer16, default: .int16(0))],
        relationships: [.toMany("humans", to: "Human", inverse: "city")]))
  }

  private func fill(_ place: MigratedStore.Place) throws {
    try place.fill(first) { context in
      let x = try context.add("City", "x", ["code": .int16(10)]), y = try context.add("City", "y", ["code": .int16(20)])
      let a = try context.add("Home", "a", ["street": "A road"]), b = try context.add("Home", "b", ["street": "B road"])
      try a.setValue(x, forKey: "city")
      try b.setValue(y, forKey: "city")
      let ann = try context.add("Person", "ann", ["name": "Ann", "age": .int32(30), "old": "gone"])
      let bo = try context.add("Person", "bo", ["name": "Bo", "age": .int32(20)])
      try context.add("Person", "cy", ["name": "Cy"])
      try ann.setValue(a, forKey: "home")
      try bo.setValue(b, forKey: "home")
      try ann.setValue([bo], forKey: "friends")
    }
  }

  private var mapping: MappingModelText {
    var text = MappingModelText()
    text.map(
      "Person", to: "Human",
      attributes: [
        Property("name"), Property("tag"), Property("age"), Property("note"),
        Property("code", expression: TestExpression.path(.source, "home.city.code").archive),
        Property("street", path: "$source.home.street"),
        Property("friendCount", expression: TestExpression.path(.source, "friends.@count").archive),
        Property("double", expression: TestExpression.function("multiply:by:", [.path(.source, "age"), .constant(.integer(2))]).archive),
      ],
      relationships: [Property("friends"), Property("city", path: "$source.home.city", mapping: "CityToCity")])
    text.map(
      "City", to: "City", attributes: [Property("code"), Property("tag")],
      relationships: [Property("humans", path: "$source.homes.@distinctUnionOfSets.people", mapping: "PersonToHuman")])
    return text
  }

  private func plan(_ mapping: MappingModelText, _ policies: [String: MappingPolicy] = [:]) throws -> MigrationPlan {
    let folder = TemporaryFolder()
    var plan = MigrationPlan(from: first)
    try plan.add(second, mappingModelsAt: [try mapping.write(to: folder)], policies: policies)
    return plan
  }

  // MARK: What becomes of objects

  @Test(arguments: MigratedStore.allCases) func valuesAndLinksComeFromPropertiesAndExpressions(_ store: MigratedStore) throws {
    let place = MigratedStore.Place(store)
    try fill(place)
    try PersistentStoreCoordinator.migratePersistentStore(place.description, with: try plan(mapping))
    #expect(
      try place.contents(second) == [
        "City x: code=10 humans=[ann]", "City y: code=20 humans=[bo]",
        "Human ann: age=30 code=10 double=60 friendCount=1 name=Ann note=none street=A road city=x friends=[bo]",
        "Human bo: age=20 code=20 double=40 friendCount=1 name=Bo note=none street=B road city=y friends=[ann]",
        "Human cy: age=nil code=nil double=nil friendCount=0 name=Cy note=none street=nil city=nil friends=[]",
      ])
  }

  @Test(arguments: MigratedStore.allCases) func objectsKeepTheirKeys(_ store: MigratedStore) throws {
    let place = MigratedStore.Place(store)
    try fill(place)
    var keys: [String: ObjectKey] = [:]
    func read(_ model: ManagedObjectModel, _ entity: String) throws {
      try place.change(model) { context in
        for object in try context.fetch(FetchRequest<ManagedObject>(entityName: entity)) {
          let tag = try Contents.tag(object), key = object.objectID.key
          #expect(keys.updateValue(key, forKey: tag) ?? key == key)
        }
      }
    }
    try read(first, "Person")
    try PersistentStoreCoordinator.migratePersistentStore(place.description, with: try plan(mapping))
    try read(second, "Human")
    #expect(keys.count == 3)
  }

  @Test(arguments: MigratedStore.allCases) func whatHasNoMappingIsRemovedOrBeginsAnew(_ store: MigratedStore) throws {
    let place = MigratedStore.Place(store)
    try fill(place)
    var text = MappingModelText()
    text.map("Person", to: "Human", attributes: [Property("tag")])
    text.map(nil, to: "City")
    try PersistentStoreCoordinator.migratePersistentStore(place.description, with: try plan(text))
    #expect(
      try place.contents(second)
        == ["ann", "bo", "cy"].map {
          "Human \($0): age=nil code=nil double=nil friendCount=0 name= note=none street=nil city=nil friends=[]"
        })
  }

  /// Persons become humans and cities, and homes become humans, too.
  @Test(arguments: MigratedStore.allCases) func severalMappingsOfAnEntityInsertObjects(_ store: MigratedStore) throws {
    let place = MigratedStore.Place(store)
    try fill(place)
    var text = MappingModelText()
    text.map(
      "Home", to: "Human", attributes: [Property("tag"), Property("name", path: "$source.street")],
      relationships: [Property("city")])
    text.map("City", to: "City", attributes: [Property("tag")], relationships: [])
    text.map(
      "Person", to: "Human", name: "people", policy: "Zoo.Notes", attributes: [Property("tag"), Property("age")],
      relationships: [Property("friends")])
    text.map(
      "Person", to: "City", name: "towns", attributes: [Property("tag")],
      relationships: [Property("humans", path: "$source.friends", mapping: "people")])
    let notes = MappingPolicy { stage in
      try stage.forEach { old, new in try new.setValue("was \(old["name"])".filter { $0 != "\"" }, forKey: "note") }
    }
    try PersistentStoreCoordinator.migratePersistentStore(place.description, with: try plan(text, ["Zoo.Notes": notes]))
    let lines = try place.contents(second)
    func line(_ start: String) -> String? { lines.first { $0.hasPrefix(start) } }
    #expect(lines.count == 10)
    #expect(line("Human a:") == "Human a: age=nil code=nil double=nil friendCount=0 name=A road note=none street=nil city=x friends=[]")
    #expect(line("Human ann:")?.contains("friends=[bo]") == true && line("Human bo:")?.contains("friends=[ann]") == true)
    #expect(line("Human ann:")?.contains("age=30") == true)
    #expect(line("Human ann:")?.contains("was string(Ann)") == true, "\(lines)")
    #expect(line("City ann:") == "City ann: code=0 humans=[bo]")
    #expect(line("City bo:") == "City bo: code=0 humans=[ann]")
    #expect(line("City cy:") == "City cy: code=0 humans=[]")
  }

  @Test(arguments: MigratedStore.allCases) func aPolicySeesMappedObjectsAndItsFunctionsAreCalled(_ store: MigratedStore) throws {
    let place = MigratedStore.Place(store)
    try fill(place)
    var text = MappingModelText()
    text.map(
      "Person", to: "Human", policy: "Zoo.Policy",
      attributes: [
        Property("tag"),
        Property("name", expression: TestExpression.method(.variable("entityPolicy"), "shout:", [.path(.source, "name")]).archive),
      ])
    text.map("City", to: "City", attributes: [Property("tag")])
    let policy = MappingPolicy(functions: [
      "shout:": { arguments in
        guard case .string(let text) = arguments[0] else { return .null }
        return .string(text.uppercased())
      }
    ]) { stage in
      #expect(stage.mapping.name == "PersonToHuman")
      try stage.forEach { old, new in
        if try Contents.tag(new) == "cy" { return stage.context.delete(new) }
        let city = try #require(try old.object("home")?.object("city"))
        let cities = try stage.objects(for: [city], mappedBy: "CityToCity")
        #expect(try stage.objects(for: [city]).map(\.objectID) == cities.map(\.objectID))
        #expect(try stage.objects(for: [city], mappedBy: "PersonToHuman").isEmpty)
        try new.setValue(cities.first, forKey: "city")
      }
      try stage.context.add("City", "new")
    }
    try PersistentStoreCoordinator.migratePersistentStore(place.description, with: try plan(text, ["Zoo.Policy": policy]))
    let lines = try place.contents(second)
    #expect(lines.count == 5 && lines.contains("City new: code=0 humans=[]") && lines.contains("City x: code=0 humans=[ann]"))
    #expect(lines.contains { $0.hasPrefix("Human bo") && $0.contains("name=BO") })
  }

  /// The bug: inserted objects that a policy had saved counted as deleted, so they were left out, and links to them were removed.
  @Test(arguments: MigratedStore.allCases) func aPolicyMaySaveInsertedObjects(_ store: MigratedStore) throws {
    let place = MigratedStore.Place(store)
    try fill(place)
    var text = MappingModelText()
    text.map(
      "Person", to: "Human", policy: "Zoo.Saving", filter: "tag != nil", attributes: [Property("tag")],
      relationships: [Property("friends"), Property("city", path: "$source.home.city", mapping: "CityToCity")])
    text.map(
      "City", to: "City", attributes: [Property("tag")],
      relationships: [Property("humans", path: "$source.homes.@distinctUnionOfSets.people", mapping: "PersonToHuman")])
    let policy = MappingPolicy { stage in
      try stage.forEach { old, new in if old["tag"] == "cy" { stage.context.delete(new) } }
      for note in ["first", "second"] {
        try stage.forEach { _, new in try new.setValue(note, forKey: "note") }
        try stage.context.save()
      }
    }
    try PersistentStoreCoordinator.migratePersistentStore(place.description, with: try plan(text, ["Zoo.Saving": policy]))
    func human(_ name: String, city: String, friend: String) -> String {
      "Human \(name): age=nil code=nil double=nil friendCount=0 name= note=second street=nil city=\(city) friends=[\(friend)]"
    }
    #expect(
      try place.contents(second) == [
        "City x: code=0 humans=[ann]", "City y: code=0 humans=[bo]", human("ann", city: "x", friend: "bo"),
        human("bo", city: "y", friend: "ann"),
      ])
  }

  @Test(arguments: MigratedStore.allCases) func aValueThatDoesNotFitEndsTheMigration(_ store: MigratedStore) throws {
    let place = MigratedStore.Place(store)
    try fill(place)
    // The new age has 16 bits.
    try place.change(first) { try $0.add("Person", "old", ["age": .int32(70_000)]) }
    if store == .coreData { return }
    let before = try place.folder.snapshot()
    let error = #expect(throws: MigrationError.self) {
      try PersistentStoreCoordinator.migratePersistentStore(place.description, with: try plan(mapping))
    }
    #expect(error?.code == .invalidMappingModel && error?.coreDataCode == 134170)
    #expect(error?.problems.map(\.path) == ["Human.age"])
    #expect(try place.folder.snapshot() == before)
  }

  /// The bug: the values of both attributes were in the same file, which was removed when one of them was changed.
  @Test(arguments: MigratedStore.allCases) func severalAttributesGetTheLargeValueOfOne(_ store: MigratedStore) throws {
    func dogs(_ names: String...) throws -> ManagedObjectModel {
      let attributes = names.map {
        AttributeDescription($0, .binaryData, isOptional: true, allowsExternalBinaryDataStorage: true)
      }
      return try model(EntityDescription("Dog", attributes: attributes))
    }
    let old = try dogs("photo"), new = try dogs("photo", "scan", "thumb")
    let place = MigratedStore.Place(store), folder = TemporaryFolder()
    try place.fill(old) { try $0.add("Dog", "a", ["photo": .data(Data(repeating: 7, count: 300_000))]) }
    var text = MappingModelText()
    text.map(
      "Dog", to: "Dog",
      attributes: [
        Property("tag"), Property("thumb", path: "$source.photo"), Property("photo"), Property("scan", path: "$source.photo"),
      ])
    var plan = MigrationPlan(from: old)
    try plan.add(new, mappingModelsAt: [try text.write(to: folder)])
    try PersistentStoreCoordinator.migratePersistentStore(place.description, with: plan)
    let large = "300000 bytes 7"
    #expect(try place.contents(new) == ["Dog a: photo=\(large) scan=\(large) thumb=\(large)"])
    for (name, other) in [("thumb", "scan"), ("scan", "thumb")] {
      let copy = try place.copied()
      try copy.change(new) { try $0.tagged("Dog", "a").setValue(StoreValue.null, forKey: name) }
      let values = [("photo", large), (name, "nil"), (other, large)].sorted { $0.0 < $1.0 }.map { "\($0.0)=\($0.1)" }
      #expect(try copy.contents(new) == ["Dog a: \(values.joined(separator: " "))"])
    }
  }

  @Test func aCompositeAttributeIsCopiedByASecondMapping() throws {
    let point = CompositeDescription("Point", [.init("latitude", .double, isOptional: true), .init("name", .string, isOptional: true)])
    let home = AttributeDescription.composite("home", "Point", isOptional: true)
    let old = try model(EntityDescription("Dog", attributes: [home]), EntityDescription("Cat", attributes: [home]), composites: [point])
    let new = try model(EntityDescription("Pet", attributes: [home]), composites: [point])
    var text = MappingModelText()
    text.map("Dog", to: "Pet", attributes: [Property("tag"), Property("home")])
    text.map("Cat", to: "Pet", attributes: [Property("tag"), Property("home")])
    for store in MigratedStore.allCases {
      let folder = TemporaryFolder(), place = MigratedStore.Place(store)
      try place.fill(old) { context in
        try context.add("Dog", "a", ["home.latitude": 1.5, "home.name": "A"])
        try context.add("Cat", "b", ["home.latitude": 2.5])
      }
      var plan = MigrationPlan(from: old)
      try plan.add(new, mappingModelsAt: [try text.write(to: folder)])
      try PersistentStoreCoordinator.migratePersistentStore(place.description, with: plan)
      #expect(try place.contents(new) == ["Pet a: home.latitude=1.5 home.name=A", "Pet b: home.latitude=2.5 home.name=nil"])
    }
  }

  // MARK: Paths

  @Test func theFewestStagesAreTaken() throws {
    let folder = TemporaryFolder()
    func zoo(_ names: String...) throws -> ManagedObjectModel {
      try model(EntityDescription("Dog", attributes: names.map { AttributeDescription($0, .string, isOptional: true) }))
    }
    let versions = try [zoo("a"), zoo("b"), zoo("c"), zoo("d")], names = ["Zoo", "Zoo 2", "Zoo 10", "Zoo 11"]
    try ModelBundle.write(
      Dictionary(uniqueKeysWithValues: try zip(names, versions).map { ($0, try ModelDocument($1)) }), currentVersion: "Zoo 10",
      to: folder.file("Zoo.xcdatamodeld"))
    func write(_ from: Int, _ to: Int, _ name: String, _ path: String) throws {
      var text = MappingModelText()
      (text.source, text.destination) = ("App/Zoo.xcdatamodeld/\(names[from]).xcdatamodel", "App/Zoo.xcdatamodeld/\(names[to]).xcdatamodel")
      text.map("Dog", to: "Dog", attributes: [Property("tag"), Property(name, path: path)])
      _ = try text.write(to: folder, "Maps/\(from) to \(to)")
    }
    // The second version loses the value, the shortcut keeps it. A store of a newer version goes back.
    try write(0, 2, "c", "$source.a")
    try write(3, 2, "c", "$source.d")
    let plan = try MigrationPlan(versionsAt: folder.file("Zoo.xcdatamodeld"), mappingModelsAt: folder.path)
    for (place, version) in versions.enumerated() {
      let store = MigratedStore.Place(.sqlite), name = ["a", "b", "c", "d"][place]
      try store.fill(version) { try $0.add("Dog", "x", [name: "kept"]) }
      try PersistentStoreCoordinator.migratePersistentStore(store.description, with: plan)
      #expect(try store.contents(versions[2]) == ["Dog x: c=\(place == 1 ? "nil" : "kept")"])
    }
    #expect(plan.model.versionDigest == versions[2].versionDigest)
    #expect(throws: ModelFileError.self) {
      try MigrationPlan(versionsAt: folder.file("Zoo.xcdatamodeld"), to: "Zoo 12", mappingModelsAt: folder.path)
    }
    #expect(throws: ModelFileError.self) {
      try MigrationPlan(versionsAt: folder.file("Zoo.xcdatamodeld"), mappingModelsAt: folder.file("missing"))
    }
  }

  @Test func aStageOfAPlanMaySkipVersions() throws {
    let versions = try ["a", "b", "c"].map { try model(EntityDescription("Dog", attributes: [.init($0, .string, isOptional: true)])) }
    var plan = MigrationPlan(from: versions[0])
    plan.add(versions[1])
    plan.add(versions[2])
    plan.add(versions[2], after: versions[0], named: "at once") { stage in
      try stage.forEach("Dog") { old, new in try new.setValue(old["a"], forKey: "c") }
    }
    let store = MigratedStore.Place(.json)
    try store.fill(versions[0]) { try $0.add("Dog", "x", ["a": "kept"]) }
    try PersistentStoreCoordinator.migratePersistentStore(store.description, with: plan)
    #expect(try store.contents(versions[2]) == ["Dog x: c=kept"])
  }

  // MARK: What doesn't fit

  @Test func everythingThatDoesNotFitIsNamedAtOnce() throws {
    var text = MappingModelText()
    text.map(
      "Person", to: "Human", policy: "Zoo.Missing",
      attributes: [Property("nothing"), Property("name", path: "$source.nothing"), Property("street", path: "$source.friends.name")],
      relationships: [
        Property("friends", path: "$source.friends", mapping: "Nobody"), Property("owner"), Property("city", path: "$source.name"),
      ])
    text.map("Cat", to: "Human", name: "cats")
    text.map("City", to: "Town", name: "towns")
    let error = #expect(throws: MigrationError.self) { try plan(text) }
    #expect(error?.code == .invalidMappingModel)
    #expect(error?.problems.map(\.path) == ["entity mapping PersonToHuman", "entity mapping cats", "entity mapping towns"])
    #expect("\(error as Any)".contains("Zoo.Missing"))
    var second = MappingModelText()
    second.map(
      "Person", to: "Human",
      attributes: [
        Property("nothing"), Property("name", path: "$source.nothing"), Property("street", path: "$source.friends.name"),
        Property("note", expression: TestExpression.aggregate([.source]).archive),
        Property("code", expression: TestExpression.method(.variable("entityPolicy"), "code:", []).archive),
        Property("double", expression: TestExpression.path(.source, "friends").archive),
        Property("age", expression: TestExpression.function("sqrt:", [.source]).archive),
      ],
      relationships: [
        Property("friends", path: "$source.friends", mapping: "Nobody"), Property("owner"), Property("city", path: "$source.name"),
      ])
    second.map("City", to: "City")
    let found = #expect(throws: MigrationError.self) { try plan(second) }
    #expect(
      Set(found?.problems.map(\.path) ?? [])
        == Set(["nothing", "name", "street", "note", "code", "double", "age", "friends", "owner", "city"].map { "Human." + $0 }))
    for problem in found?.problems ?? [] { #expect(problem.reason.hasSuffix(".") && problem.reason.count > 30, "\(problem)") }
  }

  @Test func mappingsWithOneNameAreRefused() throws {
    var text = MappingModelText()
    text.map("Person", to: "Human", name: "same")
    text.map("City", to: "City", name: "same")
    #expect(#expect(throws: MigrationError.self) { try plan(text) }?.problems.map(\.path) == ["entity mapping same"])
  }

  @Test func aRequiredAttributeNeedsAValueOrAPolicy() throws {
    let new = try model(EntityDescription("Human", attributes: [.init("name", .string), .init("code", .integer64)]))
    var text = MappingModelText()
    text.map("Person", to: "Human", policy: "Zoo.Code", attributes: [Property("tag"), Property("name"), Property("code")])
    let folder = TemporaryFolder(), path = try text.write(to: folder)
    var plan = MigrationPlan(from: first)
    let error = #expect(throws: MigrationError.self) { try plan.add(new, mappingModelsAt: [path], policies: ["Zoo.Code": MappingPolicy()]) }
    #expect(error?.problems.map(\.path) == ["Human.code"])
    let idle = MappingPolicy { _ in }
    try plan.add(new, mappingModelsAt: [path], policies: ["Zoo.Code": idle])
    let place = MigratedStore.Place(.sqlite)
    try fill(place)
    let missing = #expect(throws: MigrationError.self) {
      try PersistentStoreCoordinator.migratePersistentStore(place.description, with: plan)
    }
    #expect(missing?.problems.map(\.path) == ["Human.code"])
  }

  // MARK: What must not be lost in silence

  private typealias Fill = (ManagedObjectContext) throws -> Void

  /// Migrates a new store by one mapping model, and returns its contents.
  private func migrated(
    _ store: MigratedStore, from old: ManagedObjectModel, to new: ManagedObjectModel, _ text: MappingModelText,
    _ policies: [String: MappingPolicy] = [:], _ fill: Fill
  ) throws -> [String] {
    let place = MigratedStore.Place(store), folder = TemporaryFolder()
    try place.fill(old, fill)
    var plan = MigrationPlan(from: old)
    try plan.add(new, mappingModelsAt: [try text.write(to: folder)], policies: policies)
    try PersistentStoreCoordinator.migratePersistentStore(place.description, with: plan)
    return try place.contents(new)
  }

  private let tag = Property("tag")

  @Test(arguments: MigratedStore.allCases) func severalDestinationsOfAToOneRelationshipAreAnError(_ store: MigratedStore) throws {
    let old = try model(
      EntityDescription("Person", relationships: [.toMany("homes", to: "Home", inverse: "people")]),
      EntityDescription("Home", relationships: [.toMany("people", to: "Person", inverse: "homes")]))
    let new = try model(
      EntityDescription("Person", relationships: [.toOne("homes", to: "Home", inverse: "people")]),
      EntityDescription("Home", relationships: [.toMany("people", to: "Person", inverse: "homes")]))
    var text = MappingModelText()
    text.map("Person", to: "Person", attributes: [tag], relationships: [Property("homes")])
    text.map("Home", to: "Home", attributes: [tag], relationships: [Property("people")])
    for count in 1...2 {
      func lines() throws -> [String] {
        try migrated(store, from: old, to: new, text) { context in
          let homes = try (1...2).map { try context.add("Home", "h\($0)") }
          try context.add("Person", "a").setValue(Array(homes.prefix(count)), forKey: "homes")
          try context.add("Person", "b").setValue([homes[0]], forKey: "homes")
        }
      }
      if count == 1 {
        #expect(try lines() == ["Home h1: people=[a b]", "Home h2: people=[]", "Person a: homes=h1", "Person b: homes=h1"])
      } else {
        let error = #expect(throws: MigrationError.self) { try lines() }
        #expect(error?.problems.map(\.path) == ["Person.homes"] && error?.path?.hasSuffix("/Store") == true, "\(error as Any)")
      }
    }
  }

  @Test func elementsOfCompositesAreValuesOfExpressions() throws {
    let point = CompositeDescription("Point", [.init("latitude", .double, isOptional: true)])
    let home = AttributeDescription.composite("home", "Point", isOptional: true),
      lat = AttributeDescription("lat", .double, isOptional: true)
    let old = try model(EntityDescription("Dog", attributes: [home, lat]), composites: [point])
    let new = try model(EntityDescription("Pet", attributes: [home, lat]), composites: [point])
    var text = MappingModelText()
    text.map(
      "Dog", to: "Pet", attributes: [tag, Property("lat", path: "$source.home.latitude"), Property("home.latitude", path: "$source.lat")])
    for store in MigratedStore.allCases {
      #expect(
        try migrated(store, from: old, to: new, text) { try $0.add("Dog", "a", ["home.latitude": 1.5, "lat": 2.5]) }
          == ["Pet a: home.latitude=2.5 lat=1.5"])
    }
  }

  @Test func requiredRelationshipsAndDerivedAttributesAreChecked() throws {
    func zoo(isOptional: Bool, derived: Bool = false) throws -> ManagedObjectModel {
      try model(
        EntityDescription(
          "Car", attributes: derived ? [.derived("count", .integer64, "wheels.@count")] : [],
          relationships: [
            .toOne("owner", to: "Person", inverse: "cars", isOptional: isOptional), .toMany("wheels", to: "Wheel", inverse: "car"),
          ]), EntityDescription("LuxuryCar", superentity: "Car"),
        EntityDescription("Person", relationships: [.toMany("cars", to: "Car", inverse: "owner")]),
        EntityDescription("Wheel", relationships: [.toOne("car", to: "Car", inverse: "wheels")]))
    }
    func text(_ owner: Property, luxury: [Property], policy: String? = nil) -> MappingModelText {
      var text = MappingModelText()
      text.map("Car", to: "Car", policy: policy, attributes: [tag], relationships: [owner])
      text.map("LuxuryCar", to: "LuxuryCar", policy: policy, attributes: [tag], relationships: luxury)
      text.map("Person", to: "Person", attributes: [tag])
      return text
    }
    let fill: Fill = { context in
      let person = try context.add("Person", "p")
      try context.add("Car", "c").setValue(person, forKey: "owner")
      try context.add("LuxuryCar", "l").setValue(person, forKey: "owner")
      try context.add("Car", "z")
    }
    let old = try zoo(isOptional: true), required = try zoo(isOptional: false),
      owner = Property("owner", path: "$source.owner", mapping: "PersonToPerson")
    let idle = ["P": MappingPolicy { _ in }]
    for (mapping, paths) in [
      (text(owner, luxury: []), ["Car.owner"]), (text(Property("owner"), luxury: [Property("owner")]), ["Car.owner"]),
      (text(owner, luxury: [owner]), ["Car.owner"]), (text(owner, luxury: [], policy: "P"), ["Car.owner", "LuxuryCar.owner"]),
    ] {
      let error = #expect(throws: MigrationError.self) { try migrated(.sqlite, from: old, to: required, mapping, idle, fill) }
      #expect(error?.problems.map(\.path) == paths, "\(error as Any)")
    }
    let derived = #expect(throws: MigrationError.self) {
      try migrated(.sqlite, from: old, to: zoo(isOptional: true, derived: true), text(owner, luxury: [owner], policy: "P"), idle, fill)
    }
    #expect(derived?.problems.map(\.path).contains("Car.count") == true)
    // A subentity whose mapping doesn't list the relationship has no links, by name or by expression.
    let noted = try ManagedObjectModel(
      entities: old.declarations.map { entity in
        var entity = entity
        if entity.name == "Wheel" { entity.attributes.append(.init("note", .string, isOptional: true)) }
        return entity
      })
    for mapping in [text(owner, luxury: []), text(Property("owner"), luxury: [])] {
      let lines = try migrated(.json, from: old, to: noted, mapping, [:], fill)
      #expect(
        lines.prefix(3) == ["Car c: owner=p wheels=[]", "Car z: owner=nil wheels=[]", "LuxuryCar l: owner=nil wheels=[]"], "\(lines)")
    }
  }

  @Test(arguments: MigratedStore.allCases) func aPolicyOfInsertedObjectsHasTheLastWord(_ store: MigratedStore) throws {
    let friends = [RelationshipDescription.toMany("friends", to: "Dog", inverse: "friends")]
    let old = try model(EntityDescription("Dog", relationships: friends), EntityDescription("Pet"))
    let new = try model(
      EntityDescription("Pet", attributes: [.init("name", .string)], relationships: [.toMany("friends", to: "Pet", inverse: "friends")]))
    var text = MappingModelText()
    text.map("Pet", to: "Pet", policy: "Names", attributes: [tag])
    text.map("Dog", to: "Pet", name: "dogs", policy: "Dogs", attributes: [tag], relationships: [Property("friends")])
    let names = MappingPolicy { try $0.forEach { _, new in try new.setValue("pet", forKey: "name") } }
    let dogs = MappingPolicy { stage in
      try stage.forEach { old, new in
        try new.setValue("was a dog", forKey: "name")
        switch old["tag"] {
        case "a": try new.setValue([ManagedObject](), forKey: "friends")
        case "c": stage.context.delete(new)
        default: break
        }
      }
    }
    let lines = try migrated(store, from: old, to: new, text, ["Names": names, "Dogs": dogs]) { context in
      let objects = try ["a", "b", "c", "d"].map { try context.add("Dog", $0) }
      try objects[0].setValue(objects, forKey: "friends")
      try objects[1].setValue([objects[0], objects[3]], forKey: "friends")
      try context.add("Pet", "p")
    }
    #expect(
      lines == [
        "Pet a: name=was a dog friends=[]", "Pet b: name=was a dog friends=[d]", "Pet d: name=was a dog friends=[b]",
        "Pet p: name=pet friends=[]",
      ])
  }

  @Test func pathsThatLeadToNoObjectsOrToSharedOnesAreErrors() throws {
    let old = try model(
      EntityDescription("A", relationships: [.toMany("bs", to: "B", inverse: "as")]),
      EntityDescription("B", relationships: [.toMany("as", to: "A", inverse: "bs")]))
    let new = try model(
      EntityDescription("A", relationships: [.toMany("own", to: "B", inverse: "owner"), .toMany("others", to: "A", inverse: nil)]),
      EntityDescription("B", relationships: [.toOne("owner", to: "A", inverse: "own")]))
    var text = MappingModelText()
    text.map("A", to: "A", attributes: [tag], relationships: [Property("others", path: "$source.bs")])
    text.map("B", to: "B", attributes: [tag])
    var error = #expect(throws: MigrationError.self) { try migrated(.sqlite, from: old, to: new, text) { _ in } }
    #expect(error?.problems.map(\.path) == ["A.others"] && "\(error as Any)".contains("No objects of B become a A"))
    text = MappingModelText()
    text.map("A", to: "A", attributes: [tag], relationships: [Property("own", path: "$source.bs")])
    text.map("B", to: "B", attributes: [tag])
    error = #expect(throws: MigrationError.self) {
      try migrated(.sqlite, from: old, to: new, text) { context in
        let b = try context.add("B", "b")
        for name in ["x", "y"] { try context.add("A", name).setValue([b], forKey: "bs") }
      }
    }
    #expect(error?.problems.map(\.path) == ["A.own"] && "\(error as Any)".contains("share a destination"))
  }

  /// The key path `$source` is the object itself.
  @Test func anObjectIsSplitAndNamesAreDecoded() throws {
    let old = try model(EntityDescription("Dog"))
    let new = try model(
      EntityDescription("Dog", relationships: [.toOne("tail", to: "Tail", inverse: "dog")]),
      EntityDescription("Tail", relationships: [.toOne("dog", to: "Dog", inverse: "tail")]))
    var text = MappingModelText()
    text.map("Dog", to: "Tail", name: "Dog -\\u3e00 Tail", attributes: [tag])
    text.map("Dog", to: "Dog", attributes: [tag], relationships: [Property("tail", path: "$source", mapping: "Dog -\\u3e00 Tail")])
    for store in MigratedStore.allCases {
      var key: ObjectKey?
      let lines = try migrated(store, from: old, to: new, text) { context in
        let dog = try context.add("Dog", "d")
        try context.obtainPermanentIDs(for: [dog])
        key = dog.objectID.key
      }
      #expect(lines == ["Dog d: tail=d", "Tail d: dog=d"] && key != nil)
    }
  }

  @Test func filesThatNeedMoreThanIsSupportedAreRefused() throws {
    let folder = TemporaryFolder()
    var text = mapping
    text.map("Home", to: "Human", name: "homes", attributes: [tag])
    let path = try text.write(to: folder), file = try folder.text("Mapping.xcmappingmodel/xcmapping.xml")
    let fetch = "<attribute name=\"sourceexpressiondata\" type=\"binary\">YQ==</attribute><attribute name=\"sourcename\""
    for changed in [
      file.replacing("<attribute name=\"sourcename\"", with: fetch),
      // An object that belongs to two lists.
      file.replacing(/idrefs="z102 (.*?)"/) { "idrefs=\"z102 z102 \($0.output.1)\"" },
    ] {
      #expect(changed != file)
      try folder.write(changed, to: "Mapping.xcmappingmodel/xcmapping.xml")
      let error = #expect(throws: ModelFileError.self) { try MappingModelFile(contentsOf: path) }
      #expect(error?.code == .unsupported || error?.code == .malformed, "\(error as Any)")
    }
    // That of another bundle doesn't matter.
    try ModelBundle.write(
      ["Zoo": try ModelDocument(first), "Zoo 2": try ModelDocument(second)], currentVersion: "Zoo 2", to: folder.file("Park.xcdatamodeld"))
    _ = try MigrationPlan(versionsAt: folder.file("Park.xcdatamodeld"), mappingModelsAt: folder.path)
    try ModelBundle.write(
      ["Zoo": try ModelDocument(first), "Zoo 2": try ModelDocument(second)], currentVersion: "Zoo 2", to: folder.file("Zoo.xcdatamodeld"))
    #expect(throws: ModelFileError.self) { try MigrationPlan(versionsAt: folder.file("Zoo.xcdatamodeld"), mappingModelsAt: folder.path) }
  }
}
