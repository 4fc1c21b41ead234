import Foundation
import Holdfast
import HoldfastBinaryStore
import HoldfastStore
import TestSupport
import Testing

/// The fuzzer's seed files. With `HOLDFAST_MAKES_SEEDS` set, this test regenerates them.
@Suite struct BinarySeedTests {
  private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().appendingPathComponent("Fuzzing/Seeds/BinaryStores")

  private static func make(_ name: String) throws {
    let file = try BinaryTestFile()
    let context = try file.context(BinaryStoreProperty.model)
    if name != "empty.holdfast" {
      let objects = try (0..<(name == "values.holdfast" ? 3 : 2)).map { number in
        let object = try context.insert(entityNamed: "A")
        try object.setValue(.int64(Int64(number) * 7), forKey: "ainteger64")
        if name != "values.holdfast" { return object }
        try object.setValue(.string("Text \(number)"), forKey: "astring")
        try object.setValue(.double(0.5 * Double(number)), forKey: "adouble")
        try object.setValue(.date(Double(number) * 86_400), forKey: "adate")
        try object.setValue(.data(Data([1, 2, 3])), forKey: "abinaryData")
        if number > 0 {
          try object.setValue(.decimal(Decimal(number) / 8), forKey: "adecimal")
          try object.setValue(.uuid(UUID(uuid: (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, UInt8(number)))), forKey: "auuid")
          try object.setValue(.float(1.5), forKey: "afloat")
          try object.setValue(.bool(true), forKey: "aboolean")
          try object.setValue(.uri("a:b"), forKey: "auri")
        }
        return object
      }
      if name == "links.holdfast" {
        let d = try context.insert(entityNamed: "D")
        for _ in 0..<3 { try objects[0].ordered(forKey: "list").append(try context.insert(entityNamed: "B")) }
        try objects[0].toMany(forKey: "many").insert(d)
        try objects[1].toMany(forKey: "many").insert(d)
        try objects[0].toMany(forKey: "same").insert(objects[1])
        try objects[1].toMany(forKey: "own").insert(d)
      }
      if name == "inverses.holdfast" {
        for number in 0..<5 { try objects[number % 2].toMany(forKey: "set").insert(try context.insert(entityNamed: "B")) }
      }
    }
    try context.save()
    try context.persistentStoreCoordinator.close()
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    try Data(try file.bytes()).write(to: folder.appendingPathComponent(name))
  }

  /// `inverses.holdfast` has inverse links. The others were written by version 0.1, without them.
  @Test(arguments: ["values.holdfast", "links.holdfast", "empty.holdfast", "inverses.holdfast"]) func theSeedsOpen(_ name: String) throws {
    if ProcessInfo.processInfo.environment["HOLDFAST_MAKES_SEEDS"] != nil { try Self.make(name) }
    let bytes = Array(try Data(contentsOf: Self.folder.appendingPathComponent(name)))
    let file = try BinaryTestFile()
    try file.write(bytes)
    try file.open(BinaryStoreProperty.model)
    #expect(BinaryStoreProperty.violation(bytes) == nil)
    #expect(BinaryImage(bytes).places(of: 8).count == (name == "inverses.holdfast" ? 1 : 0))
  }

  @Test(arguments: ["values.holdfast", "links.holdfast", "inverses.holdfast"]) func changedSeedsAreReadOrRefused(_ name: String) throws {
    let bytes = Array(try Data(contentsOf: Self.folder.appendingPathComponent(name)))
    var numbers = SeededGenerator("Changed binary seeds"), refused = 0
    let rounds = TestTier.count(500, full: 1_000)
    for _ in 0..<rounds {
      var changed = bytes
      for _ in 0..<Int.random(in: 1...3, using: &numbers) {
        let place = Int.random(in: 0..<changed.count, using: &numbers)
        changed[place] = [0, 1, 2, 0x7F, 0x80, 0xFF, UInt8.random(in: 0...255, using: &numbers)].randomElement(using: &numbers) ?? 0
      }
      switch BinaryStoreProperty.outcome(changed) {
      case .accepted: break
      case .refused: refused += 1
      case .violation(let violation):
        let places = bytes.indices.filter { bytes[$0] != changed[$0] }.map { "\($0): \(changed[$0])" }
        Issue.record("\(violation)\n\(places)")
        return
      }
    }
    #expect((rounds * 15 / 100...rounds * 8 / 10).contains(refused), "\(refused) of \(rounds) refused")
  }
}
