import Foundation
import Holdfast
import HoldfastJSONStore
import HoldfastMemoryStore
import HoldfastSQLiteStore
import HoldfastStore
import SQLiteTestSupport
import TestSupport
import Testing

/// What a migration doesn't do: it says why, names the entity or property, and leaves the store byte for byte.
@Suite struct RefusalTests {
  /// A change of a model that needs a decision, and the place and a part of the sentence that says so.
  struct Change: CustomTestStringConvertible, Sendable {
    var testDescription: String
    var old: [EntityDescription]
    var new: [EntityDescription]
    var path: String
    var sentence: String

    init(_ name: String, _ old: [EntityDescription], _ new: [EntityDescription], _ path: String, _ sentence: String) {
      (testDescription, self.old, self.new, self.path, self.sentence) = (name, old, new, path, sentence)
    }
  }

  private static func dog(_ attributes: AttributeDescription..., relationships: [RelationshipDescription] = []) -> [EntityDescription] {
    [EntityDescription("Dog", attributes: attributes, relationships: relationships)]
  }

  /// Dogs and cats, of which one entity has a required relationship.
  private static func animals(requiringBallsOf owner: String) -> [EntityDescription] {
    [
      EntityDescription("Animal", isAbstract: true), EntityDescription("Ball"), EntityDescription("Cat", superentity: "Animal"),
      EntityDescription("Dog", superentity: "Animal"),
    ]
    .map { entity in
      var entity = entity
      if entity.name == owner { entity.relationships = [.toOne("ball", to: "Ball", inverse: nil, isOptional: false)] }
      return entity
    }
  }

  static let changes = [
    Change("new required attribute", dog(), dog(.init("age", .integer16)), "Dog.age", "It is required and new."),
    Change(
      "optional attribute becomes required", dog(.init("age", .integer16, isOptional: true)), dog(.init("age", .integer16)), "Dog.age",
      "It becomes required."),
    Change(
      "another type", dog(.init("age", .integer16)), dog(.init("age", .string)), "Dog.age", "Its type changes from integer16 to string."),
    Change("narrower type", dog(.init("age", .integer64)), dog(.init("age", .integer16)), "Dog.age", "Its type changes"),
    Change(
      "external values", dog(.init("photo", .binaryData, isOptional: true, allowsExternalBinaryDataStorage: true)),
      dog(.init("photo", .binaryData, isOptional: true)), "Dog.photo", "Its values may be in external files"),
    Change(
      "derived attribute", dog(.init("name", .string, isOptional: true)),
      dog(.init("name", .string, isOptional: true), .derived("shout", .string, "uppercase:(name)")), "Dog.shout", "It is derived and new"),
    Change(
      "required relationship", dog() + [EntityDescription("Walk")],
      dog(relationships: [.toOne("walk", to: "Walk", inverse: nil, isOptional: false)]) + [EntityDescription("Walk")], "Dog.walk",
      "It is required and new"),
    // The bug: it wasn't noticed that the relationship is new for the objects of another subentity.
    Change(
      "required relationship moves to the superentity", animals(requiringBallsOf: "Dog"), animals(requiringBallsOf: "Animal"), "Cat.ball",
      "It is required and new"),
    Change("abstract entity", dog(), [EntityDescription("Dog", isAbstract: true)], "Dog", "It becomes abstract"),
    Change(
      "families come together", dog() + [EntityDescription("Cat")],
      [
        EntityDescription("Animal", isAbstract: true), EntityDescription("Dog", superentity: "Animal"),
        EntityDescription("Cat", superentity: "Animal"),
      ],
      "Animal", "had no common superentity"),
    Change(
      "another destination",
      dog(relationships: [.toOne("toy", to: "Ball", inverse: nil)]) + [EntityDescription("Ball"), EntityDescription("Bone")],
      dog(relationships: [.toOne("toy", to: "Bone", inverse: nil)]) + [EntityDescription("Ball"), EntityDescription("Bone")], "Dog.toy",
      "Links between Dog and Ball were possible"),
    Change(
      "two relationships become a pair",
      dog(relationships: [.toOne("toy", to: "Ball", inverse: nil)]) + [
        EntityDescription("Ball", relationships: [.toOne("dog", to: "Dog", inverse: nil)])
      ],
      dog(relationships: [.toOne("toy", to: "Ball", inverse: "dog")])
        + [EntityDescription("Ball", relationships: [.toOne("dog", to: "Dog", inverse: "toy")])], "Dog.toy", "weren't each other's inverse"),
    Change(
      "one identifier for two",
      dog(
        AttributeDescription("a", .string, isOptional: true).renamed(from: "x"),
        AttributeDescription("b", .string, isOptional: true).renamed(from: "x")
      ), dog(AttributeDescription("c", .string, isOptional: true).renamed(from: "x")), "Dog.c", "fits several attributes"),
    Change(
      "one former name for two", dog(AttributeDescription("a", .string, isOptional: true)),
      dog(
        AttributeDescription("b", .string, isOptional: true).renamed(from: "a"),
        AttributeDescription("c", .string, isOptional: true).renamed(from: "a")
      ), "Dog.b", "fits several attributes"),
  ]

