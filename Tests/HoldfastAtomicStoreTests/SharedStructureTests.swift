import HoldfastStore
import TestSupport
import Testing

@testable import HoldfastAtomicStore

/// The structures of the tables against simple ones. Copies taken on the way must not change.
@Suite struct SharedStructureTests {

  /// Keys as in stores: dense, with gaps, or anywhere.
  enum Keys: CaseIterable {
    case dense, gaps, anywhere, mixed

    func next(_ numbers: inout SeededGenerator) -> Int64 {
      switch self {
      case .dense: Int64.random(in: 1...3_000, using: &numbers)
      case .gaps: Int64.random(in: 0...2_000, using: &numbers) * 997
      case .anywhere: Int64.random(in: 0...3_000, using: &numbers) &* 0x1234_5678_9ABC & .max
      case .mixed: Bool.random(using: &numbers) ? Keys.dense.next(&numbers) : Keys.anywhere.next(&numbers)
      }
    }
  }

  @Test(arguments: Keys.allCases)
  func aKeyMapAnswersLikeADictionary(_ keys: Keys) {
    var numbers = SeededGenerator(seed: 11)
    var map = KeyMap<RowLocation>(shift: 10), model: [Int64: UInt64] = [:]
    var copies: [(KeyMap<RowLocation>, [Int64: UInt64])] = []
    for round in 0..<20_000 {
      let key = keys.next(&numbers)
      let value: UInt64 = Int.random(in: 0..<3, using: &numbers) == 0 ? 0 : UInt64(round + 1)
      let before = map.set(key, RowLocation(bits: value))
      if before.bits != model[key] ?? 0 { Issue.record("In round \(round), key \(key) had the value \(before.bits).") }
      model[key] = value == 0 ? nil : value
      if round % 5_000 == 0 { copies.append((map, model)) }
    }
    for (map, model) in copies + [(map, model)] {
      #expect(map.count == model.count)
      for (key, value) in model where map[key].bits != value { Issue.record("Key \(key) has the value \(map[key].bits), not \(value).") }
      var met: [Int64] = []
      map.forEach { key, value in
        met.append(key)
        if value.bits != model[key] { Issue.record("Key \(key) is reported with the value \(value.bits).") }
      }
      #expect(met == model.keys.sorted())
    }
    #expect(map[-1].isNone && map[.max].isNone && map[.min].isNone)
  }

  @Test(arguments: Keys.allCases)
  func consecutiveKeysAreSetTogetherLikeOneAfterTheOther(_ keys: Keys) {
    var numbers = SeededGenerator(seed: 12)
    var map = KeyMap<RowLocation>(shift: 4), single = map
    for round in 0..<1_000 {
      let first = keys.next(&numbers), length = Int.random(in: 1...100, using: &numbers), copy = map
      func location(_ distance: Int) -> RowLocation { RowLocation(page: round, row: distance) }
      let replaced = map.set(from: first, length, location)
      var expected: [UInt64] = []
      for distance in 0..<length {
        let before = single.set(first &+ Int64(distance), location(distance))
        if !before.isNone { expected.append(before.bits) }
      }
      #expect(replaced.map(\.bits) == expected && map.count == single.count && copy.count == map.count - length + expected.count)
      let removed = keys.next(&numbers), (former, same) = (map.set(removed, .none), single.set(removed, .none))
      #expect(former.bits == same.bits)
    }
    var (found, wanted): ([Int64: UInt64], [Int64: UInt64]) = ([:], [:])
    map.forEach { found[$0] = $1.bits }
    single.forEach { wanted[$0] = $1.bits }
    #expect(found == wanted)
    _ = map.set(from: .max - 1, 2) { RowLocation(page: 0, row: $0) }
    #expect(map[.max - 1].row == 0 && map[.max].row == 1)
  }

