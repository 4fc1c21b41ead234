import Foundation
import HoldfastStore
import SQLiteTestSupport
import TestSupport
import Testing

@testable import HoldfastSQLiteStore

/// Models whose components would have the same name in a file.
@Suite struct IndexNameTests {
  private let folder: TemporaryFolder

  init() throws { folder = TemporaryFolder() }

  private static let attributes = ["a", "b", "a_b"].map { AttributeDescription($0, .integer64, isOptional: true) }

  private static func entity(
    _ name: String, unique: [[String]] = [], indexes: [FetchIndexDescription] = []
  ) -> EntityDescription { EntityDescription(name, attributes: attributes, uniquenessConstraints: unique, indexes: indexes) }

  static let models: [(entities: [EntityDescription], names: [String])] = [
    ([entity("E", unique: [["a_b"], ["a", "b"]])], ["Z_E_UNIQUE_a_b", "Z_E_UNIQUE_a_b_2"]),
    ([entity("E", unique: [["a"], ["a"]])], ["Z_E_UNIQUE_a"]),
    ([entity("E", unique: [["a"]], indexes: [FetchIndexDescription("UNIQUE_a", ["b"])])], ["Z_E_UNIQUE_a", "Z_E_UNIQUE_a_2"]),
    (
      [entity("A", indexes: [FetchIndexDescription("b_c", ["a"])]), entity("A_b", indexes: [FetchIndexDescription("c", ["a"])])],
      ["Z_A_b_c", "Z_A_b_c_2"]
    ),
    // The constraint keeps its name although the index comes first.
    (
      [entity("A", indexes: [FetchIndexDescription("b_UNIQUE_a", ["b"])]), entity("A_b", unique: [["a"]])],
      ["Z_A_b_UNIQUE_a", "Z_A_b_UNIQUE_a_2"]
    ),
    // SQLite compares names case-insensitively, including those of tables.
    (
      [entity("A", indexes: [FetchIndexDescription("B_C", ["a"])]), entity("A_b", indexes: [FetchIndexDescription("c", ["a"])])],
      ["Z_A_B_C", "Z_A_b_c_2"]
    ),
    ([entity("A", indexes: [FetchIndexDescription("b", ["a"])]), entity("_A_B")], ["Z_A_b_2"]),
    // Index names can contain any text.
    (
      [entity("E", indexes: ["x\0y", "x_y", "\";--", "ä ON E"].map { FetchIndexDescription($0, ["a"]) })],
      ["Z_E_\";--", "Z_E_x_y", "Z_E_x_y_2", "Z_E_ä ON E"]
    ),
    (
      [entity("E", indexes: [FetchIndexDescription(String(repeating: "n", count: 10_000), ["a"])])],
      ["Z_E_" + String(repeating: "n", count: 10_000)]
    ),
  ]

  private func indexes() throws -> [String] {
    try SQL.rows(folder.file(), "SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL ORDER BY name").map {
      $0[0]
    }
  }

  @Test(arguments: models.indices) func `indexes with colliding names get unique names, and reopening the file finds them`(_ number: Int)
    throws
  {
    let (entities, names) = Self.models[number]
    let model = try ManagedObjectModel(entities: entities)
    try StoreUnderTest(folder, model).store.close()
    #expect(try indexes() == names)
    let bytes = try Data(contentsOf: URL(fileURLWithPath: folder.file()))
    try StoreUnderTest(folder, model).store.close()
    #expect(try Data(contentsOf: URL(fileURLWithPath: folder.file())) == bytes)
  }

  @Test func `constraints with colliding index names are both enforced`() throws {
    let tested = try StoreUnderTest(folder, try ManagedObjectModel(entities: Self.models[0].entities))
    try tested.insert("E", [["a": .int64(1), "b": .int64(1), "a_b": .int64(1)]])
    #expect(try thrown { try tested.insert("E", [["a": .int64(1), "b": .int64(1), "a_b": .int64(2)]]) }.code == .constraintConflict)
    #expect(try thrown { try tested.insert("E", [["a": .int64(2), "b": .int64(1), "a_b": .int64(1)]]) }.code == .constraintConflict)
    try tested.insert("E", [["a": .int64(2), "b": .int64(1), "a_b": .int64(2)]])
  }

