public import HoldfastStore

/// Reads one state of a file sequentially, in chunks.
///
/// If the file is changed in place while the closure runs, the closure is called again. Its last call receives exactly the bytes that the
/// file had when it was opened. Valid only while the closure that receives it runs; its ``bytes`` can be kept longer.
public final class FileReader {
  /// The maximum size of a chunk in bytes.
  public static let maximumChunkByteCount = 1 << 20

  /// The size of the file in bytes.
  public let byteCount: Int64
  /// The state of the file.
  public let identity: FileIdentity

  private let source: Source
  private let operation: String
  private let chunk: UnsafeMutableRawBufferPointer
  private var offset: Int64 = 0
  /// Called before each chunk is read, with the number of bytes that were read. ``next()`` throws its errors. Defaults to nil.
  public var progress: ((Int64) throws(StoreError) -> Void)?
  /// Whether the file was truncated after it was opened.
  private(set) var foundEarlyEnd = false
  private var isEnded = false

  private enum Source {
    case file(KeptFile, OpenFolder)
    case bytes([UInt8], path: String)
  }

  /// Creates a reader of bytes in memory, which can be used at any time.
  ///
  /// - Parameters:
  ///   - bytes: The bytes.
  ///   - path: The path for error messages.
  public init(_ bytes: [UInt8], path: String) {
    source = .bytes(bytes, path: path)
    operation = "read the store"
    byteCount = Int64(bytes.count)
    identity = FileIdentity(device: 0, inode: 0, size: byteCount, modified: 0, changed: 0)
    chunk = .allocate(byteCount: min(Self.maximumChunkByteCount, max(bytes.count, 1)), alignment: 16)
  }

  init(file: KeptFile, identity: FileIdentity, folder: OpenFolder, operation: String) {
    source = .file(file, folder)
    self.identity = identity
    self.operation = operation
    byteCount = identity.size
    let count = Int(min(Int64(Self.maximumChunkByteCount), max(identity.size, 1)))
    chunk = .allocate(byteCount: count, alignment: 16)
  }

  deinit { chunk.deallocate() }

  /// The next chunk, with up to ``maximumChunkByteCount`` bytes; nil at the end. Valid until the next call.
  ///
  /// All chunks but the last have the full size.
  ///
  /// - Throws: ``/HoldfastStore/StoreError`` if the disk fails or the file was truncated meanwhile. Rethrow it to end the closure. If
  ///   the file was truncated, the closure is called again with a new reader.
  public func next() throws(StoreError) -> UnsafeRawBufferPointer? {
    precondition(!isEnded, "A FileReader can be used only while the closure that receives it runs.")
    let wanted = Int(min(Int64(chunk.count), byteCount - offset))
    guard wanted > 0 else { return nil }
    try progress?(offset)
    let piece = UnsafeMutableRawBufferPointer(rebasing: chunk[..<wanted])
    switch source {
    case .bytes(let bytes, _): piece.copyBytes(from: bytes[Int(offset)..<Int(offset) + wanted])
    case .file(let file, let folder): try fill(piece, from: file, folder)
    }
    offset += Int64(wanted)
    return UnsafeRawBufferPointer(piece)
  }

  private func fill(_ piece: UnsafeMutableRawBufferPointer, from file: KeptFile, _ folder: OpenFolder) throws(StoreError) {
    let count: Int
    do throws(FileSystemError) { count = try file.fileSystem.fill(piece, from: file.handle, at: offset) } catch {
      throw StoreError(error, operation: operation, path: folder.path)
    }
    guard count == piece.count else {
      foundEarlyEnd = true
      throw folder.changing(operation: operation)
    }
  }

  /// Reads the rest of the file for a repair: zeros where an encrypted file is damaged.
  ///
  /// - Throws: The errors of ``next()``, and `damaged` only if none of the bytes can be read.
  public func rest() throws -> [UInt8] {
    let start = offset
    var found: [UInt8] = []
    found.reserveCapacity(Int(clamping: byteCount - start))
    do throws(StoreError) {
      while let chunk = try next() { found += chunk }
    } catch {
      guard error.code == .damaged else { throw error }
      return try bytes.intactBytes(at: start, count: Int(clamping: byteCount - start), operation: operation)
    }
    return found
  }

