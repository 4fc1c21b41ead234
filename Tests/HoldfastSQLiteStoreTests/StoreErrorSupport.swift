import HoldfastStore

@testable import HoldfastSQLiteStore

/// The store error that `body` throws; nil if it throws none.
func storeError<R>(_ body: () throws(StoreError) -> R) -> StoreError? {
  do throws(StoreError) {
    _ = try body()
    return nil
  } catch {
    return error
  }
}

extension SQLiteDatabase {
  /// A database whose writer is open, so the file has been checked.
  static func opened(path: String, options: SQLiteStoreOptions) throws(StoreError) -> SQLiteDatabase {
    let database = try SQLiteDatabase(path: path, options: options)
    do throws(StoreError) {
      _ = try database.openedWriter()
      return database
    } catch {
      database.close(checkpointing: false)
      throw error
    }
  }

  /// The writer. Opening it must succeed.
  var writer: SQLiteConnection {
    do { return try openedWriter() } catch { fatalError("\(error)") }
  }

  /// The object that checkpoints the writer's log.
  var checkpoint: WriterCheckpoint {
    _ = writer
    guard let openWriter else { fatalError("no writer") }
    return openWriter.checkpoint
  }

  /// Converts the file to the journal mode of the options.
  func prepareForWriting() throws(StoreError) { _ = try writer(to: "prepare for writing") }

  /// A database in the folder with a table of numbers and texts, ready for writing.
  static func make(_ path: String, _ options: SQLiteStoreOptions = SQLiteStoreOptions()) throws(StoreError) -> SQLiteDatabase {
    let database = try SQLiteDatabase.opened(path: path, options: options)
    try database.prepareForWriting()
    try database.writer.runScript("CREATE TABLE IF NOT EXISTS item (id INTEGER PRIMARY KEY, name VARCHAR, weight FLOAT, photo BLOB)")
    return database
  }

  /// Saves one row of the given size in a transaction of its own.
  func insert(bytes: Int = 10) throws(StoreError) {
    try writer.begin(.immediate)
    try writer.run("INSERT INTO item (photo) VALUES (zeroblob(\(bytes)))")
    try writer.commit()
  }

  func count() throws(StoreError) -> Int64? { try writer.int64("SELECT count(*) FROM item") }
}
