import HoldfastStore
import HoldfastStoreConformance
import TestSupport
import Testing

@testable import Holdfast

/// Three contexts change one random graph, read parts of it at different times, discard, refresh, merge and save under random policies.
///
/// - After each save, a new context finds a consistent graph: both ends of every relationship agree, and lists contain existing objects.
/// - Merging policies let each save succeed, unless a rule of the model refuses it.
/// - A context without unsaved changes that merges by itself has the same graph as a new context.
///
/// If one context deletes an object while another sets a to-one relationship to it, or one without inverse, the relationship may dangle.
///
/// Set HOLDFAST_SEED to repeat a run. A failure shows the shortest program that was found.
@Suite struct PolicyRaceTests {
  @Test(arguments: [TestStore.memory, .json, .sqlite, .weakest, .second])
  func RH4_whatContextsWithPoliciesSaveIsSound(_ store: TestStore) throws {
    var seeds = SeededGenerator()
    for number in 0..<TestTier.count(15, full: 1500) {
      let seed = seeds.next()
      let steps = PolicyRace.Step.random(count: 120, seed: seed)
      guard let failure = PolicyRace.failure(store, seed, steps) else { continue }
      let short = PolicyRace.shortened(store, seed, steps)
      let last = PolicyRace.failure(store, seed, short) ?? failure
      Issue.record("HOLDFAST_SEED=\(seeds.seed), program \(number) on \(store): \(last)")
      return
    }
  }
}

/// One program.
private final class PolicyRace {
  struct Step {
    enum Kind: CaseIterable {
      case insert, link, unlink, linkAgain, move, delete, read, refresh, discard, save, merge, saveAll
    }

    var kind: Kind
    var context: Int
    var numbers: [Int]

    static func random(count: Int, seed: UInt64) -> [Step] {
      var random = SeededGenerator(seed: seed &+ 1)
      let kinds: [Kind] =
        [.insert, .insert, .link, .link, .link, .link, .unlink, .linkAgain, .move, .delete, .read, .read, .refresh, .discard]
        + [.save, .save, .save, .merge, .saveAll]
      return (0..<count).map { _ in
        Step(
          kind: kinds.randomElement(using: &random) ?? .save, context: Int.random(in: 0..<3, using: &random),
          numbers: (0..<4).map { _ in Int.random(in: 0..<10_000, using: &random) })
      }
    }
  }

  private struct Unsound: Error, CustomStringConvertible { let description: String }

  static let policies: [(name: String, policy: MergePolicy)] = [
    ("store", .mergeByPropertyStoreTrump), ("object", .mergeByPropertyObjectTrump), ("overwrite", .overwrite), ("rollback", .rollback),
    ("error", .error),
  ]

  private let model: RandomModel
  private let place: TestStore.Place
  private let contexts: [ManagedObjectContext]
  private var log: [String] = []
  private var step = 0

  private init(_ store: TestStore, seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    model = try RandomModel(&random)
    place = try store.makePlace(model: model.model, classes: [])
    contexts = try (0..<3).map { [place] _ in try place.context() }
    contexts[0].automaticallyMergesChanges = true
    contexts[1].automaticallyMergesChanges = seed % 3 == 0
    for context in contexts { context.firesFaultsInBatches = seed % 2 == 0 }
  }

  /// What goes wrong in a program; nil if nothing does.
  static func failure(_ store: TestStore, _ seed: UInt64, _ steps: [Step]) -> String? {
    do {
      let race = try PolicyRace(store, seed: seed)
      do {
        for step in steps { try race.run(step) }
        return nil
      } catch {
        return "\(error)\n\(race.log.joined(separator: "\n"))\n\(race.model)"
      }
    } catch {
      return "\(error)"
    }
  }

  /// A program that fails as well, without steps that it doesn't need.
  static func shortened(_ store: TestStore, _ seed: UInt64, _ steps: [Step]) -> [Step] {
    var (steps, size) = (steps, steps.count / 2)
    while size > 0 {
      var start = 0
      while start < steps.count {
        var fewer = steps
        fewer.removeSubrange(start..<min(start + size, steps.count))
        if failure(store, seed, fewer) != nil { steps = fewer } else { start += size }
      }
      size /= 2
    }
    return steps
  }

