import Foundation
import Holdfast
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

  /// Random changes on both devices, and synchronizations that are interrupted between any of their steps. When both have synchronized
  /// without an interruption, they and the remote have the same moods. Prints its seed; HOLDFAST_SEED repeats a run.
  @Test func interruptedSynchronizationsEndInAgreement() throws {
    let seed = ProcessInfo.processInfo.environment["HOLDFAST_SEED"].flatMap(UInt64.init) ?? .random(in: 0 ... .max)
    print("Seed: HOLDFAST_SEED=\(seed) in MoodyTests.swift")
    var random = Random(state: seed)
    for round in 0..<12 {
      let folder = TemporaryFolder(), remote = Remote()
      let devices = try ["phone", "tablet"].map { try MoodSync(path: folder.path + "/\($0).sqlite", remote: remote) }
      for _ in 0..<40 {
        let device = devices[Int(random.next(2))]
        if random.next(30) == 0 { try device.container.persistentStoreCoordinator.deleteHistory(upTo: nil) }
        if random.next(3) > 0 {
          try change(device, &random)
        } else {
          try synchronize(device, &random)
        }
      }
      for device in devices + devices { try device.synchronize() }
      let comment = Comment(rawValue: "seed \(seed), round \(round)")
      for device in devices {
        let found = try state(device), expected = remote.records
        let differences = Set(found.keys).union(expected.keys).filter { found[$0] != expected[$0] }
        #expect(differences.map { [found[$0], expected[$0]] }.isEmpty, comment)
      }
      // Nothing is left to send.
      let log = remote.changes(after: 0, limit: .max).position
      for device in devices { try device.synchronize() }
      #expect(remote.changes(after: 0, limit: .max).position == log, comment)
    }
  }

  private struct Interruption: Error {}

  /// Synchronizes a device, and interrupts it once or not at all. Meanwhile the program changes moods.
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

  /// A change between reading a downloaded mood and saving it isn't lost.
  @Test func aChangeDuringADownloadIsKeptAndUploaded() throws {
    let folder = TemporaryFolder(), remote = Remote()
    let phone = try MoodSync(path: folder.path + "/phone.sqlite", remote: remote)
    let tablet = try MoodSync(path: folder.path + "/tablet.sqlite", remote: remote)
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
    // The second interruption of a download comes after the mood was read.
    var steps = 2
    tablet.interruption = {
      steps -= 1
      if steps == 0 { try change(tablet) { $0.colors = "gold" } }
    }
    try tablet.synchronize()
    tablet.interruption = {}
    try phone.synchronize()
    for device in [phone, tablet] {
      #expect(try state(device).values.map { [$0.colors, "\($0.date.timeIntervalSinceReferenceDate)"] } == [["gold", "5.0"]])
    }
  }

  private func change(_ device: MoodSync, _ random: inout Random) throws {
    try device.container.withContext { context in
      let moods = try context.fetch(Mood.self, sortedBy: \.remoteIdentifier)
      switch random.next(5) {
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
      default: if !moods.isEmpty { context.delete(moods[Int(random.next(UInt64(moods.count)))]) }
      }
      try context.save()
    }
  }

  private func state(_ device: MoodSync) throws -> [String: MoodRecord] {
    try device.container.withContext { context in
      let moods = try context.fetch(Mood.self)
      let codes = try context.fetch(Country.self).map(\.code) + context.fetch(Continent.self).map(\.code)
      #expect(Set(codes).count == codes.count)
      return Dictionary(uniqueKeysWithValues: moods.map { ($0.remoteIdentifier, MoodRecord($0)) })
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
