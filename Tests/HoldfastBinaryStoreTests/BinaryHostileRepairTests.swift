import Holdfast
import HoldfastBinaryStore
import HoldfastStore
import HoldfastStoreConformance
import TestSupport
import Testing

/// Repairs a file, and returns the bytes of the new one.
private func repair(_ bytes: [UInt8]) throws -> (report: RepairReport, bytes: [UInt8]) {
  let disk = InverseLinkTests.disk(bytes)
  var options = BinaryStoreOptions()
  options.wholeFile.file.fileSystem = disk
  let report = try PersistentStoreCoordinator.repairPersistentStore(
    .binary(at: "/people", options: options), to: .binary(at: "/repaired", options: options), model: InverseLinkTests.model)
  return (report, disk.contents(of: "repaired") ?? [])
}

/// Repairs of files with valid digests whose directory contains impossible numbers (RX17).
@Suite(.ownThreads) struct BinaryHostileRepairTests {
  /// The sum of the counts is larger than any integer.
  @Test func RX17_anyCountOfUnreadableRowsIsReported() async {
    await #expect(processExitsWith: .success) {
      let bytes = try InverseLinkTests.file(2_000)
      for count in [1 << 40, 1 << 62, 1 << 63 - 1] as [UInt64] {
        var image = BinaryImage(bytes)
        let places = image.places(of: 3)
        try #require(places.count > 3)
        for place in places { image.sections[place].count = count }
        let report = try repair(image.bytes).report
        #expect(report.objectCount == 0 && (1...bytes.count / 4).contains(report.unreadableCount), "\(count): \(report)")
        #expect(report.damagedPlaceCount >= places.count, "\(report)")
      }
    }
  }

  @Test func RX17_anyNumberOfTheDirectoryEndsInAnErrorOrAReport() async {
    await #expect(processExitsWith: .success) {
      let image = BinaryImage(try InverseLinkTests.file(200))
      var (refused, repaired, damaged) = (0, 0, 0)
      func attempt(_ change: (inout BinaryImage) -> Void) throws {
        var changed = image
        change(&changed)
        do {
          let (report, _) = try repair(changed.bytes)
          repaired += 1
          if report.damagedPlaceCount > 0 { damaged += 1 }
        } catch is StoreError { refused += 1 }
      }
      for place in image.sections.indices {
        for number in [0, 1, 1 << 31, 1 << 32 - 1, 1 << 62, 1 << 62 + 1, 1 << 63 - 1, 1 << 63, .max] as [UInt64] {
          try attempt { $0.sections[place].count = number }
          try attempt { $0.sections[place].first = number }
          try attempt { $0.sections[place].last = number }
          try attempt { ($0.sections[place].first, $0.sections[place].last) = (number, number) }
          try attempt { $0.sections[place].subject = UInt32(truncatingIfNeeded: number) }
          try attempt { ($0.sections[place].count, $0.sections[place].bytes[0]) = (number, 0xFF) }
        }
      }
      // Some numbers are right, or aren't used by the repair.
      #expect(refused + damaged > 300 && repaired > 100, "\(refused) refused, \(repaired) repaired, \(damaged) of them damaged")
    }
  }

  /// None of the links of a section whose last number is malformed are recovered, as the report states.
  @Test func aSectionOfLinksWithAMalformedEndAddsNothing() throws {
    var image = BinaryImage(try InverseLinkTests.file(200))
    let place = try #require(image.places(of: 4).first), count = image.sections[place].count
    image.sections[place].bytes[image.sections[place].bytes.count - 1] = 0x80
    let (report, bytes) = try repair(image.bytes)
    #expect(report.notes.contains { $0.hasPrefix("\(count) links of Person.") } && report.objectCounts["Person"] == 200, "\(report)")
    let opened = try InverseLinkTests.Opened(bytes), owners = (1...200).map { ObjectKey($0) }
    #expect(try opened.answer("friends", owners).isEmpty)
    #expect(try !opened.answer("employees", owners).isEmpty)
  }
}
