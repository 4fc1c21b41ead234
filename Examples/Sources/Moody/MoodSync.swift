import Foundation
import Holdfast
import HoldfastSQLiteStore

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
    while try download() {}
    try upload()
  }

  // MARK: Download

  /// Applies the next changes of the remote. Returns whether there may be more.
  private func download() throws -> Bool {
    let (changes, position) = remote.changes(after: progress.position, limit: 20)
    if changes.isEmpty { return false }
    try interruption()
    // A mood that has been changed here keeps that change, which the next upload sends.
    let pending = try pendingChanges()
    let context = container.newContext()
    context.transactionAuthor = MoodSync.downloader
    context.mergePolicy = .mergeByPropertyObjectTrump
    for change in changes where !pending.contains(change.id) {
      switch change {
      case .saved(let record): record.insert(into: context)
      case .deleted(let id): for mood in try context.fetch(Mood.self, where: { $0.remoteIdentifier == id }) { context.delete(mood) }
      }
      // Known moods, countries and continents are updated: a new object with the unique value of another becomes that object.
      try context.save()
    }
    try interruption()
    try save(Progress(token: progress.token, position: position))
    return true
  }

  // MARK: Upload

  private func upload() throws {
    let history = try coordinator.fetchHistory(after: progress.token)
    let changes = history.transactions.filter { $0.author != MoodSync.downloader }.flatMap(\.changes)
      .filter { $0.changedObjectID.entityName == "Mood" }
    let deleted = changes.compactMap { change -> String? in
      if case .string(let id)? = change.tombstone["remoteIdentifier"] { id } else { nil }
    }
    try interruption()
    let context = container.newContext(), changed = Set(changes.map(\.changedObjectID))
    let records = try changed.compactMap { id in try context.mood(id).map(MoodRecord.init) }
    // A mood that was deleted and inserted again is only saved.
    remote.delete(deleted.filter { id in !records.contains { $0.id == id } })
    try interruption()
    remote.save(records)
    try interruption()
    try save(Progress(token: history.token, position: progress.position))
  }

  /// The identifiers of moods with changes that weren't uploaded.
  private func pendingChanges() throws -> Set<String> {
    let history = try coordinator.fetchHistory(after: progress.token), context = container.newContext()
    let changes = history.transactions.filter { $0.author != MoodSync.downloader }.flatMap(\.changes)
    return try Set(
      changes.filter { $0.changedObjectID.entityName == "Mood" }.compactMap { change in
        if case .string(let id)? = change.tombstone["remoteIdentifier"] { return id }
        return try context.mood(change.changedObjectID)?.remoteIdentifier
      })
  }

  // MARK: Progress

  /// What has been processed, kept in the metadata of the store.
  private struct Progress: Codable {
    var token: PersistentHistoryToken?
    var position = 0
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

extension MoodRecord {
  init(_ mood: Mood) {
    self.init(id: mood.remoteIdentifier, date: mood.date, colors: mood.colors)
    country = mood.country.map { country in
      Place(
        code: country.code, name: country.name, continentCode: country.continent?.code ?? 0,
        continentName: country.continent?.name ?? "")
    }
  }

  /// Inserts the mood, its country and its continent. A save merges them with those that exist.
  func insert(into context: ManagedObjectContext) {
    let mood = context.insert(Mood.self)
    (mood.remoteIdentifier, mood.date, mood.colors) = (id, date, colors)
    guard let place = country else { return }
    let country = context.insert(Country.self), continent = context.insert(Continent.self)
    (country.code, country.name, country.continent) = (place.code, place.name, continent)
    (continent.code, continent.name) = (place.continentCode, place.continentName)
    mood.country = country
  }
}
