import HoldfastFiles
import HoldfastStore
import Synchronization

/// The state of an open store. Immutable except for the connections.
final class OpenStore: Sendable {
  /// The store that opened it.
  let owner: ObjectIdentifier
  let model: ManagedObjectModel
  let schema: StoreSchema
  let identity: StoreIdentity
  let database: SQLiteDatabase
  /// The decoders of rows by entity index.
  let decoders: [RowDecoder]
  /// The columns for reading rows of an entity together with its subentities, by entity index; nil for an entity without subentities. Empty
  /// if no entity has subentities.
  private let families: [FamilyColumns?]
  /// The prefix of the IDs of each entity's objects, by entity index.
  let prefixes: [ManagedObjectID]
  let path: String
  /// The files of external values; nil for a model without external storage.
  let files: ExternalFiles?
  /// Whether and how the file keeps a history.
  let history: HistoryState
  /// The maximum number of changes in the history that the file's metadata contain.
  private let recordedMaximum: Mutex<RecordedMaximum>
  /// Reports saves of other processes; nil unless the options want that.
  let others = Mutex<OtherProcesses?>(nil)
  /// The snapshots in use.
  let views = LiveViews()
  /// The number of statements run.
  let statementCount = Atomic<Int>(0)
  /// Whether anything was saved.
  let hasSaved = Atomic<Bool>(false)
  /// Protects the writer. True between preparing a save and ending it.
  private let saving = Mutex(false)

  /// - Parameters:
  ///   - owner: The store that opens the file.
  ///   - hasHistory: Whether the file has a history.
  ///   - recordedMaximum: The maximum number of changes in the history that the metadata contain.
  init(
    owner: ObjectIdentifier, schema: StoreSchema, identity: StoreIdentity, database: SQLiteDatabase, hasHistory: Bool,
    recordedMaximum: RecordedMaximum
  ) {
    self.owner = owner
    self.model = schema.model
    self.schema = schema
    self.identity = identity
    self.database = database
    prefixes = schema.model.entities.map { identity.prefix(for: $0) }
    path = database.file.path
    history = HistoryState(schema, isAbsent: !hasHistory && database.options.historyTracking != .always)
    self.recordedMaximum = Mutex(recordedMaximum)
    files = ExternalFiles(schema.model, path: database.file.path, identity: identity, options: database.options)
    decoders = schema.model.entities.map { RowDecoder(entity: $0, table: schema.tables[$0.index], path: database.file.path) }
    let inherits = schema.model.entities.contains { $0.familyIndexes.count > 1 }
    families = inherits ? schema.model.entities.map { $0.familyIndexes.count > 1 ? FamilyColumns($0, schema) : nil } : []
  }

  /// The columns for reading rows of an entity together with its subentities; nil for an entity without subentities.
  func family(_ entity: EntityIndex) -> FamilyColumns? { families.isEmpty ? nil : families[entity] }

  /// Adds the statements that the body runs to the count.
  @inline(__always)
  func counting<R>(_ connection: SQLiteConnection, isLimited: Bool = true, _ body: () throws -> R) rethrows -> R {
    let before = connection.statementsRun
    defer { statementCount.add(connection.statementsRun - before, ordering: .relaxed) }
    return try connection.state.watch.limiting(toSeconds: isLimited ? database.options.requestTimeout.map { $0 / .seconds(1) } : nil, body)
  }

  /// The maximum number of changes in the history; nil for no maximum. A save calls it in its transaction, which has read the metadata if
  /// another process has changed them.
  ///
  /// A program that only continues a history keeps the maximum of the one that wants it. A history of Core Data has none.
  var maximumHistoryChangeCount: Int? {
    if database.options.historyTracking == .always { return database.options.maximumHistoryChangeCount }
    guard let metadata = database.files?.metadata else { return nil }
    return recordedMaximum.withLock { recorded in
      // Usually it is the same array.
      if recorded.metadata != metadata { recorded = RecordedMaximum(identity.storeUUID, metadata) }
      return recorded.count
    }
  }

  // MARK: Reading

  /// Runs a closure with a connection that reads the latest commit.
  ///
  /// - Parameter needsTransaction: Whether the closure runs several statements that must read the same state. Defaults to false.
  func reading<R>(
    _ operation: String, needsTransaction: Bool = false, _ options: RequestOptions, _ body: (SQLiteConnection) throws -> R
  ) throws -> R {
    let view = try SQLiteReadView(.latest, of: self, options)
    defer { view.end() }
    return try view.read(operation, needsTransaction: needsTransaction, options, body)
  }

  // MARK: Writing

  /// Runs work on the writer while no save is prepared. The deadline limits only the wait for the write lock, because the work commits.
  func writing<R: Sendable>(_ operation: String, _ options: RequestOptions = .none, _ body: (SQLiteConnection) throws -> R) throws -> R {
    try saving.withLock { isPrepared in
      if isPrepared { throw prepared(operation) }
      return try work(operation, options, isLimited: false) { writer in try waiting(writer, options) { try body(writer) } }
    }
  }

  /// Runs work on the writer as the first half of a save. The transaction stays open.
  func preparing<R: Sendable>(_ operation: String, _ options: RequestOptions, _ body: (SQLiteConnection) throws -> R) throws -> R {
    try saving.withLock { isPrepared in
      if isPrepared { throw prepared(operation) }
      let result = try work(operation, options) { writer in
        try writer.state.watch.obeying(options) { try waiting(writer, options) { try body(writer) } }
      }
      isPrepared = true
      return result
    }
  }

