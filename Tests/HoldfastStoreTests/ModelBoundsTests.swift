import HoldfastStore
import TestSupport
import Testing

/// Models come from files. Their size is limited, and checking one takes time proportional to its size.
@Suite struct ModelBoundsTests {
  private func chain(_ count: Int) -> [EntityDescription] {
    (0..<count).map { EntityDescription("E\($0)", superentity: $0 == 0 ? nil : "E\($0 - 1)") }
  }

  private func nested(_ count: Int, width: Int = 1, values: Int = 1) -> [CompositeDescription] {
    (0..<count).map { level in
      let elements: [AttributeDescription] =
        level == count - 1
        ? (0..<values).map { AttributeDescription("x\($0)", .string, isOptional: true) }
        : (0..<width).map { .composite("g\($0)", "C\(level + 1)", isOptional: true) }
      return CompositeDescription("C\(level)", elements)
    }
  }

  private func expectRefusal(
    _ entities: [EntityDescription], composites: [CompositeDescription] = [], _ words: String, location: SourceLocation = #_sourceLocation
  ) {
    let error = #expect(throws: ModelError.self, sourceLocation: location) {
      _ = try ManagedObjectModel(entities: entities, composites: composites)
    }
    #expect(error?.description.contains(words) == true, "\(String(describing: error))", sourceLocation: location)
  }

  @Test func inheritanceIsBounded() throws {
    #expect(try ManagedObjectModel(entities: chain(101)).entities.count == 101)
    expectRefusal(chain(102), "more than 100 superentities")
    expectRefusal(chain(4096), "more than 100 superentities")
    // A cycle is still reported as one.
    expectRefusal([EntityDescription("A", superentity: "B"), EntityDescription("B", superentity: "A")], "inherits from itself")
  }

  @Test func entitiesAndPropertiesAreBounded() throws {
    expectRefusal((0..<4097).map { EntityDescription("E\($0)") }, "4097 entities")
    func attributes(_ count: Int, _ prefix: String) -> [AttributeDescription] {
      (0..<count).map { AttributeDescription("\(prefix)\($0)", .integer64, isOptional: true) }
    }
    #expect(try ManagedObjectModel(entities: [EntityDescription("A", attributes: attributes(4096, "a"))]).entities[0].slots.count == 4096)
    expectRefusal([EntityDescription("A", attributes: attributes(4097, "a"))], "4097 properties")
    expectRefusal(
      [
        EntityDescription("A", attributes: attributes(4000, "a")),
        EntityDescription("B", superentity: "A", attributes: attributes(97, "b")),
      ],
      "4097 properties, including inherited ones")
  }

  /// Each entity has tables with all that it inherits.
  @Test func thePropertiesOfAllEntitiesTogetherAreBounded() throws {
    func family(
      _ count: Int, attributes: [AttributeDescription] = [], constraints: [[String]] = [], besides others: [EntityDescription] = []
    ) -> [EntityDescription] {
      [EntityDescription("A", attributes: attributes, uniquenessConstraints: constraints)]
        + (1..<count).map { EntityDescription("E\($0)", superentity: "A") } + others
    }
    let attributes = (0..<1_000).map { AttributeDescription("a\($0)", .integer64, isOptional: true) }
    let accepted = family(100, attributes: attributes), refused = family(4_096, attributes: attributes)
    #expect(try ManagedObjectModel(entities: accepted).entities[99].slots.count == 1_000)
    let limit = "the maximum is 1000000"
    expectRefusal(family(1_001, attributes: attributes), limit)
    expectRefusal(refused, limit)
    // With its tables, it would take 40 times as long as the accepted model.
    expectCost(below: 10, times: { processorTime { _ = try? ManagedObjectModel(entities: accepted) } }) {
      processorTime { _ = try? ManagedObjectModel(entities: refused) }
    }
    expectRefusal(family(1_001, attributes: [attributes[0]], constraints: Array(repeating: ["a0"], count: 1_000)), limit)
    let links = (0..<1_000).map { RelationshipDescription.toMany("l\($0)", to: "A", inverse: nil) }
    expectRefusal(family(1_001, besides: [EntityDescription("Z", relationships: links)]), limit)
    expectRefusal(
      family(300, attributes: [.composite("c", "C0", isOptional: true)]), composites: nested(1, values: 4_000), limit)
  }

  /// The bug: each name was compared with all former ones.
  @Test func manyConfigurationsAreCheckedInTimeProportionalToTheirNumber() throws {
    let configurations = (0..<50_000).map { ConfigurationDescription("C\($0)", []) }
    #expect(try ManagedObjectModel(entities: [], configurations: configurations).configurations.count == 50_000)
    func time(_ count: Int) throws -> Duration {
      let first = Array(configurations.prefix(count))
      return try processorTime { _ = try ManagedObjectModel(entities: [], configurations: first) }
    }
    // Comparisons of each name with all former ones would take a hundred times as long.
    try expectCost(below: 40, times: { try time(5_000) }) { try time(50_000) }
    let error = #expect(throws: ModelError.self) {
      try ManagedObjectModel(entities: [], configurations: configurations + [configurations[7]])
    }
    #expect(error?.problems.map(\.path) == ["configuration C7"])
  }

  /// `Regex` compiles character classes recursively.
  @Test func patternsAreBounded() throws {
    func entity(_ pattern: String) -> [EntityDescription] {
      [EntityDescription("A", attributes: [AttributeDescription("a", .string, isOptional: true, validation: .pattern(pattern))])]
    }
    func nested(_ count: Int, _ text: String = "a") -> String {
      String(repeating: "[", count: count) + text + String(repeating: "]", count: count)
    }
    let accepted = [
      // A typical pattern for mail addresses has many classes, with characters that have another meaning elsewhere.
      "(?:[a-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*@(?:"
        + String(repeating: "[a-z0-9](?:[a-z0-9-]*[+*/^])?\\.", count: 20)
        + "[a-z]))",
      String(repeating: "a--b&&c~~[\\[\\]]", count: 100), String(repeating: "[\\p{L}\\x{41}]", count: 100),
      nested(24), String(repeating: "[a-z]", count: 500), String(repeating: "\\[", count: 100) + nested(2), "[[:alpha:]][^a]*",
      String(repeating: "a", count: 10_000),
    ]
    for pattern in accepted {
      #expect(throws: Never.self, "\(pattern.prefix(40))") { _ = try ManagedObjectModel(entities: entity(pattern)) }
    }
    let refused = [
      nested(25), nested(5000), nested(100_000), String(repeating: "[\\Q]\\E", count: 5000), String(repeating: "[^]", count: 5000),
      String(repeating: "[]", count: 4999) + "a", "(?x)" + String(repeating: "[#]\n", count: 2000),
      String(repeating: "[\\N{]}", count: 1400), String(repeating: "[\\c]", count: 2000), String(repeating: "[\\C-]", count: 1500),
      String(repeating: "[\\x{]}", count: 1400), String(repeating: "[a]\u{301}", count: 1400), String(repeating: "[\\p{]}", count: 1400),
      String(repeating: "(?#[)]", count: 1000), String(repeating: "(?i-sx:[ ]", count: 900),
      "[a" + String(repeating: "&&b", count: 3000) + "]", "[a" + String(repeating: "--b", count: 25) + "]",
    ]
    for pattern in refused {
      expectRefusal(entity(pattern), pattern.utf8.count > 10_000 ? "the maximum is 10000" : "nested character classes")
    }
  }

  @Test func compositesAreBounded() throws {
    let entity = EntityDescription("A", attributes: [.composite("c", "C0", isOptional: true)])
    #expect(try ManagedObjectModel(entities: [entity], composites: nested(32)).entities[0].slots.count == 1)
    expectRefusal([entity], composites: nested(33), "nested more than 32 deep")
    expectRefusal([entity], composites: nested(4096), "nested more than 32 deep")
    // Nested groups multiply, even without values.
    expectRefusal([entity], composites: nested(20, width: 2), "more than 4096 values")
    expectRefusal([entity], composites: nested(20, width: 2, values: 0), "more than 4096 values")
    let several = EntityDescription("A", attributes: (0..<3).map { .composite("c\($0)", "C0", isOptional: true) })
    expectRefusal([several], composites: nested(2, values: 4000), "values; the maximum is 8192")
  }
}
