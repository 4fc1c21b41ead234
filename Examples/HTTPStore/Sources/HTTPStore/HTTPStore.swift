import Foundation
public import HoldfastStore
import ServiceAPI
import Synchronization

/// A store on an HTTP service. Several clients can use one store at a time.
///
/// Requests are synchronous, as the framework requires. They wait for an asynchronous client with `RequestOptions.wait(for:_:)`, which
/// ends at the deadline and when the request is cancelled.
final class HTTPStore: IncrementalStore {
  /// What an open store knows.
  struct Session: Sendable {
    let model: ManagedObjectModel
    let identity: StoreIdentity
  }

  private let client: ServiceClient
  private let isReadOnly: Bool
  /// Guarded because any thread may close the store.
  private let session = Mutex<(session: Session, info: StoreInfo)?>(nil)

  init(_ location: StoreLocation, isReadOnly: Bool) {
    client = ServiceClient(location)
    self.isReadOnly = isReadOnly
  }

  /// The service evaluates predicates of one table, sorts, windows and counts. It compares versions and checks uniqueness.
  var capabilities: StoreCapabilities {
    var capabilities = StoreCapabilities()
    capabilities.comparisons = [.equality, .order, .membership, .substrings]
    capabilities.comparedTypes = HTTPStore.comparedTypes
    capabilities.maximumListCount = 1_000
    capabilities.booleanOperators = true
    capabilities.uniqueLookups = true
    capabilities.sorting = true
    capabilities.windowing = true
    capabilities.counting = true
    capabilities.uniqueness = true
    capabilities.versions = true
    return capabilities
  }

  /// The types that JSON preserves the order of.
  static let comparedTypes: AttributeTypes = [
    .integer16, .integer32, .integer64, .double, .float, .boolean, .string, .date, .uuid, .uri,
  ]

  // MARK: Opening and closing

  func open(model: ManagedObjectModel, host: StoreHost) throws -> StoreMetadata {
    precondition(session.withLock { $0 == nil }, "The store is already open.")
    let info = try readInfo() ?? create(model)
    try ModelCompatibility.check(info.versionHashes, layouts: info.layoutHashes, model, path: client.location.description)
    let identity = try StoreIdentity.intern(storedUUID: info.uuid, model: model, path: client.location.description)
    session.withLock { $0 = (Session(model: model, identity: identity), info) }
    return StoreMetadata(identity: identity, userInfo: info.metadata)
  }

  func close() { session.withLock { $0 = nil } }

  /// What the service keeps for the store; nil if there is no store.
  private func readInfo() throws -> StoreInfo? {
    let answer = try client.send(.init(method: "GET", path: "", operation: "open the store"), accepting: [200, 404], .none)
    return answer.status == 404 ? nil : try client.decode(answer, "open the store")
  }

  private func create(_ model: ManagedObjectModel) throws -> StoreInfo {
    if isReadOnly { throw client.error(.notFound, "open the store", "There is no store, and it was opened read-only. Check the address.") }
    let info = StoreInfo(
      uuid: SaveOrigin.newID().uuidString, versionHashes: model.entityVersionHashesByName, layoutHashes: model.entityLayoutHashesByName,
      metadata: [:])
    let request = try ServiceClient.Request(
      method: "PUT", path: "", body: JSONEncoder().encode(info), headers: ["If-None-Match": "*"], operation: "create the store")
    // If another client was first, or the answer to a first attempt was lost, the store exists.
    let answer = try client.send(request, accepting: [201, 412], .none)
    if answer.status == 201 { return info }
    return try readInfo() ?? info
  }

  func setMetadata(_ metadata: [String: StoreValue]) throws {
    let operation = "write the metadata"
    try checkIsWritable(operation)
    guard var info = session.withLock({ $0?.info }) else { throw notOpen(operation) }
    info.metadata = metadata
    let body: Data
    do { body = try JSONEncoder().encode(info) } catch {
      throw client.error(.unstorableValue, operation, "It has a value that JSON can't contain, such as NaN. Remove it.", error)
    }
    _ = try client.send(.init(method: "PUT", path: "", body: body, operation: operation), .none)
    session.withLock { $0?.info = info }
  }

