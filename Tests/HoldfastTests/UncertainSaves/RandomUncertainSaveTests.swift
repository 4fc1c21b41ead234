import Holdfast
import HoldfastStore
import HoldfastStoreConformance
import TestSupport
import Testing

/// Random changes, with saves whose outcome is unknown at first, compared with plain dictionaries. Prints its seed; HOLDFAST_SEED repeats a
/// run.
@Suite struct RandomUncertainSaveTests {
  private struct Difference: Error, CustomStringConvertible { let description: String }

  @Test(arguments: [TestStore.memory, .sqlite, .binary, .weakest, .second])
  func aGraphSurvivesUnknownOutcomes(_ store: TestStore) throws {
    var random = SeededGenerator()
    for round in 0..<TestTier.count(store == .memory ? 20 : 6, full: 200) {
      let seed = random.next()
      do { try Program(store, seed).run() } catch {
        Issue.record("seed \(random.seed), round \(round), program \(seed) on \(store): \(error)")
        return
      }
    }
  }

  /// A tree of nodes with ordered children, peers, ordered tracks, a partner, and derived values.
  private static let model: ManagedObjectModel = {
    do {
      return try ManagedObjectModel(entities: [
        EntityDescription(
          "Node",
          attributes: [
            AttributeDescription("tag", .integer64), AttributeDescription("value", .integer32, default: .int32(0)),
            AttributeDescription("text", .string, isOptional: true), .derived("childCount", .integer64, "children.@count"),
            .derived("sum", .integer64, "children.value.@sum"), .derived("peerCount", .integer64, "peers.@count"),
            .derived("parentText", .string, "parent.text"),
          ],
          relationships: [
            .toOne("parent", to: "Node", inverse: "children"), .toMany("children", to: "Node", inverse: "parent", isOrdered: true),
            .toMany("peers", to: "Node", inverse: "peerOf"), .toMany("peerOf", to: "Node", inverse: "peers"),
            .toMany("tracks", to: "Node", inverse: "trackOf", isOrdered: true), .toMany("trackOf", to: "Node", inverse: "tracks"),
            .toOne("left", to: "Node", inverse: "right"), .toOne("right", to: "Node", inverse: "left"),
          ])
      ])
    } catch { fatalError("\(error)") }
  }()

  /// The expected graph.
  private struct Graph: Equatable {
    struct Node: Equatable {
      var value: Int32 = 0
      var text: String?
      var parent: Int?
      var children: [Int] = []
      var peers: Set<Int> = []
      var tracks: [Int] = []
      var left: Int?
      var right: Int?
    }
    var nodes: [Int: Node] = [:]

    mutating func setParent(_ tag: Int, _ parent: Int?, at place: Int? = nil) {
      if nodes[tag]?.parent == parent { return }
      if let former = nodes[tag]?.parent { nodes[former]?.children.removeAll { $0 == tag } }
      nodes[tag]?.parent = parent
      guard let parent, let count = nodes[parent]?.children.count else { return }
      nodes[parent]?.children.insert(tag, at: place ?? count)
    }

    mutating func setRight(_ tag: Int, _ right: Int?) {
      if nodes[tag]?.right == right { return }
      if let former = nodes[tag]?.right { nodes[former]?.left = nil }
      if let right, let rival = nodes[right]?.left { nodes[rival]?.right = nil }
      nodes[tag]?.right = right
      if let right { nodes[right]?.left = tag }
    }

    mutating func delete(_ tag: Int) {
      nodes[tag] = nil
      for key in nodes.keys {
        if nodes[key]?.parent == tag { nodes[key]?.parent = nil }
        if nodes[key]?.left == tag { nodes[key]?.left = nil }
        if nodes[key]?.right == tag { nodes[key]?.right = nil }
        nodes[key]?.children.removeAll { $0 == tag }
        nodes[key]?.peers.remove(tag)
        nodes[key]?.tracks.removeAll { $0 == tag }
      }
    }
  }

