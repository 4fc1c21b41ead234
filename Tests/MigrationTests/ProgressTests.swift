import Foundation
import Holdfast
import HoldfastCoreData
import HoldfastStore
import Synchronization
import TestSupport
import Testing

/// The progress of migrations, copies and repairs, and their cancellation at each report of it.
@Suite struct ProgressTests {
  enum Operation: String, CaseIterable, Sendable {
    case migration
    /// A migration that needs the former tables.
    case migrationOfLinks
    /// A copy in a store of another type.
    case copy
    /// A copy in a store of the same type, over another one.
    case replacement
    case move
    case repair
    case plan
    /// A plan with a stage without code and one with code, which works on a copy.
    case planWithCode
    /// A mapping model that has an expression.
    case mappingModel
    /// A mapping model that inserts some objects again.
    case insertingMappingModel

    var isPlan: Bool { [.plan, .planWithCode, .mappingModel, .insertingMappingModel].contains(self) }
    /// Whether the store itself is changed.
    var isInPlace: Bool { isPlan || [.migration, .migrationOfLinks].contains(self) }
  }

  private let old: ManagedObjectModel
  private let new: ManagedObjectModel
  private let newest: ManagedObjectModel
  private let newLinks: ManagedObjectModel

  init() throws {
    func version(_ attributes: [AttributeDescription], _ relationship: RelationshipDescription) throws -> ManagedObjectModel {
      let photo = AttributeDescription("photo", .binaryData, isOptional: true, allowsExternalBinaryDataStorage: true)
      return try model(
        EntityDescription(
          "Dog", attributes: [photo] + attributes, relationships: [.toMany("walks", to: "Walk", inverse: relationship.name)]),
        EntityDescription("Walk", relationships: [relationship]))
    }
    old = try version([], .toOne("dog", to: "Dog", inverse: "walks"))
    new = try version([.init("note", .string, default: "?")], .toOne("dog", to: "Dog", inverse: "walks"))
    newest = try version(
      [.init("note", .string, default: "?"), .init("size", .integer64, isOptional: true)], .toOne("dog", to: "Dog", inverse: "walks"))
    newLinks = try version([], RelationshipDescription.toMany("dogs", to: "Dog", inverse: "walks").renamed(from: "dog"))
  }

  /// Two stores, and places for others.
  private final class Places: Sendable {
    let store: MigratedStore
    let source: MigratedStore.Place
    let other: MigratedStore.Place

    init(_ operation: Operation, _ store: MigratedStore, hasLog: Bool = true) {
      self.store = store
      source = MigratedStore.Place(store, hasLog: hasLog)
      other = MigratedStore.Place(operation == .copy ? (store == .json ? .sqlite : .json) : store)
    }

    private init(copyOf places: Places) throws {
      (store, source, other) = (places.store, try places.source.copied(), try places.other.copied())
    }

    /// Places with copies of both stores, which may not be open.
    func copied() throws -> Places { try Places(copyOf: self) }

    /// The contents of both folders, without external files, and without the lock files, which contain nothing.
    func snapshot() throws -> [[String: [UInt8]]] {
      try [source, other].map { try $0.folder.snapshot().filter { !$0.key.hasSuffix(".lock") && !$0.key.contains("_SUPPORT") } }
    }

    /// The files in the folders of external files. The folders themselves remain when they are empty.
    func externalFiles() throws -> [[String]] {
      try [source, other].map { place in
        try place.folder.snapshot().keys.filter { name in
          name.contains("_SUPPORT") && !name.hasSuffix("_SUPPORT") && !name.hasSuffix("_EXTERNAL_DATA")
        }.sorted()
      }
    }

    /// Whether both stores are as before. A SQLite file may have another journal mode.
    func areUnchanged(since before: [[String: [UInt8]]], _ digests: [GraphDigest?], _ model: ManagedObjectModel) throws -> Bool {
      let after = try snapshot(), isDatabase = store == .sqlite || store == .coreData
      if !isDatabase { return after == before }
      return try after.map { $0.keys.sorted() } == before.map { $0.keys.sorted() } && self.digests(model) == digests
    }

