import Foundation
import Holdfast
import HoldfastStore
import SQLiteTestSupport
import TestSupport
import Testing

/// Repairs, compactions and replacements by a store of the same type that are killed at their system calls, traced by strace: at each, or
/// at 500 of more.
@Suite(.ownThreads) struct MaintenanceKillTests {
  @Test(arguments: MigratedStore.allCases)
  func RA4_aProcessThatIsKilledAtAnyCallOfARepairLeavesTheDamagedStoreAndPerhapsANewOne(store: MigratedStore) async throws {
    let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
      [store = store as MigratedStore] in
      try KilledMaintenance(store: store, .repair).run()
    }
    report(child)
  }

  @Test(arguments: [MigratedStore.sqlite, .coreData])
  func RA4_aProcessThatIsKilledAtAnyCallOfACompactionLosesNothing(store: MigratedStore) async throws {
    let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
      [store = store as MigratedStore] in
      try KilledMaintenance(store: store, .compaction).run()
    }
    report(child)
  }

  @Test(arguments: MigratedStore.allCases)
  func RA4_aProcessThatIsKilledAtAnyCallOfAReplacementLeavesTheFormerStoreOrTheCopy(store: MigratedStore) async throws {
    let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
      [store = store as MigratedStore] in
      try KilledMaintenance(store: store, .replacement).run()
    }
    report(child)
  }
}

/// Runs in a separate process.
private struct KilledMaintenance {
  enum Operation {
    case repair
    case compaction
    /// Of one store by another one of the same type.
    case replacement
  }

  private let store: MigratedStore
  private let operation: Operation
  /// The stores before the operation. Each process works on copies.
  private let originals: Places
  private let zoo: ManagedObjectModel
  private let lines = (former: ["Dog former: photo=nil walks=[]"], all: ["Dog a: photo=300000 bytes 7 walks=[1]", "Walk 1: dog=a"])

  init(store: MigratedStore, _ operation: Operation) throws {
    (self.store, self.operation) = (store, operation)
    originals = Places(source: MigratedStore.Place(store), destination: MigratedStore.Place(store))
    zoo = try model(
      EntityDescription(
        "Dog", attributes: [.init("photo", .binaryData, isOptional: true, allowsExternalBinaryDataStorage: true)],
        relationships: [.toMany("walks", to: "Walk", inverse: "dog")]),
      EntityDescription("Walk", relationships: [.toOne("dog", to: "Dog", inverse: "walks")]))
  }

  private struct Places {
    let source: MigratedStore.Place
    let destination: MigratedStore.Place
  }

  func run() throws {
    try apart {
      try originals.source.fill(zoo) { context in
        let dog = try context.add("Dog", "a", ["photo": .data(Data(repeating: 7, count: 300_000))])
        try dog.setValue([try context.add("Walk", "1")], forKey: "walks")
      }
      if operation == .replacement { try originals.destination.fill(zoo) { try $0.add("Dog", "former") } }
      if operation == .repair { try damage(originals.source) }
    }
    guard let whole = try watched(killingAt: nil) else { return print(Tracer.skipped) }
    demand(whole.run.isSuccess, "The process could not finish: \(whole.run.lines.suffix(5))")
    // Not one for each descriptor that the process may have.
    let locking = whole.run.calls.count { $0.name == "fcntl" }
    demand(locking < 1_000, "\(operation) of \(store) makes \(locking) calls of fcntl.")
    let count = whole.run.calls.count, step = TestTier.step(calls: count, kills: 4, full: max(1, count / 500))
    let first = Int.random(in: 0..<step)
    var (kills, done) = (0, 0)
    for (place, call) in whole.run.calls.enumerated() where place % step == first {
      guard let (run, places) = try watched(killingAt: call) else { return print(Tracer.skipped) }
      demand(run.isKilled || run.isSuccess, "\(call): the process ended with \(run.status)")
      if run.isKilled { kills += 1 }
      do { if try apart({ try survey(places, call, isKilled: run.isKilled) }) { done += 1 } } catch {
        complain("\(call), after which \(places.source.folder.namesOfAllLevels), \(places.destination.folder.namesOfAllLevels): \(error)")
      }
    }
    demand(kills > 0, "No kills")
    print(
      "REPORT RA4, \(operation) of \(store), from call \(first), each \(step): killed at \(kills) of \(whole.run.calls.count) calls, "
        + "\(done) were done")
  }

  /// Runs the operation in a traced process.
  private func watched(killingAt call: Tracer.Call?) throws -> (run: Tracer.Run, places: Places)? {
    let places = Places(source: try originals.source.copied(), destination: try originals.destination.copied())
    let run = try Tracer.run(notes: places.source.folder.path + ".trace", killingAt: call) {
    } _: {
      try perform(places)
    }
    return run.map { ($0, places) }
  }

  /// Appends bytes to a whole file, which can't be opened then, and loses no object. A SQLite file is repaired as it is.
  private func damage(_ place: MigratedStore.Place) throws {
    if store == .sqlite || store == .coreData { return }
    try (Data(TemporaryFolder.read(place.path)) + Data("damage".utf8)).write(to: URL(fileURLWithPath: place.path))
  }

  private func perform(_ places: Places) throws {
    switch operation {
    case .repair:
      try PersistentStoreCoordinator.repairPersistentStore(places.source.description, to: places.destination.description, model: zoo)
    case .compaction: try PersistentStoreCoordinator.compact(places.source.description)
    case .replacement:
      try PersistentStoreCoordinator.replacePersistentStore(places.destination.description, withCopyOf: places.source.description)
    }
  }

  /// Whether the operation was done.
  private func survey(_ places: Places, _ call: Tracer.Call, isKilled: Bool) throws -> Bool {
    switch operation {
    case .repair: try surveyRepair(places, call, isKilled)
    case .compaction: try surveyCompaction(places, call)
    case .replacement: try surveyReplacement(places, call, isKilled)
    }
  }

  private func surveyRepair(_ places: Places, _ call: Tracer.Call, _ isKilled: Bool) throws -> Bool {
    let isDone = places.destination.folder.exists("Store")
    demand(isDone || isKilled, "\(call): the repair ended, and no new store exists.")
    if isDone {
      demand(try places.destination.contents(zoo) == lines.all, "\(call): the new store has other contents.")
      return true
    }
    // What is left is in the way of nothing.
    try perform(places)
    demand(try places.destination.contents(zoo) == lines.all, "\(call): it can't be repeated.")
    return false
  }

  private func surveyCompaction(_ places: Places, _ call: Tracer.Call) throws -> Bool {
    demand(try places.source.contents(zoo) == lines.all, "\(call): the store has other contents.")
    demand(try SQL.rows(places.source.path, "PRAGMA integrity_check") == [["ok"]], "\(call): the file is damaged.")
    try perform(places)
    demand(try places.source.contents(zoo) == lines.all, "\(call): the store has other contents after the second compaction.")
    let left = places.source.folder.names.filter { $0.hasSuffix(".tmp") }
    demand(left.isEmpty, "\(call): \(left)")
    return true
  }

  private func surveyReplacement(_ places: Places, _ call: Tracer.Call, _ isKilled: Bool) throws -> Bool {
    demand(try places.source.contents(zoo) == lines.all, "\(call): the source changed.")
    let found = try places.destination.contents(zoo)
    demand(found == lines.all || (found == lines.former && isKilled), "\(call): the destination has other contents: \(found)")
    try perform(places)
    demand(try places.destination.contents(zoo) == lines.all, "\(call): it can't be repeated.")
    return found == lines.all
  }
}
