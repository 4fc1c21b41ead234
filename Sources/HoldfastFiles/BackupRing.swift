/// The previous versions of a file. `NAME~1` is the most recent one.
struct BackupRing {
  private let folder: OpenFolder
  private let count: Int

  init(_ folder: OpenFolder, count: Int) {
    self.folder = folder
    self.count = count
  }

  /// Links the current file as the most recent version, and renames each version to the next older name. Removes the oldest
  /// version.
  ///
  /// The caller must hold the writer lock. If the process is killed in between, a version may be missing; the file itself isn't
  /// changed.
  func keep(_ present: StoreFileStatus) throws(FileSystemError) {
    let youngest = try node(name(1))
    // An earlier save that failed after this step already kept the file. Renaming one of two hard links to the other would have no
    // effect.
    if youngest == present.identity.node { return }
    if youngest != nil {
      for number in stride(from: count, to: 1, by: -1) where try node(name(number - 1)) != nil {
        try folder.fileSystem.rename(name(number - 1), to: name(number), in: folder.directory)
      }
      if count == 1 { try folder.fileSystem.unlink(name(1), in: folder.directory) }
    }
    try folder.fileSystem.link(folder.name, to: name(1), in: folder.directory)
  }

  /// Removes all versions, even if there are more than the current maximum.
  func removeAll() throws(FileSystemError) {
    var number = 1
    while try node(name(number)) != nil {
      try folder.fileSystem.unlink(name(number), in: folder.directory)
      number += 1
    }
  }

  private func name(_ number: Int) -> String { "\(folder.name)~\(number)" }

  private func node(_ name: String) throws(FileSystemError) -> FileNode? {
    do throws(FileSystemError) { return try folder.fileSystem.status(of: name, in: folder.directory).identity.node } catch {
      if error.number == ErrorNumber.notFound { return nil }
      throw error
    }
  }
}