  private final class Program {
    private let stack: LossyStack
    private let seed: UInt64
    private var random: SeededGenerator
    private var now = Graph()
    private var saved = Graph()
    /// The graph that a save with an unknown outcome sent, and what happens to it.
    private var uncertain: (graph: Graph, loss: OutcomeStore.Loss)?
    private var log: [String] = []
    private var nextTag = 1
    private var context: ManagedObjectContext { stack.context }

    init(_ store: TestStore, _ seed: UInt64) throws {
      self.seed = seed
      random = SeededGenerator(seed: seed)
      stack = try LossyStack(store, model: RandomUncertainSaveTests.model, classes: [])
    }

    func run() throws {
      do {
        for _ in 0..<8 { try insert() }
        for _ in 0..<120 {
          try step()
          if Int.random(in: 0..<4, using: &random) == 0 { try compare(context, with: now) }
        }
        try finish()
      } catch { throw Difference(description: "\(error)\n\(log.suffix(60).joined(separator: "\n"))") }
    }

    // MARK: Objects

    private func any() -> Int? { now.nodes.keys.sorted().randomElement(using: &random) }

    private func object(_ tag: Int) throws -> ManagedObject {
      let predicate = FetchPredicate<ManagedObject>(.comparison(.property("tag"), .equalTo, .constant(.int64(Int64(tag))), []))
      let found = try context.fetch(FetchRequest<ManagedObject>(entityName: "Node", where: predicate))
      guard found.count == 1 else { throw Difference(description: "There are \(found.count) nodes \(tag).") }
      return found[0]
    }

    // MARK: Steps

    private func step() throws {
      switch Int.random(in: 0..<40, using: &random) {
      case 0..<4: try insert()
      case 4..<8: try setValues()
      case 8..<13: try setParent()
      case 13..<18: try changePeers()
      case 18..<22: try changeTracks()
      case 22..<25: try setRight()
      case 25..<27: try delete()
      case 27..<30: try save()
      case 30..<35: try saveInVain()
      case 35: try rollback()
      case 36: try refresh()
      case 37: try failWithoutAnswer()
      default: try moveChild()
      }
    }

    private func insert() throws {
      let node = try context.insert(entityNamed: "Node")
      node["tag"] = .int64(Int64(nextTag))
      now.nodes[nextTag] = Graph.Node()
      log.append("insert \(nextTag)")
      if let parent = any(), parent != nextTag, Bool.random(using: &random) {
        node.lead("parent", to: try object(parent))
        now.setParent(nextTag, parent)
        log.append("\(nextTag).parent = \(parent)")
      }
      nextTag += 1
    }

    private func setValues() throws {
      guard let tag = any() else { return }
      // Few values, so that some are set back.
      let value = Int32.random(in: 0..<3, using: &random), text = [nil, "a", "b"].randomElement(using: &random)!
      let node = try object(tag)
      node["value"] = .int32(value)
      node["text"] = text.map { .string($0) } ?? .null
      now.nodes[tag]?.value = value
      now.nodes[tag]?.text = text
      log.append("\(tag).value = \(value), text = \(text ?? "nil")")
    }

    private func setParent() throws {
      guard let tag = any() else { return }
      let parent = Int.random(in: 0..<4, using: &random) == 0 ? nil : any()
      log.append("\(tag).parent = \(parent ?? 0)")
      if let parent, Bool.random(using: &random), now.nodes[tag]?.parent != parent {
        let place = Int.random(in: 0...now.nodes[parent]!.children.count, using: &random)
        try object(parent).ordered(forKey: "children").insert(try object(tag), at: place)
        now.setParent(tag, parent, at: place)
      } else {
        try object(tag).lead("parent", to: try parent.map(object))
        now.setParent(tag, parent)
      }
    }

