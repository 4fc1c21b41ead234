import FoundationEssentials
import HoldfastMemoryStore
import HoldfastSQLiteStore
import HoldfastStore
import HoldfastStoreConformance
import Synchronization

/// The flaw of a ``BrokenStore``.
enum Flaw: String, CaseIterable, Sendable {
  case dropsUpdates, dropsDeletions, dropsRemovedLinks, losesInverse, losesInverseAfterDeletion, seversDespiteNoAction
  case servesStaleRows, servesOldVersions, leavesOutRow, deliversRowTwice, deliversOtherEntity, deliversMissingKeys
  case ignoresSorts, sortsWithoutTies, ignoresLimit, windowsOffByOne, countsOneMore
  case losesNilInInequality, ignoresCase, comparesPrefixes, forgetsDelimiters
  case ignoresEnough, swallowsSinkErrors, endsCancelledFetches, endsCancelledViews, keysWithColumns
  case givesKeysTwice, givesKeysOfDeletedRows, keysDescend
  case ignoresExpectedVersions, ignoresLocks, throwsFirstConflictOnly, conflictsWithoutRows, ignoresUniqueness, throwsFirstConstraintOnly
  case commitsInPrepare, abortCommits, committedLater
  case liveSnapshots, endedViewsAnswer, lateViews
  case newIdentity, losesRowsOnClosing, answersWhenClosed, mergesMetadata, losesMetadata, changesCapabilities, takesOtherModels
  case answersInOwnOrder, answersForMissingSources
  case readsEverythingOnOpening, makesRoomInCommit, savesByHalves, commitsEverySecondTime
  case rowsAlongTwice, rowsAlongOfOthers, rowsAlongUnasked
  case forgetsSubentities, deliversWholeFamilies, forgetsOrder, losesOrderKeys
  case dropsDerivedRows, setsWhatIsAdded, writesWhatIsNotMarked
  case servesOtherBytes, inventsMissingBytes, forgetsAnswers
  case servesFirstDemandOnly, refusesNestedRequests, answersLater, windowsInAnyOrder, cancelsRows, answersUnopened, receiptOfOtherRows
  case keepsToken
  case keysIgnorePredicate, keysIgnoreSorts, keysIgnoreOffset, aggregatesIgnorePredicate, windowsBeforePredicate
  case normalisesText, convertsLineEndings, nanAsNil, roundsDates, truncatesDecimals
  case limitsSources, changesFirstWordOnly, namesConstraintsInOtherOrder