  /// Starts over with the first chunk.
  public func rewind() { offset = 0 }

  /// Random access to the same bytes, which can be kept after the closure returns.
  public var bytes: FileBytes {
    switch source {
    case .bytes(let bytes, let path): FileBytes(bytes, path: path)
    case .file(let file, let folder): FileBytes(file, byteCount: byteCount, path: folder.path)
    }
  }

  /// Makes further use a programming error.
  func end() { isEnded = true }
}

extension OpenFolder {
  /// The number of attempts to read a file that another process changes meanwhile.
  private static let attempts = 3

  /// The result of one attempt to read.
  private enum Attempt<Result> {
    case missing
    case read(Result, StoreFileStatus, KeptFile)
    case changed
  }

  /// Steps 3 and 4 of opening: reads a file of the folder and returns its state; nil if there is none.
  ///
  /// If the file changed while it was read, the body is called again, at most ``attempts`` times in total.
  func read<Result>(_ name: String, options: DurableFileOptions, operation: String, _ body: (FileReader) throws -> Result) throws
    -> (result: Result, status: StoreFileStatus, file: KeptFile)?
  {
    for _ in 0..<Self.attempts {
      switch try attempt(name, options: options, operation: operation, body) {
      case .missing: return nil
      case .read(let result, let status, let file): return (result, status, file)
      case .changed: continue
      }
    }
    throw changing(operation: operation)
  }

  private func attempt<Result>(_ name: String, options: DurableFileOptions, operation: String, _ body: (FileReader) throws -> Result) throws
    -> Attempt<Result>
  {
    guard let kept = try open(name, operation: operation) else { return .missing }
    let file = kept.handle
    let status = try status(of: file, operation: operation)
    try check(status, options: options, operation: operation)
    guard status.identity.size <= options.maximumByteCount else {
      throw tooLarge(status.identity.size, options: options, operation: operation)
    }
    let reader = FileReader(file: kept, identity: status.identity, folder: self, operation: operation)
    defer { reader.end() }
    do {
      let result = try body(reader)
      return try isUnchanged(file, reader, operation) ? .read(result, status, kept) : .changed
    } catch {
      // An apparent error may be due to a partial change.
      guard try isUnchanged(file, reader, operation) else { return .changed }
      throw error
    }
  }

  private func open(_ name: String, operation: String) throws(StoreError) -> KeptFile? {
    do throws(FileSystemError) {
      return KeptFile(try fileSystem.openForReading(name, in: directory), of: fileSystem)
    } catch {
      guard error.number != ErrorNumber.notFound else { return nil }
      throw StoreError(error, operation: operation, path: path)
    }
  }

  /// The status of an open file.
  func status(of file: StoreFileHandle, operation: String) throws(StoreError) -> StoreFileStatus {
    do throws(FileSystemError) {
      return try fileSystem.status(of: file)
    } catch {
      throw StoreError(error, operation: operation, path: path)
    }
  }

  /// Whether the file wasn't changed in place since it was opened. A replacement doesn't matter: the complete previous version was
  /// read.
  private func isUnchanged(_ file: StoreFileHandle, _ reader: FileReader, _ operation: String) throws(StoreError) -> Bool {
    guard !reader.foundEarlyEnd else { return false }
    return try status(of: file, operation: operation).identity.hasSameBytes(as: reader.identity)
  }

  fileprivate func changing(operation: String) -> StoreError {
    StoreError(
      .inputOutput, operation: operation, path: path,
      reason: "Another program kept changing the file while it was being read. Try again when that program is done.", isRetryable: true)
  }

  func tooLarge(_ byteCount: Int64, options: DurableFileOptions, operation: String) -> StoreError {
    StoreError(
      .tooLarge, operation: operation, path: path,
      reason:
        "The file has \(byteCount) bytes; the limit is \(options.maximumByteCount) bytes. To allow more, raise maximumByteCount.")
  }
}
