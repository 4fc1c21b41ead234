public import HoldfastStore

/// A replacement of a file's contents: one save.
///
/// ```text
///           write, withBuffer          finish              commit
/// ● building ───────────────▶ building ──────▶ finished ──────────▶ ended
///      └────────────────┴─────── any error, abort, release ──────────▶ ended
/// ```
///
/// Invariants:
/// 1. Until it has ended, it holds the writer lock.
/// 2. A temporary file exists from the first bytes that reach the disk until the end, and not longer.
/// 3. The store's file is unchanged until ``commit()`` renames the temporary file, or ``commitRemoval(movingBackupsTo:)`` removes the file.
/// 4. `atEnd` is called before the lock is released.
/// 5. A file whose synchronization failed is closed and removed, and never synchronized again: the system may have marked pages as
///    clean that never reached the disk.
///
/// After an error, every further call throws the same error. Not thread-safe.
public final class FileReplacement {
  /// The change of the file since this process last read or saved it.
  ///
  /// Unless it is `none`, call ``read(_:)`` or ``takeOver(_:)`` before writing, so that a save of another process isn't overwritten
  /// unseen.
  public let foundChange: FileChange
  /// The lock file's record. Valid until the replacement has ended.
  public var lockFile: LockFile { lock.file }
  /// The number of bytes written so far.
  public private(set) var byteCount: Int64 = 0
  /// Called when the replacement ends, before the lock is released.
  ///
  /// `isInPlace` is true if the new contents are in place. Update the known state of the file in this closure, before another
  /// process can change the file.
  public var atEnd: (@Sendable (_ isInPlace: Bool) -> Void)?

  /// Whether ``commit()`` waits for the disk even with ``DurableFileOptions/Durability/normal``.
  ///
  /// Set it before calling `commit`. Defaults to false.
  public var waitsForDisk = false

  /// Whether ``commit()`` keeps the replaced file as a backup, if the options want backups.
  ///
  /// Set it before calling `commit`. Defaults to true.
  public var keepsBackup = true

  /// Called each time that bytes were written to the disk, about each megabyte, with the number of all bytes. An error ends the replacement.
  /// Defaults to nil.
  public var progress: ((Int64) throws(StoreError) -> Void)?

  /// The bytes of the new file after ``commit()``; nil before, and if it failed.
  public private(set) var committed: FileBytes?

  private enum Phase {
    case building, finished
    case ended(StoreError?)
  }

  private let owner: DurableFile
  private let folder: OpenFolder
  private let lock: WriterLock
  /// The file to replace, when the lock was taken or when it was read since; nil if there is none.
  private var present: StoreFileStatus?
  private let expectedByteCount: Int64?
  private let operation: String
  private var phase = Phase.building
  private var hasSeenChange: Bool
  private var temporary: TemporaryFile?
  private var buffer = WriteBuffer()

  init(
    of owner: DurableFile, folder: OpenFolder, lock: WriterLock, present: StoreFileStatus?, foundChange: FileChange,
    expectedByteCount: Int64?,
    operation: String
  ) {
    self.owner = owner
    self.folder = folder
    self.lock = lock
    self.present = present
    self.foundChange = foundChange
    self.expectedByteCount = expectedByteCount
    self.operation = operation
    hasSeenChange = foundChange == .none
  }

  deinit {
    abort()
    buffer.deallocate()
  }

  // MARK: The current file

  /// Reads the current file under the lock, without recording it as the known state.
  ///
  /// If the save is aborted, the next one finds the same change again.
  /// - Returns: The result of `body`; nil if the file doesn't exist.
  /// - Throws: The same errors as ``DurableFile/read(operation:_:)``. They don't end the replacement.
  public func read<Result>(_ body: (FileReader) throws -> Result) throws -> Result? {
    try checkNotEnded()
    let found = try folder.read(folder.name, options: owner.options, operation: operation, body)
    present = found?.status
    hasSeenChange = true
    return found?.result
  }

  /// Reads the current file under the lock, and records it as the known state.
  ///
  /// If the save is aborted, the next one is based on this state.
  /// - Returns: The result of `body`. If the file doesn't exist, returns nil and records nothing.
  /// - Throws: The same errors as ``DurableFile/read(operation:_:)``. They don't end the replacement.
  public func takeOver<Result>(_ body: (FileReader) throws -> Result) throws -> Result? {
    try checkNotEnded()
    guard let (result, status, file) = try folder.read(folder.name, options: owner.options, operation: operation, body) else { return nil }
    owner.remember(.present(status.identity, file))
    present = status
    hasSeenChange = true
    return result
  }