    /// The digests of the stores; nil for one that doesn't exist.
    func digests(_ model: ManagedObjectModel) throws -> [GraphDigest?] {
      try [source, other].map { place in
        place.folder.exists("Store") ? try PersistentStoreCoordinator.graphDigest(of: place.description, model: model) : nil
      }
    }
  }

  private func fill(_ places: Places, _ operation: Operation) throws {
    try places.source.fill(old) { context in
      for number in 0..<50 {
        let dog = try context.add("Dog", "\(number)", ["photo": .data(Data(repeating: 1, count: number == 7 ? 200_000 : 10))])
        try dog.setValue([try context.add("Walk", "\(number)")], forKey: "walks")
      }
    }
    if operation == .replacement || operation == .move { try places.other.fill(old) { try $0.add("Dog", "former") } }
  }

  private func run(_ operation: Operation, _ places: Places, _ progress: @escaping @Sendable (Double) -> Void) throws {
    let (source, other) = (places.source.description.migrating(from: [old]), places.other.description)
    typealias Coordinator = PersistentStoreCoordinator
    switch operation {
    case .migration: try Coordinator.migratePersistentStore(source, to: new, progress: progress)
    case .migrationOfLinks: try Coordinator.migratePersistentStore(source, to: newLinks, progress: progress)
    case .copy: try Coordinator.copyPersistentStore(source, to: other, model: old, progress: progress)
    case .replacement: try Coordinator.replacePersistentStore(other, withCopyOf: source, progress: progress)
    case .move: try Coordinator.movePersistentStore(source, to: other, progress: progress)
    case .repair: try Coordinator.repairPersistentStore(source, to: other, model: old, progress: progress)
    case .plan, .planWithCode:
      try Coordinator.migratePersistentStore(source, with: plan(hasCode: operation == .planWithCode)) { progress($0.fractionCompleted) }
    case .mappingModel, .insertingMappingModel:
      let plan = try mappingPlan(filter: operation == .insertingMappingModel ? "tag != nil" : nil)
      try Coordinator.migratePersistentStore(source, with: plan) { progress($0.fractionCompleted) }
    }
  }

  /// - Parameter filter: A filter of the dogs, which are inserted again; nil if they keep their keys.
  private func mappingPlan(filter: String?) throws -> MigrationPlan {
    typealias Property = MappingModelText.Property
    let folder = TemporaryFolder(), note = TestExpression.function("uppercase:", [.text("x")]).archive
    var text = MappingModelText()
    text.map(
      "Dog", to: "Dog", filter: filter, attributes: [Property("note", expression: note), Property("photo"), Property("tag")],
      relationships: [Property("walks")])
    text.map("Walk", to: "Walk", attributes: [Property("tag")], relationships: [Property("dog")])
    var plan = MigrationPlan(from: old)
    try withExtendedLifetime(folder) { try plan.add(new, mappingModelsAt: [try text.write(to: folder)]) }
    return plan
  }

  private func plan(hasCode: Bool) -> MigrationPlan {
    var plan = MigrationPlan(from: old)
    plan.add(new)
    if hasCode {
      plan.add(newest, named: "sizes") { stage in
        try stage.forEach("Dog") { _, dog in try dog.setValue(StoreValue.int64(1), forKey: "size") }
      }
    }
    return plan
  }

  /// The model of the store after an operation.
  private func finalModel(_ operation: Operation) -> ManagedObjectModel {
    switch operation {
    case .migration, .plan, .mappingModel, .insertingMappingModel: new
    case .migrationOfLinks: newLinks
    case .planWithCode: newest
    default: old
    }
  }

  @Test(arguments: MigratedStore.allCases, Operation.allCases)
  func aTaskThatIsCancelledAtAnyReportLeavesTheStoresAsTheyWere(store: MigratedStore, operation: Operation) async throws {
    try await cancelAtEachReport(operation, Places(operation, store))
  }

