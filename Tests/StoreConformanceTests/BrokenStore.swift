import FoundationEssentials
import HoldfastFiles
import HoldfastMemoryStore
import HoldfastSQLiteStore
import HoldfastStore
import HoldfastStoreConformance
import HoldfastStoreWrappers
import Synchronization

struct BrokenHarness: StoreHarness {
  let flaw: Flaw?
  private let kind: Flaw.Base

  /// - Parameter kind: The store to wrap. Defaults to the one that shows the flaw.
  init(flaw: Flaw?, over kind: Flaw.Base? = nil) {
    self.flaw = flaw
    self.kind = kind ?? flaw?.base ?? .memory
  }

  private var base: any StoreHarness {
    switch kind {
    case .evaluating:
      WrappedHarness(base: MemoryHarness(), capabilities: EvaluatingStore(MemoryStore()).capabilities) { EvaluatingStore($0) }
    case .sqlite: SQLiteHarness()
    case .json: WholeFileHarness(describe: WholeFileHarness.json.describe, allowsUnverified: flaw == .ignoresDigest)
    case .document: flaw == .keepsLineage ? WholeFileHarness.constant : WholeFileHarness.csv
    case .server: ServerHarness(losesSaves: flaw == .losesSavesOfOtherStores)
    case .memory: MemoryHarness()
    }
  }
  var capabilities: StoreCapabilities { base.capabilities }