  /// Runs the second half of a save.
  func finishing(_ operation: String, _ body: (SQLiteConnection) throws -> Void) throws {
    try saving.withLock { isPrepared in
      isPrepared = false
      // A commit that has taken effect must not fail with a timeout.
      try work(operation, isLimited: false, body)
    }
  }

  /// Runs work that waits for other processes at most until the deadline.
  private func waiting<R>(_ writer: SQLiteConnection, _ options: RequestOptions, _ body: () throws -> R) throws -> R {
    guard let deadline = options.deadline else { return try body() }
    try options.check(writer.operation)
    let left: Duration = max(.zero, deadline - .now)
    return try writer.withBusyTimeout(min(left, database.options.busyTimeout)) {
      do { return try body() } catch let error as StoreError where error.code == .locked {
        try options.check(writer.operation)
        throw error
      }
    }
  }

  private func prepared(_ operation: String) -> StoreError {
    StoreError(.locked, operation: operation, path: path, reason: "Another save is prepared. Commit or abort it first.", isRetryable: true)
  }

  /// Runs work on the writer. If it throws, rolls back the transaction, and closes a writer that is unusable.
  private func work<R>(
    _ operation: String, _ options: RequestOptions = .none, isLimited: Bool = true, _ body: (SQLiteConnection) throws -> R
  ) throws -> R {
    let writer = try database.writer(to: operation, options)
    do {
      return try counting(writer, isLimited: isLimited) { try body(writer) }
    } catch {
      writer.rollback()
      if writer.isBroken || writer.isInTransaction { database.discardWriter() }
      throw error
    }
  }

  /// Ends all views and closes all connections.
  func close() {
    others.withLock { others in
      others?.end()
      others = nil
    }
    views.endAll()
    // Update the stored model only here, because only the next opening needs it. If that fails, the next closing does it.
    if hasSaved.load(ordering: .relaxed) { try? MetadataChange(store: self).refreshModel() }
    saving.withLock { isPrepared in
      isPrepared = false
      database.close()
    }
    files?.folder.close()
  }

  // MARK: Names

  /// An entity whose objects the file has, or can have.
  func entity(_ index: EntityIndex) throws -> ManagedObjectModel.Entity {
    let entity = try modelEntity(index)
    if !schema.missingEntities.contains(index) { return entity }
    throw StoreError(
      .unsupportedRequest, operation: "execute a request", path: path,
      reason: "The file has no place for objects of \(entity.name), because it was created for a configuration without this entity.")
  }

  /// An entity of the model, which the file may lack.
  func modelEntity(_ index: EntityIndex) throws -> ManagedObjectModel.Entity {
    guard model.entityIndexes.contains(index) else {
      throw StoreError(
        .unsupportedRequest, operation: "execute a request", path: path, reason: "The model has no entity number \(index).")
    }
    return model.entities[index]
  }

  func builder(_ entity: ManagedObjectModel.Entity) -> RowBatchBuilder {
    RowBatchBuilder(layout: entity.layout, idPrefix: prefixes[entity.index])
  }

  /// Calls a closure with an empty builder of a connection, which later requests use again. The closure seals all rows, or throws.
  @inline(__always)
  func withBuilder<R>(_ entity: ManagedObjectModel.Entity, of connection: SQLiteConnection, _ body: (RowBatchBuilder) throws -> R) rethrows
    -> R
  {
    let place = entity.index.rawValue
    if connection.builders.isEmpty { connection.builders = Array(repeating: nil, count: model.entities.count) }
    // Nil meanwhile, so that a builder with the rows of a failed request isn't used again.
    let builder = connection.builders[place].take() ?? self.builder(entity)
    let result = try body(builder)
    connection.builders[place] = builder
    return result
  }

  /// The columns of complete rows, in slot order.
  func columns(_ entity: EntityIndex, alias: String) -> String {
    var columns = "\(alias).Z_PK, \(alias).Z_OPT"
    for column in schema.tables[entity].columns { columns += ", \(alias).\(SQLName.quoted(column))" }
    return columns
  }

  /// The quoted name of an entity's table.
  func table(_ entity: EntityIndex) -> String { SQLName.quoted(schema.tables[entity].name) }

  /// The quoted name of a slot's column.
  func column(_ entity: EntityIndex, _ slot: SlotIndex) -> String { SQLName.quoted(schema.tables[entity].columns[slot]) }

  /// A condition on the entities of rows in a table, beginning with AND; empty if it allows all rows.
  ///
  /// Without statistics, SQLite expects ten rows of each entity, so it would use the index of `Z_ENT` instead of that of a range or a list
  /// of values, and read all rows of the entity. The condition therefore has a probability. It is below SQLite's for a comparison with one
  /// bound (1/4), and above that for a range (1/64).
  ///
  /// The list is written as in the conditions of indexes. Otherwise, SQLite doesn't recognize that an index contains all of the rows.
  func ofEntities(_ entities: [EntityIndex], alias: String) -> String {
    guard let first = entities.first, schema.tables[first].isShared else { return "" }
    if entities == model.entities[model.entities[first].rootIndex].concreteIndexes { return "" }
    let numbers = entities.map { String(schema.tables[$0].number) }
    return " AND likelihood(\(alias).Z_ENT IN (\(numbers.joined(separator: ", "))), 0.03)"
  }
}
