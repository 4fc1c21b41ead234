import HoldfastStore
import Testing

@testable import Holdfast

/// Stores whose answers break the contract: reading them is an error, and no wrong values are read or copied.
@Suite struct WrongAnswerTests {
  /// What a store returns.
  enum Flaw: CaseIterable, Sendable {
    case noOrderKeys, fewOffsets, fewEntities, otherRows
  }

  private final class FlawedStore: ForwardingStore {
    let base: any IncrementalStore
    private let flaw: Flaw

    init(_ base: any IncrementalStore, _ flaw: Flaw) { (self.base, self.flaw) = (base, flaw) }

    func fetch(_ plan: FetchPlan, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
      guard flaw == .otherRows, plan.output == .rows else { return try base.fetch(plan, in: view, options: options, into: sink) }
      let builder = RowBatchBuilder(layout: RowLayout([]), idPrefix: nil)
      builder.beginRow(key: 1, version: 1)
      builder.endRow()
      _ = try sink.take(builder.seal(), .all)
    }

    func relationships(_ request: RelationshipRequest, in view: any ReadView, options: RequestOptions) throws -> RelationshipAnswer {
      let answer = try base.relationships(request, in: view, options: options)
      switch flaw {
      case .noOrderKeys: return RelationshipAnswer(offsets: answer.offsets, targets: answer.targets, entities: answer.entities)
      case .fewOffsets: return RelationshipAnswer(offsets: [0], targets: [])
      case .fewEntities:
        return RelationshipAnswer(offsets: answer.offsets, targets: answer.targets, entities: [], orderKeys: answer.orderKeys)
      case .otherRows: return answer
      }
    }
  }

  private static let stores: [TestStore] = [.memory, .json, .xml, .binary, .sqlite, .weakest]

  private func model() throws -> ManagedObjectModel {
    try ManagedObjectModel(entities: [
      EntityDescription(
        "Person", attributes: [AttributeDescription("name", .string, isOptional: true)],
        relationships: [
          .toMany("friends", to: "Person", inverse: "friendOf", isOrdered: true), .toMany("friendOf", to: "Person", inverse: "friends"),
        ])
    ])
  }

  /// A store with two people, the second of whom is the first one's friend.
  private func makePlace(_ store: TestStore) throws -> TestStore.Place {
    let place = try store.makePlace(model: model(), classes: []), context = try place.context()
    let people = try (0..<2).map { _ in try context.insert(entityNamed: "Person") }
    try people[0].setValue([people[1]], forKey: "friends")
    try context.save()
    try place.close()
    return place
  }

  @Test(arguments: stores, Flaw.allCases) func aWrongAnswerIsNotCopied(_ store: TestStore, _ flaw: Flaw) throws {
    let place = try makePlace(store)
    let flawed = StoreDescription(type: "flawed") { FlawedStore(place.description.makeStore(), flaw) }
    let error = #expect(throws: StoreError.self) { try PersistentStoreCoordinator.graphDigest(of: flawed, model: place.model) }
    #expect(error?.code == .damaged)
  }