  @Test func `a new index of a model doesn't take the name of an existing index`() throws {
    func model(_ indexes: [FetchIndexDescription]) throws -> ManagedObjectModel {
      try ManagedObjectModel(entities: [
        Self.entity("A", indexes: indexes), Self.entity("A_b", indexes: [FetchIndexDescription("c", ["a"])]),
      ])
    }
    try StoreUnderTest(folder, try model([])).store.close()
    #expect(try indexes() == ["Z_A_b_c"])
    for _ in 0..<2 {
      try StoreUnderTest(folder, try model([FetchIndexDescription("b_c", ["b"])])).store.close()
      let tables = try SQL.rows(folder.file(), "SELECT name, tbl_name FROM sqlite_master WHERE type = 'index' ORDER BY name")
      #expect(tables == [["Z_A_b_c", "ZA_B"], ["Z_A_b_c_2", "ZA"]])
    }
  }

  @Test func `a model that needs the same table or column twice is refused with both names`() throws {
    func refusal(_ entities: [EntityDescription]) throws -> StoreError {
      try thrown { _ = try StoreUnderTest(folder, try ManagedObjectModel(entities: entities), name: UUID().uuidString) }
    }
    // The join table is named after one of the two sides, so the other name is available.
    let tables = ["_2BS", "_3MANY"].compactMap { name in
      try? refusal([
        EntityDescription(name), EntityDescription("A", relationships: [.toMany("bs", to: "B", inverse: "many")]),
        EntityDescription("B", relationships: [.toMany("many", to: "A", inverse: "bs")]),
      ])
    }
    #expect(tables.count == 1 && tables[0].code == .unsupportedModel && tables[0].reason.contains("the entity _"))
    #expect(tables[0].reason.contains("the relationship A.bs") || tables[0].reason.contains("the relationship B.many"), "\(tables)")
    let system = try refusal([EntityDescription("A", attributes: [AttributeDescription("_ent", .string)])])
    #expect(system.code == .unsupportedModel && system.reason.contains("the store itself and by A._ent"), "\(system)")
  }

  @Test func `an entity with SQLite's maximum number of columns is stored, and one with more is refused with the limit`() throws {
    func model(_ count: Int) throws -> ManagedObjectModel {
      try ManagedObjectModel(entities: [
        EntityDescription("Wide", attributes: (0..<count).map { AttributeDescription("a\($0)", .integer64, isOptional: true) })
      ])
    }
    let widest = try StoreUnderTest(folder, try model(1997))
    try widest.insert("Wide", [["a0": .int64(1), "a1996": .int64(2)]])
    #expect(try widest.value("Wide", 1, "a1996") == .int64(2))
    try widest.update("Wide", [(key: 1, expected: 1, values: ["a5": .int64(3)], changed: (0..<1997).map { "a\($0)" })])
    #expect(try widest.value("Wide", 1, "a5") == .int64(3))
    let error = try thrown { _ = try StoreUnderTest(folder, try model(1998), name: "wider") }
    #expect(error.code == .unsupportedModel && error.reason.contains("Wide") && error.reason.contains("2000"), "\(error)")
  }

  @Test func `a statement that is too long for SQLite is an error about the model`() throws {
    let names = (0..<150).map { String(repeating: "n", count: 9000) + "\($0)" }
    let model = try ManagedObjectModel(entities: [
      EntityDescription("Long", attributes: names.map { AttributeDescription($0, .integer64, isOptional: true) })
    ])
    #expect(try thrown { _ = try StoreUnderTest(folder, model) }.code == .unsupportedModel)
  }

