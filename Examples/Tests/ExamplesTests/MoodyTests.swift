import Foundation
import Holdfast
import HoldfastStore
import HoldfastStoreConformance
import Synchronization
import Testing

@testable import Moody

/// The worked sync engine.
@Suite struct MoodyTests {
  @Test func twoDevicesShareTheirMoods() throws {
    let folder = TemporaryFolder()
    #expect(
      try MoodyCommand.lines(folder.path) == [
        "The tablet received: blue grey in Iceland, green in Iceland", "The phone has: gold in Iceland", "The tablet has: gold in Iceland",
      ])
  }

  /// Random changes on both devices, synchronizations that are interrupted between any of their steps, and requests and answers that are
  /// lost, late or repeated. When both have synchronized without any of that, they and the remote have the same objects. Prints its seed;
  /// HOLDFAST_SEED repeats a run.
  @Test func interruptedSynchronizationsEndInAgreement() throws {
    let seed = ProcessInfo.processInfo.environment["HOLDFAST_SEED"].flatMap(UInt64.init) ?? .random(in: 0 ... .max)
    print("Seed: HOLDFAST_SEED=\(seed) in MoodyTests.swift")
    var random = Random(state: seed), failures: Set<NetworkError> = []
    for round in 0..<12 {
      let folder = TemporaryFolder(), remote = Remote(), faults = Faults(seed: random.next(.max))
      let devices = try ["phone", "tablet"].map {
        try MoodSync(path: folder.path + "/\($0).sqlite", connection: Connection(to: remote) { faults.next() })
      }
      for _ in 0..<40 {
        let device = devices[Int(random.next(2))]
        if random.next(30) == 0 { try device.container.persistentStoreCoordinator.deleteHistory(upTo: nil) }
        if random.next(3) > 0 {
          try change(device, &random)
        } else {
          do { try synchronize(device, &random) } catch let error as NetworkError { failures.insert(error) }
        }
      }
      faults.end()
      // Late uploads arrive as well.
      for _ in 0..<4 { for device in devices { try device.synchronize() } }
      let comment = Comment(rawValue: "seed \(seed), round \(round)")
      for device in devices {
        let found = try state(device), expected = remote.records
        let differences = Set(found.keys).union(expected.keys).filter { found[$0] != expected[$0] }
        #expect(differences.map { [found[$0], expected[$0]] }.isEmpty, comment)
      }
      // Nothing is left to send.
      let log = remote.changes(after: 0, limit: .max).end
      for device in devices { try device.synchronize() }
      #expect(remote.changes(after: 0, limit: .max).end == log, comment)
    }
    #expect(failures == [.unreachable, .noAnswer])
  }

  private struct Interruption: Error {}

  /// Synchronizes a device, and interrupts it once or not at all. Meanwhile the program changes objects.
  private func synchronize(_ device: MoodSync, _ random: inout Random) throws {
    var steps = Int(random.next(10)), own = Random(state: random.next(.max))
    device.interruption = {
      if own.next(3) == 0 { try change(device, &own) }
      steps -= 1
      if steps == 0 { throw Interruption() }
    }
    defer { device.interruption = {} }
    do { try device.synchronize() } catch is Interruption {}
  }

  /// What goes wrong with a quarter of the requests, until it ends.
  private final class Faults: Sendable {
    private let random: Mutex<Random?>

    init(seed: UInt64) { random = Mutex(Random(state: seed)) }

    func next() -> Connection.Fault? {
      random.withLock { random in
        guard random?.next(4) == 0, let choice = random?.next(6) else { return nil }
        let faults: [Connection.Fault] = [
          .requestLost, .answerLost, .requestLate(by: 1), .requestLate(by: 2), .requestTwice, .answerLate,
        ]
        return faults[Int(choice)]
      }
    }

    func end() { random.withLock { $0 = nil } }
  }

  /// What goes wrong with each request, in order. After that, nothing does.
  private final class Script: Sendable {
    private let faults: Mutex<[Connection.Fault?]>

    init(_ faults: [Connection.Fault?]) { self.faults = Mutex(faults) }

    func next() -> Connection.Fault? { faults.withLock { $0.isEmpty ? nil : $0.removeFirst() } }
  }

  /// Sets the colors of the only mood of a device.
  private func paint(_ device: MoodSync, _ colors: String) throws {
    try device.container.withContext { context in
      let mood = try context.fetch(Mood.self).first ?? context.insert(Mood.self)
      mood.colors = colors
      try context.save()
    }
  }

  private func colors(_ device: MoodSync) throws -> [String] {
    try device.container.withContext { try $0.fetch(Mood.self).map(\.colors) }
  }

  /// The device doesn't know that the remote has its upload, and sends it again.
  @Test func anUploadWithoutAnswerIsRepeatedWithoutEffect() throws {
    // The first two requests are downloads: the first one finds out which remote it is.
    let folder = TemporaryFolder(), remote = Remote(), script = Script([nil, nil, .answerLost])
    let phone = try MoodSync(path: folder.path + "/phone.sqlite", connection: Connection(to: remote) { script.next() })
    try paint(phone, "grey")
    #expect(throws: NetworkError.noAnswer) { try phone.synchronize() }
    #expect(remote.records.count == 1 && remote.changes(after: 0, limit: .max).end == 1)
    try phone.synchronize()
    #expect(try colors(phone) == ["grey"] && remote.changes(after: 0, limit: .max).end == 1)
  }

  @Test func anUnreachableRemoteChangesNothing() throws {
    let folder = TemporaryFolder(), remote = Remote(), script = Script([nil, nil, .requestLost])
    let phone = try MoodSync(path: folder.path + "/phone.sqlite", connection: Connection(to: remote) { script.next() })
    try paint(phone, "grey")
    #expect(throws: NetworkError.unreachable) { try phone.synchronize() }
    #expect(remote.records.isEmpty)
    try phone.synchronize()
    #expect(remote.records.count == 1)
  }

  /// The bug: the upload contained the placeholder of the country's code, and all devices got it.
  @Test func aMoodWhoseCountryCannotBeReadIsNotUploaded() throws {
    let folder = TemporaryFolder(), remote = Remote(), path = folder.path + "/phone.sqlite"
    let phone = try MoodSync(path: path, connection: Connection(to: remote))
    try phone.container.withContext { context in
      let iceland = context.insert(Country.self) { ($0.code, $0.name) = (352, "Iceland") }
      context.insert(Mood.self) { ($0.colors, $0.country) = ("grey", iceland) }
      try context.save()
    }
    // The second one downloads what the first one has uploaded.
    for _ in 0..<2 { try phone.synchronize() }
    try paint(phone, "gold")
    try phone.container.persistentStoreCoordinator.close()
    // A store that was opened again has no rows in a cache. The first request for rows is for the mood, the second one for its country.
    let description = MoodSync.store(at: path), store = FaultInjectingStore(description.makeStore())
    let reopened = try MoodSync(StoreDescription(type: description.type) { store }, connection: Connection(to: remote))
    store.fail(.rows, onCall: 2, with: StoreError(.inputOutput, operation: "read rows", reason: "A test said so."))
    func moods() -> [String] {
      remote.records.values.compactMap { record in
        guard case .mood(_, _, let colors, let country) = record else { return nil }
        return "\(colors) \(country ?? 0)"
      }
    }
    #expect(throws: StoreError.self) { try reopened.synchronize() }
    #expect(moods() == ["grey 352"])
    try reopened.synchronize()
    #expect(moods() == ["gold 352"])
  }

  /// An upload that arrives after a later one doesn't undo it.
  @Test func anUploadThatWasOvertakenIsIgnored() throws {
    let folder = TemporaryFolder(), remote = Remote(), script = Script([nil, nil, .requestLate(by: 2)])
    let phone = try MoodSync(path: folder.path + "/phone.sqlite", connection: Connection(to: remote) { script.next() })
    let tablet = try MoodSync(path: folder.path + "/tablet.sqlite", connection: Connection(to: remote))
    try paint(phone, "grey")
    #expect(throws: NetworkError.noAnswer) { try phone.synchronize() }
    #expect(remote.records.isEmpty)
    try paint(phone, "gold")
    // A download and an upload, and then the first upload arrives.
    try phone.synchronize()
    try tablet.synchronize()
    #expect(try colors(phone) == ["gold"] && colors(tablet) == ["gold"] && remote.changes(after: 0, limit: .max).end == 1)
  }

  /// A late answer has changes that the device knows, and others have followed them.
  @Test func anAnswerToAnEarlierRequestIsIgnored() throws {
    let folder = TemporaryFolder(), remote = Remote(), script = Script([nil, nil, nil, nil, .answerLate])
    let phone = try MoodSync(path: folder.path + "/phone.sqlite", connection: Connection(to: remote))
    let tablet = try MoodSync(path: folder.path + "/tablet.sqlite", connection: Connection(to: remote) { script.next() })
    try paint(phone, "grey")
    try phone.synchronize()
    // Three requests: it finds out which remote it is, downloads the mood and finds nothing more.
    try tablet.synchronize()
    try paint(phone, "gold")
    try phone.synchronize()
    // The second request has the answer with the grey mood.
    try tablet.synchronize()
    #expect(try colors(tablet) == ["gold"] && colors(phone) == ["gold"])
    let history = try tablet.container.persistentStoreCoordinator.fetchHistory(author: MoodSync.downloader)
    #expect(history.transactions.count == 2)
  }

  /// The bug: the device requested the changes again and again.
  @Test func aDeviceThatGetsOnlyLateAnswersGivesUp() throws {
    let folder = TemporaryFolder(), remote = Remote(), isLate = Mutex(false)
    let phone = try MoodSync(path: folder.path + "/phone.sqlite", connection: Connection(to: remote))
    let tablet = try MoodSync(
      path: folder.path + "/tablet.sqlite", connection: Connection(to: remote) { isLate.withLock { $0 } ? .answerLate : nil })
    try paint(phone, "grey")
    for device in [phone, tablet] { try device.synchronize() }
    isLate.withLock { $0 = true }
    #expect(throws: NetworkError.noAnswer) { try tablet.synchronize() }
    isLate.withLock { $0 = false }
    try paint(phone, "gold")
    for device in [phone, tablet] { try device.synchronize() }
    #expect(try colors(tablet) == ["gold"])
  }

  /// The token and the position are in the store, so a device continues where an earlier run has ended. Each run opens the store.
  @Test func aDeviceContinuesInItsNextRun() throws {
    let folder = TemporaryFolder(), remote = Remote()
    let tablet = try MoodSync(path: folder.path + "/tablet.sqlite", connection: Connection(to: remote))
    func run(_ body: (MoodSync) throws -> Void) throws {
      let phone = try MoodSync(path: folder.path + "/phone.sqlite", connection: Connection(to: remote))
      try body(phone)
      try phone.container.persistentStoreCoordinator.close()
    }
    try run { phone in
      try paint(phone, "grey")
      try phone.synchronize()
      // The next run uploads this.
      try paint(phone, "gold")
    }
    try tablet.synchronize()
    #expect(try colors(tablet) == ["grey"])
    try run { try $0.synchronize() }
    try tablet.synchronize()
    #expect(try colors(tablet) == ["gold"] && remote.changes(after: 0, limit: .max).end == 2)
    try run { phone in
      try phone.container.withContext { context in
        for mood in try context.fetch(Mood.self) { context.delete(mood) }
        try context.save()
      }
    }
    try run { try $0.synchronize() }
    try tablet.synchronize()
    #expect(try colors(tablet).isEmpty && remote.records.isEmpty)
  }

  /// Countries and continents are synchronized as well, and not only with moods.
  @Test func aRegionThatIsRenamedIsRenamedOnAllDevices() throws {
    let folder = TemporaryFolder(), remote = Remote()
    let devices = try ["phone", "tablet"].map { try MoodSync(path: folder.path + "/\($0).sqlite", connection: Connection(to: remote)) }
    try devices[0].container.withContext { context in
      let country = context.insert(Country.self) { ($0.code, $0.name) = (352, "Iceland") }
      country.continent = context.insert(Continent.self) { ($0.code, $0.name) = (10_001, "Europe") }
      try context.save()
    }
    for device in devices { try device.synchronize() }
    try devices[1].container.withContext { context in
      try context.fetch(Country.self).first?.name = "Ísland"
      try context.save()
    }
    for device in devices.reversed() { try device.synchronize() }
    for device in devices {
      #expect(
        try state(device) == [
          "region 352": .country(code: 352, name: "Ísland", continent: 10_001), "region 10001": .continent(code: 10_001, name: "Europe"),
        ])
    }
  }

  /// A change after the history was read, or after the downloaded mood was read, isn't lost.
  @Test(arguments: [2, 3]) func aChangeDuringADownloadIsKeptAndUploaded(_ interruption: Int) throws {
    let folder = TemporaryFolder(), remote = Remote()
    let phone = try MoodSync(path: folder.path + "/phone.sqlite", connection: Connection(to: remote))
    let tablet = try MoodSync(path: folder.path + "/tablet.sqlite", connection: Connection(to: remote))
    func change(_ device: MoodSync, _ body: (Mood) -> Void) throws {
      try device.container.withContext { context in
        body(try context.fetch(Mood.self).first ?? context.insert(Mood.self))
        try context.save()
      }
    }
    try change(phone) { $0.colors = "grey" }
    for device in [phone, tablet] { try device.synchronize() }
    try change(phone) { $0.date = Date(timeIntervalSinceReferenceDate: 5) }
    try phone.synchronize()
    var steps = interruption
    tablet.interruption = {
      steps -= 1
      if steps == 0 { try change(tablet) { $0.colors = "gold" } }
    }
    try tablet.synchronize()
    tablet.interruption = {}
    try phone.synchronize()
    for device in [phone, tablet] {
      let moods = try device.container.withContext { context in
        try context.fetch(Mood.self).map { "\($0.colors) \($0.date.timeIntervalSinceReferenceDate)" }
      }
      #expect(moods == ["gold 5.0"])
    }
  }

  private func change(_ device: MoodSync, _ random: inout Random) throws {
    try device.container.withContext { context in
      let moods = try context.fetch(Mood.self, sortedBy: \.remoteIdentifier)
      switch random.next(6) {
      case 0, 1:
        let countries = try context.fetch(Country.self, sortedBy: \.code)
        let mood = context.insert(Mood.self)
        mood.colors = "color \(random.next(1000))"
        mood.date = Date(timeIntervalSinceReferenceDate: Double(random.next(1_000_000)))
        if countries.isEmpty || random.next(4) == 0 {
          let country = context.insert(Country.self), continent = context.insert(Continent.self)
          let number = Int(random.next(6))
          (country.code, country.name, country.continent) = (number + 1, "Country \(number)", continent)
          (continent.code, continent.name) = (100 + number / 3, "Continent \(number / 3)")
          if number == 5 { country.continent = nil }
          mood.country = country
        } else {
          mood.country = countries[Int(random.next(UInt64(countries.count)))]
        }
        context.mergePolicy = .mergeByPropertyObjectTrump
      case 2: if !moods.isEmpty { moods[Int(random.next(UInt64(moods.count)))].colors = "color \(random.next(1000))" }
      case 3:
        // Clearing a property is a change as well.
        guard !moods.isEmpty else { break }
        let mood = moods[Int(random.next(UInt64(moods.count)))]
        if random.next(2) == 0 { mood.country = nil } else { mood.colors = "" }
      case 4:
        let countries = try context.fetch(Country.self, sortedBy: \.code)
        guard !countries.isEmpty else { break }
        let country = countries[Int(random.next(UInt64(countries.count)))]
        let region: GeographicRegion = random.next(2) == 0 ? country.continent ?? country : country
        region.name = "Name \(random.next(1000))"
      default: if !moods.isEmpty { context.delete(moods[Int(random.next(UInt64(moods.count)))]) }
      }
      try context.save()
    }
  }

  private func state(_ device: MoodSync) throws -> [String: Record] {
    try device.container.withContext { context in
      let records = try context.allObjectIDs().compactMap(context.record)
      #expect(Set(records.map(\.id)).count == records.count)
      return Dictionary(records.map { ($0.id, $0) }, uniquingKeysWith: { $1 })
    }
  }

  private struct Random {
    var state: UInt64

    mutating func next(_ bound: UInt64) -> UInt64 {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return (state >> 33) % bound
    }
  }
}