  @Test(arguments: stores, Flaw.allCases) func aContextRefusesAWrongAnswer(_ store: TestStore, _ flaw: Flaw) throws {
    let place = try makePlace(store)
    let flawed = StoreDescription(type: "flawed") { FlawedStore(place.description.makeStore(), flaw) }
    let coordinator = try PersistentStoreCoordinator(model: place.model, store: flawed)
    let context = try ManagedObjectContext(coordinator: coordinator, classes: [])
    let error = #expect(throws: StoreError.self) {
      for person in try context.fetch(FetchRequest<ManagedObject>(entityName: "Person")) {
        _ = try context.reading { try person.value(forKey: "friends") }
      }
    }
    #expect(error?.code == .damaged)
    try coordinator.close()
  }

  private final class MiscountingStore: ForwardingStore {
    let base: any IncrementalStore
    private let counted: Int

    init(_ base: any IncrementalStore, _ counted: Int) { (self.base, self.counted) = (base, counted) }

    func fetch(_ plan: FetchPlan, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
      guard plan.output == .count else { return try base.fetch(plan, in: view, options: options, into: sink) }
      _ = try sink.take(.count(counted), .all)
    }

    private static let table = AnswerTable<MiscountingStore>().answering(HistoryDeletionRequest.self) { store, _, _ in store.counted }
    var answers: StoreAnswers { Self.table.bound(to: self) }
  }

  /// The counts of several stores are added.
  @Test(arguments: [-1, (1 << 48) + 1, .max, .min]) func aWrongCountIsRefused(_ counted: Int) throws {
    let place = try makePlace(.memory)
    let flawed = StoreDescription(type: "flawed") { MiscountingStore(place.description.makeStore(), counted) }
    let coordinator = try PersistentStoreCoordinator(model: place.model, store: flawed)
    let context = try ManagedObjectContext(coordinator: coordinator, classes: [])
    let error = #expect(throws: StoreError.self) { try context.count(for: FetchRequest<ManagedObject>(entityName: "Person")) }
    #expect(error?.code == .damaged)
    try coordinator.close()
  }

  /// The numbers of the deleted transactions of several stores are added, too.
  @Test(arguments: [-1, (1 << 48) + 1, .max, .min]) func aWrongCountOfDeletedTransactionsIsRefused(_ counted: Int) throws {
    let place = try makePlace(.memory)
    let flawed = StoreDescription(type: "flawed") { MiscountingStore(place.description.makeStore(), counted) }
    let coordinator = try PersistentStoreCoordinator(model: place.model, store: flawed)
    let error = #expect(throws: StoreError.self) { try coordinator.deleteHistory(upTo: nil) }
    #expect(error?.code == .damaged)
    try coordinator.close()
  }

  private final class UndecodingStore: ForwardingStore {
    let base: any IncrementalStore

    init(_ base: any IncrementalStore) { self.base = base }

    func fetch(_ plan: FetchPlan, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
      switch plan.output {
      case .count: throw DecodingError.dataCorrupted(.init(codingPath: [], debugDescription: "Number 4111 doesn't fit."))
      default: throw EncodingError.invalidValue("4111", .init(codingPath: [], debugDescription: "The text 4111 doesn't fit."))
      }
    }
  }

  /// The errors of decoders and encoders quote values, and a store's error is logged with its cause.
  @Test func theErrorOfAStoreThatCannotDecodeAnAnswerContainsNoValue() throws {
    let place = try makePlace(.memory)
    let flawed = StoreDescription(type: "flawed") { UndecodingStore(place.description.makeStore()) }
    let coordinator = try PersistentStoreCoordinator(model: place.model, store: flawed)
    let context = try ManagedObjectContext(coordinator: coordinator, classes: [])
    let request = FetchRequest<ManagedObject>(entityName: "Person")
    let decoding = try #require(throws: StoreError.self) { try context.count(for: request) }
    #expect(decoding.code == .general && decoding.cause is DecodingError && !"\(decoding)".contains("4111"), "\(decoding)")
    let encoding = try #require(throws: StoreError.self) { try context.fetch(request) }
    #expect(encoding.code == .general && encoding.cause is EncodingError && !"\(encoding)".contains("4111"), "\(encoding)")
    try coordinator.close()
  }

  // MARK: Limits

  /// A store that declares offset and limit, and ignores the limit.
  private final class LimitlessStore: ForwardingStore {
    let base: any IncrementalStore

    init(_ base: any IncrementalStore) { self.base = base }

    var capabilities: StoreCapabilities {
      var capabilities = StoreCapabilities()
      capabilities.windowing = true
      return capabilities
    }

    func fetch(_ plan: FetchPlan, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
      var plan = plan
      plan.limit = nil
      try base.fetch(plan, in: view, options: options, into: sink)
    }
  }

  /// The bug: a fetch with a limit returned more objects.
  @Test func moreRowsThanTheLimitAreRefused() throws {
    let place = try makePlace(.memory)
    let flawed = StoreDescription(type: "flawed") { LimitlessStore(place.description.makeStore()) }
    let coordinator = try PersistentStoreCoordinator(model: place.model, store: flawed)
    let context = try ManagedObjectContext(coordinator: coordinator, classes: [])
    var request = FetchRequest<ManagedObject>(entityName: "Person")
    request.fetchLimit = 2
    #expect(try context.fetch(request).count == 2 && context.fetchObjectIDs(request).count == 2)
    request.fetchLimit = 1
    let error = try #require(throws: StoreError.self) { try context.fetch(request) }
    #expect(error.code == .damaged && error.reason.contains("F3"), "\(error)")
    #expect(try #require(throws: StoreError.self) { try context.fetchObjectIDs(request) }.code == .damaged)
    try coordinator.close()
  }

  // MARK: Aggregates

  /// A store's rows for an aggregate request with two columns and no groups.
  enum Aggregates: CaseIterable, Sendable {
    case noColumns, oneColumn, otherTypes, noRow, twoRows

    fileprivate var layout: RowLayout {
      switch self {
      case .noColumns: RowLayout([])
      case .oneColumn: RowLayout([.attribute(.integer64)])
      case .otherTypes: RowLayout([.attribute(.integer64), .attribute(.boolean)])
      case .noRow, .twoRows: RowLayout([.attribute(.integer64), .attribute(.string)])
      }
    }

    fileprivate var rowCount: Int {
      switch self {
      case .noRow: 0
      case .twoRows: 2
      case .noColumns, .oneColumn, .otherTypes: 1
      }
    }
  }

  private final class MisaggregatingStore: ForwardingStore {
    let base: any IncrementalStore
    private let answer: Aggregates

    init(_ base: any IncrementalStore, _ answer: Aggregates) { (self.base, self.answer) = (base, answer) }

    var capabilities: StoreCapabilities {
      var capabilities = base.capabilities
      capabilities.aggregates = true
      return capabilities
    }

    func fetch(_ plan: FetchPlan, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
      guard case .aggregates = plan.output else { return try base.fetch(plan, in: view, options: options, into: sink) }
      let builder = RowBatchBuilder(layout: answer.layout, idPrefix: nil)
      for _ in 0..<answer.rowCount {
        try builder.append(key: 0, version: 0, values: answer.layout.columns.map { _ in .null })
      }
      if answer.rowCount > 0 { _ = try sink.take(builder.seal(), .all) }
    }
  }

  /// Values of missing columns were read as nil, or trapped.
  @Test(arguments: Aggregates.allCases) func wrongAggregatesAreRefused(_ answer: Aggregates) throws {
    let place = try makePlace(.memory)
    let flawed = StoreDescription(type: "flawed") { MisaggregatingStore(place.description.makeStore(), answer) }
    let coordinator = try PersistentStoreCoordinator(model: place.model, store: flawed)
    let context = try ManagedObjectContext(coordinator: coordinator, classes: [])
    let request = DictionaryFetchRequest<ManagedObject>(entityName: "Person", columns: ["count": .count(), "name": .maximum("name")])
    let error = #expect(throws: StoreError.self) { try context.fetch(request) }
    #expect(error?.code == .damaged)
    try coordinator.close()
  }

  // MARK: Keys

  private final class MiskeyingStore: ForwardingStore {
    let base: any IncrementalStore
    private let keys: [ObjectKey]

    init(_ base: any IncrementalStore, _ keys: [ObjectKey]) { (self.base, self.keys) = (base, keys) }

    func reserveKeys(_ demands: [KeyDemand], options: RequestOptions) throws -> [[ObjectKey]] { demands.map { _ in keys } }
  }

  /// With equal keys, one object would replace the other. Negative keys are those of unsaved objects.
  @Test(arguments: [[7, 7], [9, 8], [0, 1], [-1, 5], [7], [7, 8, 9]] as [[ObjectKey]])
  func wrongKeysAreRefused(_ keys: [ObjectKey]) throws {
    let place = try makePlace(.memory)
    let flawed = StoreDescription(type: "flawed") { MiskeyingStore(place.description.makeStore(), keys) }
    let coordinator = try PersistentStoreCoordinator(model: place.model, store: flawed)
    let context = try ManagedObjectContext(coordinator: coordinator, classes: [])
    let people = try (0..<2).map { _ in try context.insert(entityNamed: "Person") }
    let error = #expect(throws: StoreError.self) { try context.save() }
    #expect(error?.code == .damaged)
    #expect(people.allSatisfy { $0.isInserted && $0.objectID.isTemporaryID })
    let other = try ManagedObjectContext(coordinator: coordinator, classes: [])
    #expect(try other.count(for: FetchRequest<ManagedObject>(entityName: "Person")) == 2)
    try coordinator.close()
  }

  // MARK: Other entities

  /// A store that returns the rows of all entities, whichever are requested.
  private final class ConfusedStore: ForwardingStore {
    let base: any IncrementalStore
    private let model: ManagedObjectModel
    /// Whether fetches are answered correctly.
    private let fetches: Bool

    init(_ base: any IncrementalStore, _ model: ManagedObjectModel, fetches: Bool) {
      (self.base, self.model, self.fetches) = (base, model, fetches)
    }

    /// The framework evaluates everything.
    var capabilities: StoreCapabilities { StoreCapabilities() }

    func fetch(_ plan: FetchPlan, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
      if fetches { return try base.fetch(plan, in: view, options: options, into: sink) }
      for entity in model.entities {
        let all = FetchPlan(entity: entity.index, concreteEntities: [entity.index], output: plan.output)
        try base.fetch(all, in: view, options: options, into: sink)
      }
    }

    func rows(_ request: FaultRequest, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
      for entity in model.entities {
        try base.rows(FaultRequest(entity: entity.index, keys: request.keys), in: view, options: options, into: sink)
      }
    }
  }

  /// How a context reads objects.
  enum Reading: CaseIterable, Sendable {
    case fetch, ids, predicate, order, limit, changes, aggregates, groups, object, path

    fileprivate func read(_ context: ManagedObjectContext, _ id: ManagedObjectID) throws {
      var request = FetchRequest<ManagedObject>(entityName: "Person")
      switch self {
      case .fetch: break
      case .ids:
        _ = try context.fetchObjectIDs(request)
        return
      case .predicate:
        request.predicate = FetchPredicate(.comparison(.property("name"), .equalTo, .constant(.string("Ann")), []))
      case .path:
        request.predicate = FetchPredicate(.comparison(.property("home.area"), .equalTo, .constant(.double(2.5)), []))
      case .order: request.sortDescriptors = [FetchSortDescriptor(SortTerm("name"))]
      case .limit: request.fetchLimit = 7
      case .changes: try context.insert(entityNamed: "Person").setValue("Bob", forKey: "name")
      case .aggregates:
        _ = try context.fetch(DictionaryFetchRequest<ManagedObject>(entityName: "Person", columns: ["name": .maximum("name")]))
        return
      case .groups:
        let columns: [String: DictionaryFetchColumn] = ["name": .property("name"), "count": .count()]
        _ = try context.fetch(DictionaryFetchRequest<ManagedObject>(entityName: "Person", columns: columns, groupedBy: ["name"]))
        return
      case .object:
        _ = try context.existingObject(with: id)
        return
      }
      _ = try context.fetch(request)
    }
  }

  /// The bug: objects of another entity were returned as objects of the fetched class, and slots were read that their rows don't have.
  @Test(arguments: Reading.allCases) func rowsOfAnotherEntityAreRefused(_ reading: Reading) throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Person",
        attributes: [AttributeDescription("age", .integer16, isOptional: true), AttributeDescription("name", .string, isOptional: true)],
        relationships: [.toOne("home", to: "Place", inverse: "people")]),
      EntityDescription(
        "Place", attributes: [AttributeDescription("area", .double, isOptional: true)],
        relationships: [.toMany("people", to: "Person", inverse: "home")]),
    ])
    let place = try TestStore.memory.makePlace(model: model, classes: []), filling = try place.context()
    let person = try filling.insert(entityNamed: "Person"), home = try filling.insert(entityNamed: "Place")
    try person.setValue("Ann", forKey: "name")
    try person.setValue(home, forKey: "home")
    try home.setValue(2.5, forKey: "area")
    try filling.save()
    let id = person.objectID
    try place.close()
    let confused = StoreDescription(type: "confused") { ConfusedStore(place.description.makeStore(), model, fetches: reading == .path) }
    let coordinator = try PersistentStoreCoordinator(model: model, store: confused)
    let context = try ManagedObjectContext(coordinator: coordinator, classes: [])
    let error = #expect(throws: StoreError.self) { try reading.read(context, id) }
    #expect(error?.code == .damaged)
    try coordinator.close()
  }
}
