import Foundation
public import HoldfastRowStore
import Synchronization

/// A store in a log: a file with one line for each save.
///
/// A line is a digest of 16 digits, a space, and the changes as JSON. Opening the store applies all lines. The file grows with each save.
public final class LogStore: RowStore {
  /// All rows and links in memory. A copy is a snapshot.
  public struct Contents: Sendable {
    fileprivate var settings: [String: String] = [:]
    fileprivate var rows: [String: [ObjectKey: StoredRow]] = [:]
    fileprivate var links: [String: Set<StoredLink>] = [:]
  }

  private struct State {
    var file: FileHandle?
    /// The number of bytes of complete lines.
    var length: UInt64 = 0
    var contents = Contents()
  }

  private let path: String
  private let isReadOnly: Bool
  /// Guarded because reads run during a save.
  private let state = Mutex(State())

  init(path: String, isReadOnly: Bool) {
    self.path = path
    self.isReadOnly = isReadOnly
  }

  /// Snapshots and versions. The framework evaluates queries.
  public var capabilities: StoreCapabilities {
    var capabilities = StoreCapabilities()
    (capabilities.snapshots, capabilities.versions, capabilities.residentRows) = (true, true, true)
    return capabilities
  }

  /// Locks the file, and applies its lines.
  public func open() throws -> [String: String] {
    if !FileManager.default.fileExists(atPath: path) {
      if isReadOnly { return [:] }
      _ = FileManager.default.createFile(atPath: path, contents: nil)
    }
    let file = try isReadOnly ? FileHandle(forReadingFrom: URL(filePath: path)) : FileHandle(forUpdating: URL(filePath: path))
    guard flock(file.fileDescriptor, LOCK_NB | (isReadOnly ? LOCK_SH : LOCK_EX)) == 0 else {
      throw error(.locked, "open the store", "Another store has the file open. Close it and try again.")
    }
    var opened = State(file: file)
    let lines = (try file.readToEnd() ?? Data()).split(separator: 10, omittingEmptySubsequences: false)
    for line in lines.dropLast() {
      apply(try changes(in: line), to: &opened.contents)
      opened.length += UInt64(line.count) + 1
    }
    // Truncating another file would destroy it.
    guard lines.count > 1 || lines.allSatisfy({ $0.isEmpty || Self.isBegun($0) }) else {
      throw error(.notAStore, "open the store", "The file isn't a log. Check the path.")
    }
    // A line without a line break at its end was being written when the process or the system ended. It was never acknowledged.
    // A file that was truncated within its last line looks the same, so the store doesn't notice that this save is missing.
    if !isReadOnly { try file.truncate(atOffset: opened.length) }
    return state.withLock { state in
      state = opened
      return opened.contents.settings
    }
  }

  private func changes(in line: Data) throws -> RowChanges {
    let json = Data(line.dropFirst(17)), decoder = JSONDecoder()
    decoder.nonConformingFloatDecodingStrategy = .convertFromString(positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan")
    guard line.elementsEqual(Self.line(json).dropLast()), let changes = try? decoder.decode(RowChanges.self, from: json) else {
      throw error(.damaged, "open the store", "A line was changed since it was written. Restore the file from a backup.")
    }
    return changes
  }

  private static func line(_ json: Data) -> Data {
    var digest = ContentDigest()
    digest.update(json)
    let digits = String(digest.value, radix: 16)
    return Data(String(repeating: "0", count: 16 - digits.utf8.count).utf8) + Data("\(digits) ".utf8) + json + [10]
  }

  /// Whether an incomplete line begins like a complete one.
  private static func isBegun(_ line: Data) -> Bool {
    line.prefix(16).allSatisfy { (48...57).contains($0) || (97...102).contains($0) } && line.dropFirst(16).starts(with: " {".utf8)
  }

  /// Unlocks the file. Closing it isn't enough, because a process that is being started may have inherited the open file.
  public func close() {
    state.withLock { state in
      if let file = state.file { flock(file.fileDescriptor, LOCK_UN) }
      state.file = nil
    }
  }

  /// The current contents.
  public func snapshot() -> Contents { state.withLock { $0.contents } }

  /// The rows with the query's keys, or all rows.
  public func rows(matching query: RowQuery, in snapshot: Contents, into output: RowOutput) throws {
    for entity in query.entities {
      let rows = snapshot.rows[entity.name] ?? [:]
      for row in query.keys.map({ $0.compactMap { rows[$0] } }) ?? Array(rows.values) { try output.add(row) }
    }
  }

  /// The links of the relationship.
  public func links(matching query: LinkQuery, in snapshot: Contents) -> [StoredLink] { Array(snapshot.links[query.relationship] ?? []) }

  /// Writes a line, and waits until it is on disk.
  public func apply(_ changes: RowChanges) throws {
    let encoder = JSONEncoder()
    encoder.nonConformingFloatEncodingStrategy = .convertToString(positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan")
    let line = Self.line(try encoder.encode(changes))
    try state.withLock { state throws in
      guard let file = state.file else { throw error(.notOpen, "save", "The store isn't open.") }
      do {
        try file.seek(toOffset: state.length)
        try file.write(contentsOf: line)
      } catch let cause {
        try? file.truncate(atOffset: state.length)
        throw error(.inputOutput, "save", "The file can't be written. Free some space and save again. Nothing was saved.", cause)
      }
      do {
        try file.synchronize()
        if state.length == 0 { try FileHandle(forReadingFrom: URL(filePath: path).deletingLastPathComponent()).synchronize() }
      } catch let cause {
        // The system may have dropped the line, or may still write it.
        state.file = nil
        throw error(.outcomeUnknown, "save", "The disk didn't confirm the save. Open the store again to find out what it contains.", cause)
      }
      state.length += UInt64(line.count)
      apply(changes, to: &state.contents)
    }
  }

  private func apply(_ changes: RowChanges, to contents: inout Contents) {
    contents.settings.merge(changes.settings) { $1 }
    for row in changes.deletedRows { contents.rows[row.entity]?[row.key] = nil }
    for row in changes.savedRows { contents.rows[row.entity, default: [:]][row.key] = row }
    for link in changes.deletedLinks { contents.links[link.relationship]?.remove(link) }
    for link in changes.savedLinks { contents.links[link.relationship, default: []].update(with: link) }
  }

  private func error(_ code: StoreError.Code, _ operation: String, _ reason: String, _ cause: (any Error)? = nil) -> StoreError {
    StoreError(code, operation: operation, path: path, reason: reason, cause: cause)
  }
}

extension StoreDescription {
  /// A store in a log.
  public static func log(at path: String, isReadOnly: Bool = false) -> StoreDescription {
    .rowStore("log", at: .file(path), isReadOnly: isReadOnly) { LogStore(path: path, isReadOnly: isReadOnly) }
  }
}