  /// The rules that have at least one case that must fail.
  var rules: Set<String> {
    switch self {
    case .dropsUpdates, .dropsDeletions: ["S10"]
    case .dropsRemovedLinks, .losesInverse: ["L2", "L1"]
    case .losesInverseAfterDeletion, .seversDespiteNoAction: ["S11"]
    case .servesStaleRows, .lateViews: ["V2"]
    case .servesOldVersions, .deliversOtherEntity: ["F5"]
    case .leavesOutRow, .deliversRowTwice: ["F1"]
    case .deliversMissingKeys: ["R2"]
    case .ignoresSorts, .sortsWithoutTies: ["F2"]
    case .ignoresLimit, .windowsOffByOne: ["F3"]
    case .countsOneMore, .keysWithColumns: ["F6"]
    case .losesNilInInequality, .ignoresCase, .comparesPrefixes, .forgetsDelimiters: ["F1"]
    case .ignoresEnough, .swallowsSinkErrors: ["F4"]
    case .keepsToken: ["V4"]
    case .keysIgnorePredicate, .aggregatesIgnorePredicate: ["F6"]
    case .keysIgnoreSorts: ["F2"]
    case .keysIgnoreOffset, .windowsBeforePredicate: ["F3"]
    case .normalisesText, .convertsLineEndings, .nanAsNil, .roundsDates, .truncatesDecimals: ["F5"]
    case .limitsSources: ["L1"]
    case .changesFirstWordOnly: ["S10"]
    case .namesConstraintsInOtherOrder: ["S2"]
    case .endsCancelledFetches: ["Q1"]
    case .endsCancelledViews: ["Q3"]
    case .givesKeysTwice, .givesKeysOfDeletedRows, .keysDescend: ["K1"]
    case .ignoresExpectedVersions, .ignoresLocks, .throwsFirstConflictOnly, .conflictsWithoutRows: ["S1"]
    case .ignoresUniqueness, .throwsFirstConstraintOnly: ["S2"]
    case .commitsInPrepare: ["S4"]
    case .abortCommits: ["S9"]
    case .committedLater: ["S8"]
    case .liveSnapshots: ["V1"]
    case .endedViewsAnswer: ["V3"]
    case .newIdentity: ["O1"]
    case .losesRowsOnClosing, .answersWhenClosed: ["O5"]
    case .mergesMetadata, .losesMetadata: ["M1"]
    case .changesCapabilities: ["C1"]
    case .takesOtherModels: ["O3"]
    case .answersInOwnOrder: ["L1"]
    case .answersForMissingSources: ["L3"]
    case .readsEverythingOnOpening: ["O4"]
    case .makesRoomInCommit: ["S3"]
    case .savesByHalves: ["S6"]
    case .commitsEverySecondTime: ["S7"]
    case .rowsAlongTwice, .rowsAlongOfOthers, .rowsAlongUnasked: ["L4"]
    case .forgetsSubentities: ["F1"]
    case .deliversWholeFamilies: ["R2"]
    case .forgetsOrder: ["S12"]
    case .losesOrderKeys: ["L5"]
    case .dropsDerivedRows, .setsWhatIsAdded: ["S13"]
    case .writesWhatIsNotMarked: ["S14"]
    case .servesOtherBytes: ["X1"]
    case .inventsMissingBytes: ["X2"]
    case .forgetsAnswers: ["X1"]
    case .servesFirstDemandOnly: ["K1"]
    case .refusesNestedRequests: ["F7"]
    case .answersLater: ["C2"]
    case .cancelsRows: ["Q2"]
    case .answersUnopened: ["C3"]
    case .receiptOfOtherRows: ["S15"]
    case .windowsInAnyOrder: ["F3"]
    }
  }

  /// Whether the flaw only shows in a store that answers queries itself.
  var needsSQLite: Bool {
    switch self {
    case .ignoresSorts, .sortsWithoutTies, .ignoresLimit, .windowsOffByOne, .losesNilInInequality, .ignoresCase, .comparesPrefixes,
      .forgetsDelimiters, .readsEverythingOnOpening, .makesRoomInCommit, .savesByHalves, .commitsEverySecondTime, .servesOtherBytes,
      .inventsMissingBytes, .forgetsAnswers, .answersLater, .windowsInAnyOrder,
      .answersUnopened, .keysIgnorePredicate, .keysIgnoreSorts, .keysIgnoreOffset, .aggregatesIgnorePredicate, .windowsBeforePredicate,
      .changesFirstWordOnly:
      true
    default: false
    }
  }
}

struct BrokenHarness: StoreHarness {
  let flaw: Flaw?
  var capabilities: StoreCapabilities { flaw?.needsSQLite == true ? SQLiteHarness().capabilities : MemoryHarness().capabilities }

  func makePlace() throws -> StorePlace {
    let flaw = flaw, notes = BrokenStore.Notes()
    let place = flaw?.needsSQLite == true ? try SQLiteHarness().makePlace() : MemoryHarness().makePlace()
    var broken = place
    broken.description.makeStore = {
      let base = flaw == .losesRowsOnClosing ? MemoryStore() : place.description.makeStore()
      return BrokenStore(base, flaw, notes)
    }
    broken.readOnly = nil
    if let cramped = place.cramped { broken.cramped?.makeStore = { BrokenStore(cramped.makeStore(), flaw, notes) } }
    return broken
  }
}

