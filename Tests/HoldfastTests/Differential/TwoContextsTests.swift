import Foundation
import HoldfastBinaryStore
import HoldfastJSONStore
import HoldfastStore
import HoldfastStoreConformance
import HoldfastXMLStore
import TestSupport
import Testing

@testable import Holdfast

/// Two contexts change one random graph, save, meet conflicts, refresh and save again. A new context must then find a consistent graph:
/// Both ends of every relationship agree. To-many relationships with an inverse contain only existing objects. A many-to-many link that was
/// added or removed has incremented the versions of both ends.
///
/// If one context deletes an object while another sets a to-one relationship to it, or one without inverse, the relationship may dangle.
/// The version of the deleted row doesn't depend on the objects that reference it.
///
/// Set HOLDFAST_SEED to repeat a run.
@Suite struct TwoContextsTests {
  private static let programCount = TestTier.count(10, full: 750)

  @Test(arguments: [TestStore.memory, .json, .xml, .binary, .sqlite, .weakest]) func RH4_whatTwoContextsSaveIsSound(_ store: TestStore)
    throws
  {
    try run("\(store)") { try Race(store, seed: $0) }
  }

  /// Each of two processes accepts the other's saves as later versions of what it knows.
  @Test func RH4_whatTwoProcessesSaveIsSound() throws {
    try run("two processes") { try Race(processesWithSeed: $0) }
  }

  private func run(_ name: String, _ makeRace: (UInt64) throws -> Race) throws {
    var seeds = SeededGenerator()
    var (saves, conflicts) = (0, 0)
    for number in 0..<Self.programCount {
      var race = try makeRace(seeds.next())
      do {
        try race.run(steps: 200)
      } catch {
        Issue.record(
          "HOLDFAST_SEED=\(seeds.seed), program \(number): \(error)\n\(race.log.suffix(30).joined(separator: "\n"))\n\(race.model)")
        return
      }
      (saves, conflicts) = (saves + race.saves, conflicts + race.conflicts)
    }
    print("Two contexts, \(name), HOLDFAST_SEED=\(seeds.seed): \(saves) saves, \(conflicts) conflicts")
    #expect(saves > 5 * Self.programCount && conflicts > Self.programCount / 4)
  }
}

private struct Unsound: Error, CustomStringConvertible { let description: String }

/// The many-to-many links with an inverse in a store, and the versions of all rows.
private struct SavedLinks {
  struct Link: Hashable {
    var relationship: String
    var ends: [ManagedObjectID]
  }
  var links: Set<Link> = []
  var versions: [ManagedObjectID: RowVersion] = [:]

  /// The ends of a link that is in only one of two versions of a store, although one of its ends has the same version number in both. Nil
  /// if there is none.
  func changedUnnoticed(_ later: SavedLinks) -> [ManagedObjectID]? {
    links.symmetricDifference(later.links).first { link in
      link.ends.allSatisfy { versions[$0] != nil && later.versions[$0] != nil } && link.ends.contains { versions[$0] == later.versions[$0] }
    }?.ends
  }
}

/// One program of two contexts.
private struct Race {
  let model: RandomModel
  /// One place for both contexts, or one for each.
  private let places: [TestStore.Place]
  private let contexts: [ManagedObjectContext]
  private var random: SeededGenerator
  private var saved = SavedLinks()
  private(set) var log: [String] = []
  private(set) var saves = 0
  private(set) var conflicts = 0

  init(_ store: TestStore, seed: UInt64) throws {
    random = SeededGenerator(seed: seed)
    model = try RandomModel(&random)
    let place = try store.makePlace(model: model.model, classes: [])
    places = [place]
    contexts = [try place.context(), try place.context()]
    readAlone(seed)
  }

  /// Two contexts, each with its own file, as in two processes. After a save, one file replaces the other.
  init(processesWithSeed seed: UInt64) throws {
    random = SeededGenerator(seed: seed)
    model = try RandomModel(&random)
    let places = try (0..<2).map { [model] _ in try TestStore.json.makePlace(model: model.model, classes: []) }
    self.places = places
    let first = try places[0].context()
    try FileManager.default.copyItem(at: Race.file(places[0]), to: Race.file(places[1]))
    contexts = [first, try places[1].context()]
    readAlone(seed)
  }