    private func moveChild() throws {
      guard let tag = any(), let count = now.nodes[tag]?.children.count, count > 1 else { return }
      let (from, to) = (Int.random(in: 0..<count, using: &random), Int.random(in: 0..<count, using: &random))
      log.append("\(tag).children: move \(from) to \(to)")
      try object(tag).ordered(forKey: "children").move(from: from, to: to)
      let moved = now.nodes[tag]!.children.remove(at: from)
      now.nodes[tag]?.children.insert(moved, at: to)
    }

    private func changePeers() throws {
      guard let a = any(), let b = any() else { return }
      let isAddition = Int.random(in: 0..<5, using: &random) < 3, isFromA = Bool.random(using: &random)
      log.append("\(a).peers \(isAddition ? "+" : "-") \(b) \(isFromA ? "" : "by the inverse")")
      let (owner, other) = (try object(a), try object(b))
      if isFromA {
        if isAddition { owner.many("peers").insert(other) } else { owner.many("peers").remove(other) }
      } else {
        if isAddition { other.many("peerOf").insert(owner) } else { other.many("peerOf").remove(owner) }
      }
      if isAddition { now.nodes[a]?.peers.insert(b) } else { now.nodes[a]?.peers.remove(b) }
    }

    private func changeTracks() throws {
      guard let a = any(), let b = any(), let tracks = now.nodes[a]?.tracks else { return }
      let list = try object(a).ordered(forKey: "tracks")
      if let place = tracks.firstIndex(of: b) {
        list.remove(try object(b))
        now.nodes[a]?.tracks.remove(at: place)
        log.append("\(a).tracks - \(b)")
      } else {
        let place = Int.random(in: 0...tracks.count, using: &random)
        list.insert(try object(b), at: place)
        now.nodes[a]?.tracks.insert(b, at: place)
        log.append("\(a).tracks + \(b) at \(place)")
      }
    }

    private func setRight() throws {
      guard let tag = any() else { return }
      let right = Int.random(in: 0..<3, using: &random) == 0 ? nil : any()
      // A node beside itself has its own rules.
      if right == tag { return }
      log.append("\(tag).right = \(right ?? 0)")
      try object(tag).lead("right", to: try right.map(object))
      now.setRight(tag, right)
    }

    private func delete() throws {
      guard now.nodes.count > 4, let tag = any() else { return }
      log.append("delete \(tag)")
      context.delete(try object(tag))
      now.delete(tag)
    }

    // MARK: Saving

    private func save() throws {
      log.append("save")
      stack.recorder.clear()
      try context.save()
      let count = stack.recorder.savingRequests
      if count[0] != (uncertain == nil ? 0 : 1) || count[2] > 1 { throw Difference(description: "The save sent \(count).") }
      (saved, uncertain) = (now, nil)
      try compareSaved()
    }

    private func saveInVain() throws {
      // A save of nothing has no commit.
      try save()
      for _ in 0..<Int.random(in: 1...5, using: &random) { try change() }
      if !context.hasChanges { return }
      let isAgain = Bool.random(using: &random)
      try lose()
      if !isAgain || uncertain == nil { return }
      // The retry saves what was changed since, and loses its outcome, too.
      for _ in 0..<Int.random(in: 1...3, using: &random) { try change() }
      try lose()
    }

    private func change() throws {
      switch Int.random(in: 0..<7, using: &random) {
      case 0: try insert()
      case 1: try setValues()
      case 2: try setParent()
      case 3: try changePeers()
      case 4: try changeTracks()
      case 5: try setRight()
      default: try moveChild()
      }
    }

    /// Saves, and loses the outcome if there is a commit.
    private func lose() throws {
      let loss = OutcomeStore.Loss.allCases.randomElement(using: &random)!
      stack.store.loseCommit(loss)
      do {
        try context.save()
        // There was nothing to save after all. The next commit isn't lost.
        stack.store.clear()
        log.append("save of nothing")
        (saved, uncertain) = (now, nil)
      } catch let error as StoreError where error.code == .outcomeUnknown {
        log.append("save \(loss)")
        if let former = uncertain, former.loss.isCommitted { saved = former.graph }
        uncertain = (now, loss)
      }
    }