/// A correct store with one flaw.
final class BrokenStore: ForwardingStore {
  /// State that the stores on one place share to implement the flaw.
  final class Notes: Sendable {
    struct State {
      var model: ManagedObjectModel?
      var metadata: [String: StoreValue] = [:]
      var lastKeys: [Int64] = []
      var callCount = 0
      var isFetching = false
      var oldView: (any ReadView)?
      var firstRow: RowView?
      var firstToken: StateToken?
      /// The options of the last fetch.
      var lastOptions = RequestOptions.none
      var committed: [any PreparedSave] = []
    }
    let state = Mutex(State())
  }

  let base: any IncrementalStore
  let flaw: Flaw?
  let notes: Notes
  private let closed = Atomic(false)

  init(_ base: any IncrementalStore, _ flaw: Flaw?, _ notes: Notes) {
    self.base = base
    self.flaw = flaw
    self.notes = notes
  }

  var capabilities: StoreCapabilities {
    guard flaw == .changesCapabilities else { return base.capabilities }
    var changed = base.capabilities
    changed.sorting = notes.state.withLock { state in
      state.callCount += 1
      return state.callCount > 1
    }
    return changed
  }

  func open(model: ManagedObjectModel, host: StoreHost) throws -> StoreMetadata {
    var opened = model
    if flaw == .losesInverseAfterDeletion { opened = try model.with(.noAction) }
    if flaw == .seversDespiteNoAction { opened = try model.with(.nullify) }
    if flaw == .takesOtherModels { opened = notes.state.withLock { $0.model } ?? model }
    notes.state.withLock { $0.model = model }
    var metadata = try base.open(model: opened, host: host)
    if flaw == .newIdentity { metadata.identity = StoreIdentity.intern(storeUUID: UUID().uuidString, model: model) }
    if flaw == .losesMetadata { metadata.userInfo = [:] }
    if flaw == .readsEverythingOnOpening {
      for entity in opened.entities {
        let plan = FetchPlan(entity: entity.index, concreteEntities: [entity.index])
        try base.fetch(plan, in: base.beginRead(.latest), into: KeepingSink())
      }
    }
    return metadata
  }

  func close() throws {
    if flaw == .answersWhenClosed { closed.store(true, ordering: .relaxed) } else { try base.close() }
    notes.state.withLock { $0.oldView = nil }
  }

  // MARK: Reading

  final class View: ReadView {
    let base: any ReadView
    let kind: ReadViewKind
    let endsBase: Bool

    init(_ base: any ReadView, _ kind: ReadViewKind, _ state: StateToken?, endsBase: Bool) {
      self.base = base
      self.state = state
      self.kind = kind
      self.endsBase = endsBase
    }

    let state: StateToken?

    func end() { if endsBase { base.end() } }
  }

  func beginRead(_ kind: ReadViewKind, options: RequestOptions) throws -> any ReadView {
    let view = try base.beginRead(kind, options: options)
    let state = notes.state.withLock { notes in
      notes.firstToken = notes.firstToken ?? view.state
      return flaw == .keepsToken ? notes.firstToken : view.state
    }
    return View(view, kind, state, endsBase: flaw != .endedViewsAnswer)
  }

  /// The base store's view that answers a request.
  private func answering(_ view: any ReadView) throws -> any ReadView {
    guard let view = view as? View else { return view }
    if flaw == .liveSnapshots, view.kind != .latest { return try base.beginRead(.latest) }
    guard flaw == .servesStaleRows || (flaw == .lateViews && view.kind == .latest) else { return view.base }
    let old = notes.state.withLock { $0.oldView }
    if let old, flaw == .servesStaleRows { return old }
    let next = try base.beginRead(.snapshot)
    notes.state.withLock { $0.oldView = next }
    return old ?? next
  }

