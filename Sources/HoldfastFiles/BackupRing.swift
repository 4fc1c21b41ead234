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
  /// Where hard links can't be created, copies the file: for apps on Android, which the system forbids them, and on some file systems.
  ///
  /// The caller must hold the writer lock. If the process is killed in between, a version may be missing; the file itself isn't
  /// changed.
  func keep(_ present: StoreFileStatus) throws(FileSystemError) {
    let youngest = try status(name(1))
    // An earlier save that failed after this step already kept the file. Renaming one of two hard links to the other would have no
    // effect.
    if youngest?.identity.node == present.identity.node { return }
    if let youngest {
      if isCopy(youngest, of: present) { return }
      for number in stride(from: count, to: 1, by: -1) where try node(name(number - 1)) != nil {
        try folder.fileSystem.rename(name(number - 1), to: name(number), in: folder.directory)
      }
      if count == 1 { try folder.fileSystem.unlink(name(1), in: folder.directory) }
    }
    do throws(FileSystemError) {
      try folder.fileSystem.link(folder.name, to: name(1), in: folder.directory)
    } catch {
      guard ErrorNumber.cannotBeDone.contains(error.number) else { throw error }
      try copy(folder.name, to: name(1), in: folder)
    }
  }

  /// Whether the most recent version is a copy of the file, which an earlier save kept before it failed.
  ///
  /// A copy is newer than its original. Where versions are hard links, they are older than the file, and none is read.
  private func isCopy(_ youngest: StoreFileStatus, of present: StoreFileStatus) -> Bool {
    guard youngest.identity.modified > present.identity.modified else { return false }
    return (try? isEqual(name(1), to: folder.name, in: folder)) == true
  }

  /// Removes all versions, even if there are more than the current maximum. If that is interrupted, it can be repeated.
  func removeAll() throws(FileSystemError) {
    // The oldest first, so that the others keep consecutive numbers.
    for number in try allNumbers().reversed() { try folder.fileSystem.unlink(name(number), in: folder.directory) }
  }

  /// Moves all versions to the next numbers after those of another file. If that is interrupted, it can be repeated.
  ///
  /// The caller must hold the writer locks of both files.
  func moveAll(behind other: BackupRing) throws(FileSystemError) {
    let numbers = try allNumbers(), present = try other.numbers().count
    // An interrupted attempt may have copied the last one and not removed it. Then the other's numbers have no gap any more.
    if let last = numbers.first, numbers.count == 1 {
      for number in try other.numbers() where try isEqual(name(last), to: other.name(number), in: other.folder) {
        return try folder.fileSystem.unlink(name(last), in: folder.directory)
      }
    }
    // The oldest first, so that the others keep their places, and get the same numbers the next time.
    for (place, number) in numbers.enumerated().reversed() {
      try copy(name(number), to: other.name(present + place + 1), in: other.folder)
      try folder.fileSystem.unlink(name(number), in: folder.directory)
    }
  }

  /// Whether a file of the folder has the same contents as one of another folder.
  private func isEqual(_ name: String, to otherName: String, in other: OpenFolder) throws(FileSystemError) -> Bool {
    let fileSystem = folder.fileSystem, otherSystem = other.fileSystem
    let version = KeptFile(try fileSystem.openForReading(name, in: folder.directory), of: fileSystem)
    let second = KeptFile(try otherSystem.openForReading(otherName, in: other.directory), of: otherSystem)
    let size = try fileSystem.status(of: version.handle).identity.size
    guard try otherSystem.status(of: second.handle).identity.size == size else { return false }
    var offset: Int64 = 0
    while offset < size {
      let count = Int(min(Int64(WriteBuffer.capacity), size - offset))
      let bytes = try fileSystem.bytes(of: version.handle, at: offset, count: count)
      let others = try otherSystem.bytes(of: second.handle, at: offset, count: count)
      if bytes.isEmpty || bytes != others { return false }
      offset += Int64(bytes.count)
    }
    return true
  }

  /// Copies a file of the folder to a folder, durably.
  private func copy(_ name: String, to newName: String, in other: OpenFolder) throws(FileSystemError) {
    let fileSystem = folder.fileSystem
    let version = KeptFile(try fileSystem.openForReading(name, in: folder.directory), of: fileSystem)
    let status = try fileSystem.status(of: version.handle)
    var copy = try TemporaryFile(in: other)
    do throws(FileSystemError) {
      try copy.prepare(other, like: status, permissions: status.permissions, byteCount: status.identity.size)
      var offset: Int64 = 0
      while offset < status.identity.size {
        let bytes = try fileSystem.bytes(
          of: version.handle, at: offset, count: Int(min(Int64(WriteBuffer.capacity), status.identity.size - offset)))
        if bytes.isEmpty { break }
        try copy.append(bytes, other)
        offset += Int64(bytes.count)
      }
      try other.fileSystem.synchronize(copy.handle)
      try other.fileSystem.rename(copy.handle.name, to: newName, in: other.directory)
      try other.fileSystem.synchronizeFolder(other.directory)
    } catch {
      copy.remove(other)
      throw error
    }
    try other.fileSystem.close(copy.handle)
  }

  /// The numbers of all versions. Up to the maximum, there can be a gap after an interrupted save.
  private func allNumbers() throws(FileSystemError) -> [Int] {
    let last = try max(numbers().upperBound - 1, count)
    var found: [Int] = []
    for number in stride(from: 1, through: last, by: 1) where try node(name(number)) != nil { found.append(number) }
    return found
  }

  /// The numbers of the versions before the first gap.
  private func numbers() throws(FileSystemError) -> Range<Int> {
    var end = 1
    while try node(name(end)) != nil { end += 1 }
    return 1..<end
  }

  private func name(_ number: Int) -> String { "\(folder.name)~\(number)" }

  private func node(_ name: String) throws(FileSystemError) -> FileNode? { try status(name)?.identity.node }

  /// The status of a file; nil if it doesn't exist.
  private func status(_ name: String) throws(FileSystemError) -> StoreFileStatus? {
    do throws(FileSystemError) { return try folder.fileSystem.status(of: name, in: folder.directory) } catch {
      if error.number == ErrorNumber.notFound { return nil }
      throw error
    }
  }
}
