/// The previous versions of a file, under names of their own: `NAME~1` is the youngest.
struct BackupRing {
  private let folder: OpenFolder
  private let count: Int

  init(_ folder: OpenFolder, count: Int) {
    self.folder = folder
    self.count = count
  }

  /// Gives the present file the name of the youngest version, and each version the name of the one before it; the oldest goes. Only for
  /// who holds the writer's lock. Killed in between, a version may lack; the file itself is not touched.
  func keep(_ present: StoreFileStatus) throws(FileSystemError) {
    let youngest = try identity(name(1))
    // A save that failed behind this has kept it already; and of two names of one file, renaming one to the other moves none.
    if let youngest, youngest.inode == present.identity.inode, youngest.device == present.identity.device { return }
    if youngest != nil {
      for number in stride(from: count, to: 1, by: -1) where try identity(name(number - 1)) != nil {
        try folder.fileSystem.rename(name(number - 1), to: name(number), in: folder.directory)
      }
      if count == 1 { try folder.fileSystem.unlink(name(1), in: folder.directory) }
    }
    try folder.fileSystem.link(folder.name, to: name(1), in: folder.directory)
  }

  private func name(_ number: Int) -> String { "\(folder.name)~\(number)" }

  private func identity(_ name: String) throws(FileSystemError) -> FileIdentity? {
    do throws(FileSystemError) { return try folder.fileSystem.status(of: name, in: folder.directory).identity } catch {
      if error.number == ErrorNumber.notFound { return nil }
      throw error
    }
  }
}
