import CHoldfastSQLite
import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// A SQLite file system (VFS) that makes calls fail, and records writes and synchronizations.
///
/// It is registered as the default of a separate process before that process opens a store. The store wraps the default file system, so this one
/// needs no change in the store.
enum WatchedFileSystem {
  enum Call: String, CaseIterable, Sendable {
    case open, delete, access, read, write, truncate, synchronize, size, lock, unlock, mapIndex, lockIndex
  }

  /// A call that fails.
  struct Fault: CustomStringConvertible {
    /// How much of the call is done anyway.
    enum Part: String { case none, half, whole }

    var call: Call
    /// The number of the failing call since the fault was set; 1 for the first.
    var nth: Int
    /// SQLite's code and the system's number.
    var code: Int32
    var number: Int32
    var part = Part.none
    /// Whether all later calls of the kind fail too.
    var isPersistent = false

    var description: String {
      "\(call.rawValue) \(nth) fails with \(code), errno \(number), \(part.rawValue) of it done\(isPersistent ? ", for good" : "")"
    }
  }

  /// One opening of a file.
  struct OpenFile {
    var name: String
    var number: Int
  }

  /// A call that changed or synchronized a file.
  enum Event {
    case create(String)
    case write(OpenFile, Int, [UInt8])
    case truncate(OpenFile, Int)
    case synchronize(OpenFile)
    case failToSynchronize(OpenFile)
    case delete(String, isSynchronized: Bool)
    /// A save returned.
    case mark(Int)
  }

  private struct State {
    var counts: [Call: Int] = [:]
    var fault: Fault?
    var hits = 0
    var number: Int32 = 0
    var names: [String] = []
    var events: [Event] = []
    var records = false
  }

  private static let state = Mutex(State())

  // MARK: For tests

  /// Replaces the fault, and resets the counts of calls.
  static func set(_ fault: Fault?) {
    state.withLock { ($0.fault, $0.hits, $0.counts) = (fault, 0, [:]) }
  }

  /// How often the fault occurred.
  static var hits: Int { state.withLock { $0.hits } }
  /// How often each call was made since the last fault was set.
  static var counts: [Call: Int] { state.withLock { $0.counts } }

  static func startRecording() { state.withLock { ($0.records, $0.events) = (true, []) } }

  static func stopRecording() -> [Event] {
    state.withLock { state in
      state.records = false
      return state.events
    }
  }

  static func mark(_ number: Int) { note(.mark(number)) }

  private static func note(_ event: @autoclosure () -> Event) {
    guard state.withLock({ $0.records }) else { return }
    let event = event()
    state.withLock { $0.events.append(event) }
  }

  // MARK: Faults

  /// Counts a call, and returns its fault if it fails.
  private static func failure(of call: Call) -> Fault? {
    state.withLock { state in
      state.counts[call, default: 0] += 1
      guard let fault = state.fault, fault.call == call, let count = state.counts[call] else { return nil }
      guard fault.isPersistent ? count >= fault.nth : count == fault.nth else { return nil }
      state.hits += 1
      state.number = fault.number
      errno = fault.number
      return fault
    }
  }

  private static func run(_ call: Call, _ body: () -> Int32) -> Int32 {
    guard let fault = failure(of: call) else { return body() }
    if fault.part == .whole { _ = body() }
    errno = fault.number
    return fault.code
  }

  // MARK: The file system

  /// Registers it as the default, once.
  static func install() { precondition(isInstalled, "SQLite has no default file system.") }

  private static let isInstalled: Bool = {
    guard let system = sqlite3_vfs_find(nil) else { return false }
    let watched = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
    watched.initialize(to: system.pointee)
    watched.pointee.iVersion = 2
    watched.pointee.zName = UnsafePointer(strdup("watched"))
    watched.pointee.pAppData = UnsafeMutableRawPointer(system)
    watched.pointee.szOsFile = Int32(headBytes) + system.pointee.szOsFile
    watched.pointee.xOpen = { open($0, $1, $2, $3, $4) }
    watched.pointee.xDelete = { vfs, path, syncsFolder in
      let (system, name) = (under(vfs), name(path))
      return run(.delete) {
        let code = system.pointee.xDelete(system, path, syncsFolder)
        if code == SQLITE_OK { note(.delete(name, isSynchronized: syncsFolder != 0)) }
        return code
      }
    }
    watched.pointee.xAccess = { vfs, path, flags, result in
      let system = under(vfs)
      return run(.access) { system.pointee.xAccess(system, path, flags, result) }
    }
    watched.pointee.xGetLastError = { vfs, count, text in
      let number = state.withLock { state in
        defer { state.number = 0 }
        return state.number
      }
      let system = under(vfs)
      return number != 0 ? number : system.pointee.xGetLastError(system, count, text)
    }
    return sqlite3_vfs_register(watched, 1) == SQLITE_OK
  }()

