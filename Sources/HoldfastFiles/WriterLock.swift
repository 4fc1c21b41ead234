public import HoldfastStore

/// The lock that whoever changes a store's file holds, in this process and in others: the lock of `.NAME.lock` beside it.
///
/// The lock file is opened anew each time, so that two threads exclude each other too, and it is never removed: somebody
/// could be waiting for it while a third one locks its successor. Readers take no lock.
final class WriterLock {
  let file: LockFile
  private let folder: OpenFolder
  private var isReleased = false

  /// - Parameter trustsAnyFile: whether the lock file may be one that another user has put there.
  init(_ folder: OpenFolder, timeout: Double, trustsAnyFile: Bool, operation: String) throws(StoreError) {
    self.folder = folder
    do {
      file = LockFile(try Self.locked(folder, timeout: timeout, trustsAnyFile), folder: folder, operation: operation)
    } catch let error as FileSystemError {
      throw StoreError(error, operation: operation, path: folder.path)
    } catch {
      throw StoreError(.notPermitted, operation: operation, path: folder.path, reason: "\(error)")
    }
  }

  deinit { release() }

  func release() {
    guard !isReleased else { return }
    isReleased = true
    file.end()
    // A forked child shares the lock with its parent, who is not done.
    if !folder.isInherited { try? folder.fileSystem.unlock(file.handle) }
    try? folder.fileSystem.close(file.handle)
  }

  /// Why a lock file is not used, as a sentence.
  private struct Untrusted: Error, CustomStringConvertible {
    let description: String
  }

  private static func locked(_ folder: OpenFolder, timeout: Double, _ trustsAnyFile: Bool) throws -> StoreFileHandle {
    let (fileSystem, name) = (folder.fileSystem, ".\(folder.name).lock")
    let end = POSIXCall.seconds() + timeout
    while true {
      let handle = try fileSystem.openLockFile(name, in: folder.directory)
      do {
        let opened = try fileSystem.status(of: handle)
        guard opened.kind == .regular else { throw FileSystemError(.openLockFile, name: name, number: ErrorNumber.tooManyLinks) }
        if !trustsAnyFile { try check(opened, name, folder) }
        try fileSystem.lock(handle, timeout: max(end - POSIXCall.seconds(), 0))
        if try isStillThere(opened, name, folder) { return handle }
      } catch {
        try? fileSystem.close(handle)
        throw error
      }
      // Somebody removed the file, although nobody should; the lock that counts is that of the file that has the name.
      try? fileSystem.close(handle)
      guard POSIXCall.seconds() < end else { throw FileSystemError(.lock, name: name, number: ErrorNumber.timedOut) }
    }
  }

  /// Throws if another user may have created the file. Checked before waiting for the lock, which that user could hold forever.
  private static func check(_ status: StoreFileStatus, _ name: String, _ folder: OpenFolder) throws(Untrusted) {
    let problem = FileTrust.problem(
      name, isExpectedKind: status.kind == .regular, owner: status.owner, linkCount: status.linkCount, storeOwner: folder.storeOwner)
    if let problem { throw Untrusted(description: problem) }
  }

  private static func isStillThere(_ opened: StoreFileStatus, _ name: String, _ folder: OpenFolder) throws(FileSystemError) -> Bool {
    do throws(FileSystemError) {
      let found = try folder.fileSystem.status(of: name, in: folder.directory).identity
      return found.device == opened.identity.device && found.inode == opened.identity.inode
    } catch {
      guard error.number == ErrorNumber.notFound else { throw error }
      return false
    }
  }
}

/// A small record that the processes which use a store share: it lies in the store's lock file, and whoever holds the
/// lock may read and overwrite it.
///
/// It is not durable: after a power loss it may be gone, and anybody who may write to the folder can change it. A process
/// that is killed leaves the old record or the new one. Valid only as long as the lock is held.
public final class LockFile {
  /// The most bytes of a record.
  public static let largestRecord = 4094

  let handle: StoreFileHandle
  private let folder: OpenFolder
  private let operation: String
  private var isEnded = false

  // On disk: do not change. The record's length in two bytes, the lower one first, then the record; what follows to the
  // end of 4096 bytes means nothing. It is written in one call within one page, which a kill does not interrupt.
  private static let fileSize = 4096
  private static let headerSize = 2

  init(_ handle: StoreFileHandle, folder: OpenFolder, operation: String) {
    self.handle = handle
    self.folder = folder
    self.operation = operation
  }

  /// The record; no bytes when none was ever written, or when it is unreadable.
  public func read() throws(StoreError) -> [UInt8] {
    checkHeld()
    let block = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.fileSize, alignment: 1)
    defer { block.deallocate() }
    var count = 0
    do throws(FileSystemError) {
      while count < block.count {
        let rest = UnsafeMutableRawBufferPointer(rebasing: block[count...])
        let got = try folder.fileSystem.read(handle, at: Int64(count), into: rest)
        guard got > 0 else { break }
        count += got
      }
    } catch {
      throw StoreError(error, operation: operation, path: folder.path)
    }
    guard count >= Self.headerSize else { return [] }
    let length = Int(block[0]) | Int(block[1]) << 8
    guard length <= count - Self.headerSize else { return [] }
    return Array(block[Self.headerSize..<Self.headerSize + length])
  }

  /// Overwrites the record.
  ///
  /// - Precondition: It has at most ``largestRecord`` bytes.
  public func write(_ record: [UInt8]) throws(StoreError) {
    checkHeld()
    precondition(record.count <= Self.largestRecord, "A lock file's record has at most \(Self.largestRecord) bytes.")
    let block = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.fileSize, alignment: 1)
    defer { block.deallocate() }
    block.initializeMemory(as: UInt8.self, repeating: 0)
    block[0] = UInt8(truncatingIfNeeded: record.count)
    block[1] = UInt8(truncatingIfNeeded: record.count >> 8)
    UnsafeMutableRawBufferPointer(rebasing: block[Self.headerSize...]).copyBytes(from: record)
    do throws(FileSystemError) {
      try folder.fileSystem.writeAll(UnsafeRawBufferPointer(block), to: handle, at: 0)
    } catch {
      throw StoreError(error, operation: operation, path: folder.path)
    }
  }

  /// Makes further use a programmer's error.
  func end() { isEnded = true }

  private func checkHeld() { precondition(!isEnded, "A LockFile can be used only while the lock is held.") }
}

extension StoreFileSystem {
  /// Writes all bytes: the one place where short writes are made whole.
  func writeAll(_ bytes: UnsafeRawBufferPointer, to file: StoreFileHandle, at offset: Int64) throws(FileSystemError) {
    var count = 0
    while count < bytes.count {
      let written = try write(file, at: offset + Int64(count), UnsafeRawBufferPointer(rebasing: bytes[count...]))
      guard written > 0 else { throw FileSystemError(.write, name: file.name, number: ErrorNumber.inputOutput) }
      count += written
    }
  }
}
