import Foundation
import Holdfast
import HoldfastJSONStore
import HoldfastMemoryStore
import HoldfastRowStore
import HoldfastStore
import HoldfastStoreConformance
import HoldfastStoreRecording
import Synchronization
import TestSupport
import Testing

/// Recorded stores pass the kit, recordings replay on other stores, and flaws of these stores are found.
@Suite struct RecordingTests {
  /// Keeps the recordings of a case.
  private struct Harness: StoreHarness {
    let folder = TemporaryFolder()
    let kind: StoreKind
    let answers: StoreRecorder.Answers
    private final class Paths: Sendable { let all = Mutex<[String]>([]) }
    private let recorded = Paths()

    var capabilities: StoreCapabilities { kind.make(in: folder).makeStore().capabilities }
    var paths: [String] { recorded.all.withLock { $0 } }

    init(_ kind: StoreKind, _ answers: StoreRecorder.Answers) { (self.kind, self.answers) = (kind, answers) }

    func makePlace() throws -> StorePlace {
      let path = folder.file("\(UUID().uuidString).recording")
      recorded.all.withLock { $0.append(path) }
      return StorePlace(kind.make(in: folder).recorded(by: try StoreRecorder(path: path, answers: answers)))
    }
  }

  @Test(arguments: StoreConformance.share(for: MemoryStore().capabilities))
  func holds(_ rule: StoreConformanceCase) async throws {
    try await check(rule, Harness(.memory, .values), replayedOn: .log)
  }

  @Test(arguments: StoreConformance.share(for: StoreKind.json.make(in: TemporaryFolder()).makeStore().capabilities))
  func holdsWithExternalFiles(_ rule: StoreConformanceCase) async throws {
    try await check(rule, Harness(.json, .digests), replayedOn: .memory)
  }

  /// Runs a case on recorded stores, and replays the recordings.
  private func check(_ rule: StoreConformanceCase, _ harness: Harness, replayedOn other: StoreKind) async throws {
    try await rule.run(on: harness, timeLimit: nil)
    // A context never sends such a save. Its file names have no meaning in another store.
    if rule.description.contains("saving the name of another row's file") { return }
    for path in harness.paths {
      let report = try await onThread { try StoreRecording(path: path).replay(on: other.make(in: harness.folder), showsValues: true) }
      #expect(report.hasSameAnswers, "\(report)")
    }
  }

  // MARK: Replays

  @Test(arguments: StoreKind.allCases, [StoreRecorder.Answers.values, .digests])
  func aRecordedRunHasTheSameAnswersOnEveryStore(_ kind: StoreKind, _ answers: StoreRecorder.Answers) throws {
    let folder = TemporaryFolder(), path = folder.file("run.recording")
    try RecordedProgram(kind.make(in: folder).recorded(by: StoreRecorder(path: path, answers: answers))).run()
    for other in StoreKind.share {
      let report = try StoreRecording(path: path).replay(on: other.make(in: folder), showsValues: true)
      #expect(report.hasSameAnswers && report.uncertainCount == 0, "\(kind) on \(other): \(report)")
      #expect(report.costs.contains { $0.kind == "fetch rows" && $0.requestCount > 0 } && report.requestCount > 20)
      let times = report.costs.flatMap { [$0.recorded, $0.replayed] }
      #expect(times.contains { $0.median > .zero } && times.allSatisfy { $0.median >= .zero && $0.total >= $0.median }, "\(report)")
      #expect(report.recordedType != "" && report.replayedType != "")
    }
  }

  @Test func randomProgramsHaveTheSameAnswersOnEveryStore() throws {
    let random = SeededGenerator("random programs on recorded stores")
    var seeds = random
    for _ in 0..<TestTier.count(5, full: 60) {
      let folder = TemporaryFolder(), path = folder.file("run.recording")
      let kind = StoreKind.allCases.randomElement(using: &seeds) ?? .memory
      var generator = SeededGenerator(seed: seeds.next())
      let program = try RecordedProgram(kind.make(in: folder).recorded(by: StoreRecorder(path: path)))
      for _ in 0..<4 { try program.runRandomly(&generator) }
      try program.coordinator.close()
      for other in StoreKind.allCases {
        let report = try StoreRecording(path: path).replay(on: other.make(in: folder), showsValues: true)
        #expect(report.hasSameAnswers && report.uncertainCount == 0, "\(kind) on \(other), HOLDFAST_SEED=\(random.seed): \(report)")
      }
    }
  }