  private static func under(_ vfs: UnsafeMutablePointer<sqlite3_vfs>?) -> UnsafeMutablePointer<sqlite3_vfs> {
    guard let system = vfs?.pointee.pAppData else { preconditionFailure("SQLite called a file system without naming it.") }
    return system.assumingMemoryBound(to: sqlite3_vfs.self)
  }

  private static func name(_ path: UnsafePointer<CChar>?) -> String {
    path.map { String(cString: $0).split(separator: "/").last.map(String.init) ?? "" } ?? "temporary"
  }

  // MARK: Files

  /// The structure before the file of the underlying file system.
  private struct Head {
    var file: sqlite3_file
    /// The index of the name, unique for each open file.
    var number: Int
  }

  private static let headBytes = 64

  private static func head(_ file: UnsafeMutablePointer<sqlite3_file>?) -> UnsafeMutablePointer<Head> {
    guard let file else { preconditionFailure("SQLite called a file's function without the file.") }
    return UnsafeMutableRawPointer(file).assumingMemoryBound(to: Head.self)
  }

  private static func under(_ file: UnsafeMutablePointer<sqlite3_file>?) -> UnsafeMutablePointer<sqlite3_file> {
    UnsafeMutableRawPointer(head(file)).advanced(by: headBytes).assumingMemoryBound(to: sqlite3_file.self)
  }

  private static func opened(_ file: UnsafeMutablePointer<sqlite3_file>?) -> OpenFile {
    let number = head(file).pointee.number
    return OpenFile(name: state.withLock { $0.names[number] }, number: number)
  }

  private static func open(
    _ vfs: UnsafeMutablePointer<sqlite3_vfs>?, _ path: UnsafePointer<CChar>?, _ file: UnsafeMutablePointer<sqlite3_file>?, _ flags: Int32,
    _ flagsOut: UnsafeMutablePointer<Int32>?
  ) -> Int32 {
    head(file).pointee.file.pMethods = nil
    let (system, name) = (under(vfs), name(path))
    let isNew = path.map { access($0, F_OK) != 0 } ?? true
    let code = run(.open) { system.pointee.xOpen(system, path, under(file), flags, flagsOut) }
    guard code == SQLITE_OK else { return code }
    if isNew { note(.create(name)) }
    head(file).pointee.number = state.withLock { state in
      state.names.append(name)
      return state.names.count - 1
    }
    head(file).pointee.file.pMethods = UnsafePointer(methods)
    return code
  }

  /// Never changed after initialization.
  nonisolated(unsafe) private static let methods: UnsafeMutablePointer<sqlite3_io_methods> = {
    var methods = sqlite3_io_methods()
    methods.iVersion = 2
    contents(&methods)
    locks(&methods)
    methods.xFileControl = { WatchedFileSystem.under($0).pointee.pMethods.pointee.xFileControl(WatchedFileSystem.under($0), $1, $2) }
    methods.xSectorSize = { WatchedFileSystem.under($0).pointee.pMethods.pointee.xSectorSize(WatchedFileSystem.under($0)) }
    methods.xDeviceCharacteristics = {
      WatchedFileSystem.under($0).pointee.pMethods.pointee.xDeviceCharacteristics(WatchedFileSystem.under($0))
    }
    methods.xClose = { WatchedFileSystem.under($0).pointee.pMethods.pointee.xClose(WatchedFileSystem.under($0)) }
    let made = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
    made.initialize(to: methods)
    return made
  }()

  private static func contents(_ methods: inout sqlite3_io_methods) {
    methods.xRead = { file, bytes, count, offset in
      WatchedFileSystem.run(.read) {
        WatchedFileSystem.under(file).pointee.pMethods.pointee.xRead(WatchedFileSystem.under(file), bytes, count, offset)
      }
    }
    methods.xWrite = { file, bytes, count, offset in
      let fault = WatchedFileSystem.failure(of: .write)
      let share = fault.map { $0.part == .whole ? count : $0.part == .half ? count / 2 : 0 } ?? count
      var code = SQLITE_OK
      if share > 0 {
        code = WatchedFileSystem.under(file).pointee.pMethods.pointee.xWrite(WatchedFileSystem.under(file), bytes, share, offset)
        if code == SQLITE_OK {
          WatchedFileSystem.note(
            .write(WatchedFileSystem.opened(file), Int(offset), Array(UnsafeRawBufferPointer(start: bytes, count: Int(share)))))
        }
      }
      return fault?.code ?? code
    }
    methods.xTruncate = { file, size in
      WatchedFileSystem.run(.truncate) {
        WatchedFileSystem.note(.truncate(WatchedFileSystem.opened(file), Int(size)))
        return WatchedFileSystem.under(file).pointee.pMethods.pointee.xTruncate(WatchedFileSystem.under(file), size)
      }
    }
    methods.xSync = { file, flags in
      let code = WatchedFileSystem.run(.synchronize) {
        WatchedFileSystem.under(file).pointee.pMethods.pointee.xSync(WatchedFileSystem.under(file), flags)
      }
      WatchedFileSystem.note(
        code == SQLITE_OK ? .synchronize(WatchedFileSystem.opened(file)) : .failToSynchronize(WatchedFileSystem.opened(file)))
      return code
    }
    methods.xFileSize = { file, size in
      WatchedFileSystem.run(.size) { WatchedFileSystem.under(file).pointee.pMethods.pointee.xFileSize(WatchedFileSystem.under(file), size) }
    }
  }