  func fetch(_ plan: FetchPlan, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
    var plan = plan
    switch flaw {
    case .ignoresSorts: plan.sorts = []
    case .forgetsSubentities: plan.concreteEntities = Array(plan.concreteEntities.prefix(1))
    case .sortsWithoutTies: plan.sorts += [SortTerm(PropertyPath(notes.anyAttribute(of: plan.entity)), isAscending: false)]
    case .ignoresLimit: plan.limit = nil
    case .windowsInAnyOrder:
      if plan.sorts.isEmpty, plan.offset == 0, let limit = plan.limit { return try fetchLast(limit, plan, view, sink) }
    case .windowsOffByOne: plan.offset += plan.offset > 0 ? 1 : 0
    case .keysWithColumns: if plan.output == .keys { plan.output = .rows }
    case .keysIgnorePredicate: if plan.output == .keys { plan.predicate = nil }
    case .keysIgnoreSorts: if plan.output == .keys { plan.sorts = [] }
    case .keysIgnoreOffset: if plan.output == .keys { plan.offset = 0 }
    case .aggregatesIgnorePredicate: if case .aggregates = plan.output { plan.predicate = nil }
    case .windowsBeforePredicate: if plan.limit != nil || plan.offset > 0 { plan.predicate = nil }
    case .losesNilInInequality, .ignoresCase, .comparesPrefixes, .forgetsDelimiters: plan.predicate = plan.predicate.map(spoiled)
    default: break
    }
    notes.state.withLock { $0.lastOptions = options }
    try nesting {
      try base.fetch(
        plan, in: answering(view), options: flaw == .endsCancelledFetches ? .none : options, into: sinkFor(sink, plan))
    }
    if flaw == .endsCancelledViews, options.cancellation?.isCancelled == true { view.end() }
  }

  /// Refuses requests during a fetch if that is the flaw.
  private func nesting(_ body: () throws -> Void) throws {
    guard flaw == .refusesNestedRequests else { return try body() }
    if notes.state.withLock({ $0.isFetching }) {
      throw StoreError(.locked, operation: "read rows", reason: "The store delivers rows to another request.")
    }
    notes.state.withLock { $0.isFetching = true }
    defer { notes.state.withLock { $0.isFetching = false } }
    try body()
  }

  /// Delivers the last rows instead of the first.
  private func fetchLast(_ limit: Int, _ plan: FetchPlan, _ view: any ReadView, _ sink: any RowSink) throws {
    var plan = plan
    plan.limit = nil
    let all = KeepingSink()
    try base.fetch(plan, in: answering(view), into: all)
    for batch in all.batches.reversed().prefix(limit) { _ = try sink.take(batch, .one(batch.count - 1)) }
  }

  /// A slightly different predicate.
  private func spoiled(_ predicate: QueryExpression) -> QueryExpression {
    switch (predicate, flaw) {
    case (.comparison(let left, .notEqualTo, let right, let folding), .losesNilInInequality) where right != .constant(.null):
      .and([.comparison(left, .notEqualTo, right, folding), .comparison(left, .notEqualTo, .constant(.null), [])])
    case (.comparison(let left, let op, .constant(.string(let text)), let folding), .ignoresCase) where op.isSubstring || op == .equalTo:
      .comparison(left, op, .constant(.string(text)), folding.union(.caseInsensitive))
    case (.comparison(let left, .lessThanOrEqualTo, let right, let folding), .comparesPrefixes):
      .comparison(left, .lessThan, right, folding)
    case (.not(let part), .forgetsDelimiters): .not(.and(part.conjuncts.suffix(1)))
    default: predicate
    }
  }

  private func sinkFor(_ sink: any RowSink, _ plan: FetchPlan) -> any RowSink {
    BrokenSink(sink, flaw, notes, counts: plan.output == .count)
  }