  // MARK: Steps

  private func note(_ what: @autoclosure () -> String, _ context: ManagedObjectContext) {
    log.append("\(contexts.firstIndex { $0 === context } ?? 9): \(what())")
  }

  private func run(_ step: Step) throws {
    self.step += 1
    let context = contexts[step.context]
    do {
      try run(step, context)
    } catch let error as PersistenceError where error.code == .missingObject || error.code == .unreadValues {
      // A context has deleted an object that another one reads.
      note("\(error.code), roll back", context)
      try reset(context)
    }
  }

  private func reset(_ context: ManagedObjectContext) throws {
    context.rollback()
    try context.refreshAllObjects()
    if context.automaticallyMergesChanges { try context.processPendingChanges() }
  }

  private func run(_ step: Step, _ context: ManagedObjectContext) throws {
    let numbers = step.numbers
    switch step.kind {
    case .insert:
      let object = try context.insert(entityNamed: model.concrete[numbers[0] % model.concrete.count].name)
      try object.setValue(.int64(Int64(self.step)), forKey: "tag")
      note("insert \(object)", context)
    case .link: try link(numbers, context, isAddition: true)
    case .unlink: try link(numbers, context, isAddition: false)
    case .linkAgain:
      guard let object = try pick(root(numbers[0]), numbers[1], context) else { return }
      try object.setValue(.int64(Int64(self.step)), forKey: "tag")
      note("tag \(object)", context)
    case .move: try move(numbers, context)
    case .delete:
      guard let object = try pick(root(numbers[0]), numbers[1], context) else { return }
      note("delete \(object)", context)
      context.delete(object)
      if numbers[2] % 2 == 0 { try context.processPendingChanges() }
    case .read:
      guard let object = try pick(root(numbers[0]), numbers[1], context) else { return }
      note("read \(object)", context)
      for relationship in object.entity.relationships { _ = try targets(object, relationship) }
    case .refresh:
      guard let object = try pick(root(numbers[0]), numbers[1], context) else { return }
      note("refresh \(object) \(numbers[2] % 2 == 0)", context)
      try context.refresh(object, mergeChanges: numbers[2] % 2 == 0)
    case .discard:
      let changed = (context.updatedObjects + context.deletedObjects).sorted { $0.objectKey < $1.objectKey }
      if changed.isEmpty { return }
      let object = changed[numbers[0] % changed.count]
      note("discard \(object)", context)
      try context.discardChanges(of: [object.objectID])
    case .merge:
      note("merge", context)
      try context.processPendingChanges()
    case .save:
      let (name, policy) = Self.policies[numbers[0] % Self.policies.count]
      try save(context, name, policy)
    case .saveAll:
      let (name, policy) = Self.policies[numbers[0] % 4]
      for context in contexts { try save(context, name, policy) }
      try compare()
    }
  }

  private func root(_ number: Int) -> String {
    let roots = model.model.entities.filter { $0.superentityIndex == nil }
    return roots[number % roots.count].name
  }

  private func pick(_ entity: String, _ number: Int, _ context: ManagedObjectContext) throws -> ManagedObject? {
    let objects = try context.fetch(FetchRequest<ManagedObject>(entityName: entity)).sorted { $0.objectKey < $1.objectKey }
    return objects.isEmpty ? nil : objects[number % objects.count]
  }

  private func link(_ numbers: [Int], _ context: ManagedObjectContext, isAddition: Bool) throws {
    guard let object = try pick(root(numbers[0]), numbers[1], context), !object.entity.relationships.isEmpty else { return }
    let relationship = object.entity.relationships[numbers[2] % object.entity.relationships.count]
    let target = try pick(model.model.destination(of: relationship).name, numbers[3], context)
    note("\(isAddition ? "link" : "unlink") \(object) \(relationship.name) \(target.map { "\($0)" } ?? "nil")", context)
    if !relationship.isToMany {
      object.setToOne(relationship, isAddition ? target : nil)
    } else if let target {
      let targets = try object.toMany(forKey: relationship.name)
      if isAddition { targets.insert(target) } else { targets.remove(target) }
    }
  }

