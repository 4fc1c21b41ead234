import Holdfast
import TestSupport
import Testing

/// Random links, saves, deletions, rollbacks and refreshes of objects that are released and recreated, compared with plain dictionaries.
/// Prints its seed; HOLDFAST_SEED repeats a run.
@Suite struct RandomTransientLinkTests {
  /// The expected links, by name. Deleted objects are included until the deletion is saved.
  private struct Expected {
    var saved: Set<String> = []
    var new: Set<String> = []
    var deleted: Set<String> = []
    var picks: [String: String] = [:]
    var nexts: [String: String] = [:]
    var mates: [String: String] = [:]
    var peers: [String: Set<String>] = [:]
    var queues: [String: [String]] = [:]
    var seen: [String: Set<String>] = [:]
    var last: [String: String] = [:]

    var visible: [String] { saved.union(new).subtracting(deleted).sorted() }

    /// Removes all links of an object with an inverse. Those without one are removed only if the object is deleted for good.
    mutating func forget(_ name: String, isGone: Bool) {
      picks = picks.filter { $0.key != name && $0.value != name }
      nexts = nexts.filter { $0.key != name && $0.value != name }
      mates = mates.filter { $0.key != name && $0.value != name }
      peers[name] = nil
      for other in peers.keys { peers[other]?.remove(name) }
      queues[name] = nil
      for other in queues.keys { queues[other]?.removeAll { $0 == name } }
      seen[name] = nil
      last[name] = nil
      if isGone {
        for other in seen.keys { seen[other]?.remove(name) }
        last = last.filter { $0.value != name }
      }
    }

    mutating func setNext(_ a: String, _ b: String?) {
      nexts[a] = nil
      nexts = nexts.filter { $0.value != b }
      nexts[a] = b
    }

    mutating func setMate(_ a: String, _ b: String?) {
      for name in [a, b].compactMap({ $0 }) {
        if let former = mates.removeValue(forKey: name) { mates[former] = nil }
      }
      guard let b else { return }
      mates[a] = b
      mates[b] = a
    }
  }

  private struct Difference: Error, CustomStringConvertible {
    let description: String
  }

  @Test(arguments: [TestStore.memory, .sqlite, .weakest, .second]) func aContextTellsWhatPlainDictionariesTell(_ store: TestStore) throws {
    var random = SeededGenerator()
    for round in 0..<TestTier.count(10, full: 25) {
      let seed = random.next()
      do {
        try run(store, SeededGenerator(seed: seed))
      } catch {
        Issue.record("seed \(random.seed), round \(round) on \(store): \(error)")
        return
      }
    }
  }