  func rows(_ request: FaultRequest, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
    let wrapped = BrokenSink(sink, flaw, notes, counts: false)
    if flaw == .cancelsRows { try notes.state.withLock { $0.lastOptions }.check("read rows") }
    var request = request
    if flaw == .deliversWholeFamilies, let model = notes.state.withLock({ $0.model }) {
      request.entity = model.entities[request.entity].rootIndex
    }
    try nesting { try base.rows(request, in: answering(view), options: options, into: wrapped) }
    if flaw == .deliversMissingKeys, !request.keys.isEmpty, let row = notes.state.withLock({ $0.firstRow }) {
      _ = try sink.take(row.batch, .one(row.index))
    }
  }

  func relationships(_ request: RelationshipRequest, in view: any ReadView, options: RequestOptions) throws -> RelationshipAnswer {
    var request = request
    let relationship = notes.state.withLock { $0.model }?.entities[request.entity].relationships[request.relationship]
    if flaw == .losesInverse, relationship?.isManyToMany == true, relationship?.namesLinks == false {
      request.sources = request.sources.map { _ in .max }
    }
    if flaw == .answersInOwnOrder { request.sources.sort() }
    if flaw == .limitsSources { request.sources = request.sources.enumerated().map { $0 < 999 ? $1 : .max } }
    if flaw == .answersForMissingSources, let first = request.sources.dropFirst().first {
      request.sources = request.sources.map { $0 < 1 << 39 ? $0 : first }
    }
    var answer = try base.relationships(request, in: answering(view), options: options)
    if flaw == .losesOrderKeys {
      answer = RelationshipAnswer(offsets: answer.offsets, targets: answer.targets, entities: answer.entities, rows: answer.rows)
    }
    let welcomes = request.welcomesRows && (flaw == .rowsAlongTwice || flaw == .rowsAlongOfOthers)
    guard welcomes || flaw == .rowsAlongUnasked, let relationship else { return answer }
    return try withRows(answer, relationship, in: view)
  }

  private func withRows(
    _ answer: RelationshipAnswer, _ relationship: ManagedObjectModel.Relationship, in view: any ReadView
  ) throws -> RelationshipAnswer {
    let sink = KeepingSink()
    let keys = flaw == .rowsAlongOfOthers ? Array(0..<1000) : Array(Set(answer.targets))
    try base.rows(FaultRequest(entity: relationship.destinationIndex, keys: keys), in: answering(view), into: sink)
    let rows = flaw == .rowsAlongTwice ? sink.batches + sink.batches : sink.batches
    return RelationshipAnswer(offsets: answer.offsets, targets: answer.targets, rows: rows)
  }

  // MARK: Saving

  func reserveKeys(_ demands: [KeyDemand], options: RequestOptions) throws -> [[Int64]] {
    if flaw == .servesFirstDemandOnly, !demands.isEmpty {
      return [try base.reserveKeys(demands, options: options)[0]] + demands.dropFirst().map { _ in [] }
    }
    return try base.reserveKeys(demands, options: options).map(spoiled)
  }

  private func spoiled(_ keys: [Int64]) -> [Int64] {
    if flaw == .keysDescend { return keys.reversed() }
    return notes.state.withLock { state in
      defer { state.lastKeys = keys }
      if flaw == .givesKeysTwice, let first = state.lastKeys.last, keys.count == 1 { return [first] }
      if flaw == .givesKeysOfDeletedRows, let last = state.lastKeys.last, state.callCount > 0, !keys.isEmpty {
        return [last] + keys.dropFirst()
      }
      return keys
    }
  }

