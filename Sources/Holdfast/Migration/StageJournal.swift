import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// How far a stage is, in the metadata of the store that it changes, so that an interrupted stage continues and saves each change once.
///
/// A closure is a sequence of changes: those before its first loop (``MigrationStage/forEach(_:savingEvery:_:)``), the batches of that loop, those
/// before its second loop, and so on. Each is saved by one transaction. When the closure runs again, the same sequence is passed through,
/// and what has been saved is skipped or discarded.
///
/// A store can't save metadata and objects in one transaction. Therefore the journal is written before each save, with some objects that
/// the save will change: these show later whether it took effect.
final class StageJournal {
  private static let key = "HoldfastMigrationStage"

  /// A place in the sequence: everything before it is saved.
  struct Place: Codable, Equatable {
    /// The number of the loop, from 0. The largest number is the end of the closure.
    var loop: Int
    /// The number of its objects that are done.
    var objectCount = 0
    /// The entity that the loop passes through.
    var entity = ""

    static let beginning = Place(loop: -1)
    static let end = Place(loop: .max)
  }

  /// An object that a save changes.
  private struct Witness: Codable {
    enum Change: String, Codable { case inserted, updated, deleted }

    var entity: String
    var key: Int64
    /// The row's version before the save.
    var version: Int64
    var change: Change
  }

  private struct Entry: Codable {
    /// The stage; see ``MigrationPlan/key(_:)``.
    var stage: String
    var done: Place
    /// The place that the save reaches.
    var next: Place
    var witnesses: [Witness]
  }

  private let store: PersistentStore
  private let context: ManagedObjectContext
  private let stage: String
  /// What is saved.
  private(set) var done = Place.beginning
  /// Where the closure is.
  private var loop = -1

  /// Whether a store has the journal of a stage.
  static func isIn(_ userInfo: [String: StoreValue], of stage: String) -> Bool { entry(userInfo)?.stage == stage }

  private static func entry(_ userInfo: [String: StoreValue]) -> Entry? {
    guard case .string(let text)? = userInfo[key] else { return nil }
    return try? JSONDecoder().decode(Entry.self, from: Data(text.utf8))
  }

  /// Begins a journal, or continues that of an earlier run.
  init(_ store: PersistentStore, _ context: ManagedObjectContext, of stage: String) throws {
    (self.store, self.context, self.stage) = (store, context, stage)
    guard let entry = Self.entry(store.metadata) else {
      try write(next: done, [])
      return
    }
    done = try entry.witnesses.contains(where: isSaved) ? entry.next : entry.done
  }

  /// Begins the next loop of the closure.
  ///
  /// - Returns: The number of its objects that are done.
  func beginLoop(_ entity: String) throws -> Int {
    loop += 1
    if loop > done.loop {
      try save(reaching: Place(loop: loop, entity: entity))
      return 0
    }
    // What the closure has changed before the loop is saved already.
    context.reset()
    if loop < done.loop { return .max }
    guard done.entity == entity else { throw differentLoops }
    // A damaged file may contain any number.
    return max(done.objectCount, 0)
  }

  /// Saves after a batch of the current loop, and releases all objects.
  func save(objectCount: Int) throws { try save(reaching: Place(loop: loop, objectCount: objectCount, entity: done.entity)) }

  /// Saves after the closure.
  func saveRest() throws {
    guard done == .end || loop >= done.loop else { throw differentLoops }
    if done != .end { try save(reaching: .end) }
  }

  /// Removes the journal. Before that, a stage that is interrupted continues where it was.
  func remove() throws {
    var metadata = store.metadata
    metadata[Self.key] = nil
    try store.setMetadata(metadata)
  }

  private func save(reaching place: Place) throws {
    try context.processPendingChanges()
    if context.hasChanges {
      try write(next: place, try witnesses())
      try context.save()
      context.reset()
    }
    done = place
  }

  private func write(next: Place, _ witnesses: [Witness]) throws {
    let entry = Entry(stage: stage, done: done, next: next, witnesses: witnesses)
    // The closure may have changed other metadata.
    var metadata = store.metadata
    metadata[Self.key] = .string(String(decoding: try JSONEncoder().encode(entry), as: UTF8.self))
    try store.setMetadata(metadata)
  }

  private var differentLoops: MigrationError {
    MigrationError(
      .general,
      reason: "The closure of a resumable stage called forEach for other entities than in its interrupted run. The store is unchanged, and "
        + "the next attempt starts from the beginning.")
  }

  // MARK: Witnesses

  /// Some objects that the save changes. It changes the row of at least one of them, if it changes any row.
  private func witnesses() throws -> [Witness] {
    if let object = context.insertedObjects.first {
      try context.obtainPermanentIDs(for: [object])
      return [try witness(object, .inserted)]
    }
    if let object = context.deletedObjects.first { return [try witness(object, .deleted)] }
    let updated = context.updatedObjects
    // Setting an equal value changes no row. Changed links raise the version of at least one end.
    let changed = updated.first { object in object.committedRow.map { !object.slotsChanged(since: $0).isEmpty } ?? false }
    return try (changed.map { [$0] } ?? updated).map { try witness($0, .updated) }
  }

  private func witness(_ object: ManagedObject, _ change: Witness.Change) throws -> Witness {
    let row = change == .updated ? try object.context.throwingFaultErrors { object.committedRow ?? object.readRow } : nil
    return Witness(
      entity: object.entity.name, key: object.objectID.key.rawValue, version: row?.version.rawValue ?? 0, change: change)
  }

  private func isSaved(_ witness: Witness) throws -> Bool {
    guard let entity = context.persistentStoreCoordinator.model.entity(named: witness.entity) else { return false }
    let id = store.identity.objectID(entity: entity, key: ObjectKey(witness.key))
    let request = FetchRequest<ManagedObject>(entityName: entity.name, where: FetchPredicate(.membership(.object, [.objectID(id)])))
    let found = try context.fetch(request).first
    defer { context.reset() }
    switch witness.change {
    case .inserted: return found != nil
    case .deleted: return found == nil
    case .updated: return found.flatMap(\.committedRow).map { $0.version.rawValue > witness.version } ?? false
    }
  }
}