  static let place = CompositeDescription("Place", [AttributeDescription("city", .string, isOptional: true)])

  static let moreChanges: [Change] = [
    Change(
      "one former name for two entities", dog(),
      [EntityDescription("Hound").renamed(from: "Dog"), EntityDescription("Wolf").renamed(from: "Dog")], "Hound", "fits several entities"),
    Change(
      "one former name for two relationships",
      dog(relationships: [.toOne("toy", to: "Ball", inverse: nil)]) + [EntityDescription("Ball")],
      dog(relationships: [
        RelationshipDescription.toOne("a", to: "Ball", inverse: nil).renamed(from: "toy"),
        RelationshipDescription.toOne("b", to: "Ball", inverse: nil).renamed(from: "toy"),
      ]) + [EntityDescription("Ball")], "Dog.b", "fits several relationships"),
    Change(
      "attribute becomes a composite", dog(AttributeDescription("home", .string, isOptional: true)),
      dog(AttributeDescription.composite("home", "Place", isOptional: true)), "Dog.home", "It becomes a composite, or was one"),
    Change(
      "composite becomes an attribute", dog(AttributeDescription.composite("home", "Place", isOptional: true)),
      dog(AttributeDescription("home", .string, isOptional: true)), "Dog.home", "It becomes a composite, or was one"),
    Change(
      "another derivation",
      dog(AttributeDescription("name", .string, isOptional: true), AttributeDescription.derived("shout", .string, "uppercase:(name)")),
      dog(AttributeDescription("name", .string, isOptional: true), AttributeDescription.derived("shout", .string, "lowercase:(name)")),
      "Dog.shout", "It is derived in another way"),
    Change(
      "attribute becomes derived",
      dog(AttributeDescription("name", .string, isOptional: true), AttributeDescription("shout", .string, isOptional: true)),
      dog(AttributeDescription("name", .string, isOptional: true), AttributeDescription.derived("shout", .string, "uppercase:(name)")),
      "Dog.shout", "It is derived in another way"),
  ]

  @Test(arguments: changes + moreChanges) func aChangeThatNeedsADecisionIsNamed(_ change: Change) throws {
    let old = try model(change.old, composites: [Self.place]), new = try model(change.new, composites: [Self.place])
    let error = #expect(throws: MigrationError.self) { try MappingModel.inferred(from: old, to: new) }
    #expect(error?.code == .inferredMappingModel && error?.coreDataCode == 134190)
    let problem = error?.problems.first { $0.path == change.path }
    #expect(problem?.reason.contains(change.sentence) == true, "\(error?.problems ?? [])")
  }

