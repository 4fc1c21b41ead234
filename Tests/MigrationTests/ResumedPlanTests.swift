import Foundation
import Holdfast
import HoldfastStore
import Synchronization
import TestSupport
import Testing

/// Plans that were interrupted and are continued.
@Suite(.ownThreads) struct ResumedPlanTests {
  /// Three versions, between which an attribute moves on.
  private let versions: [ManagedObjectModel]

  init() throws {
    versions = try ["first", "second", "third"].map {
      try model(EntityDescription("Dog", attributes: [.init($0, .string, isOptional: true)]))
    }
  }

  /// The objects that were passed to the stages.
  private final class Log: Sendable {
    private let texts = Mutex<[String]>([])
    var lines: [String] { texts.withLock { $0 } }

    func append(_ text: String) -> Int {
      texts.withLock { lines in
        lines.append(text)
        return lines.count
      }
    }
  }

  private func fill(_ place: MigratedStore.Place, count: Int = 6) throws {
    try place.fill(versions[0]) { context in for number in 0..<count { try context.add("Dog", "\(number)", ["first": "a"]) } }
  }

  /// A plan of two stages with code, which save after every two objects.
  ///
  /// - Parameter hook: Called with the number of objects that this run has passed to the closures.
  private func plan(
    _ log: Log, named names: [String] = ["one", "two"], isResumable: Bool = true,
    _ hook: @escaping @Sendable (Int) throws -> Void = { _ in }
  ) -> MigrationPlan {
    var plan = MigrationPlan(from: versions[0])
    for (place, name) in names.enumerated() {
      plan.add(versions[place + 1], named: name, isResumable: isResumable) { stage in
        try stage.forEach("Dog", savingEvery: 2) { old, new in
          try hook(log.append("\(name) \(Contents.text(old["tag"]))"))
          guard case .string(let text) = old[["first", "second"][place]] else { return }
          try new.setValue(text + ["b", "c"][place], forKey: ["second", "third"][place])
        }
      }
    }
    return plan
  }

  private func migrate(_ place: MigratedStore.Place, _ plan: MigrationPlan) throws {
    try PersistentStoreCoordinator.migratePersistentStore(place.description, with: plan)
  }

  private func folders(_ place: MigratedStore.Place) -> [String] { place.folder.names.filter { $0.hasPrefix(".holdfast-") } }

  private func expectDone(_ place: MigratedStore.Place, count: Int = 6) throws {
    #expect(folders(place).isEmpty)
    #expect(try PersistentStoreCoordinator.metadata(for: place.description).userInfo.isEmpty)
    #expect(try place.contents(versions[2]) == (0..<count).map { "Dog \($0): third=abc" }.sorted())
  }