  /// Overlays and stores with text identifiers have such keys, too.
  @Test(.ownThreads) func aRecordingOfAStoreWithLargeKeysIsReplayedByAnotherProcess() async throws {
    let folder = TemporaryFolder(), path = folder.file("run.recording")
    let description = StoreDescription.rowStore("minimal", firstKey: ObjectKey(1 << 48)) { MinimalStore() }
    try RecordedProgram(description.recorded(by: StoreRecorder(path: path))).run()
    await #expect(processExitsWith: .success) { [path = path as String] in
      let report = try StoreRecording(path: path).replay(on: .memory(contents: MemoryStoreContents()))
      #expect(report.hasSameAnswers, "\(report)")
    }
    withExtendedLifetime(folder) {}
  }

  /// The bug: the line wasn't readable, because the process that replays it doesn't know the recorded store.
  @Test(.ownThreads) func metadataWithTheIDOfAnObjectWithALargeKeyIsReplayedByAnotherProcess() async throws {
    let folder = TemporaryFolder(), path = folder.file("run.recording")
    let description = StoreDescription.rowStore("minimal", firstKey: ObjectKey(1 << 48)) { MinimalStore() }
    let program = try RecordedProgram(description.recorded(by: StoreRecorder(path: path)))
    try program.insert()
    let person = try #require(try program.context.fetch(FetchRequest<ManagedObject>(entityName: "Person")).first)
    try program.coordinator.setMetadata(["favourite": .objectID(person.objectID)])
    try program.coordinator.close()
    await #expect(processExitsWith: .success) { [path = path as String] in
      let report = try StoreRecording(path: path).replay(on: .memory(contents: MemoryStoreContents()))
      #expect(report.hasSameAnswers, "\(report)")
    }
    withExtendedLifetime(folder) {}
  }

  /// A forked process shares the file. The bug: both processes wrote their lines at the same positions.
  @Test(.ownThreads) func aForkedProcessWritesNothingToTheRecordingOfItsParent() async throws {
    let folder = TemporaryFolder(), path = folder.file("run.recording")
    await #expect(processExitsWith: .success) { [path = path as String] in
      let recorder = try StoreRecorder(path: path)
      let store = StoreDescription.memory().recorded(by: recorder).makeStore()
      _ = try store.open(model: RecordedProgram.model.get(), host: .none)
      let ended = System.inForkedChild {
        try? store.setMetadata(["text": .string(String(repeating: "long", count: 1000))])
        return recorder.failure == nil ? 1 : 0
      }
      precondition(ended == 0, "The forked process ended with \(ended).")
      try store.setMetadata(["text": .string("short")])
      try store.close()
      precondition(recorder.failure == nil && recorder.lineCount == 6)
    }
    let report = try StoreRecording(path: path).replay(on: .memory(contents: MemoryStoreContents()))
    #expect(report.hasSameAnswers, "\(report)")
    withExtendedLifetime(folder) {}
  }

  @Test func requestsOfTwoThreadsHaveTheSameAnswers() async throws {
    let folder = TemporaryFolder(), path = folder.file("run.recording")
    let program = try RecordedProgram(StoreKind.sqlite.make(in: folder).recorded(by: StoreRecorder(path: path)))
    try program.insert()
    let coordinator = program.coordinator
    async let first: Void = onThread { try Self.addAndRead(coordinator, "first") }
    async let second: Void = onThread { try Self.addAndRead(coordinator, "second") }
    _ = try await (first, second)
    try coordinator.close()
    for other in [StoreKind.memory, .sqlite, .log] {
      let report = try StoreRecording(path: path).replay(on: other.make(in: folder), showsValues: true)
      #expect(report.hasSameAnswers, "\(report)")
      #expect(report.requestCount > 80)
    }
  }

  private static func addAndRead(_ coordinator: PersistentStoreCoordinator, _ name: String) throws {
    let context = try ManagedObjectContext(coordinator: coordinator)
    for number in 0..<10 {
      let house = try context.insert(entityNamed: "House")
      try house.setValue(.string("\(name) \(number)"), forKey: "name")
      try context.save()
      context.reset()
      _ = try context.fetch(FetchRequest<ManagedObject>(entityName: "House"))
      _ = try context.count(for: FetchRequest<ManagedObject>(entityName: "Person"))
    }
  }

  @Test(arguments: StoreKind.allCases) func aRecordingBeginsWithTheObjectsOfItsStore(_ kind: StoreKind) throws {
    let folder = TemporaryFolder(), description = kind.make(in: folder)
    var random = SeededGenerator("the contents of recorded stores")
    let filled = try RecordedProgram(description)
    try filled.insert()
    for _ in 0..<3 { try filled.runRandomly(&random) }
    try filled.coordinator.close()
    for answers in [StoreRecorder.Answers.values, .digests] {
      let path = folder.file("\(answers).recording")
      let program = try RecordedProgram(description.recorded(by: StoreRecorder(path: path, answers: answers)))
      try program.query(program.context)
      try program.runRandomly(&random)
      try program.coordinator.close()
      for other in StoreKind.share {
        let report = try StoreRecording(path: path).replay(on: other.make(in: folder), showsValues: true)
        #expect(report.hasSameAnswers && report.uncertainCount == 0, "\(kind) on \(other), HOLDFAST_SEED=\(random.seed): \(report)")
      }
    }
  }

  @Test func aRecordingWithoutContentsReplaysOnACopyOfItsStore() throws {
    let folder = TemporaryFolder(), path = folder.file("run.recording")
    let (store, copy) = (folder.file("store.json"), folder.file("copy.json"))
    let filled = try RecordedProgram(.json(at: store))
    try filled.insert()
    try filled.coordinator.close()
    try PersistentStoreCoordinator.replacePersistentStore(.json(at: copy), withCopyOf: .json(at: store))
    let program = try RecordedProgram(
      StoreDescription.json(at: store).recorded(by: StoreRecorder(path: path, answers: .values, includesContents: false)))
    var random = SeededGenerator("a recording without contents")
    try program.runRandomly(&random)
    try program.coordinator.close()
    #expect(try StoreRecording(path: path).replay(on: .json(at: copy)).hasSameAnswers, "HOLDFAST_SEED=\(random.seed)")
    #expect(try !StoreRecording(path: path).replay(on: .memory()).hasSameAnswers)
  }

  @Test func aReopenedStoreContinuesItsRecording() throws {
    let folder = TemporaryFolder(), path = folder.file("run.recording")
    let recorded = StoreKind.sqlite.make(in: folder).recorded(by: try StoreRecorder(path: path))
    let first = try RecordedProgram(recorded)
    try first.insert()
    try first.coordinator.close()
    let second = try RecordedProgram(recorded)
    try second.query(second.context)
    try second.coordinator.close()
    let report = try StoreRecording(path: path).replay(on: StoreKind.json.make(in: folder))
    #expect(report.hasSameAnswers, "\(report)")
    #expect(report.costs.first { $0.kind == "open" }?.requestCount == 2)
  }

  @Test func aSinkThatSendsRequestsIsReplayedInTheSameView() throws {
    let folder = TemporaryFolder(), path = folder.file("run.recording"), model = try RecordedProgram.model.get()
    let contents = MemoryStoreContents()
    let filled = try RecordedProgram(.memory(contents: contents))
    try filled.insert()
    try filled.coordinator.close()
    let recorder = try StoreRecorder(path: path), description = StoreDescription.memory(contents: contents)
    let store = description.recorded(by: recorder).makeStore()
    _ = try store.open(model: model, host: .none)
    let view = try store.beginRead(.snapshot, options: .none), entity = try #require(model.entity(named: "Person"))
    let outer = NestedSink { batch in
      let keys = (0..<batch.count).map { batch[$0].key }
      try store.rows(FaultRequest(entity: entity.index, keys: keys), in: view, options: .none, into: NestedSink { _ in })
    }
    try store.fetch(FetchPlan(entity: entity.index, concreteEntities: entity.concreteIndexes), in: view, options: .none, into: outer)
    view.end()
    try store.close()
    let report = try StoreRecording(path: path).replay(on: StoreKind.sqlite.make(in: folder))
    #expect(report.hasSameAnswers && report.costs.first { $0.kind == "read rows by key" }?.requestCount == 1, "\(report)")
  }

  /// The bug: beside any open view, a consistent one was replayed as a snapshot, of which SQLite allows four.
  @Test(arguments: [1, 2]) func consistentViewsBesideAsManySnapshotsAsAStoreAllowsAreReplayed(_ count: Int) async throws {
    let folder = TemporaryFolder(), path = folder.file("run.recording"), model = try RecordedProgram.model.get()
    let store = StoreKind.sqlite.make(in: folder).recorded(by: try StoreRecorder(path: path)).makeStore()
    _ = try store.open(model: model, host: .none)
    var views = try (0..<4).map { _ in try store.beginRead(.snapshot, options: .none) }
    #expect(try #require(throws: StoreError.self) { try store.beginRead(.snapshot, options: .none) }.code == .tooManyReadViews)
    let house = try #require(model.entity(named: "House")), plan = FetchPlan(entity: house.index, concreteEntities: [house.index])
    for _ in 0..<count {
      let view = try await onThread {
        let view = try store.beginRead(.consistent, options: .none)
        try store.fetch(plan, in: view, options: .none, into: NestedSink { _ in })
        return view
      }
      views.append(view)
    }
    for view in views { view.end() }
    try store.close()
    let report = try StoreRecording(path: path).replay(on: StoreKind.sqlite.make(in: folder))
    #expect(report.hasSameAnswers && report.costs.first { $0.kind == "fetch rows" }?.requestCount == 1, "\(report)")
    // A second consistent view can't begin, because it could wait for the first one.
    #expect(report.omitted["begin to read: the other store allows no more snapshots", default: 0] == count - 1, "\(report)")
  }

  /// The bug: the other answer of a consistent view after a commit wasn't uncertain if the other store has no snapshots.
  @Test(arguments: [ReadViewKind.consistent, .snapshot])
  func aCommitDuringAConsistentViewIsUncertainInAStoreWithoutSnapshots(_ kind: ReadViewKind) throws {
    let folder = TemporaryFolder(), path = folder.file("run.recording"), model = try RecordedProgram.model.get()
    let store = StoreKind.memory.make(in: folder).recorded(by: try StoreRecorder(path: path)).makeStore()
    let identity = try store.open(model: model, host: .none).identity, house = try #require(model.entity(named: "House"))
    let view = try store.beginRead(kind, options: .none)
    let keys = try store.reserveKeys([KeyDemand(entity: house.index, count: 1)], options: .none)
    let builder = RowBatchBuilder(entity: house, identity: identity)
    try builder.append(key: keys[0][0], version: 1, values: house.slots.map { _ in .null })
    var changes = SaveRequest.EntityChanges(entity: house.index)
    changes.inserted = [builder.seal()]
    _ = try store.prepare(SaveRequest(entities: [changes]), options: .none).commit()
    let plan = FetchPlan(entity: house.index, concreteEntities: [house.index])
    try store.fetch(plan, in: view, options: .none, into: NestedSink { _ in })
    view.end()
    try store.close()
    let report = try StoreRecording(path: path).replay(on: StoreKind.minimal.make(in: folder))
    let expected = kind == .consistent ? (0, 1) : (1, 0)
    #expect(report.differenceCount == expected.0 && report.uncertainCount == expected.1, "\(report)")
    let same = try StoreRecording(path: path).replay(on: StoreKind.sqlite.make(in: folder))
    #expect(same.differenceCount == 0 && same.uncertainCount == 0, "\(same)")
  }

  /// Returns order keys for every relationship.
  private final class OrderKeysStore: ForwardingStore {
    let base: any IncrementalStore
    init(_ base: any IncrementalStore) { self.base = base }

    func relationships(_ request: RelationshipRequest, in view: any ReadView, options: RequestOptions) throws -> RelationshipAnswer {
      let answer = try base.relationships(request, in: view, options: options)
      return RelationshipAnswer(
        offsets: answer.offsets, targets: answer.targets, entities: answer.entities,
        orderKeys: answer.orderKeys ?? answer.targets.map(\.rawValue), rows: answer.rows)
    }
  }

  /// The bug: these order keys were compared, so the destinations differed from those of every other store.
  @Test(arguments: [false, true]) func orderKeysOfUnorderedRelationshipsAreNotCompared(_ areRecorded: Bool) throws {
    let folder = TemporaryFolder(), path = folder.file("run.recording"), plain = StoreKind.memory.make(in: folder)
    let keyed = StoreKind.memory.make(in: folder).wrapped { OrderKeysStore($0) }
    try RecordedProgram((areRecorded ? keyed : plain).recorded(by: StoreRecorder(path: path))).run()
    let report = try StoreRecording(path: path).replay(on: areRecorded ? plain : keyed)
    #expect(report.hasSameAnswers && report.costs.contains { $0.kind == "read relationships" }, "\(report)")
  }

  private final class NestedSink: RowSink {
    private let body: (RowBatch) throws -> Void
    init(_ body: @escaping (RowBatch) throws -> Void) { self.body = body }
    func take(_ batch: RowBatch, _ rows: RowSelection) throws -> SinkDemand {
      try body(batch)
      return .enough
    }
  }

  // MARK: Flaws

  /// Changes requests to the store below, as an author's mistake does.
  private final class FlawedStore: ForwardingStore {
    enum Flaw: String, CaseIterable, Sendable {
      case dropsUpdates, dropsLinks, swapsSources, wrongLimit, wrongOrder, wrongCount, keepsDeleted, missingConflict
    }
    let base: any IncrementalStore
    private let flaw: Flaw

    init(_ base: any IncrementalStore, _ flaw: Flaw) { (self.base, self.flaw) = (base, flaw) }

    func prepare(_ request: SaveRequest, options: RequestOptions) throws -> any PreparedSave {
      var request = request
      for index in request.entities.indices {
        for part in request.entities[index].updated.indices where flaw == .dropsUpdates {
          request.entities[index].updated[part].changedSlots = request.entities[index].updated[part].changedSlots.map { _ in 0 }
        }
        if flaw == .keepsDeleted { request.entities[index].deleted = SaveRequest.KeyedRows() }
      }
      if flaw == .dropsLinks { request.links = [] }
      do { return try base.prepare(request, options: options) } catch let error as StoreError where error.code == .conflict {
        if flaw == .missingConflict { return try base.prepare(SaveRequest(), options: options) }
        throw error
      }
    }

    func fetch(_ plan: FetchPlan, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
      var plan = plan
      if flaw == .wrongLimit { plan.limit = plan.limit.map { $0 - 1 } }
      if flaw == .wrongOrder { plan.sorts = plan.sorts.map { SortTerm($0.path, isAscending: !$0.isAscending, folding: $0.folding) } }
      if flaw == .wrongCount, plan.output == .count { plan.predicate = nil }
      try base.fetch(plan, in: view, options: options, into: sink)
    }

    /// With the flaw, the last source has the destinations of the first one, and so on.
    func relationships(_ request: RelationshipRequest, in view: any ReadView, options: RequestOptions) throws -> RelationshipAnswer {
      let answer = try base.relationships(request, in: view, options: options)
      if flaw != .swapsSources { return answer }
      var offsets: [Int32] = [0], targets: [ObjectKey] = [], orderKeys: [Int64] = []
      for place in request.sources.indices.reversed() {
        let positions = Int(answer.offsets[place])..<Int(answer.offsets[place + 1])
        targets += answer.targets[positions]
        orderKeys += answer.orderKeys?[positions] ?? []
        offsets.append(Int32(targets.count))
      }
      return RelationshipAnswer(offsets: offsets, targets: targets, orderKeys: answer.orderKeys == nil ? nil : orderKeys)
    }
  }

  @Test(arguments: FlawedStore.Flaw.allCases, [StoreRecorder.Answers.values, .digests])
  private func aFlawOfAStoreIsFoundWithItsLine(_ flaw: FlawedStore.Flaw, _ answers: StoreRecorder.Answers) throws {
    let folder = TemporaryFolder(), path = folder.file("run.recording")
    try RecordedProgram(StoreKind.sqlite.make(in: folder).recorded(by: StoreRecorder(path: path, answers: answers))).run()
    let flawed = StoreKind.sqlite.make(in: folder).wrapped { FlawedStore($0, flaw) }
    let report = try StoreRecording(path: path).replay(on: flawed)
    let first = try #require(report.differences.first, "\(report)")
    let line = try folder.text("run.recording").split(separator: "\n")[first.line - 1]
    let kinds: [FlawedStore.Flaw: String] = [
      .dropsLinks: "relationships", .swapsSources: "relationships", .missingConflict: "prepare",
    ]
    #expect(line.hasPrefix("{\"begin\":{\"request\":{\"\(kinds[flaw] ?? "fetch")"), "\(flaw): \(report)\n\(line.prefix(60))")
    #expect(!"\(report)".contains("Renamed"))
  }

  /// Returns offsets that aren't ascending, and no order keys.
  private final class WrongOffsetsStore: ForwardingStore {
    let base: any IncrementalStore
    init(_ base: any IncrementalStore) { self.base = base }

    func relationships(_ request: RelationshipRequest, in view: any ReadView, options: RequestOptions) -> RelationshipAnswer {
      RelationshipAnswer(offsets: [0, 9, -1, 2], targets: [1, 2], orderKeys: [])
    }
  }

  /// The framework refuses such an answer, after it was recorded.
  @Test(arguments: [StoreRecorder.Answers.values, .digests]) func aWrongAnswerIsPassedOn(_ answers: StoreRecorder.Answers) throws {
    let folder = TemporaryFolder(), model = try RecordedProgram.model.get()
    let recorder = try StoreRecorder(path: folder.file("run.recording"), answers: answers, includesContents: false)
    let flawed = StoreDescription.memory(contents: MemoryStoreContents()).wrapped { WrongOffsetsStore($0) }
    let store = flawed.recorded(by: recorder).makeStore()
    _ = try store.open(model: model, host: .none)
    let view = try store.beginRead(.latest, options: .none), house = try #require(model.entity(named: "House"))
    let people = try #require(house.relationship(named: "people"))
    let request = RelationshipRequest(entity: house.index, relationship: people.index, sources: [1, 2, 3])
    #expect(try store.relationships(request, in: view, options: .none).offsets == [0, 9, -1, 2])
    view.end()
    try store.close()
  }

  @Test func aValueThatTheOtherStoreCantSaveIsFound() throws {
    let folder = TemporaryFolder(), path = folder.file("run.recording")
    let program = try RecordedProgram(StoreKind.memory.make(in: folder).recorded(by: StoreRecorder(path: path)))
    let person = try program.context.insert(entityNamed: "Person")
    try person.setValue(.double(.nan), forKey: "weight")
    try program.context.save()
    program.context.reset()
    _ = try program.context.fetch(FetchRequest<ManagedObject>(entityName: "Person"))
    #expect(try StoreRecording(path: path).replay(on: StoreKind.json.make(in: folder)).hasSameAnswers)
    let report = try StoreRecording(path: path).replay(on: StoreKind.sqlite.make(in: folder))
    #expect(report.differences.map(\.actual) == ["the error unstorableValue", "none"], "\(report)")
    #expect(report.omitted == ["commit: the save isn't prepared in the other store": 1])
  }

  @Test func aDifferenceShowsValuesOnlyIfTheyAreWanted() throws {
    let folder = TemporaryFolder(), path = folder.file("run.recording")
    let program = try RecordedProgram(StoreKind.memory.make(in: folder).recorded(by: StoreRecorder(path: path)))
    try program.insert()
    try program.query(program.context)
    func flawed() -> StoreDescription { StoreKind.memory.make(in: folder).wrapped { RenamingStore($0) } }
    let recording = StoreRecording(path: path)
    let hidden = try recording.replay(on: flawed(), differences: 1)
    #expect(hidden.differences.count == 1 && hidden.differenceCount > 1)
    #expect(hidden.differences.contains { $0.expected.contains("name") }, "\(hidden)")
    #expect(!"\(hidden)".contains("House 1") && !"\(hidden)".contains("Wrong"))
    #expect("\(try recording.replay(on: flawed(), showsValues: true))".contains("Wrong"))
    let decoded = try JSONDecoder().decode(ReplayReport.self, from: JSONEncoder().encode(hidden))
    #expect(decoded == hidden)
  }

  /// Saves another name for every house.
  private final class RenamingStore: ForwardingStore {
    let base: any IncrementalStore
    init(_ base: any IncrementalStore) { self.base = base }

    func prepare(_ request: SaveRequest, options: RequestOptions) throws -> any PreparedSave {
      var request = request
      for index in request.entities.indices {
        request.entities[index].inserted = try request.entities[index].inserted.map { batch in
          guard batch.idPrefix?.entityName == "House" else { return batch }
          let builder = RowBatchBuilder(layout: batch.layout, idPrefix: batch.idPrefix)
          for row in 0..<batch.count { try builder.append(key: batch[row].key, version: batch[row].version, values: [.string("Wrong")]) }
          return builder.seal()
        }
      }
      return try base.prepare(request, options: options)
    }
  }

  /// The rows of an entity without slots have no words of changed slots, or one that is empty.
  @Test func aSaveWhosePartsHaveDifferentNumbersOfWordsIsReplayed() throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Tag", relationships: [.toMany("tags", to: "Tag", inverse: "tagged"), .toMany("tagged", to: "Tag", inverse: "tags")])
    ])
    let folder = TemporaryFolder(), path = folder.file("run.recording")
    let store = try StoreDescription.memory().recorded(by: StoreRecorder(path: path)).wrapped { DividingStore($0) }
    let coordinator = try PersistentStoreCoordinator(model: model, store: store)
    let context = try ManagedObjectContext(coordinator: coordinator)
    let tags = try (0..<2).map { _ in try context.insert(entityNamed: "Tag") }
    try context.save()
    try tags[0].setValue([tags[1]], forKey: "tags")
    try context.save()
    try coordinator.close()
    #expect(try StoreRecording(path: path).replay(on: .memory()).hasSameAnswers)
  }

  /// Saves each updated row in a part of its own. Only the first part has a word.
  private final class DividingStore: ForwardingStore {
    let base: any IncrementalStore
    init(_ base: any IncrementalStore) { self.base = base }

    func prepare(_ request: SaveRequest, options: RequestOptions) throws -> any PreparedSave {
      var request = request
      for index in request.entities.indices {
        request.entities[index].updated = request.entities[index].updated.flatMap { updated in
          (0..<updated.rows.count).map { row -> SaveRequest.UpdatedRows in
            let builder = RowBatchBuilder(layout: updated.rows.layout, idPrefix: updated.rows.idPrefix)
            builder.append(updated.rows.pointer(row))
            let words = row == 0 ? 1 : 0
            return SaveRequest.UpdatedRows(
              rows: builder.seal(), expectedVersions: [updated.expectedVersions[row]], changedSlots: Array(repeating: 0, count: words),
              wordsPerRow: words)
          }
        }
      }
      return try base.prepare(request, options: options)
    }
  }

  // MARK: Files

  @Test func aTruncatedRecordingIsReplayedUpToItsLastLine() throws {
    let folder = TemporaryFolder(), path = folder.file("run.recording")
    let recorder = try StoreRecorder(path: path)
    try RecordedProgram(StoreKind.memory.make(in: folder).recorded(by: recorder)).run()
    let bytes = try TemporaryFolder.read(path), whole = try StoreRecording(path: path).replay(on: .memory())
    #expect(bytes.count { $0 == UInt8(ascii: "\n") } == recorder.lineCount && recorder.failure == nil)
    try TemporaryFolder.write(Array(bytes.dropLast(10)), to: path)
    let error = try #require(throws: ReplayError.self) { try StoreRecording(path: path).replay(on: .memory()) }
    #expect(error.line == recorder.lineCount && error.cause.code == .damaged)
    #expect("\(error)".contains("line \(recorder.lineCount)"), "\(error)")
    #expect(error.report.requestCount >= whole.requestCount - 1 && error.report.hasSameAnswers)
  }

  /// The decoder's error quotes a number that doesn't fit its type.
  @Test func theErrorOfADamagedLineContainsNoValue() throws {
    let folder = TemporaryFolder(), path = folder.file("run.recording")
    let store = StoreDescription.memory().recorded(by: try StoreRecorder(path: path)).makeStore()
    _ = try store.open(model: RecordedProgram.model.get(), host: .none)
    try store.setMetadata(["card": .int64(4_111_111_111_111_111)])
    try store.close()
    let text = try folder.text("run.recording")
    try folder.write(text.replacingOccurrences(of: "4111111111111111", with: "41111111111111114111111111111111"), to: "damaged.recording")
    let error = try #require(throws: ReplayError.self) {
      try StoreRecording(path: folder.file("damaged.recording")).replay(on: .memory())
    }
    #expect(error.cause.code == .damaged && error.cause.cause is DecodingError)
    #expect(!"\(error)".contains("4111"), "\(error)")
  }

  @Test func theRequestThatEndedTheRecordedProgramIsSentToo() throws {
    let folder = TemporaryFolder(), path = folder.file("run.recording")
    let program = try RecordedProgram(StoreKind.memory.make(in: folder).recorded(by: StoreRecorder(path: path)))
    try program.insert()
    try program.query(program.context)
    let lines = try folder.text("run.recording").split(separator: "\n")
    let last = try #require(lines.lastIndex { $0.hasPrefix("{\"begin\":{\"request\":{\"relationships") })
    try folder.write(lines[...last].joined(separator: "\n") + "\n", to: "killed.recording")
    let other = RecordingStore(MemoryStore())
    let report = try StoreRecording(path: folder.file("killed.recording")).replay(on: StoreDescription(type: "other") { other })
    #expect(report.hasSameAnswers && report.omitted["read relationships: the recording doesn't contain its end"] == 1, "\(report)")
    let isLast = other.requests.last { $0 != .close }.map { if case .relationships = $0 { true } else { false } }
    #expect(isLast == true, "\(other.requests.suffix(3))")
  }

  @Test func everyDamageOfARecordingIsAnErrorOrADifference() throws {
    let folder = TemporaryFolder(), path = folder.file("run.recording"), damaged = folder.file("damaged.recording")
    let program = try RecordedProgram(StoreKind.memory.make(in: folder).recorded(by: StoreRecorder(path: path)))
    try program.insert()
    try program.coordinator.close()
    let bytes = try TemporaryFolder.read(path)
    var random = SeededGenerator("damaged recordings")
    for _ in 0..<TestTier.count(30, full: 1000) {
      var copy = bytes
      let index = Int(random.next() % UInt64(copy.count))
      copy[index] = UInt8(truncatingIfNeeded: random.next())
      try TemporaryFolder.write(copy, to: damaged)
      // It must not trap. Some changes have no effect, such as those of a duration.
      do { _ = try StoreRecording(path: damaged).replay(on: .memory()) } catch is ReplayError {}
    }
  }

  /// The bug: such a recording trapped if it was replayed on a SQLite store, which has no table for these links.
  @Test(arguments: StoreKind.allCases, ["links", "orders"])
  func aRecordedSaveWithChangesThatTheRelationshipDoesNotHaveIsAnError(_ kind: StoreKind, _ part: String) throws {
    let folder = TemporaryFolder(), path = folder.file("run.recording")
    let recorded = try StoreDescription.memory().recorded(by: StoreRecorder(path: path)).wrapped { MisnamingStore($0, part) }
    let program = try RecordedProgram(recorded)
    try program.insert()
    try program.coordinator.close()
    let error = try #require(throws: ReplayError.self) { try StoreRecording(path: path).replay(on: kind.make(in: folder)) }
    #expect(error.cause.code == .damaged)
  }

  /// Adds changes to each save: a link of a one-to-many relationship, whose links are in rows, or the order of an unordered one.
  private final class MisnamingStore: ForwardingStore {
    let base: any IncrementalStore
    private let part: String
    init(_ base: any IncrementalStore, _ part: String) { (self.base, self.part) = (base, part) }

    func prepare(_ request: SaveRequest, options: RequestOptions) throws -> any PreparedSave {
      let model = try RecordedProgram.model.get(), links = [SaveRequest.Link(source: 1, target: 1)]
      guard let house = model.entity(named: "House"), let people = house.relationship(named: "people"),
        let person = model.entity(named: "Person"), let friends = person.relationship(named: "friends")
      else { return try base.prepare(request, options: options) }
      var request = request
      if part == "links" {
        var changes = SaveRequest.LinkChanges(entity: house.index, relationship: people.index)
        changes.added = links
        request.links.append(changes)
      } else {
        var changes = SaveRequest.OrderChanges(entity: person.index, relationship: friends.index)
        (changes.links, changes.keys) = (links, [1])
        request.orders.append(changes)
      }
      return try base.prepare(request, options: options)
    }
  }

  @Test func aStoreWorksOnAfterItsRecordingEnded() throws {
    let folder = TemporaryFolder(), path = folder.file("run.recording"), recorder = try StoreRecorder(path: path)
    let program = try RecordedProgram(StoreKind.memory.make(in: folder).recorded(by: recorder))
    try program.insert()
    #expect(recorder.failure == nil)
    // The ID of an unsaved object can't be encoded.
    let unsaved = try program.context.insert(entityNamed: "House")
    try? program.coordinator.setMetadata(["house": .objectID(unsaved.objectID)])
    let count = recorder.lineCount
    #expect(try "\(#require(recorder.failure))".contains(path))
    try program.query(program.context)
    #expect(recorder.lineCount == count && count > 0)
    #expect(try StoreRecording(path: path).replay(on: .memory()).hasSameAnswers)
  }

  @Test func aRecordingIsNeverReplaced() throws {
    let folder = TemporaryFolder(), path = folder.file("run.recording")
    _ = try StoreRecorder(path: path)
    #expect(throws: StoreError.self) { try StoreRecorder(path: path) }
    #expect(
      try #require(throws: StoreError.self) { try StoreRecording(path: folder.file("missing")).replay(on: .memory()) }.code == .notFound)
  }

  /// The keys of one store would be taken for those of the other.
  @Test func aRecordingOfStoresThatWereOpenTogetherIsRefused() throws {
    let folder = TemporaryFolder(), recorder = try StoreRecorder(path: folder.file("recording"))
    let model = try ManagedObjectModel(entities: [EntityDescription("Dog", attributes: [])])
    let stores = [StoreDescription.memory(), .memory()].map { $0.recorded(by: recorder) }
    try PersistentStoreCoordinator(model: model, stores: stores).close()
    let error = try #require(throws: ReplayError.self) { try StoreRecording(path: folder.file("recording")).replay(on: .memory()) }
    #expect(error.cause.code == .unsupportedRequest)
  }
}
