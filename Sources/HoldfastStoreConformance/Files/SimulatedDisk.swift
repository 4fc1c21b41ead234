/// The contents of a simulated disk: files by number, and one folder of names that refer to them.
struct SimulatedDisk: Sendable {
  struct File: Sendable {
    var bytes: [UInt8] = []
    var isFolder = false
    var permissions: UInt32 = 0o600
    var owner: UInt32 = 0
    var group: UInt32 = 0
    /// Nanoseconds of the disk's own clock, which advances by one with every change.
    var modified: Int64 = 0
    var changed: Int64 = 0
  }

  var files: [UInt64: File] = [:]
  var entries: [String: UInt64] = [:]
  private(set) var clock: Int64 = 0
  private var nextFile: UInt64 = 10

  mutating func newNumber() -> UInt64 {
    defer { nextFile += 1 }
    return nextFile
  }

  /// Reserves a number from a recording, so that no new file gets it.
  private mutating func take(_ number: UInt64) { nextFile = max(nextFile, number + 1) }

  mutating func apply(_ change: DiskChange) {
    clock += 1
    switch change {
    case .create(let name, let file):
      take(file)
      files[file] = File(modified: clock, changed: clock)
      entries[name] = file
    case .makeFolder(let name, let file):
      take(file)
      // If a folder of that name was lost, its contents are lost as well.
      for path in entries.keys where path.hasPrefix(name + "/") { entries[path] = nil }
      files[file] = File(isFolder: true, permissions: 0o700, modified: clock, changed: clock)
      entries[name] = file
    case .write(let file, let offset, let bytes):
      modify(file) { $0.write(bytes, at: offset) }
    case .setSize(let file, let size):
      modify(file) { $0.setSize(size) }
    case .setAccess(let file, let permissions, let owner, let group):
      files[file]?.permissions = permissions
      files[file]?.owner = owner
      files[file]?.group = group
      files[file]?.changed = clock
    case .rename(let name, let newName, let file):
      entries[name] = nil
      entries[newName] = file
      files[file]?.changed = clock
    case .link(let newName, let file):
      entries[newName] = file
      files[file]?.changed = clock
    case .unlink(let name):
      entries[name] = nil
    }
  }

  /// Applies a change with the outcome of a power loss.
  mutating func apply(_ change: DiskChange, as outcome: CrashOutcome, _ random: inout DiskRandom) {
    switch (outcome, change) {
    case (.absent, .create(_, let file)):
      // The name is lost, but a later change of names can still refer to the file.
      take(file)
      files[file] = File()
    case (.absent, _): break
    case (.present, _): apply(change)
    case (_, .write(let file, let offset, let bytes)):
      modify(file) { $0.write(outcome.remains(of: bytes, &random), at: offset, size: outcome == .torn ? nil : offset + bytes.count) }
    case (_, _): apply(change)
    }
  }

  private mutating func modify(_ file: UInt64, _ body: (inout File) -> Void) {
    clock += 1
    files[file]?.modify(at: clock, body)
  }
}

extension SimulatedDisk.File {
  fileprivate mutating func modify(at time: Int64, _ body: (inout Self) -> Void) {
    body(&self)
    modified = time
    changed = time
  }

  /// Writes bytes at an offset, and extends the file to at least `size`.
  fileprivate mutating func write(_ new: [UInt8], at offset: Int, size: Int? = nil) {
    setSize(max(bytes.count, offset + new.count, size ?? 0))
    // Thousands of states are created from the same changes, even in debug builds, so bytes are copied in bulk.
    bytes.withUnsafeMutableBytes { UnsafeMutableRawBufferPointer(rebasing: $0[offset...]).copyBytes(from: new) }
  }

  fileprivate mutating func setSize(_ size: Int) {
    if size < bytes.count { bytes.removeLast(bytes.count - size) } else { bytes += [UInt8](repeating: 0, count: size - bytes.count) }
  }
}

/// One change of a disk.
enum DiskChange: Sendable {
  case create(name: String, file: UInt64)
  case makeFolder(name: String, file: UInt64)
  case write(file: UInt64, offset: Int, bytes: [UInt8])
  case setSize(file: UInt64, size: Int)
  case setAccess(file: UInt64, permissions: UInt32, owner: UInt32, group: UInt32)
  case rename(name: String, newName: String, file: UInt64)
  case link(newName: String, file: UInt64)
  case unlink(name: String)

  /// The file whose contents change, or nil for changes of names or access.
  var contentsOf: UInt64? {
    switch self {
    case .write(let file, _, _), .setSize(let file, _): file
    case .create, .makeFolder, .setAccess, .rename, .link, .unlink: nil
    }
  }

  /// The path of the folder whose names change, with a trailing slash, or an empty string for `/`; nil if no names change.
  var folder: String? {
    switch self {
    case .create(let name, _), .makeFolder(let name, _), .rename(_, let name, _), .link(let name, _), .unlink(let name):
      String(name[..<(name.lastIndex(of: "/").map { name.index(after: $0) } ?? name.startIndex)])
    case .write, .setSize, .setAccess: nil
    }
  }

  /// The possible outcomes after a power loss if the change isn't durable.
  var outcomes: [CrashOutcome] {
    switch self {
    case .write(_, _, let bytes): bytes.isEmpty ? [.present] : CrashOutcome.allCases
    case .setSize, .create, .makeFolder, .rename, .link, .unlink: [.absent, .present]
    // Wrong permissions don't damage contents, so they needn't multiply the number of states.
    case .setAccess: [.present]
    }
  }
}

/// What a power loss leaves of a change that wasn't durable.
enum CrashOutcome: Sendable, CaseIterable {
  /// Nothing.
  case absent
  /// The entire change.
  case present
  /// The first half of the bytes, and a file size to match.
  case torn
  /// The first half of the bytes, followed by zeros.
  case zeroTail
  /// The first half of the bytes, followed by random bytes.
  case garbageTail
  /// The file size, with zeros instead of the bytes.
  case sizeWithoutData

  /// The bytes that remain.
  func remains(of bytes: [UInt8], _ random: inout DiskRandom) -> [UInt8] {
    let half = bytes.count / 2
    switch self {
    case .absent: return []
    case .present: return bytes
    case .torn: return Array(bytes[..<half])
    case .zeroTail: return Array(bytes[..<half]) + [UInt8](repeating: 0, count: bytes.count - half)
    case .garbageTail: return Array(bytes[..<half]) + random.bytes(bytes.count - half)
    case .sizeWithoutData: return []
    }
  }
}
