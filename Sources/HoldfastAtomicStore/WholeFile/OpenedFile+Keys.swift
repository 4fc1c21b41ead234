import HoldfastFiles
import HoldfastStore
import Synchronization

extension OpenedFile {
  /// Reserves keys while holding the lock. The lock file contains the keys that other processes reserved. The store's file is checked as
  /// well, because a process that used a copy has another lock file.
  ///
  /// - Parameter request: The options of the request, whose deadline limits the wait for the lock.
  func reserveKeys(_ demands: [KeyDemand], _ request: RequestOptions) throws -> [[ObjectKey]] {
    // These demands reserve nothing or throw, so they don't need the lock file.
    if demands.allSatisfy({ $0.count == 0 }) || tables.isReadOnly { return try namingFile { try tables.reserveKeys(demands) } }
    let replacement = try begin(request)
    defer { replacement.abort() }
    let uuid = written.withLock { $0.storeUUID }
    let record = try KeyRecord(replacement.lockFile.read(), storeUUID: uuid, tableCount: tables.schema.tableCount)
    let (keys, nextKeys) = try namingFile { try tables.reserveKeys(demands, others: record.nextKeys) }
    try replacement.lockFile.write(KeyRecord(nextKeys: nextKeys).bytes(storeUUID: uuid))
    return keys
  }
}

/// The contents of the lock file: the next key to reserve for each table, across processes.
///
/// Format: the store's UUID as 36 bytes of text, then a little-endian 64-bit integer for each table. If there isn't enough room,
/// one integer applies to all tables. Any other contents are ignored, because the record only coordinates processes that run at the
/// same time.
struct KeyRecord {
  var nextKeys: [ObjectKey]
  static let mostTables = (LockFile.maximumRecordByteCount - 36) / 8

  init(nextKeys: [ObjectKey]) { self.nextKeys = nextKeys }

  init(_ bytes: [UInt8], storeUUID: String, tableCount: Int) {
    let uuid = Array(storeUUID.utf8)
    nextKeys = []
    guard bytes.starts(with: uuid), (bytes.count - uuid.count) % 8 == 0 else { return }
    for start in stride(from: uuid.count, to: bytes.count, by: 8) {
      let key = ObjectKey(bytes[start..<start + 8].reversed().reduce(Int64(0)) { $0 << 8 | Int64($1) })
      nextKeys.append(TableLoader.nextKeys.contains(key) ? key : 1)
    }
    if nextKeys.count == 1 { nextKeys = Array(repeating: nextKeys[0], count: tableCount) }
  }

  func bytes(storeUUID: String) -> [UInt8] {
    let keys = nextKeys.count <= KeyRecord.mostTables ? nextKeys : [nextKeys.max() ?? 1]
    return Array(storeUUID.utf8) + keys.flatMap { key in (0..<8).map { UInt8(truncatingIfNeeded: key.rawValue >> (8 * $0)) } }
  }
}
