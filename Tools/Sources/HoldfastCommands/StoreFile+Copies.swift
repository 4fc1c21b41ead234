import Foundation
import Holdfast

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
      guard let copy = writable.inFile?(destination) else { return }
      try PersistentStoreCoordinator.replacePersistentStore(copy, withCopyOf: writable)
    }
  }

  /// Moves the store to another file of the same type, with its external files.
  ///
  /// - Throws: The errors of ``copy(to:)``.
  public func move(to destination: String) throws(CommandError) {
    if FileKind(destination) != nil {
      throw CommandError(path: destination, reason: "There is something at this path. Choose another one.")
    }
    try wrapping("The store can't be moved to \(destination).") {
      guard let copy = writable.inFile?(destination) else { return }
      try PersistentStoreCoordinator.movePersistentStore(writable, to: copy)
    }
  }

  /// Rebuilds the file without unused space.
  ///
  /// - Returns: The size of the file in bytes, before and after.
  /// - Throws: ``CommandError`` if the store can't be compacted.
  public func compact() throws(CommandError) -> (before: Int, after: Int) {
    let before = Self.byteCount(path)
    try wrapping("The store can't be compacted.") { try PersistentStoreCoordinator.compact(writable) }
    return (before, Self.byteCount(path))
  }

  private static func byteCount(_ path: String) -> Int {
    (try? URL(fileURLWithPath: path).resourceValues(forKeys: [.fileSizeKey]).fileSize) ?? 0
  }

  private func wrapping<Result>(_ reason: String, _ body: () throws -> Result) throws(CommandError) -> Result {
    do { return try body() } catch { throw CommandError(path: path, reason: reason, cause: error) }
  }
}
