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
    #expect(error.description.contains("Dog.vet: The destination entity Vet doesn't exist."))
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

  @Test func anIndexOfAModelMadeInCodeIsCheckedUnlessItIsIgnored() throws {
    func model(isIgnored: Bool) throws -> ManagedObjectModel {
      try ManagedObjectModel(
        entities: [
          EntityDescription(
            "E", attributes: [AttributeDescription("a", .double)], relationships: [.toMany("many", to: "E", inverse: nil)],
            indexes: [
              FetchIndexDescription("byA", ["a"]),
              FetchIndexDescription("byA", elements: [FetchIndexElement("a", isAscending: false)], isIgnored: isIgnored),
              FetchIndexDescription("byMany", elements: [FetchIndexElement("many")], isIgnored: isIgnored),
            ])
        ])
    }
    let error = try #require(throws: ModelError.self) { try model(isIgnored: false) }
    #expect(error.problems.map(\.path) == ["E.many", "E.byA"], "\(error)")
    let kept = try model(isIgnored: true)
    #expect(kept.entities[0].indexes == [FetchIndexDescription("byA", ["a"])])
    // Stores keep the declaration in their copy of the model.
    #expect(try ManagedObjectModel.decoded(canonicalJSON: kept.canonicalJSON()) == kept)
    #expect(kept.declarations[0].indexes.map(\.isIgnored) == [false, true, true])
  }

  /// The bug: the JSON named the descending elements by their properties, so each element with that property became descending.
  @Test func anIndexMayNameAPropertySeveralTimes() throws {
    let elements = [
      FetchIndexElement("a"), FetchIndexElement("b", isAscending: false), FetchIndexElement("a", isAscending: false, kind: .rTree),
    ]
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "E", attributes: [AttributeDescription("a", .double), AttributeDescription("b", .double)],
        indexes: [FetchIndexDescription("twice", elements: elements), FetchIndexDescription("once", elements: Array(elements.dropFirst()))])
    ])
    let json = try model.canonicalJSON(), text = String(decoding: json, as: UTF8.self)
    let again = try ManagedObjectModel.decoded(canonicalJSON: json)
    #expect(again == model && again.declarations[0].indexes[0].elements == elements, "\(text)")
    #expect(text.contains(#"{"descending":["b","a"],"name":"once","properties":["b","a"],"rTree":["a"]}"#), "\(text)")
  }

  @Test func aTransientRelationshipIsNothingThatStoresOrVersionsKnow() throws {
    func model(_ transient: [RelationshipDescription]) throws -> ManagedObjectModel {
      try ManagedObjectModel(entities: [
        EntityDescription(
          "A", attributes: [AttributeDescription("n", .integer16)],
          relationships: [.toOne("b", to: "B", inverse: "as"), .toMany("ones", to: "A", inverse: nil)] + transient),
        EntityDescription(
          "B", superentity: "A", relationships: [.toMany("as", to: "A", inverse: "b"), .toOne("z", to: "A", inverse: nil)]),
      ])
    }
    let transient: [RelationshipDescription] = [
      .toOne("best", to: "B", inverse: nil, isTransient: true), .toMany("all", to: "A", inverse: "all", isTransient: true, isOrdered: true),
    ]
    let (plain, with) = (try model([]), try model(transient))
    #expect(with.versionChecksum == plain.versionChecksum && with.layoutDigest == plain.layoutDigest)
    #expect(
      with.entities.map(\.slots) == plain.entities.map(\.slots) && with.entities.map(\.relationships) == plain.entities.map(\.relationships)
    )
    #expect(
      with.orderedRelationships.isEmpty
        && with.entities.allSatisfy { $0.linksWithoutInverse == plain.entities[$0.index].linksWithoutInverse })
    for entity in with.entities {
      #expect(entity.transientRelationships.map(\.name) == ["all", "best"] && entity.transientRelationships.map(\.index) == [0, 1])
      #expect(
        entity.relationship(named: "best") == nil
          && entity.property(named: "best") == .transientRelationship(entity.transientRelationships[1]))
      #expect(entity.property(named: "all")?.slot == nil && entity.slot(named: "best") == nil)
      #expect(entity.transientRelationships[0].isReflexive && with.inverse(of: entity.transientRelationships[0])?.name == "all")
      #expect(with.inverse(of: entity.transientRelationships[1]) == nil)
    }
    #expect(try ManagedObjectModel.decoded(canonicalJSON: with.canonicalJSON()) == with)
    #expect(!String(decoding: try plain.canonicalJSON(), as: UTF8.self).contains("isTransient"))
  }

  @Test func whatIsTransientCannotBeWhatStoresNeed() throws {
    let error = try #require(throws: ModelError.self) {
      try ManagedObjectModel(entities: [
        EntityDescription(
          "A",
          attributes: [
            .derived("count", .integer64, "many.@count"), .derived("copy", .string, "one.name"), AttributeDescription("name", .string),
          ],
          relationships: [
            .toMany("many", to: "A", inverse: "one", isTransient: true), .toOne("one", to: "A", inverse: "many"),
            .toOne("other", to: "A", inverse: nil, isTransient: true),
          ], uniquenessConstraints: [["other"]], indexes: [FetchIndexDescription("byOther", ["other"])])
      ])
    }
    let problems = error.problems.map(\.description)
    #expect(problems.count { $0.contains("Only one of this relationship and its inverse") } == 2, "\(problems)")
    #expect(problems.contains { $0.contains("The stored to-many relationship many doesn't exist.") })
    #expect(problems.count { $0.contains("A.other") } == 2, "\(problems)")
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
    #expect(try hash(entity { $0.relationships[0].isOrdered = true }) != plain)
  }

  /// The bug: decimals, and whole numbers that aren't floating-point numbers, weren't compared.
  @Test(
    arguments: [
      (.integer16, .int16(1), .int16(2)), (.integer64, .int64(.max - 1), .int64(.max)), (.double, .double(0.5), .double(0.75)),
      (.decimal, .decimal(-1), .decimal(1)), (.date, .date(0), .date(1)),
    ] as [(AttributeType, StoreValue, StoreValue)]) func aMinimumIsNotGreaterThanTheMaximum(
      _ type: AttributeType, _ small: StoreValue, _ large: StoreValue
    ) throws
  {
    func model(_ validation: AttributeValidation) throws -> ManagedObjectModel {
      try ManagedObjectModel(entities: [EntityDescription("E", attributes: [AttributeDescription("a", type, validation: validation)])])
    }
    for bounds in [(small, large), (small, small), (large, large)] {
      #expect(throws: Never.self) { try model(.range(bounds.0, bounds.1)) }
    }
    let error = try #require(throws: ModelError.self) { try model(.range(large, small)) }
    #expect(error.problems.map(\.path) == ["E.a"], "\(error)")
  }

  /// The bug: version hashes distinguish to-one and to-many relationships only by the maximum count. With a maximum of 0, both had the
  /// same hash, so a store of one was opened with the other, whose rows have other slots.
  @Test(arguments: [0, -1, 2, 9]) func aToOneRelationshipHasAMaximumCountOfOne(_ count: Int) throws {
    func model(_ relationship: RelationshipDescription) throws -> ManagedObjectModel {
      try ManagedObjectModel(entities: [EntityDescription("A", relationships: [relationship]), EntityDescription("B")])
    }
    var one = RelationshipDescription.toOne("b", to: "B", inverse: nil)
    let many = try model(.toMany("b", to: "B", inverse: nil, maxCount: count))
    #expect(try model(one).versionDigest != many.versionDigest)
    one.maxCount = count
    let error = try #require(throws: ModelError.self) { try model(one) }
    #expect(error.problems.map(\.path) == ["A.b"], "\(error)")
    // Core Data reads a maximum of 1 as a to-one relationship.
    #expect(throws: ModelError.self) { try model(.toMany("b", to: "B", inverse: nil, maxCount: 1)) }
  }

  @Test func onlyToManyRelationshipsHaveAnOrder() throws {
    var one = RelationshipDescription.toOne("one", to: "A", inverse: nil), brief = one
    one.isOrdered = true
    (brief.name, brief.isOrdered, brief.isTransient) = ("brief", true, true)
    let many = RelationshipDescription.toMany("many", to: "A", inverse: nil, isOrdered: true)
    let model = try ManagedObjectModel(entities: [EntityDescription("A", relationships: [one, many, brief])])
    #expect(model.orderedRelationships.map(\.name) == ["many"])
    #expect(model.entities[0].relationships.map(\.isOrdered) == [true, false])
    #expect(!model.entities[0].transientRelationships[0].isOrdered)
    #expect(model.declarations[0].relationships.map(\.isOrdered) == [true, true, true])
  }
}
