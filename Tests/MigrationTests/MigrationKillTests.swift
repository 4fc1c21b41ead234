import Foundation
import Holdfast
import HoldfastAtomicStore
import HoldfastCoreData
import HoldfastStore
import SQLiteTestSupport
import TestSupport
import Testing

/// Migrations that are killed at each of their system calls, traced by strace.
@Suite(.ownThreads) struct MigrationKillTests {
  @Test(arguments: MigratedStore.allCases)
  func RA4_aProcessThatIsKilledAtAnyCallOfAMigrationLeavesTheOldOrTheNewStore(store: MigratedStore) async throws {
    let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
      [store = store as MigratedStore] in
      try KilledMigration(store: store, .automatic).run()
    }
    report(child)
  }

  /// A copy is migrated, and renamed.
  @Test(arguments: [MigratedStore.sqlite, .coreData])
  func RA4_aProcessThatIsKilledAtAnyCallOfAMigrationWithoutALogLeavesTheOldOrTheNewStore(store: MigratedStore) async throws {
    let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
      [store = store as MigratedStore] in
      try KilledMigration(store: store, .withoutLog).run()
    }
    report(child)
  }

  /// Rows that are too many for the memory are in a temporary file.
  @Test(arguments: [MigratedStore.json, .xml, .binary])
  func RA4_aProcessThatIsKilledAtAnyCallOfAMigrationThroughATemporaryFileLeavesTheOldOrTheNewStore(store: MigratedStore) async throws {
    let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
      [store = store as MigratedStore] in
      try KilledMigration(store: store, .spilled).run()
    }
    report(child)
  }

  /// A plan with code works on copies, and replaces the store at the end.
  @Test(arguments: MigratedStore.allCases)
  func RA4_aProcessThatIsKilledAtAnyCallOfAPlanLeavesTheOldOrTheNewStore(store: MigratedStore) async throws {
    let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
      [store = store as MigratedStore] in
      try KilledMigration(store: store, .plan).run()
    }
    report(child)
  }

  /// Without code, the store itself is migrated from version to version.
  @Test(arguments: MigratedStore.allCases)
  func RA4_aProcessThatIsKilledAtAnyCallOfAPlanWithoutCodeLeavesAStoreOfOneOfItsVersions(store: MigratedStore) async throws {
    let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
      [store = store as MigratedStore] in
      try KilledMigration(store: store, .versions).run()
    }
    report(child)
  }

  /// A mapping model also inserts objects, which are saved before the others are changed.
  @Test(arguments: MigratedStore.allCases)
  func RA4_aProcessThatIsKilledAtAnyCallOfAMappingModelLeavesTheOldOrTheNewStore(store: MigratedStore) async throws {
    let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
      [store = store as MigratedStore] in
      try KilledMigration(store: store, .mappingModel).run()
    }
    report(child)
  }
}

/// Runs in a separate process.
struct KilledMigration {
  enum Kind {
    case automatic
    case withoutLog
    case spilled
    case plan
    case versions
    case mappingModel
  }

  private let store: MigratedStore
  private let kind: Kind
  private let old: ManagedObjectModel
  /// A version between the old and the new one.
  private let middle: ManagedObjectModel
  private let new: ManagedObjectModel
  /// The contents before and after.
  private let lines: (old: [String], new: [String])
  /// The store before the migration. Each process migrates a copy.
  private let original: MigratedStore.Place
  /// The folder of the mapping model.
  private let mappings = TemporaryFolder()

  init(store: MigratedStore, _ kind: Kind) throws {
    (self.store, self.kind) = (store, kind)
    original = MigratedStore.Place(store, hasLog: kind != .withoutLog)
    lines = (
      old: ["Dog a: age=3 gone=300000 bytes 7 walks=[1 2]", "Walk 1: dog=a", "Walk 2: dog=a"],
      new: (kind == .mappingModel ? ["Ant 1:", "Ant 2:"] : [])
        + ["Dog a: name=? years=3 walks=[1 2]", "Walk 1: dogs=[a]", "Walk 2: dogs=[a]"]
    )
    old = try model(
      EntityDescription(
        "Dog",
        attributes: [
          .init("age", .integer64, default: 0), .init("gone", .binaryData, isOptional: true, allowsExternalBinaryDataStorage: true),
        ], relationships: [.toMany("walks", to: "Walk", inverse: "dog")]),
      EntityDescription("Walk", relationships: [.toOne("dog", to: "Dog", inverse: "walks")]))
    new = try model(
      EntityDescription("Ant"),
      EntityDescription(
        "Dog", attributes: [AttributeDescription("years", .integer64).renamed(from: "age"), .init("name", .string, default: "?")],
        relationships: [.toMany("walks", to: "Walk", inverse: "dogs")]),
      EntityDescription("Walk", relationships: [RelationshipDescription.toMany("dogs", to: "Dog", inverse: "walks").renamed(from: "dog")]))
    let tag = AttributeDescription("tag", .string, isOptional: true)
    middle = try ManagedObjectModel(entities: old.declarations + [EntityDescription("Ant", attributes: [tag])])
  }

