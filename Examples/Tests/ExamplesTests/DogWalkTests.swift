import Foundation
import Testing

@Suite struct DogWalkTests {
  private let folder: TemporaryFolder

  init() throws { folder = TemporaryFolder() }

  private func run(_ store: ExampleStore, _ command: String...) throws -> Example.Outcome {
    try Example.dogWalk.run(store.options + command, in: folder)
  }

  /// Adds walks at these times, in this order.
  private func add(_ store: ExampleStore, _ dates: String...) throws {
    for date in dates { #expect(try run(store, "add", "--date", date) == .success()) }
  }

  // MARK: Normal use

  @Test(arguments: ExampleStore.allCases) func aListOfNoWalksPrintsNothing(_ store: ExampleStore) throws {
    #expect(try run(store, "list") == .success())
  }

  @Test(arguments: ExampleStore.files) func walksAreThereAfterARestartTheNewestLast(_ store: ExampleStore) throws {
    try add(store, "2026-05-04T07:30:00Z", "2026-05-04T18:00:00Z", "2026-05-05T07:45:00Z")
    #expect(try run(store, "list") == .success("2026-05-04T07:30:00Z", "2026-05-04T18:00:00Z", "2026-05-05T07:45:00Z"))
    #expect(try run(store, "list") == .success("2026-05-04T07:30:00Z", "2026-05-04T18:00:00Z", "2026-05-05T07:45:00Z"))
  }

  @Test(arguments: ExampleStore.files) func aWalkThatIsRecordedLateIsSortedByItsTime(_ store: ExampleStore) throws {
    try add(store, "2026-05-05T07:45:00Z", "2026-05-03T07:00:00Z", "2026-05-04T07:30:00Z", "2026-05-04T07:30:00Z")
    #expect(
      try run(store, "list")
        == .success("2026-05-03T07:00:00Z", "2026-05-04T07:30:00Z", "2026-05-04T07:30:00Z", "2026-05-05T07:45:00Z"))
  }

  @Test(arguments: ExampleStore.files) func aWalkIsDeletedByTheNumberOfItsLine(_ store: ExampleStore) throws {
    try add(store, "2026-05-03T07:00:00Z", "2026-05-04T07:00:00Z", "2026-05-05T07:00:00Z")
    #expect(try run(store, "delete", "2") == .success())
    #expect(try run(store, "list") == .success("2026-05-03T07:00:00Z", "2026-05-05T07:00:00Z"))
    #expect(try run(store, "delete", "2") == .success())
    #expect(try run(store, "delete", "1") == .success())
    #expect(try run(store, "list") == .success())
  }

  @Test(arguments: ExampleStore.files) func aWalkIsNowUnlessSaid(_ store: ExampleStore) throws {
    let before = Date()
    #expect(try run(store, "add") == .success())
    let line = try #require(try run(store, "list").lines.first)
    let time = try Date(line, strategy: .iso8601)
    #expect(time >= before.addingTimeInterval(-1) && time <= Date())
  }

  @Test func memoryForgetsWhenTheProgramEnds() throws {
    #expect(try run(.memory, "add") == .success())
    #expect(try run(.memory, "list") == .success())
  }

  @Test func timesAreReadWithTheirZoneAndPrintedInUTC() throws {
    try add(.json, "2026-05-04T00:30:00+02:00", "2026-05-04T07:30:00.75Z")
    #expect(try run(.json, "list") == .success("2026-05-03T22:30:00Z", "2026-05-04T07:30:00Z"))
  }

  @Test func optionsMayFollowTheCommand() throws {
    #expect(try Example.dogWalk.run(["add", "--date", "2026-05-04T07:30:00Z"] + ExampleStore.json.options, in: folder) == .success())
    #expect(try run(.json, "list") == .success("2026-05-04T07:30:00Z"))
  }

  /// Each process decides on what it read, and may find that another one saved first. Then it must report that and change nothing.
  @Test(arguments: ExampleStore.files) func severalAtATimeLoseNoWalk(_ store: ExampleStore) throws {
    try add(store, "2026-01-01T00:00:00Z")
    let running = try (1...6).map { try Example.dogWalk.start(store.options + ["add", "--date", "2026-05-0\($0)T07:00:00Z"], in: folder) }
    let outcomes = try running.map { try $0.finish() }
    for outcome in outcomes where outcome != .success() {
      #expect(outcome.status == 1 && outcome.output.isEmpty && outcome.errors.hasPrefix("Error: "), "\(outcome)")
    }
    let saved = outcomes.indices.filter { outcomes[$0] == .success() }.map { "2026-05-0\($0 + 1)T07:00:00Z" }
    #expect(!saved.isEmpty)
    #expect(try run(store, "list").lines == ["2026-01-01T00:00:00Z"] + saved)
  }

  // MARK: Errors

