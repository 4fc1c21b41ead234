import HoldfastStore

/// Tests the rules of the store contract for relationships without an inverse, and for those that are their own inverse.
enum ShapeCases {
  static let all = [
    StoreConformanceCase("L1", "targets of a relationship without an inverse", withoutInverse),
    StoreConformanceCase("L2", "a relationship that is its own inverse has the same links on both sides", reflexive),
    StoreConformanceCase("S10", "linking a target that allows one owner removes its old link", takenAway),
    StoreConformanceCase("S11", "deleting targets of relationships without an inverse", deletedTargets),
    StoreConformanceCase("S11", "deleting owners of relationships without an inverse", deletedOwners),
    StoreConformanceCase("S11", "deleting objects of relationships that are their own inverse", deletedMates),
    StoreConformanceCase(
      "F1", "ANY, ALL and counts over relationships without an inverse or with themselves as inverse",
      requires: PredicateCases.needs([.equality, .order], [.string]) { $0.traversal = [.toOne, .quantifiers, .counts] }, relationshipPaths),
    StoreConformanceCase("O5", "links of every shape are stored durably", reopening),
  ]

  /// Teams own players exclusively and have a sponsor without an inverse; players have mates and a partner.
  private static let model: ManagedObjectModel = {
    do {
      return try ManagedObjectModel(entities: [
        EntityDescription(
          "Team", attributes: [AttributeDescription("name", .string)],
          relationships: [
            .toMany("players", to: "Player", inverse: nil), .toMany("helpers", to: "Player", inverse: nil, deleteRule: .noAction),
            .toOne("sponsor", to: "Sponsor", inverse: nil), .toMany("rivals", to: "Team", inverse: "rivals"),
          ]),
        EntityDescription(
          "Player", attributes: [AttributeDescription("name", .string)],
          relationships: [.toMany("mates", to: "Player", inverse: "mates"), .toOne("partner", to: "Player", inverse: "partner")]),
        EntityDescription("Captain", superentity: "Player"),
        EntityDescription("Sponsor", attributes: [AttributeDescription("name", .string)]),
      ])
    } catch {
      preconditionFailure("A model of the conformance kit is invalid: \(error)")
    }
  }()

  private struct League {
    let store: TestedStore
    let graph: ExpectedGraph
    let teams: [ObjectKey]
    let players: [ObjectKey]
    let captains: [ObjectKey]
    let sponsors: [ObjectKey]

    init(_ store: TestedStore) throws {
      self.store = store
      graph = ExpectedGraph(store)
      teams = try store.keys("Team", 4)
      players = try store.keys("Player", 8)
      captains = try store.keys("Captain", 3)
      sponsors = try store.keys("Sponsor", 2)
      let (teams, players, captains, sponsors) = (teams, players, captains, sponsors)
      try store.save(graph) { edit in
        for (place, key) in sponsors.enumerated() { edit.insert("Sponsor", key, ["name": .string("sponsor \(place)")]) }
        for (place, key) in teams.enumerated() {
          edit.insert("Team", key, ["name": .string("team \(place)"), "sponsor": place < 3 ? .key(sponsors[place % 2]) : .null])
        }
        for (place, key) in players.enumerated() {
          let partner = place < 4 ? players[place ^ 1] : nil
          edit.insert("Player", key, ["name": .string("player \(place)"), "partner": partner.map { .key($0) } ?? .null])
        }
        for (place, key) in captains.enumerated() { edit.insert("Captain", key, ["name": .string("captain \(place)")]) }
        for (place, key) in (players + captains).enumerated() {
          if place % 5 != 4 { edit.link("Team", "players", teams[place % 3], key) }
          if place % 2 == 0 { edit.link("Team", "helpers", teams[place % 4], key) }
        }
        for (a, b) in [(0, 1), (1, 2), (5, 0), (7, 7)] { League.mate(edit, players[a], players[b]) }
        League.mate(edit, captains[0], players[3])
        for (a, b) in [(teams[0], teams[1]), (teams[1], teams[0])] { edit.link("Team", "rivals", a, b) }
      }
    }

    /// A relationship that is its own inverse is named from both ends.
    static func mate(_ edit: GraphEdit, _ a: ObjectKey, _ b: ObjectKey) {
      edit.link("Player", "mates", a, b)
      edit.link("Player", "mates", b, a)
    }
  }

  private static func withoutInverse(_ run: CaseRun) throws {
    let league = try League(try run.openNew(model))
    try league.store.expectContents(league.graph, "with relationships without an inverse")
    run.expectEqual(
      try league.store.targets("Team", "players", [league.teams[3], 999]), [[], []],
      "the players of a team without players and of a missing team")
  }

