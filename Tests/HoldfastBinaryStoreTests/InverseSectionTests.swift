import HoldfastStore
import TestSupport
import Testing

@testable import HoldfastAtomicStore
@testable import HoldfastBinaryStore

/// The encoding of sections of inverse links.
@Suite struct InverseSectionTests {
  typealias Runs = [(owner: Int64, targets: [Int64])]

  static func encoded(_ runs: Runs) -> (bytes: [UInt8], entry: SectionEntry) {
    let writer = InverseSections.Writer()
    for run in runs {
      let targets = run.targets.map { ObjectKey($0) }
      [ObjectKey(run.owner)].withUnsafeBufferPointer { owners in
        [0, UInt32(targets.count)].withUnsafeBufferPointer { starts in
          targets.withUnsafeBufferPointer { targets in
            let end = writer.add(LinkBlock(owners: owners, starts: starts, targets: targets), from: 0)
            #expect(end == 1)
          }
        }
      }
    }
    let bytes = Array(writer.encode())
    return (
      bytes,
      SectionEntry(
        kind: .inverse, subject: 0, offset: 0, byteCount: bytes.count, digest: 0, count: writer.count, first: writer.first,
        last: writer.last)
    )
  }

  static func decoded(_ bytes: [UInt8], _ entry: SectionEntry) throws -> Runs {
    let runs = try bytes.withUnsafeBytes { try InverseSections.runs($0, entry) }
    return (0..<runs.ownerCount).map { index in
      let (owner, range) = runs.owner(index)
      return (owner.rawValue, runs.targets[range].map(\.rawValue))
    }
  }

  /// Ascending keys: dense, with small or large gaps, or anywhere.
  private static func keys(_ count: Int, _ random: inout SeededGenerator) -> [Int64] {
    let most: Int64 = 1 << 62, gap = Int64(1) << Int64.random(in: 0...61, using: &random)
    var keys: [Int64] = [], next = Int64.random(in: 1...min(gap, most), using: &random)
    while keys.count < count, next <= most {
      keys.append(next)
      let distance =
        Int.random(in: 0..<20, using: &random) == 0 ? Int64.random(in: 1...1 << 61, using: &random) : .random(in: 1...gap, using: &random)
      next += min(distance, most - next + 1)
    }
    return keys
  }

  @Test func everyLinkComesBack() throws {
    var random = SeededGenerator("Inverse sections")
    for round in 0..<400 {
      let runs = Self.keys(Int.random(in: 1...60, using: &random), &random).map { owner in
        (owner: owner, targets: Self.keys(Int.random(in: 1...(round % 7 == 0 ? 200 : 5), using: &random), &random))
      }
      let (bytes, entry) = Self.encoded(runs)
      let found = try Self.decoded(bytes, entry)
      #expect(found.map(\.owner) == runs.map(\.owner) && found.map(\.targets) == runs.map(\.targets), "round \(round)")
      #expect(entry.count == runs.reduce(0) { $0 + $1.targets.count } && entry.first == runs[0].owner && entry.last == runs.last?.owner)
      let links = try bytes.withUnsafeBytes { try InverseSections.runs($0, entry) }
      for run in runs {
        #expect(links.targets[links.range(of: ObjectKey(run.owner))].map(\.rawValue) == run.targets, "round \(round)")
        let isThere = run.targets.allSatisfy { links.contains(ObjectKey(run.owner), ObjectKey($0)) }
        #expect(isThere && !links.contains(ObjectKey(run.owner), ObjectKey((run.targets.last ?? 0) + 1)), "round \(round)")
      }
      #expect(links.range(of: ObjectKey(entry.last + 1)).isEmpty && links.range(of: 0).isEmpty)
    }
  }

