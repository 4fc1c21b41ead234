public import HoldfastStore

/// New contents on their way into a store's file: one save, in the order in which nothing can be lost.
///
/// ```text
///           write, withBuffer          finish              commit
/// ● building ───────────────▶ building ──────▶ finished ──────────▶ ended
///      └────────────────┴─────── any error, abort, release ──────────▶ ended
/// ```
///
/// What must stay true:
/// 1. While it has not ended, it holds the writer's lock.
/// 2. There is a temporary file from the first bytes that reach the disk until it ended, and never after.
/// 3. The store's file is untouched until ``commit()`` renames.
/// 4. What is to happen at the end happens before the lock is free: `atEnd`.
/// 5. A file whose synchronization failed is closed and removed, and never synchronized again: the system may have
///    marked as clean what never reached the disk.
///
/// After an error every further call throws the same error. Not for use from several threads at once.
public final class FileReplacement {
  /// What happened to the file since this process read or saved it last.
  ///
  /// Unless it is `none`, nothing can be written before ``read(_:)`` was called, so that nobody's contents are overwritten
  /// unseen.
  public let foundChange: FileChange
  /// The record that processes share, for as long as the replacement has not ended.
  public var lockFile: LockFile { lock.file }
  /// How many bytes were written so far.
  public private(set) var byteCount: Int64 = 0
  /// Called when the replacement ends, before anybody else can take the lock, and told whether the new contents are in the file's
  /// place: so that what this process knows of the file is right whenever somebody else may change it.
  public var atEnd: (@Sendable (_ isInPlace: Bool) -> Void)?

  /// Whether ``commit()`` waits for the disk although the options say ``DurableFileOptions/Durability/fast``. Set it before.
  public var waitsForDisk = false

  /// The bytes of the file that ``commit()`` has put in place; nil before, and when it failed.
  public private(set) var committed: FileBytes?

  private enum Phase {
    case building, finished
    case ended(StoreError?)
  }

  private let owner: DurableFile
  private let folder: OpenFolder
  private let lock: WriterLock
  /// The file that is to be replaced, as it was when the lock was taken.
  private let present: StoreFileStatus?
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

  // MARK: The present file

  /// Reads the file as it is now, under the lock. Does not make it the known one: if the save is given up, the next one
  /// finds the same change again.
  ///
  /// - Returns: What the body returned; nil when there is no file.
  /// - Throws: As ``DurableFile/read(operation:_:)``. The replacement goes on nevertheless.
  public func read<Result>(_ body: (FileReader) throws -> Result) throws -> Result? {
    try checkNotEnded()
    let found = try folder.read(folder.name, options: owner.options, operation: operation, body)
    hasSeenChange = true
    return found?.result
  }

  /// Reads the file as it is now, under the lock, and makes it the known one when the body returns: if the save is given up, the
  /// next one builds upon what was read here.
  ///
  /// - Returns: What the body returned; nil when there is no file, which is not made known.
  /// - Throws: As ``DurableFile/read(operation:_:)``. The replacement goes on nevertheless.
  public func takeOver<Result>(_ body: (FileReader) throws -> Result) throws -> Result? {
    try checkNotEnded()
    guard let (result, status, file) = try folder.read(folder.name, options: owner.options, operation: operation, body) else { return nil }
    owner.remember(.present(status.identity, file))
    hasSeenChange = true
    return result
  }

  // MARK: The new contents

  /// Appends bytes to the new contents. They reach the disk in pieces of one mebibyte.
  ///
  /// - Throws: ``/HoldfastStore/StoreError``: `storeReplaced` when there is a change that was not looked at, `tooLarge` when the file could
  ///   not be read again, `diskFull`, `notPermitted`, `inputOutput`.
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

  /// Appends bytes that a closure puts into the buffer itself, without copying them.
  ///
  /// - Parameters:
  ///   - room: The most bytes that the closure will put there, at most one mebibyte.
  ///   - body: Is given at least as much room, and returns how many bytes it put at its start. When it throws, nothing is
  ///     appended, and the replacement goes on.
  public func withBuffer(room: Int, _ body: (UnsafeMutableRawBufferPointer) throws(StoreError) -> Int) throws(StoreError) {
    try checkWritable()
    precondition(room <= WriteBuffer.capacity, "The buffer has room for \(WriteBuffer.capacity) bytes at once.")
    if buffer.room < room { try flush() }
    let added = try body(buffer.free)
    try count(added)
    buffer.advance(added)
    if buffer.isFull { try flush() }
  }

  /// Makes the new contents durable under their temporary name. The store's file is still the old one.
  public func finish() throws(StoreError) {
    try completeContents()
    try synchronizeContents()
  }

