import CHoldfastSQLite
import HoldfastFiles
import HoldfastStore

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#elseif canImport(Darwin)
  import Darwin
#endif

/// A copy of a database file that may be damaged, with the pages of its log or journal in place. It is removed with this object.
///
/// Only the copy is ever opened through SQLite, because opening a file can change it.
final class DamagedFile {
  /// The path of the copy.
  let path: String
  /// Why the log or the journal couldn't be applied; nil if it was, or there was none.
  let problem: String?

  private static let operation = RepairRequest.operation

  /// Copies a file, its log and its journal.
  ///
  /// - Parameters:
  ///   - beside: A path in the folder for the copy.
  ///   - request: The options of the request, which is cancelled between two parts of the file.
  /// - Throws: `locked` if another process has the file open, `alreadyOpen` if this one has, `notFound`, `notAStore` for an empty file,
  ///   `failed` for a journal that names other files, and errors of reading and writing.
  init(copying original: String, beside: String, _ options: SQLiteStoreOptions, _ request: RequestOptions) throws {
    var options = options
    options.isReadOnly = true
    // While the file is registered, no connection of this process can lose its locks when the descriptor is closed.
    let (file, registration) = try OpenFileRegistry.register { _ throws(StoreError) in
      let file = try SQLiteFile.locate(original, options: options)
      if OperatingSystem.status(ofOpenFile: file.node) == nil { return file }
      // Perhaps without this framework.
      throw StoreError(
        .alreadyOpen, operation: Self.operation, path: file.path,
        reason: "This process has the file open, and would lose its locks. Close the file first.")
    }
    defer { withExtendedLifetime(registration) {} }
    try CompanionFiles(databaseName: file.name.text).checkJournal(path: file.path)
    let copy = ClosedFile.unusedPath(beside: beside)
    path = copy
    do {
      try Self.copy(file, to: copy, request)
      problem = try Self.applyLogs(copy)
    } catch let error as FileSystemError {
      Self.remove(copy)
      throw StoreError(error, operation: Self.operation, path: file.path)
    } catch {
      Self.remove(copy)
      throw error
    }
  }

  deinit { Self.remove(path) }

  private static func remove(_ path: String) {
    try? OperatingSystem.remove([path] + CompanionFiles.paths(of: path), operation)
  }

  private static func size(_ path: String) -> Int64 { (try? OperatingSystem.status(of: path).identity.size) ?? 0 }

  // MARK: Copying

  private static let files = POSIXFileSystem()

  private static func copy(_ file: SQLiteFile, to copy: String, _ request: RequestOptions) throws {
    let original = try files.openForReading(file.path, in: .workingDirectory)
    // Closing releases the lock.
    defer { try? files.close(original) }
    let before = identities(file)
    guard lock(original.number) else { throw inUse(file) }
    try Self.copy(original, to: copy, beginning: mendedHeader(original, log: file.name.text + "-wal"), request)
    for suffix in ["-wal", "-journal"] {
      let companion: StoreFileHandle
      do throws(FileSystemError) { companion = try files.openForReading(file.name.text + suffix, in: .workingDirectory) } catch {
        if error.number == ErrorNumber.notFound { continue }
        throw error
      }
      defer { try? files.close(companion) }
      try Self.copy(companion, to: copy + suffix, request)
    }
    // A process may have opened the file meanwhile.
    guard identities(file) == before else { throw inUse(file) }
  }

  private static func identities(_ file: SQLiteFile) -> [FileIdentity?] {
    ["", "-wal", "-journal"].map { try? OperatingSystem.status(of: file.name.text + $0).identity }
  }

  private static func inUse(_ file: SQLiteFile) -> StoreError {
    StoreError(
      .locked, operation: operation, path: file.path, reason: "Another process has the file open. End it and try again.", isRetryable: true)
  }

  /// - Parameter beginning: What the copy begins with, instead of as many bytes of the file.
  private static func copy(
    _ original: StoreFileHandle, to path: String, beginning: [UInt8] = [], _ request: RequestOptions
  ) throws {
    let copy = try files.create(path, in: .workingDirectory)
    defer { try? files.close(copy) }
    try files.writeAll(beginning, to: copy, at: 0)
    var offset = Int64(beginning.count)
    while true {
      try request.check(operation)
      let bytes = try files.bytes(of: original, at: offset, count: 1 << 20)
      if bytes.isEmpty { return }
      try files.writeAll(bytes, to: copy, at: offset)
      offset += Int64(bytes.count)
    }
  }

