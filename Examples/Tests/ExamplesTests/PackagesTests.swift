import Foundation
import Testing

@Suite struct PackagesTests {
  private let folder: TemporaryFolder

  init() throws {
    folder = TemporaryFolder()
    try folder.write(PackageFixture.text, to: "index")
  }

  /// Queries a store with the index of the fixture. A file is filled first; a memory store is filled for each query.
  private func ask(_ store: ExampleStore, _ question: [String]) throws -> Example.Outcome {
    if store == .memory { return try Example.packages.run(question + store.options + ["--from", "index"], in: folder) }
    if !folder.exists("store.\(store)") {
      #expect(try importIndex(store) == .success(Self.summary))
    }
    return try Example.packages.run(question + store.options, in: folder)
  }

  private func ask(_ store: ExampleStore, _ question: String...) throws -> Example.Outcome { try ask(store, question) }

  private func importIndex(_ store: ExampleStore, _ file: String = "index") throws -> Example.Outcome {
    try Example.packages.run(["import", "--from", file] + store.options, in: folder)
  }

  private static let summary =
    "Imported 8 packages of 3 maintainers. They refer to 3 other names. "
    + "Repeated stanzas skipped: 1."

  // MARK: Answers

  @Test(arguments: ExampleStore.allCases) func dependentsAreFound(_ store: ExampleStore) throws {
    #expect(try ask(store, "what-depends-on", "libbase") == .success("libtext", "postman", "spell"))
    #expect(try ask(store, "what-depends-on", "libtext") == .success("editor", "libbase"))
    #expect(try ask(store, "what-depends-on", "alone") == .success())
  }

  @Test(arguments: ExampleStore.allCases) func dependentsOfDependentsAreFoundThroughACircle(_ store: ExampleStore) throws {
    #expect(try ask(store, "what-depends-on", "libbase", "--transitive") == .success("editor", "libtext", "postman", "spell"))
    #expect(try ask(store, "what-depends-on", "libtext", "--transitive") == .success("editor", "libbase", "postman", "spell"))
    #expect(try ask(store, "what-depends-on", "editor", "--transitive") == .success())
  }

  @Test(arguments: ExampleStore.allCases) func eachAlternativeCounts(_ store: ExampleStore) throws {
    #expect(try ask(store, "what-depends-on", "spell") == .success("editor"))
    #expect(try ask(store, "what-depends-on", "spell-lite") == .success("editor"))
  }

  @Test(arguments: ExampleStore.allCases) func whoDependsOnAVirtualPackageDependsOnItsProviders(_ store: ExampleStore) throws {
    #expect(try ask(store, "what-depends-on", "mail-agent") == .success("editor"))
    #expect(try ask(store, "what-depends-on", "postman") == .success("editor"))
    #expect(try ask(store, "what-depends-on", "parrot") == .success("editor", "game"))
  }

