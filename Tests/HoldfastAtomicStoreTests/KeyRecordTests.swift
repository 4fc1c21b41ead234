import HoldfastStore
import Testing

@testable import HoldfastAtomicStore

@Suite struct KeyRecordTests {
  private let uuid = "3B1A60A8-6D1F-4D77-8F6E-6F0B7D2C9E11"

  @Test(arguments: [1, 2, KeyRecord.mostTables]) func keysComeBackTableByTable(_ tables: Int) {
    let keys = (0..<tables).map { ObjectKey(Int64($0) * 1_000_003 + 1) }
    let bytes = KeyRecord(nextKeys: keys).bytes(storeUUID: uuid)
    #expect(bytes.count <= LockFile.maximumRecordByteCount)
    #expect(KeyRecord(bytes, storeUUID: uuid, tableCount: tables).nextKeys == keys)
  }

  @Test func moreTablesThanThereIsRoomForShareTheLargestKey() {
    let tables = KeyRecord.mostTables + 1
    let bytes = KeyRecord(nextKeys: (1...ObjectKey(Int64(tables))).map { $0 }).bytes(storeUUID: uuid)
    #expect(bytes.count <= LockFile.maximumRecordByteCount)
    #expect(KeyRecord(bytes, storeUUID: uuid, tableCount: tables).nextKeys == Array(repeating: ObjectKey(Int64(tables)), count: tables))
  }

  @Test func whatIsNoRecordOfTheStoreCountsAsNothing() {
    let bytes = KeyRecord(nextKeys: [5, 6]).bytes(storeUUID: uuid)
    #expect(KeyRecord([], storeUUID: uuid, tableCount: 2).nextKeys == [])
    #expect(KeyRecord(Array(bytes.dropLast()), storeUUID: uuid, tableCount: 2).nextKeys == [])
    #expect(KeyRecord(bytes, storeUUID: String(uuid.reversed()), tableCount: 2).nextKeys == [])
    let hostile = Array(uuid.utf8) + [UInt8](repeating: 0xFF, count: 16)
    #expect(KeyRecord(hostile, storeUUID: uuid, tableCount: 2).nextKeys == [1, 1])
  }
}
