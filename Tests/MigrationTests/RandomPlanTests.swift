import Foundation
import Holdfast
import HoldfastAtomicStore
import HoldfastStore
import SQLiteTestSupport
import Synchronization
import TestSupport
import Testing

/// Random plans with code: every store has the contents that a simple rule predicts, also after a cancellation.
@Suite struct RandomPlanTests {
  @Test func everyStoreHasTheExpectedContents() throws {
    var random = SeededGenerator("Plans"), codeCount = 0
    for _ in 0..<TestTier.count(6, full: 150) {
      var one = random.round()
      let seed = one.seed
      let first = RandomModel(&one), graph = RandomGraph(first, &one), old = try first.model()
      let versions = try RandomVersions(from: first, graph, &one), new = try versions.last.model()
      codeCount += versions.codeCount
      let expected = versions.graph.lines(versions.last), unsettled = versions.graph.unsettledNames(versions.last)
      let passedCount = Int.random(in: 0...25, using: &one)
      for store in MigratedStore.allCases where store != .coreData || !RandomModel.hidesChanges([old] + versions.models) {
        let place = MigratedStore.Place(store), plan = versions.plan(from: old, Interruption(after: passedCount))
        try place.fill(old) { try graph.insert(into: $0, first) }
        var found: [String] = []
        do {
          // In half of the rounds, all rows of whole files go through a temporary file.
          try RowSpill.$residentByteCount.withValue(seed % 2 == 0 ? 0 : RowSpill.residentByteCount) { try migrate(place, plan) }
          try place.change(new) { found = try Contents(of: $0, sorting: unsettled).lines }
        } catch {
          Issue.record("HOLDFAST_SEED=\(seed) \(store): \(error)")
          continue
        }
        #expect(found == expected, "HOLDFAST_SEED=\(seed) \(store)")
        #expect(!place.folder.names.contains { $0.hasPrefix(".holdfast-") }, "HOLDFAST_SEED=\(seed) \(store): \(place.folder.names)")
        #expect(try PersistentStoreCoordinator.metadata(for: place.description).userInfo.isEmpty, "HOLDFAST_SEED=\(seed) \(store)")
        if store == .sqlite || store == .coreData {
          #expect(try SQL.rows(place.path, "PRAGMA integrity_check") == [["ok"]], "HOLDFAST_SEED=\(seed) \(store)")
        }
        // The migrated store takes new objects.
        try place.change(new) { context in
          for entity in new.entities where !entity.isAbstract { try context.add(entity.name, "new \(entity.name)") }
        }
        let lines = try place.contents(new)
        #expect(lines.count == expected.count + new.entities.count { !$0.isAbstract }, "HOLDFAST_SEED=\(seed) \(store)")
      }
    }
    #expect(codeCount > 0)
  }

  /// Runs a plan, and continues it if it was cancelled.
  private func migrate(_ place: MigratedStore.Place, _ plan: MigrationPlan) throws {
    do { try PersistentStoreCoordinator.migratePersistentStore(place.description, with: plan) } catch is CancellationError {
      try PersistentStoreCoordinator.migratePersistentStore(place.description, with: plan)
    }
  }
}

/// Cancels a plan once, when a number of objects has been passed to its code; never if the number is 0.
private final class Interruption: Sendable {
  private let rest: Mutex<Int>

  init(after count: Int) { rest = Mutex(count) }

  func pass() throws {
    let isReached = rest.withLock { rest in
      rest -= 1
      return rest == 0
    }
    if isReached { throw CancellationError() }
  }
}

/// Successive versions of a random model with the stages between them, and the graph after the last stage.
private struct RandomVersions {
  private var stages: [RandomStage] = []
  private(set) var last: RandomModel
  private(set) var graph: RandomGraph

  init(from first: RandomModel, _ former: RandomGraph, _ random: inout SeededGenerator) throws {
    (last, graph) = (first, former)
    var digests: Set<String> = try [first.model().versionDigest]
    let count = Int.random(in: 2...3, using: &random)
    for _ in 0..<20 where stages.count < count {
      var next = last
      // Renaming identifiers are names of the version before, or of an earlier one.
      if Bool.random(using: &random) { next.forgetFormerNames() }
      for _ in 0..<Int.random(in: 1...3, using: &random) { next.change(&random) }
      let model = try next.model()
      // A stage between equal versions never runs, and one that needs a decision can't be predicted.
      if next.needsDecision(since: last) || !digests.insert(model.versionDigest).inserted { continue }
      stages.append(RandomStage(from: last, to: next, model, number: stages.count + 1, &graph, &random))
      last = next
    }
  }

  /// The versions after the first one.
  var models: [ManagedObjectModel] { stages.map(\.model) }

