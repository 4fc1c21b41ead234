import Holdfast
import HoldfastStore
import TestSupport
import Testing

/// Copies to a store that doesn't store what it is given: the comparison at the end finds it, and the destination doesn't change.
@Suite struct FaultyCopyTests {
  enum Fault: CaseIterable, Sendable {
    case lostObject
    case otherValue
    case lostLink
  }

  private final class FaultyStore: ForwardingStore {
    let base: any IncrementalStore
    private let fault: Fault

    init(_ base: any IncrementalStore, _ fault: Fault) { (self.base, self.fault) = (base, fault) }

    func prepare(_ request: SaveRequest, options: RequestOptions) throws -> any PreparedSave {
      var request = request
      switch fault {
      case .lostObject: request.entities.removeLast()
      case .otherValue:
        for place in request.entities.indices {
          request.entities[place].inserted = try request.entities[place].inserted.map { try Self.changed($0) }
        }
      case .lostLink: request.links = []
      }
      return try base.prepare(request, options: options)
    }

    private static func changed(_ rows: RowBatch) throws -> RowBatch {
      let builder = RowBatchBuilder(layout: rows.layout, idPrefix: rows.idPrefix)
      for index in 0..<rows.count {
        let row = rows[index]
        try builder.append(key: row.key, version: row.version, values: row.values.map { $0 == .int16(3) ? .int16(4) : $0 })
      }
      return builder.seal()
    }
  }

  @Test(arguments: [MigratedStore.json, .xml, .binary, .sqlite], Fault.allCases)
  func aCopyThatDiffersFromItsSourceIsAnErrorAndReplacesNothing(store: MigratedStore, fault: Fault) throws {
    let age = AttributeDescription("age", .integer16, isOptional: true)
    let model = try model(
      EntityDescription("Dog", attributes: [age], relationships: [.toMany("peers", to: "Dog", inverse: "peers")]),
      EntityDescription("Walk"))
    let source = MigratedStore.Place(store == .sqlite ? .json : .sqlite), destination = MigratedStore.Place(store)
    try source.fill(model) { context in
      let first = try context.add("Dog", "a", ["age": .int16(3)]), second = try context.add("Dog", "b")
      try first.setValue([second], forKey: "peers")
      try context.add("Walk", "1")
    }
    let before = try source.folder.snapshot(), faulty = destination.description.wrapped { FaultyStore($0, fault) }
    func expectRefusal(_ body: () throws -> Void) throws {
      let error = #expect(throws: StoreError.self) { try body() }
      #expect(error?.code == .damaged && error?.path == destination.path, "\(error as Any)")
      let numbers = "\(fault == .lostObject ? 2 : 3) instead of 3 objects, or other values."
      #expect(error?.reason.contains(numbers) == true && error?.reason.contains("The destination wasn't changed.") == true)
      #expect(try source.folder.snapshot() == before)
    }
    try expectRefusal { try PersistentStoreCoordinator.copyPersistentStore(source.description, to: faulty) }
    #expect(destination.folder.names.isEmpty, "\(destination.folder.names)")
    try destination.fill(model) { try $0.add("Walk", "former") }
    let former = try destination.folder.snapshot()
    try expectRefusal { try PersistentStoreCoordinator.replacePersistentStore(faulty, withCopyOf: source.description) }
    try expectRefusal { try PersistentStoreCoordinator.movePersistentStore(source.description, to: faulty) }
    #expect(try destination.folder.snapshot() == former, "\(destination.folder.names)")
    try PersistentStoreCoordinator.replacePersistentStore(destination.description, withCopyOf: source.description)
    #expect(try destination.contents(model).count == 3)
  }

  // MARK: Copies that the disk doesn't confirm

  private static let refusal = StoreError(.durabilityUnknown, operation: "save", reason: "A test said so.")

  private final class UnconfirmedStore: ForwardingStore {
    private final class Save: PreparedSave {
      private let base: any PreparedSave
      init(_ base: any PreparedSave) { self.base = base }

      func commit() throws -> SaveReceipt {
        try base.commit()
        throw FaultyCopyTests.refusal
      }

      func abort() { base.abort() }
    }

