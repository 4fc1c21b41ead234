import HoldfastFiles

/// The log of a replaced file, beside the file now at the path.
struct LeftLog {
  let path: String
  /// The path of the log's index.
  let index: String
  let node: FileNode

  /// Removes the log, unless another process has it open. Returns whether it was removed.
  func remove() -> Bool {
    OperatingSystem.withUnusedLog(path, index: index, node: node) { OperatingSystem.removeFile($0, at: path) }
  }

  /// Gives the log a name under which SQLite doesn't find it, unless another process has it open. Returns the name.
  func keep() -> String? {
    let place = ResolvedFilePath(splitting: path)
    let suffix = ".replaced-" + String(UInt64.random(in: 0...UInt64.max), radix: 16)
    var kept: String?
    // The second name is for a log whose name leaves no room for the suffix.
    _ = OperatingSystem.withUnusedLog(path, index: index, node: node) { _ in
      kept = [place.name + suffix, "wal" + suffix].first { OperatingSystem.renameFile(place, to: $0) }
      return kept != nil
    }
    return kept
  }
}
