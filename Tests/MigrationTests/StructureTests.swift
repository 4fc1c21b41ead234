import Foundation
import Holdfast
import HoldfastStore
import TestSupport
import Testing

/// Comparisons by structure of objects with equal values.
@Suite struct StructureTests {
  private static func nodes() throws -> ManagedObjectModel {
    try model(
      EntityDescription(
        "Node",
        relationships: [
          .toOne("next", to: "Node", inverse: "previous"), .toOne("previous", to: "Node", inverse: "next"),
          .toOne("arrow", to: "Node", inverse: nil), .toOne("parent", to: "Node", inverse: "children"),
          .toMany("children", to: "Node", inverse: "parent"), .toMany("peers", to: "Node", inverse: "peers"),
          .toMany("list", to: "Node", inverse: "lists", isOrdered: true), .toMany("lists", to: "Node", inverse: "list"),
        ]))
  }

  /// Links between numbered nodes.
  private struct Graph {
    var count: Int
    /// The tags of nodes that differ from the others.
    var tags: [Int: String] = [:]
    /// The single destination, by relationship and node.
    var toOne: [String: [Int: Int]] = [:]
    var peers: [Int: [Int]] = [:]
    var lists: [Int: [Int]] = [:]

    /// Inserts the nodes in an order, so that they have other keys.
    func insert(into context: ManagedObjectContext, inOrder order: [Int]) throws {
      var nodes: [Int: ManagedObject] = [:]
      for node in order {
        nodes[node] = try context.add("Node", tags[node] ?? "")
        // The order of insertion is the order of the keys.
        if count <= 100 { try context.save() }
      }
      func node(_ number: Int) throws -> ManagedObject { try #require(nodes[number]) }
      for (name, links) in toOne { for (from, to) in links { try node(from).setValue(try node(to), forKey: name) } }
      for (from, to) in peers { try node(from).setValue(try to.map(node), forKey: "peers") }
      for (from, to) in lists { try node(from).setValue(try to.map(node), forKey: "list") }
    }
  }

  private static func difference(
    _ first: Graph, _ second: Graph, in store: MigratedStore = .json, seed: UInt64 = 1
  ) throws -> GraphDifference {
    var random = SeededGenerator(seed: seed)
    let model = try nodes(), places = [MigratedStore.Place(store), MigratedStore.Place(store)]
    try places[0].fill(model) { try first.insert(into: $0, inOrder: Array(0..<first.count)) }
    try places[1].fill(model) { try second.insert(into: $0, inOrder: (0..<second.count).shuffled(using: &random)) }
    return try DifferenceTests.difference(places[0], places[1], model, .structure)
  }

  private static func chain(_ count: Int, _ name: String = "next") -> Graph {
    Graph(count: count, toOne: [name: Dictionary(uniqueKeysWithValues: (0..<count - 1).map { ($0, $0 + 1) })])
  }

  private static func ring(_ count: Int, _ name: String = "next") -> Graph {
    Graph(count: count, toOne: [name: Dictionary(uniqueKeysWithValues: (0..<count).map { ($0, ($0 + 1) % count) })])
  }

  /// An undirected ring.
  private static func peerRing(_ count: Int) -> Graph {
    Graph(count: count, peers: Dictionary(uniqueKeysWithValues: (0..<count).map { ($0, [($0 + 1) % count, ($0 + count - 1) % count]) }))
  }

  private static let symmetric: [(String, Graph)] = [
    ("no links", Graph(count: 20)), ("a chain", chain(50)), ("a chain without an inverse", chain(50, "arrow")), ("a ring", ring(20)),
    ("a ring without an inverse", ring(20, "arrow")), ("an undirected ring", peerRing(20)),
    ("pairs", Graph(count: 20, toOne: ["next": Dictionary(uniqueKeysWithValues: (0..<10).map { ($0, 19 - $0) })])),
    ("a tree", Graph(count: 31, toOne: ["parent": Dictionary(uniqueKeysWithValues: (1..<31).map { ($0, ($0 - 1) / 2) })])),
    ("arrows to equal nodes", Graph(count: 16, toOne: ["arrow": Dictionary(uniqueKeysWithValues: (0..<8).map { ($0, 15 - $0) })])),
    (
      "a complete graph",
      Graph(count: 6, peers: Dictionary(uniqueKeysWithValues: (0..<6).map { node in (node, (0..<6).filter { $0 != node }) }))
    ),
    ("lists", Graph(count: 12, lists: [0: [1, 2, 3], 4: [3, 2, 1], 5: [6, 7, 1]])),
    (
      "a ring of trees",
      Graph(
        count: 40,
        toOne: [
          "next": Dictionary(uniqueKeysWithValues: (0..<10).map { ($0, ($0 + 1) % 10) }),
          "parent": Dictionary(uniqueKeysWithValues: (10..<40).map { ($0, $0 % 10) }),
        ])
    ),
    (
      "a chain of pairs that are linked crosswise",
      Graph(
        count: 20,
        toOne: [
          "next": Dictionary(uniqueKeysWithValues: (0..<9).map { ($0, $0 + 1) })
            .merging((10..<19).map { ($0, $0 + 1) }) { first, _ in first }
        ],
        peers: Dictionary(uniqueKeysWithValues: (0..<10).map { ($0, [$0 + 10]) }))
    ),
  ]