  /// Makes the new contents durable under their temporary name, after a closure has read them again and found them right.
  ///
  /// - Throws: As ``write(_:)``; what the closure throws, which ends the replacement.
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

  /// Puts the new contents in the file's place, and makes that durable. Calls ``finish()`` if nobody did.
  ///
  /// - Throws: ``/HoldfastStore/StoreError``. With code `durabilityUnknown` the new contents are in place and known to this process, but
  ///   the disk did not confirm it; with any other code the old file is untouched.
  public func commit() throws(StoreError) {
    if case .finished = phase { try checkNotEnded() } else { try finish() }
    guard let temporary else { preconditionFailure("A finished replacement has a temporary file.") }
    try performing { () throws(FileSystemError) in
      try keepBackup()
      try folder.fileSystem.rename(temporary.handle.name, to: folder.name, in: folder.directory)
    }
    // From here on everybody sees the new contents, so nothing is undone any more.
    let unconfirmed = synchronizeFolder()
    let identity = try? folder.fileSystem.status(of: temporary.handle).identity
    let file = KeptFile(temporary.handle, of: folder.fileSystem)
    self.temporary = nil
    committed = FileBytes(file, byteCount: byteCount, path: folder.path)
    owner.remember(identity.map { .present($0, file) } ?? .unknown)
    end(unconfirmed, isInPlace: true)
    if let unconfirmed { throw unconfirmed }
  }

  /// Gives the new contents up and frees the lock. Does nothing when the replacement has ended.
  public func abort() { end(nil) }

  // MARK: Steps

  /// Writes what is left, into a file that is there even when nothing was written.
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

  private func keepBackup() throws(FileSystemError) {
    guard let present, owner.options.backupCount > 0 else { return }
    try BackupRing(folder, count: owner.options.backupCount).keep(present)
    // Should this save fail at its last step, the next one must not take the new name for somebody else's change.
    let linked = try folder.fileSystem.status(of: folder.name, in: folder.directory)
    owner.noteLink(present.identity, linked.identity)
  }

  /// The error when the disk did not confirm that the folder has the new name.
  private func synchronizeFolder() -> StoreError? {
    guard owner.options.durability == .full || waitsForDisk else { return nil }
    do throws(FileSystemError) {
      try folder.fileSystem.synchronize(folder.directory)
      return nil
    } catch {
      // The file system cannot do this for folders; then there is no more to be had.
      guard ![ErrorNumber.invalid, ErrorNumber.notSupported].contains(error.number) else { return nil }
      return StoreError(
        .durabilityUnknown, operation: operation, path: folder.path,
        reason: "The new contents are in place, but the disk did not confirm it: \(error.reason) (errno \(error.number)). "
          + "A power loss may bring back the previous ones. Check the disk and save again.", cause: error)
    }
  }

  private func flush() throws(StoreError) {
    guard !buffer.isEmpty else { return }
    try store(buffer.filled)
    buffer.removeAll()
  }

  private func store(_ bytes: UnsafeRawBufferPointer) throws(StoreError) {
    var file = try openedTemporary()
    try performing { () throws(FileSystemError) in try file.append(bytes, folder) }
    temporary = file
  }

  private func openedTemporary() throws(StoreError) -> TemporaryFile {
    if let temporary { return temporary }
    try performing { () throws(FileSystemError) in
      TemporaryFile.removeStale(in: folder)
      let file = try TemporaryFile(in: folder)
      // Kept before anything else can fail, so that it is removed then.
      temporary = file
      try file.prepare(folder, like: present, permissions: owner.options.permissions, byteCount: expectedByteCount)
    }
    return temporary!
  }

  private func count(_ added: Int) throws(StoreError) {
    byteCount += Int64(added)
    guard byteCount > owner.options.largestByteCount else { return }
    throw ending(folder.tooLarge(byteCount, options: owner.options, operation: operation))
  }

  // MARK: Ending

  /// Carries out calls whose failure ends the replacement.
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
    if case .finished = phase { preconditionFailure("A finished replacement takes no more bytes.") }
    guard hasSeenChange else {
      throw ending(
        StoreError(
          .storeReplaced, operation: operation, path: folder.path,
          reason: "Another program changed, replaced or removed the file since it was read. Read it again and repeat the changes."))
    }
  }

  private func checkNotEnded() throws(StoreError) {
    guard !folder.isInherited else { throw folder.inherited(operation: operation) }
    guard case .ended(let error) = phase else { return }
    guard let error else { preconditionFailure("A replacement cannot be used after commit() or abort().") }
    throw error
  }
}