  func makePlace() throws -> StorePlace {
    let flaw = flaw, notes = BrokenStore.Notes()
    var place = try base.makePlace()
    if let member = UnverifiedMember(flaw) { place = member.place(place) }
    var broken = place
    broken.description = place.description.wrapped { base in
      BrokenStore(flaw == .losesRowsOnClosing ? MemoryStore() : base, flaw, notes)
    }
    broken.readOnly = flaw == .createsWhenReadOnly ? broken.description : nil
    if let describe = place.onFileSystem {
      broken.onFileSystem = { fileSystem in
        let flawed: any StoreFileSystem =
          switch flaw {
          case .doesNotSynchronize: AlteredFileSystem(fileSystem, .noSynchronization)
          case .comparesFileSizes: SizesOnlyFileSystem(base: fileSystem)
          default: fileSystem
          }
        return describe(flawed).wrapped { BrokenStore($0, flaw, notes) }
      }
    }
    broken.cramped = place.cramped?.wrapped { BrokenStore($0, flaw, notes) }
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
      var lastKeys: [ObjectKey] = []
      var callCount = 0
      var isFetching = false
      var oldView: (any ReadView)?
      var firstRow: RowView?
      var firstToken: StateToken?
      /// The options of the last fetch.
      var lastOptions = RequestOptions.none
      /// Answers to requests with one source.
      var oldAnswers: [RelationshipRequest: RelationshipAnswer] = [:]
      var keptViews: [any ReadView] = []
      var hasFailed = false
      /// The last key that stores of the place have reserved, of all entities.
      var lastKey: Int64 = 0
    }
    let state = Mutex(State())
    let readers = ReaderWatch()
  }

  let base: any IncrementalStore
  let flaw: Flaw?
  let notes: Notes
  private let closed = Atomic(false)
  /// The last key that this store has reserved, of all entities.
  private let lastKey = Atomic<Int64>(0)

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
    let firstKey = notes.state.withLock { state in
      state.model = model
      return state.lastKey
    }
    lastKey.store(firstKey, ordering: .relaxed)
    var metadata = try base.open(model: opened, host: host)
    if flaw == .continuesAfterHighestRow { lastKey.store(try highestKey(opened), ordering: .relaxed) }
    if flaw == .newIdentity { metadata.identity = StoreIdentity.intern(storeUUID: UUID().uuidString, model: model) }
    if flaw == .losesMetadata { metadata.userInfo = [:] }
    if flaw == .losesMetadataTypes {
      for (key, value) in metadata.userInfo {
        if case .int16(let number) = value { metadata.userInfo[key] = .int64(Int64(number)) }
      }
    }
    if flaw == .readsEverythingOnOpening {
      for entity in opened.entities {
        let plan = FetchPlan(entity: entity.index, concreteEntities: [entity.index])
        try base.fetch(plan, in: base.beginRead(.latest), into: KeepingSink())
      }
    }
    return metadata
  }

  /// The highest key of all rows.
  private func highestKey(_ model: ManagedObjectModel) throws -> Int64 {
    let view = try base.beginRead(.latest), sink = KeepingSink()
    defer { view.end() }
    for entity in model.entities where !entity.isAbstract {
      try base.fetch(FetchPlan(entity: entity.index, concreteEntities: [entity.index]), in: view, into: sink)
    }
    return sink.batches.flatMap { batch in (0..<batch.count).map { batch[$0].key.rawValue } }.max() ?? 0
  }

  func close() throws {
    if flaw == .answersWhenClosed || flaw == .takesMetadataWhenClosed { closed.store(true, ordering: .relaxed) }
    if flaw != .answersWhenClosed { try base.close() }
    notes.state.withLock { state in
      state.oldView = nil
      state.keptViews = []
    }
  }

  // MARK: Reading

  final class View: ReadView {
    let base: any ReadView
    let kind: ReadViewKind
    let endsBase: Bool
    let whenEnded: @Sendable () -> Void

    init(_ base: any ReadView, _ kind: ReadViewKind, _ state: StateToken?, endsBase: Bool, whenEnded: @escaping @Sendable () -> Void) {
      self.base = base
      self.state = state
      self.kind = kind
      self.endsBase = endsBase
      self.whenEnded = whenEnded
    }

    let state: StateToken?

    func end() {
      if endsBase { base.end() }
      whenEnded()
    }
  }

  func beginRead(_ kind: ReadViewKind, options: RequestOptions) throws -> any ReadView {
    let whenEnded = notes.readers.viewBegins(), isShared = flaw == .sharesSnapshots && kind == .snapshot
    let view = try isShared ? sharedSnapshot(options) : base.beginRead(kind, options: options)
    let state = notes.state.withLock { notes in
      notes.firstToken = notes.firstToken ?? view.state
      return flaw == .keepsToken || flaw == .keepsTokenWithoutUpdates ? notes.firstToken : view.state
    }
    return View(view, kind, state, endsBase: flaw != .endedViewsAnswer) { [notes] in
      if isShared { notes.state.withLock { $0.oldView = nil } }
      whenEnded()
    }
  }

  /// The snapshot that all views share until one of them ends.
  private func sharedSnapshot(_ options: RequestOptions) throws -> any ReadView {
    if let shared = notes.state.withLock({ $0.oldView }) { return shared }
    let view = try base.beginRead(.snapshot, options: options)
    notes.state.withLock { $0.oldView = view }
    return view
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
    case .keysIgnorePredicate, .lookupKeysOfAll: if plan.output == .keys { plan.predicate = nil }
    case .keysIgnoreSorts: if plan.output == .keys { plan.sorts = [] }
    case .keysIgnoreOffset: if plan.output == .keys { plan.offset = 0 }
    case .aggregatesIgnorePredicate: if case .aggregates = plan.output { plan.predicate = nil }
    case .windowsBeforePredicate:
      if plan.predicate != nil, plan.limit != nil || plan.offset > 0 { return try fetchInWindow(plan, view, sink) }
    case .ignoresWindowsWithPredicate: if plan.predicate != nil { (plan.limit, plan.offset) = (nil, 0) }
    case .sortsNaNFirst: if plan.limit == nil, plan.offset == 0, plan.sorts.count == 1 { return try fetchNaNFirst(plan, view, sink) }
    case .losesNilInInequality, .ignoresCase, .comparesPrefixes, .forgetsDelimiters, .comparesDecimalsWith34Digits,
      .comparesMilliseconds, .convertsLineEndingsOfConstants, .distinguishesNegativeZero:
      plan.predicate = plan.predicate.map(spoiled)
    default: break
    }
    notes.state.withLock { $0.lastOptions = options }
    if flaw == .countsInNewestState, plan.output == .count {
      return try base.fetch(plan, in: base.beginRead(.latest), options: options, into: sink)
    }
    if flaw == .skipsCancelledFetches, options.cancellation?.isCancelled == true { return }
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

  /// Applies the window to all rows, and then the predicate.
  private func fetchInWindow(_ plan: FetchPlan, _ view: any ReadView, _ sink: any RowSink) throws {
    var window = plan, matching = plan
    (window.predicate, window.output) = (nil, .keys)
    (matching.limit, matching.offset) = (nil, 0)
    let inWindow = KeepingSink(), all = KeepingSink()
    try base.fetch(window, in: answering(view), into: inWindow)
    try base.fetch(matching, in: answering(view), into: all)
    let keys = Set(inWindow.batches.flatMap { batch in (0..<batch.count).map { batch[$0].key } })
    for batch in all.batches { for row in 0..<batch.count where keys.contains(batch[row].key) { _ = try sink.take(batch, .one(row)) } }
  }

  /// Delivers the rows with NaN in the sorted attribute first.
  private func fetchNaNFirst(_ plan: FetchPlan, _ view: any ReadView, _ sink: any RowSink) throws {
    let all = KeepingSink()
    try base.fetch(plan, in: answering(view), into: all)
    let slot = notes.state.withLock { $0.model }?.entities[plan.entity].slot(named: "\(plan.sorts[0].path)")
    for isFirst in [true, false] {
      for batch in all.batches {
        for row in 0..<batch.count where (slot.map { $0.rawValue < batch[row].values.count && batch[row][$0].isNaN } ?? false) == isFirst {
          _ = try sink.take(batch, .one(row))
        }
      }
    }
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
    case (.comparison(_, .equalTo, .constant(.double(let number)), _), .distinguishesNegativeZero)
    where number == 0 && number.sign == .minus:
      .literal(false)
    case (.comparison(let left, let op, .constant(let value), let folding), _): .comparison(left, op, .constant(rounded(value)), folding)
    case (.not(let part), .forgetsDelimiters): .not(.and(part.conjuncts.suffix(1)))
    default: predicate
    }
  }

  /// A constant that a store changes.
  private func rounded(_ value: StoreValue) -> StoreValue {
    switch (flaw, value) {
    case (.comparesMilliseconds, .date(let seconds)): .date((seconds * 1000).rounded() / 1000)
    case (.convertsLineEndingsOfConstants, .string(let text)): .string(text.replacing("\r\n", with: "\n"))
    case (.comparesDecimalsWith34Digits, .decimal(let number)):
      // The number of digits of IEEE 754's decimal128.
      number.description.utf8.count > 34 ? Decimal(string: "\(number.description.prefix(34))0000").map { .decimal($0) } ?? value : value
    default: value
    }
  }

  private func sinkFor(_ sink: any RowSink, _ plan: FetchPlan) -> any RowSink {
    if flaw == .sumsNaNAsNil {
      guard case .aggregates = plan.output else { return sink }
    }
    return BrokenSink(sink, flaw, notes, counts: plan.output == .count)
  }

  func rows(_ request: FaultRequest, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
    let wrapped = flaw == .sumsNaNAsNil ? sink : BrokenSink(sink, flaw, notes, counts: false)
    if flaw == .cancelsRows { try notes.state.withLock { $0.lastOptions }.check("read rows") }
    var request = request
    if flaw == .deliversWholeFamilies, let model = notes.state.withLock({ $0.model }) {
      request.entity = model.entities[request.entity].rootIndex
    }
    for _ in 0..<(flaw == .requestedRowsTwice ? 2 : 1) {
      try nesting {
        let view = flaw == .liveRowsInSnapshots ? try base.beginRead(.latest) : try answering(view)
        try base.rows(request, in: view, options: options, into: wrapped)
      }
    }
    if flaw == .deliversMissingKeys, !request.keys.isEmpty, let row = notes.state.withLock({ $0.firstRow }) {
      _ = try sink.take(row.batch, .one(row.index))
    }
  }

  func relationships(_ request: RelationshipRequest, in view: any ReadView, options: RequestOptions) throws -> RelationshipAnswer {
    if flaw == .endsCancelledRelationships, options.cancellation?.isCancelled == true {
      return RelationshipAnswer(offsets: Array(repeating: 0, count: request.sources.count + 1), targets: [])
    }
    var request = request
    let relationship = notes.state.withLock { $0.model }?.entities[request.entity].relationships[request.relationship]
    if flaw == .losesInverse, relationship?.isManyToMany == true, relationship?.namesLinks == false {
      request.sources = request.sources.map { _ in .max }
    }
    if flaw == .answersInOwnOrder { request.sources.sort() }
    if flaw == .limitsSources { request.sources = request.sources.enumerated().map { $0 < 999 ? $1 : .max } }
    if flaw == .answersForMissingSources, let first = request.sources.dropFirst().first {
      request.sources = request.sources.map { $0 < ObjectKey(1 << 39) ? $0 : first }
    }
    let isLive = flaw == .ordersInNewestState && relationship?.isOrdered == true
    var answer = try base.relationships(request, in: isLive ? base.beginRead(.latest) : answering(view), options: options)
    if flaw == .losesOrderKeys {
      answer = RelationshipAnswer(offsets: answer.offsets, targets: answer.targets, entities: answer.entities, rows: answer.rows)
    }
    if flaw == .keepsDestinationsOfDeletedSources, request.sources.count == 1 {
      answer = notes.state.withLock { state in
        if !answer.targets.isEmpty { state.oldAnswers[request] = answer }
        return state.oldAnswers[request] ?? answer
      }
    }
    if flaw == .offsetsDescend || flaw == .namesUnknownEntities || flaw == .leavesOutEntities { answer = malformed(answer) }
    let addingRows: [Flaw?] = [.rowsAlongTwice, .rowsAlongOfOthers, .rowsAlongOfSuperentity, .rowsAlongOfNewestState]
    let accepts = request.acceptsRows && addingRows.contains(flaw)
    guard accepts || flaw == .rowsAlongUnasked, let relationship else { return answer }
    return try withRows(answer, relationship, in: view)
  }

  /// An answer whose parts don't match.
  private func malformed(_ answer: RelationshipAnswer) -> RelationshipAnswer {
    var offsets = answer.offsets
    if flaw == .offsetsDescend, offsets.count > 2 { offsets[1] = offsets[offsets.count - 1] + 1 }
    let entities: [EntityIndex]? =
      switch flaw {
      case .namesUnknownEntities: answer.targets.map { _ in 1_000 }
      case .leavesOutEntities: answer.targets.dropLast().map { _ in 0 }
      default: answer.entities
      }
    return RelationshipAnswer(offsets: offsets, targets: answer.targets, entities: entities, orderKeys: answer.orderKeys, rows: answer.rows)
  }

  private func withRows(
    _ answer: RelationshipAnswer, _ relationship: ManagedObjectModel.Relationship, in view: any ReadView
  ) throws -> RelationshipAnswer {
    let sink = KeepingSink()
    let keys = flaw == .rowsAlongOfOthers ? Array(0..<1000) : Array(Set(answer.targets))
    let view = try flaw == .rowsAlongOfNewestState ? base.beginRead(.latest) : answering(view)
    try base.rows(FaultRequest(entity: relationship.destinationIndex, keys: keys), in: view, into: sink)
    var rows = flaw == .rowsAlongTwice ? sink.batches + sink.batches : sink.batches
    if flaw == .rowsAlongOfSuperentity, let model = notes.state.withLock({ $0.model }) {
      rows = rows.map { batch in
        let prefix = batch.idPrefix?.identity.prefix(for: model.entities[relationship.destinationIndex])
        let builder = RowBatchBuilder(layout: batch.layout, idPrefix: prefix)
        for row in 0..<batch.count { builder.append(batch.pointer(row)) }
        return builder.seal()
      }
    }
    return RelationshipAnswer(offsets: answer.offsets, targets: answer.targets, rows: rows)
  }

  // MARK: Saving

  func reserveKeys(_ demands: [KeyDemand], options: RequestOptions) throws -> [[ObjectKey]] {
    if flaw == .servesFirstDemandOnly, !demands.isEmpty {
      return [try base.reserveKeys(demands, options: options)[0]] + demands.dropFirst().map { _ in [] }
    }
    let countsItself: [Flaw?] = [.forgetsReservedKeys, .reservesKeysPerStore, .continuesAfterHighestRow]
    if countsItself.contains(flaw) { return demands.map(ownKeys) }
    return try base.reserveKeys(demands, options: options).map(spoiled)
  }

  /// Keys from a counter of this store, which is only read when the store opens, or never.
  private func ownKeys(_ demand: KeyDemand) -> [ObjectKey] {
    let last = lastKey.wrappingAdd(Int64(demand.count), ordering: .relaxed).newValue
    if flaw == .reservesKeysPerStore { notes.state.withLock { $0.lastKey = max($0.lastKey, last) } }
    return Array(ObjectKey(last - Int64(demand.count) + 1)..<ObjectKey(last + 1))
  }

  private func spoiled(_ keys: [ObjectKey]) -> [ObjectKey] {
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
    if flaw == .comparesNaNAsEqual && hasEqualNaN(request) || flaw == .ignoresSpacesAtEnd && hasAlmostEqualTexts(request) {
      throw StoreError(.constraintConflict, operation: "save", reason: "Two rows have the same unique value.")
    }
    var request = request
    let sent = request
    for index in request.entities.indices {
      if request.entities[index].deleted.keys.count > 1 { notes.state.withLock { $0.callCount += 1 } }
      if flaw == .dropsUpdates || flaw == .receiptOfOtherRows { request.entities[index].updated = [] }
      if flaw == .dropsDeletions { request.entities[index].deleted = SaveRequest.KeyedRows() }
      if flaw == .dropsDerivedRows { request.entities[index].derived = [] }
      if flaw == .appliesFirstPartOnly {
        request.entities[index].updated = Array(request.entities[index].updated.prefix(1))
        request.entities[index].derived = Array(request.entities[index].derived.prefix(1))
      }
      for place in request.entities[index].derived.indices where flaw == .setsWhatIsAdded {
        request.entities[index].derived[place].setSlots = zip(
          request.entities[index].derived[place].setSlots, request.entities[index].derived[place].addedSlots
        ).map { $0 | $1 }
      }
      for place in request.entities[index].updated.indices where flaw == .writesWhatIsNotMarked || flaw == .writesUnchangedExternalValues {
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
      for place in request.entities[index].derived.indices where flaw == .derivesFirstWordOnly {
        let words = request.entities[index].derived[place].wordsPerRow
        for word in request.entities[index].derived[place].setSlots.indices where word % words > 0 {
          request.entities[index].derived[place].setSlots[word] = 0
          request.entities[index].derived[place].addedSlots[word] = 0
        }
      }
      if flaw == .ignoresLocks { request.entities[index].locked = SaveRequest.KeyedRows() }
    }
    if flaw == .forgetsOrder, request.entities.allSatisfy({ $0.inserted.isEmpty }) { request.orders = [] }
    for index in request.links.indices where flaw == .dropsRemovedLinks { request.links[index].removed = [] }
    if flaw == .ignoresExpectedVersions || flaw == .overwritesEarlierVersions { request = try expectingWhatIsThere(request) }
    if flaw == .keepsTokenWithoutUpdates, request.entities.contains(where: { !$0.updated.isEmpty }) {
      notes.state.withLock { $0.firstToken = nil }
    }
    if flaw == .losesMetadataBySaving { try base.setMetadata([:]) }
    if flaw == .makesRoomInCommit { return LatePreparation(base, request) }
    if flaw == .tornCommits || flaw == .tornRows { return try torn(request) }
    if flaw == .failsAfterFailure || flaw == .failsAfterFailedCall, notes.state.withLock({ $0.hasFailed }) {
      throw StoreError(.failed, operation: "save", reason: "An earlier save failed.")
    }
    // A store has a maximum number of snapshots. The second one is enough.
    if flaw == .keepsFilesOfReplacedValues, notes.state.withLock({ $0.keptViews.count < 2 }) {
      let view = try base.beginRead(.snapshot)
      notes.state.withLock { $0.keptViews.append(view) }
    }
    if flaw == .savesByHalves, let first = request.entities.first {
      var half = SaveRequest()
      half.entities = [first]
      try base.prepare(half, options: options).commit()
      request.entities.removeFirst()
    }
    do {
      return try BrokenPreparation(base.prepare(request, options: options), flaw, notes, sent)
    } catch var error as StoreError {
      if flaw == .ignoresLocksOfMissingRows, let rest = withoutLocks(of: error.conflicts, request) {
        return try base.prepare(rest, options: options)
      }
      if flaw == .throwsFirstConflictOnly { error.conflicts = Array(error.conflicts.prefix(1)) }
      for index in error.constraintConflicts.indices where flaw == .namesConstraintsInOtherOrder {
        error.constraintConflicts[index].constraint.reverse()
      }
      if flaw == .throwsFirstConstraintOnly { error.constraintConflicts = Array(error.constraintConflicts.prefix(1)) }
      if flaw == .conflictsWithoutRows { for index in error.conflicts.indices { error.conflicts[index].persisted = nil } }
      if flaw == .failsAfterFailure && error.code == .diskFull || flaw == .failsAfterFailedCall && error.code == .inputOutput {
        notes.state.withLock { $0.hasFailed = true }
      }
      if flaw == .leavesPartOfRefusedSave, error.code == .conflict || error.code == .constraintConflict {
        try base.prepare(SaveRequest(entities: request.entities.map(insertions)), options: options).commit()
      }
      if flaw == .ignoresUniqueReferences, error.constraintConflicts.contains(where: { $0.constraint.contains("hall") }) {
        return try base.prepare(SaveRequest(), options: options)
      }
      if flaw == .ignoresUniqueness, error.code == .constraintConflict { return try base.prepare(SaveRequest(), options: options) }
      throw error
    }
  }

  /// Whether two inserted rows have NaN in a unique attribute.
  private func hasEqualNaN(_ request: SaveRequest) -> Bool {
    insertsUniqueValues(request) { values in values.count(where: \.isNaN) > 1 }
  }

  /// Whether two inserted rows have texts in a unique attribute that differ only in spaces at their ends.
  private func hasAlmostEqualTexts(_ request: SaveRequest) -> Bool {
    insertsUniqueValues(request) { values in
      let texts = Set(values.compactMap { value -> String? in if case .string(let text) = value { text } else { nil } })
      return Set(texts.map { String($0.reversed().drop { $0 == " " }.reversed()) }).count < texts.count
    }
  }

  /// Whether the inserted rows of an entity have values of a unique attribute for which a condition holds.
  private func insertsUniqueValues(_ request: SaveRequest, where condition: ([StoreValue]) -> Bool) -> Bool {
    guard let model = notes.state.withLock({ $0.model }) else { return false }
    return request.entities.contains { changes in
      let rows = changes.inserted.flatMap { batch in (0..<batch.count).map { batch[$0] } }
      return model.entities[changes.entity].uniqueSlots.joined().contains { slot in condition(rows.map { $0[slot] }) }
    }
  }

  /// The request without locks of missing rows; nil if it has none.
  private func withoutLocks(of conflicts: [SaveConflict], _ request: SaveRequest) -> SaveRequest? {
    let missing = Set(conflicts.filter { $0.persisted == nil }.map(\.objectID.key))
    var rest = request, isChanged = false
    for index in request.entities.indices {
      let locked = request.entities[index].locked, kept = locked.keys.indices.filter { !missing.contains(locked.keys[$0]) }
      isChanged = isChanged || kept.count < locked.keys.count
      rest.entities[index].locked = SaveRequest.KeyedRows(
        keys: kept.map { locked.keys[$0] }, expectedVersions: kept.map { locked.expectedVersions[$0] })
    }
    return isChanged ? rest : nil
  }

  private func insertions(_ changes: SaveRequest.EntityChanges) -> SaveRequest.EntityChanges {
    var insertions = SaveRequest.EntityChanges(entity: changes.entity)
    insertions.inserted = changes.inserted
    return insertions
  }

  private func expectingWhatIsThere(_ request: SaveRequest) throws -> SaveRequest {
    var request = request
    let view = try base.beginRead(.latest)
    defer { view.end() }
    for index in request.entities.indices {
      let entity = request.entities[index].entity
      for update in request.entities[index].updated.indices {
        let rows = request.entities[index].updated[update].rows, versions = request.entities[index].updated[update].expectedVersions
        request.entities[index].updated[update].expectedVersions = try (0..<rows.count).map {
          try expected(versions[$0], rows[$0].key, entity, view)
        }
      }
      let deleted = request.entities[index].deleted
      request.entities[index].deleted.expectedVersions = try zip(deleted.keys, deleted.expectedVersions).map {
        try expected($1, $0, entity, view)
      }
    }
    return request
  }

  /// The version of a row with which the store doesn't find a conflict.
  private func expected(_ expected: RowVersion, _ key: ObjectKey, _ entity: EntityIndex, _ view: any ReadView) throws -> RowVersion {
    let stored = try version(key, entity, view)
    return flaw == .ignoresExpectedVersions || stored > 0 && stored < expected ? stored : expected
  }

  private func version(_ key: ObjectKey, _ entity: EntityIndex, _ view: any ReadView) throws -> RowVersion {
    final class Version: RowSink {
      var version: RowVersion = 0
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
    case .servesOtherBytes, .inventsMissingBytes, .servesDamagedFiles, .answersUnopened, .explainsWithValues: Self.table.bound(to: self)
    case .forgetsAnswers: .none
    case .answersLater: notes.state.withLock { $0.firstRow == nil } ? .none : base.answers
    default: base.answers
    }
  }

  private static let table = AnswerTable<BrokenStore>()
    .answering(ExplanationRequest.self) { _, request, _ in
      "All rows, tested with \(request.plan.predicate?.description ?? "nothing")"
    }
    .answering(ExternalDataRequest.self) { store, request, _ in
      do {
        let data = try store.base.answers.perform(request)
        return store.flaw == .servesOtherBytes ? Data(data.dropLast()) : data
      } catch let error as StoreError where store.flaw == .inventsMissingBytes || store.flaw == .answersUnopened && error.code == .notOpen {
        return Data()
      } catch let error as StoreError where store.flaw == .servesDamagedFiles && error.code == .damaged {
        // The file's bytes, as far as the kit knows.
        return Data(count: 1 << 20)
      }
    }

  func setMetadata(_ metadata: [String: StoreValue]) throws {
    if flaw == .takesMetadataWhenClosed, closed.load(ordering: .relaxed) { return }
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
    guard [.normalisesText, .convertsLineEndings, .nanAsNil, .sumsNaNAsNil, .roundsDates, .truncatesDecimals].contains(flaw) else {
      return nil
    }
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
    case (.sumsNaNAsNil, _) where value.isNaN: .null
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
    case .keysWithoutVersions where batch.layout == .keysOnly:
      let builder = RowBatchBuilder(layout: .keysOnly, idPrefix: batch.idPrefix)
      for row in places(batch, rows) {
        builder.beginRow(key: batch[row].key, version: 1)
        builder.endRow()
      }
      return try base.take(builder.seal(), .all)
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
    for row in 0..<batch.count {
      builder.append(batch.pointer(row), key: batch[row].key, version: max(1, batch[row].version.advanced(by: -1)))
    }
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
    if flaw == .hidesFailedCommits || flaw == .failsCommitsThatTookEffect { return try committing() }
    guard flaw == .committedLater || flaw == .commitsEverySecondTime else { return try base.commit() }
    // Commits only every second save.
    let isSecond = notes.state.withLock { state in
      state.callCount += 1
      return state.callCount % 2 == 0
    }
    if isSecond { base.abort() } else { return try base.commit() }
    return SaveReceipt()
  }

  /// Commits, and misreports an error.
  private func committing() throws -> SaveReceipt {
    do { return try base.commit() } catch let error as StoreError {
      if flaw == .hidesFailedCommits { return SaveReceipt() }
      throw StoreError(.inputOutput, operation: "save", reason: "The disk failed.", cause: error)
    }
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
final class KeepingSink: RowSink {
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
