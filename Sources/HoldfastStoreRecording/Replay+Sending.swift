import Holdfast
import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension Replay {
  /// A recorded request with its end.
  struct Sent {
    var request: RecordedRequest
    let line: Int
    var answer: RecordedAnswer
    /// The recorded duration; nil for a request that the recorded program didn't send.
    let seconds: Double?
    /// The versions of a save's rows.
    var saved: [SaveTranslation.Saved] = []

    /// Whether the answer to a reservation has the demanded number of keys. A damaged file could demand any number.
    var hasFittingKeys: Bool {
      guard case .reserveKeys(let demands) = request else { return true }
      if case .keys(let keys) = answer { return demands.map(\.count) == keys.map(\.count) }
      return false
    }
  }

  /// An answer of the other store.
  enum Answer {
    case done
    case rows(ReplaySink)
    case destinations([UInt64], count: Int)
    case data(Data)
  }

  /// Sends a request to the other store, and compares the answer with the recorded one.
  ///
  /// - Throws: ``StoreError`` if the request or the recorded answer isn't valid.
  func send(_ sent: Sent, to store: ReplayedStore, _ reader: RecordingReader) throws {
    if case .reserveKeys = sent.request, case .failed(let failure) = sent.answer {
      return omit(sent.request, "failed with \(failure.code.rawValue)")
    }
    guard store.fits(sent.request), sent.hasFittingKeys else {
      throw reader.damaged("The request in line \(sent.line) doesn't fit the model or its answer.")
    }
    if let reason = obstacle(sent.request, store) { return omit(sent.request, reason) }
    var sent = sent
    if case .failed(let failure) = sent.answer {
      switch sent.request {
      case .commit(let save):
        omit(sent.request, "failed with \(failure.code.rawValue)")
        guard failure.code == .durabilityUnknown || failure.code == .outcomeUnknown else {
          saves.removeValue(forKey: save)?.prepared.abort()
          return
        }
        sent.answer = .done
      default:
        if !failure.isComparable(store.store.capabilities) { return omit(sent.request, "failed with \(failure.code.rawValue)") }
      }
    }
    var (own, translated) = (Duration.zero, sent)
    do { (translated.request, translated.saved) = try store.translated(sent.request) } catch {
      return differ(sent, store, "an answer", "the error \(code(error))", isUncertain: false)
    }
    let (outcome, seconds) = timed { Result { try answer(translated, store, own: &own) } }
    if hasNoRoom(sent.request, store, outcome) { return omit(sent.request, "the other store allows no more snapshots") }
    try compare(sent, outcome, seconds - own / .seconds(1), store, reader)
  }

  /// Sends a request.
  ///
  /// - Parameter own: The time that the replay itself needed, which isn't the store's.
  func answer(_ sent: Sent, _ store: ReplayedStore, own: inout Duration) throws -> Answer {
    switch sent.request {
    case .open, .endRead, .optional: return .done
    case .close:
      stores = stores.filter { $0.value !== store }
      try store.coordinator.close()
    case .beginRead(let kind):
      let replayedKind = replayedKind(kind, store), view = try store.store.beginRead(replayedKind, options: .none)
      views[sent.line]?.view = view
      views[sent.line]?.isConsistent = replayedKind == .consistent
      // Without snapshots, a consistent view reads the latest state, as it does in a context. A context can't begin a snapshot then.
      let isLatest = kind == .consistent && !store.store.capabilities.snapshots
      if kind != .latest, store.recordedCapabilities.snapshots, !isLatest { views[sent.line]?.settle(commits) }
    case .fetch(let plan, let view):
      let sink = sink(sent, store, plan)
      defer { own = sink.duration }
      try store.coordinator.fetch(plan, in: try self.view(view), into: sink)
      return .rows(sink)
    case .rows(let faults, let view):
      let sink = sink(sent, store)
      defer { own = sink.duration }
      try store.store.rows(faults, in: try self.view(view), options: .none, into: sink)
      return .rows(sink)
    case .relationships(let relationship, let view):
      let answer = try store.store.relationships(relationship, in: try self.view(view), options: .none), start = ContinuousClock.now
      defer { own = .now - start }
      guard let described = store.model.relationship(relationship.entity, relationship.relationship) else { return .done }
      return .destinations(store.digest().digests(answer, described), count: answer.targets.count)
    case .reserveKeys(let demands):
      let keys = try store.store.reserveKeys(demands, options: .none), start = ContinuousClock.now
      defer { own = .now - start }
      if case .keys(let recorded) = sent.answer { addKeys(demands, recorded, keys, store.model) }
    case .prepare(let save):
      saves[sent.line] = ReplayedSave(prepared: try store.store.prepare(save, options: .none), rows: sent.saved, store: store)
    case .commit(let save):
      guard let save = saves.removeValue(forKey: save) else { return .done }
      let receipt = try save.prepared.commit(), start = ContinuousClock.now
      defer { own = .now - start }
      if case .receipt(let recorded) = sent.answer { addVersions(save.rows, recorded, receipt, store.model) }
    case .abort(let save): saves.removeValue(forKey: save)?.prepared.abort()
    case .setMetadata(let metadata): try store.store.setMetadata(metadata)
    case .externalData(let request):
      let start = ContinuousClock.now, value = try store.value(store.model.entities[request.entity], request.key, request.slot)
      own = .now - start
      return .data(try store.externalData(request, value))
    }
    return .done
  }

  /// The kind of a view in the other store. A store may allow only one consistent view at a time, and waiting for another one would never
  /// end.
  private func replayedKind(_ kind: ReadViewKind, _ store: ReplayedStore) -> ReadViewKind {
    if !store.store.capabilities.snapshots { return .latest }
    return kind == .consistent && views.values.contains(where: \.isConsistent) ? .snapshot : kind
  }

  /// Whether a view couldn't begin because it would have been a snapshot, and the other store allows no more of them.
  private func hasNoRoom(_ request: RecordedRequest, _ store: ReplayedStore, _ outcome: Result<Answer, any Error>) -> Bool {
    guard case .beginRead(let kind) = request, case .failure(let error) = outcome else { return false }
    return kind == .consistent && replayedKind(kind, store) == .snapshot && (error as? StoreError)?.code == .tooManyReadViews
  }

  /// Why a request can't be sent; nil if it can.
  func obstacle(_ request: RecordedRequest, _ store: ReplayedStore) -> String? {
    switch request {
    case .optional: "requests of this type can't be replayed"
    case .fetch(_, let view), .rows(_, let view), .relationships(_, let view):
      views[view]?.view == nil ? "the read view isn't open in the other store" : nil
    // Only a damaged file has two prepared saves of a store.
    case .prepare: saves.values.contains { $0.store === store } ? "another save is prepared in the other store" : nil
    case .commit(let save), .abort(let save): saves[save] == nil ? "the save isn't prepared in the other store" : nil
    default: nil
    }
  }

  private func view(_ line: Int) throws -> any ReadView {
    if let view = views[line]?.view { return view }
    throw StoreError(.general, operation: "read", reason: "The read view isn't open in the other store.")
  }

  private func sink(_ sent: Sent, _ store: ReplayedStore, _ plan: FetchPlan? = nil) -> ReplaySink {
    let recorded: RecordedRows? = if case .rows(let rows) = sent.answer { rows } else { nil }
    return ReplaySink(
      store.digest(plan), limit: recorded?.isPartial == true ? recorded?.count : nil, keepsRows: recorded?.rows != nil,
      resolved: store.resolved)
  }

  private func addKeys(_ demands: [KeyDemand], _ recorded: [[ObjectKey]], _ replayed: [[ObjectKey]], _ model: ManagedObjectModel) {
    for (demand, keys) in zip(demands, zip(recorded, replayed)) {
      let root = model.entities[demand.entity].rootIndex
      for (recorded, replayed) in zip(keys.0, keys.1) { names.add(root: root, recorded: recorded, replayed: replayed) }
    }
  }

  /// Keeps the versions that stores chose instead of the saved ones.
  private func addVersions(
    _ rows: [SaveTranslation.Saved], _ recorded: [RecordedVersion], _ receipt: SaveReceipt, _ model: ManagedObjectModel
  ) {
    var (ofRecorded, ofReplayed): ([RecordedObject: RowVersion], [RecordedObject: RowVersion]) = ([:], [:])
    for row in recorded {
      ofRecorded[RecordedObject(root: model.entity(at: row.entity)?.rootIndex ?? row.entity, key: row.key)] = row.version
    }
    for batch in receipt.rows {
      guard let root = batch.entity(in: model)?.rootIndex else { continue }
      for index in 0..<batch.count {
        let row = batch.pointer(index)
        ofReplayed[RecordedObject(root: root, key: names.recordedKey(row.key, root))] = row.version
      }
    }
    for row in rows {
      names.add(row.object, recorded: ofRecorded[row.object] ?? row.recorded, replayed: ofReplayed[row.object] ?? row.replayed)
    }
  }
}
