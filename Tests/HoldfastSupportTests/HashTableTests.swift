import HoldfastSupport
import TestSupport
import Testing

/// A table contains the entries that a dictionary would contain, whatever the hashes are.
@Suite struct HashTableTests {
  private struct Entry: HashSlot {
    var key: Int64
    /// 0 in a free slot.
    var value: Int

    static var free: Entry { Entry(key: 0, value: 0) }
    var isFree: Bool { value == 0 }
  }

  /// How keys are hashed.
  enum Hashes: CaseIterable {
    /// Most entries are at their first index.
    case distinct
    /// Runs of entries with a few hashes overlap.
    case few
    /// All entries are in one run, which continues at the start of the table.
    case last

    func hash(_ key: Int64) -> Int {
      switch self {
      case .distinct: multiplicativeHash(key)
      case .few: Int(key & 7) * 5
      case .last: -1
      }
    }
  }

  @Test(arguments: Hashes.allCases) func aTableHasTheEntriesOfADictionary(hashes: Hashes) {
    var random = SeededGenerator("Hash table, \(hashes)")
    for _ in 0..<TestTier.count(30, full: 300) {
      var table = HashTable<Entry>(capacity: Int.random(in: 0...100, using: &random)), expected: [Int64: Int] = [:]
      let keys = Int64([10, 100, 400].randomElement(using: &random)!)
      for step in 1...1000 {
        let key = Int64.random(in: 0..<keys, using: &random)
        switch Int.random(in: 0..<5, using: &random) {
        case 0, 1:
          if expected[key] == nil {
            table.insert(Entry(key: key, value: step)) { hashes.hash($0.key) }
          } else {
            table[table.index(hash: hashes.hash(key)) { $0.key == key }].value = step
          }
          expected[key] = step
        case 2:
          table.reserve(Int.random(in: 1...20, using: &random)) { hashes.hash($0.key) }
          table[table.index(hash: hashes.hash(key)) { $0.key == key }] = Entry(key: key, value: step)
          expected[key] = step
        case 3:
          let index = table.index(hash: hashes.hash(key)) { $0.key == key }
          if !table[index].isFree { table.remove(at: index) { hashes.hash($0.key) } }
          expected[key] = nil
        default: break
        }
        let found = table[table.index(hash: hashes.hash(key)) { $0.key == key }].value
        if found != expected[key] ?? 0 {
          Issue.record("Key \(key) has \(found) instead of \(expected[key] ?? 0) after step \(step); seed \(random.seed).")
          return
        }
      }
      let found = (0..<keys).map { key in table[table.index(hash: hashes.hash(key)) { $0.key == key }].value }
      #expect(found == (0..<keys).map { expected[$0] ?? 0 }, "seed \(random.seed)")
    }
  }

  @Test func aRemovedEntryLeavesTheOthersOfItsRunFound() {
    for removed in 0..<40 as Range<Int64> {
      // Two interleaved runs, the second of them beginning inside the first.
      let hash: (Entry) -> Int = { $0.key % 2 == 0 ? 50 : 60 }
      var table = HashTable<Entry>()
      for key in 0..<40 as Range<Int64> { table.insert(Entry(key: key, value: 1), hash: hash) }
      table.remove(at: table.index(hash: hash(Entry(key: removed, value: 1))) { $0.key == removed }, hash: hash)
      for key in 0..<40 as Range<Int64> {
        let index = table.index(hash: hash(Entry(key: key, value: 1))) { $0.key == key }
        #expect(table[index].isFree == (key == removed), "\(key) after the removal of \(removed)")
      }
    }
  }

  @Test func aTableHasRoomForTheEntriesOfItsCapacity() {
    for count in [0, 1, 32, 33, 64, 500, 1024] as [Int64] {
      var table = HashTable<Entry>(capacity: Int(count))
      for key in 0..<count { table[table.index(hash: multiplicativeHash(key)) { $0.key == key }] = Entry(key: key, value: 1) }
      #expect((0..<count).allSatisfy { key in !table[table.index(hash: multiplicativeHash(key)) { $0.key == key }].isFree })
      #expect(table[table.index(hash: multiplicativeHash(-1)) { $0.key == -1 }].isFree)
    }
  }

  @Test func zeroedMemoryIsAnEmptyTableOfPositions() {
    let names = ["Fido", "Rex", "Bello"]
    var memory = [UInt32](repeating: 0, count: 64)
    memory.withUnsafeMutableBytes { bytes in
      let slots = HashSlots(bytes.bindMemory(to: PositionSlot.self))
      #expect((0..<64).allSatisfy { slots[$0].isFree })
      for position in names.indices { slots.insert(PositionSlot(position), hash: names[position].count) }
      for (position, name) in names.enumerated() {
        let slot = slots[slots.index(hash: name.count) { names[$0.position] == name }]
        #expect(!slot.isFree && slot.position == position)
      }
      #expect(slots[slots.index(hash: 3) { names[$0.position] == "Ada" }].isFree)
    }
  }

  /// Random numbers would share 791 of 2048 indexes.
  @Test(arguments: [1, 3, 16, 4096, 1 << 20] as [Int64]) func regularNumbersAreSpreadOverATable(step: Int64) {
    let indexes = Set((0..<1000).map { multiplicativeHash($0 * step) & 2047 })
    #expect(indexes.count > 400)
  }
}
