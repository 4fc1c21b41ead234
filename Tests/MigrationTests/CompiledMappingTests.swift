import Foundation
import Holdfast
import HoldfastCoreData
import HoldfastModelFile
import HoldfastPropertyList
import HoldfastStore
import TestSupport
import Testing

/// Compiled mapping models (`.cdm`).
@Suite struct CompiledMappingTests {
  private let old: ManagedObjectModel
  private let new: ManagedObjectModel

  init() throws {
    old = try model(
      EntityDescription(
        "Dog", attributes: [.init("name", .string, isOptional: true), .init("age", .integer32, isOptional: true)],
        relationships: [.toOne("owner", to: "Person", inverse: "dogs")]),
      EntityDescription("Person", relationships: [.toMany("dogs", to: "Dog", inverse: "owner")]), EntityDescription("Cat"))
    new = try Self.new()
  }

  private static func new(_ more: AttributeDescription...) throws -> ManagedObjectModel {
    let attributes: [AttributeDescription] = [
      .init("title", .string, isOptional: true), .init("double", .integer64, isOptional: true), .init("age", .integer32, isOptional: true),
    ]
    return try model(
      EntityDescription(
        "Dog", attributes: attributes + more, relationships: [.toOne("owner", to: "Person", inverse: "dogs")]),
      EntityDescription("Person", relationships: [.toMany("dogs", to: "Dog", inverse: "owner")]),
      EntityDescription("Veteran", attributes: [.init("name", .string, isOptional: true)]), EntityDescription("Kennel"))
  }

  private func destinations(_ mapping: String, _ path: String) -> TestExpression {
    .method(
      .variable("manager"), "destinationInstancesForEntityMappingNamed:sourceInstances:", [.text(mapping), .path(.source, path)])
  }

  /// A mapping model with everything that one can have.
  private func mapping(_ change: (inout CompiledMapping) -> Void = { _ in }) -> CompiledMapping {
    let tag = TestExpression.path(.source, "tag"), name = TestExpression.path(.source, "name")
    var mapping = CompiledMapping(old, new)
    change(&mapping)
    mapping.map(
      "Dog", to: "Dog", name: "DogToDog", policy: "NSEntityMigrationPolicy",
      attributes: ["tag": tag, "title": name, "double": .function("multiply:by:", [.path(.source, "age"), .number(2)]), "age": nil],
      relationships: ["owner": destinations("PersonToPerson", "owner")])
    mapping.map(
      "Person", to: "Person", name: "PersonToPerson", attributes: ["tag": tag], relationships: ["dogs": destinations("DogToDog", "dogs")])
    mapping.map(
      "Dog", to: "Veteran", name: "old dogs", policy: "Zoo.Policy", filter: "age > 10", attributes: ["tag": tag, "name": name])
    mapping.map("Cat", to: nil, name: "cats")
    mapping.map(nil, to: "Kennel")
    return mapping
  }

