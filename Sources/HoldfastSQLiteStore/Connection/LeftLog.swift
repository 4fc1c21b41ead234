/// The log of a replaced file, beside the file now at the path.
struct LeftLog {
  let path: String
  /// The path of the log's index.
  let index: String
  let identity: FileIdentity

  /// Removes the log, unless another process has it open. Returns whether it was removed.
  func remove() -> Bool {
    OperatingSystem.withUnusedLog(path, index: index, identity: identity) { OperatingSystem.removeFile($0, at: path) }
  }

  /// Gives the log a name under which SQLite doesn't find it, unless another process has it open. Returns the name.
  func keep() -> String? {
    let (folder, name) = SQLiteFile.split(path)
    let suffix = ".replaced-" + String(UInt64.random(in: 0...UInt64.max), radix: 16)
    var kept: String?
    // The second name is for a log whose name leaves no room for the suffix.
    _ = OperatingSystem.withUnusedLog(path, index: index, identity: identity) { _ in
      kept = [name + suffix, "wal" + suffix].first { OperatingSystem.renameFile(path, to: folder + "/" + $0, folder: folder) }
      return kept != nil
    }
    return kept
  }
}