  private static func reflexive(_ run: CaseRun) throws {
    let league = try League(try run.openNew(model))
    let (players, store) = (league.players, league.store)
    run.expectEqual(
      try store.targets("Player", "mates", [players[0], players[1], players[7]]),
      [[players[1], players[5]].sorted(), [players[0], players[2]].sorted(), [players[7]]], "the mates of players")
    try store.save(league.graph) { edit in
      edit.unlink("Player", "mates", players[0], players[1])
      edit.unlink("Player", "mates", players[1], players[0])
      edit.unlink("Player", "mates", players[7], players[7])
      edit.update("Player", players[0], ["partner": .key(players[4])])
      edit.update("Player", players[4], ["partner": .key(players[0])])
      edit.update("Player", players[1], ["partner": .null])
    }
    try store.expectContents(league.graph, "after mates and partners changed")
  }

  private static func takenAway(_ run: CaseRun) throws {
    let league = try League(try run.openNew(model))
    let (teams, players, store) = (league.teams, league.players, league.store)
    try store.save(league.graph) { edit in
      for player in players { edit.link("Team", "players", teams[3], player) }
      edit.link("Team", "players", teams[0], league.captains[0])
      // If two teams claim a player, the last one in the order of the request gets the player.
      edit.link("Team", "players", teams[1], league.captains[1])
      edit.link("Team", "players", teams[2], league.captains[1])
    }
    try store.expectContents(league.graph, "after linking all players to one team")
    try store.save(league.graph) { edit in
      edit.unlink("Team", "players", teams[3], players[0])
      // The link no longer exists, so this has no effect.
      edit.unlink("Team", "players", teams[0], players[3])
    }
    try store.expectContents(league.graph, "after unlinking a player")
  }

  private static func deletedTargets(_ run: CaseRun) throws {
    let league = try League(try run.openNew(model))
    try league.store.save(league.graph) { edit in
      for place in [0, 2, 4] { edit.delete("Player", league.players[place]) }
      edit.delete("Captain", league.captains[0])
      edit.delete("Sponsor", league.sponsors[0])
    }
    try league.store.expectContents(league.graph, "after players and a sponsor were deleted")
  }

  private static func deletedOwners(_ run: CaseRun) throws {
    let league = try League(try run.openNew(model))
    try league.store.save(league.graph) { edit in
      edit.delete("Team", league.teams[0])
      edit.delete("Team", league.teams[2])
    }
    try league.store.expectContents(league.graph, "after teams were deleted")
    run.expectEqual(try league.store.targets("Team", "helpers", [league.teams[0]]), [[]], "the helpers of a deleted team")
    try league.store.save(league.graph) { edit in
      for player in league.players { edit.link("Team", "players", league.teams[1], player) }
    }
    try league.store.expectContents(league.graph, "after the players of deleted teams got another team")
  }

  private static func deletedMates(_ run: CaseRun) throws {
    let league = try League(try run.openNew(model))
    try league.store.save(league.graph) { edit in
      for place in [1, 7] { edit.delete("Player", league.players[place]) }
      edit.delete("Captain", league.captains[0])
      edit.delete("Team", league.teams[0])
    }
    try league.store.expectContents(league.graph, "after mates were deleted")
  }

  private static func relationshipPaths(_ run: CaseRun) throws {
    let league = try League(try run.openNew(model))
    func named(_ path: PropertyPath, _ op: ComparisonOperator, _ name: String) -> QueryExpression {
      .comparison(.property(path), op, .constant(.string(name)), [])
    }
    for (entity, predicate) in [
      ("Team", QueryExpression.any("players", named("name", .equalTo, "player 3"))),
      ("Team", .all("players", named("name", .lessThan, "player 6"))),
      ("Team", .any("helpers", named("name", .lessThan, "d"))),
      ("Team", .comparison(.count("players"), .greaterThan, .constant(.int64(2)), [])),
      ("Team", named(PropertyPath("sponsor", ["name"]), .equalTo, "sponsor 1")),
      ("Team", .any("rivals", named("name", .equalTo, "team 0"))),
      ("Player", .any("mates", named("name", .equalTo, "player 0"))),
      ("Player", .comparison(.count("mates"), .equalTo, .constant(.int64(2)), [])),
      ("Player", named(PropertyPath("partner", ["name"]), .greaterThan, "player 1")),
    ] {
      let described = league.store.entity(entity)
      let test = try RowPredicate(predicate, entity: described, model: model)
      let expected = described.familyIndexes.flatMap { league.graph.rows(of: model.entities[$0]).values }.filter {
        test.matches($0.pointer, league.graph)
      }
      let plan = FetchPlan(entity: described.index, concreteEntities: described.concreteIndexes, predicate: predicate)
      league.store.expectRows(try league.store.fetch(plan), expected, "the rows of \(entity) where \(predicate)")
    }
  }

  private static func reopening(_ run: CaseRun) throws {
    let place = try run.makePlace()
    let league = try League(try run.open(place, model))
    try run.close(league.store)
    try run.open(place, model).expectContents(league.graph, "after reopening")
  }
}
