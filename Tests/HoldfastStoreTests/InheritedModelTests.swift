import Foundation
import HoldfastStore
import Testing

/// Entities with inheritance.
@Suite struct InheritedModelTests {
  private static let animals = [
    EntityDescription("zebra", superentity: "Animal"),
    EntityDescription(
      "Bird", superentity: "Animal", attributes: [AttributeDescription("age", .integer16), AttributeDescription("Wing", .double)]),
    EntityDescription("Abbot", attributes: [AttributeDescription("name", .string)]),
    EntityDescription(
      "Parrot", superentity: "Bird", attributes: [AttributeDescription("aaa", .string)],
      relationships: [.toOne("friend", to: "Abbot", inverse: "parrots"), .toMany("pupils", to: "Abbot", inverse: "teachers")]),
    EntityDescription(
      "Animal", isAbstract: true, attributes: [AttributeDescription("name", .string)],
      relationships: [.toMany("keepers", to: "Keeper", inverse: "animals")], uniquenessConstraints: [["name"]]),
    EntityDescription("Keeper", relationships: [.toMany("animals", to: "Animal", inverse: "keepers")]),
  ]

  private func model() throws -> ManagedObjectModel {
    var entities = Self.animals
    entities[2].relationships = [.toMany("parrots", to: "Parrot", inverse: "friend"), .toMany("teachers", to: "Parrot", inverse: "pupils")]
    return try ManagedObjectModel(entities: entities)
  }

  @Test func aFamilyStandsTogetherInTheOrderOfCoreDatasNumbers() throws {
    let model = try model()
    #expect(model.entities.map(\.name) == ["Abbot", "Animal", "Bird", "Parrot", "zebra", "Keeper"])
    let animal = try #require(model.entity(named: "Animal")), parrot = try #require(model.entity(named: "Parrot"))
    #expect(animal.familyIndexes == 1..<5 && animal.concreteIndexes == [2, 3, 4] && parrot.familyIndexes == 3..<4)
    #expect(parrot.rootIndex == animal.index && parrot.superentityIndex == 2 && animal.superentityIndex == nil)
    #expect(parrot.isKind(of: animal) && !animal.isKind(of: parrot))
  }

  @Test func slotsAndRelationshipsOfASuperEntityAreAPrefixOfEachSubentitys() throws {
    let model = try model()
    let parrot = try #require(model.entity(named: "Parrot")), bird = try #require(model.entity(named: "Bird"))
    #expect(parrot.slots.map(\.name) == ["name", "Wing", "age", "aaa", "friend"])
    #expect(Array(parrot.layout.columns.prefix(3)) == bird.layout.columns)
    #expect(parrot.relationships.map(\.name) == ["keepers", "friend", "pupils"])
    #expect(parrot.toManyRelationships.map(\.toManyIndex) == [0, 1])
    #expect(parrot.relationship(named: "keepers") == model.entity(named: "Animal")?.relationship(named: "keepers"))
    #expect(parrot.ownRelationships.map(\.name) == ["friend", "pupils"] && bird.ownRelationships.isEmpty)
    let pupils = try #require(parrot.relationship(named: "pupils"))
    let teachers = try #require(model.inverse(of: pupils))
    #expect(teachers.name == "teachers" && model.inverse(of: teachers) == pupils)
    #expect(parrot.uniqueSlots == [[0]] && parrot.inheritedConstraintCount == 1)
  }

  @Test func aSubentityEarlyInTheAlphabetNamesLinksInThePlaceOfThoseAboveIt() throws {
    // Kennel comes before Zoo, but Ape, under Zoo, moves Zoo forward.
    let model = try ManagedObjectModel(entities: [
      EntityDescription("Zoo", relationships: [.toMany("kennels", to: "Kennel", inverse: "zoos")]),
      EntityDescription("Kennel", relationships: [.toMany("zoos", to: "Zoo", inverse: "kennels")]),
      EntityDescription("Ape", superentity: "Zoo"),
    ])
    #expect(model.entity(named: "Zoo")?.relationship(named: "kennels")?.namesLinks == true)
    #expect(model.entity(named: "Kennel")?.relationship(named: "zoos")?.namesLinks == false)
  }