  func prepare(_ request: SaveRequest, options: RequestOptions) throws -> any PreparedSave {
    var request = request
    let sent = request
    for index in request.entities.indices {
      if request.entities[index].deleted.keys.count > 1 { notes.state.withLock { $0.callCount += 1 } }
      if flaw == .dropsUpdates || flaw == .receiptOfOtherRows { request.entities[index].updated = [] }
      if flaw == .dropsDeletions { request.entities[index].deleted = SaveRequest.KeyedRows() }
      if flaw == .dropsDerivedRows { request.entities[index].derived = [] }
      for place in request.entities[index].derived.indices where flaw == .setsWhatIsAdded {
        request.entities[index].derived[place].setSlots = zip(
          request.entities[index].derived[place].setSlots, request.entities[index].derived[place].addedSlots
        ).map { $0 | $1 }
      }
      for place in request.entities[index].updated.indices where flaw == .writesWhatIsNotMarked {
        let slots = UInt64(request.entities[index].updated[place].rows.layout.columns.count)
        for word in request.entities[index].updated[place].changedSlots.indices {
          request.entities[index].updated[place].changedSlots[word] = 1 << slots - 1
        }
      }
      for place in request.entities[index].updated.indices where flaw == .changesFirstWordOnly {
        let words = request.entities[index].updated[place].wordsPerRow
        for word in request.entities[index].updated[place].changedSlots.indices where word % words > 0 {
          request.entities[index].updated[place].changedSlots[word] = 0
        }
      }
      if flaw == .ignoresLocks { request.entities[index].locked = SaveRequest.KeyedRows() }
    }
    if flaw == .forgetsOrder, request.entities.allSatisfy({ $0.inserted.isEmpty }) { request.orders = [] }
    for index in request.links.indices where flaw == .dropsRemovedLinks { request.links[index].removed = [] }
    if flaw == .ignoresExpectedVersions { request = try expectingWhatIsThere(request) }
    if flaw == .makesRoomInCommit { return LatePreparation(base, request) }
    if flaw == .savesByHalves, let first = request.entities.first {
      var half = SaveRequest()
      half.entities = [first]
      try base.prepare(half, options: options).commit()
      request.entities.removeFirst()
    }
    do {
      return try BrokenPreparation(base.prepare(request, options: options), flaw, notes, sent)
    } catch var error as StoreError {
      if flaw == .throwsFirstConflictOnly { error.conflicts = Array(error.conflicts.prefix(1)) }
      for index in error.constraintConflicts.indices where flaw == .namesConstraintsInOtherOrder {
        error.constraintConflicts[index].constraint.reverse()
      }
      if flaw == .throwsFirstConstraintOnly { error.constraintConflicts = Array(error.constraintConflicts.prefix(1)) }
      if flaw == .conflictsWithoutRows { for index in error.conflicts.indices { error.conflicts[index].persisted = nil } }
      if flaw == .ignoresUniqueness, error.code == .constraintConflict { return try base.prepare(SaveRequest(), options: options) }
      throw error
    }
  }

  private func expectingWhatIsThere(_ request: SaveRequest) throws -> SaveRequest {
    var request = request
    let view = try base.beginRead(.latest)
    defer { view.end() }
    for index in request.entities.indices {
      let entity = request.entities[index].entity
      for update in request.entities[index].updated.indices {
        let rows = request.entities[index].updated[update].rows
        request.entities[index].updated[update].expectedVersions = try (0..<rows.count).map { try version(rows[$0].key, entity, view) }
      }
      request.entities[index].deleted.expectedVersions = try request.entities[index].deleted.keys.map { try version($0, entity, view) }
    }
    return request
  }

  private func version(_ key: Int64, _ entity: EntityIndex, _ view: any ReadView) throws -> Int64 {
    final class Version: RowSink {
      var version: Int64 = 0
      func take(_ batch: RowBatch, _ rows: RowSelection) -> SinkDemand {
        if case .one(let index) = rows { version = batch[index].version } else { version = batch[0].version }
        return .more
      }
    }
    let sink = Version()
    try base.rows(FaultRequest(entity: entity, keys: [key]), in: view, into: sink)
    return sink.version
  }

  var answers: StoreAnswers {
    switch flaw {
    case .servesOtherBytes, .inventsMissingBytes, .answersUnopened: Self.table.bound(to: self)
    case .forgetsAnswers: .none
    case .answersLater: notes.state.withLock { $0.firstRow == nil } ? .none : base.answers
    default: base.answers
    }
  }