  /// Three links of the smallest and the largest keys, and one in the form for long numbers.
  @Test func theLimitsOfKeysComeBack() throws {
    let most: Int64 = 1 << 62
    for runs in [
      [(1, [1])], [(most, [most])], [(1, [1, most]), (most, [most - 1, most])], [(5, Array(1...2_000))],
      [(1, Array(1...1_000) + [most]), (2, [7])],
    ] as [Runs] {
      let (bytes, entry) = Self.encoded(runs)
      let found = try Self.decoded(bytes, entry)
      #expect(found.map(\.owner) == runs.map(\.owner) && found.map(\.targets) == runs.map(\.targets))
    }
  }

  @Test func theExampleOfTheArticleIsWhatIsWritten() {
    #expect(Self.encoded([(1, [2, 3]), (2, [5])]).bytes == [0, 0, 3, 0b01_1_1_1001, 0b1000_1100])
  }

  /// People in companies, and friends at random: the bytes that the article promises.
  @Test func aLinkTakesAboutTwoBytes() {
    var random = SeededGenerator(seed: 24)
    let people: Int64 = 100_000
    let friends = (1...4_000 as ClosedRange<Int64>).map { owner in
      (owner: owner, targets: Set((0..<3).map { _ in Int64.random(in: 1...people, using: &random) }).sorted())
    }
    let (bytes, entry) = Self.encoded(friends)
    #expect((2.1...2.3).contains(Double(bytes.count) / Double(entry.count)), "\(bytes.count) bytes for \(entry.count) links")
    let employees = (1...150 as ClosedRange<Int64>).map { owner in
      (owner: owner, targets: Set((0..<100).map { _ in Int64.random(in: 1...people, using: &random) }).sorted())
    }
    let (other, otherEntry) = Self.encoded(employees)
    #expect((1.3...1.6).contains(Double(other.count) / Double(otherEntry.count)), "\(other.count) bytes for \(otherEntry.count) links")
  }

  /// Any other bytes are refused, or are other links in ascending order.
  @Test func RX17_changedBytesAreRefusedOrOtherLinks() throws {
    var random = SeededGenerator("Changed inverse sections")
    var (refused, read) = (0, 0)
    for round in 0..<60 {
      let runs = Self.keys(Int.random(in: 1...6, using: &random), &random).map { owner in
        (owner: owner, targets: Self.keys(Int.random(in: 1...4, using: &random), &random))
      }
      let (bytes, entry) = Self.encoded(runs)
      func attempt(_ bytes: [UInt8], _ entry: SectionEntry) {
        guard let found = try? Self.decoded(bytes, entry) else { return refused += 1 }
        read += 1
        let owners = found.map(\.owner), isAscending = zip(owners, owners.dropFirst()).allSatisfy { $0 < $1 }
        let areTargets = found.allSatisfy { run in
          zip(run.targets, run.targets.dropFirst()).allSatisfy { $0 < $1 } && run.targets.allSatisfy { (1...1 << 62).contains($0) }
        }
        #expect(isAscending && areTargets && owners.first == entry.first && owners.last == entry.last, "round \(round)")
        #expect(found.reduce(0) { $0 + $1.targets.count } == entry.count, "round \(round)")
      }
      for place in bytes.indices {
        for value in [0, 1, 3, 40, 41, 0x7F, 0x80, 0xFF, bytes[place] ^ 1] as [UInt8] where value != bytes[place] {
          var changed = bytes
          changed[place] = value
          attempt(changed, entry)
        }
      }
      for count in 0..<bytes.count {
        #expect(throws: SectionFault.self) { try Self.decoded(Array(bytes.prefix(count)), entry) }
      }
      #expect(throws: SectionFault.self) { try Self.decoded(bytes + [0], entry) }
      for count in [0, -1, .min, entry.count + 1, 2 * bytes.count + 1, .max] {
        var changed = entry
        changed.count = count
        #expect(throws: SectionFault.self, "\(count)") { try Self.decoded(bytes, changed) }
      }
    }
    #expect(refused > 500 && read > 20, "\(refused) refused, \(read) read")
  }
}