    let base: any IncrementalStore
    init(_ base: any IncrementalStore) { self.base = base }

    func prepare(_ request: SaveRequest, options: RequestOptions) throws -> any PreparedSave {
      Save(try base.prepare(request, options: options))
    }
  }

  /// Puts copies in place, and then throws an error.
  private struct UnconfirmedReplacement: AnswerInterceptor {
    func answer<Request: StoreRequest>(
      _ request: Request, _ options: RequestOptions, _ next: (Request, RequestOptions) throws -> Request.Answer
    ) throws -> Request.Answer {
      let answer = try next(request, options)
      if request is ReplacementRequest { throw FaultyCopyTests.refusal }
      return answer
    }
  }

  /// The bug: the error had the code `durabilityUnknown`, as if the copy were in place.
  @Test(arguments: [MigratedStore.json, .xml, .binary, .sqlite])
  func anUnconfirmedTemporaryCopyReplacesNothing(store: MigratedStore) throws {
    let model = try model(EntityDescription("Dog")), source = MigratedStore.Place(store), destination = MigratedStore.Place(store)
    try source.fill(model) { try $0.add("Dog", "a") }
    let unconfirmed = destination.description.wrapped { UnconfirmedStore($0) }
    let error = #expect(throws: StoreError.self) {
      try PersistentStoreCoordinator.copyPersistentStore(source.description, to: unconfirmed)
    }
    #expect(error?.code == .inputOutput && (error?.cause as? StoreError)?.code == .durabilityUnknown, "\(error as Any)")
    #expect(destination.folder.names.isEmpty, "\(destination.folder.names)")
  }

  @Test(arguments: [MigratedStore.json, .xml, .binary, .sqlite])
  func aPlanWhoseTemporaryCopyIsUnconfirmedChangesNothing(store: MigratedStore) throws {
    let old = try model(EntityDescription("Dog")), new = try model(EntityDescription("Dog"), EntityDescription("Walk"))
    let place = MigratedStore.Place(store)
    try place.fill(old) { try $0.add("Dog", "a") }
    let inFile = try #require(place.description.inFile)
    let unconfirmed = place.description.relocatable { path in
      var copy = inFile(path)
      copy.administration = copy.administration.intercepted(by: UnconfirmedReplacement())
      return copy
    }
    var plan = MigrationPlan(from: old)
    plan.add(new, named: "walks") { _ in }
    let error = #expect(throws: StoreError.self) { try PersistentStoreCoordinator.migratePersistentStore(unconfirmed, with: plan) }
    #expect(error?.code == .inputOutput && error?.reason.contains("The store is unchanged.") == true, "\(error as Any)")
    #expect(try place.contents(old).count == 1)
  }

  @Test(arguments: [MigratedStore.json, .xml, .binary, .sqlite])
  func aStoreWhoseMovedCopyIsUnconfirmedRemainsAndCanBeMovedAgain(store: MigratedStore) throws {
    let model = try model(EntityDescription("Dog")), source = MigratedStore.Place(store), destination = MigratedStore.Place(store)
    try source.fill(model) { try $0.add("Dog", "a") }
    var unconfirmed = destination.description
    unconfirmed.administration = unconfirmed.administration.intercepted(by: UnconfirmedReplacement())
    let error = #expect(throws: StoreError.self) {
      try PersistentStoreCoordinator.movePersistentStore(source.description, to: unconfirmed)
    }
    #expect(error?.code == .durabilityUnknown && error?.path == destination.path, "\(error as Any)")
    #expect(error?.reason.hasSuffix("move it again.") == true && source.folder.names.contains("Store"), "\(error as Any)")
    try PersistentStoreCoordinator.movePersistentStore(source.description, to: destination.description)
    #expect(!source.folder.names.contains("Store"))
    #expect(try destination.contents(model).count == 1)
  }

  // MARK: Models that can't be read

  private struct UnreadableModel: AnswerInterceptor {
    func answer<Request: StoreRequest>(
      _ request: Request, _ options: RequestOptions, _ next: (Request, RequestOptions) throws -> Request.Answer
    ) throws -> Request.Answer {
      if request is StoredModelRequest { throw StoreError(.inputOutput, operation: "read the model", reason: "A test said so.") }
      return try next(request, options)
    }
  }

  /// The bug: the error was `missingSourceModel`, as if the store didn't contain its model.
  @Test(arguments: [MigratedStore.json, .xml, .binary, .sqlite])
  func aFailureToReadTheModelInAStoreIsNotAStoreWithoutModel(store: MigratedStore) throws {
    let old = try model(EntityDescription("Dog")), new = try model(EntityDescription("Dog"), EntityDescription("Walk"))
    let place = MigratedStore.Place(store)
    try place.fill(old) { try $0.add("Dog", "a") }
    var unreadable = place.description
    unreadable.administration = unreadable.administration.intercepted(by: UnreadableModel())
    let migration = #expect(throws: StoreError.self) { try PersistentStoreCoordinator.migratePersistentStore(unreadable, to: new) }
    #expect(migration?.code == .inputOutput, "\(migration as Any)")
    let opening = #expect(throws: StoreError.self) { try PersistentStoreCoordinator(model: new, store: unreadable) }
    #expect(opening?.code == .inputOutput, "\(opening as Any)")
    try PersistentStoreCoordinator.migratePersistentStore(place.description, to: new)
    #expect(try place.contents(new).count == 1)
  }

  // MARK: Calls that fail

  enum Call: CaseIterable, Sendable {
    case beginRead
    case fetch
    case relationships
    case reserveKeys
    case prepare
    case setMetadata

    var isOfSource: Bool { [.beginRead, .fetch, .relationships].contains(self) }
  }

  /// A store whose calls of one kind throw an error of its own type.
  private final class FailingStore: ForwardingStore {
    struct Failure: Error {}
    let base: any IncrementalStore
    private let failing: Call

    init(_ base: any IncrementalStore, _ failing: Call) { (self.base, self.failing) = (base, failing) }

    private func check(_ call: Call) throws { if call == failing { throw Failure() } }

    func beginRead(_ kind: ReadViewKind, options: RequestOptions) throws -> any ReadView {
      try check(.beginRead)
      return try base.beginRead(kind, options: options)
    }

    func fetch(_ plan: FetchPlan, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
      try check(.fetch)
      try base.fetch(plan, in: view, options: options, into: sink)
    }

    func relationships(_ request: RelationshipRequest, in view: any ReadView, options: RequestOptions) throws -> RelationshipAnswer {
      try check(.relationships)
      return try base.relationships(request, in: view, options: options)
    }

    func reserveKeys(_ demands: [KeyDemand], options: RequestOptions) throws -> [[ObjectKey]] {
      try check(.reserveKeys)
      return try base.reserveKeys(demands, options: options)
    }

    func prepare(_ request: SaveRequest, options: RequestOptions) throws -> any PreparedSave {
      try check(.prepare)
      return try base.prepare(request, options: options)
    }

    func setMetadata(_ metadata: [String: StoreValue]) throws {
      try check(.setMetadata)
      try base.setMetadata(metadata)
    }
  }

  @Test(arguments: [MigratedStore.json, .xml, .binary, .sqlite], Call.allCases)
  func anErrorOfUnknownTypeIsTheCauseOfAStoreError(store: MigratedStore, call: Call) throws {
    let model = try model(EntityDescription("Dog", relationships: [.toMany("peers", to: "Dog", inverse: "peers")]))
    let source = MigratedStore.Place(store), destination = MigratedStore.Place(store)
    try source.fill(model) { context in
      let first = try context.add("Dog", "a"), second = try context.add("Dog", "b")
      try first.setValue([second], forKey: "peers")
    }
    try PersistentStoreCoordinator.setMetadata(["owner": .string("ann")], for: source.description)
    let failing = (call.isOfSource ? source : destination).description.wrapped { FailingStore($0, call) }
    let error = #expect(throws: StoreError.self) {
      try PersistentStoreCoordinator.copyPersistentStore(
        call.isOfSource ? failing : source.description, to: call.isOfSource ? destination.description : failing)
    }
    #expect(error?.code == .general && error?.cause is FailingStore.Failure, "\(error as Any)")
    #expect(error?.path == (call.isOfSource ? source : destination).path && destination.folder.names.isEmpty)
  }
}