  private func current(_ operation: String) throws -> Session {
    guard let session = session.withLock({ $0?.session }) else { throw notOpen(operation) }
    return session
  }

  private func checkIsWritable(_ operation: String) throws {
    _ = try current(operation)
    if isReadOnly { throw client.error(.readOnly, operation, "The store was opened read-only.") }
  }

  private func notOpen(_ operation: String) -> StoreError { client.error(.notOpen, operation, "The store isn't open. Open it first.") }

  // MARK: Reading

  /// Requests always read the latest state, so a view has none.
  private final class View: ReadView {
    private let hasEnded = Atomic(false)
    var state: StateToken? { nil }
    func end() { hasEnded.store(true, ordering: .relaxed) }
    func check(_ operation: String) throws {
      if hasEnded.load(ordering: .relaxed) { throw StoreError(.notOpen, operation: operation, reason: "The read view has ended.") }
    }
  }

  func beginRead(_ kind: ReadViewKind, options: RequestOptions) throws -> any ReadView {
    _ = try current("begin to read")
    return View()
  }

  private func current(_ operation: String, in view: any ReadView) throws -> Session {
    try (view as? View)?.check(operation)
    return try current(operation)
  }

  func fetch(_ plan: FetchPlan, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
    let operation = "fetch rows", session = try current(operation, in: view)
    let query = try QueryTranslation(session.model, plan).query()
    let answer: QueryAnswer = try client.post("query", query, operation, options)
    switch plan.output {
    case .count: _ = try sink.take(.count(answer.count), .all)
    case .keys: try RowDelivery(session, keysOnly: true).deliver(answer.rows, options, to: sink)
    default: try RowDelivery(session).deliver(answer.rows, options, to: sink)
    }
  }

  func rows(_ request: FaultRequest, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
    let operation = "read rows", session = try current(operation, in: view)
    var query = Query(session.model.selection(of: session.model.entities[request.entity]))
    query.keys = Set(request.keys.map(\.rawValue))
    let answer: QueryAnswer = try client.post("query", query, operation, options)
    try RowDelivery(session).deliver(answer.rows, options, to: sink)
  }

  func relationships(
    _ request: RelationshipRequest, in view: any ReadView, options: RequestOptions
  ) throws -> RelationshipAnswer {
    let operation = "read a relationship", session = try current(operation, in: view)
    let relationship = session.model.entities[request.entity].relationships[request.relationship]
    let query = LinkQuery(
      from: session.model.selection(of: session.model.entities[relationship.entityIndex]), sources: request.sources.map(\.rawValue),
      path: session.model.path(of: relationship))
    let rows: [LinkedRow] = try client.post("links", query, operation, options)
    return try RowDelivery(session).relationshipAnswer(request.sources, relationship, rows)
  }

  // MARK: Saving

  func reserveKeys(_ demands: [KeyDemand], options: RequestOptions) throws -> [[ObjectKey]] {
    let operation = "reserve keys", session = try current(operation)
    try checkIsWritable(operation)
    let ranges = demands.map {
      KeyRange(table: session.model.table(of: session.model.entities[$0.entity]), count: Int64($0.count))
    }
    let firstKeys: [Int64] = try client.post("keys", ranges, operation, options)
    guard firstKeys.count == demands.count, firstKeys.allSatisfy({ 0 < $0 && $0 < 1 << 56 }) else {
      throw client.error(.damaged, operation, "The service sent invalid keys. Check the version of the service.")
    }
    return zip(firstKeys, demands).map { first, demand in Array(ObjectKey(first)..<ObjectKey(first + Int64(demand.count))) }
  }

  /// Checks whether the service would accept the save. It always accepts new rows without unique values.
  func prepare(_ request: SaveRequest, options: RequestOptions) throws -> any PreparedSave {
    let session = try current("save")
    try checkIsWritable("save")
    let save = SaveTranslation(session, request).save()
    if !save.conditions.isEmpty || !save.unique.isEmpty || !save.derived.isEmpty {
      let check = try ServiceClient.Request(method: "POST", path: "checks", body: JSONEncoder().encode(save), operation: "save")
      let answer = try client.send(check, accepting: [204, 409, 412], options)
      if answer.status != 204 { throw try refusal(answer, session) }
    }
    return Preparation(store: self, session: session, save: save, id: request.origin?.id ?? SaveOrigin.newID(), options: options)
  }

