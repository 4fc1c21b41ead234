import HoldfastStore

/// Tests rule S11 of the store contract: references to a deleted row, for each delete rule and each shape of relationship.
enum SeveringCases {
  static let all =
    DeleteRule.allCases.flatMap { rule in
      Shape.allCases.map { shape in
        StoreConformanceCase("S11", "deleting the object of a \(shape.rawValue) relationship with rule \(rule.rawValue)") {
          try deleteOne(rule, shape, $0)
        }
      }
    } + [
      StoreConformanceCase("S11", "references are removed after the updates of the same save", afterUpdates),
      StoreConformanceCase("S11", "deleting both sides in one save", bothSides),
      StoreConformanceCase("S11", "many deletions in one save", manyDeletions),
      StoreConformanceCase("L3", "a deleted source has no destinations, even if references to it are kept", keptReferences),
    ]

  private enum Shape: String, CaseIterable {
    case oneToOne = "one-to-one"
    case oneToMany = "one-to-many"
    case manyToMany = "many-to-many"
    case fromOtherSide = "many-to-many (named from the other side)"
    case toItself = "many-to-many to itself"
  }

  private struct Hubs {
    let store: TestedStore
    let graph: ExpectedGraph
    let hubs: [ObjectKey]
    let spokes: [ObjectKey]
    let above: [ObjectKey]
  }

  private static func make(_ rule: DeleteRule, _ run: CaseRun) throws -> Hubs {
    let store = try run.openNew(ConformanceModel.deleteRule(rule))
    let graph = ExpectedGraph(store)
    let hubs = try store.keys("Hub", 5), spokes = try store.keys("Spoke", 8), above = try store.keys("Above", 3)
    try store.save(graph) { edit in
      for key in hubs { edit.insert("Hub", key, ["name": .string("Hub \(key)")]) }
      for key in spokes { edit.insert("Spoke", key, ["name": .string("Spoke \(key)")]) }
      for key in above { edit.insert("Above", key, ["name": .string("Above \(key)")]) }
    }
    return Hubs(store: store, graph: graph, hubs: hubs, spokes: spokes, above: above)
  }

  /// Links the first hubs by the relationships of a shape.
  private static func connect(_ shape: Shape, _ all: Hubs) throws {
    let (hubs, spokes) = (all.hubs, all.spokes)
    try all.store.save(all.graph) { edit in
      switch shape {
      case .oneToOne:
        for place in 0..<3 {
          edit.update("Hub", hubs[place], ["single": .key(spokes[place])])
          edit.update("Spoke", spokes[place], ["singleHub": .key(hubs[place])])
        }
      case .oneToMany:
        for (place, spoke) in spokes.enumerated() { edit.update("Spoke", spoke, ["manyHub": .key(hubs[place % 3])]) }
      case .manyToMany:
        for (place, spoke) in spokes.enumerated() {
          edit.link("Hub", "linked", hubs[place % 3], spoke)
          edit.link("Hub", "linked", hubs[0], spoke)
        }
      case .fromOtherSide:
        for above in all.above { for hub in hubs.prefix(3) { edit.link("Above", "hubs", above, hub) } }
      case .toItself:
        for place in 0..<4 {
          edit.link("Hub", "next", hubs[place], hubs[(place + 1) % 4])
          edit.link("Hub", "next", hubs[place], hubs[place])
          edit.link("Hub", "previous", hubs[place], hubs[(place + 2) % 4])
        }
      }
    }
  }

  private static func deleteOne(_ rule: DeleteRule, _ shape: Shape, _ run: CaseRun) throws {
    let all = try make(rule, run)
    try connect(shape, all)
    try all.store.expectContents(all.graph, "before the deletion")
    let key = all.hubs[0]
    try all.store.save(all.graph) { $0.delete("Hub", key) }
    try all.store.expectContents(all.graph, "after the deletion")
  }

  private static func afterUpdates(_ run: CaseRun) throws {
    let all = try make(.nullify, run)
    try connect(.oneToMany, all)
    let (hubs, spokes) = (all.hubs, all.spokes)
    try all.store.save(all.graph) { edit in
      edit.delete("Hub", hubs[0])
      edit.update("Spoke", spokes[0], ["manyHub": .key(hubs[1])])
      edit.update("Spoke", spokes[3], ["name": .string("changed, and severed")])
      edit.update("Spoke", spokes[1], ["manyHub": .null])
    }
    try all.store.expectContents(all.graph, "after updates and a deletion in one save")
  }

  private static func bothSides(_ run: CaseRun) throws {
    let all = try make(.nullify, run)
    for shape in [Shape.oneToOne, .manyToMany, .toItself] { try connect(shape, all) }
    try all.store.save(all.graph) { edit in
      edit.delete("Hub", all.hubs[0])
      edit.delete("Hub", all.hubs[1])
      edit.delete("Spoke", all.spokes[0])
      edit.delete("Spoke", all.spokes[4])
    }
    try all.store.expectContents(all.graph, "after both sides were deleted")
  }

  private static func keptReferences(_ run: CaseRun) throws {
    let all = try make(.noAction, run), hub = all.hubs[0]
    for shape in [Shape.oneToMany, .manyToMany, .fromOtherSide, .toItself] { try connect(shape, all) }
    let relationships = ["many", "linked", "next", "previous", "above"]
    for relationship in relationships {
      let targets = try all.store.targets("Hub", relationship, [hub])
      run.expect(targets != [[]], "destinations of Hub.\(relationship) before the deletion", got: "none")
    }
    try all.store.save(all.graph) { $0.delete("Hub", hub) }
    for relationship in relationships {
      run.expectEqual(
        try all.store.targets("Hub", relationship, [hub]), [[]], "the destinations of Hub.\(relationship) of a deleted object")
    }
    try all.store.expectContents(all.graph, "after a deletion that keeps references")
  }

  private static func manyDeletions(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = ExpectedGraph(store)
    let people = try store.keys("Person", 600), companies = try store.keys("Company", 12)
    try store.save(graph) { edit in
      for company in companies { edit.insert("Company", company, ["name": .string("Company")]) }
      for (index, person) in people.enumerated() {
        edit.insert("Person", person, ["name": .string("Person \(index)"), "employer": .key(companies[index % 12])])
        for step in 1...3 { edit.link("Person", "friends", person, people[(index * 13 + step * 101) % people.count]) }
      }
    }
    try store.save(graph) { edit in
      for (index, person) in people.enumerated() where index % 3 == 1 { edit.delete("Person", person) }
      for company in companies.prefix(7) { edit.delete("Company", company) }
    }
    try store.expectContents(graph, "after deleting a third of all people and most companies")
  }
}