  /// Every other program reads objects one by one, so that the ends of a link are read at different times.
  private func readAlone(_ seed: UInt64) { for context in contexts { context.firesFaultsInBatches = seed % 2 == 0 } }

  mutating func run(steps: Int) throws {
    for step in 0..<steps {
      do {
        try run(step, contexts[Int.random(in: 0...1, using: &random)])
      } catch let error as PersistenceError where error.code == .missingObject {
        // A context has deleted an object that the other one reads.
        for context in contexts { context.rollback() }
      }
    }
    try checkSaved(contexts[0])
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
    } catch let error as PersistenceError {
      note("\(error.code)", context)
      if error.code == .conflict { try saveAfterRefresh(context) } else { context.rollback() }
    }
    try checkSaved(context)
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

  // MARK: Consistency

  /// Checks what a context has saved, and passes it to the other process if there is one.
  private mutating func checkSaved(_ context: ManagedObjectContext) throws {
    let place = places[context === contexts[0] ? 0 : places.count - 1]
    if places.count == 1 { try check(place.context()) }
    if [.json, .xml, .binary].contains(place.store) { try checkCopy(place) }
    for other in places where other !== place { try Data(contentsOf: Race.file(place)).write(to: Race.file(other), options: .atomic) }
  }

  private static func file(_ place: TestStore.Place) -> URL { place.folder.appendingPathComponent("Kennel.\(place.store)") }

  /// The file on disk is a store that opens.
  private mutating func checkCopy(_ place: TestStore.Place) throws {
    let copy = place.folder.appendingPathComponent("copy.\(place.store)")
    try Data(contentsOf: Race.file(place)).write(to: copy)
    do {
      let store: StoreDescription =
        switch place.store {
        case .xml: .xml(at: copy.path)
        case .binary: .binary(at: copy.path)
        default: .json(at: copy.path)
        }
      let coordinator = try PersistentStoreCoordinator(model: model.model, store: store)
      try check(ManagedObjectContext(coordinator: coordinator))
      try coordinator.close()
    } catch let error as StoreError {
      throw Unsound(description: "The file can't be opened: \(error)")
    }
  }

  private mutating func check(_ context: ManagedObjectContext) throws {
    var all: [ManagedObject] = []
    for entity in model.model.entities where entity.superentityIndex == nil {
      all += try context.fetch(FetchRequest<ManagedObject>(entityName: entity.name))
    }
    let known = Set(all)
    var found = SavedLinks()
    for object in all {
      found.versions[object.id] = object.readRow.version
      for relationship in object.entity.relationships {
        let targets = try targets(object, relationship)
        if relationship.isManyToMany, model.model.inverse(of: relationship) != nil {
          for target in targets { found.links.insert(SavedLinks.Link(relationship: relationship.name, ends: [object.id, target.id])) }
        }
        if Set(targets).count != targets.count { throw Unsound(description: "\(object) \(relationship.name) has a target twice.") }
        for target in targets { try check(object, relationship, target, isThere: known.contains(target)) }
      }
    }
    if let ends = saved.changedUnnoticed(found) { throw Unsound(description: "A link of \(ends) changed without new versions.") }
    saved = found
  }

  private func check(
    _ object: ManagedObject, _ relationship: ManagedObjectModel.Relationship, _ target: ManagedObject, isThere: Bool
  ) throws {
    guard let inverse = model.model.inverse(of: relationship) else { return }
    if !isThere {
      if relationship.isToMany { throw Unsound(description: "\(object) \(relationship.name) contains \(target), which doesn't exist.") }
    } else if try !targets(target, inverse).contains(object) {
      throw Unsound(description: "\(object) \(relationship.name) contains \(target), but not the reverse.")
    }
  }

  private func targets(_ object: ManagedObject, _ relationship: ManagedObjectModel.Relationship) throws -> [ManagedObject] {
    if !relationship.isToMany { return object.toOne(relationship).map { [$0] } ?? [] }
    return relationship.isOrdered
      ? Array(try object.ordered(forKey: relationship.name)) : Array(try object.toMany(forKey: relationship.name))
  }
}