  private func writeMappingModel() throws {
    typealias Property = MappingModelText.Property
    var text = MappingModelText()
    text.map(
      "Dog", to: "Dog", attributes: [Property("tag"), Property("years", path: "$source.age")],
      relationships: [Property("walks", path: "$source.walks", mapping: "WalkToWalk")])
    text.map(
      "Walk", to: "Walk", attributes: [Property("tag")], relationships: [Property("dogs", path: "$source.dog", mapping: "DogToDog")])
    text.map("Walk", to: "Ant", attributes: [Property("tag")])
    _ = try text.write(to: mappings)
  }

  func run() throws {
    if kind == .mappingModel { try writeMappingModel() }
    try apart {
      try original.fill(old) { context in
        let dog = try context.add("Dog", "a", ["age": 3, "gone": .data(Data(repeating: 7, count: 300_000))])
        try dog.setValue([try context.add("Walk", "1"), try context.add("Walk", "2")], forKey: "walks")
      }
    }
    guard let whole = try watched(killingAt: nil) else { return print(Tracer.skipped) }
    demand(whole.run.isSuccess, "The process could not migrate: \(whole.run.lines.suffix(5))")
    let step = TestTier.step(calls: whole.run.calls.count, kills: 4), first = Int.random(in: 0..<step)
    var (kills, migrated) = (0, 0)
    for (place, call) in whole.run.calls.enumerated() where place % step == first {
      guard let (run, place) = try watched(killingAt: call) else { return print(Tracer.skipped) }
      demand(run.isKilled || run.isSuccess, "\(call): the process ended with \(run.status)")
      if run.isKilled { kills += 1 }
      do { if try apart({ try survey(place, call, isKilled: run.isKilled) }) { migrated += 1 } } catch {
        complain("\(call), after which \(place.folder.namesOfAllLevels): \(error)")
      }
    }
    demand(kills >= max(1, 32 / step), "Only \(kills) kills")
    print(
      "REPORT RA4, \(store), \(kind), from call \(first), each \(step): killed at \(kills) of \(whole.run.calls.count) calls, \(migrated) were migrated"
    )
  }

  /// Migrates a copy of the store in a traced process.
  private func watched(killingAt call: Tracer.Call?) throws -> (run: Tracer.Run, place: MigratedStore.Place)? {
    let place = try original.copied()
    let run = try Tracer.run(notes: place.folder.path + ".trace", killingAt: call) {
    } _: {
      try migrate(place)
    }
    return run.map { ($0, place) }
  }

  private func migrate(_ place: MigratedStore.Place) throws {
    var plan = MigrationPlan(from: old)
    switch kind {
    case .automatic, .withoutLog, .spilled:
      return try RowSpill.$residentByteCount.withValue(kind == .spilled ? 0 : RowSpill.residentByteCount) {
        try PersistentStoreCoordinator.migratePersistentStore(place.description.migrating(from: [old]), to: new)
      }
    case .plan:
      plan.add(new, named: "names") { stage in
        try stage.forEach("Dog") { old, new in try new.setValue("\(old["gone"])".count > 3 ? "?" : "", forKey: "name") }
      }
    case .versions:
      plan.add(middle)
      plan.add(new)
    case .mappingModel: try plan.add(new, mappingModelsAt: [mappings.file("Mapping.xcmappingmodel")])
    }
    try PersistentStoreCoordinator.migratePersistentStore(place.description, with: plan)
  }

  /// Whether the store was migrated.
  private func survey(_ place: MigratedStore.Place, _ call: Tracer.Call, isKilled: Bool) throws -> Bool {
    let description = place.description.migrating(automatically: false, from: [old])
    // Opening for writing rolls an interrupted migration back.
    var isNew = false
    do { try PersistentStoreCoordinator(model: new, store: description).close(); isNew = true } catch let error as StoreError
      where error.code == .incompatibleModel
    {}
    demand(isNew || isKilled, "\(call): the migration ended, but the store isn't migrated.")
    // Opening a store of the version between migrates it back, which loses no object.
    if !isNew { demand(try place.contents(old, from: [middle]) == lines.old, "\(call): the old store has other contents.") }
    try migrate(place)
    demand(try place.contents(new) == lines.new, "\(call): the new store has other contents.")
    if kind == .withoutLog {
      // SQLite's temporary files are empty until it has removed their names.
      let copies = try place.folder.names.filter { try $0.hasPrefix(".holdfast-") && !TemporaryFolder.read(place.folder.file($0)).isEmpty }
      demand(copies.isEmpty, "\(call): \(copies) remain.")
    }
    if store != .coreData || isNew { return isNew }
    demand(try SQL.rows(place.path, "PRAGMA integrity_check") == [["ok"]], "\(call): the file is damaged.")
    return isNew
  }
}