  /// Takes the lock of a reader, and returns whether no other process has any lock. Connections with a log keep theirs while they are open.
  ///
  /// The bytes are those of SQLite's locks (*Database File Format*, 1.4).
  private static func lock(_ descriptor: Int32) -> Bool {
    var lock = flock()
    (lock.l_type, lock.l_whence, lock.l_start, lock.l_len) = (Int16(F_RDLCK), Int16(SEEK_SET), 0x4000_0002, 510)
    guard fcntl(descriptor, F_SETLK, &lock) == 0 else { return false }
    (lock.l_type, lock.l_start, lock.l_len) = (Int16(F_WRLCK), 0x4000_0000, 512)
    return fcntl(descriptor, F_GETLK, &lock) == 0 && lock.l_type == Int16(F_UNLCK)
  }

  // MARK: The header

  /// A valid header for a file whose own one is damaged; empty if it isn't.
  private static func mendedHeader(_ file: StoreFileHandle, log: String) throws(FileSystemError) -> [UInt8] {
    let header = try files.bytes(of: file, at: 0, count: DamagedPages.headerByteCount)
    let logged = try loggedPageSize(log), likely = try mostLikelyPageSize(file, named: DatabaseHeader.pageSize(header))
    if let named = DatabaseHeader.pageSize(header), named == logged ?? likely { return [] }
    let pageSize = logged ?? likely
    let count = Int(try files.status(of: file).identity.size) / pageSize
    let second = try files.bytes(of: file, at: Int64(pageSize), count: pageSize)
    let hasParents = second.count == pageSize && DatabaseHeader.hasParentEntries(second, pageCount: count)
    return DatabaseHeader.replacement(pageSize: pageSize, hasLog: logged != nil, hasParents: hasParents)
  }

  /// The size of pages in a log's header; nil without a log.
  private static func loggedPageSize(_ path: String) throws(FileSystemError) -> Int? {
    guard size(path) > LogHeader.byteCount else { return nil }
    let log = try files.openForReading(path, in: .workingDirectory)
    defer { try? files.close(log) }
    guard let header = LogHeader(try files.bytes(of: log, at: 0, count: Int(LogHeader.byteCount))), header.isSound else { return nil }
    return header.pageSize
  }

  /// The size with which most of the beginning of the file consists of pages of trees. A multiple of the right size has the same share.
  ///
  /// - Parameter named: The size in the header, if it can be one. It is taken unless another one agrees with the first page, and it doesn't.
  private static func mostLikelyPageSize(_ file: StoreFileHandle, named: Int?) throws(FileSystemError) -> Int {
    let sizes = (9...16).map { 1 << $0 }
    if let named {
      if try firstPageFits(file, named) { return named }
      for size in sizes where size != named { if try firstPageFits(file, size) { return size } }
      return named
    }
    let beginning = try files.bytes(of: file, at: 0, count: 1 << 20)
    let shares = sizes.map { size -> (size: Int, share: Double) in
      let count = beginning.count / size
      let pages = (0..<count).filter { index in
        TreePage(Array(beginning[index * size..<(index + 1) * size]), number: 2, usableSize: size) != nil
      }
      return (size, count == 0 ? 0 : Double(pages.count) / Double(count))
    }
    let best = shares.map(\.share).max() ?? 0
    return best == 0 ? DatabaseHeader.usualPageSize : shares.first { $0.share >= 0.75 * best }?.size ?? DatabaseHeader.usualPageSize
  }

  /// Whether the first page has the cells or children of a page of this size, without reserved bytes or with those of the header.
  private static func firstPageFits(_ file: StoreFileHandle, _ size: Int) throws(FileSystemError) -> Bool {
    let bytes = try files.bytes(of: file, at: 0, count: size)
    if bytes.count < size { return false }
    for usable in Set([size, size - min(Int(bytes[20]), size - 480)]) {
      guard let page = TreePage(bytes, number: 1, usableSize: usable) else { continue }
      if page.kind == .tableLeaf {
        if page.cells.allSatisfy({ $0.flatMap { page.cell(at: $0, usableSize: usable) } != nil }) { return true }
        continue
      }
      guard page.kind == .tableInterior, let last = page.lastChild else { continue }
      var areTables = true
      for child in page.cells.map({ $0.flatMap { page.child(at: $0)?.page } ?? 0 }) + [last] {
        let content = child < 2 ? [] : try files.bytes(of: file, at: Int64(child - 1) * Int64(size), count: size)
        if content.count < size || TreePage(content, number: child, usableSize: usable)?.kind.isTable != true { areTables = false }
      }
      if areTables { return true }
    }
    return false
  }

  // MARK: The log