  /// Runs the plan in a process that ends when an object is passed to a closure.
  private func die(at number: Int, _ place: MigratedStore.Place, isResumable: Bool = true) async {
    let (path, store) = (place.path, place.store)
    await #expect(processExitsWith: .exitCode(7)) {
      [path = path as String, store = store as MigratedStore, number = number as Int, isResumable = isResumable as Bool] in
      let plan = try ResumedPlanTests().plan(Log(), isResumable: isResumable) { if $0 == number { _exit(7) } }
      try PersistentStoreCoordinator.migratePersistentStore(store.description(at: path), with: plan)
    }
    #expect(folders(place) == [".holdfast-Store.migration"])
  }

  // MARK: Processes that ended

  @Test(arguments: MigratedStore.allCases) func aPlanContinuesWithTheStageInWhichItsProcessEnded(_ store: MigratedStore) async throws {
    let place = MigratedStore.Place(store), log = Log()
    try fill(place)
    await die(at: 10, place, isResumable: false)
    #expect(try place.contents(versions[0]) == (0..<6).map { "Dog \($0): first=a" })
    try migrate(place, plan(log, isResumable: false))
    #expect(log.lines == (0..<6).map { "two \($0)" })
    try expectDone(place)
  }

  @Test(arguments: MigratedStore.allCases) func aResumableStageContinuesBehindTheLastBatch(_ store: MigratedStore) async throws {
    let place = MigratedStore.Place(store), log = Log()
    try fill(place)
    await die(at: 10, place)
    let progress = Mutex<[Int]>([])
    try PersistentStoreCoordinator.migratePersistentStore(place.description, with: plan(log)) { now in
      if now.totalCount > 0 { progress.withLock { $0.append(now.completedCount) } }
    }
    #expect(log.lines == (2..<6).map { "two \($0)" })
    #expect(progress.withLock { $0 } == [4, 6])
    try expectDone(place)
  }

  /// A batch isn't worth writing an entire file, so a file is written after changes of a quarter of its objects.
  @Test(arguments: MigratedStore.allCases) func aResumableStageOfAWholeFileContinuesBehindItsLastWriting(_ store: MigratedStore)
    async throws
  {
    let place = MigratedStore.Place(store), log = Log()
    try fill(place, count: 40)
    await die(at: 78, place)
    try migrate(place, plan(log))
    let rest =
      switch store {
      case .json, .xml, .binary: 30
      case .sqlite, .coreData: 36
      }
    #expect(log.lines == (rest..<40).map { "two \($0)" })
    try expectDone(place, count: 40)
  }

  @Test(arguments: MigratedStore.allCases) func aStoreThatWasChangedMeanwhileIsMigratedFromTheBeginning(_ store: MigratedStore) async throws
  {
    let place = MigratedStore.Place(store), log = Log()
    try fill(place)
    await die(at: 10, place)
    try place.change(versions[0]) { try $0.add("Dog", "6", ["first": "a"]) }
    try migrate(place, plan(log))
    #expect(log.lines.count == 14)
    try expectDone(place, count: 7)
  }

  @Test(arguments: MigratedStore.allCases) func aStageWithAnotherNameIsDoneAgain(_ store: MigratedStore) async throws {
    let place = MigratedStore.Place(store), log = Log()
    try fill(place)
    await die(at: 10, place)
    try migrate(place, plan(log, named: ["one, corrected", "two"]))
    #expect(log.lines.count == 12)
    try expectDone(place)
  }

  @Test(arguments: MigratedStore.allCases) func aResumableStageWithAnotherNameBeginsAgain(_ store: MigratedStore) async throws {
    let place = MigratedStore.Place(store), log = Log()
    try fill(place)
    await die(at: 10, place)
    try migrate(place, plan(log, named: ["one", "two, corrected"]))
    #expect(log.lines == (0..<6).map { "two, corrected \($0)" })
    try expectDone(place)
  }

  /// The store's file is replaced, not the link.
  @Test(arguments: MigratedStore.allCases) func changesThroughASymbolicLinkAreSeen(_ store: MigratedStore) async throws {
    let place = MigratedStore.Place(store), log = Log(), link = place.folder.file("link/Store")
    try fill(place)
    try FileManager.default.createDirectory(atPath: place.folder.file("link"), withIntermediateDirectories: false)
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: place.path)
    await die(at: 10, place)
    try place.change(versions[0]) { try $0.add("Dog", "6", ["first": "a"]) }
    try PersistentStoreCoordinator.migratePersistentStore(store.description(at: link), with: plan(log))
    #expect(log.lines.count == 14)
    try expectDone(place, count: 7)
  }

  /// A record isn't synchronized, so a power loss can bring an earlier one back. Stages without code have changed its store since.
  @Test(arguments: MigratedStore.allCases) func anEarlierRecordDoesNotTakeTheStoreBack(_ store: MigratedStore) async throws {
    let place = MigratedStore.Place(store), folder = place.folder.file(".holdfast-Store.migration")
    let versions = try [["a"], ["a", "b"], ["b", "c"], ["b", "c", "d"]].map { names in
      try model(EntityDescription("Dog", attributes: names.map { .init($0, .string, default: .string($0)) }))
    }
    func plan(_ body: @escaping @Sendable (FormerObject, ManagedObject) throws -> Void) -> MigrationPlan {
      var plan = MigrationPlan(from: versions[0])
      for version in versions[1...2] { plan.add(version) }
      plan.add(versions[3], named: "code", isResumable: true) { stage in try stage.forEach("Dog", body) }
      return plan
    }
    try place.fill(versions[0]) { try $0.add("Dog", "x", ["a": "1"]) }
    #expect(throws: CancellationError.self) { try migrate(place, plan { _, _ in throw CancellationError() }) }
    var record = try String(contentsOfFile: folder + "/plan.json", encoding: .utf8)
    let stages = try #require(record.firstMatch(of: /"stages":(\[[^\]]*\])/))
    record.replaceSubrange(stages.1.startIndex..<stages.1.endIndex, with: "[]")
    try Data(record.utf8).write(to: URL(fileURLWithPath: folder + "/plan.json"))
    try migrate(
      place,
      plan { old, new in
        #expect(old["c"] == "c")
        try new.setValue("2", forKey: "d")
      })
    #expect(try place.contents(versions[3]) == ["Dog x: b=b c=c d=2"])
    #expect(folders(place).isEmpty)
  }

  @Test(arguments: MigratedStore.allCases) func metadataThatAResumableStageSetsRemains(_ store: MigratedStore) throws {
    let place = MigratedStore.Place(store)
    try fill(place)
    var plan = MigrationPlan(from: versions[0])
    plan.add(versions[1], named: "metadata", isResumable: true) { stage in
      try stage.forEach("Dog", savingEvery: 2) { old, _ in
        if old["tag"] == "3" { try stage.context.persistentStoreCoordinator.setMetadata(["step": 7]) }
      }
    }
    try migrate(place, plan)
    #expect(try PersistentStoreCoordinator.metadata(for: place.description).userInfo == ["step": 7])
  }

  // MARK: Cancellations and errors

  @Test(arguments: MigratedStore.allCases) func aCancelledPlanIsContinued(_ store: MigratedStore) throws {
    let place = MigratedStore.Place(store), log = Log()
    try fill(place)
    let cancelled = plan(log) { if $0 == 10 { throw CancellationError() } }
    #expect(throws: CancellationError.self) { try migrate(place, cancelled) }
    #expect(folders(place) == [".holdfast-Store.migration"])
    #expect(throws: CancellationError.self) {
      try migrate(place, plan(log) { if $0 == 13 { throw CancellationError() } })
    }
    try migrate(place, plan(log))
    // Objects 2 and 3 were passed again, since their batch wasn't saved; then object 4 as well.
    #expect(log.lines.dropFirst(6) == ["two 0", "two 1", "two 2", "two 3", "two 2", "two 3", "two 4", "two 4", "two 5"])
    try expectDone(place)
  }

  /// The bug: the journal was removed before required attributes and new constraints were checked, and the cancellation ended these checks.
  /// So the closure was called with all objects again.
  @Test(arguments: MigratedStore.allCases, [false, true])
  func aStageThatIsCancelledBehindItsLastObjectPassesNoneAgain(_ store: MigratedStore, _ isConstrained: Bool) async throws {
    let place = MigratedStore.Place(store), log = Log()
    // Without a constraint, the attribute is required.
    let last = try model(
      EntityDescription(
        "Dog", attributes: [.init("age", .integer64, isOptional: isConstrained)], uniquenessConstraints: isConstrained ? [["age"]] : []))
    try fill(place)
    func plan(cancels: Bool) -> MigrationPlan {
      var plan = MigrationPlan(from: versions[0])
      plan.add(last, named: "ages", isResumable: true) { stage in
        try stage.forEach("Dog", savingEvery: 2) { old, new in
          _ = log.append(Contents.text(old["tag"]))
          try new.setValue(Int(Contents.text(old["tag"])) ?? 0, forKey: "age")
        }
        if cancels { withUnsafeCurrentTask { $0?.cancel() } }
      }
      return plan
    }
    let cancelled = plan(cancels: true)
    let task = Task { try PersistentStoreCoordinator.migratePersistentStore(place.description, with: cancelled) }
    let error = await #expect(throws: StoreError.self) { try await task.value }
    #expect(error?.code == .cancelled && log.lines.count == 6)
    #expect(folders(place) == [".holdfast-Store.migration"])
    try migrate(place, plan(cancels: false))
    #expect(log.lines.count == 6 && folders(place).isEmpty)
    #expect(try PersistentStoreCoordinator.metadata(for: place.description).userInfo.isEmpty)
    #expect(try place.contents(last) == (0..<6).map { "Dog \($0): age=\($0)" })
  }

  /// The store's file is unchanged until the copy takes its place. Otherwise it would count as changed, and all stages would run again.
  @Test(arguments: MigratedStore.allCases) func aPlanThatIsCancelledInItsLastCopyRunsNoStageAgain(_ store: MigratedStore) async throws {
    let place = MigratedStore.Place(store), log = Log(), migrated = plan(log)
    try fill(place)
    let state = StoreFileState(ofFileAt: place.path)
    let task = Task {
      try PersistentStoreCoordinator.migratePersistentStore(place.description, with: migrated) { now in
        // The last of four steps.
        if now.fractionCompleted > 0.75 && now.fractionCompleted < 1 { withUnsafeCurrentTask { $0?.cancel() } }
      }
    }
    let error = await #expect(throws: StoreError.self) { try await task.value }
    #expect(error?.code == .cancelled && log.lines.count == 12)
    #expect(StoreFileState(ofFileAt: place.path) == state && folders(place) == [".holdfast-Store.migration"])
    try migrate(place, migrated)
    #expect(log.lines.count == 12)
    try expectDone(place)
  }

  @Test(arguments: MigratedStore.allCases) func afterAnErrorNothingRemains(_ store: MigratedStore) throws {
    struct Failure: Error {}
    let place = MigratedStore.Place(store), log = Log()
    try fill(place)
    #expect(throws: Failure.self) { try migrate(place, plan(log) { if $0 == 10 { throw Failure() } }) }
    #expect(folders(place).isEmpty)
    try migrate(place, plan(log))
    #expect(log.lines.count == 22)
    try expectDone(place)
  }

  @Test(arguments: MigratedStore.allCases) func anInterruptedMigrationCanBeDiscarded(_ store: MigratedStore) async throws {
    let place = MigratedStore.Place(store), log = Log()
    try fill(place)
    for destroys in [false, true] {
      await die(at: 3, place)
      if destroys { try PersistentStoreCoordinator.destroyPersistentStore(place.description) }
      try PersistentStoreCoordinator.discardInterruptedMigration(of: place.description)
      #expect(folders(place).isEmpty)
    }
    try PersistentStoreCoordinator.discardInterruptedMigration(of: store.description(at: place.folder.file("none/none")))
    try fill(place)
    try migrate(place, plan(log))
    try expectDone(place)
  }

  /// What is skipped wouldn't be what was done.
  @Test(arguments: MigratedStore.allCases) func aStageWithOtherLoopsThanInItsInterruptedRunIsRefused(_ store: MigratedStore) throws {
    let place = MigratedStore.Place(store), old = try model(EntityDescription("Cat"), EntityDescription("Dog"))
    let new = try model(EntityDescription("Cat"), EntityDescription("Dog", attributes: [.init("age", .integer64, isOptional: true)]))
    try place.fill(old) { context in
      for number in 0..<4 { try context.add("Dog", "\(number)") }
      try context.add("Cat", "a")
    }
    for other in [["Cat", "Dog"], []] {
      for (loops, isCancelled) in [(["Dog", "Cat"], true), (other, false)] {
        var plan = MigrationPlan(from: old)
        plan.add(new, named: "ages", isResumable: true) { stage in
          for name in loops {
            try stage.forEach(name, savingEvery: 1) { old, new in
              if isCancelled && old["tag"] == "2" { throw CancellationError() }
              if name == "Dog" { try new.setValue(3, forKey: "age") }
            }
          }
        }
        let error = #expect(throws: (any Error).self) { try migrate(place, plan) }
        #expect(isCancelled ? error is CancellationError : (error as? MigrationError)?.code == .general, "\(String(describing: error))")
      }
      #expect(folders(place).isEmpty)
    }
  }

  // MARK: Others

  @Test(arguments: MigratedStore.allCases) func onlyOnePlanMigratesAStoreAtATime(_ store: MigratedStore) throws {
    let place = MigratedStore.Place(store), log = Log(), codes = Mutex<[StoreError.Code?]>([])
    try fill(place)
    try migrate(
      place,
      plan(log) { number in
        if number != 8 { return }
        for action in [
          { try migrate(place, plan(Log())) }, { try PersistentStoreCoordinator.discardInterruptedMigration(of: place.description) },
        ] {
          do { try action() } catch { codes.withLock { $0.append((error as? StoreError)?.code) } }
        }
      })
    #expect(codes.withLock { $0 } == [.locked, .locked])
    try expectDone(place)
  }

  /// A forked child has the descriptor of the locked folder until it ends.
  @Test func aChildThatWasForkedDuringAPlanDoesNotKeepItsLock() async throws {
    await #expect(processExitsWith: .success) {
      let tests = try ResumedPlanTests(), place = MigratedStore.Place(.sqlite), child = Mutex<Int32>(0)
      try tests.fill(place)
      let cancelled = tests.plan(Log()) { number in
        if number != 3 { return }
        let forked = System.fork()
        if forked == 0 {
          sleep(60)
          _exit(0)
        }
        child.withLock { $0 = forked }
        throw CancellationError()
      }
      do { try tests.migrate(place, cancelled) } catch is CancellationError {}
      defer { kill(child.withLock { $0 }, SIGKILL) }
      try tests.migrate(place, tests.plan(Log()))
    }
  }

  /// Another user could have put a store there.
  @Test(arguments: ["writable", "link", "file"]) func aFolderThatOthersCanWriteToIsNotUsed(_ kind: String) throws {
    let place = MigratedStore.Place(.sqlite), folder = place.folder.file(".holdfast-Store.migration")
    try fill(place)
    switch kind {
    case "writable":
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
      try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: folder)
    case "link": try FileManager.default.createSymbolicLink(atPath: folder, withDestinationPath: place.folder.path)
    default: try Data().write(to: URL(fileURLWithPath: folder))
    }
    let error = #expect(throws: StoreError.self) { try migrate(place, plan(Log())) }
    #expect(error?.code == .notPermitted && error?.path == folder, "\(String(describing: error))")
    #expect(folders(place) == [".holdfast-Store.migration"])
    #expect(try place.contents(versions[0]) == (0..<6).map { "Dog \($0): first=a" })
  }

  @Test(arguments: MigratedStore.allCases) func filesInTheFolderThatAreNoRecordAreIgnored(_ store: MigratedStore) async throws {
    let interrupted = MigratedStore.Place(store)
    try fill(interrupted)
    await die(at: 10, interrupted)
    for content in ["", "{}", "[1", "{\"source\":{\"values\":[]},\"stages\":[],\"store\":99}"] {
      let place = try interrupted.copied(), log = Log()
      try Data(content.utf8).write(to: URL(fileURLWithPath: place.folder.file(".holdfast-Store.migration/plan.json")))
      try migrate(place, plan(log))
      #expect(log.lines.count == 12, "\(content)")
      try expectDone(place)
    }
  }

  /// A power loss can bring an earlier record back, whose store was removed.
  @Test(arguments: MigratedStore.allCases) func aRecordWhoseStoreIsMissingIsIgnored(_ store: MigratedStore) async throws {
    let place = MigratedStore.Place(store), log = Log()
    try fill(place)
    await die(at: 10, place)
    try FileManager.default.removeItem(atPath: place.folder.file(".holdfast-Store.migration/1"))
    try migrate(place, plan(log))
    #expect(log.lines.count == 12)
    try expectDone(place)
  }

  /// The bug: the number after that of the store ended the process.
  @Test(arguments: MigratedStore.allCases) func aRecordWithAnImpossibleStoreIsIgnored(_ store: MigratedStore) async throws {
    let place = MigratedStore.Place(store), log = Log()
    try fill(place)
    await die(at: 10, place)
    let folder = place.folder.file(".holdfast-Store.migration"), record = URL(fileURLWithPath: folder + "/plan.json")
    try FileManager.default.moveItem(atPath: folder + "/1", toPath: folder + "/\(Int.max)")
    let text = try String(contentsOf: record, encoding: .utf8)
    #expect(text.contains("\"store\":1"))
    try Data(text.replacing("\"store\":1", with: "\"store\":\(Int.max)").utf8).write(to: record)
    try migrate(place, plan(log))
    #expect(log.lines.count == 12)
    try expectDone(place)
  }

  /// The bug: a negative number of objects that are done ended the process.
  @Test(arguments: MigratedStore.allCases) func aResumableStageWithANegativeNumberOfObjectsPassesAllAgain(_ store: MigratedStore)
    async throws
  {
    let place = MigratedStore.Place(store), log = Log(), key = "HoldfastMigrationStage"
    try fill(place)
    await die(at: 10, place)
    let work = store.description(at: place.folder.file(".holdfast-Store.migration/2/Store"))
    var metadata = try PersistentStoreCoordinator.metadata(for: work).userInfo
    guard case .string(let text)? = metadata[key] else {
      Issue.record("The store has no journal.")
      return
    }
    metadata[key] = .string(text.replacing(/"objectCount":[0-9]+/, with: "\"objectCount\":\(Int.min)"))
    try PersistentStoreCoordinator.setMetadata(metadata, for: work)
    try migrate(place, plan(log))
    #expect(log.lines == (0..<6).map { "two \($0)" })
    try expectDone(place)
  }
}
