import Foundation
import HoldfastStore
import Testing

@Suite struct ModelTests {
  @Test func everyContradictionIsReportedAtOnceWithItsPath() throws {
    let entities = [
      EntityDescription(
        "Dog", attributes: [AttributeDescription("age", .integer16, default: .string("old")), AttributeDescription("AGE", .double)],
        relationships: [
          .toOne("owner", to: "Person", inverse: "dogs"), .toOne("vet", to: "Vet", inverse: "patients"),
          .toMany("toys", to: "Toy", inverse: "owner", minCount: 3, maxCount: 2),
        ], uniquenessConstraints: [["chip"]], indexes: [FetchIndexDescription("none", [])]),
      EntityDescription("Person", relationships: [.toMany("dogs", to: "Dog", inverse: "vet")]),
      EntityDescription("Toy", relationships: [.toOne("owner", to: "Person", inverse: "dogs")]),
      EntityDescription("2Fast"), EntityDescription("dog"),
    ]
    let error = try #require(throws: ModelError.self) { try ManagedObjectModel(entities: entities) }
    let paths = Set(error.problems.map(\.path))
    #expect(
      paths.isSuperset(of: [
        "dog", "2Fast", "Dog.AGE", "Dog.age", "Dog.owner", "Dog.vet", "Dog.toys", "Dog.chip", "Dog", "Person.dogs", "Toy.owner",
      ]))
    #expect(error.description.contains("Dog.vet: There is no entity Vet to lead to."))
  }

  @Test func whatIsAskedForByNameNeedsOne() throws {
    let error = try #require(throws: ModelError.self) {
      try ManagedObjectModel(
        entities: [
          EntityDescription("E", attributes: [AttributeDescription("a", .double)], indexes: [FetchIndexDescription("", ["a"])])
        ], configurations: [ConfigurationDescription("", [])], composites: [CompositeDescription("", [])],
        fetchRequestTemplates: [FetchRequestDescription("", entity: "E")])
    }
    #expect(error.problems.map(\.path).sorted() == ["E", "composite", "configuration ", "fetch request"], "\(error)")
  }

  @Test func slotsFollowTheOrderOfNamesAndNotOfDeclarations() throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Dog",
        attributes: [
          AttributeDescription("name", .string), AttributeDescription("Zebra", .string), AttributeDescription("age", .integer16),
        ],
        relationships: [.toOne("owner", to: "Person", inverse: "dogs"), .toMany("toys", to: "Toy", inverse: "dogs")]),
      EntityDescription("Person", relationships: [.toMany("dogs", to: "Dog", inverse: "owner")]),
      EntityDescription("Toy", relationships: [.toMany("dogs", to: "Dog", inverse: "toys")]),
    ])
    let dog = try #require(model.entity(named: "Dog"))
    #expect(dog.slots.map(\.name) == ["Zebra", "age", "name", "owner"])
    #expect(dog.toManyRelationships.map(\.name) == ["toys"])
    #expect(model.entities.map(\.name) == ["Dog", "Person", "Toy"])
    let toys = try #require(dog.relationship(named: "toys"))
    #expect(toys.isManyToMany && toys.namesLinks && model.inverse(of: toys)?.namesLinks == false)
  }

  @Test func entitiesAreNumberedWithoutRegardToCase() throws {
    let model = try ManagedObjectModel(entities: ["ComputeSync", "Computed", "alpha"].map { EntityDescription($0) })
    #expect(model.entities.map(\.name) == ["alpha", "Computed", "ComputeSync"])
  }

  @Test func aModelIsCodedAsItsDeclarations() throws {
    let model = try ManagedObjectModel(
      entities: [EntityDescription("Event", attributes: [AttributeDescription("timeStamp", .date, isOptional: true)])],
      versionIdentifiers: ["1"])
    let data = try JSONEncoder().encode(CodableModel(model))
    #expect(try JSONDecoder().decode(CodableModel.self, from: data).model == model)
  }

  @Test func theVersionHashIsThatOfCoreData() throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription("Event", attributes: [AttributeDescription("timeStamp", .date, isOptional: true)])
    ])
    let hash = model.entities[0].versionHash.map { String(format: "%02x", $0) }.joined()
    #expect(hash == "5431c046d30e7f32c2cc809958add1e7579ad104a3aa8fc4846e97d7af01cc79")
  }

  @Test func theVersionHashIgnoresDefaultsRulesAndIndexesAndNothingElse() throws {
    func hash(_ entity: EntityDescription) throws -> [UInt8] {
      try ManagedObjectModel(entities: [entity, EntityDescription("B", relationships: [.toMany("as", to: "A", inverse: "b")])]).entities[0]
        .versionHash
    }
    func entity(_ change: (inout EntityDescription) -> Void = { _ in }) -> EntityDescription {
      var entity = EntityDescription(
        "A", attributes: [AttributeDescription("x", .integer16)], relationships: [.toOne("b", to: "B", inverse: "as")])
      change(&entity)
      return entity
    }
    let plain = try hash(entity())
    #expect(try hash(entity { $0.attributes[0].defaultValue = .int16(3) }) == plain)
    #expect(try hash(entity { $0.relationships[0].deleteRule = .cascade }) == plain)
    #expect(try hash(entity { $0.indexes = [FetchIndexDescription("byX", ["x"])] }) == plain)
    #expect(try hash(entity { $0.attributes[0].isOptional = true }) != plain)
    #expect(try hash(entity { $0.attributes[0].type = .integer32 }) != plain)
    #expect(try hash(entity { $0.uniquenessConstraints = [["x"]] }) != plain)
    #expect(try hash(entity { $0.versionHashModifier = "2" }) != plain)
    #expect(try hash(entity { $0.relationships[0].isOptional = false }) != plain)
  }
}
