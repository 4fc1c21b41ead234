import Foundation
import Holdfast
import HoldfastSQLiteStore
import HoldfastStore

/// Keeps the moods of one device in sync with the remote.
///
/// It uploads every change in the history of the store after the token, except for those that were downloaded. Each step can be
/// interrupted and repeated. The token and the position in the remote's log are saved after the changes before them were processed.
final class MoodSync {
  /// The author of downloaded changes, which aren't uploaded again.
  static let downloader = "download"

  let container: PersistentContainer
  private let remote: Remote
  private var coordinator: PersistentStoreCoordinator { container.persistentStoreCoordinator }
  /// Called between the steps. It throws where a test interrupts the synchronization.
  var interruption: () throws -> Void = {}

  /// Opens the store of a device.
  init(path: String, remote: Remote) throws {
    var options = SQLiteStoreOptions()
    options.historyTracking = .always
    container = try PersistentContainer(for: Mood.self, Country.self, Continent.self, store: .sqlite(at: path, options: options))
    self.remote = remote
  }

  /// Downloads and applies the changes of other devices, then uploads those of this one.
  func synchronize() throws {
    // With a token from the start, deleted history is always noticed.
    if progress.token == nil { try save(Progress(token: coordinator.currentPersistentHistoryToken())) }
    do {
      while try download() {}
      try upload()
    } catch let error as StoreError where error.code == .stateUnavailable {
      // Transactions after the token were deleted, so any mood may have been changed, or deleted. All are uploaded, and those that are missing
      // here are downloaded again.
      try save(Progress(token: coordinator.currentPersistentHistoryToken()))
      try synchronize()
    }
  }

  // MARK: Download

  /// Applies the next changes of the remote. Returns whether there may be more.
  private func download() throws -> Bool {
    let (changes, position) = remote.changes(after: progress.position, limit: 20)
    if changes.isEmpty { return false }
    try interruption()
    let context = container.newContext()
    context.transactionAuthor = MoodSync.downloader
    let last = Dictionary(changes.map { ($0.id, $0) }, uniquingKeysWith: { $1 })
    let found = try context.fetch(Mood.self, where: { $0.remoteIdentifier.isIn(last.keys) })
    let moods = Dictionary(uniqueKeysWithValues: found.map { ($0.remoteIdentifier, $0) })
    // A mood that was changed on this device keeps its change, which the next upload sends. The history has the changes from before the moods
    // were read. Those since then are conflicts, and the policy keeps them.
    let pending = try pendingChanges(context).identifiers
    context.mergePolicy = .mergeByPropertyStoreTrump
    for (id, change) in last where !pending.contains(id) {
      switch change {
      case .saved(let record): try record.apply(to: moods[id] ?? context.insert(Mood.self))
      case .deleted: if let mood = moods[id] { context.delete(mood) }
      }
    }
    try interruption()
    try context.save()
    try interruption()
    var next = progress
    next.position = position
    try save(next)
    return true
  }

  // MARK: Upload

  private func upload() throws {
    let context = container.newContext(), pending = try pendingChanges(context)
    try interruption()
    let records = pending.moods.map(MoodRecord.init)
    // A mood that was deleted and inserted again is only saved.
    remote.delete(pending.deleted.filter { id in !records.contains { $0.id == id } })
    try interruption()
    remote.save(records)
    try interruption()
    try save(Progress(token: pending.token, position: progress.position, uploadsAll: false))
  }

  /// The changes of this device that weren't uploaded.
  private struct PendingChanges {
    var moods: [Mood] = []
    /// The identifiers of deleted moods.
    var deleted: [String] = []
    /// The position after them.
    var token: PersistentHistoryToken

    var identifiers: Set<String> { Set(moods.map(\.remoteIdentifier) + deleted) }
  }

  private func pendingChanges(_ context: ManagedObjectContext) throws -> PendingChanges {
    let history = try coordinator.fetchHistory(after: progress.token)
    let changes = history.transactions.filter { $0.author != MoodSync.downloader }.flatMap(\.changes)
      .filter { $0.changedObjectID.entityName == "Mood" }
    var pending = PendingChanges(token: history.token)
    pending.moods = try Set(changes.map(\.changedObjectID)).compactMap(context.mood)
    if progress.uploadsAll {
      let known = Set(history.changes.map(\.changedObjectID))
      pending.moods += try context.fetch(Mood.self).filter { !known.contains($0.objectID) }
    }
    pending.deleted = changes.compactMap { change in
      if case .string(let id)? = change.tombstone["remoteIdentifier"] { id } else { nil }
    }
    return pending
  }

  // MARK: Progress

  /// What has been processed, kept in the metadata of the store.
  private struct Progress: Codable {
    var token: PersistentHistoryToken?
    var position = 0
    /// Whether the next upload contains all moods, because the history after the token doesn't have all changes.
    var uploadsAll = true
  }

  private var progress: Progress {
    guard case .data(let data)? = coordinator.persistentStores.first?.metadata["sync"] else { return Progress() }
    return (try? JSONDecoder().decode(Progress.self, from: data)) ?? Progress()
  }

  private func save(_ progress: Progress) throws {
    try coordinator.persistentStores.first?.setMetadata(["sync": .data(JSONEncoder().encode(progress))])
  }
}

extension ManagedObjectContext {
  /// The mood with an ID; nil if it was deleted.
  fileprivate func mood(_ id: ManagedObjectID) throws -> Mood? {
    do { return try existingObject(with: id) as? Mood } catch let error as PersistenceError where error.code == .missingObject {
      return nil
    }
  }
}

extension ManagedObjectContext {
  /// The country or continent with a code, inserted if there is none.
  fileprivate func region<Region: GeographicRegion>(_ type: Region.Type, _ code: Int, _ name: String) throws -> Region {
    let region = try fetch(Region.self, where: { $0.code == code }).first ?? insert(Region.self)
    (region.code, region.name) = (code, name)
    return region
  }
}

extension MoodRecord {
  init(_ mood: Mood) {
    self.init(id: mood.remoteIdentifier, date: mood.date, colors: mood.colors)
    if let country = mood.country {
      place = Region(code: country.code, name: country.name)
      continent = country.continent.map { Region(code: $0.code, name: $0.name) }
    }
  }

  /// Sets all properties of a mood, also those that the record lacks.
  func apply(to mood: Mood) throws {
    let context = mood.managedObjectContext
    (mood.remoteIdentifier, mood.date, mood.colors) = (id, date, colors)
    mood.country = try place.map { try context.region(Country.self, $0.code, $0.name) }
    mood.country?.continent = try continent.map { try context.region(Continent.self, $0.code, $0.name) }
  }
}
