import Foundation
import Holdfast
import HoldfastStore
import TestSupport
import Testing

/// Plans with a resumable stage that are killed at each of their system calls, traced by strace, and continued.
@Suite(.ownThreads) struct ResumedPlanKillTests {
  @Test(arguments: MigratedStore.allCases)
  func RA4_aResumableStageThatIsKilledAtAnyCallMakesEachChangeOnce(store: MigratedStore) async throws {
    let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
      [store = store as MigratedStore] in
      try KilledStage(store: store).run()
    }
    report(child)
  }
}

/// Runs in a separate process.
private struct KilledStage {
  private let store: MigratedStore
  /// The store before the migration. Each process migrates a copy.
  private let original: MigratedStore.Place
  private let old: ManagedObjectModel
  private let new: ManagedObjectModel
  /// The number of objects that an uninterrupted run passes to closures.
  private let callCount = 12

  init(store: MigratedStore) throws {
    self.store = store
    original = MigratedStore.Place(store)
    func version(_ attributes: [AttributeDescription]) throws -> ManagedObjectModel {
      try model(
        EntityDescription("Badge", relationships: [.toMany("dogs", to: "Dog", inverse: "badges")]),
        EntityDescription(
          "Dog", attributes: [.init("count", .integer64, default: 0)] + attributes,
          relationships: [.toMany("badges", to: "Badge", inverse: "dogs"), .toMany("walks", to: "Walk", inverse: "dog")]),
        EntityDescription("Log"), EntityDescription("Walk", relationships: [.toOne("dog", to: "Dog", inverse: "walks")]))
    }
    old = try version([])
    new = try version([.init("note", .string, isOptional: true)])
  }

  func run() throws {
    try apart {
      try original.fill(old) { context in
        try context.add("Badge", "x")
        for dog in ["a", "b", "c"] {
          try context.add("Dog", dog).setValue([try context.add("Walk", "\(dog)1"), try context.add("Walk", "\(dog)2")], forKey: "walks")
        }
      }
    }
    guard let whole = try watched(killingAt: nil) else { return print(Tracer.skipped) }
    demand(whole.run.isSuccess, "The process could not migrate: \(whole.run.lines.suffix(5))")
    let step = TestTier.step(calls: whole.run.calls.count, kills: 10, full: 4), first = Int.random(in: 0..<step)
    var (kills, resumed) = (0, 0)
    for (place, call) in whole.run.calls.enumerated() where place % step == first {
      guard let (run, place) = try watched(killingAt: call) else { return print(Tracer.skipped) }
      demand(run.isKilled || run.isSuccess, "\(call): the process ended with \(run.status)")
      if run.isKilled { kills += 1 }
      do {
        let calls = try apart { try survey(place) }
        demand(calls <= callCount, "\(call): \(calls) objects were passed to the closures.")
        if calls > 0 && calls < callCount { resumed += 1 }
      } catch { complain("\(call), after which \(place.folder.namesOfAllLevels): \(error)") }
    }
    // A third of the calls is made by the batches.
    demand(kills >= 8 && resumed >= kills / 8, "\(kills) kills, \(resumed) resumed")
    print(
      "REPORT RA4, \(store), a resumable stage, from call \(first), each \(step): killed at \(kills) of \(whole.run.calls.count), \(resumed) resumed"
    )
  }

  /// Migrates a copy of the store in a traced process.
  private func watched(killingAt call: Tracer.Call?) throws -> (run: Tracer.Run, place: MigratedStore.Place)? {
    let place = try original.copied()
    let run = try Tracer.run(notes: place.folder.path + ".trace", killingAt: call) {
    } _: {
      _ = try migrate(place)
    }
    return run.map { ($0, place) }
  }

  /// Migrates by changes of each kind that would show if they were made twice. Returns the number of objects that were passed to closures.
  private func migrate(_ place: MigratedStore.Place) throws -> Int {
    final class Count: @unchecked Sendable { var value = 0 }
    var plan = MigrationPlan(from: old)
    let count = Count()
    plan.add(new, named: "changes", isResumable: true) { stage in
      func forEachDog(_ body: (ManagedObject) throws -> Void) throws {
        try stage.forEach("Dog", savingEvery: 1) { _, dog in
          count.value += 1
          try body(dog)
        }
      }
      try stage.context.add("Log", "before")
      try forEachDog { dog in
        guard case .int64(let count)? = try dog.value(forKey: "count").storeValue else { return }
        try dog.setValue(StoreValue.int64(count + 1), forKey: "count")
      }
      // Only links change.
      try forEachDog { dog in
        guard case .objects(let badges) = try dog.value(forKey: "badges") else { return }
        try dog.setValue(badges.isEmpty ? [try stage.context.tagged("Badge", "x")] : [], forKey: "badges")
      }
      try stage.context.add("Log", "between")
      try forEachDog { dog in try stage.context.add("Log", "of \(try Contents.tag(dog))") }
      try forEachDog { dog in
        guard case .objects(let walks) = try dog.value(forKey: "walks") else { return }
        if let last = try walks.max(by: { try Contents.tag($0) < Contents.tag($1) }) { stage.context.delete(last) }
      }
      try stage.context.add("Log", "after")
    }
    try PersistentStoreCoordinator.migratePersistentStore(place.description.migrating(from: [old]), with: plan)
    return count.value
  }

  private func survey(_ place: MigratedStore.Place) throws -> Int {
    let calls = try migrate(place), lines = try place.contents(new)
    let dogs = ["a", "b", "c"].map { "Dog \($0): count=1 note=nil badges=[x] walks=[\($0)1]" }
    let logs = ["after", "before", "between", "of a", "of b", "of c"].map { "Log \($0):" }
    let walks = ["a", "b", "c"].map { "Walk \($0)1: dog=\($0)" }
    demand(lines == ["Badge x: dogs=[a b c]"] + dogs + logs + walks, "The store has other contents: \(lines)")
    let left = place.folder.names.filter { $0.hasSuffix(".migration") }
    demand(left.isEmpty, "\(left)")
    return calls
  }
}