  private func run(_ store: TestStore, _ generator: SeededGenerator) throws {
    var random = generator
    let context = try store.makePlace(model: Web.model, classes: Web.classes).context()
    var now = Expected(), log: [String] = [], counter = 0
    func find(_ name: String) throws -> Node {
      guard let node = try context.node(named: name) else { throw Difference(description: "There is no \(name). \(log)") }
      return node
    }
    func insert() {
      counter += 1
      let name = "n\(counter)"
      if Bool.random(using: &random) { context.leaf(name) } else { context.node(name) }
      now.new.insert(name)
      log.append("insert \(name)")
    }
    for _ in 0..<5 { insert() }
    for _ in 0..<80 {
      let names = now.visible
      guard let a = names.randomElement(using: &random), let b = names.randomElement(using: &random) else {
        insert()
        continue
      }
      let target = Int.random(in: 0..<4, using: &random) == 0 ? nil : b
      let choice = Int.random(in: 0..<20, using: &random)
      switch choice {
      case 0: insert()
      case 1, 2:
        log.append("\(a).pick = \(target ?? "nil")")
        if let target, Bool.random(using: &random) {
          try find(target).pickedBy.insert(find(a))
        } else {
          try find(a).pick = target.map(find)
        }
        now.picks[a] = target
      case 3, 4:
        log.append("\(a).next = \(target ?? "nil")")
        if let target, Bool.random(using: &random) {
          try find(target).previous = find(a)
        } else {
          try find(a).next = target.map(find)
        }
        now.setNext(a, target)
      case 5, 6:
        log.append("\(a).mate = \(target ?? "nil")")
        try find(a).mate = target.map(find)
        now.setMate(a, target)
      case 7, 8:
        log.append("\(a).peers + \(b)")
        try find(a).peers.insert(find(b))
        now.peers[a, default: []].insert(b)
        now.peers[b, default: []].insert(a)
      case 9:
        log.append("\(a).peers - \(b)")
        try find(a).peers.remove(find(b))
        now.peers[a]?.remove(b)
        now.peers[b]?.remove(a)
      case 10, 11:
        log.append("\(a).queue + \(b)")
        if Bool.random(using: &random) { try find(a).queue.append(find(b)) } else { try find(b).queuedIn.insert(find(a)) }
        if now.queues[a]?.contains(b) != true { now.queues[a, default: []].append(b) }
      case 12:
        log.append("\(a).queue - \(b)")
        try find(a).queue.remove(find(b))
        now.queues[a]?.removeAll { $0 == b }
      case 13 where now.deleted.isEmpty:
        guard let queue = now.queues[a], queue.count > 1 else { continue }
        log.append("\(a).queue moved")
        try find(a).queue.move(from: 0, to: queue.count - 1)
        now.queues[a] = Array(queue[1...] + queue[..<1])
      case 14:
        log.append("\(a).seen + \(b), last = \(target ?? "nil")")
        try find(a).seen.insert(find(b))
        try find(a).last = target.map(find)
        now.seen[a, default: []].insert(b)
        now.last[a] = target
      case 15:
        log.append("delete \(a)")
        context.delete(try find(a))
        now.deleted.insert(a)
      case 16:
        log.append("rollback")
        context.rollback()
        for name in now.new { now.forget(name, isGone: true) }
        now.new = []
        now.deleted = []
      case 17:
        log.append("refresh \(a)")
        if now.new.contains(a) { continue }
        try context.refresh(find(a), mergeChanges: false)
        now.forget(a, isGone: false)
      case 18:
        log.append("merge \(a)")
        try context.refresh(find(a), mergeChanges: true)
      default:
        log.append("save")
        try context.save()
        for name in now.deleted { now.forget(name, isGone: true) }
        now.saved = now.saved.union(now.new).subtracting(now.deleted)
        now.new = []
        now.deleted = []
      }
      // Half of the time, the check reads through new faults.
      try check(context, now, log, holding: Bool.random(using: &random) ? try now.visible.map(find) : [])
    }
  }

  private func check(_ context: ManagedObjectContext, _ now: Expected, _ log: [String], holding held: [Node]) throws {
    let isVisible = Set(now.visible)
    for node in try context.fetch(FetchRequest<Node>()) {
      let name = node.name
      func same(_ what: String, _ found: [String], _ expected: [String]) throws {
        let expected = expected.filter(isVisible.contains)
        if found != expected { throw Difference(description: "\(name).\(what) is \(found), not \(expected). \(log)") }
      }
      func read(_ found: Node?) -> [String] { found.map { [$0.name] } ?? [] }
      func set(_ found: ToMany<Node>) throws -> [String] {
        let names = found.map(\.name).sorted()
        if found.count != names.count { throw Difference(description: "\(found.count) are counted where \(names) are. \(log)") }
        return names
      }
      func sources(_ links: [String: String]) -> [String] { links.filter { $0.value == name }.keys.sorted() }
      try same("pick", read(node.pick), one(now.picks[name]))
      try same("pickedBy", set(node.pickedBy), sources(now.picks))
      try same("next", read(node.next), one(now.nexts[name]))
      try same("previous", read(node.previous), sources(now.nexts))
      try same("mate", read(node.mate), one(now.mates[name]))
      try same("peers", set(node.peers), (now.peers[name] ?? []).sorted())
      try same("queue", node.queue.map(\.name), now.queues[name] ?? [])
      try same("queue, by position", node.queue.indices.map { node.queue[$0].name }, now.queues[name] ?? [])
      try same("queuedIn", set(node.queuedIn), now.queues.filter { $0.value.contains(name) }.keys.sorted())
      try same("seen", set(node.seen), (now.seen[name] ?? []).sorted())
      try same("last", read(node.last), one(now.last[name]))
    }
    withExtendedLifetime(held) {}
  }

  private func one(_ name: String?) -> [String] { name.map { [$0] } ?? [] }
}
