import Foundation
import HoldfastJSONStore
import HoldfastStoreConformance
import Testing

@testable import Holdfast

/// Two contexts change one random graph, save, meet conflicts, refresh and save again. What a fresh context then finds must be
/// sound: both ends of every relationship agree, and to-many relationships with an inverse lead to objects that are there.
///
/// An object that one context deletes while another leads a to-one relationship to it, or one without an inverse, may leave a
/// relationship that leads nowhere: the version of its row does not say who leads to it.
///
/// Set HOLDFAST_SEED to repeat a run, HOLDFAST_PROGRAMS for more of them.
@Suite struct TwoContextsTests {
  private static let programCount = ProcessInfo.processInfo.environment["HOLDFAST_PROGRAMS"].flatMap(Int.init) ?? 60

  @Test(arguments: [TestStore.memory, .json, .sqlite, .weakest]) func whatTwoContextsSaveIsSound(_ store: TestStore) throws {
    var seeds = SeededGenerator()
    var (saves, conflicts) = (0, 0)
    for number in 0..<Self.programCount {
      var race = try Race(store, seed: seeds.next())
      do {
        try race.run(steps: 200)
      } catch let unsound as Unsound {
        Issue.record(
          "HOLDFAST_SEED=\(seeds.seed), program \(number): \(unsound)\n\(race.log.suffix(30).joined(separator: "\n"))\n\(race.model)")
        return
      }
      (saves, conflicts) = (saves + race.saves, conflicts + race.conflicts)
    }
    print("Two contexts, \(store), HOLDFAST_SEED=\(seeds.seed): \(saves) saves, \(conflicts) conflicts")
    #expect(saves > 5 * Self.programCount && conflicts > Self.programCount / 4)
  }
}

private struct Unsound: Error, CustomStringConvertible { let description: String }

/// One program of two contexts.
private struct Race {
  let model: RandomModel
  private let store: TestStore
  private let place: TestStore.Place
  private let contexts: [ManagedObjectContext]
  private var random: SeededGenerator
  private(set) var log: [String] = []
  private(set) var saves = 0
  private(set) var conflicts = 0

  init(_ store: TestStore, seed: UInt64) throws {
    random = SeededGenerator(seed: seed)
    model = try RandomModel(&random)
    self.store = store
    place = try store.makePlace(model: model.model, classes: [])
    contexts = [try place.context(), try place.context()]
  }

  mutating func run(steps: Int) throws {
    for step in 0..<steps {
      do {
        try run(step, contexts[Int.random(in: 0...1, using: &random)])
      } catch let error as ContextError where error.code == .missingObject {
        // One of the two has deleted what the other one reads.
        for context in contexts { context.rollback() }
      }
    }
    try check(place.context())
  }

  private mutating func run(_ step: Int, _ context: ManagedObjectContext) throws {
    switch Int.random(in: 0..<17, using: &random) {
    case 0...2: try insert(step, context)
    case 3...8: try link(context)
    case 9:
      guard let object = try pick(root(), context) else { return }
      note("delete \(object)", context)
      context.delete(object)
    case 10...12: try save(context)
    case 13:
      note("refresh", context)
      do { try context.refreshAllObjects() } catch { context.rollback() }
    default: try move(step, context)
    }
  }

  private mutating func note(_ what: String, _ context: ManagedObjectContext) {
    log.append("\(context === contexts[0] ? "A" : "B"): \(what)")
  }

  private mutating func root() throws -> String {
    try #require(model.model.entities.filter { $0.superentityIndex == nil }.randomElement(using: &random)).name
  }

  private mutating func pick(_ entity: String, _ context: ManagedObjectContext) throws -> ManagedObject? {
    try context.fetch(FetchRequest<ManagedObject>(entityName: entity)).sorted { $0.objectKey < $1.objectKey }.randomElement(using: &random)
  }