  /// The bug: the elements of optional composite attributes are optional, so the migration left objects that no save accepted.
  @Test func whatACompositeAttributeRequiresNeedsADecision() throws {
    typealias Element = AttributeDescription
    func made(_ elements: [Element], isOptional: Bool? = true) throws -> ManagedObjectModel {
      let home = isOptional.map { AttributeDescription.composite("home", "Place", isOptional: $0) }
      return try model(
        [EntityDescription("Owner", attributes: home.map { [$0] } ?? [])], composites: [CompositeDescription("Place", elements)])
    }
    let city = Element("city", .string), zip = Element("zip", .string)
    let anyCity = Element("city", .string, isOptional: true), rome = Element("city", .string, isOptional: true, default: .string("Rome"))
    let refused: [(old: ManagedObjectModel, new: ManagedObjectModel, path: String, sentence: String)] = [
      (try made([city]), try made([city, zip]), "Owner.home.zip", "It is required and new"),
      (try made([anyCity]), try made([city]), "Owner.home.city", "It becomes required"),
      (try made([anyCity]), try made([anyCity], isOptional: false), "Owner.home", "It becomes required"),
      (try made([anyCity], isOptional: nil), try made([anyCity], isOptional: false), "Owner.home", "It is required and new"),
      (try made([city, zip]), try made([Element("city", .integer64), zip]), "Owner.home.city", "Its type changes"),
    ]
    for (old, new, path, sentence) in refused {
      let error = #expect(throws: MigrationError.self) { try MappingModel.inferred(from: old, to: new) }
      #expect(error?.problems.map(\.path) == [path], "\(error?.problems ?? [])")
      #expect(error?.problems.first?.reason.hasPrefix(sentence) == true, "\(error?.problems ?? [])")
    }
    let inferred: [(ManagedObjectModel, ManagedObjectModel)] = [
      (try made([city, zip]), try made([city])),
      (try made([city], isOptional: nil), try made([city])), (try made([city], isOptional: false), try made([city])),
      (try made([anyCity], isOptional: false), try made([anyCity, Element("zip", .string, isOptional: true)], isOptional: false)),
      (try made([rome], isOptional: nil), try made([rome], isOptional: false)),
    ]
    for (old, new) in inferred { #expect(throws: Never.self) { try MappingModel.inferred(from: old, to: new) } }
  }

  @Test func aRequiredPropertyOfANewEntityNeedsNoDecision() throws {
    let walk = EntityDescription(
      "Walk", attributes: [AttributeDescription("miles", .integer16)],
      relationships: [.toOne("dog", to: "Dog", inverse: nil, isOptional: false)])
    let old = try model(Self.dog()), new = try model(Self.dog() + [walk])
    #expect(throws: Never.self) { try MappingModel.inferred(from: old, to: new) }
  }

  @Test func aRefusalHasTheCodeOfAStageThatDecidesIt() throws {
    let old = try model(
      EntityDescription("Dog", attributes: [.init("age", .integer16)]), EntityDescription("Puppy", superentity: "Dog"),
      EntityDescription("Walk"))
    let new = try model(
      EntityDescription(
        "Hound", attributes: [.init("age", .string), .init("chip", .string), .derived("shout", .string, "uppercase:(chip)")],
        relationships: [.toOne("walk", to: "Walk", inverse: nil, isOptional: false)]
      ).renamed(from: "Dog"), EntityDescription("Puppy", superentity: "Hound"), EntityDescription("Walk"))
    let error = #expect(throws: MigrationError.self) { try MappingModel.inferred(from: old, to: new) }
    let code = """
      plan.add(model, named: "…") { stage in
        try stage.forEach("Dog") { old, new in
          try new.setValue(…, forKey: "age")  // string, formerly integer16: old["age"]
          try new.setValue(…, forKey: "chip")  // string
          try new.setValue(…, forKey: "walk")  // an object of Walk
        }
      }
      """
    #expect(error?.suggestion == code, "\(error?.suggestion ?? "")")
    #expect(error?.description.hasSuffix(code) == true && error?.localizedDescription.contains("plan.add") == false)
    // No code of a stage can decide what becomes of entities.
    let abstract = try model(
      EntityDescription("Dog", isAbstract: true), EntityDescription("Puppy", superentity: "Dog"), EntityDescription("Walk"))
    let refused = #expect(throws: MigrationError.self) { try MappingModel.inferred(from: old, to: abstract) }
    #expect(refused?.code == .inferredMappingModel && refused?.suggestion == nil)
  }

  @Test(arguments: MigratedStore.allCases) func aRefusedMigrationChangesNoByte(_ store: MigratedStore) throws {
    let place = MigratedStore.Place(store), old = try model(Self.changes[0].old), new = try model(Self.changes[0].new)
    try place.fill(old) { try $0.add("Dog", "a") }
    let before = try place.folder.snapshot()
    let error = #expect(throws: MigrationError.self) { try place.contents(new, from: [old]) }
    #expect(error?.path == place.path && error?.localizedDescription.contains("Dog.age: It is required and new.") == true)
    #expect(try place.folder.snapshot() == before)
    #expect(try place.contents(old) == ["Dog a:"])
  }

  /// The model of an older program lacks what a newer one has added.
  @Test(arguments: MigratedStore.allCases) func openingNeverRemovesData(_ store: MigratedStore) throws {
    let place = MigratedStore.Place(store), older = try model(EntityDescription("Dog"))
    let newer = try model(
      EntityDescription("Dog", attributes: [.init("colour", .string, isOptional: true), .init("unused", .string, isOptional: true)]),
      EntityDescription("Walk"))
    try place.fill(newer) { try $0.add("Dog", "a", ["colour": "red"]) }
    let before = try place.folder.snapshot(), file = try TemporaryFolder.read(place.path)
    let description = place.description.migrating(from: [newer])
    let error = #expect(throws: MigrationError.self) { try PersistentStoreCoordinator(model: older, store: description) }
    #expect(try TemporaryFolder.read(place.path) == file)
    #expect(error?.code == .lossOfData && error?.coreDataCode == 134110 && error?.problems.map(\.path) == ["Dog.colour"])
    #expect(error?.description.contains("Dog.colour: 1 object would be removed or lose it.") == true && error?.path == place.path)
    if store != .coreData { #expect(try place.folder.snapshot() == before) }
    // Nothing is lost if no object has a value.
    try place.change(newer) { try $0.tagged("Dog", "a").setValue(StoreValue.null, forKey: "colour") }
    try PersistentStoreCoordinator(model: older, store: description).close()
    #expect(try place.contents(older) == ["Dog a:"])
  }

  @Test(arguments: MigratedStore.allCases) func openingNeverRemovesAnOrder(_ store: MigratedStore) throws {
    func dogs(_ isOrdered: Bool) throws -> ManagedObjectModel {
      try model(
        EntityDescription("Dog", relationships: [.toMany("walks", to: "Walk", inverse: "dog", isOrdered: isOrdered)]),
        EntityDescription("Walk", relationships: [.toOne("dog", to: "Dog", inverse: "walks")]))
    }
    let place = MigratedStore.Place(store), newer = try dogs(true)
    try place.fill(newer) { context in
      try context.add("Dog", "a").setValue(try (1...2).map { try context.add("Walk", "\($0)") }, forKey: "walks")
    }
    let description = place.description.migrating(from: [newer])
    let error = #expect(throws: MigrationError.self) { try PersistentStoreCoordinator(model: try dogs(false), store: description) }
    #expect(error?.code == .lossOfData && error?.problems.map(\.path) == ["Dog.walks (order)"])
  }

  @Test(arguments: MigratedStore.allCases) func aNewUniquenessConstraintIsChecked(_ store: MigratedStore) throws {
    let place = MigratedStore.Place(store)
    func dogs(_ constraints: [[String]]) throws -> ManagedObjectModel {
      try model(EntityDescription("Dog", attributes: [.init("chip", .string, isOptional: true)], uniquenessConstraints: constraints))
    }
    let old = try dogs([]), new = try dogs([["chip"]])
    try place.fill(old) { context in
      for (tag, chip) in [("a", "1"), ("b", "1"), ("c", "2")] { try context.add("Dog", tag, ["chip": .string(chip)]) }
    }
    let error = #expect(throws: MigrationError.self) { try place.contents(new, from: [old]) }
    #expect(error?.code == .constraintViolation && error?.problems.first?.path == "Dog", "\(String(describing: error))")
    #expect(error?.description.contains("chip") == true)
    try place.change(old) { try $0.tagged("Dog", "b").setValue(StoreValue.null, forKey: "chip") }
    #expect(try place.contents(new, from: [old]) == ["Dog a: chip=1", "Dog b: chip=nil", "Dog c: chip=2"])
    #expect(throws: PersistenceError.self) { try place.change(new) { try $0.add("Dog", "d", ["chip": "2"]) } }
    #expect(try place.contents(old, from: [new]).count == 3)
    try place.change(old) { try $0.add("Dog", "d", ["chip": "2"]) }
  }

  @Test(arguments: MigratedStore.allCases) func aStoreIsMigratedOnlyIfTheDescriptionAllowsIt(_ store: MigratedStore) throws {
    let place = MigratedStore.Place(store), old = try model(EntityDescription("Dog"))
    let new = try model(EntityDescription("Dog", attributes: [.init("age", .integer16, isOptional: true)]))
    try place.fill(old) { try $0.add("Dog", "a") }
    let before = try place.folder.snapshot()
    var readOnly = place.description.migrating(from: [old])
    readOnly.isReadOnly = true
    for description in [place.description.migrating(automatically: false, from: [old]), readOnly] {
      let error = #expect(throws: StoreError.self) { try PersistentStoreCoordinator(model: new, store: description) }
      #expect(error?.code == .incompatibleModel)
    }
    #expect(try place.folder.snapshot() == before)
    try PersistentStoreCoordinator.migratePersistentStore(place.description.migrating(automatically: false, from: [old]), to: new)
    #expect(try place.contents(new) == ["Dog a: age=nil"])
    // A second migration to the same model does nothing.
    let after = try place.folder.snapshot()
    try PersistentStoreCoordinator.migratePersistentStore(place.description, to: new)
    #expect(try place.folder.snapshot() == after)
  }

  @Test func aStoreWithoutItsModelNeedsAFormerModelWithItsHashes() throws {
    let place = MigratedStore.Place(.coreData), old = try model(EntityDescription("Dog")), other = try model(EntityDescription("Cat"))
    let new = try model(EntityDescription("Dog", attributes: [.init("age", .integer16, isOptional: true)]))
    try place.fill(old) { try $0.add("Dog", "a") }
    let before = try place.folder.snapshot()
    let refused = #expect(throws: StoreError.self) { try place.contents(new, from: [other]) }
    let error = refused?.cause as? MigrationError
    #expect(refused?.code == .incompatibleModel && error?.code == .missingSourceModel && error?.coreDataCode == 134130)
    #expect(error?.path == place.path)
    #expect(try place.folder.snapshot() == before)
    #expect(try place.contents(new, from: [other, old]) == ["Dog a: age=nil"])
  }

  /// As a copy that another program didn't finish migrating: the metadata is that of the new model, the tables aren't.
  @Test(
    arguments: [
      ("DROP TABLE ZWALK", "the table ZWALK of Walk"), ("ALTER TABLE ZDOG RENAME COLUMN ZAGE TO ZOTHER", "the column ZDOG.ZAGE of Dog"),
      ("ALTER TABLE ZWALK RENAME COLUMN Z_FOK_DOG TO ZOTHER", "the column ZWALK.Z_FOK_DOG of Dog.walks"),
      ("DELETE FROM Z_PRIMARYKEY WHERE Z_NAME = 'Walk'", "the entity Walk in Z_PRIMARYKEY"),
    ]) func aFileThatIsHalfMigratedIsNamedAndNotChanged(change: String, missing: String) throws
  {
    func zoo(_ attributes: AttributeDescription...) throws -> ManagedObjectModel {
      try model(
        EntityDescription(
          "Dog", attributes: attributes, relationships: [.toMany("walks", to: "Walk", inverse: "dog", isOrdered: true)]),
        EntityDescription("Walk", relationships: [.toOne("dog", to: "Dog", inverse: "walks")]))
    }
    let age = AttributeDescription("age", .integer16, isOptional: true), half = try zoo(age)
    let next = try zoo(age, .init("note", .string, isOptional: true)), place = MigratedStore.Place(.coreData)
    try place.fill(half) { context in try context.add("Dog", "a").setValue([try context.add("Walk", "1")], forKey: "walks") }
    _ = try SQL.rows(place.path, change)
    let before = try place.folder.snapshot(), store = place.description.migrating(from: [half])
    var code = MigrationPlan(from: half)
    code.add(next, named: "code") { _ in }
    var versions = MigrationPlan(from: half)
    versions.add(next)
    let attempts: [() throws -> Void] = [
      { try PersistentStoreCoordinator(model: half, store: store).close() },
      { try PersistentStoreCoordinator(model: next, store: store).close() },
      { _ = try PersistentStoreCoordinator.copyPersistentStore(store, to: .json(at: place.folder.file("copy")), model: half) },
      { try PersistentStoreCoordinator.verifyPersistentStore(store, model: half) },
      { _ = try PersistentStoreCoordinator.previewMigration(of: store, to: next) },
      { try PersistentStoreCoordinator.migratePersistentStore(store, to: next) },
      { [versions] in try PersistentStoreCoordinator.migratePersistentStore(store, with: versions) },
      // Code works on a copy of the file, which isn't the one to name.
      { [code] in _ = try PersistentStoreCoordinator.previewMigration(of: store, with: code) },
      { [code] in try PersistentStoreCoordinator.migratePersistentStore(store, with: code) },
    ]
    for (number, attempt) in attempts.enumerated() {
      let error = #expect(throws: StoreError.self) { try attempt() }
      #expect(error?.code == .damaged && error?.path == place.path, "\(number): \(error as Any)")
      #expect(error?.reason.contains("The file lacks \(missing). ") == true, "\(number): \(error as Any)")
      #expect(try place.folder.snapshot() == before, "\(number): \(place.folder.names)")
    }
  }

  /// The bug: the cause of such an error named a copy, which is removed.
  @Test(arguments: MigratedStore.allCases) func theCauseOfAnErrorInAPlanNamesNoCopy(_ store: MigratedStore) throws {
    func version(_ attributes: AttributeDescription...) throws -> ManagedObjectModel {
      let chip = AttributeDescription("chip", .string, isOptional: true)
      return try model(EntityDescription("Dog", attributes: [chip] + attributes, uniquenessConstraints: [["chip"]]))
    }
    let old = try version(), new = try version(.init("note", .string, isOptional: true)), place = MigratedStore.Place(store)
    try place.fill(old) { context in for name in ["a", "b"] { try context.add("Dog", name, ["chip": .string(name)]) } }
    var plan = MigrationPlan(from: old)
    plan.add(new, named: "chips") { stage in try stage.forEach("Dog") { _, dog in try dog.setValue("same", forKey: "chip") } }
    let attempts: [() throws -> Void] = [
      { [plan] in try PersistentStoreCoordinator.migratePersistentStore(place.description, with: plan) },
      { [plan] in _ = try PersistentStoreCoordinator.previewMigration(of: place.description, with: plan) },
    ]
    for (number, attempt) in attempts.enumerated() {
      let error = #expect(throws: PersistenceError.self) { try attempt() }, cause = error?.cause as? StoreError
      #expect(error?.code == .constraintConflict && cause?.code == .constraintConflict, "\(number): \(error as Any)")
      // Whole files name no path there.
      #expect(cause?.path ?? place.path == place.path, "\(number): \(error as Any)")
      #expect(!"\(error as Any)".contains("/.holdfast-"), "\(number): \(error as Any)")
    }
    #expect(try place.contents(old) == ["Dog a: chip=a", "Dog b: chip=b"])
  }

  @Test(arguments: MigratedStore.allCases) func aFileThatIsNoStoreIsNotMigratedOrCopied(_ store: MigratedStore) throws {
    let place = MigratedStore.Place(store), old = try model(EntityDescription("Dog"))
    let new = try model(EntityDescription("Bee"), EntityDescription("Dog"))
    switch store {
    case .sqlite, .coreData: _ = try SQL.rows(place.path, "CREATE TABLE people (name)")
    case .json: try place.folder.write("{\"people\":[]}", to: "Store")
    case .xml: try place.folder.write("<?xml version=\"1.0\"?>\n<people/>\n", to: "Store")
    case .binary: try place.folder.write("people", to: "Store")
    }
    var plan = MigrationPlan(from: old)
    plan.add(new, named: "code") { _ in }
    let before = try place.folder.snapshot(), description = place.description.migrating(from: [old]), other = MigratedStore.Place(.json)
    let attempts: [() throws -> Void] = [
      { try PersistentStoreCoordinator.migratePersistentStore(description, to: new) },
      { [plan] in try PersistentStoreCoordinator.migratePersistentStore(description, with: plan) },
      { _ = try PersistentStoreCoordinator.previewMigration(of: description, to: new) },
      { _ = try PersistentStoreCoordinator.copyPersistentStore(description, to: other.description, model: old) },
    ]
    for attempt in attempts {
      let error = #expect(throws: StoreError.self) { try attempt() }
      #expect(error?.code == .notAStore && error?.path == place.path, "\(error as Any)")
      #expect(try place.folder.snapshot() == before, "\(place.folder.names)")
    }
    #expect(other.folder.names.isEmpty)
  }

  @Test(arguments: MigratedStore.allCases) func aMappingOfAnotherVersionIsRefused(_ store: MigratedStore) throws {
    let place = MigratedStore.Place(store), old = try model(EntityDescription("Dog")), other = try model(EntityDescription("Cat"))
    let new = try model(EntityDescription("Bee"), EntityDescription("Dog"))
    try place.fill(old) { try $0.add("Dog", "a") }
    let before = try place.folder.snapshot(), mapping = try MappingModel.inferred(from: other, to: new)
    let error = #expect(throws: MigrationError.self) { try place.description.administration.perform(MigrationRequest(mapping)) }
    #expect(error?.code == .missingMappingModel && error?.coreDataCode == 134140 && error?.path == place.path)
    #expect(error?.problems.map(\.path) == ["Cat", "Dog"] && error?.problems.first?.reason == "The model has it, and the store doesn't.")
    #expect(error?.reason.contains("Use one for the store's version.") == true)
    #expect(try place.folder.snapshot() == before)
  }

  @Test(arguments: MigratedStore.allCases) func anOpenStoreIsNotMigrated(_ store: MigratedStore) throws {
    let place = MigratedStore.Place(store), old = try model(EntityDescription("Dog"))
    let new = try model(EntityDescription("Bee"), EntityDescription("Dog"))
    try place.change(old) { try $0.add("Dog", "a") }
    let coordinator = try PersistentStoreCoordinator(model: old, store: place.description)
    let error = #expect(throws: StoreError.self) { try PersistentStoreCoordinator(model: new, store: place.description) }
    #expect(error?.code == .alreadyOpen)
    try coordinator.close()
    #expect(try place.contents(new) == ["Dog a:"])
  }

  @Test func aMappingIsEncodedAndDecoded() throws {
    let old = try model(Self.changes[9].old), new = try model(Self.changes[9].old + [EntityDescription("Addition")])
    let mapping = try MappingModel.inferred(from: old, to: new)
    let coded = try JSONEncoder().encode(mapping)
    #expect(try JSONDecoder().decode(MappingModel.self, from: coded) == mapping)
    let damaged = String(decoding: coded, as: UTF8.self).replacingOccurrences(of: "\"entityMappings\":[", with: "\"entityMappings\":[{},")
    #expect(throws: DecodingError.self) { try JSONDecoder().decode(MappingModel.self, from: Data(damaged.utf8)) }
  }
}