  /// Records a version that was read before as the known state, if it still is the current one.
  ///
  /// - Parameters:
  ///   - version: The version.
  ///   - body: Called before that, if it is the current one. If it throws, nothing is recorded.
  /// - Returns: Whether it is.
  /// - Throws: Errors of the closure. They don't end the replacement.
  public func takeOver(_ version: FileVersion, after body: () throws -> Void) throws -> Bool {
    try checkNotEnded()
    guard present?.identity == version.identity else { return false }
    try body()
    owner.takeOver(version)
    hasSeenChange = true
    return true
  }

  // MARK: The new contents

  /// Appends bytes to the new contents. They are written to the disk 1 MiB at a time.
  ///
  /// - Throws: ``/HoldfastStore/StoreError``: `storeReplaced` if there is a change that wasn't read, `tooLarge` if the file would
  ///   be too large to open, `diskFull`, `notPermitted`, `inputOutput`.
  public func write(_ bytes: UnsafeRawBufferPointer) throws(StoreError) {
    try checkWritable()
    try count(bytes.count)
    var rest = bytes
    while !rest.isEmpty {
      if buffer.isEmpty && rest.count >= WriteBuffer.capacity {
        try store(UnsafeRawBufferPointer(rebasing: rest[..<WriteBuffer.capacity]))
        rest = UnsafeRawBufferPointer(rebasing: rest[WriteBuffer.capacity...])
      } else {
        rest = UnsafeRawBufferPointer(rebasing: rest[buffer.append(rest)...])
        if buffer.isFull { try flush() }
      }
    }
  }

  /// Appends bytes to the new contents; see ``write(_:)-(UnsafeRawBufferPointer)``.
  public func write(_ bytes: [UInt8]) throws { try bytes.withUnsafeBytes { try write($0) } }