  @Test func aUniqueIndexAnswersLikeADictionaryAlsoWhenHashesCollide() {
    var numbers = SeededGenerator(seed: 5)
    var index = UniqueIndex(), model: [ObjectKey: UInt64] = [:]
    var copies: [(UniqueIndex, [ObjectKey: UInt64])] = []
    for round in 0..<30_000 {
      let key = ObjectKey(Int64.random(in: 1...6_000, using: &numbers))
      if let hash = model.removeValue(forKey: key) {
        index.remove(hash: hash, key: key)
      } else {
        // Few different low bits, so that runs are long and wrap around, and segments fill early.
        let hash = UInt64.random(in: 0...0xFFFF, using: &numbers) << 48 | UInt64.random(in: 400...511, using: &numbers)
        index.insert(hash: hash, key: key)
        model[key] = hash
      }
      if round % 6_000 == 0 { copies.append((index, model)) }
    }
    for (index, model) in copies + [(index, model)] {
      #expect(index.count == model.count)
      for (key, hash) in model where index.key(hash: hash, matches: { $0 == key }) != key { Issue.record("Key \(key) is not found.") }
      #expect(index.key(hash: 12345) { _ in true } == nil)
    }
  }

  @Test(arguments: [10, 5_000, 40_000])
  func manyEntriesAtOnceAnswerLikeOneAfterTheOther(_ count: Int) {
    var numbers = SeededGenerator(seed: UInt64(count))
    // Key 100,000 + n has the same values as key n. A third of the keys have such a duplicate, and some different values share a hash.
    func values(_ key: ObjectKey) -> Int64 { key.rawValue % 100_000 }
    var entries = (1...Int64(count)).flatMap { key -> [UniqueIndex.Entry] in
      let hash = UInt64.random(in: 0...0xFFFF_FFFF, using: &numbers) << 32 | UInt64(key % 7)
      let entry = UniqueIndex.Entry(hash: key % 500 == 0 ? 99 : hash, key: ObjectKey(key))
      return key % 3 == 0 ? [entry, UniqueIndex.Entry(hash: entry.hash, key: ObjectKey(100_000 + key))] : [entry]
    }
    let early = UniqueIndex.Entry(hash: entries[0].hash, key: entries[0].key.advanced(by: 100_000))
    entries.shuffle(using: &numbers)
    var index = UniqueIndex(), taken: [ObjectKey: ObjectKey] = [:]
    index.insert(hash: early.hash, key: early.key)
    index.insert(entries, isSame: { values($0) == values($1) }, taken: { taken[$0] = $1 })
    var first: [Int64: ObjectKey] = [values(early.key): early.key], expected: [ObjectKey: ObjectKey] = [:]
    for entry in entries {
      if let other = first[values(entry.key)] { expected[entry.key] = other } else { first[values(entry.key)] = entry.key }
    }
    #expect(taken == expected)
    #expect(index.count == first.count)
    for entry in entries where index.key(hash: entry.hash, matches: { values($0) == values(entry.key) }) != first[values(entry.key)] {
      Issue.record("Key \(entry.key) is not found.")
    }
  }

