public import HoldfastStore

/// The lock on `.NAME.lock` that a process or thread holds while it changes a store's file.
///
/// The lock file is opened again each time, so that threads exclude each other too. It is never removed, because one process could
/// wait for the removed file while another locks its successor. Readers take no lock.
final class WriterLock {
  let file: LockFile
  private let folder: OpenFolder
  private var isReleased = false

  /// - Parameter options: The options of the store's file, which specify whether it is shared with other users.
  init(_ folder: OpenFolder, timeout: Duration, _ options: DurableFileOptions, operation: String) throws(StoreError) {
    self.folder = folder
    do {
      file = LockFile(try Self.locked(folder, timeout: timeout, options), folder: folder, operation: operation)
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
    // A forked child shares the lock with its parent, which still needs it.
    if !folder.isInherited { try? folder.fileSystem.unlock(file.handle) }
    try? folder.fileSystem.close(file.handle)
  }

  /// The reason why a lock file isn't used, as a sentence.
  private struct Untrusted: Error, CustomStringConvertible {
    let description: String
  }

  private static func locked(_ folder: OpenFolder, timeout: Duration, _ options: DurableFileOptions) throws -> StoreFileHandle {
    let (fileSystem, name) = (folder.fileSystem, ".\(folder.name).lock")
    let end = POSIXCall.seconds() + timeout / .seconds(1)
    while true {
      let handle = try fileSystem.openLockFile(name, in: folder.directory)
      do {
        let opened = try fileSystem.status(of: handle)
        guard opened.kind == .regular else { throw FileSystemError(.openLockFile, name: name, number: ErrorNumber.tooManyLinks) }
        if options.allowsSharedFolder {
          let store = try? fileSystem.status(of: folder.name, in: folder.directory)
          SharedAccess.extend(handle, like: store, permissions: options.permissions, fileSystem)
        } else {
          try check(opened, name, folder)
        }
        try fileSystem.lock(handle, timeout: .seconds(max(end - POSIXCall.seconds(), 0)))
        if try isStillThere(opened, name, folder) { return handle }
      } catch {
        try? fileSystem.close(handle)
        throw error
      }
      // The lock file was removed or replaced. Only the lock of the current file counts.
      try? fileSystem.close(handle)
      guard POSIXCall.seconds() < end else { throw FileSystemError(.lock, name: name, number: ErrorNumber.timedOut) }
    }
  }

  /// Throws if another user may have created the file. Call it before waiting for the lock, which that user could hold forever.
  private static func check(_ status: StoreFileStatus, _ name: String, _ folder: OpenFolder) throws(Untrusted) {
    let problem = FileTrust.problem(
      name, isExpectedKind: status.kind == .regular, owner: status.owner, linkCount: status.linkCount, storeOwner: folder.storeOwner)
    if let problem { throw Untrusted(description: problem) }
  }

  private static func isStillThere(_ opened: StoreFileStatus, _ name: String, _ folder: OpenFolder) throws(FileSystemError) -> Bool {
    do throws(FileSystemError) {
      return try folder.fileSystem.status(of: name, in: folder.directory).identity.node == opened.identity.node
    } catch {
      guard error.number == ErrorNumber.notFound else { throw error }
      return false
    }
  }
}

/// A small record in the lock file, shared by the processes that use a store.
///
/// The record isn't durable: it may be lost after a power loss, and all users with write permission for the folder can change it.
/// If a process is killed, the record has its old or its new value. Valid only while the lock is held.
public final class LockFile {
  /// The maximum size of a record in bytes.
  public static let maximumRecordByteCount = 4094

  let handle: StoreFileHandle
  private let folder: OpenFolder
  private let operation: String
  private var isEnded = false

  // On disk: do not change. The record's length as two bytes, little-endian, then the record. The rest of the 4096 bytes is unused.
  // The file is written in one call within one page, which a kill doesn't interrupt.
  private static let fileSize = 4096
  private static let headerSize = 2

  init(_ handle: StoreFileHandle, folder: OpenFolder, operation: String) {
    self.handle = handle
    self.folder = folder
    self.operation = operation
  }

  /// The record; empty if none was written, or if it is unreadable.
  public func read() throws(StoreError) -> [UInt8] {
    checkHeld()
    let block: [UInt8]
    do throws(FileSystemError) {
      block = try folder.fileSystem.bytes(of: handle, at: 0, count: Self.fileSize)
    } catch {
      throw StoreError(error, operation: operation, path: folder.path)
    }
    guard block.count >= Self.headerSize else { return [] }
    let length = Int(block[0]) | Int(block[1]) << 8
    guard length <= block.count - Self.headerSize else { return [] }
    return Array(block[Self.headerSize..<Self.headerSize + length])
  }

  /// Overwrites the record.
  ///
  /// - Precondition: The record has at most ``maximumRecordByteCount`` bytes.
  public func write(_ record: [UInt8]) throws(StoreError) {
    checkHeld()
    precondition(record.count <= Self.maximumRecordByteCount, "The record of a lock file has at most \(Self.maximumRecordByteCount) bytes.")
    let header = [UInt8(truncatingIfNeeded: record.count), UInt8(truncatingIfNeeded: record.count >> 8)]
    let block = header + record + [UInt8](repeating: 0, count: Self.fileSize - header.count - record.count)
    do throws(FileSystemError) {
      try folder.fileSystem.writeAll(block, to: handle, at: 0)
    } catch {
      throw StoreError(error, operation: operation, path: folder.path)
    }
  }

  /// Makes further use a programming error.
  func end() { isEnded = true }

  private func checkHeld() { precondition(!isEnded, "A LockFile can be used only while the lock is held.") }
}