  @Test(arguments: ExampleStore.allCases) func theLargestComeFirst(_ store: ExampleStore) throws {
    #expect(try ask(store, "largest", "--limit", "3") == .success("5000  game", " 900  libbase", " 700  postman"))
    #expect(try ask(store, "largest").lines.count == 7)
    #expect(
      try ask(store, "largest", "--by-section")
        == .success("5000  games", "1020  libs", " 740  mail", " 300  editors", "  50  text", "   0  no section"))
  }

  @Test(arguments: ExampleStore.allCases) func maintainersOfMostPackagesComeFirst(_ store: ExampleStore) throws {
    #expect(
      try ask(store, "maintainers") == .success("3  Bob <bob@example.org>", "2  Ann <ann@example.org>", "2  Cleo <cleo@example.org>"))
    #expect(try ask(store, "maintainers", "--limit", "2") == .success("3  Bob <bob@example.org>", "2  Ann <ann@example.org>"))
  }

  @Test(arguments: ExampleStore.allCases) func aPackageIsDescribed(_ store: ExampleStore) throws {
    #expect(
      try ask(store, "info", "editor")
        == .success(
          "Package: editor", "Version: 1.0-1", "Section: editors", "Installed-Size: 300 KiB", "Maintainer: Ann <ann@example.org>",
          "Description: edits text: all of it", "Depends: libtext, mail-agent, spell, spell-lite"))
    #expect(
      try ask(store, "info", "mail-agent")
        == .success("Package: mail-agent", "Version: virtual", "Provided-By: parrot, postman", "Needed-By: editor"))
    #expect(try ask(store, "info", "spell-lite") == .success("Package: spell-lite", "Version: not in the index", "Needed-By: editor"))
    #expect(try ask(store, "info", "spell").lines.contains("Version: 5"))
  }

  // MARK: Store requests

  /// A memory store has resident rows, which are requested one by one. SQLite returns them with the links.
  @Test(arguments: [
    (["largest"], [1, 0, 0], [1, 0, 0]), (["largest", "--by-section"], [1, 0, 0], [1, 0, 0]), (["maintainers"], [2, 0, 0], [2, 0, 0]),
    (["what-depends-on", "libbase"], [1, 3, 2], [1, 0, 2]),
    (["what-depends-on", "libbase", "--transitive"], [1, 5, 11], [1, 1, 7]),
    (["info", "editor"], [1, 5, 4], [1, 1, 4]),
  ]) func explainPrintsTheRequests(_ question: [String], _ atHand: [Int], _ sqlite: [Int]) throws {
    for store in ExampleStore.allCases {
      let counts = store == .sqlite ? sqlite : atHand
      let plain = try ask(store, question)
      let explained = try ask(store, question + ["--explain"])
      #expect(explained.output == plain.output && plain.errors.isEmpty)
      #expect(
        explained.errors
          == "Requests: fetches \(counts[0]), rows \(counts[1]), relationships \(counts[2]), key reservations 0, saves 0, others 0\n",
        "\(store): \(question)")
    }
  }

  @Test(arguments: ExampleStore.allCases) func anImportIsOneSave(_ store: ExampleStore) throws {
    let outcome = try Example.packages.run(["import", "--from", "index", "--explain"] + store.options, in: folder)
    #expect(outcome.output == Self.summary + "\n")
    #expect(outcome.errors == "Requests: fetches 2, rows 0, relationships 0, key reservations 1, saves 1, others 0\n")
  }

  // MARK: Importing

  @Test(arguments: ExampleStore.files) func anImportTakesThePlaceOfTheFormerIndex(_ store: ExampleStore) throws {
    try folder.write("Package: editor\nVersion: 2\nDepends: libnew\n\nPackage: libnew\nVersion: 1\n", to: "newer")
    #expect(try ask(store, "what-depends-on", "libbase").status == 0)
    #expect(try importIndex(store, "newer") == .success("Imported 2 packages of 0 maintainers. They refer to 0 other names."))
    #expect(try ask(store, "info", "editor") == .success("Package: editor", "Version: 2", "Depends: libnew"))
    #expect(try ask(store, "what-depends-on", "libnew") == .success("editor"))
    #expect(try ask(store, "maintainers") == .success())
    #expect(try ask(store, "info", "libbase").status == 1)
  }

  @Test(arguments: ExampleStore.files) func anImportThatFailsKeepsTheFormerIndex(_ store: ExampleStore) throws {
    try folder.write("This is no index.\n", to: "other")
    #expect(try ask(store, "what-depends-on", "spell") == .success("editor"))
    let outcome = try importIndex(store, "other")
    #expect(outcome.status == 1 && outcome.output.isEmpty && outcome.errors.contains("other contains no packages"))
    let missing = try importIndex(store, "missing")
    #expect(missing.status == 1 && missing.output.isEmpty && missing.errors.contains("Could not read the package index missing"))
    #expect(try ask(store, "what-depends-on", "spell") == .success("editor"))
  }

  // MARK: Errors

  @Test(arguments: ExampleStore.allCases) func anUnknownPackageIsAnError(_ store: ExampleStore) throws {
    for command in ["info", "what-depends-on"] {
      let outcome = try ask(store, command, "nobody")
      #expect(outcome.status == 1 && outcome.output.isEmpty)
      #expect(outcome.errors == "Error: The index has no package nobody, and no package depends on it or provides it.\n")
    }
  }

  @Test(arguments: ExampleStore.files) func aQuestionMakesNoFile(_ store: ExampleStore) throws {
    let outcome = try Example.packages.run(["info", "editor"] + store.options, in: folder)
    #expect(outcome.status == 1 && outcome.output.isEmpty && outcome.errors.contains("store.\(store)"))
    #expect(!folder.exists("store.\(store)"))
  }

  @Test(arguments: ExampleStore.files) func aFileIsNeeded(_ store: ExampleStore) throws {
    let outcome = try Example.packages.run("maintainers", "--store", store.rawValue, in: folder)
    #expect(outcome.status == 64 && outcome.output.isEmpty && outcome.errors.contains("Name it with --at PATH."))
  }

  @Test func aListHasALineAtLeast() throws {
    let outcome = try ask(.memory, "largest", "--limit", "0")
    #expect(outcome.status == 64 && outcome.output.isEmpty && outcome.errors.contains("Give at least 1 with --limit."))
  }
}