  /// The copy that is migrated is removed.
  @Test(arguments: [MigratedStore.sqlite, .coreData], [Operation.migration, .migrationOfLinks])
  func aMigrationWithoutALogIsCancelledAtAnyReport(store: MigratedStore, operation: Operation) async throws {
    try await cancelAtEachReport(operation, Places(operation, store, hasLog: false))
  }

  /// Cancels at each report, or at about four of them from a random one.
  private func cancelAtEachReport(_ operation: Operation, _ places: Places) async throws {
    try fill(places, operation)
    let digests = try places.digests(old)
    let count = try await perform(operation, places.copied(), digests, cancellingAt: .max).reports
    let step = TestTier.step(calls: count, kills: 4), first = Int.random(in: 1...step)
    var cancelled = 0
    for report in stride(from: first, through: count, by: step) {
      if try await perform(operation, places.copied(), digests, cancellingAt: report).isCancelled { cancelled += 1 }
    }
    #expect(cancelled > 0, "of \(count), each \(step) from \(first)")
  }

  /// Performs an operation in a task that is cancelled at a report, and checks the stores. Returns the number of reports as well.
  ///
  /// - Parameter digests: The digests of the stores before the operation.
  private func perform(
    _ operation: Operation, _ places: Places, _ digests: [GraphDigest?], cancellingAt place: Int
  ) async throws -> (isCancelled: Bool, reports: Int) {
    let before = try places.snapshot(), external = try places.externalFiles()
    let (code, found) = try await cancel(at: place) { try run(operation, places, $0) }
    if operation.isPlan { #expect(found.first == 0) }
    if let code {
      #expect(code == "cancelled", "report \(place)")
      let names = [places.source, places.other].map(\.folder.names)
      #expect(try places.areUnchanged(since: before, digests, old), "report \(place): \(names)")
      #expect(try places.externalFiles() == external, "report \(place)")
      return (true, found.count)
    }
    // The last report comes after the last step.
    #expect(found.last == 1 && found.count <= place, "\(found)")
    let result = operation.isInPlace ? places.source : places.other
    let lines = try result.contents(finalModel(operation))
    #expect(lines.count == 100)
    if operation == .mappingModel || operation == .insertingMappingModel {
      #expect(lines.count { $0.contains(" note=X ") } == 50 && lines.contains("Walk 7: dog=7"), "\(lines)")
    }
    return (false, found.count)
  }

  /// Runs a closure in a task that is cancelled at a report. Returns the code of its error, and the shares that were reported.
  private func cancel(
    at place: Int, _ body: @escaping @Sendable (@escaping @Sendable (Double) -> Void) throws -> Void
  ) async throws -> (code: String?, shares: [Double]) {
    let shares = Mutex<[Double]>([])
    let task = Task {
      try body { share in
        let count = shares.withLock { shares in
          shares.append(share)
          return shares.count
        }
        if count == place { withUnsafeCurrentTask { $0?.cancel() } }
      }
    }
    var code: String?
    do { try await task.value } catch let error as StoreError { code = error.code.rawValue } catch let error as MigrationError {
      code = error.code.rawValue
    }
    let found = shares.withLock { $0 }
    #expect(found == found.sorted() && Set(found).count == found.count && found.allSatisfy { (0...1).contains($0) }, "\(found)")
    return (code, found)
  }

  /// Each stage is a step of its own.
  @Test(arguments: MigratedStore.allCases)
  func aPlanOfSeveralStagesWithoutCodeThatIsCancelledLeavesOneOfItsVersions(store: MigratedStore) async throws {
    var plan = MigrationPlan(from: old)
    plan.add(new)
    plan.add(newest)
    let versions = [old, new, newest], filled = Places(.migration, store)
    try fill(filled, .migration)
    // Returns the number of reports, and of the version that the store has afterwards.
    func run(cancellingAt report: Int) async throws -> (reports: Int, version: Int) {
      let places = try filled.copied(), migrated = plan
      let (code, shares) = try await cancel(at: report) { progress in
        try PersistentStoreCoordinator.migratePersistentStore(places.source.description, with: migrated) {
          progress($0.fractionCompleted)
        }
      }
      let found = try PersistentStoreCoordinator.metadata(for: places.source.description)
      let version = try #require(versions.firstIndex { found.isCompatible(with: $0) }, "report \(report)")
      #expect(code == (version == 2 ? nil : "cancelled") && shares.first == 0 && (shares.last == 1) == (version == 2), "\(shares)")
      #expect(try places.source.contents(versions[version]).count == 100)
      return (shares.count, version)
    }
    let count = try await run(cancellingAt: .max).reports, step = TestTier.step(calls: count, kills: 8)
    var found: Set<Int> = []
    for report in stride(from: 1, through: count, by: step) { found.insert(try await run(cancellingAt: report).version) }
    #expect(found.contains(0) && found.contains(1), "\(found) of \(count)")
  }

  @Test(arguments: MigratedStore.allCases, [false, true])
  func thePreviewOfAPlanReportsItsProgress(store: MigratedStore, hasCode: Bool) async throws {
    let places = Places(.plan, store), previewed = plan(hasCode: hasCode)
    try fill(places, .plan)
    let (code, shares) = try await cancel(at: .max) { progress in
      _ = try PersistentStoreCoordinator.previewMigration(of: places.source.description, with: previewed) {
        progress($0.fractionCompleted)
      }
    }
    #expect(code == nil && shares.first == 0 && shares.last == 1 && shares.count > 2, "\(shares)")
  }

  /// A cancelled task doesn't begin.
  @Test(arguments: MigratedStore.allCases, Operation.allCases)
  func aCancelledTaskChangesNothing(store: MigratedStore, operation: Operation) async throws {
    let places = Places(operation, store)
    try fill(places, operation)
    let before = try places.snapshot()
    let task = Task {
      while !Task.isCancelled { await Task.yield() }
      try run(operation, places) { _ in Issue.record("A cancelled task reported its progress.") }
    }
    task.cancel()
    let error = await #expect(throws: (any Error).self) { try await task.value }
    let code = (error as? StoreError)?.code.rawValue ?? (error as? MigrationError)?.code.rawValue
    #expect(code == "cancelled", "\(error as Any)")
    #expect(try places.snapshot() == before)
  }

  /// A statement that copies a large table is stopped, too.
  @Test(arguments: MigratedPeople.Change.allCases) func aMigrationEndsAtItsDeadline(change: MigratedPeople.Change) throws {
    let folder = TemporaryFolder(), people = MigratedPeople(store: .sqlite, path: folder.file("Store"))
    try people.fill(100_000)
    let digest = try PersistentStoreCoordinator.graphDigest(of: people.description)
    let mapping = try MappingModel.inferred(from: MigratedPeople.former(), to: MigratedPeople.changed(change))
    let error = #expect(throws: StoreError.self) {
      let options = RequestOptions(deadline: ContinuousClock.now + .milliseconds(5))
      try people.description.administration.perform(MigrationRequest(mapping), options: options)
    }
    #expect(error?.code == .timedOut)
    #expect(try PersistentStoreCoordinator.graphDigest(of: people.description) == digest)
    try people.migrate(change)
  }

  /// Opening a store in a cancelled task doesn't migrate it.
  @Test(arguments: MigratedStore.allCases) func anAutomaticMigrationIsCancelledWithItsTask(store: MigratedStore) async throws {
    let places = Places(.migration, store), new = new, old = old
    try fill(places, .migration)
    let before = try places.snapshot()
    let task = Task {
      while !Task.isCancelled { await Task.yield() }
      try PersistentStoreCoordinator(model: new, store: places.source.description.migrating(from: [old])).close()
    }
    task.cancel()
    let error = await #expect(throws: MigrationError.self) { try await task.value }
    #expect(error?.code == .cancelled)
    #expect(try places.snapshot() == before)
  }
}
