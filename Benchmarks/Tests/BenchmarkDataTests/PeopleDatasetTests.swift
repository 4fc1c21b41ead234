import BenchmarkData
import Testing

/// Results of the C generator and of the in-memory C floor, which the Swift port must reproduce.
@Suite struct PeopleDatasetTests {
  /// The checksums of one size.
  struct Figures: Sendable, CustomTestStringConvertible {
    let count: Int
    let links: Int
    let bytes: UInt64
    let checksums: [PeoplePhase: UInt64]

    var testDescription: String { "\(count) people" }

    init(
      _ count: Int, links: Int, bytes: UInt64, _ w2: UInt64, _ w3: UInt64, _ w4: UInt64, _ w5: UInt64, _ w6: UInt64, _ w7: UInt64,
      _ w8: UInt64
    ) {
      self.count = count
      self.links = links
      self.bytes = bytes
      checksums = [
        .insert: UInt64(count), .readAll: w2, .readOne: w3, .search: w4, .walk: w5, .update: w6, .delete: w7, .aggregate: w8,
      ]
    }
  }

  static let figures = [
    Figures(1, links: 0, bytes: 3_886_414_329_033_579_600, 18_446_744_072_528_701_497, 1_000_003, 0, 19000, 0, 0, 25002),
    Figures(5, links: 13, bytes: 5_494_972_629_581_125_749, 18_446_744_068_216_796_633, 1_000_024, 0, 68000, 0, 91, 59410),
    Figures(
      150, links: 457, bytes: 8_305_497_687_248_624_468, 18_446_743_967_931_006_774, 1_000_528, 1_000_774, 77732, 88, 3172, 52186),
    Figures(
      1000, links: 2934, bytes: 1_965_550_668_072_121_380, 18_446_743_332_460_912_490, 1_003_503, 17_059_813, 72524, 494, 20135,
      535_568),
    Figures(
      10000, links: 29982, bytes: 554_121_761_498_170_360, 18_446_736_573_139_108_723, 1_035_003, 103_494_709, 73467, 5562, 205_578,
      5_408_775),
    Figures(
      100_000, links: 299_831, bytes: 3_687_924_518_238_484_045, 18_446_669_235_901_002_875, 1_350_003, 134_758_529, 76218, 55537,
      2_058_958, 53_740_907),
  ]

  @Test("The port generates the same bytes as the C generator", arguments: figures)
  func sameBytes(_ figures: Figures) {
    let people = PeopleDataset(count: figures.count)
    #expect(people.friendLinkCount == figures.links)
    #expect(fnv(people) == figures.bytes)
  }

  @Test("The expected checksums equal those of the C floor", arguments: figures)
  func sameChecksums(_ figures: Figures) {
    let people = PeopleDataset(count: figures.count)
    for phase in PeoplePhase.allCases {
      #expect(people.expected(phase) == figures.checksums[phase], "\(phase.rawValue)")
    }
  }

  @Test("Views without strings have the same bytes as strings")
  func viewsAgree() {
    let people = PeopleDataset(count: 200)
    for index in 0..<people.count {
      let person = people[index]
      #expect(person.withNameUTF8(Array.init) == Array(person.name.utf8))
      #expect(person.withEmailUTF8(Array.init) == Array(person.email.utf8))
      #expect(person.withNotesUTF8 { $0.map(Array.init) } == person.notes.map { Array($0.utf8) })
      #expect(person.withAvatarBytes { $0.map(Array.init) } == person.avatar)
    }
  }

  @Test("A dataset can have no people")
  func empty() {
    let people = PeopleDataset(count: 0)
    #expect(people.count == 0)
    #expect(people.companyCount == 1)
    #expect(people.expected(.readAll) == 0)
  }

  /// FNV-1a over all fields in a fixed order, little-endian.
  private func fnv(_ people: PeopleDataset) -> UInt64 {
    var hash: UInt64 = 14_695_981_039_346_656_037
    func add(_ bytes: some Sequence<UInt8>) { for byte in bytes { hash = (hash ^ UInt64(byte)) &* 1_099_511_628_211 } }
    func add(_ number: some BinaryInteger) { withUnsafeBytes(of: UInt64(truncatingIfNeeded: number).littleEndian) { add($0) } }
    func add(_ number: Double) { add(number.bitPattern) }
    func addCounted(_ bytes: [UInt8]) {
      add(bytes.count)
      add(bytes)
    }
    for index in 0..<people.companyCount {
      addCounted(Array(people.company(index).name.utf8))
      add(people.company(index).founded)
    }
    for index in 0..<people.count {
      let person = people[index]
      add(person.id)
      addCounted(Array(person.name.utf8))
      addCounted(Array(person.email.utf8))
      add(person.age)
      add(person.height)
      add(person.isActive ? 1 : 0)
      add(person.birthday)
      withUnsafeBytes(of: person.uid) { add($0) }
      addCounted(Array((person.notes ?? "").utf8))
      addCounted(person.avatar ?? [])
      add(person.employer)
      add(person.friends.count)
      for friend in person.friends { add(friend) }
    }
    return hash
  }
}
