import Foundation
import Holdfast
import HoldfastStore
import Synchronization
import TestSupport
import Testing

/// Migrations through several versions, with and without code.
@Suite struct PlanTests {
  private let first: ManagedObjectModel
  private let second: ManagedObjectModel
  private let third: ManagedObjectModel

  init() throws {
    first = try model(
      EntityDescription(
        "Person", attributes: [.init("name", .string, default: ""), .init("age", .string, isOptional: true)],
        relationships: [.toMany("homes", to: "Home", inverse: "people")]),
      EntityDescription("Home", relationships: [.toMany("people", to: "Person", inverse: "homes")]))
    second = try model(
      EntityDescription(
        "Person",
        attributes: [
          .init("name", .string, default: ""), .init("age", .string, isOptional: true), .init("note", .string, isOptional: true),
        ],
        relationships: [.toMany("homes", to: "Home", inverse: "people")]),
      EntityDescription("Home", relationships: [.toMany("people", to: "Person", inverse: "homes")]))
    third = try model(
      EntityDescription(
        "Human",
        attributes: [
          .init("family", .string), .init("given", .string), .init("age", .integer64, isOptional: true),
          .init("note", .string, isOptional: true),
        ], relationships: [RelationshipDescription.toOne("home", to: "Home", inverse: "people").renamed(from: "homes")]
      ).renamed(from: "Person"), EntityDescription("Home", relationships: [.toMany("people", to: "Human", inverse: "home")]),
      EntityDescription("Log"))
  }