    private func failWithoutAnswer() throws {
      if uncertain == nil { return }
      log.append("no answer")
      stack.store.answerUnknown(times: 1)
      do {
        try context.save()
        throw Difference(description: "The save didn't throw.")
      } catch let error as StoreError where error.code == .outcomeUnknown {}
    }

    private func rollback() throws {
      // A save that takes effect after the rollback is a save of another process.
      if uncertain?.loss == .beforeCommitting { return }
      log.append("rollback")
      context.rollback()
      if let uncertain, uncertain.loss.isCommitted { saved = uncertain.graph }
      (now, uncertain) = (saved, nil)
    }

    private func refresh() throws {
      log.append("refresh")
      try context.refreshAllObjects()
      if let former = uncertain, former.loss.isCommitted { saved = former.graph }
      uncertain = nil
    }

    private func finish() throws {
      try save()
      try save()
    }

    // MARK: Comparing

    /// Compares the store with the expected graph, and derived values in this context.
    private func compareSaved() throws {
      let other = try stack.another()
      try compare(other, with: saved)
      for context in [context, other] {
        for node in try context.all("Node") {
          let children = try node.ordered(forKey: "children").compactMap { $0["value"].integer }
          let derived: [StoreValue] = [node["childCount"], node["sum"], node["peerCount"], node["parentText"]]
          let parent = try node.value(forKey: "parent").storeValue
          var text = StoreValue.null
          if case .objectID(let id) = parent { text = try context.existingObject(with: id)["text"] }
          let expected: [StoreValue] = [
            .int64(Int64(children.count)), .int64(children.reduce(0, +)), .int64(Int64(node.many("peers").count)), text,
          ]
          if derived != expected { throw Difference(description: "The derived values of \(node["tag"]) are \(derived), not \(expected).") }
        }
      }
    }

    private func compare(_ context: ManagedObjectContext, with expected: Graph) throws {
      let found = try graph(context)
      if found == expected { return }
      let tags = Set(found.nodes.keys).union(expected.nodes.keys).filter { found.nodes[$0] != expected.nodes[$0] }.sorted()
      let lines = tags.map { "\($0): \(found.nodes[$0].map { "\($0)" } ?? "none"), not \(expected.nodes[$0].map { "\($0)" } ?? "none")" }
      throw Difference(
        description: "\(context === self.context ? "The context" : "The store") differs:\n\(lines.joined(separator: "\n"))")
    }

    private func graph(_ context: ManagedObjectContext) throws -> Graph {
      var graph = Graph()
      func tag(_ object: ManagedObject) -> Int { Int(object["tag"].integer ?? 0) }
      func toOne(_ node: ManagedObject, _ name: String) throws -> Int? {
        guard case .objectID(let id) = node[name] else { return nil }
        return tag(try context.object(with: id))
      }
      for node in try context.all("Node") {
        var text: String?
        if case .string(let found) = node["text"] { text = found }
        let peers = node.many("peers").map(tag)
        if Set(peers).count != peers.count { throw Difference(description: "\(tag(node)) has a peer twice.") }
        for peer in node.many("peers") where !peer.many("peerOf").contains(node) {
          throw Difference(description: "\(tag(peer)) doesn't know that it is a peer of \(tag(node)).")
        }
        for track in try node.ordered(forKey: "tracks") where !track.many("trackOf").contains(node) {
          throw Difference(description: "\(tag(track)) doesn't know that it is a track of \(tag(node)).")
        }
        let found = Graph.Node(
          value: Int32(node["value"].integer ?? 0), text: text, parent: try toOne(node, "parent"),
          children: try node.ordered(forKey: "children").map(tag), peers: Set(peers), tracks: try node.ordered(forKey: "tracks").map(tag),
          left: try toOne(node, "left"), right: try toOne(node, "right"))
        if graph.nodes.updateValue(found, forKey: tag(node)) != nil { throw Difference(description: "\(tag(node)) is there twice.") }
      }
      return graph
    }
  }
}
