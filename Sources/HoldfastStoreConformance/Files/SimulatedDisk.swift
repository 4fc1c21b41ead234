/// What is on a simulated disk: files by number, and one folder of names that lead to them.
struct SimulatedDisk: Sendable {
  struct File: Sendable {
    var bytes: [UInt8] = []
    var isFolder = false
    var permissions: UInt32 = 0o600
    var owner: UInt32 = 0
    var group: UInt32 = 0
    /// Nanoseconds of the disk's own clock, which every change moves on by one.
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

  /// Gives no new file the number of one that a recording made.
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
      // What a lost folder of the same name had is lost with it.
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

  /// Applies a change of the contents as a power loss may have left it.
  mutating func apply(_ change: DiskChange, as outcome: CrashOutcome, _ random: inout DiskRandom) {
    switch (outcome, change) {
    case (.absent, .create(_, let file)):
      // The name is lost, but a later change of names may still lead to the file.
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

  /// Puts bytes at an offset, and makes the file at least as large as the size.
  fileprivate mutating func write(_ new: [UInt8], at offset: Int, size: Int? = nil) {
    setSize(max(bytes.count, offset + new.count, size ?? 0))
    // Thousands of states are made of the same changes, also without optimisation: no byte is touched by itself.
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

  /// The file whose contents it changes; nil when it changes names or access.
  var contentsOf: UInt64? {
    switch self {
    case .write(let file, _, _), .setSize(let file, _): file
    case .create, .makeFolder, .setAccess, .rename, .link, .unlink: nil
    }
  }

  /// The path of the folder whose names it changes, with a slash behind it, or nothing for `/`; nil when it changes no names.
  var folder: String? {
    switch self {
    case .create(let name, _), .makeFolder(let name, _), .rename(_, let name, _), .link(let name, _), .unlink(let name):
      String(name[..<(name.lastIndex(of: "/").map { name.index(after: $0) } ?? name.startIndex)])
    case .write, .setSize, .setAccess: nil
    }
  }

  /// What may be left of it after a power loss, if nothing made it durable.
  var outcomes: [CrashOutcome] {
    switch self {
    case .write(_, _, let bytes): bytes.isEmpty ? [.present] : CrashOutcome.allCases
    case .setSize, .create, .makeFolder, .rename, .link, .unlink: [.absent, .present]
    // Wrong permissions are no wrong contents, so they do not multiply the states.
    case .setAccess: [.present]
    }
  }
}

/// What a power loss may leave of one change that was not durable.
enum CrashOutcome: Sendable, CaseIterable {
  /// Nothing.
  case absent
  /// All of it.
  case present
  /// The first half, and the size that goes with it.
  case torn
  /// The first half, and zeros in place of the rest.
  case zeroTail
  /// The first half, and what lay on the disk before in place of the rest.
  case garbageTail
  /// The size, and zeros in place of the bytes.
  case sizeWithoutData

  /// The bytes that are left.
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