  private func move(_ numbers: [Int], _ context: ManagedObjectContext) throws {
    guard let object = try pick(root(numbers[0]), numbers[1], context) else { return }
    let ordered = object.entity.relationships.filter(\.isOrdered)
    if ordered.isEmpty { return }
    let relationship = ordered[numbers[2] % ordered.count], list = try object.ordered(forKey: relationship.name)
    if list.count < 2 { return }
    note("move \(object) \(relationship.name) \(numbers[3] % list.count)", context)
    list.move(from: numbers[3] % list.count, to: numbers[0] % list.count)
  }

  private func save(_ context: ManagedObjectContext, _ name: String, _ policy: MergePolicy) throws {
    note("save \(name)", context)
    context.mergePolicy = policy
    do {
      try context.save()
    } catch let error as PersistenceError {
      note("\(error.code)", context)
      let isPolicy = name == "store" || name == "rollback"
      if error.code == .conflict, isPolicy { throw Unsound(description: "The policy didn't resolve the conflict: \(error)") }
      try reset(context)
    }
    context.mergePolicy = .error
    try check(place.context())
  }

  // MARK: Checks

  /// Contexts without changes have the graph of a new context.
  private func compare() throws {
    let fresh = try graph(place.context())
    for (number, context) in contexts.enumerated() {
      if context.hasChanges { continue }
      if context.automaticallyMergesChanges { try context.processPendingChanges() } else { try context.refreshAllObjects() }
      note("compare", context)
      let own = try graph(context)
      if own == fresh { continue }
      let different = Set(own.keys).union(fresh.keys).filter { own[$0] != fresh[$0] }.sorted()
      throw Unsound(
        description: "Context \(number) differs in "
          + different.map { "\($0): \(own[$0]?.description ?? "nothing") instead of \(fresh[$0]?.description ?? "nothing")" }
          .joined(separator: "; "))
    }
  }

  /// The tags and the existing destinations of all objects, by ID.
  private func graph(_ context: ManagedObjectContext) throws -> [String: [String]] {
    let all = try objects(context), known = Set(all)
    var graph: [String: [String]] = [:]
    for object in all {
      var values = ["\(try object.value(forKey: "tag"))"]
      for relationship in object.entity.relationships {
        let targets = try targets(object, relationship).filter(known.contains).map { "\($0.objectID)" }
        values.append(relationship.name + " " + (relationship.isOrdered ? targets : targets.sorted()).joined(separator: ", "))
      }
      graph["\(object.objectID)"] = values
    }
    // Missing objects were read.
    context.acknowledgeFaultErrors()
    return graph
  }

  private func objects(_ context: ManagedObjectContext) throws -> [ManagedObject] {
    try model.model.entities.filter { $0.superentityIndex == nil }.flatMap {
      try context.fetch(FetchRequest<ManagedObject>(entityName: $0.name))
    }
  }

  private func check(_ context: ManagedObjectContext) throws {
    let all = try objects(context), known = Set(all)
    for object in all {
      for relationship in object.entity.relationships {
        let targets = try targets(object, relationship)
        if Set(targets).count != targets.count { throw Unsound(description: "\(object) \(relationship.name) has a target twice.") }
        guard let inverse = model.model.inverse(of: relationship) else { continue }
        for target in targets {
          if !known.contains(target) {
            if relationship.isToMany { throw Unsound(description: "\(object) \(relationship.name) contains missing \(target).") }
          } else if try !self.targets(target, inverse).contains(object) {
            throw Unsound(description: "\(object) \(relationship.name) contains \(target), but not the reverse.")
          }
        }
      }
    }
  }

  private func targets(_ object: ManagedObject, _ relationship: ManagedObjectModel.Relationship) throws -> [ManagedObject] {
    if !relationship.isToMany { return object.toOne(relationship).map { [$0] } ?? [] }
    return relationship.isOrdered
      ? Array(try object.ordered(forKey: relationship.name)) : Array(try object.toMany(forKey: relationship.name))
  }
}
