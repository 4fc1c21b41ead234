import HoldfastFiles
import HoldfastStoreConformance
import Synchronization
import TestSupport

/// A file system, real or simulated, with random failures, short transfers, and bytes that silently change when read.
final class DisturbedFileSystem: ForwardingFileSystem {
  let base: any StoreFileSystem
  /// Guarded because calls come from any thread.
  private let state: Mutex<State>

  private struct State: Sendable {
    var random: SeededGenerator
    /// One in this many calls fails; 0 for none.
    var failing = 0
    var numbers: [Int32] = []
    var isShort = false
    /// Bytes at these offsets of any file except the lock file are changed when read.
    var rot: Range<Int64>?
    var failed: [StoreFileOperation: Int] = [:]
    var shortened = 0
  }

  init(_ base: any StoreFileSystem, seed: UInt64 = 0) {
    self.base = base
    state = Mutex(State(random: SeededGenerator(seed: seed)))
  }

  /// Makes one in `count` calls fail, with one of these values of `errno`.
  func fail(oneOf count: Int, _ numbers: [Int32]) { state.withLock { ($0.failing, $0.numbers) = (count, numbers) } }

  /// Makes every read and write transfer between one byte and half of the requested bytes.
  func shortenAllTransfers() { state.withLock { $0.isShort = true } }

  /// Changes the bytes at these offsets whenever they are read from now on.
  func rot(_ places: Range<Int64>?) { state.withLock { $0.rot = places } }

  /// How often each call failed.
  var failed: [StoreFileOperation: Int] { state.withLock { $0.failed } }
  /// The number of short transfers.
  var shortened: Int { state.withLock { $0.shortened } }

  private func disturb(_ operation: StoreFileOperation, _ name: String) throws(FileSystemError) {
    let number = state.withLock { state -> Int32? in
      guard state.failing > 0, Int.random(in: 0..<state.failing, using: &state.random) == 0 else { return nil }
      state.failed[operation, default: 0] += 1
      return state.numbers.randomElement(using: &state.random)
    }
    if let number { throw FileSystemError(operation, name: name, number: number) }
  }

  /// The number of bytes to transfer.
  private func share(of count: Int) -> Int {
    state.withLock { state in
      guard state.isShort, count > 1 else { return count }
      state.shortened += 1
      return Int.random(in: 1...count / 2, using: &state.random)
    }
  }

  // MARK: Calls

  func read(_ file: StoreFileHandle, at offset: Int64, into output: inout OutputRawSpan) throws(FileSystemError) {
    try disturb(.read, file.name)
    var bytes = try base.bytes(of: file, at: offset, count: share(of: output.freeCapacity))
    if let rot = state.withLock({ $0.rot }), !file.name.hasSuffix(".lock") {
      for place in rot.clamped(to: offset..<offset + Int64(bytes.count)) { bytes[Int(place - offset)] ^= 0x20 }
    }
    output.append(contentsOf: bytes)
  }

  func write(_ file: StoreFileHandle, at offset: Int64, _ bytes: RawSpan) throws(FileSystemError) -> Int {
    try disturb(.write, file.name)
    return try base.write(file, at: offset, bytes.extracting(first: share(of: bytes.byteCount)))
  }

  func openLockFile(_ name: String, in directory: StoreFileHandle) throws(FileSystemError) -> StoreFileHandle {
    try disturb(.openLockFile, name)
    return try base.openLockFile(name, in: directory)
  }

  func create(_ name: String, in directory: StoreFileHandle) throws(FileSystemError) -> StoreFileHandle {
    try disturb(.create, name)
    return try base.create(name, in: directory)
  }

  func status(of name: String, in directory: StoreFileHandle) throws(FileSystemError) -> StoreFileStatus {
    try disturb(.statusOfName, name)
    return try base.status(of: name, in: directory)
  }

  func status(of file: StoreFileHandle) throws(FileSystemError) -> StoreFileStatus {
    try disturb(.status, file.name)
    return try base.status(of: file)
  }

  func setPermissions(_ permissions: UInt32, of file: StoreFileHandle) throws(FileSystemError) {
    try disturb(.setPermissions, file.name)
    try base.setPermissions(permissions, of: file)
  }

  func synchronize(_ file: StoreFileHandle) throws(FileSystemError) {
    try disturb(.synchronize, file.name)
    try base.synchronize(file)
  }

  func rename(_ name: String, to newName: String, in directory: StoreFileHandle) throws(FileSystemError) {
    try disturb(.rename, name)
    try base.rename(name, to: newName, in: directory)
  }

  func link(_ name: String, to newName: String, in directory: StoreFileHandle) throws(FileSystemError) {
    try disturb(.link, name)
    try base.link(name, to: newName, in: directory)
  }

  func unlink(_ name: String, in directory: StoreFileHandle) throws(FileSystemError) {
    try disturb(.unlink, name)
    try base.unlink(name, in: directory)
  }

  func names(in directory: StoreFileHandle) throws(FileSystemError) -> [String] {
    try disturb(.names, directory.name)
    return try base.names(in: directory)
  }

  func lock(_ file: StoreFileHandle, timeout: Duration) throws(FileSystemError) {
    try disturb(.lock, file.name)
    try base.lock(file, timeout: timeout)
  }
}