  /// Two versions that differ only in what has no part in the version hashes are the same one.
  @Test(.ownThreads) func aStageThatWouldNeverRunTraps() async {
    let child = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let tests = try PlanTests()
      var plan = MigrationPlan(from: tests.first)
      plan.add(tests.first, named: "none") { _ in }
    }
    let message = String(decoding: child?.standardErrorContent ?? [], as: UTF8.self)
    #expect(message.contains("The stage none would never run"), "\(message)")
  }

  /// The bug: the plan forgot the first version, so a store of it was migrated to the last one without any code.
  @Test(arguments: [MigratedStore.json, .xml, .binary, .sqlite], [false, true])
  func versionsCanDifferInTheLayoutOfTheirRowsOnly(_ store: MigratedStore, hasCode: Bool) throws {
    func version(_ elements: [String], labelled: Bool = false) throws -> ManagedObjectModel {
      let label = AttributeDescription("label", .string, isOptional: true)
      return try model(
        EntityDescription("Dog", attributes: [.composite("home", "Point", isOptional: true)] + (labelled ? [label] : [])),
        composites: [CompositeDescription("Point", elements.map { AttributeDescription($0, .double, isOptional: true) })])
    }
    let place = MigratedStore.Place(store), old = try version(["x"]), between = try version(["x", "y"])
    let new = try version(["x", "y"], labelled: true)
    #expect(old.versionDigest == between.versionDigest)
    var plan = MigrationPlan(from: old)
    if hasCode {
      plan.add(between, named: "heights") { stage in
        try stage.forEach("Dog") { _, new in try new.setValue(StoreValue.double(2.5), forKeyPath: "home.y") }
      }
    } else {
      plan.add(between)
    }
    plan.add(new, named: "labels") { stage in
      try stage.forEach("Dog") { old, new in try new.setValue("at \(Contents.text(old["home.x"]))", forKey: "label") }
    }
    try place.fill(old) { try $0.add("Dog", "a", ["home.x": 1.5]) }
    try PersistentStoreCoordinator.migratePersistentStore(place.description, with: plan)
    #expect(try place.contents(new) == ["Dog a: home.x=1.5 home.y=\(hasCode ? "2.5" : "nil") label=at 1.5"])
  }

  private func plan(_ body: @escaping @Sendable (MigrationStage) throws -> Void = PlanTests.split) -> MigrationPlan {
    var plan = MigrationPlan(from: first)
    plan.add(second)
    plan.add(third, named: "split names", body)
    return plan
  }

  @Sendable private static func split(_ stage: MigrationStage) throws {
    try stage.forEach("Person", savingEvery: 2) { old, new in
      guard case .string(let name) = old["name"] else { return }
      let parts = name.split(separator: " ").map(String.init)
      try new.setValue(parts.first ?? "", forKey: "given")
      try new.setValue(parts.last ?? "", forKey: "family")
      if case .string(let age) = old["age"] { try new.setValue(Int(age) ?? 0, forKey: "age") }
      // Of several homes, the first one by its tag.
      let homes = try old.objects("homes").sorted { "\($0["tag"])" < "\($1["tag"])" }
      if let home = homes.first { try new.setValue(try stage.object(for: home), forKey: "home") }
    }
    try stage.context.add("Log", "migrated")
  }

  private func fill(_ place: MigratedStore.Place, _ model: ManagedObjectModel) throws {
    try place.fill(model) { context in
      let x = try context.add("Home", "x"), y = try context.add("Home", "y")
      try context.add("Person", "a", ["name": "Ann Lee", "age": "30"]).setValue([y, x], forKey: "homes")
      try context.add("Person", "b", ["name": "Bo Ek"]).setValue([y], forKey: "homes")
      try context.add("Person", "c", ["name": "Cy Fox", "age": "7"])
    }
  }

  private let lines = [
    "Home x: people=[a]", "Home y: people=[b]", "Human a: age=30 family=Lee given=Ann note=nil home=x",
    "Human b: age=nil family=Ek given=Bo note=nil home=y", "Human c: age=7 family=Fox given=Cy note=nil home=nil", "Log migrated:",
  ]

  @Test(arguments: MigratedStore.allCases) func codeSeesOldAndNewObjectsTogether(_ store: MigratedStore) throws {
    for version in [first, second] {
      let place = MigratedStore.Place(store), seen = Mutex<[MigrationProgress]>([])
      try fill(place, version)
      try PersistentStoreCoordinator.migratePersistentStore(place.description, with: plan()) { progress in
        if progress.totalCount > 0 { seen.withLock { $0.append(progress) } }
      }
      #expect(try place.contents(third) == lines)
      #expect(
        seen.withLock { $0.last }.map { [$0.completedCount, $0.totalCount] } == [3, 3] && seen.withLock { $0.first?.stage } == "split names"
      )
      #expect(!place.folder.names.contains { $0.hasPrefix(".holdfast-") || $0.hasSuffix(".tmp") }, "\(place.folder.names)")
      // Nothing is left to do.
      let before = try place.folder.snapshot()
      try PersistentStoreCoordinator.migratePersistentStore(place.description, with: plan())
      #expect(try place.folder.snapshot() == before)
    }
  }

  /// A process that was killed leaves its last saves in the log, so a copy of the file alone would lack them.
  @Test(arguments: [false, true]) func rowsThatAreOnlyInTheLogAreMigrated(hasCode: Bool) throws {
    let old = try model(EntityDescription("Dog"))
    let new = try model(EntityDescription("Ant"), EntityDescription("Dog", attributes: [.init("note", .string, default: "x")]))
    let place = MigratedStore.Place(.sqlite), killed = MigratedStore.Place(.sqlite)
    let coordinator = try PersistentStoreCoordinator(model: old, store: place.description)
    let context = try ManagedObjectContext(coordinator: coordinator, classes: [])
    try context.add("Dog", "only in the log")
    try context.save()
    for end in ["", "-wal"] { try FileManager.default.copyItem(atPath: place.path + end, toPath: killed.path + end) }
    try coordinator.close()
    #expect(try Data(TemporaryFolder.read(killed.path)).range(of: Data("only in the log".utf8)) == nil)
    var plan = MigrationPlan(from: old)
    if hasCode { plan.add(new, named: "code") { _ in } } else { plan.add(new) }
    try PersistentStoreCoordinator.migratePersistentStore(killed.description, with: plan)
    #expect(try killed.contents(new) == ["Dog only in the log: note=x"])
  }

  /// An older program with a plan meets the store of a newer one.
  @Test(arguments: MigratedStore.allCases) func aVersionThatThePlanDoesNotContainLosesNothing(_ store: MigratedStore) throws {
    let place = MigratedStore.Place(store)
    var entities = third.declarations
    entities[entities.firstIndex { $0.name == "Log" } ?? 0].attributes.append(.init("level", .integer64, isOptional: true))
    let newer = try ManagedObjectModel(entities: entities)
    try place.fill(newer) { try $0.add("Log", "a", ["level": 3]) }
    let error = #expect(throws: MigrationError.self) {
      try PersistentStoreCoordinator.migratePersistentStore(place.description.migrating(from: [newer]), with: plan())
    }
    #expect(error?.code == .lossOfData && error?.problems.map(\.path) == ["Log.level"])
    #expect(try place.contents(newer) == ["Log a: level=3"])
  }

  /// Large values are in files, also in those of a store whose model isn't in the file.
  @Test(arguments: MigratedStore.allCases) func codeReadsAndWritesLargeValues(_ store: MigratedStore) throws {
    let place = MigratedStore.Place(store), large = Data(repeating: 5, count: 300_000)
    func photo(_ name: String) -> AttributeDescription {
      AttributeDescription(name, .binaryData, isOptional: true, allowsExternalBinaryDataStorage: true)
    }
    let old = try model(EntityDescription("Dog", attributes: [photo("kept"), photo("photo")]))
    let new = try model(EntityDescription("Dog", attributes: [photo("image"), photo("kept")]))
    try place.fill(old) { try $0.add("Dog", "a", ["photo": .data(large), "kept": .data(large)]) }
    var plan = MigrationPlan(from: old)
    plan.add(new, named: "move") { stage in
      try stage.forEach("Dog", savingEvery: 0) { old, new in
        guard case .data(let bytes) = try old.value("photo") else { return }
        try new.setValue(StoreValue.data(bytes + [6]), forKey: "image")
      }
    }
    try PersistentStoreCoordinator.migratePersistentStore(place.description, with: plan)
    #expect(try place.contents(new) == ["Dog a: image=300001 bytes 5 kept=300000 bytes 5"])
  }

  /// Code that doesn't expect errors must not take a value that can't be read for one that is missing.
  @Test(arguments: MigratedStore.allCases) func aLargeValueThatCannotBeReadEndsThePlan(_ store: MigratedStore) throws {
    let place = MigratedStore.Place(store)
    let photo = AttributeDescription("photo", .binaryData, isOptional: true, allowsExternalBinaryDataStorage: true)
    let old = try model(EntityDescription("Dog", attributes: [photo]))
    let new = try model(EntityDescription("Dog", attributes: [photo, .init("size", .integer64, isOptional: true)]))
    try place.fill(old) { try $0.add("Dog", "a", ["photo": .data(Data(repeating: 5, count: 300_000))]) }
    var plan = MigrationPlan(from: old)
    let folder = place.folder.path
    plan.add(new, named: "sizes") { stage in
      // The copies' files are away while the code reads them, as on a disk that fails now and then.
      let away = try largeFiles(ofCopiesIn: folder)
      for file in away { try FileManager.default.moveItem(atPath: file, toPath: file + ".away") }
      defer { for file in away { try? FileManager.default.moveItem(atPath: file + ".away", toPath: file) } }
      try stage.forEach("Dog") { old, new in
        if case .data(let bytes) = old["photo"] { try new.setValue(StoreValue.int64(Int64(bytes.count)), forKey: "size") }
      }
    }
    let error = #expect(throws: StoreError.self) { try PersistentStoreCoordinator.migratePersistentStore(place.description, with: plan) }
    #expect(error?.code == .missingExternalData)
    #expect(try place.contents(old) == ["Dog a: photo=300000 bytes 5"])
  }

  /// Objects with the same values are the commonest reason for code when a constraint is added.
  @Test(arguments: MigratedStore.allCases) func codeMergesObjectsBeforeAConstraintIsChecked(_ store: MigratedStore) throws {
    let place = MigratedStore.Place(store)
    // The names and renaming identifiers are exchanged, which must not happen twice.
    let old = try model(
      EntityDescription(
        "Dog", attributes: [.init("chip", .string, isOptional: true), .init("name", .string, isOptional: true)],
        uniquenessConstraints: [["tag"]]))
    let new = try model(
      EntityDescription(
        "Dog",
        attributes: [
          AttributeDescription("chip", .string, isOptional: true).renamed(from: "name"),
          AttributeDescription("name", .string, isOptional: true).renamed(from: "chip"), .init("slug", .string, default: "?"),
        ], uniquenessConstraints: [["tag"], ["name"], ["slug"]]))
    try place.fill(old) { context in
      for (tag, chip) in [("1", "x"), ("2", "y"), ("3", "x")] { try context.add("Dog", tag, ["chip": .string(chip), "name": "n"]) }
    }
    func plan(_ merges: Bool) -> MigrationPlan {
      var plan = MigrationPlan(from: old)
      plan.add(new, named: "merge") { stage in
        try stage.forEach("Dog", savingEvery: 1) { old, new in
          if merges && old["tag"] == "3" { return stage.context.delete(new) }
          try new.setValue(old["tag"], forKey: "slug")
        }
      }
      return plan
    }
    let description = place.description.migrating(from: [old]), before = try place.folder.snapshot()
    let error = #expect(throws: MigrationError.self) {
      try PersistentStoreCoordinator.migratePersistentStore(description, with: plan(false))
    }
    #expect(error?.code == .constraintViolation && error?.problems.map(\.path) == ["Dog"])
    #expect(error?.reason.contains("stage merge") == true && error?.path == place.path)
    #expect(try place.folder.snapshot() == before)
    try PersistentStoreCoordinator.migratePersistentStore(description, with: plan(true))
    #expect(try place.contents(new) == ["Dog 1: chip=n name=x slug=1", "Dog 2: chip=n name=y slug=2"])
    // The constraint holds from now on.
    #expect(throws: (any Error).self) { try place.change(new) { try $0.add("Dog", "4", ["slug": "2"]) } }
  }

  /// The bug: if the objects of one relationship didn't fit, those of all relationships that could have too many were lost.
  @Test(arguments: MigratedStore.allCases) func onlyRelationshipsWithTooManyDestinationsBeginEmpty(_ store: MigratedStore) throws {
    func people(_ home: RelationshipDescription, _ car: RelationshipDescription) throws -> ManagedObjectModel {
      try model(
        EntityDescription("Person", relationships: [home, car]),
        EntityDescription("Home", relationships: [.toMany("people", to: "Person", inverse: home.name)]),
        EntityDescription("Car", relationships: [.toMany("drivers", to: "Person", inverse: car.name)]))
    }
    let place = MigratedStore.Place(store)
    let old = try people(.toMany("homes", to: "Home", inverse: "people"), .toMany("cars", to: "Car", inverse: "drivers"))
    let new = try people(
      RelationshipDescription.toOne("home", to: "Home", inverse: "people").renamed(from: "homes"),
      RelationshipDescription.toOne("car", to: "Car", inverse: "drivers").renamed(from: "cars"))
    try place.fill(old) { context in
      let x = try context.add("Home", "x"), y = try context.add("Home", "y"), car = try context.add("Car", "c")
      let ann = try context.add("Person", "a"), bo = try context.add("Person", "b")
      try ann.setValue([x, y], forKey: "homes")
      try bo.setValue([y], forKey: "homes")
      for person in [ann, bo] { try person.setValue([car], forKey: "cars") }
    }
    var plan = MigrationPlan(from: old)
    plan.add(new, named: "homes") { stage in
      try stage.forEach("Person") { old, person in
        let homes = try old.objects("homes").sorted { "\($0["tag"])" < "\($1["tag"])" }
        if let home = homes.first { try person.setValue(try stage.object(for: home), forKey: "home") }
      }
    }
    try PersistentStoreCoordinator.migratePersistentStore(place.description.migrating(from: [old]), with: plan)
    #expect(
      try place.contents(new) == [
        "Car c: drivers=[a b]", "Home x: people=[a]", "Home y: people=[b]", "Person a: car=c home=x", "Person b: car=c home=y",
      ])
    // A request without some of the links is encoded, for recordings.
    let mapping = try MappingModel.inferred(from: old, to: new)
    for paths in [["Person.home"], ["Car.drivers"], []] as [Set<String>] {
      let reduced = mapping.withoutUncertainLinks(of: paths)
      #expect((reduced == mapping) == paths.isEmpty && reduced != mapping.withoutUncertainLinks(of: nil))
      #expect(try JSONDecoder().decode(MappingModel.self, from: JSONEncoder().encode(reduced)) == reduced)
    }
  }

  /// The bug: SQLite kept the owners of objects that have stopped being destinations, without an inverse.
  @Test(arguments: MigratedStore.allCases, [false, true])
  func objectsThatAreNoDestinationsAnyMoreLoseTheirOwner(_ store: MigratedStore, isOrdered: Bool) throws {
    func owner(of destination: String) throws -> ManagedObjectModel {
      try model(
        EntityDescription("Animal", isAbstract: true), EntityDescription("Cat", superentity: "Animal"),
        EntityDescription("Dog", superentity: "Animal"),
        EntityDescription("Owner", relationships: [.toMany("pets", to: destination, inverse: nil, isOrdered: isOrdered)]))
    }
    let place = MigratedStore.Place(store), old = try owner(of: "Animal"), new = try owner(of: "Dog")
    try place.fill(old) { context in
      let pets = try [context.add("Dog", "d"), context.add("Cat", "c"), context.add("Dog", "a")]
      try context.add("Owner", "o").setValue(pets, forKey: "pets")
    }
    var plan = MigrationPlan(from: old)
    plan.add(new, named: "dogs") { _ in }
    try PersistentStoreCoordinator.migratePersistentStore(place.description.migrating(from: [old]), with: plan)
    #expect(try place.contents(new) == ["Cat c:", "Dog a:", "Dog d:", "Owner o: pets=[\(isOrdered ? "d a" : "a d")]"])
  }

  /// The bug: in the code, IDs in attributes had the root entity of the former model, so they weren't equal to those of the objects.
  @Test(arguments: MigratedStore.allCases) func idsInAttributesAreThoseOfObjectsWithANewSuperentity(_ store: MigratedStore) throws {
    let place = MigratedStore.Place(store), note = EntityDescription("Note", attributes: [.init("about", .objectID, isOptional: true)])
    let old = try model(note, EntityDescription("Person"))
    let being = EntityDescription("Being", isAbstract: true)
    let new = try model(being, note, EntityDescription("Person", superentity: "Being"))
    try place.fill(old) { context in
      let ann = try context.add("Person", "ann"), note = try context.add("Note", "tall")
      try context.save()
      try note.setValue(StoreValue.objectID(ann.objectID), forKey: "about")
    }
    let isEqual = Mutex(false)
    var plan = MigrationPlan(from: old)
    plan.add(new, named: "beings") { stage in
      let ann = try stage.context.tagged("Person", "ann"), note = try stage.context.tagged("Note", "tall")
      let about = try note.value(forKey: "about").storeValue
      isEqual.withLock { $0 = about == .objectID(ann.objectID) }
    }
    try PersistentStoreCoordinator.migratePersistentStore(place.description.migrating(from: [old]), with: plan)
    #expect(isEqual.withLock { $0 })
  }

  /// The bug: the plan failed before its code could change the values.
  @Test(arguments: MigratedStore.allCases) func codeSetsUniqueValuesThatBecomeRequired(_ store: MigratedStore) throws {
    let place = MigratedStore.Place(store)
    let old = try model(
      EntityDescription("Dog", attributes: [.init("chip", .string, isOptional: true)], uniquenessConstraints: [["chip"]]))
    let new = try model(EntityDescription("Dog", attributes: [.init("chip", .string, default: "?")], uniquenessConstraints: [["chip"]]))
    try place.fill(old) { context in
      for tag in ["1", "2"] { try context.add("Dog", tag) }
      try context.add("Dog", "3", ["chip": "x"])
    }
    var plan = MigrationPlan(from: old)
    plan.add(new, named: "chips") { stage in
      try stage.forEach("Dog") { old, dog in if old["chip"] == .null { try dog.setValue(old["tag"], forKey: "chip") } }
    }
    try PersistentStoreCoordinator.migratePersistentStore(place.description.migrating(from: [old]), with: plan)
    #expect(try place.contents(new) == ["Dog 1: chip=1", "Dog 2: chip=2", "Dog 3: chip=x"])
    #expect(throws: (any Error).self) { try place.change(new) { try $0.add("Dog", "4", ["chip": "x"]) } }
  }

  /// The bug: each entity had such a constraint, so the plan failed before its code could change the values.
  @Test(arguments: MigratedStore.allCases) func codeChangesValuesThatBecomeUniqueInMoreEntities(_ store: MigratedStore) throws {
    let place = MigratedStore.Place(store)
    func chipped(_ name: String) -> EntityDescription {
      EntityDescription(
        name, superentity: "Animal", attributes: [.init("chip", .string, isOptional: true)], uniquenessConstraints: [["chip"]])
    }
    let animal = EntityDescription("Animal", isAbstract: true)
    let old = try model(animal, chipped("Dog"), chipped("Hound"))
    let new = try model(animal, chipped("Dog"), EntityDescription("Hound", superentity: "Dog"))
    try place.fill(old) { context in
      try context.add("Dog", "1", ["chip": "x"])
      try context.add("Hound", "2", ["chip": "x"])
    }
    var plan = MigrationPlan(from: old)
    plan.add(new, named: "chips") { stage in
      try stage.forEach("Hound") { old, hound in try hound.setValue(old["tag"], forKey: "chip") }
    }
    try PersistentStoreCoordinator.migratePersistentStore(place.description.migrating(from: [old]), with: plan)
    #expect(try place.contents(new) == ["Dog 1: chip=x", "Hound 2: chip=2"])
    #expect(throws: (any Error).self) { try place.change(new) { try $0.add("Hound", "3", ["chip": "x"]) } }
  }

  /// The bug: without the new constraint, the model of the stage's context had no fetch requests and no identifiers either.
  @Test(arguments: MigratedStore.allCases) func codeHasTheEntireModelWhenAConstraintIsAdded(_ store: MigratedStore) throws {
    let place = MigratedStore.Place(store), old = try model(EntityDescription("Dog"))
    let new = try ManagedObjectModel(
      entities: model(
        EntityDescription("Dog", attributes: [.init("chip", .string, isOptional: true)], uniquenessConstraints: [["chip"]])
      ).declarations,
      versionIdentifiers: ["chips"], configurations: [ConfigurationDescription("dogs", ["Dog"])],
      fetchRequestTemplates: [FetchRequestDescription("unchipped", entity: "Dog", predicateFormat: "chip == nil")])
    let isEntire = Mutex(false)
    var plan = MigrationPlan(from: old)
    plan.add(new, named: "chips") { stage in
      let found = stage.context.persistentStoreCoordinator.model
      let isSame =
        found.fetchRequestTemplate(named: "unchipped") != nil && found.entities(inConfiguration: "dogs")?.count == 1
        && found.versionIdentifiers == ["chips"]
      isEntire.withLock { $0 = isSame }
    }
    try place.fill(old) { try $0.add("Dog", "a") }
    try PersistentStoreCoordinator.migratePersistentStore(place.description.migrating(from: [old]), with: plan)
    #expect(isEntire.withLock { $0 })
    #expect(try place.contents(new) == ["Dog a: chip=nil"])
  }

  /// In a store that doesn't compare IDs, fetching a batch by its IDs would test all objects: their number squared.
  @Test(arguments: MigratedStore.allCases) func aLoopReadsEachObjectAFewTimes(_ store: MigratedStore) throws {
    let place = MigratedStore.Place(store), rows = RowCount(), count = 5_000
    let old = try model(EntityDescription("Dog"))
    let new = try model(EntityDescription("Dog", attributes: [.init("age", .integer64, isOptional: true)]))
    try place.fill(old) { context in for number in 0..<count { try context.add("Dog", "\(number)") } }
    var plan = MigrationPlan(from: old)
    plan.add(new, named: "ages") { stage in
      try stage.forEach("Dog") { _, dog in try dog.setValue(StoreValue.int64(1), forKey: "age") }
    }
    try PersistentStoreCoordinator.migratePersistentStore(place.description.wrapped { CountedStore($0, rows) }, with: plan)
    // The keys, the old objects and the new ones.
    #expect(rows.value >= 2 * count && rows.value <= 4 * count, "\(rows.value)")
    #expect(try place.contents(new).filter { $0.hasSuffix("age=1") }.count == count)
  }

  /// Fills a store with dogs that have one walk each. In the new model, walks have a note.
  private static func walked(_ place: MigratedStore.Place, _ count: Int) throws -> (old: ManagedObjectModel, new: ManagedObjectModel) {
    func version(_ attributes: [AttributeDescription]) throws -> ManagedObjectModel {
      try model(
        EntityDescription("Dog", relationships: [.toMany("walks", to: "Walk", inverse: "dog", deleteRule: .cascade)]),
        EntityDescription("Walk", attributes: attributes, relationships: [.toOne("dog", to: "Dog", inverse: "walks")]))
    }
    let old = try version([]), new = try version([.init("note", .string, isOptional: true)])
    try place.fill(old) { context in
      for number in 0..<count { try context.add("Walk", "\(number)").setValue(try context.add("Dog", "\(number)"), forKey: "dog") }
    }
    return (old, new)
  }

  /// Also those that a delete rule deletes. Nothing is saved between the batches.
  @Test(arguments: MigratedStore.allCases) func objectsThatTheCodeDeletesAreLeftOut(_ store: MigratedStore) throws {
    let place = MigratedStore.Place(store), calls = Mutex(0), count = 2_500
    let (old, new) = try Self.walked(place, count)
    var plan = MigrationPlan(from: old)
    plan.add(new, named: "notes") { stage in
      try stage.forEach("Walk") { _, walk in
        let isFirst = calls.withLock { calls in
          calls += 1
          return calls == 1
        }
        if isFirst {
          let walks = try stage.context.fetch(FetchRequest<ManagedObject>(entityName: "Walk"))
          let last = walks.max { $0.objectID.key < $1.objectID.key }
          if case .objectID(let dog)? = try last?.value(forKey: "dog").storeValue {
            stage.context.delete(try stage.context.object(with: dog))
          }
        }
        #expect(!walk.isDeleted)
        try walk.setValue("x", forKey: "note")
      }
    }
    try PersistentStoreCoordinator.migratePersistentStore(place.description, with: plan)
    #expect(calls.withLock { $0 } == count - 1)
    let lines = try place.contents(new)
    #expect(lines.count == 2 * (count - 1) && lines.filter { $0.contains("note=x") }.count == count - 1)
  }

  enum Afterwards: CaseIterable, Sendable { case nothing, save, reset }

  /// The bug: they were passed, unlike those of later batches. Changing one whose deletion the closure had saved ended the process.
  @Test(arguments: MigratedStore.allCases, Afterwards.allCases)
  func objectsThatTheCodeDeletesAreLeftOutInTheSameBatch(_ store: MigratedStore, _ afterwards: Afterwards) throws {
    let place = MigratedStore.Place(store), calls = Mutex(0), count = 6
    let (old, new) = try Self.walked(place, count)
    var plan = MigrationPlan(from: old)
    plan.add(new, named: "notes") { stage in
      try stage.forEach("Walk") { _, walk in
        let isThere = !walk.isDeleted && !walk.isInaccessible
        #expect(isThere)
        if isThere { try walk.setValue("x", forKey: "note") }
        let isFirst = calls.withLock { calls in
          calls += 1
          return calls == 1
        }
        if !isFirst { return }
        let walks = try stage.context.fetch(FetchRequest<ManagedObject>(entityName: "Walk")).sorted { $0.objectID.key < $1.objectID.key }
        stage.context.delete(walks[count - 1])
        if case .objectID(let dog)? = try walks[count - 2].value(forKey: "dog").storeValue {
          stage.context.delete(try stage.context.object(with: dog))
        }
        if afterwards != .nothing { try stage.context.save() }
        if afterwards == .reset { stage.context.reset() }
      }
    }
    try PersistentStoreCoordinator.migratePersistentStore(place.description, with: plan)
    #expect(calls.withLock { $0 } == count - 2)
    let lines = try place.contents(new)
    #expect(lines.count == 2 * count - 3 && lines.filter { $0.contains("note=x") }.count == count - 2, "\(lines)")
  }

  /// The bug: they were passed, because only delete rules of stored relationships were applied in a batch.
  @Test(arguments: MigratedStore.allCases)
  func objectsThatTheRuleOfATransientRelationshipDeletesAreLeftOutInTheSameBatch(_ store: MigratedStore) throws {
    let place = MigratedStore.Place(store), calls = Mutex(0), count = 3
    func version(_ attributes: [AttributeDescription]) throws -> ManagedObjectModel {
      try model(
        EntityDescription(
          "Dog", relationships: [.toMany("walks", to: "Walk", inverse: "dog", isTransient: true, deleteRule: .cascade)]),
        EntityDescription("Walk", attributes: attributes, relationships: [.toOne("dog", to: "Dog", inverse: "walks", isTransient: true)]))
    }
    let old = try version([]), new = try version([.init("note", .string, isOptional: true)])
    try place.fill(old) { context in
      try context.add("Dog", "dog")
      for number in 0..<count { try context.add("Walk", "\(number)") }
    }
    var plan = MigrationPlan(from: old)
    plan.add(new, named: "notes") { stage in
      try stage.forEach("Walk") { _, walk in
        try walk.setValue("x", forKey: "note")
        let isFirst = calls.withLock { calls in
          calls += 1
          return calls == 1
        }
        if !isFirst { return }
        let walks = try stage.context.fetch(FetchRequest<ManagedObject>(entityName: "Walk")).sorted { $0.objectID.key < $1.objectID.key }
        let dog = try #require(try stage.context.fetch(FetchRequest<ManagedObject>(entityName: "Dog")).first)
        try dog.toMany(forKey: "walks").insert(walks[count - 1])
        stage.context.delete(dog)
      }
    }
    try PersistentStoreCoordinator.migratePersistentStore(place.description, with: plan)
    #expect(calls.withLock { $0 } == count - 1)
    let lines = try place.contents(new)
    #expect(lines.count == count - 1 && lines.allSatisfy { $0.contains("note=x") }, "\(lines)")
  }

  /// What was optional, and isn't set by the code.
  @Test func aRequiredAttributeThatTheCodeLeavesEmptyIsAnError() throws {
    let place = MigratedStore.Place(.sqlite),
      old = try model(EntityDescription("Dog", attributes: [.init("name", .string, isOptional: true)]))
    var plan = MigrationPlan(from: old)
    plan.add(try model(EntityDescription("Dog", attributes: [.init("name", .string)])), named: "names") { _ in }
    try place.fill(old) { try $0.add("Dog", "a") }
    let error = #expect(throws: MigrationError.self) {
      try PersistentStoreCoordinator.migratePersistentStore(place.description, with: plan)
    }
    #expect(error?.problems.map(\.path) == ["Dog.name"])
  }

  /// The bug: the plan succeeded, and left objects that no save accepted.
  @Test(arguments: [MigratedStore.json, .xml, .binary, .sqlite])
  func whatACompositeAttributeRequiresAndTheCodeLeavesEmptyIsAnError(_ store: MigratedStore) throws {
    let city = AttributeDescription("city", .string, isOptional: true), zip = AttributeDescription("zip", .string)
    func version(_ elements: [AttributeDescription], isOptional: Bool?) throws -> ManagedObjectModel {
      let home = isOptional.map { [AttributeDescription.composite("home", "Place", isOptional: $0)] } ?? []
      return try model(EntityDescription("Dog", attributes: home), composites: [CompositeDescription("Place", elements)])
    }
    let changes: [(old: ManagedObjectModel, new: ManagedObjectModel, missing: String, path: String)] = [
      (try version([city], isOptional: nil), try version([city], isOptional: false), "Dog.home", "home.city"),
      // Only the object that has a home needs its other element.
      (try version([city], isOptional: true), try version([city, zip], isOptional: true), "Dog.home.zip", "home.zip"),
    ]
    for (old, new, missing, path) in changes {
      let place = MigratedStore.Place(store), hasHome = old.entity(named: "Dog")?.composites.isEmpty == false
      try place.fill(old) { context in
        try context.add("Dog", "a", hasHome ? ["home.city": "Rome"] : [:])
        if hasHome { try context.add("Dog", "b") }
      }
      var plan = MigrationPlan(from: old)
      plan.add(new, named: "nothing") { _ in }
      let error = #expect(throws: MigrationError.self) {
        try PersistentStoreCoordinator.migratePersistentStore(place.description, with: plan)
      }
      #expect(error?.code == .constraintViolation && error?.problems.map(\.path) == [missing])
      #expect(error?.problems.first?.reason.contains("1 object has no value") == true)
      plan = MigrationPlan(from: old)
      plan.add(new, named: "homes") { stage in
        try stage.forEach("Dog") { _, dog in try dog.setValue(StoreValue.string("x"), forKeyPath: path) }
      }
      try PersistentStoreCoordinator.migratePersistentStore(place.description, with: plan)
      try place.change(new) { context in
        for dog in try context.fetch(FetchRequest<ManagedObject>(entityName: "Dog")) { try dog.setValue("c", forKey: "tag") }
      }
    }
  }

  @Test(arguments: MigratedStore.allCases) func aStoreThatAnotherProcessChangedMeanwhileIsNotReplaced(_ store: MigratedStore) throws {
    let place = MigratedStore.Place(store), other = place.description.migrating(automatically: false), first = first
    try fill(place, first)
    let error = #expect(throws: StoreError.self) {
      try PersistentStoreCoordinator.migratePersistentStore(
        place.description,
        with: plan { stage in
          try Self.split(stage)
          let coordinator = try PersistentStoreCoordinator(model: first, store: other)
          let context = try ManagedObjectContext(coordinator: coordinator, classes: [])
          try context.add("Home", "late")
          try context.save()
          try coordinator.close()
        })
    }
    #expect(error?.code == .storeReplaced && error?.isRetryable == true)
    #expect(try place.contents(first).contains("Home late: people=[]"))
  }

  @Test(arguments: MigratedStore.allCases) func anErrorOrACancellationInAStageLeavesTheStoreAsItWas(_ store: MigratedStore) async throws {
    struct Failure: Error {}
    let place = MigratedStore.Place(store)
    try fill(place, first)
    let before = try place.folder.snapshot()
    #expect(throws: Failure.self) {
      try PersistentStoreCoordinator.migratePersistentStore(place.description, with: plan { _ in throw Failure() })
    }
    let error = #expect(throws: MigrationError.self) {
      try PersistentStoreCoordinator.migratePersistentStore(place.description, with: plan { _ in })
    }
    #expect(error?.code == .constraintViolation && error?.problems.map(\.path) == ["Human.family", "Human.given"])
    let (description, cancelled) = (place.description, plan())
    let task = Task {
      while !Task.isCancelled { await Task.yield() }
      try PersistentStoreCoordinator.migratePersistentStore(description, with: cancelled)
    }
    task.cancel()
    do {
      try await task.value
      Issue.record("The cancelled migration ended.")
    } catch let error as MigrationError { #expect(error.code == .cancelled && error.coreDataCode == 134120) } catch let error as StoreError
    {
      #expect(error.code == .cancelled)
    }
    #expect(try place.folder.snapshot() == before, "\(place.folder.names)")
  }

  /// Lets one request to a closed store fail.
  private final class FailingRequest: AnswerInterceptor {
    private let number: Int
    private let count = Mutex(0)

    init(_ number: Int) { self.number = number }

    var requestCount: Int { count.withLock { $0 } }

    func answer<Request: StoreRequest>(
      _ request: Request, _ options: RequestOptions, _ next: (Request, RequestOptions) throws -> Request.Answer
    ) throws -> Request.Answer {
      let isChosen = count.withLock { count in
        count += 1
        return count == number
      }
      if isChosen { throw StoreError(.diskFull, operation: Request.operation, reason: "A test said so.", isRetryable: true) }
      return try next(request, options)
    }

    /// Migrates a store whose requests are counted.
    func migrate(_ description: StoreDescription, with plan: MigrationPlan) throws {
      var counted = description
      counted.administration = description.administration.intercepted(by: self)
      try PersistentStoreCoordinator.migratePersistentStore(counted, with: plan)
    }
  }

  /// The bug: if the store couldn't be read after the plan had created its folder, the folder remained.
  @Test(arguments: MigratedStore.allCases) func aFailureOfAnyRequestToTheStoreLeavesItAsItWas(_ store: MigratedStore) throws {
    let whole = MigratedStore.Place(store), all = FailingRequest(.max)
    try fill(whole, first)
    try all.migrate(whole.description, with: plan())
    #expect(try whole.contents(third) == lines)
    // The metadata before and after the folder is locked, and the replacement.
    #expect(all.requestCount >= 3)
    for number in 1...max(all.requestCount, 1) {
      let place = MigratedStore.Place(store)
      try fill(place, first)
      let digest = try PersistentStoreCoordinator.graphDigest(of: place.description, model: first), names = place.folder.names
      let error = #expect(throws: StoreError.self) { try FailingRequest(number).migrate(place.description, with: plan()) }
      #expect(error?.code == .diskFull && place.folder.names == names, "request \(number): \(place.folder.names)")
      #expect(try PersistentStoreCoordinator.graphDigest(of: place.description, model: first) == digest, "request \(number)")
      try PersistentStoreCoordinator.migratePersistentStore(place.description, with: plan())
      #expect(try place.contents(third) == lines, "request \(number)")
    }
  }

  /// The copies are removed, because no stage is resumable.
  @Test(arguments: MigratedStore.allCases) func aPlanThatIsCancelledAtAnyReportLeavesTheStoreAsItWas(_ store: MigratedStore) async throws {
    let whole = MigratedStore.Place(store), reports = Mutex(0)
    try fill(whole, first)
    try PersistentStoreCoordinator.migratePersistentStore(whole.description, with: plan()) { _ in reports.withLock { $0 += 1 } }
    let count = reports.withLock { $0 }
    var cancelled = 0
    for report in 1...max(count, 1) {
      let place = MigratedStore.Place(store), number = Mutex(0)
      try fill(place, first)
      let description = place.description, finished = plan()
      let digest = try PersistentStoreCoordinator.graphDigest(of: description, model: first), before = try place.folder.snapshot()
      let task = Task {
        try PersistentStoreCoordinator.migratePersistentStore(description, with: finished) { _ in
          let isChosen = number.withLock { number in
            number += 1
            return number == report
          }
          if isChosen { withUnsafeCurrentTask { $0?.cancel() } }
        }
      }
      do {
        try await task.value
        // The last report comes after the last step.
        #expect(number.withLock { $0 } <= report, "report \(report)")
        continue
      } catch {
        let code = (error as? StoreError)?.code.rawValue ?? (error as? MigrationError)?.code.rawValue
        #expect(code == "cancelled", "report \(report): \(error)")
        cancelled += 1
      }
      let after = try place.folder.snapshot()
      #expect(after.keys.sorted() == before.keys.sorted(), "report \(report): \(place.folder.names)")
      // A SQLite file may have another journal mode.
      if store != .sqlite && store != .coreData { #expect(after == before, "report \(report)") }
      #expect(try PersistentStoreCoordinator.graphDigest(of: description, model: first) == digest, "report \(report)")
    }
    #expect(cancelled > 2, "of \(count)")
  }

  /// As the error of two families that come together says.
  @Test(arguments: MigratedStore.allCases) func twoFamiliesGetASuperentityThroughAVersionBetween(_ store: MigratedStore) throws {
    let place = MigratedStore.Place(store), name = AttributeDescription("name", .string, isOptional: true)
    let cat = EntityDescription("Cat", attributes: [name]), dog = EntityDescription("Dog", attributes: [name])
    let animal = EntityDescription("Animal", isAbstract: true, attributes: [name])
    let old = try model(cat, dog)
    let between = try model(
      animal, cat, EntityDescription("Dog", superentity: "Animal"), EntityDescription("NewCat", superentity: "Animal"))
    let new = try model(
      animal, EntityDescription("Cat", superentity: "Animal").renamed(from: "NewCat"), EntityDescription("Dog", superentity: "Animal"))
    try place.fill(old) { context in
      try context.add("Cat", "c", ["name": "Tom"])
      try context.add("Dog", "d", ["name": "Rex"])
    }
    #expect(throws: MigrationError.self) { try MappingModel.inferred(from: old, to: new) }
    var plan = MigrationPlan(from: old)
    plan.add(between, named: "cats") { stage in
      try stage.forEach("Cat") { old, _ in
        let cat = try stage.context.insert(entityNamed: "NewCat")
        for key in ["tag", "name"] { try cat.setValue(old[key], forKey: key) }
      }
    }
    plan.add(new)
    try PersistentStoreCoordinator.migratePersistentStore(place.description, with: plan)
    #expect(try place.contents(new) == ["Cat c: name=Tom", "Dog d: name=Rex"])
  }

  @Test(arguments: MigratedStore.allCases) func stagesWithoutCodeAreSkippedOrDoneOneByOne(_ store: MigratedStore) throws {
    // The last version can't be inferred from the first one: `b` would be a new required attribute.
    let versions = try [
      model(EntityDescription("Dog", attributes: [.init("a", .string, isOptional: true)])),
      model(EntityDescription("Dog", attributes: [AttributeDescription("b", .string, default: "?").renamed(from: "a")])),
      model(EntityDescription("Dog", attributes: [AttributeDescription("c", .string).renamed(from: "b")])),
    ]
    var plan = MigrationPlan(from: versions[0])
    for version in versions.dropFirst() { plan.add(version) }
    let place = MigratedStore.Place(store)
    try place.fill(versions[0]) { context in
      try context.add("Dog", "x", ["a": "red"])
      try context.add("Dog", "y")
    }
    try PersistentStoreCoordinator.migratePersistentStore(place.description, with: plan)
    #expect(try place.contents(versions[2]) == ["Dog x: c=red", "Dog y: c=?"])
    // A place without a store stays empty.
    let empty = MigratedStore.Place(store)
    try PersistentStoreCoordinator.migratePersistentStore(empty.description, with: plan)
    #expect(!empty.folder.exists("Store"))
  }
}