  private static let table = AnswerTable<BrokenStore>().answering(ExternalDataRequest.self) { store, request, _ in
    do {
      let data = try store.base.answers.perform(request)
      return store.flaw == .servesOtherBytes ? Data(data.dropLast()) : data
    } catch let error as StoreError where store.flaw == .inventsMissingBytes || store.flaw == .answersUnopened && error.code == .notOpen {
      return Data()
    }
  }

  func setMetadata(_ metadata: [String: StoreValue]) throws {
    guard flaw == .mergesMetadata else { return try base.setMetadata(metadata) }
    let merged = notes.state.withLock { state in
      state.metadata.merge(metadata) { $1 }
      return state.metadata
    }
    try base.setMetadata(merged)
  }
}

/// Forwards rows, with additions or omissions.
private final class BrokenSink: RowSink {
  let base: any RowSink
  let flaw: Flaw?
  let notes: BrokenStore.Notes
  let counts: Bool
  private var taken = 0

  init(_ base: any RowSink, _ flaw: Flaw?, _ notes: BrokenStore.Notes, counts: Bool) {
    self.base = base
    self.flaw = flaw
    self.notes = notes
    self.counts = counts
  }

  /// The batch with slightly different values; nil if the flaw doesn't change values.
  private func spoiledValues(of batch: RowBatch) throws -> RowBatch? {
    guard [.normalisesText, .convertsLineEndings, .nanAsNil, .roundsDates, .truncatesDecimals].contains(flaw) else { return nil }
    let builder = RowBatchBuilder(layout: batch.layout, idPrefix: batch.idPrefix)
    for index in 0..<batch.count {
      try builder.append(key: batch[index].key, version: batch[index].version, values: batch[index].values.map(spoiled))
    }
    return builder.seal()
  }

  private func spoiled(_ value: StoreValue) -> StoreValue {
    switch (flaw, value) {
    case (.normalisesText, .string(let text)): .string(text.replacing("e\u{301}", with: "\u{E9}"))
    case (.convertsLineEndings, .string(let text)): .string(text.replacing("\r\n", with: "\n"))
    case (.nanAsNil, _) where value.isNaN: .null
    case (.roundsDates, .date(let seconds)): .date((seconds * 1000).rounded() / 1000)
    case (.truncatesDecimals, .decimal(let number)) where number.description.count > 20: .decimal(number / 7 * 7)
    default: value
    }
  }

  func take(_ batch: RowBatch, _ rows: RowSelection) throws -> SinkDemand {
    defer { taken += 1 }
    if !counts { notes.state.withLock { $0.firstRow = $0.firstRow ?? batch[0] } }
    if let changed = try counts ? nil : spoiledValues(of: batch) { return try base.take(changed, rows) }
    switch flaw {
    case .ignoresEnough:
      // Row by row, so that there are many deliveries.
      for row in places(batch, rows) { _ = try base.take(batch, .one(row)) }
      return .more
    case .swallowsSinkErrors: return (try? base.take(batch, rows)) ?? .enough
    case .endsCancelledFetches where notes.state.withLock({ $0.lastOptions }).cancellation?.isCancelled == true: return .enough
    case .leavesOutRow where !counts && taken == 0: return try base.take(batch, .rows(places(batch, rows).dropLast().map(UInt32.init)))
    case .deliversRowTwice where !counts && taken == 0: _ = try base.take(batch, .one(places(batch, rows)[0]))
    case .servesOldVersions where !counts: return try base.take(older(batch), rows)
    case .deliversOtherEntity where !counts: return try base.take(renamed(batch), rows)
    case .countsOneMore where counts:
      let builder = RowBatchBuilder(layout: batch.layout, idPrefix: nil)
      builder.beginRow(key: 0, version: 0)
      builder.append(integer: batch.pointer(0).integer(0) + 1)
      builder.endRow()
      return try base.take(builder.seal(), .all)
    default: break
    }
    return try base.take(batch, rows)
  }

