import HoldfastStore
import HoldfastStoreConformance
import TestSupport
import Testing

@testable import Holdfast

/// The cost of changes in long ordered relationships.
@Suite(.serialized, .ownThreads) struct OrderedCostTests {
  private static let model: ManagedObjectModel = {
    do {
      return try ManagedObjectModel(entities: [
        EntityDescription("List", relationships: [.toMany("entries", to: "Entry", inverse: "list", isOrdered: true)]),
        EntityDescription("Entry", relationships: [.toOne("list", to: "List", inverse: "entries")]),
      ])
    } catch { fatalError("\(error)") }
  }()

  /// A saved and loaded list of entries, and another entry.
  private func list(_ count: Int) throws -> (entries: OrderedToMany<ManagedObject>, beside: ManagedObject) {
    let context = try TestStore.memory.makePlace(model: Self.model, classes: []).context()
    let entries = try context.insert(entityNamed: "List").ordered(forKey: "entries")
    for _ in 0..<count { entries.append(try context.insert(entityNamed: "Entry")) }
    let beside = try context.insert(entityNamed: "Entry")
    try context.save()
    #expect(entries.count == count)
    return (entries, beside)
  }

  private func move(_ moves: Int, in entries: OrderedToMany<ManagedObject>) -> Duration {
    var random = SeededGenerator(seed: 1)
    let count = entries.count
    // The first change copies the list.
    entries.move(from: 0, to: 1)
    return processorTime {
      for _ in 0..<moves { entries.move(from: Int.random(in: 0..<count, using: &random), to: Int.random(in: 0..<count, using: &random)) }
    }
  }

  /// Time proportional to the square root is ten times as long for a hundred times as many objects. Moves that visit all objects would take
  /// a hundred times as long.
  @Test func movesInALongListCostNotMuchMoreThanInAShortOne() throws {
    let short = try list(1_000).entries, long = try list(100_000).entries
    expectCost(below: 30, times: { move(10_000, in: short) }) { move(10_000, in: long) }
  }

  /// The bug: moving objects by offsets, and reversing the order, created all objects of the list and read their rows.
  @Test(arguments: TestStore.allCases) func reorderingCreatesNoObjects(_ store: TestStore) throws {
    let place = try store.makePlace(model: Self.model, classes: []), setup = try place.context(), count = 3_000
    let owner = try setup.insert(entityNamed: "List"), filled = try owner.ordered(forKey: "entries")
    for _ in 0..<count { filled.append(try setup.insert(entityNamed: "Entry")) }
    try setup.save()
    let ids = filled.map(\.objectID), id = owner.objectID
    let (context, recorder) = try place.recording()
    let list = try context.existingObject(with: id), entries = try list.ordered(forKey: "entries")
    #expect(entries.count == count)
    recorder.clear()
    entries.move(fromOffsets: [count - 1], toOffset: 0)
    entries.move(fromOffsets: [1, 2], toOffset: count)
    entries.move(fromOffsets: [0], toOffset: 1)
    entries.reverse()
    #expect(recorder.requests.isEmpty, "\(recorder.requests)")
    let entity = try #require(Self.model.entity(named: "Entry"))
    #expect(context.core.registry.extent(sharingRootOf: entity.index).positions == 0)
    var expected = [ids[count - 1]]
    expected += ids[2..<count - 1]
    expected += ids[0..<2]
    expected.reverse()
    #expect(entries.map(\.objectID) == expected)
    try context.save()
    let fresh = try ManagedObjectContext(coordinator: context.persistentStoreCoordinator, classes: [])
    let saved = try fresh.existingObject(with: id).ordered(forKey: "entries")
    #expect(saved.map(\.objectID) == expected)
  }

  enum Deletion: CaseIterable, Sendable { case pendingBeside, savedBeside, pendingInside }

  /// The bug: each move visited all objects if any object of the entity was being deleted, or had been deleted.
  @Test(arguments: Deletion.allCases) func movesCostNoMoreForADeletion(_ deletion: Deletion) throws {
    func time(_ count: Int) throws -> Duration {
      let (entries, beside) = try list(count), context = beside.managedObjectContext
      context.delete(deletion == .pendingInside ? entries[count / 2] : beside)
      if deletion == .savedBeside { try context.save() }
      return move(500, in: entries)
    }
    try expectCost(below: 15, times: { try time(1_000) }) { try time(30_000) }
  }

  @Test func deletingAndLookingInTurnIsNotQuadratic() throws {
    func time(_ count: Int) throws -> Duration {
      let (entries, beside) = try list(count), context = beside.managedObjectContext
      context.delete(beside)
      return processorTime {
        for _ in 0..<count / 2 { context.delete(entries[entries.count / 2]) }
        #expect(entries.count == count - count / 2)
      }
    }
    // Sixteen times as many objects; quadratic time would be 256 times as long.
    try expectCost(below: 80, times: { try time(500) }) { try time(8_000) }
  }

