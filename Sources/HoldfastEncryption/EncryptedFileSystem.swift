public import HoldfastFiles
import Synchronization

/// A file system whose files are encrypted and authenticated, for stores that keep their objects in files.
///
/// With the trait `Encryption` of the package, it encrypts with AES-GCM and 256-bit keys:
///
/// ```swift
/// var options = JSONStoreOptions()
/// options.wholeFile.file.fileSystem = try EncryptedFileSystem(key: key)
/// let description = StoreDescription.json(at: path, options: options)
/// ```
///
/// All contents of the store's file, its backups and its external values are encrypted. Reading detects every changed byte, and every chunk
/// that was exchanged, left out or appended. An encrypted file can't be opened with other keys only
/// (``/HoldfastStore/StoreError/Code/notPermitted``), nor without encryption, and a file that isn't encrypted can't be opened with a key
/// (``/HoldfastStore/StoreError/Code/notAStore``).
///
/// Each file has its own key, derived from a random salt. Encryption makes a file longer by 64 bytes, and by 28 bytes for each 16 KiB of
/// contents. Reading one byte decrypts 16 KiB.
///
/// ## What it doesn't hide
///
/// - Names, sizes and times of files, and therefore the number and sizes of external values. The name of an external value contains a part
///   of its SHA-256 digest, with which an attacker can check whether the value is a file that they already have. To prevent this, keep
///   values in their rows, with ``/HoldfastFiles/ExternalDataOptions``.
/// - The lock file's record, which contains numbers of reserved keys and no values.
/// - The replacement of a file by an earlier version of it, or by another file with the same key, such as another store. External values
///   are compared with the digests in their names.
/// - The removal of all contents of a file, which is then read as an empty file. The JSON, XML and binary stores refuse it. A store with a
///   format of your own must do the same.
/// - Anything in the memory of the process.
public final class EncryptedFileSystem: ForwardingFileSystem {
  /// The file system that contains the encrypted files.
  public let base: any StoreFileSystem
  private let cipher: any FileCipher
  /// The open encrypted files by the numbers of their handles. Guarded because stores read on several threads.
  private let files = Mutex<[Int32: SealedFile]>([:])

  package init(_ cipher: any FileCipher, base: any StoreFileSystem = POSIXFileSystem()) {
    self.cipher = cipher
    self.base = base
  }

  private func adding(_ file: StoreFileHandle) -> StoreFileHandle {
    files.withLock { $0[file.number] = SealedFile(file, of: base, cipher) }
    return file
  }

  /// The encrypted file of a handle; nil for a lock file or a folder.
  private func sealed(_ file: StoreFileHandle) -> SealedFile? { files.withLock { $0[file.number] } }

  // MARK: Calls

  /// Opens the file. Its header is read when its contents are first read.
  public func openForReading(_ name: String, in directory: StoreFileHandle) throws(FileSystemError) -> StoreFileHandle {
    adding(try base.openForReading(name, in: directory))
  }

  /// Creates the file. Its header is written together with the first bytes.
  public func create(_ name: String, in directory: StoreFileHandle) throws(FileSystemError) -> StoreFileHandle {
    adding(try base.create(name, in: directory))
  }

  /// Reads and decrypts.
  public func read(_ file: StoreFileHandle, at offset: Int64, into output: inout OutputRawSpan) throws(FileSystemError) {
    guard let sealed = sealed(file) else { return try base.read(file, at: offset, into: &output) }
    try sealed.read(at: offset, into: &output)
  }

  /// Encrypts and writes.
  public func write(_ file: StoreFileHandle, at offset: Int64, _ bytes: RawSpan) throws(FileSystemError) -> Int {
    guard let sealed = sealed(file) else { return try base.write(file, at: offset, bytes) }
    return try sealed.write(at: offset, bytes)
  }

  /// The status, with the size of the contents.
  public func status(of file: StoreFileHandle) throws(FileSystemError) -> StoreFileStatus {
    let status = try base.status(of: file)
    return sealed(file) == nil ? status : status.opened
  }

  /// The status, with the size that the contents have if the file is encrypted.
  public func status(of name: String, in directory: StoreFileHandle) throws(FileSystemError) -> StoreFileStatus {
    try base.status(of: name, in: directory).opened
  }

  /// Reserves space for the encrypted contents.
  public func allocate(_ byteCount: Int64, for file: StoreFileHandle) throws(FileSystemError) {
    try base.allocate(sealed(file) == nil ? byteCount : SealedLayout.sealedByteCount(of: byteCount), for: file)
  }

  /// Sets the size of the contents.
  public func setSize(_ byteCount: Int64, of file: StoreFileHandle) throws(FileSystemError) {
    guard let sealed = sealed(file) else { return try base.setSize(byteCount, of: file) }
    try sealed.setSize(byteCount)
  }

  /// Closes the file.
  public func close(_ file: StoreFileHandle) throws(FileSystemError) {
    // Before the call, because another file may get the number as soon as this one is closed.
    files.withLock { $0[file.number] = nil }
    try base.close(file)
  }
}

extension StoreFileStatus {
  /// The status with the size of the contents.
  fileprivate var opened: StoreFileStatus {
    var status = self
    if kind == .regular { status.identity.size = SealedLayout.byteCount(ofSealed: identity.size) }
    return status
  }
}