  /// Nothing on standard output, a sentence on standard error, and an exit status.
  private func expect(_ outcome: Example.Outcome, _ status: Int32, _ sentence: String, _ place: SourceLocation = #_sourceLocation) {
    #expect(outcome.status == status, sourceLocation: place)
    #expect(outcome.output.isEmpty, sourceLocation: place)
    #expect(outcome.errors.hasPrefix("Error: ") && outcome.errors.contains(sentence), "\(outcome.errors)", sourceLocation: place)
  }

  @Test(arguments: ExampleStore.files) func aNumberThatIsNotInTheListIsRefused(_ store: ExampleStore) throws {
    expect(try run(store, "delete", "1"), 1, "Walk 1 doesn't exist: Fido has had no walk yet.")
    try add(store, "2026-05-03T07:00:00Z")
    expect(try run(store, "delete", "2"), 1, "Walk 2 doesn't exist: Fido has had one walk.")
    try add(store, "2026-05-04T07:00:00Z")
    expect(try run(store, "delete", "3"), 1, "Walk 3 doesn't exist: Fido has had 2 walks. Give a number from 1 to 2.")
    expect(try run(store, "delete", "\(Int.max)"), 1, "Walk \(Int.max) doesn't exist")
    expect(try run(store, "delete", "0"), 64, "Walk numbers start at 1, so 0 isn't valid.")
    expect(try run(store, "delete", "-1"), 64, "Walk numbers start at 1, so -1 isn't valid.")
    expect(try run(store, "delete", "one"), 64, "INDEX takes a whole number, not 'one'.")
    expect(try run(store, "delete"), 64, "INDEX is missing.")
    expect(try run(store, "delete", "1", "2"), 64, "Unknown argument '2'.")
    expect(try run(store, "list", "--all"), 64, "Unknown argument '--all'.")
    expect(try run(store, "walk"), 64, "Unknown command 'walk'.")
    expect(try run(store, "add", "--date"), 64, "The value after --date is missing.")
    expect(try run(store, "list", "--store", "memory"), 64, "--store was given 2 times. Give it once.")
    #expect(try run(store, "list").lines.count == 2)
  }

  @Test(arguments: ExampleStore.files) func aFileIsNeeded(_ store: ExampleStore) throws {
    let sentence = "A \(store) store needs a file. Name it with --at PATH."
    expect(try Example.dogWalk.run("--store", store.rawValue, "list", in: folder), 64, sentence)
    expect(try Example.dogWalk.run("--store", store.rawValue, "--at", "", "add", in: folder), 64, sentence)
  }

  @Test func helpIsNoError() throws {
    let outcome = try Example.dogWalk.run("--help", in: folder)
    #expect(
      outcome.status == 0 && outcome.errors.isEmpty && outcome.output.contains("Usage: DogWalk --store memory|json|xml|binary|sqlite"))
  }

  @Test func aStoreMustBeOneThatThereIs() throws {
    expect(
      try Example.dogWalk.run("--store", "yaml", "--at", "walks.yaml", "add", in: folder), 64,
      "Unknown store 'yaml'. Stores: memory, json, xml, binary, sqlite.")
    expect(try Example.dogWalk.run("list", in: folder), 64, "Choose a store with --store: memory, json, xml, binary, sqlite.")
    // It would look like a diary that is kept.
    expect(
      try Example.dogWalk.run("add", "--store", "memory", "--at", "diary", in: folder), 64,
      "A memory store has no file, and is lost when the program ends. Remove --at, or choose another store.")
    #expect(!folder.exists("walks.yaml"))
  }

  @Test(arguments: ["2026-02-30T07:00:00Z", "2026-05-04", "2026-05-04T07:30:00", "2026-05-04T24:30:00Z", "yesterday", ""])
  func aDateMustBeOne(_ date: String) throws {
    expect(try run(.json, "add", "--date", date), 64, "Give a date and a time with its zone, such as 2026-05-04T07:30:00Z")
    #expect(!folder.exists("store.json"))
  }

  @Test(arguments: ExampleStore.files) func aFileThatIsNotAStoreIsRefusedAndKept(_ store: ExampleStore) throws {
    try folder.write("This is no store.", to: "store.\(store)")
    for command in ["list", "add"] { expect(try run(store, command), 1, "Could not open the store at ") }
    #expect(try String(contentsOfFile: folder.file("store.\(store)"), encoding: .utf8) == "This is no store.")
  }

  @Test(arguments: ExampleStore.files) func aDamagedFileIsRefused(_ store: ExampleStore) throws {
    try add(store, "2026-05-03T07:00:00Z", "2026-05-04T07:00:00Z")
    let file = URL(fileURLWithPath: folder.file("store.\(store)"))
    var bytes = try Data(contentsOf: file)
    bytes.removeLast(bytes.count / 2)
    try bytes.write(to: file)
    for command in ["list", "add"] { expect(try run(store, command), 1, "store.\(store)") }
  }

  @Test(arguments: ExampleStore.files) func aFolderThatIsNotThereIsNamed(_ store: ExampleStore) throws {
    expect(try Example.dogWalk.run("--store", store.rawValue, "--at", "nowhere/walks", "add", in: folder), 1, "nowhere")
  }
}