/// The number of rows that stores have delivered.
final class RowCount: Sendable {
  private let count = Mutex(0)
  var value: Int { count.withLock { $0 } }

  func add(_ number: Int) { count.withLock { $0 += number } }
}

/// A store that counts the rows that it delivers.
final class CountedStore: ForwardingStore {
  let base: any IncrementalStore
  private let count: RowCount

  init(_ base: any IncrementalStore, _ count: RowCount) { (self.base, self.count) = (base, count) }

  private final class Sink: RowSink {
    private let next: any RowSink
    private let count: RowCount

    init(_ next: any RowSink, _ count: RowCount) { (self.next, self.count) = (next, count) }

    func take(_ batch: RowBatch, _ rows: RowSelection) throws -> SinkDemand {
      count.add(rows.count(in: batch))
      return try next.take(batch, rows)
    }
  }

  func fetch(_ plan: FetchPlan, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
    try base.fetch(plan, in: view, options: options, into: Sink(sink, count))
  }

  func rows(_ request: FaultRequest, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
    try base.rows(request, in: view, options: options, into: Sink(sink, count))
  }
}

/// The files with large values in temporary copies in a folder.
private func largeFiles(ofCopiesIn folder: String) throws -> [String] {
  try FileManager.default.subpathsOfDirectory(atPath: folder).compactMap { name in
    let path = folder + "/" + name
    var isFolder: ObjCBool = false
    guard name.contains(".migration/"), name.contains("_EXTERNAL_DATA/"),
      FileManager.default.fileExists(atPath: path, isDirectory: &isFolder)
    else { return nil }
    return isFolder.boolValue ? nil : path
  }
}
