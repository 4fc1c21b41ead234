import Foundation
import Holdfast
import HoldfastSQLiteStore
import HoldfastStore

/// Keeps the moods, countries and continents of one device in sync with the remote.
///
/// It uploads every change in the history of the store after the token, except for those that were downloaded. Each step can be
/// interrupted and repeated. The token and the position in the remote's log are saved after the changes before them were processed.
final class MoodSync {
  /// The author of downloaded changes, which aren't uploaded again.
  static let downloader = "download"

  let container: PersistentContainer
  private let connection: Connection
  private var coordinator: PersistentStoreCoordinator { container.persistentStoreCoordinator }
  /// The number of answers to earlier requests during this synchronization.
  private var lateAnswers = 0
  /// Called between the steps. It throws where a test interrupts the synchronization.
  var interruption: () throws -> Void = {}

  /// Opens the store of a device.
  convenience init(path: String, connection: Connection) throws { try self.init(MoodSync.store(at: path), connection: connection) }

  /// Opens a store that keeps a history.
  init(_ store: StoreDescription, connection: Connection) throws {
    container = try PersistentContainer(for: Mood.self, Country.self, Continent.self, store: store)
    self.connection = connection
  }

  /// A store in a file, which keeps a history.
  static func store(at path: String) -> StoreDescription {
    var options = SQLiteStoreOptions()
    options.historyTracking = .always
    return .sqlite(at: path, options: options)
  }

  /// Downloads and applies the changes of other devices, then uploads those of this one.
  ///
  /// - Throws: ``NetworkError`` without an answer of the remote, and the errors of the store. Call it again later: it repeats what isn't
  ///   certain to be done.
  func synchronize() throws {
    lateAnswers = 0
    // With a token from the start, deleted history is always noticed.
    if progress.token == nil { try beginAgain(with: nil) }
    do {
      while try download() {}
      try upload()
    } catch let error as StoreError where error.code == .stateUnavailable {
      // Transactions after the token were deleted, so any object may have been changed, or deleted.
      try beginAgain(with: progress.remote)
      try synchronize()
    }
  }

  /// Makes the next synchronization upload all objects, and read the remote's log from the start: what is missing here is downloaded again.
  private func beginAgain(with remote: UUID?) throws {
    try save(Progress(token: coordinator.currentPersistentHistoryToken(), remote: remote, uploadCount: progress.uploadCount))
  }

  // MARK: Download

  /// Applies the next changes of the remote. Returns whether there may be more.
  private func download() throws -> Bool {
    let batch = try connection.changes(after: progress.position, limit: 20)
    if batch.remote != progress.remote {
      try beginAgain(with: batch.remote)
      return true
    }
    // The answer to an earlier request. Its changes were applied, and others after them.
    if batch.start != progress.position {
      lateAnswers += 1
      if lateAnswers == 10 { throw NetworkError.noAnswer }
      return true
    }
    if batch.changes.isEmpty { return false }
    try interruption()
    let context = container.newContext()
    context.transactionAuthor = MoodSync.downloader
    // An object that was changed on this device keeps its change, which the next upload sends. The context reads a state from before the
    // history is read. So the history has all changes in that state. Later ones are conflicts, and the policy keeps them.
    try context.setQueryGeneration(from: .current)
    let pending = try pendingChanges(container.newContext()).identifiers
    context.mergePolicy = .mergeByPropertyStoreTrump
    try interruption()
    let last = Dictionary(batch.changes.map { ($0.id, $0) }, uniquingKeysWith: { $1 })
    for change in batch.changes where last[change.id] == change && !pending.contains(change.id) { try context.apply(change) }
    try interruption()
    try context.save()
    try interruption()
    var next = progress
    next.position = batch.end
    try save(next)
    return true
  }

  // MARK: Upload

  private func upload() throws {
    let context = container.newContext(), pending = try pendingChanges(context)
    try interruption()
    if !pending.identifiers.isEmpty {
      // Counted before it is sent, so that no two uploads have the same number.
      var next = progress
      next.uploadCount += 1
      try save(next)
      try interruption()
      let device = coordinator.persistentStores.first?.identifier ?? ""
      try connection.send(Upload(device: device, number: next.uploadCount, saved: pending.records, deleted: pending.deleted))
    }
    try interruption()
    var next = progress
    (next.token, next.uploadsAll) = (pending.token, false)
    try save(next)
  }

  /// The changes of this device whose upload wasn't confirmed.
  private struct PendingChanges {
    /// Sorted, so that each record comes after those that it references.
    var records: [Record] = []
    /// The identifiers of deleted moods.
    var deleted: [String] = []
    /// The position after them.
    var token: PersistentHistoryToken

    var identifiers: Set<String> { Set(records.map(\.id) + deleted) }
  }

  private func pendingChanges(_ context: ManagedObjectContext) throws -> PendingChanges {
    let history = try coordinator.fetchHistory(after: progress.token)
    let changes = history.transactions.filter { $0.author != MoodSync.downloader }.flatMap(\.changes)
    var pending = PendingChanges(token: history.token), changed = Set(changes.map(\.changedObjectID))
    if progress.uploadsAll {
      // What was downloaded since the token has no changes of this device.
      changed.formUnion(try context.allObjectIDs().subtracting(history.changes.map(\.changedObjectID)))
    }
    // A property that can't be read has a placeholder. If the upload contained it, all devices would get it.
    pending.records = try context.reading { try changed.compactMap(context.record) }.sorted { ($0.rank, $0.id) < ($1.rank, $1.id) }
    let saved = Set(pending.records.map(\.id))
    pending.deleted = changes.compactMap { change in
      // A mood that was deleted and inserted again is only saved.
      if case .string(let id)? = change.tombstone["remoteIdentifier"], !saved.contains(id) { id } else { nil }
    }
    return pending
  }

  // MARK: Progress

  /// What has been processed, kept in the metadata of the store.
  private struct Progress: Codable {
    var token: PersistentHistoryToken?
    /// The remote whose log was read; nil before the first download.
    var remote: UUID?
    /// The position in its log.
    var position = 0
    /// Whether the next upload contains all objects, because the history after the token doesn't have all changes.
    var uploadsAll = true
    /// The number of uploads, also of those that failed.
    var uploadCount = 0
  }

  private var progress: Progress {
    guard case .data(let data)? = coordinator.persistentStores.first?.metadata["sync"] else { return Progress() }
    return (try? JSONDecoder().decode(Progress.self, from: data)) ?? Progress()
  }

  private func save(_ progress: Progress) throws {
    try coordinator.persistentStores.first?.setMetadata(["sync": .data(JSONEncoder().encode(progress))])
  }
}