  /// The number of stages with code.
  var codeCount: Int { stages.count { !$0.actions.isEmpty } }

  func plan(from first: ManagedObjectModel, _ interruption: Interruption) -> MigrationPlan {
    var plan = MigrationPlan(from: first)
    for stage in stages {
      if stage.actions.isEmpty {
        plan.add(stage.model)
      } else {
        plan.add(stage.model, named: "stage \(stage.number)", isResumable: stage.isResumable) { try stage.run($0, interruption) }
      }
    }
    return plan
  }
}

/// A stage, which has code if it has actions.
private struct RandomStage: Sendable {
  /// A change by the code of a stage.
  enum Action: Sendable {
    /// Sets an attribute of the objects of a former entity that have it.
    case set(RandomModel.Attribute, of: RandomModel.Entity, plus: Int)
    /// Deletes objects of a former entity by their tags.
    case delete(Set<String>, of: RandomModel.Entity)
    /// Inserts objects of a new entity with these tags.
    case insert([String], of: RandomModel.Entity)
  }

  let model: ManagedObjectModel
  let number: Int
  let isResumable: Bool
  private let batchSize: Int
  private(set) var actions: [Action] = []

  /// Makes a stage, and changes a graph as the stage changes a store.
  init(
    from old: RandomModel, to new: RandomModel, _ model: ManagedObjectModel, number: Int, _ graph: inout RandomGraph,
    _ random: inout SeededGenerator
  ) {
    (self.model, self.number) = (model, number)
    isResumable = Bool.random(using: &random)
    batchSize = [1, 2, 3, 5_000].randomElement(using: &random) ?? 1
    graph = graph.migrated(from: old, to: new)
    if Int.random(in: 0..<4, using: &random) == 0 { return }
    // Loops don't pass the objects that the stage inserts.
    let tags = Set(graph.objects.map(\.tag))
    for place in 0..<Int.random(in: 1...4, using: &random) {
      let first = 1_000 * number + 10 * place
      guard let action = Self.action(from: old, to: new, graph, tags, insertingFrom: first, &random) else { continue }
      actions.append(action)
      switch action {
      case .set(let attribute, let entity, let shift):
        graph.set(attribute, plus: shift) { object in
          tags.contains(object.tag) && old.isKind(object.entity, of: entity.id)
            && new.leaves(object.entity).contains { $0.id == attribute.id }
        }
      case .delete(let tags, _): graph.delete(tags)
      case .insert(let tags, let entity): for tag in tags { graph.insert(tag, of: entity.id, new) }
      }
    }
  }

  private static func action(
    from old: RandomModel, to new: RandomModel, _ graph: RandomGraph, _ tags: Set<String>, insertingFrom first: Int,
    _ random: inout SeededGenerator
  ) -> Action? {
    guard let former = old.entities.randomElement(using: &random) else { return nil }
    switch Int.random(in: 0..<4, using: &random) {
    case 0, 1:
      guard let attribute = new.leaves(former.id).randomElement(using: &random) else { return nil }
      return .set(attribute, of: former, plus: Int.random(in: 0...100, using: &random))
    case 2:
      // Without an inverse, the references to a deleted object would remain.
      let needed = graph.destinationsWithoutInverse(new)
      var deleted: Set<String> = []
      for object in graph.objects where tags.contains(object.tag) && old.isKind(object.entity, of: former.id) {
        if !needed.contains(object.tag) && Bool.random(using: &random) { deleted.insert(object.tag) }
      }
      return .delete(deleted, of: former)
    default:
      guard let entity = new.entities.filter({ !$0.isAbstract }).randomElement(using: &random) else { return nil }
      return .insert((1...Int.random(in: 1...3, using: &random)).map { "t\(first + $0)" }, of: entity)
    }
  }

  func run(_ stage: MigrationStage, _ interruption: Interruption) throws {
    for action in actions {
      switch action {
      case .set(let attribute, let entity, let shift):
        try stage.forEach(entity.name, savingEvery: batchSize) { old, new in
          try interruption.pass()
          guard new.entity.attributes.contains(where: { $0.name == attribute.name }) else { return }
          try new.setValue(RandomGraph.value(attribute.type, of: Contents.text(old["tag"]), plus: shift), forKeyPath: attribute.name)
        }
      case .delete(let tags, let entity):
        try stage.forEach(entity.name, savingEvery: batchSize) { old, new in
          try interruption.pass()
          if tags.contains(Contents.text(old["tag"])) { stage.context.delete(new) }
        }
      case .insert(let tags, let entity): for tag in tags { try stage.context.add(entity.name, tag) }
      }
    }
  }
}