  private func places(_ batch: RowBatch, _ rows: RowSelection) -> [Int] {
    switch rows {
    case .all: Array(0..<batch.count)
    case .one(let row): [row]
    case .rows(let rows): rows.map(Int.init)
    }
  }

  private func older(_ batch: RowBatch) -> RowBatch {
    let builder = RowBatchBuilder(layout: batch.layout, idPrefix: batch.idPrefix)
    for row in 0..<batch.count { builder.append(batch.pointer(row), key: batch[row].key, version: max(1, batch[row].version - 1)) }
    return builder.seal()
  }

  private func renamed(_ batch: RowBatch) -> RowBatch {
    let other = notes.state.withLock { $0.model }.flatMap { model in model.entities.first.map { batch.idPrefix?.identity.prefix(for: $0) } }
    let builder = RowBatchBuilder(layout: batch.layout, idPrefix: other ?? nil)
    for row in 0..<batch.count { builder.append(batch.pointer(row)) }
    return builder.seal()
  }
}

private final class BrokenPreparation: PreparedSave {
  let base: any PreparedSave
  let flaw: Flaw?
  let notes: BrokenStore.Notes

  /// The updated rows of the request.
  let sent: [RowBatch]

  init(_ base: any PreparedSave, _ flaw: Flaw?, _ notes: BrokenStore.Notes, _ request: SaveRequest) throws {
    self.base = base
    sent = request.entities.flatMap { $0.updated.map(\.rows) }
    self.flaw = flaw
    self.notes = notes
    if flaw == .commitsInPrepare { try base.commit() }
  }

  func commit() throws -> SaveReceipt {
    if flaw == .commitsInPrepare { return SaveReceipt() }
    if flaw == .receiptOfOtherRows {
      try base.commit()
      return SaveReceipt(rows: sent)
    }
    guard flaw == .committedLater || flaw == .commitsEverySecondTime else { return try base.commit() }
    // Commits only every second save.
    let isSecond = notes.state.withLock { state in
      state.callCount += 1
      return state.callCount % 2 == 0
    }
    if isSecond { base.abort() } else { return try base.commit() }
    return SaveReceipt()
  }

  func abort() {
    if flaw == .commitsInPrepare { return }
    if flaw == .abortCommits { _ = try? base.commit() } else { base.abort() }
  }
}

extension BrokenStore.Notes {
  fileprivate func anyAttribute(of entity: EntityIndex) -> String {
    state.withLock { $0.model }?.entities[entity].attributes.last?.name ?? ""
  }
}

extension ManagedObjectModel {
  /// The same model with one delete rule everywhere, which doesn't change version hashes.
  fileprivate func with(_ rule: DeleteRule) throws -> ManagedObjectModel {
    try ManagedObjectModel(
      entities: declarations.map { entity in
        var entity = entity
        for index in entity.relationships.indices { entity.relationships[index].deleteRule = rule }
        return entity
      })
  }
}

/// Keeps complete batches.
private final class KeepingSink: RowSink {
  private(set) var batches: [RowBatch] = []

  func take(_ batch: RowBatch, _ rows: RowSelection) throws -> SinkDemand {
    let builder = RowBatchBuilder(layout: batch.layout, idPrefix: batch.idPrefix)
    switch rows {
    case .all: for index in 0..<batch.count { builder.append(batch.pointer(index)) }
    case .one(let index): builder.append(batch.pointer(index))
    case .rows(let indexes): for index in indexes { builder.append(batch.pointer(Int(index))) }
    }
    batches.append(builder.seal())
    return .more
  }
}

/// Does the work of the preparation in the commit.
private final class LatePreparation: PreparedSave {
  private let base: any IncrementalStore
  private let request: SaveRequest

  init(_ base: any IncrementalStore, _ request: SaveRequest) {
    self.base = base
    self.request = request
  }

  func commit() throws -> SaveReceipt { try base.prepare(request).commit() }
  func abort() {}
}