  /// Hashes that Core Data wrote into a store of the objc.io book's sample project.
  @Test func versionHashesOfAFamilyAreThoseOfCoreData() throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "GeographicRegion", isAbstract: true,
        attributes: [
          AttributeDescription("markedForDeletionDate", .date, isOptional: true), AttributeDescription("numberOfMoods", .integer64),
          AttributeDescription("numericISO3166Code", .integer16), AttributeDescription("uniquenessDummy", .integer16),
          AttributeDescription("updatedAt", .date),
        ], uniquenessConstraints: [["numericISO3166Code", "uniquenessDummy"]]),
      EntityDescription(
        "Continent", superentity: "GeographicRegion", attributes: [AttributeDescription("numberOfCountries", .integer64)],
        relationships: [.toMany("countries", to: "Country", inverse: "continent", isOptional: false)]),
      EntityDescription(
        "Country", superentity: "GeographicRegion",
        relationships: [
          .toOne("continent", to: "Continent", inverse: "countries"), .toMany("moods", to: "Mood", inverse: "country", isOptional: false),
        ]),
      EntityDescription("Mood", relationships: [.toOne("country", to: "Country", inverse: "moods")]),
    ])
    func hash(_ name: String) -> String? { model.entity(named: name)?.versionHash.map { String(format: "%02x", $0) }.joined() }
    #expect(hash("GeographicRegion") == "c0e025164cb30e0c0736b581b14a9e832c948d9cbd6c58e189370e3c6afd6aa9")
    #expect(hash("Continent") == "195eb3f2c5c16adf08c7d7aad5ae09d6e84d4dcf00c9a7fa4157a83879b6b7ab")
    #expect(hash("Country") == "2ba027cc056ea4bd998833e904586241e1ee53afb33926c24ee9910d995fb001")
  }

  @Test func contradictionsOfInheritanceAreReportedWithTheirPaths() throws {
    let error = try #require(throws: ModelError.self) {
      try ManagedObjectModel(entities: [
        EntityDescription("Orphan", superentity: "Nobody"), EntityDescription("Self", superentity: "Self"),
        EntityDescription("A", superentity: "C"), EntityDescription("B", superentity: "A"), EntityDescription("C", superentity: "B"),
        EntityDescription(
          "Top", attributes: [AttributeDescription("name", .string)], relationships: [.toOne("x", to: "Y", inverse: "tops")]),
        EntityDescription("Below", superentity: "Top", attributes: [AttributeDescription("Name", .string)]),
        EntityDescription("Y", relationships: [.toMany("tops", to: "Below", inverse: "x")]),
      ])
    }
    let found = Dictionary(error.problems.map { ($0.path, $0.reason) }, uniquingKeysWith: { a, _ in a })
    #expect(found["Orphan"]?.contains("superentity Nobody doesn't exist") == true)
    #expect(found["Self"]?.contains("inherits from itself") == true)
    #expect(["A", "B", "C"].allSatisfy { found[$0]?.contains("inherits from itself") == true })
    #expect(found["Below.Name"] == "The superentity Top has a property with this name. Rename one of them.")
    #expect(found["Y.tops"]?.contains("declared by Top") == true && found["Y.tops"]?.contains("Set the destination to Top.") == true)
  }

  @Test func aModelWithInheritanceIsCodedAsItsDeclarations() throws {
    let model = try model()
    let decoded = try JSONDecoder().decode(CodableModel.self, from: JSONEncoder().encode(CodableModel(model))).model
    #expect(decoded == model && decoded.entities.map(\.versionHash) == model.entities.map(\.versionHash))
  }
}