  /// Appends all bytes of another file.
  ///
  /// - Throws: The errors of ``write(_:)-(UnsafeRawBufferPointer)``, which end the replacement, and errors of reading, which don't.
  public func write(_ file: FileBytes, operation: String) throws(StoreError) {
    var offset: Int64 = 0
    while offset < file.byteCount {
      let count = Int(min(Int64(WriteBuffer.capacity), file.byteCount - offset))
      try withBuffer(room: count) { buffer throws(StoreError) in
        try file.read(at: offset, into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<count]), operation: operation)
        return count
      }
      offset += Int64(count)
    }
  }

  /// Appends bytes that a closure writes directly into the buffer.
  ///
  /// - Parameters:
  ///   - room: The maximum number of bytes that the closure writes, at most 1 MiB.
  ///   - body: Receives a buffer of at least `room` bytes, and returns how many bytes it wrote at its start. If it throws, nothing
  ///     is appended and the replacement doesn't end.
  public func withBuffer(room: Int, _ body: (UnsafeMutableRawBufferPointer) throws(StoreError) -> Int) throws(StoreError) {
    try checkWritable()
    precondition(room <= WriteBuffer.capacity, "The buffer has room for \(WriteBuffer.capacity) bytes.")
    if buffer.room < room { try flush() }
    let added = try body(buffer.free)
    try count(added)
    buffer.advance(added)
    if buffer.isFull { try flush() }
  }

  /// Makes the new contents durable in the temporary file. The store's file is unchanged.
  public func finish() throws(StoreError) {
    try completeContents()
    try synchronizeContents()
  }

  /// Makes the new contents durable after a closure has verified them.
  ///
  /// - Throws: The same errors as ``write(_:)-(UnsafeRawBufferPointer)``, and errors of the closure, which end the replacement.
  public func finish(verifying verify: (FileReader) throws -> Void) throws {
    try completeContents()
    do {
      let name = temporary?.handle.name ?? ""
      guard try folder.read(name, options: owner.options, operation: operation, verify) != nil else {
        throw StoreError(
          FileSystemError(.openForReading, name: name, number: ErrorNumber.notFound), operation: operation, path: folder.path)
      }
    } catch {
      end(error as? StoreError)
      throw error
    }
    try synchronizeContents()
  }

  /// Whether the file to replace has the new contents already. Call it after ``finish()``.
  ///
  /// - Throws: ``/HoldfastStore/StoreError``: errors of reading. They don't end the replacement.
  public func isRepeated() throws -> Bool {
    try checkNotEnded()
    guard let temporary, present?.identity.size == byteCount else { return false }
    let found = try folder.read(temporary.handle.name, options: owner.options, operation: operation) { new -> Bool in
      // Not `read`: the new contents aren't based on the version that is found here.
      let same = try folder.read(folder.name, options: owner.options, operation: operation) { old -> Bool in
        guard old.byteCount == new.byteCount else { return false }
        new.rewind()
        // Both have chunks of the same sizes.
        while let bytes = try old.next() {
          guard let others = try new.next(), others.elementsEqual(bytes) else { return false }
        }
        return true
      }
      return same?.result ?? false
    }
    return found?.result ?? false
  }

  /// Replaces the file with the new contents durably. Calls ``finish()`` if necessary.
  ///
  /// - Throws: ``/HoldfastStore/StoreError``. With code `durabilityUnknown`, the new contents are in place and are the known state,
  ///   but the disk didn't confirm it. With any other code, the old file is unchanged. `storeReplaced` if a program without the lock has
  ///   changed, replaced or removed the file since the lock was taken.
  public func commit() throws(StoreError) {
    if case .finished = phase { try checkNotEnded() } else { try finish() }
    guard let temporary else { preconditionFailure("A finished replacement has a temporary file.") }
    try checkUnchanged()
    try keepBackup()
    try performing { () throws(FileSystemError) in
      do throws(FileSystemError) {
        try folder.fileSystem.rename(temporary.handle.name, to: folder.name, in: folder.directory)
      } catch {
        guard isInPlace(temporary) else { throw error }
      }
    }
    // Other processes see the new contents from here on, so nothing can be undone. Known at once, they aren't taken for another process's.
    let identity = try? folder.fileSystem.status(of: temporary.handle).identity
    let file = KeptFile(temporary.handle, of: folder.fileSystem)
    self.temporary = nil
    committed = FileBytes(file, byteCount: byteCount, path: folder.path)
    owner.remember(identity.map { .present($0, file) } ?? .unknown)
    let unconfirmed = synchronizeFolder("The new contents are in place")
    end(unconfirmed, isInPlace: true)
    if let unconfirmed { throw unconfirmed }
  }

  /// Removes the file and its backups durably instead of replacing it. The lock file remains. Does nothing if the file doesn't exist.
  ///
  /// - Parameter copy: Another file, behind whose backups those of this one are moved; nil to remove them. The caller holds its lock. Defaults to
  ///   nil.
  /// - Throws: ``/HoldfastStore/StoreError``. With code `durabilityUnknown`, the file is removed, but the disk didn't confirm it. With any
  ///   other code, the file still exists. `storeReplaced` as in ``commit()``.
  public func commitRemoval(movingBackupsTo copy: DurableFile? = nil) throws(StoreError) {
    try checkWritable()
    precondition(temporary == nil && buffer.isEmpty, "A replacement that has new contents can't remove the file.")
    let ring = BackupRing(folder, count: owner.options.backupCount)
    let other = try copy.map { copy throws(StoreError) in BackupRing(try copy.usableFolder(operation), count: copy.options.backupCount) }
    try checkUnchanged()
    try performing { () throws(FileSystemError) in
      TemporaryFile.removeStale(in: folder)
      if let other { try ring.moveAll(behind: other) } else { try ring.removeAll() }
    }
    // Copying backups can take long.
    try checkUnchanged()
    try performing { () throws(FileSystemError) in
      if present != nil { try folder.fileSystem.unlink(folder.name, in: folder.directory) }
    }
    let unconfirmed = synchronizeFolder("The file is removed")
    owner.remember(.absent)
    end(unconfirmed, isInPlace: true)
    if let unconfirmed { throw unconfirmed }
  }

  /// Discards the new contents and releases the lock. Does nothing if the replacement has ended.
  public func abort() { end(nil) }

  // MARK: Steps

  /// Writes the remaining bytes. Creates the file even if nothing was written.
  private func completeContents() throws(StoreError) {
    try checkWritable()
    try flush()
    let file = try openedTemporary()
    if let expectedByteCount, expectedByteCount > byteCount {
      try performing { () throws(FileSystemError) in try folder.fileSystem.setSize(byteCount, of: file.handle) }
    }
  }

  private func synchronizeContents() throws(StoreError) {
    let file = try openedTemporary()
    try performing { () throws(FileSystemError) in try folder.fileSystem.synchronize(file.handle) }
    phase = .finished
  }

  /// Whether a file has the store's name although renaming it failed.
  ///
  /// A network file system can repeat a call that has succeeded, and report that the second one failed.
  private func isInPlace(_ file: TemporaryFile) -> Bool {
    guard let new = try? folder.fileSystem.status(of: file.handle), let current = try? folder.status(operation: operation) else {
      return false
    }
    return current.identity.node == new.identity.node
  }

  /// Throws if a program has changed, replaced or removed the file, whose version would be lost.
  ///
  /// It doesn't use the lock, such as an editor, or got another lock because a program had removed the lock file.
  ///
  /// - Returns: The status of the file; nil if there is none.
  @discardableResult
  private func checkUnchanged() throws(StoreError) -> StoreFileStatus? {
    let current: StoreFileStatus?
    do throws(StoreError) { current = try folder.status(operation: operation) } catch { throw ending(error) }
    switch (present, current) {
    case (nil, nil): return nil
    case (let present?, let current?) where current.identity.hasSameBytes(as: present.identity): return current
    default:
      throw ending(
        StoreError(
          .storeReplaced, operation: operation, path: folder.path,
          reason: "Another program changed, replaced or removed the file at the same time, without the lock. Nothing was overwritten. "
            + "Try again.", isRetryable: true))
    }
  }

  private func keepBackup() throws(StoreError) {
    guard let present, owner.options.backupCount > 0, keepsBackup else { return }
    try performing { () throws(FileSystemError) in try BackupRing(folder, count: owner.options.backupCount).keep(present) }
    // If this save fails later, the next one must not mistake the new link for a change by another process.
    if let linked = try checkUnchanged() { owner.noteLink(present.identity, linked.identity) }
  }

  /// Synchronizes the folder. Returns an error if the disk didn't confirm it.
  private func synchronizeFolder(_ outcome: String) -> StoreError? {
    guard owner.options.durability == .full || waitsForDisk else { return nil }
    do throws(FileSystemError) {
      try folder.fileSystem.synchronizeFolder(folder.directory)
      return nil
    } catch {
      return StoreError(
        .durabilityUnknown, operation: operation, path: folder.path,
        reason: "\(outcome), but the disk didn't confirm it: \(error.reason) (errno \(error.number)). "
          + "A power loss may bring back the previous contents. Check the disk; nothing has to be repeated.", cause: error)
    }
  }

  private func flush() throws(StoreError) {
    guard !buffer.isEmpty else { return }
    try store(buffer.filled)
    buffer.removeAll()
  }

  private func store(_ bytes: UnsafeRawBufferPointer) throws(StoreError) {
    var file = try openedTemporary()
    try performing { () throws(FileSystemError) in try file.append(bytes.bytes, folder) }
    temporary = file
    guard let progress else { return }
    do throws(StoreError) { try progress(byteCount) } catch { throw ending(error) }
  }

  private func openedTemporary() throws(StoreError) -> TemporaryFile {
    if let temporary { return temporary }
    try performing { () throws(FileSystemError) in
      TemporaryFile.removeStale(in: folder)
      let file = try TemporaryFile(in: folder)
      // Set before anything else can fail, so that the file is removed on failure.
      temporary = file
      try file.prepare(folder, like: present, permissions: owner.options.permissions, byteCount: expectedByteCount)
    }
    return temporary!
  }

  private func count(_ added: Int) throws(StoreError) {
    byteCount += Int64(added)
    guard byteCount > owner.options.maximumByteCount else { return }
    throw ending(folder.tooLarge(byteCount, options: owner.options, operation: operation))
  }

  // MARK: Ending

  /// Makes calls whose failure ends the replacement.
  private func performing(_ calls: () throws(FileSystemError) -> Void) throws(StoreError) {
    do throws(FileSystemError) { try calls() } catch { throw ending(StoreError(error, operation: operation, path: folder.path)) }
  }

  private func ending(_ error: StoreError) -> StoreError {
    end(error)
    return error
  }

  private func end(_ error: StoreError?, isInPlace: Bool = false) {
    if case .ended = phase { return }
    phase = .ended(error)
    temporary?.remove(folder)
    temporary = nil
    atEnd?(isInPlace)
    atEnd = nil
    lock.release()
  }

  private func checkWritable() throws(StoreError) {
    try checkNotEnded()
    if case .finished = phase { preconditionFailure("A finished replacement can't be written to.") }
    guard hasSeenChange else {
      throw ending(
        StoreError(
          .storeReplaced, operation: operation, path: folder.path,
          reason: "Another program changed, replaced or removed the file after it was read. Read it again and repeat the changes."))
    }
  }

  private func checkNotEnded() throws(StoreError) {
    guard !folder.isInherited else { throw folder.inherited(operation: operation) }
    guard case .ended(let error) = phase else { return }
    guard let error else { preconditionFailure("A replacement can't be used after commit() or abort().") }
    throw error
  }
}