  private mutating func insert(_ step: Int, _ context: ManagedObjectContext) throws {
    let object = try context.insert(entityNamed: #require(model.concrete.randomElement(using: &random)).name)
    try object.setValue(.int64(Int64(step)), forKey: "tag")
    note("insert \(object)", context)
  }

  private mutating func link(_ context: ManagedObjectContext) throws {
    guard let object = try pick(root(), context), let relationship = object.entity.relationships.randomElement(using: &random) else {
      return
    }
    let target = try pick(model.model.destination(of: relationship).name, context)
    if !relationship.isToMany {
      object.setToOne(relationship, Int.random(in: 0..<4, using: &random) == 0 ? nil : target)
    } else if let target {
      let targets = try object.toMany(forKey: relationship.name)
      if Int.random(in: 0..<3, using: &random) == 0 { targets.remove(target) } else { targets.insert(target) }
    }
    note("link \(object) \(relationship.name) \(target.map { "\($0)" } ?? "nil")", context)
  }

  private mutating func move(_ step: Int, _ context: ManagedObjectContext) throws {
    guard let object = try pick(root(), context),
      let relationship = object.entity.relationships.filter(\.isOrdered).randomElement(using: &random)
    else { return }
    let list = try object.ordered(forKey: relationship.name)
    if list.count < 2 { return }
    let (from, to) = (Int.random(in: 0..<list.count, using: &random), Int.random(in: 0..<list.count, using: &random))
    if step % 3 == 0 { list.reverse() } else if step % 3 == 1 { list.move(from: from, to: to) } else { list.remove(at: from) }
    note("move \(object) \(relationship.name) \(step % 3) \(from) \(to)", context)
  }

  private mutating func save(_ context: ManagedObjectContext) throws {
    note("save", context)
    do {
      try context.save()
      saves += 1
    } catch let error as ContextError {
      note("\(error.code)", context)
      if error.code == .conflict { try saveAfterRefresh(context) } else { context.rollback() }
    }
    try check(place.context())
    if store == .json { try openCopy() }
  }

  private mutating func saveAfterRefresh(_ context: ManagedObjectContext) throws {
    conflicts += 1
    do {
      try context.refreshAllObjects()
      try context.save()
      saves += 1
      note("saved after a refresh", context)
    } catch {
      context.rollback()
      try context.refreshAllObjects()
    }
  }

  /// What is on the disk is a store that opens.
  private func openCopy() throws {
    let copy = place.folder.appendingPathComponent("copy.json")
    try? FileManager.default.removeItem(at: copy)
    try FileManager.default.copyItem(at: place.folder.appendingPathComponent("Kennel.json"), to: copy)
    do {
      try PersistentStoreCoordinator(model: model.model, store: .json(at: copy.path)).close()
    } catch {
      throw Unsound(description: "The file does not open: \(error)")
    }
  }

  // MARK: Soundness

  private func check(_ context: ManagedObjectContext) throws {
    var all: [ManagedObject] = []
    for entity in model.model.entities where entity.superentityIndex == nil {
      all += try context.fetch(FetchRequest<ManagedObject>(entityName: entity.name))
    }
    let known = Set(all)
    for object in all {
      for relationship in object.entity.relationships {
        let targets = try targets(object, relationship)
        if Set(targets).count != targets.count { throw Unsound(description: "\(object) \(relationship.name) has a target twice.") }
        for target in targets { try check(object, relationship, target, isThere: known.contains(target)) }
      }
    }
  }

  private func check(
    _ object: ManagedObject, _ relationship: ManagedObjectModel.Relationship, _ target: ManagedObject, isThere: Bool
  ) throws {
    guard let inverse = model.model.inverse(of: relationship) else { return }
    if !isThere {
      if relationship.isToMany { throw Unsound(description: "\(object) \(relationship.name) leads to \(target), which is not there.") }
    } else if try !targets(target, inverse).contains(object) {
      throw Unsound(description: "\(object) \(relationship.name) leads to \(target), and not back.")
    }
  }

  private func targets(_ object: ManagedObject, _ relationship: ManagedObjectModel.Relationship) throws -> [ManagedObject] {
    if !relationship.isToMany { return object.toOne(relationship).map { [$0] } ?? [] }
    return relationship.isOrdered
      ? Array(try object.ordered(forKey: relationship.name)) : Array(try object.toMany(forKey: relationship.name))
  }
}