  private static func locks(_ methods: inout sqlite3_io_methods) {
    methods.xLock = { file, level in
      WatchedFileSystem.run(.lock) { WatchedFileSystem.under(file).pointee.pMethods.pointee.xLock(WatchedFileSystem.under(file), level) }
    }
    methods.xUnlock = { file, level in
      WatchedFileSystem.run(.unlock) {
        WatchedFileSystem.under(file).pointee.pMethods.pointee.xUnlock(WatchedFileSystem.under(file), level)
      }
    }
    methods.xCheckReservedLock = {
      WatchedFileSystem.under($0).pointee.pMethods.pointee.xCheckReservedLock(WatchedFileSystem.under($0), $1)
    }
    methods.xShmMap = { file, region, size, extends, memory in
      WatchedFileSystem.run(.mapIndex) {
        WatchedFileSystem.under(file).pointee.pMethods.pointee.xShmMap(WatchedFileSystem.under(file), region, size, extends, memory)
      }
    }
    methods.xShmLock = { file, place, count, flags in
      // SQLite expects that releasing a lock never fails.
      if flags & SQLITE_SHM_UNLOCK != 0 {
        return WatchedFileSystem.under(file).pointee.pMethods.pointee.xShmLock(WatchedFileSystem.under(file), place, count, flags)
      }
      return WatchedFileSystem.run(.lockIndex) {
        WatchedFileSystem.under(file).pointee.pMethods.pointee.xShmLock(WatchedFileSystem.under(file), place, count, flags)
      }
    }
    methods.xShmBarrier = { WatchedFileSystem.under($0).pointee.pMethods.pointee.xShmBarrier(WatchedFileSystem.under($0)) }
    methods.xShmUnmap = { WatchedFileSystem.under($0).pointee.pMethods.pointee.xShmUnmap(WatchedFileSystem.under($0), $1) }
  }
}

extension [WatchedFileSystem.Event] {
  /// The files that were synchronized successfully after a failure, without all data having been written again. A reopened file counts as
  /// another file.
  var filesTrustedAfterFailing: [String] {
    /// The offsets written and not yet synchronized, and the offsets among them whose synchronization failed.
    var written: [Int: Set<Int>] = [:], lost: [Int: Set<Int>] = [:]
    var found: [String] = []
    for event in self {
      switch event {
      case .write(let file, let place, _):
        written[file.number, default: []].insert(place)
        lost[file.number]?.remove(place)
      case .truncate(let file, let size): lost[file.number] = lost[file.number]?.filter { $0 < size }
      case .failToSynchronize(let file): lost[file.number, default: []].formUnion(written[file.number] ?? [])
      case .synchronize(let file):
        if lost[file.number]?.isEmpty == false { found.append(file.name) }
        written[file.number] = nil
      default: break
      }
    }
    return found
  }

  /// The logs that were synchronized successfully after a failure, although the first lost data wasn't written again. All that follows it
  /// in a log would be lost, too. The system drops data of a file, so a reopened file is the same one.
  var logsTrustedAfterFailing: [String] {
    var written: [String: Set<Int>] = [:], lost: [String: Int] = [:]
    var found: [String] = []
    for event in self {
      switch event {
      case .write(let file, let place, let bytes) where file.name.hasSuffix("-wal"):
        written[file.name, default: []].insert(place)
        if let first = lost[file.name], (place..<place + bytes.count).contains(first) { lost[file.name] = nil }
      case .failToSynchronize(let file) where file.name.hasSuffix("-wal"):
        lost[file.name] = [lost[file.name], written[file.name]?.min()].compactMap { $0 }.min()
      case .synchronize(let file) where file.name.hasSuffix("-wal"):
        if lost[file.name] != nil { found.append(file.name) }
        written[file.name] = nil
      default: break
      }
    }
    return found
  }
}

/// SQLite's codes of failed calls. Its header defines them by macros that Swift doesn't import.
enum FailedCall {
  static let read = code(1), write = code(3), synchronize = code(4), truncate = code(6), size = code(7), unlock = code(8)
  static let synchronizeFolder = code(5)
  static let delete = code(10), access = code(13), lock = code(15), lockIndex = code(20), mapIndex = code(21)

  private static func code(_ number: Int32) -> Int32 { SQLITE_IOERR | number << 8 }
}
