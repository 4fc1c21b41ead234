import Holdfast
import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Sends the requests of a recording to other stores.
///
/// A request is sent when its end is read, because the replay needs to know how it ended: how many rows the sink took, or whether a commit
/// took effect.
final class Replay {
  private let description: StoreDescription
  private let limit: Int
  let showsValues: Bool
  var result: ReplayReport
  let names = ReplayedNames()
  /// The open stores, by the number of the recorded store.
  var stores: [Int: ReplayedStore] = [:]
  /// The requests whose ends weren't read yet, by line.
  private var running: [Int: (request: RecordedRequest, store: Int)] = [:]
  var views: [Int: ReplayedView] = [:]
  var saves: [Int: ReplayedSave] = [:]
  private var times: [String: (recorded: [Double], replayed: [Double])] = [:]
  /// The number of commits that have begun, and of those that haven't ended.
  var commits = (begun: 0, running: 0)

  init(_ description: StoreDescription, limit: Int, showsValues: Bool) {
    (self.description, self.limit, self.showsValues) = (description, limit, showsValues)
    result = ReplayReport(replayedType: description.type)
  }

  /// The report on the requests so far.
  var report: ReplayReport {
    var report = result
    report.costs = times.sorted { $0.key < $1.key }.map { kind, times in
      ReplayReport.Costs(
        kind: kind, requestCount: times.recorded.count, recorded: ReplayReport.Times(times.recorded),
        replayed: ReplayReport.Times(times.replayed))
    }
    return report
  }

  /// Performs the last line that a reader has read.
  ///
  /// - Throws: ``StoreError`` if the line isn't valid, or the other store can't be opened.
  func perform(_ line: RecordingLine, _ reader: RecordingReader) throws {
    switch line {
    case .begin(.endRead(let view), _): views.removeValue(forKey: view)?.view?.end()
    case .begin(let request, let store):
      switch request {
      case .beginRead: views[reader.number] = ReplayedView(commits)
      case .commit: commits = (commits.begun + 1, commits.running + 1)
      default: break
      }
      running[reader.number] = (request, store)
    case .end(let line, let answer, let seconds):
      guard let (request, store) = running.removeValue(forKey: line) else {
        throw reader.damaged("The line ends a request that isn't running.")
      }
      defer { if case .commit = request { commits.running -= 1 } }
      if case .open(let opening) = request { return try open(opening, store, answer, seconds, reader) }
      guard let store = stores[store] else {
        // Closing a closed store does nothing.
        if case .close = request { return }
        return omit(request, "the store wasn't open")
      }
      try send(Sent(request: request, line: line, answer: answer, seconds: seconds), to: store, reader)
    }
  }

  /// Sends the requests without an end, such as the one that crashed the recorded program, and closes the stores.
  func finish() throws {
    for (line, (request, store)) in running.sorted(by: { $0.key < $1.key }) {
      omit(request, "the recording doesn't contain its end")
      guard let store = stores[store], store.fits(request), obstacle(request, store) == nil,
        let (translated, saved) = try? store.translated(request)
      else { continue }
      // Without the recorded answer, a damaged file could demand any number of keys.
      if case .reserveKeys = request { continue }
      var own = Duration.zero
      _ = try? answer(Sent(request: translated, line: line, answer: .done, seconds: nil, saved: saved), store, own: &own)
    }
    running = [:]
    for save in saves.values { save.prepared.abort() }
    saves = [:]
    for store in stores.values { try store.coordinator.close() }
    stores = [:]
  }

  // MARK: Opening

  private func open(_ opening: RecordedOpening, _ number: Int, _ answer: RecordedAnswer, _ seconds: Double?, _ reader: RecordingReader)
    throws
  {
    let request = RecordedRequest.open(opening), model = opening.model.model
    if case .failed(let failure) = answer { return omit(request, "failed with \(failure.code.rawValue)") }
    guard opening.format == RecordedOpening.currentFormat else {
      throw StoreError(
        .newerFormat, operation: "replay the recording",
        reason: "Its format is \(opening.format), and this version reads format \(RecordedOpening.currentFormat) only. Use a newer version."
      )
    }
    guard opening.versionHashes == RecordedOpening.versionHashes(model) else {
      throw reader.damaged("The version hashes don't belong to the model.")
    }
    guard stores.isEmpty else {
      throw StoreError(
        .unsupportedRequest, operation: "replay the recording",
        reason: "It contains several stores that were open at the same time. Record each store with its own recorder.")
    }
    // Without it, a process that didn't record can't decode IDs with large keys, which it takes for those of text identifiers.
    _ = StoreIdentity.intern(storeUUID: RecordedIDs.storeUUID, model: model)
    result.recordedType = opening.type
    names.areComplete = opening.includesContents
    let (opened, time) = timed { Result { try PersistentStoreCoordinator(model: model, store: description) } }
    do { stores[number] = ReplayedStore(try opened.get(), opening, names) } catch {
      throw (error as? StoreError)
        ?? StoreError(
          .general, operation: "open the other store", reason: "It failed with an unknown error.", cause: error.withoutCodedValues)
    }
    result.requestCount += 1
    count(request, seconds, time)
  }

  // MARK: The report

  func differ(_ sent: Sent, _ store: ReplayedStore, _ expected: String, _ actual: String, isUncertain: Bool) {
    if isUncertain { return result.uncertainCount += 1 }
    result.differenceCount += 1
    guard result.differences.count < limit else { return }
    result.differences.append(
      ReplayReport.Difference(line: sent.line, request: sent.request.description(store.model), expected: expected, actual: actual))
  }

  func omit(_ request: RecordedRequest, _ reason: String) { result.omitted["\(request.kind): \(reason)", default: 0] += 1 }

  func count(_ request: RecordedRequest, _ recorded: Double?, _ replayed: Double) {
    guard let recorded else { return }
    // A damaged file may contain any number.
    times[request.kind, default: ([], [])].recorded.append((0...1e9).contains(recorded) ? recorded : 0)
    times[request.kind, default: ([], [])].replayed.append(replayed)
  }

  func code(_ error: any Error) -> String { (error as? StoreError)?.code.rawValue ?? "general" }

  func timed<Value>(_ body: () -> Value) -> (Value, seconds: Double) {
    let start = ContinuousClock.now, value = body()
    return (value, (.now - start) / .seconds(1))
  }
}

/// A prepared save of a replayed store.
struct ReplayedSave {
  let prepared: any PreparedSave
  let rows: [SaveTranslation.Saved]
  let store: ReplayedStore
}

/// A view of a replayed store.
struct ReplayedView {
  /// The numbers of commits when the recorded view began.
  let began: (begun: Int, running: Int)
  /// The view in the other store; nil until the end of the recorded request is read.
  var view: (any ReadView)?
  /// Whether the view in the other store is of the kind ``/HoldfastStore/ReadViewKind/consistent``.
  var isConsistent = false
  /// Whether a commit ran while the snapshot began; nil if the view isn't a snapshot.
  var isUncertainSnapshot: Bool?

  init(_ commits: (begun: Int, running: Int)) { began = commits }

  /// Marks the view as a snapshot that has begun.
  mutating func settle(_ commits: (begun: Int, running: Int)) { isUncertainSnapshot = isUncertain(commits) }

  /// Whether it's unknown which commits a request that ends now has read.
  func isUncertain(_ commits: (begun: Int, running: Int)) -> Bool {
    isUncertainSnapshot ?? (began.running > 0 || began.begun != commits.begun)
  }
}