  private final class Preparation: PreparedSave {
    let store: HTTPStore
    let session: Session
    let save: Save
    let id: UUID
    let options: RequestOptions

    init(store: HTTPStore, session: Session, save: Save, id: UUID, options: RequestOptions) {
      (self.store, self.session, self.save, self.id, self.options) = (store, session, save, id, options)
    }

    func commit() throws -> SaveReceipt {
      try store.commit(save, id, session, options)
      return SaveReceipt()
    }

    func abort() {}
  }

  private func commit(_ save: Save, _ id: UUID, _ session: Session, _ options: RequestOptions) throws {
    _ = try current("save")
    let request = try ServiceClient.Request(
      method: "POST", path: "saves", body: JSONEncoder().encode(save), headers: ["Idempotency-Key": id.uuidString], operation: "save",
      isSave: true)
    let answer = try client.send(request, accepting: [204, 409, 410, 412], options)
    if answer.status == 410 { throw client.error(.general, "save", "The save was reported as not committed. Save again with another ID.") }
    if answer.status != 204 { throw try refusal(answer, session) }
  }

  private func refusal(_ answer: ServiceClient.Answer, _ session: Session) throws -> StoreError {
    switch try client.decode(answer, "save") as Refusal {
    case .conflict(let unmet):
      let conflicts = try unmet.map(RowDelivery(session).conflict)
      return StoreError(
        .conflict, operation: "save", path: client.location.description,
        reason: "\(conflicts.count) rows were changed or deleted since they were read.", conflicts: conflicts)
    case .notUnique(let duplicates):
      return StoreError(
        .constraintConflict, operation: "save", path: client.location.description,
        reason: "\(duplicates.count) rows have unique values of other rows.",
        constraintConflicts: try duplicates.map(RowDelivery(session).constraintConflict))
    case .keyInUse(let row):
      return client.error(.general, "save", "\(row.table) already has a row with the key \(row.key). Reserve keys before you save.")
    case .doesNotFit(let row, let field):
      return client.error(
        .unstorableValue, "save",
        "\(field) of the object of \(row.table) with the key \(row.key) doesn't fit its attribute. Give the attribute a larger type.")
    }
  }

  // MARK: Optional requests

  var answers: StoreAnswers { Self.table.bound(to: self) }

  private static let table = AnswerTable<HTTPStore>()
    .answering(SaveOutcomeRequest.self) { store, request, options in try store.outcome(request, options) }

  /// Asks the service to refuse the save, unless it has taken effect.
  private func outcome(_ request: SaveOutcomeRequest, _ options: RequestOptions) throws -> SaveOutcome {
    let operation = SaveOutcomeRequest.operation
    _ = try current(operation)
    let answer = try client.send(.init(method: "DELETE", path: "saves/\(request.id.uuidString)", operation: operation), options)
    let fate: SaveFate = try client.decode(answer, operation)
    return fate.tookEffect ? .committed(SaveReceipt()) : .notCommitted
  }
}

/// What the service keeps for a store, without interpreting it.
struct StoreInfo: Sendable, Codable {
  var uuid: String
  var versionHashes: [String: [UInt8]]
  var layoutHashes: [String: [UInt8]]
  var metadata: [String: StoreValue]
}

extension StoreDescription {
  /// A store on an HTTP service, at a URL such as `http://localhost:8080/stores/notes`.
  ///
  /// Errors contain the URL without user, password and query.
  public static func http(at url: String, isReadOnly: Bool = false) -> StoreDescription {
    let location = StoreLocation(url: url)
    return StoreDescription(type: "HTTP", at: location, isReadOnly: isReadOnly) { HTTPStore(location, isReadOnly: isReadOnly) }
  }
}