  @Test func `a family with SQLite's maximum number of columns is stored`() throws {
    func entity(_ name: String, _ columns: Range<Int>, of superentity: String? = nil) -> EntityDescription {
      EntityDescription(
        name, superentity: superentity, attributes: columns.map { AttributeDescription("a\($0)", .integer64, isOptional: true) })
    }
    let tested = try StoreUnderTest(
      folder,
      try ManagedObjectModel(entities: [
        entity("Whole", 0..<1000), entity("Left", 1000..<1500, of: "Whole"), entity("Right", 1500..<1997, of: "Whole"),
      ]))
    try tested.insert("Left", [["a0": .int64(1), "a1499": .int64(2)]])
    try tested.insert("Right", [["a0": .int64(3), "a1996": .int64(4)]])
    let whole = try tested.entity("Whole")
    let rows = try tested.fetch(FetchPlan(entity: whole.index, concreteEntities: whole.concreteIndexes, predicate: nil))
    #expect(rows.compactMap { $0[0] }.count == 2)
    #expect(try tested.value("Right", 2, "a1996") == .int64(4))
  }

  @Test func `a model with random names can be opened and saved to, or is refused as a model`() throws {
    let seed = UInt64.random(in: 0...1_000_000)
    var random = SeededGenerator(seed: seed)
    var opened = 0
    for round in 0..<150 {
      guard let model = Self.randomModel(&random) else { continue }
      do {
        let tested = try StoreUnderTest(folder, model, name: "\(round)")
        for entity in model.entities where !entity.isAbstract { try tested.insert(entity.name, [[:]]) }
        try tested.store.close()
        let again = try StoreUnderTest(folder, model, name: "\(round)")
        for entity in model.entities where !entity.isAbstract { #expect(try again.all(entity.name).count == 1, "seed \(seed)") }
        opened += 1
      } catch let error as StoreError {
        #expect(error.code == .unsupportedModel && error.cause == nil, "seed \(seed), round \(round): \(error)")
      }
    }
    #expect(opened > 0, "seed \(seed)")
  }

  /// A model with frequent name collisions; nil if the declarations contradict each other.
  private static func randomModel(_ random: inout SeededGenerator) -> ManagedObjectModel? {
    let names = ["A", "B", "A_B", "_A", "_2A", "_2B", "_1A", "_3B", "_1A_B", "A1", "A_UNIQUE_a"].shuffled(using: &random)
    var pools = (0..<3).map { _ in
      ["a", "b", "a_b", "_a", "a1", "b1", "a_1", "_2a", "_1b", "fok_a", "_fok_a", "_fok_2a", "ent", "opt1", "pk"].shuffled(using: &random)
    }
    var entities = (0..<3).map { index in
      let attributes = (0..<3).compactMap { _ in pools[index].popLast() }
      return EntityDescription(
        names[index], attributes: attributes.map { AttributeDescription($0, .integer64, isOptional: true) },
        uniquenessConstraints: (0..<2).map { _ in attributes.shuffled(using: &random).dropLast(Int.random(in: 0...2, using: &random)) },
        indexes: ["UNIQUE_a", "b_a", "B_A"].filter { _ in Bool.random(using: &random) }.map { FetchIndexDescription($0, [attributes[0]]) })
    }
    if Int.random(in: 0..<4, using: &random) == 0 { entities[1].superentity = entities[0].name }
    for _ in 0..<2 {
      let (source, target) = (Int.random(in: 0..<3, using: &random), Int.random(in: 0..<3, using: &random))
      guard let there = pools[source].popLast(), let back = pools[target].popLast() else { continue }
      let isOrdered = Bool.random(using: &random), isAlone = Int.random(in: 0..<4, using: &random) == 0
      entities[source].relationships.append(
        .toMany(there, to: entities[target].name, inverse: isAlone ? nil : back, isOrdered: isOrdered))
      if isAlone { continue }
      entities[target].relationships.append(
        Bool.random(using: &random)
          ? .toOne(back, to: entities[source].name, inverse: there) : .toMany(back, to: entities[source].name, inverse: there))
    }
    return try? ManagedObjectModel(entities: entities)
  }
}
