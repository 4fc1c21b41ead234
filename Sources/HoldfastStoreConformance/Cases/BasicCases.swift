import HoldfastStore

/// Tests the basics, which all other cases require: opening, saving, reading and relationships, each with a few rows.
enum BasicCases {
  static let all = [
    StoreConformanceCase("O2", "a store can be created and closed") { try $0.close($0.openNew(ConformanceModel.general)) },
    StoreConformanceCase("S10", "inserted rows can be fetched", insertedRows),
    StoreConformanceCase("R1", "inserted rows can be read by key", rowsByKey),
    StoreConformanceCase("S10", "rows can be updated and deleted", changedRows),
    StoreConformanceCase("L1", "the destinations of a one-to-many relationship can be read", oneToMany),
    StoreConformanceCase("L2", "a many-to-many relationship can be read from both sides", manyToMany),
    StoreConformanceCase("O5", "rows are still there after reopening", reopening),
  ]

  private static func companies(_ store: TestedStore) throws -> (graph: ExpectedGraph, keys: [ObjectKey]) {
    let graph = ExpectedGraph(store), keys = try store.keys("Company", 3)
    try store.save(graph) { edit in for key in keys { edit.insert("Company", key, ["name": .string("Company"), "size": .int32(7)]) } }
    return (graph, keys)
  }

  private static func insertedRows(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general), (graph, _) = try companies(store)
    try store.expectRows(store.fetch(store.plan("Company")), Array(graph.rows("Company").values), "the rows of Company")
  }

  private static func rowsByKey(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general), (graph, keys) = try companies(store)
    try store.expectRows(store.rows("Company", keys), Array(graph.rows("Company").values), "the rows of Company by key")
  }

  private static func changedRows(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general), (graph, keys) = try companies(store)
    try store.save(graph) { edit in
      edit.update("Company", keys[0], ["name": .string("Changed")])
      edit.delete("Company", keys[1])
    }
    try store.expectRows(store.fetch(store.plan("Company")), Array(graph.rows("Company").values), "the rows of Company after a change")
  }

  private static func oneToMany(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general), (graph, keys) = try companies(store)
    let person = try store.keys("Person", 1)[0]
    try store.save(graph) { $0.insert("Person", person, ["name": .string("Person"), "employer": .key(keys[1])]) }
    run.expectEqual(try store.targets("Company", "employees", keys), [[], [person], []], "the employees of three companies")
  }

  private static func manyToMany(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general), graph = ExpectedGraph(store)
    let person = try store.keys("Person", 1)[0], club = try store.keys("Club", 1)[0]
    try store.save(graph) { edit in
      edit.insert("Person", person, ["name": .string("Person")])
      edit.insert("Club", club, ["name": .string("Club")])
      edit.link("Person", "clubs", person, club)
    }
    run.expectEqual(try store.targets("Person", "clubs", [person]), [[club]], "the clubs of a person")
    run.expectEqual(try store.targets("Club", "members", [club]), [[person]], "the members of a club")
  }

  private static func reopening(_ run: CaseRun) throws {
    let place = try run.makePlace()
    let store = try run.open(place, ConformanceModel.general), (graph, _) = try companies(store)
    try run.close(store)
    let again = try run.open(place, ConformanceModel.general)
    try again.expectRows(again.fetch(again.plan("Company")), Array(graph.rows("Company").values), "the rows of Company after reopening")
  }
}