  @Test(arguments: Keys.allCases)
  func anAdjacencyIndexAnswersLikeADictionaryOfSets(_ keys: Keys) {
    var numbers = SeededGenerator(seed: 3)
    var index = AdjacencyIndex(), model: [ObjectKey: Set<ObjectKey>] = [:]
    var copies: [(AdjacencyIndex, [ObjectKey: Set<ObjectKey>])] = []
    for round in 0..<60 {
      var added: Set<SaveRequest.Link> = [], removed: Set<SaveRequest.Link> = []
      for _ in 0..<(round == 0 ? 4_000 : 200) {
        added.insert(
          SaveRequest.Link(source: ObjectKey(keys.next(&numbers)), target: ObjectKey(Int64.random(in: 1...500, using: &numbers))))
      }
      for (source, targets) in model.shuffled(using: &numbers).prefix(100) {
        for target in targets.prefix(3) { removed.insert(SaveRequest.Link(source: source, target: target)) }
        removed.insert(SaveRequest.Link(source: source, target: 501))
      }
      // Links that never existed, of keys that may have no links.
      for _ in 0..<50 { removed.insert(SaveRequest.Link(source: ObjectKey(keys.next(&numbers)), target: 502)) }
      // In every third round, links are only removed, as when objects are deleted.
      if round % 3 == 2 { added = [] }
      added.subtract(removed)
      index.apply(added: added.sorted(), removed: removed.sorted())
      for link in removed { model[link.source]?.remove(link.target) }
      for link in added { model[link.source, default: []].insert(link.target) }
      if round % 20 == 0 { copies.append((index, model)) }
    }
    for (index, model) in copies + [(index, model)] {
      #expect(index.count == model.values.reduce(0) { $0 + $1.count })
      for (source, targets) in model { #expect(index.withTargets(of: source) { Array($0) } == targets.sorted()) }
      var links: [SaveRequest.Link] = []
      index.forEach { links.append($0) }
      #expect(links == model.flatMap { source, targets in targets.map { SaveRequest.Link(source: source, target: $0) } }.sorted())
    }
  }

  @Test func linksAreReversedAndSortedWhateverTheirKeys() {
    var numbers = SeededGenerator(seed: 9)
    for range in [10, 1_000, Int64.max / 2] {
      let links = (0..<2_000).map { _ in
        SaveRequest.Link(
          source: ObjectKey(Int64.random(in: 0...range, using: &numbers)), target: ObjectKey(Int64.random(in: 0...range, using: &numbers)))
      }
      #expect(LinkOrder.sorted(links) == links.sorted())
      let exchanged = links.map { SaveRequest.Link(source: $0.target, target: $0.source) }.sorted()
      #expect(LinkOrder.reversed(links) == exchanged)
      #expect(LinkOrder.reversed(links.sorted()) == exchanged)
    }
    #expect(LinkOrder.sorted([]).isEmpty && LinkOrder.reversed([]).isEmpty)
  }

  @Test(arguments: [1, 255, 256, 257, 3_000] as [Int64])
  func anIndexThatIsFilledIsThatToWhichLinksAreAdded(greatest: Int64) {
    var numbers = SeededGenerator(seed: UInt64(greatest))
    for least in [0, 1, 200, 256, 1 << 20] as [Int64] {
      var links = (0..<2_000).map { _ in
        SaveRequest.Link(
          source: ObjectKey(Int64.random(in: 1...500, using: &numbers)),
          target: ObjectKey(least + Int64.random(in: 0..<greatest, using: &numbers)))
      }
      // Sorted by the other end, with some duplicates.
      links = (links + links.prefix(100)).sorted()
      expectFilled(by: links, isExchanged: true, like: Set(links.map { SaveRequest.Link(source: $0.target, target: $0.source) }))
      // In the order of a to-one relationship's rows.
      let rows = (0..<2_000).map {
        SaveRequest.Link(source: ObjectKey(least + Int64.random(in: 0..<greatest, using: &numbers)), target: ObjectKey(1 + 3 * $0))
      }
      expectFilled(by: rows, isExchanged: false, like: Set(rows))
    }
  }

  private func expectFilled(by links: [SaveRequest.Link], isExchanged: Bool, like sorted: Set<SaveRequest.Link>) {
    var filled = AdjacencyIndex(), added = AdjacencyIndex(), found: [SaveRequest.Link] = []
    let isFilled = filled.fill(links, isExchanged: isExchanged)
    #expect(isFilled)
    added.apply(added: sorted.sorted(), removed: [])
    filled.forEach { found.append($0) }
    #expect(found == sorted.sorted())
    #expect(filled.count == sorted.count)
    for key in Set(sorted.map(\.source)) {
      #expect(filled.withTargets(of: key) { Array($0) } == added.withTargets(of: key) { Array($0) })
    }
  }

  @Test func anIndexIsNotFilledWhereLinksHaveToBeSorted() {
    func link(_ source: ObjectKey, _ target: ObjectKey) -> SaveRequest.Link { SaveRequest.Link(source: source, target: target) }
    func isRefused(_ links: [SaveRequest.Link], by index: AdjacencyIndex = AdjacencyIndex(), isExchanged: Bool = false) -> Bool {
      var copy = index
      return !copy.fill(links, isExchanged: isExchanged) && copy.count == index.count
    }
    #expect(isRefused([link(1, 2), link(1, 1)], isExchanged: true), "not sorted")
    #expect(isRefused([link(1, 2), link(2, 1)]), "not sorted")
    expectFilled(by: [link(1, 2), link(1, 2)], isExchanged: false, like: [link(1, 2)])
    #expect(isRefused([link(1, 1), link(ObjectKey(1 << 40), 2)]), "sources far apart")
    #expect(isRefused([link(-1, 1)]), "a key that is none")
    var index = AdjacencyIndex()
    index.apply(added: [link(1, 1)], removed: [])
    #expect(isRefused([link(2, 2)], by: index), "links already")
  }
}