  @Test func aCompiledFileSaysWhatXcodeShows() throws {
    let file = try MappingModelFile(bytes: mapping().bytes)
    #expect(file.sourceModelPath.isEmpty && file.destinationModelPath.isEmpty)
    #expect(file.entityMappings.map(\.name) == ["DogToDog", "PersonToPerson", "old dogs", "cats", "->Kennel"])
    #expect(file.entityMappings.map(\.sourceFilter) == [nil, nil, "age > 10", nil, nil])
    #expect(file.entityMappings.map(\.policyClassName) == [nil, nil, "Zoo.Policy", nil, nil])
    #expect(file.entityMappings.map(\.sourceEntityName) == ["Dog", "Person", "Dog", "Cat", nil])
    #expect(file.entityMappings.map(\.destinationEntityName) == ["Dog", "Person", "Veteran", nil, "Kennel"])
    let dog = file.entityMappings[0]
    #expect(dog.attributeMappings.map(\.name) == ["double", "tag", "title"])
    #expect(dog.attributeMappings.map(\.expressionText) == ["($source.age * 2)", "$source.tag", "$source.name"])
    #expect(
      dog.relationshipMappings.map(\.expressionText) == [
        "FUNCTION($manager, \"destinationInstancesForEntityMappingNamed:sourceInstances:\", \"PersonToPerson\", $source.owner)"
      ])
  }

  @Test(arguments: MigratedStore.allCases) func aStoreIsMigratedByIt(_ store: MigratedStore) throws {
    let place = MigratedStore.Place(store), folder = TemporaryFolder()
    try place.fill(old) { context in
      let person = try context.add("Person", "p")
      let dog = try context.add("Dog", "d", ["name": "Rex", "age": .int32(3)])
      try dog.setValue(person, forKey: "owner")
      try context.add("Dog", "e", ["name": "Odie", "age": .int32(11)])
      try context.add("Cat", "c")
    }
    var plan = MigrationPlan(from: old)
    try plan.add(new, mappingModelsAt: [try mapping().write(to: folder)], policies: ["Zoo.Policy": MappingPolicy()])
    try PersistentStoreCoordinator.migratePersistentStore(place.description, with: plan)
    let contents = try place.contents(new)
    #expect(
      contents == [
        "Dog d: age=nil double=6 title=Rex owner=p", "Dog e: age=nil double=22 title=Odie owner=nil", "Person p: dogs=[d]",
        "Veteran e: name=Odie",
      ])
  }

  // MARK: Versions

  @Test func aFileForOtherVersionsIsRefused() throws {
    let folder = TemporaryFolder(), path = try mapping().write(to: folder), policies = ["Zoo.Policy": MappingPolicy()]
    let other = try Self.new(AttributeDescription("more", .string, isOptional: true))
    var plan = MigrationPlan(from: old)
    let error = #expect(throws: MigrationError.self) { try plan.add(other, mappingModelsAt: [path], policies: policies) }
    #expect(error?.code == .invalidMappingModel && error?.problems.map(\.path) == ["entity Dog"], "\(error as Any)")
    #expect(error?.problems.first?.reason.contains("another version of the new model's Dog") == true, "\(error as Any)")
    let older = try model(
      EntityDescription(
        "Dog", attributes: [.init("name", .string, isOptional: true), .init("age", .integer64, isOptional: true)],
        relationships: [.toOne("owner", to: "Person", inverse: "dogs")]),
      EntityDescription("Person", relationships: [.toMany("dogs", to: "Dog", inverse: "owner")]), EntityDescription("Cat"))
    var second = MigrationPlan(from: older)
    let found = #expect(throws: MigrationError.self) { try second.add(new, mappingModelsAt: [path], policies: policies) }
    #expect(found?.problems.first?.reason.contains("another version of the former model's Dog") == true, "\(found as Any)")
  }

  /// Versions of which the second and the third have the same dogs.
  private func versions(in folder: TemporaryFolder) throws -> [ManagedObjectModel] {
    func dog(_ name: String) -> EntityDescription { EntityDescription("Dog", attributes: [.init(name, .string, isOptional: true)]) }
    let cat = EntityDescription("Cat")
    let versions = try [model(dog("a")), model(dog("b")), model(dog("b"), cat), model(dog("d"), cat)]
    try write(versions, to: folder)
    return versions
  }

  private func write(_ versions: [ManagedObjectModel], to folder: TemporaryFolder) throws {
    let names = ["Zoo", "Zoo 2", "Zoo 3", "Zoo 4"].prefix(versions.count)
    try ModelBundle.write(
      Dictionary(uniqueKeysWithValues: try zip(names, versions).map { ($0, try ModelDocument($1)) }),
      currentVersion: "Zoo \(versions.count)", to: folder.file("Zoo.xcdatamodeld"))
  }

  private func map(
    _ old: ManagedObjectModel, _ new: ManagedObjectModel, _ attribute: String, _ expression: TestExpression, cats: String? = nil,
    hasCats: Bool = true
  ) -> CompiledMapping {
    var mapping = CompiledMapping(old, new)
    mapping.map("Dog", to: "Dog", attributes: ["tag": .path(.source, "tag"), attribute: expression])
    if hasCats { mapping.map(cats, to: "Cat", attributes: cats == nil ? [:] : ["tag": .path(.source, "tag")]) }
    return mapping
  }

  private func migrated(_ version: ManagedObjectModel, _ name: String, cats: Bool = false, _ plan: MigrationPlan) throws -> [String] {
    let store = MigratedStore.Place(.sqlite)
    try store.fill(version) { context in
      try context.add("Dog", "x", [name: "kept"])
      if cats { try context.add("Cat", "y") }
    }
    try PersistentStoreCoordinator.migratePersistentStore(store.description, with: plan)
    return try store.contents(plan.model)
  }

  @Test func theFilesOfAFolderBelongToTheVersionsWithTheirHashes() throws {
    let folder = TemporaryFolder(), zoo = try versions(in: folder)
    _ = try map(zoo[0], zoo[1], "b", .path(.source, "a"), hasCats: false).write(to: folder, "1 to 2")
    _ = try map(zoo[1], zoo[2], "b", .function("uppercase:", [.path(.source, "b")])).write(to: folder, "2 to 3")
    _ = try map(zoo[2], zoo[3], "d", .path(.source, "b"), cats: "Cat").write(to: folder, "3 to 4")
    // That of another model may have what isn't supported.
    _ = try mapping { $0.propertyFields = ["NSNewSetting": .integer(1)] }.write(to: folder, "Other")
    let plan = try MigrationPlan(versionsAt: folder.file("Zoo.xcdatamodeld"), mappingModelsAt: folder.path)
    #expect(try migrated(zoo[0], "a", plan) == ["Dog x: d=KEPT"])
    #expect(try migrated(zoo[1], "b", plan) == ["Dog x: d=KEPT"])
    #expect(try migrated(zoo[2], "b", cats: true, plan) == ["Cat y:", "Dog x: d=kept"])
  }

  @Test func aFileIsNotThatOfVersionsWhoseObjectsItWouldRemove() throws {
    let folder = TemporaryFolder(), zoo = try versions(in: folder)
    _ = try map(zoo[1], zoo[3], "d", .path(.source, "b")).write(to: folder, "2 to 4")
    let plan = try MigrationPlan(versionsAt: folder.file("Zoo.xcdatamodeld"), mappingModelsAt: folder.path)
    #expect(try migrated(zoo[1], "b", plan) == ["Dog x: d=kept"])
    #expect(try migrated(zoo[2], "b", cats: true, plan) == ["Cat y:", "Dog x: d=nil"])
  }

  /// The bug: the file belonged to the second version and the first, and a migration to the third removed the names.
  @Test func aFileThatFitsAPredecessorAndASuccessorIsThatOfTheSuccessor() throws {
    func dog(_ name: String) -> EntityDescription { EntityDescription("Dog", attributes: [.init(name, .string, isOptional: true)]) }
    let folder = TemporaryFolder(), zoo = try [model(dog("a")), model(dog("b")), model(dog("a"), EntityDescription("Cat"))]
    try write(zoo, to: folder)
    _ = try map(zoo[1], zoo[2], "a", .path(.source, "b"), hasCats: false).write(to: folder, "2 to 3")
    let plan = try MigrationPlan(versionsAt: folder.file("Zoo.xcdatamodeld"), mappingModelsAt: folder.path)
    #expect(try migrated(zoo[1], "b", plan) == ["Dog x: a=kept"])
  }

  // MARK: What isn't supported

  @Test func whatIsNotSupportedIsNamed() throws {
    typealias Change = (inout CompiledMapping) -> Void
    func fetch(_ mapping: CompiledMapping, _ request: TestExpression, _ fields: [String: PropertyList] = [:]) -> PropertyList {
      let context = TestExpression.path(.variable("manager"), "sourceContext")
      let parts = ["NSFRExpression": mapping.archive.code(request), "NSMOCExpression": mapping.archive.code(context)]
      return mapping.archive.instance("NSFetchRequestExpression", parts.merging(fields) { $1 })
    }
    func request(_ entity: String) -> TestExpression {
      .method(.variable("manager"), "fetchRequestForSourceEntityNamed:predicateString:", [.text(entity), .text("")])
    }
    var supported = CompiledMapping(old, new)
    supported.entityFields["NSSourceExpression"] = fetch(supported, request("Dog"))
    supported.map("Dog", to: "Dog")
    #expect(try MappingModelFile(bytes: supported.bytes).entityMappings.map(\.sourceFilter) == [nil])
    let dog = "entity mapping \"DogToDog\"", tag = "property \"tag\" of entity mapping \"DogToDog\""
    let cases: [(change: Change, code: ModelFileError.Code, element: String)] = [
      ({ $0.entityFields = ["NSSourceExpression": .uid(0)] }, .unsupported, dog),
      ({ $0.entityFields = ["NSSourceExpression": $0.archive.code(.source)] }, .unsupported, dog),
      ({ $0.entityFields = ["NSSourceExpression": fetch($0, request("Person"))] }, .unsupported, dog),
      ({ $0.entityFields = ["NSSourceExpression": fetch($0, request("Dog"), ["NSCountOnlyFlag": .bool(true)])] }, .unsupported, dog),
      ({ $0.entityFields = ["NSNewSetting": .integer(1)] }, .unsupported, dog),
      ({ $0.entityFields = ["NSSourceEntityVersionHash": .uid(0)] }, .malformed, dog),
      ({ $0.entityFields = ["NSDestinationEntityVersionHash": .integer(3)] }, .malformed, dog),
      ({ $0.entityFields = ["NSAttributeMappings": .integer(4)] }, .malformed, dog),
      ({ $0.entityFields = ["NSRelationshipMappings": $0.archive.list([.uid(0)])] }, .malformed, dog),
      ({ $0.entityFields = ["NSMappingName": .integer(4)] }, .malformed, "entity mapping 1"),
      ({ $0.entityFields = ["NSSourceEntityName": .uid(0), "NSDestinationEntityName": .uid(0)] }, .malformed, "entity mapping 1"),
      ({ $0.propertyFields = ["NSDestinationPropertyName": .uid(0)] }, .malformed, dog),
      ({ $0.propertyFields = ["NSNewSetting": .integer(1)] }, .unsupported, tag),
      ({ $0.propertyFields = ["NSPropertyTransforms": $0.archive.list([$0.archive.add(.integer(1))])] }, .unsupported, tag),
      ({ $0.propertyFields = ["NSValueExpression": $0.archive.instance("NSBlockExpression", [:])] }, .unsupported, tag),
    ]
    for (number, wrong) in cases.enumerated() {
      let bytes = mapping(wrong.change).bytes
      let error = #expect(throws: ModelFileError.self, "\(number)") { try MappingModelFile(bytes: bytes, path: "p") }
      #expect(error?.code == wrong.code && error?.path == "p" && error?.operation == "read the mapping model", "\(number): \(error as Any)")
      #expect(error?.element?.hasPrefix(wrong.element) == true, "\(number): \(error as Any)")
    }
  }

  @Test func otherArchivesAreRefused() throws {
    func code(_ bytes: [UInt8], _ options: ModelFileOptions = ModelFileOptions()) -> ModelFileError.Code? {
      do throws(ModelFileError) { _ = try MappingModelFile(bytes: bytes, options: options) } catch { return error.code }
      return nil
    }
    let archive = TestArchive()
    #expect(code(archive.bytes(root: archive.instance("NSManagedObjectModel", [:]))) == .notAModel)
    #expect(code(archive.bytes(root: .uid(0))) == .notAModel && code(PropertyList.array([]).binary) == .notAModel)
    #expect(code(Array("bplist00".utf8)) != nil && code(Array(mapping().bytes.dropLast(40))) != nil)
    let many = archive.instance("NSMappingModel", ["NSEntityMappings": archive.list([.uid(0)])])
    #expect(code(archive.bytes(root: many)) == .malformed)
    var options = ModelFileOptions()
    options.maximumByteCount = 1_000
    #expect(code(mapping().bytes, options) == .tooLarge)
    var twice = CompiledMapping(old, new)
    twice.map("Dog", to: "Dog")
    twice.old = new
    twice.map("Dog", to: "Dog", name: "again")
    #expect(code(twice.bytes) == .malformed)
  }

  /// A mapping that is listed often would be read as often.
  @Test func sharedMappingsAreBounded() throws {
    let archive = TestArchive(), hash = archive.add(.data([1])), name = archive.add(.string("A"))
    let request = TestExpression.method(
      .variable("manager"), "fetchRequestForSourceEntityNamed:predicateString:", [.text("A"), .text("TRUEPREDICATE")])
    let shared = archive.instance(
      "NSEntityMapping",
      [
        "NSSourceEntityName": name, "NSSourceEntityVersionHash": hash,
        "NSSourceExpression": archive.instance(
          "NSFetchRequestExpression",
          ["NSFRExpression": archive.code(request), "NSMOCExpression": archive.code(.path(.variable("manager"), "sourceContext"))]),
      ])
    let root = archive.instance("NSMappingModel", ["NSEntityMappings": archive.list(Array(repeating: shared, count: 20_000))])
    let error = #expect(throws: ModelFileError.self) { try MappingModelFile(bytes: archive.bytes(root: root)) }
    #expect(error?.code == .tooLarge, "\(error as Any)")
  }

  @Test func damageEndsInAnErrorOrAPlan() throws {
    let folder = TemporaryFolder(), whole = mapping().bytes, path = folder.file("Zoo.cdm")
    var random = SeededGenerator("Damage of compiled mapping models"), refused = 0
    let rounds = TestTier.count(1_000, full: 20_000)
    for _ in 0..<rounds {
      var bytes = whole
      for _ in 0..<Int.random(in: 1...3, using: &random) {
        let place = Int.random(in: bytes.indices, using: &random)
        bytes[place] = Bool.random(using: &random) ? UInt8.random(in: .min ... .max, using: &random) : bytes[bytes.count - 1 - place]
      }
      try TemporaryFolder.write(bytes, to: path)
      var plan = MigrationPlan(from: old)
      do { try plan.add(new, mappingModelsAt: [path], policies: ["Zoo.Policy": MappingPolicy()]) } catch {
        refused += 1
        #expect(error is MigrationError || error is ModelFileError, "HOLDFAST_SEED=\(random.seed) \(error)")
      }
    }
    #expect(refused > rounds / 10, "\(refused) of \(rounds)")
  }
}
