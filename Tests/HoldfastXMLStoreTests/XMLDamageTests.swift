import Foundation
import Holdfast
import HoldfastStore
import HoldfastXMLStore
import Testing

/// Every change of a sealed file is found.
@Suite struct XMLDamageTests {
  private let file: XMLFile
  init() throws { file = try XMLFile() }

  private func make() throws -> [UInt8] {
    let context = try file.context()
    try Library.fill(context)
    try context.persistentStoreCoordinator.close()
    return try file.bytes()
  }

  @Test(.timeLimit(.minutes(10))) func E1_everyChangedByteIsFound() throws {
    let bytes = try make()
    var numbers = Seeded("changed bytes")
    for place in bytes.indices {
      var changed = bytes
      changed[place] ^= UInt8.random(in: 1...255, using: &numbers)
      try file.write(changed)
      let refusal = try #require(file.refusal(), "Byte \(place), now \(changed[place]), is not found.")
      #expect([.damaged, .notAStore, .newerFormat, .incompatibleModel].contains(refusal.code), "\(refusal)")
    }
  }

  @Test(.timeLimit(.minutes(10))) func E2_everyMissingEndAndEveryAdditionIsFound() throws {
    let bytes = try make()
    for count in 0..<bytes.count {
      try file.write(Array(bytes[..<count]))
      #expect(file.refusal() != nil, "\(count) of \(bytes.count) bytes pass.")
    }
    for addition in ["\n", " ", "<!-- -->", "<!-- xxh64:0123456789abcdef -->\n", "\u{0}"] {
      try file.write(bytes + addition.utf8)
      #expect(file.refusal()?.code == .damaged)
    }
  }

  @Test func theMarkOrTheDigestAloneIsDamageAndNeitherIsAForeignFile() throws {
    _ = try make()
    let text = try file.text()
    let withoutDigest = text.replacing(/<!-- xxh64.*/, with: "").trimmingCharacters(in: .newlines)
    try file.write(withoutDigest)
    #expect(file.refusal()?.code == .damaged && file.refusal(options: XMLFile.unverified) == nil)
    let withoutMark = text.replacing(/<key>_HoldfastSeal<\/key>\s*<integer>1<\/integer>/, with: "")
    try file.write(XMLFile.sealed(withoutMark))
    #expect(file.refusal()?.code == .damaged && file.refusal(options: XMLFile.unverified) == nil)
    try file.write(withoutMark.replacing(/<!-- xxh64.*/, with: ""))
    #expect(file.refusal() == nil)
    try file.write(
      XMLFile.sealed(
        text.replacing(/<key>_HoldfastSeal<\/key>\s*<integer>1<\/integer>/, with: "<key>_HoldfastSeal</key><integer>2</integer>")))
    #expect(file.refusal()?.code == .newerFormat)
  }

  @Test func aFileMendedByHandOpensUnverifiedAndIsSealedBySaving() throws {
    _ = try make()
    try file.write(try file.text().replacingOccurrences(of: "Volume 2", with: "Volume two"))
    #expect(file.refusal()?.code == .damaged)
    let context = try file.context(options: XMLFile.unverified)
    try context.persistentStoreCoordinator.setMetadata([:])
    try context.persistentStoreCoordinator.close()
    #expect(file.refusal() == nil)
    #expect(try file.text().contains("Volume two"))
  }
}

/// Random numbers from a seed that tests print; `HOLDFAST_SEED` repeats a run.
struct Seeded: RandomNumberGenerator {
  private var state: UInt64

  init(_ purpose: String) {
    state = ProcessInfo.processInfo.environment["HOLDFAST_SEED"].flatMap { UInt64($0) } ?? UInt64.random(in: 0...UInt64.max)
    print("\(purpose): HOLDFAST_SEED=\(state)")
  }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}
