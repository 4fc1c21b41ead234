import Foundation
import Holdfast
import HoldfastStore

/// What needs no model.
extension StoreFile {
  /// Copies the store to another file of the same type, with its UUID and external files.
  ///
  /// - Throws: ``CommandError`` if the destination exists, or one of the stores can't be read or written.
  public func copy(to destination: String) throws(CommandError) {
    if FileKind(destination) != nil {
      throw CommandError(path: destination, reason: "There is something at this path. Choose another one.")
    }
    try wrapping("The store can't be copied to \(destination).") {
      guard let copy = writable.inFile?(destination), let location = writable.location else { return }
      // Another process may create a store there at this moment.
      try copy.administration.perform(ReplacementRequest(source: location, expecting: .missing))
    }
  }

  /// Moves the store to another file of the same type, with its external files, and with previous versions of the file.
  ///
  /// - Throws: The errors of ``copy(to:)``.
  public func move(to destination: String) throws(CommandError) {
    if FileKind(destination) != nil {
      throw CommandError(path: destination, reason: "There is something at this path. Choose another one.")
    }
    guard let copy = writable.inFile?(destination), let location = writable.location else { return }
    // Before the copy, so that no change is missed.
    let state = StoreFileState(ofFileAt: URL(fileURLWithPath: path).resolvingSymlinksInPath().path)
    try wrapping("The store can't be moved to \(destination).") {
      // Another process may create a store there at this moment, which movePersistentStore would replace.
      try copy.administration.perform(ReplacementRequest(source: location, expecting: .missing))
    }
    // An error can come after the file was removed. The copy is the only store then.
    let advice = "If \(path) still exists, delete the copy, and move the store again. Otherwise, keep the copy."
    try wrapping("The store was copied to \(destination), but couldn't be removed completely. \(advice)") {
      try writable.administration.perform(DestructionRequest(movingBackupsTo: copy.location, expecting: state))
    }
    try? PersistentStoreCoordinator.discardInterruptedMigration(of: writable)
  }

  /// Whether the file has no unused space, because every save of a JSON, XML or binary store writes the entire file.
  ///
  /// - Throws: ``CommandError`` if the file isn't a store.
  public func isAlwaysCompact() throws(CommandError) -> Bool {
    if isSQLite { return false }
    _ = try metadata()
    return true
  }

  /// Rebuilds the file without unused space. Does nothing if it has none.
  ///
  /// - Parameter backup: Where the store is copied before it is rebuilt. Defaults to no copy.
  /// - Returns: The size of the file with its log in bytes, before and after.
  /// - Throws: ``CommandError`` if the store can't be compacted.
  public func compact(backup: String? = nil) throws(CommandError) -> (before: Int, after: Int) {
    let before = Self.byteCount(path)
    if try isAlwaysCompact() { return (before, before) }
    try keeping(backup) { () throws(CommandError) in
      try wrapping("The store can't be compacted.") { try PersistentStoreCoordinator.compact(writable) }
    }
    return (before, Self.byteCount(path))
  }

  /// Changes the store after copying it.
  ///
  /// - Parameters:
  ///   - backup: Where the store is copied; nil for no copy.
  ///   - change: The change.
  /// - Throws: ``CommandError`` if the store can't be copied, or that of the change, with the path of the copy.
  func keeping<Result>(_ backup: String?, _ change: () throws(CommandError) -> Result) throws(CommandError) -> Result {
    guard let backup else { return try change() }
    try copy(to: backup)
    do throws(CommandError) { return try change() } catch {
      throw CommandError(path: error.path, reason: "\(error.reason) A copy of the store is \(backup).", cause: error.cause)
    }
  }

  /// The size of a file with the log of a SQLite store, which contains the latest saves until they are moved to the file.
  private static func byteCount(_ path: String) -> Int {
    let file = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
    return [file, file + "-wal"].reduce(0) { sum, path in
      sum + ((try? URL(fileURLWithPath: path).resourceValues(forKeys: [.fileSizeKey]).fileSize) ?? 0)
    }
  }

  private func wrapping<Result>(_ reason: String, _ body: () throws -> Result) throws(CommandError) -> Result {
    do { return try body() } catch { throw CommandError(path: path, reason: reason, cause: error) }
  }
}
