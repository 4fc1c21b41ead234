import Foundation
import Holdfast
import HoldfastMemoryStore
import HoldfastModelFile
import Testing

@testable import BowTies
@testable import HandwrittenBowTies

@Suite struct BowTiesTests {
  private let folder: TemporaryFolder

  init() throws { folder = TemporaryFolder() }

  private func run(_ store: ExampleStore, _ command: String..., input: String? = nil) throws -> Example.Outcome {
    try Example.bowTies.run(store.options + command, in: folder, input: input)
  }

  @Test(arguments: ExampleStore.allCases) func aNewStoreBeginsWithTheSamples(_ store: ExampleStore) throws {
    let lines = try run(store, "list").lines
    #expect(lines == ["R  Ember, a favourite", "G  Fernway", "B  Harbour, a favourite", "O  Marigold"])
  }

  @Test(arguments: ExampleStore.files) func theSamplesAreImportedOnce(_ store: ExampleStore) throws {
    #expect(try run(store, "rate", "R", "1") == .success("Ember is rated 1.0."))
    #expect(try run(store, "list").lines.count == 4)
    #expect(try run(store, "show", "R").lines[1] == "  rated 1.0, worn 7 times, last on 2026-02-14T18:30:00Z")
  }

  @Test(arguments: ExampleStore.files) func everyAttributeIsThereAfterARestart(_ store: ExampleStore) throws {
    _ = try run(store, "list")
    let lines = try run(store, "show", "B").lines
    #expect(lines.first == "Harbour (B), a favourite")
    #expect(lines[1] == "  rated 5.0, worn 12 times, last on 2026-03-08T20:15:00Z")
    #expect(lines[2].hasPrefix("  colour #1e468c, photo of ") && !lines[2].contains("photo of 0"))
    #expect(Array(lines[3...]) == ["  https://example.org/ties/harbour", "  6F9619FF-8B86-4011-B42D-00C04FC964F4"])
  }

  @Test(arguments: ExampleStore.files) func wearingCountsAndDates(_ store: ExampleStore) throws {
    #expect(try run(store, "wear", "G", "--date", "2026-05-04T19:30:00Z") == .success())
    #expect(try run(store, "wear", "G", "--date", "2026-05-05T19:30:00Z") == .success())
    #expect(try run(store, "show", "G").lines[1] == "  rated 0.0, worn 2 times, last on 2026-05-05T19:30:00Z")
  }

  @Test(arguments: ExampleStore.files) func aRatingOfSixIsRefusedWithCodeAndSentenceAndAskedAgain(_ store: ExampleStore) throws {
    let outcome = try run(store, "rate", "O", "6", input: "good\n-2\n4\n")
    #expect(
      outcome
        == .success(
          "Rating may be at most 5. [1610]", "Another rating?", "'good' isn't a number.", "Another rating?",
          "Rating must be at least 0. [1620]",
          "Another rating?", "Marigold is rated 4.0."))
    #expect(try run(store, "rate", "O", "7").lines.last == "Marigold stays at 4.0.")
    #expect(try run(store, "show", "O").lines[1].hasPrefix("  rated 4.0,"))
  }

  @Test func whatIsWrongIsSaidInASentence() throws {
    #expect(
      try run(.memory, "show", "X")
        == Example.Outcome(output: "", errors: "Error: Bow tie X doesn't exist. The command list prints all keys.\n", status: 1))
    #expect(try run(.memory, "wear", "R", "--date", "today").status == 64)
    #expect(try run(.memory, "iron", "R").status == 64)
  }

  // MARK: The same model in other forms

  private static let model = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().appendingPathComponent("Sources/GeneratedBowTies/BowTies.xcdatamodeld").path

  @Test func theClassDeclaresTheModelOfXcodesFileWhichIsWrittenAsXcodeWritesIt() throws {
    let bundle = try ModelBundle(contentsOf: Self.model)
    let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: Self.model + "/BowTies.xcdatamodel/contents")))
    #expect(try bundle.document().serialized() == bytes)
    let declared = try ManagedObjectModel.declared(by: [BowTies.BowTie.self])
    #expect(try bundle.model().versionDigest == declared.versionDigest)
  }

  @Test func theClassWrittenByHandReadsAndChangesTheProgramsTies() throws {
    let contents = MemoryStoreContents()
    // It is closed when it is released.
    do { #expect(try Wardrobe(.memory(contents: contents)).ties().count == 4) }
    let model = try ManagedObjectModel(contentsOf: Self.model)
    let context = try PersistentContainer(
      model: model, classes: [HandwrittenBowTies.BowTie.self], store: .memory(contents: contents)
    ).newContext()
    let tie = try #require(try context.fetchOne(HandwrittenBowTies.BowTie.self) { $0.searchKey == "B" })
    #expect(tie.name == "Harbour" && tie.isFavorite && tie.timesWorn == 12 && tie.rating == 5)
    #expect(tie.url == URL(string: "https://example.org/ties/harbour") && tie.photoData?.isEmpty == false)
    #expect(try CodableTransformer<Color>().value(from: #require(tie.tintColor)).description == "#1e468c")
    tie.rating = 6
    #expect(throws: PersistenceError.self) { try context.save() }
  }
}