  /// A list is compared only with the keys deleted since its last access.
  @Test func onlyWhatChangedIsComparedWithWhatIsDeleted() {
    let list = OrderedList(Array(0..<ObjectKey(5_000)))
    let deletions = Deletions(rootCount: 1)
    func look() -> Int { list.hide(deletions, root: 0) }
    #expect(look() == 5_000 && look() == 0)
    for key in ObjectKey(100)..<200 {
      deletions.insert(key, root: 0)
      #expect(look() == 0 && list.visibleCount == 5_099 - Int(key.rawValue))
    }
    for step in 0..<1_000 {
      list.move(list.key(at: step * 4), to: 4_000 - step)
      #expect(look() == 1)
    }
    // An object that is already being deleted, and one that isn't in the list.
    for key in [6_000, 7_000] as [ObjectKey] { deletions.insert(key, root: 0) }
    _ = look()
    list.insert(6_000, at: 10)
    #expect(look() == 1 && list.visibleCount == 4_900 && list.contains(6_000) && list.position(of: 6_000) == nil)
    deletions.removeAll()
    deletions.insert(3, root: 0)
    #expect(look() == 5_001 && list.visibleCount == 5_000 && list.position(of: 150) != nil && list.position(of: 3) == nil)
  }

  /// Random changes of a list with hidden keys, compared with plain arrays. Prints its seed; HOLDFAST_SEED repeats a run.
  @Test func aListWithHiddenKeysIsAnArrayOfTheOthers() {
    var random = SeededGenerator()
    print("ordered lists with hidden keys: HOLDFAST_SEED=\(random.seed)")
    var plain = Array(0..<ObjectKey(3_000)), next: ObjectKey = 3_000
    let list = OrderedList(plain)
    var deleted: Set<ObjectKey> = []
    let deletions = Deletions(rootCount: 2)
    for step in 0..<6_000 {
      let at = Int.random(in: 0..<plain.count, using: &random)
      switch Int.random(in: 0..<6, using: &random) {
      case 0:
        list.insert(next, at: at)
        plain.insert(next, at: at)
        next = next.advanced(by: 1)
      case 1: list.remove(plain.remove(at: at))
      case 2:
        let key = plain.remove(at: at), to = Int.random(in: 0...plain.count, using: &random)
        list.move(key, to: to)
        plain.insert(key, at: to)
      case 3:
        deleted.insert(plain[at])
        deletions.insert(plain[at], root: 1)
        plain.remove(at: at)
      case 4:
        // A hidden key is removed from the list, too.
        if let key = deleted.randomElement(using: &random) { list.remove(key) }
      default: #expect(list.keys(in: at..<at + 700) == Array(plain[at...].prefix(700)))
      }
      list.hide(deletions, root: 1)
      if plain.count < 1_000 {
        list.replaceOrder(by: list.keys)
        for _ in 0..<1_000 {
          list.append(next)
          plain.append(next)
          next = next.advanced(by: 1)
        }
        list.hide(deletions, root: 1)
      }
      let place = Int.random(in: 0..<plain.count, using: &random)
      guard list.visibleCount == plain.count, list.key(at: place) == plain[place], list.position(of: plain[place]) == place else {
        Issue.record("HOLDFAST_SEED=\(random.seed) step \(step): \(list.visibleCount) of \(plain.count)")
        return
      }
    }
    #expect(list.visibleKeys == plain)
  }

  @Test(arguments: TestStore.allCases) func aRollbackShowsDeletedObjectsWhereTheyStood(_ store: TestStore) throws {
    let place = try store.makePlace(model: Self.model, classes: []), context = try place.context()
    let entries = try context.insert(entityNamed: "List").ordered(forKey: "entries")
    for _ in 0..<6 { entries.append(try context.insert(entityNamed: "Entry")) }
    try context.save()
    let all = Array(entries)
    for changesList in [false, true] {
      context.delete(all[1])
      #expect(Array(entries) == [0, 2, 3, 4, 5].map { all[$0] } && !entries.contains(all[1]) && entries.firstIndex(of: all[1]) == nil)
      context.delete(all[4])
      #expect(entries.count == 4 && entries[3] == all[5] && entries.firstIndex(of: all[5]) == 3)
      if changesList {
        entries.move(from: 3, to: 1)
        // It is deleted, at any position.
        entries.append(all[4])
        #expect(Array(entries) == [0, 5, 2, 3].map { all[$0] })
      }
      context.rollback()
      #expect(Array(entries) == all && entries[4] == all[4] && entries.contains(all[1]))
    }
    context.delete(all[2])
    #expect(entries.count == 5)
    try context.save()
    context.delete(all[0])
    #expect(Array(entries) == [1, 3, 4, 5].map { all[$0] })
    context.rollback()
    #expect(Array(entries) == [0, 1, 3, 4, 5].map { all[$0] } && entries.count == 5)
  }
}