  private static let missing = "so the last changes may be missing or incomplete."

  /// Lets SQLite move the log into the file, or roll a journal back. Returns what prevented that.
  private static func applyLogs(_ path: String) throws(FileSystemError) -> String? {
    if size(path + "-wal") == 0 && size(path + "-journal") == 0 { return nil }
    // SQLite removes a journal, and empties a log, that it takes for an old one.
    let (commits, isSound) = try loggedCommits(path + "-wal"), isJournalSound = try isJournalSound(path + "-journal")
    var handle: OpaquePointer?
    defer { sqlite3_close_v2(handle) }
    var frames: Int32 = 0
    var code = sqlite3_open_v2(path, &handle, SQLITE_OPEN_READWRITE, nil)
    if code == SQLiteResultCode.ok {
      // With this setting, SQLite opens a file that is shorter than its header says.
      sqlite3_exec(handle, "PRAGMA writable_schema=ON", nil, nil, nil)
      // Reading rolls a journal back.
      sqlite3_exec(handle, "PRAGMA schema_version", nil, nil, nil)
      code = sqlite3_wal_checkpoint_v2(handle, "main", SQLITE_CHECKPOINT_PASSIVE, &frames, nil)
      if code == SQLiteResultCode.ok { code = sqlite3_wal_checkpoint_v2(handle, "main", SQLITE_CHECKPOINT_TRUNCATE, nil, nil) }
    }
    if code != SQLiteResultCode.ok {
      return "The log or journal beside the file couldn't be applied, \(missing) (\(String(cString: sqlite3_errstr(code))))"
    }
    if !isJournalSound { return "The journal beside the file is damaged, \(missing)" }
    if !isSound || commits.contains(where: { $0 > Int(frames) }) { return "The log beside the file is damaged, \(missing)" }
    return nil
  }

  /// The numbers of the frames that end saves, of those that carry the log's salt, and whether the log's header is sound.
  private static func loggedCommits(_ path: String) throws(FileSystemError) -> (frames: [Int], isSound: Bool) {
    let byteCount = size(path)
    if byteCount < LogHeader.byteCount { return ([], true) }
    let log = try files.openForReading(path, in: .workingDirectory)
    defer { try? files.close(log) }
    let beginning = try files.bytes(of: log, at: 0, count: Int(LogHeader.byteCount))
    guard let header = LogHeader(beginning), header.isSound else { return ([], beginning.allSatisfy { $0 == 0 }) }
    var commits: [Int] = [], number = 0, offset = LogHeader.byteCount
    while offset + Int64(24 + header.pageSize) <= byteCount {
      let frame = try files.bytes(of: log, at: offset, count: 24)
      guard frame[8..<16].elementsEqual(header.salt) else { break }
      number += 1
      if frame.bigEndian32(at: 4) != 0 { commits.append(number) }
      offset += Int64(24 + header.pageSize)
    }
    return (commits, true)
  }

  /// Whether a journal has its mark, or was made invalid by SQLite after a commit.
  private static func isJournalSound(_ path: String) throws(FileSystemError) -> Bool {
    if size(path) == 0 { return true }
    let journal = try files.openForReading(path, in: .workingDirectory)
    defer { try? files.close(journal) }
    let mark = try files.bytes(of: journal, at: 0, count: 8)
    return mark == [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7] || mark.allSatisfy { $0 == 0 }
  }
}

/// The header of a write-ahead log. See SQLite, *Database File Format*, 4.1.
private struct LogHeader {
  static let byteCount: Int64 = 32
  let pageSize: Int
  let salt: ArraySlice<UInt8>
  /// Whether its checksum is right.
  let isSound: Bool

  init?(_ bytes: [UInt8]) {
    guard bytes.count == Self.byteCount, bytes.bigEndian32(at: 0) | 1 == 0x377f_0683 else { return nil }
    pageSize = Int(bytes.bigEndian32(at: 8))
    salt = bytes[16..<24]
    let isBigEndian = bytes[3] & 1 == 1
    var (first, second): (UInt32, UInt32) = (0, 0)
    for place in stride(from: 0, to: 24, by: 8) {
      func word(_ place: Int) -> UInt32 { isBigEndian ? bytes.bigEndian32(at: place) : bytes.bigEndian32(at: place).byteSwapped }
      first = first &+ word(place) &+ second
      second = second &+ word(place + 4) &+ first
    }
    isSound =
      first == bytes.bigEndian32(at: 24) && second == bytes.bigEndian32(at: 28) && pageSize >= 512 && pageSize <= 65_536
      && pageSize & (pageSize - 1) == 0
  }
}
