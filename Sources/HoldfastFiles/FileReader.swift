public import HoldfastStore

/// The bytes of one state of a file, from the first to the last, in pieces.
///
/// It hands out exactly the bytes that the file had when it was opened. Valid only while the closure that it was given
/// to runs; its ``bytes`` can be kept.
public final class FileReader {
  /// The most bytes of a piece.
  public static let largestChunk = 1 << 20

  /// How many bytes the file has.
  public let byteCount: Int64
  /// Which state of the file this is.
  public let identity: FileIdentity

  private let file: KeptFile
  private let folder: OpenFolder
  private let operation: String
  private let chunk: UnsafeMutableRawBufferPointer
  private var offset: Int64 = 0
  /// Whether bytes were missing that the file had when it was opened: somebody cut it off meanwhile.
  private(set) var foundEarlyEnd = false
  private var isEnded = false

  init(file: KeptFile, identity: FileIdentity, folder: OpenFolder, operation: String) {
    self.file = file
    self.identity = identity
    self.folder = folder
    self.operation = operation
    byteCount = identity.size
    let count = Int(min(Int64(Self.largestChunk), max(identity.size, 1)))
    chunk = .allocate(byteCount: count, alignment: 16)
  }

  deinit { chunk.deallocate() }

  /// The next piece, up to ``largestChunk`` bytes; nil after the last. Valid until the next call.
  ///
  /// All pieces but the last have the full size.
  ///
  /// - Throws: ``/HoldfastStore/StoreError`` when the disk fails or the file became shorter meanwhile. Pass the latter on: the closure
  ///   is then called again with a new reader.
  public func next() throws(StoreError) -> UnsafeRawBufferPointer? {
    precondition(!isEnded, "A FileReader can be used only while the closure that it was given to runs.")
    let wanted = Int(min(Int64(chunk.count), byteCount - offset))
    guard wanted > 0 else { return nil }
    try fill(wanted)
    offset += Int64(wanted)
    return UnsafeRawBufferPointer(rebasing: chunk[..<wanted])
  }

  /// Begins again: the next piece is the first.
  public func rewind() { offset = 0 }

  /// The bytes from any place on, which can be kept when the closure has returned.
  public var bytes: FileBytes { FileBytes(file, byteCount: byteCount, path: folder.path) }

  /// Reads until the number of bytes is there: the one place where short reads are made whole.
  private func fill(_ wanted: Int) throws(StoreError) {
    var count = 0
    while count < wanted {
      let got: Int
      do throws(FileSystemError) {
        got = try file.read(at: offset + Int64(count), into: UnsafeMutableRawBufferPointer(rebasing: chunk[count..<wanted]))
      } catch {
        throw StoreError(error, operation: operation, path: folder.path)
      }
      guard got > 0 else {
        foundEarlyEnd = true
        throw folder.changing(operation: operation)
      }
      count += got
    }
  }

  /// Makes further use a programmer's error.
  func end() { isEnded = true }
}

extension OpenFolder {
  /// How often a file is read that somebody else changes at the same time.
  private static let attempts = 3

  /// What came of one attempt to read.
  private enum Attempt<Result> {
    case missing
    case read(Result, StoreFileStatus, KeptFile)
    case changed
  }

  /// Steps 3 and 4 of opening: reads a file of the folder and tells what it was; nil when there is none.
  ///
  /// The body is called again, at most ``attempts`` times in all, when the file changed while it was read.
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
    try check(status, operation: operation)
    guard status.identity.size <= options.largestByteCount else {
      throw tooLarge(status.identity.size, options: options, operation: operation)
    }
    let reader = FileReader(file: kept, identity: status.identity, folder: self, operation: operation)
    defer { reader.end() }
    do {
      let result = try body(reader)
      return try isUnchanged(file, reader, operation) ? .read(result, status, kept) : .changed
    } catch {
      // What looked wrong may have been half of somebody's change.
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

  /// Whether the bytes are those of the moment when the file was opened. That it was replaced since does not matter: what
  /// was read is then the previous version, whole.
  private func isUnchanged(_ file: StoreFileHandle, _ reader: FileReader, _ operation: String) throws(StoreError) -> Bool {
    guard !reader.foundEarlyEnd else { return false }
    return try status(of: file, operation: operation).identity.hasSameBytes(as: reader.identity)
  }

  fileprivate func changing(operation: String) -> StoreError {
    StoreError(
      .inputOutput, operation: operation, path: path,
      reason: "Another program kept changing the file while it was read. Try again when that program is done.", isRetryable: true)
  }

  func tooLarge(_ byteCount: Int64, options: DurableFileOptions, operation: String) -> StoreError {
    StoreError(
      .tooLarge, operation: operation, path: path,
      reason:
        "The file has \(byteCount) bytes, and the options allow \(options.largestByteCount). Allow more if it is meant to be so large.")
  }
}