  @Test(arguments: symmetric.indices) func equalObjectsWithOtherKeysAreEqual(_ index: Int) throws {
    let (name, graph) = Self.symmetric[index]
    for seed in 1...UInt64(TestTier.count(2, full: 20)) {
      let difference = try Self.difference(graph, graph, in: seed == 1 ? .sqlite : .json, seed: seed)
      #expect(difference.isEmpty, "\(name), seed \(seed):\n\(difference)")
    }
  }

  @Test(arguments: symmetric.indices) func anAdditionalLinkBetweenEqualObjectsIsReported(_ index: Int) throws {
    let (name, graph) = Self.symmetric[index]
    var changed = graph
    changed.toOne["arrow", default: [:]][2] = 3
    if changed.toOne["arrow"] == graph.toOne["arrow"] { changed.toOne["arrow"]?[2] = 4 }
    #expect(try !Self.difference(graph, changed).isEmpty, "\(name)")
  }

  @Test func ringsOfOtherLengthsAreNotEqual() throws {
    // All objects have the same values, and equal neighbours.
    var rings = Self.peerRing(6)
    for node in 0..<6 { rings.peers[node] = (0..<6).filter { $0 != node && $0 / 3 == node / 3 } }
    #expect(try !Self.difference(Self.peerRing(6), rings).isEmpty)
  }

  @Test(arguments: MigratedStore.allCases) func objectsWithEqualValuesAreDistinguishedByTheirNeighbours(_ store: MigratedStore) throws {
    var graph = Graph(count: 6, tags: [4: "left", 5: "right"])
    // Nodes 0 and 1 are equal, and linked to equal nodes, which are linked to different ones.
    graph.toOne = ["parent": [0: 2, 1: 3], "arrow": [2: 4, 3: 5]]
    for seed in 1...6 { #expect(try Self.difference(graph, graph, in: store, seed: UInt64(seed)).isEmpty) }
    var changed = graph
    changed.toOne["arrow"] = [2: 4, 3: 4]
    let difference = try Self.difference(graph, changed, in: store)
    #expect(DifferenceTests.differences(difference) == ["changed Node arrow"])
  }

  @Test func aChangeInTheMiddleOfEqualObjectsDoesNotSpread() throws {
    let chain = Self.chain(40)
    var changed = chain
    changed.tags[20] = "changed"
    let difference = try Self.difference(chain, changed)
    #expect(DifferenceTests.differences(difference) == ["changed Node tag"], "\(difference)")
  }

  /// Refinement ends before it reaches the middle.
  @Test func aLongChainOfEqualObjectsIsMatched() throws {
    let chain = Self.chain(700)
    #expect(try Self.difference(chain, chain).isEmpty)
  }

  @Test func manyEqualPairsWithoutAnInverseAreMatched() throws {
    let count = 1_000
    let graph = Graph(count: count, lists: Dictionary(uniqueKeysWithValues: (0..<count / 2).map { ($0, [count - 1 - $0]) }))
    #expect(try Self.difference(graph, graph, in: .sqlite).isEmpty)
  }

  @Test func manyEqualPairsAreMatched() throws {
    let count = 4_000
    let graph = Graph(count: count, toOne: ["next": Dictionary(uniqueKeysWithValues: (0..<count / 2).map { ($0, count - 1 - $0) })])
    #expect(try Self.difference(graph, graph, in: .sqlite).isEmpty)
  }

  @Test func deletedAndInsertedObjectsWithoutAnythingInCommonAreNotPaired() throws {
    let first = Graph(count: 3, tags: [0: "a", 1: "b", 2: "c"]), second = Graph(count: 3, tags: [0: "a", 1: "x", 2: "y"])
    let found = DifferenceTests.differences(try Self.difference(first, second))
    #expect(found == ["onlyInFirst Node", "onlyInFirst Node", "onlyInSecond Node", "onlyInSecond Node"])
  }
}
