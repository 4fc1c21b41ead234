import Foundation
import HoldfastCommands
import HoldfastSQLiteStore
import HoldfastStore
import Testing

/// The commands of stores as their user runs them.
@Suite struct StoreCommandLineTests {
  private let fixture: Fixture

  init() throws {
    fixture = try Fixture()
    try fixture.writeStore(.sqlite(at: fixture.path("zoo.sqlite")))
  }

  private func run(_ arguments: String...) throws -> CommandProcess { try CommandProcess(["store"] + arguments, in: fixture) }

  /// What `check` prints of a store: the number of its objects and their digest.
  private func contents(_ name: String) throws -> String {
    let check = try run("check", name)
    #expect(check.status == 0 && check.errors.isEmpty, "\(check)")
    return check.output
  }

  private func exists(_ name: String) -> Bool { FileManager.default.fileExists(atPath: fixture.path(name)) }

  private func bytes(_ name: String) throws -> Data { try Data(contentsOf: URL(fileURLWithPath: fixture.path(name))) }

  /// Writes a model whose dogs have no rating, and walks have a note.
  ///
  /// - Parameter keepsRating: Whether the dogs have one.
  private func writeModel(keepsRating: Bool) throws -> String {
    let old = try Fixture.model(), name = keepsRating ? "larger.json" : "smaller.json"
    var entities = old.declarations
    for place in entities.indices {
      switch entities[place].name {
      case "Dog" where !keepsRating:
        entities[place].attributes.removeAll { $0.name == "rating" }
        entities[place].indexes = []
      case "Walk": entities[place].attributes.append(AttributeDescription("note", .string, isOptional: true))
      default: break
      }
    }
    let new = try ManagedObjectModel(entities: entities, composites: old.composites)
    try Data(try new.canonicalJSON()).write(to: URL(fileURLWithPath: fixture.path(name)))
    return name
  }

  private func expectFailure(_ outcome: CommandProcess, _ path: String, _ reason: String) {
    #expect(outcome.status == 1 && outcome.output.isEmpty && outcome.errors.hasPrefix("holdfast: \(path): "), "\(outcome)")
    #expect(outcome.errors.contains(reason), "\(outcome)")
  }

  @Test func storesAreCopiedMovedConvertedAndCompacted() throws {
    let before = try contents("zoo.sqlite")
    #expect(before.hasPrefix("5 objects, digest "))
    #expect(try run("copy", "zoo.sqlite", "copy.sqlite").status == 0)
    #expect(try contents("copy.sqlite") == before)
    expectFailure(try run("copy", "zoo.sqlite", "copy.sqlite"), "copy.sqlite", "There is something at this path.")
    #expect(try run("move", "copy.sqlite", "moved.sqlite").status == 0)
    #expect(try !exists("copy.sqlite") && contents("moved.sqlite") == before)
    for name in ["zoo.json", "zoo.xml", "zoo.binary"] {
      let convert = try run("convert", "zoo.sqlite", name)
      #expect(try convert.status == 0 && convert.output == before && contents(name) == before, "\(convert)")
    }
    let compact = try run("compact", "zoo.sqlite", "--yes", "--no-backup")
    #expect(compact.status == 0 && compact.output.contains(" bytes before, ") && compact.errors.isEmpty, "\(compact)")
    #expect(try contents("zoo.sqlite") == before)
    for name in ["zoo.json", "zoo.xml", "zoo.binary"] {
      let file = try bytes(name), nothing = try run("compact", name)
      #expect(nothing.status == 0 && nothing.errors.isEmpty, "\(nothing)")
      #expect(nothing.output == "Nothing needs to be done: only SQLite stores have unused space.\n", "\(nothing)")
      #expect(try bytes(name) == file)
    }
    #expect(try FileManager.default.contentsOfDirectory(atPath: fixture.folder.path).allSatisfy { !$0.contains("backup") })
    try Data("{}".utf8).write(to: URL(fileURLWithPath: fixture.path("empty.json")))
    expectFailure(try run("compact", "empty.json"), "empty.json", "The store can't be read.")
    expectFailure(try run("check", "missing.sqlite"), "missing.sqlite", "There is no file at this path.")
  }

  @Test func objectsAreExportedAndImported() throws {
    try Data(try Fixture.model().canonicalJSON()).write(to: URL(fileURLWithPath: fixture.path("model.json")))
    for (name, format) in [("objects.json", "json"), ("objects", "csv")] {
      #expect(try run("export", "zoo.sqlite", name, "--format", format).output == "5 objects\n")
      #expect(try run("import", "\(format).sqlite", name, "--model", "model.json").output == "5 objects imported\n")
      let imported = try contents("\(format).sqlite")
      #expect(imported.hasPrefix("5 objects, "))
      // Names of dogs are unique, so nothing is imported.
      let path = "\(format).sqlite", copy = "A copy of the store is \(format)-backup.sqlite."
      expectFailure(try run("import", path, name, "--yes"), path, "can't be saved. The store is unchanged. \(copy)")
      #expect(try contents("\(format)-backup.sqlite") == imported)
      #expect(try contents("\(format).sqlite") == imported)
      expectFailure(try run("export", "zoo.sqlite", name), name, "There is something at this path.")
    }
  }

  @Test func aRepairThatLosesSomethingHasAnExitCodeOfItsOwn() throws {
    let before = try contents("zoo.sqlite"), model = try fixture.writeModel()
    let intact = try run("repair", "zoo.sqlite", "intact.sqlite")
    #expect(try intact.status == 0 && contents("intact.sqlite") == before, "\(intact)")
    // Without its header, the file isn't recognised, and its model is lost with the metadata's table.
    var bytes = try Data(contentsOf: URL(fileURLWithPath: fixture.path("zoo.sqlite")))
    bytes.replaceSubrange(0..<4096, with: Data(count: 4096))
    try bytes.write(to: URL(fileURLWithPath: fixture.path("zoo.sqlite")))
    let damaged = try run("repair", "zoo.sqlite", "repaired.sqlite", "--model", model)
    #expect(damaged.status == 2 && damaged.errors.isEmpty && !damaged.output.isEmpty, "\(damaged)")
    #expect(try contents("repaired.sqlite") == before)
    #expect(try Data(contentsOf: URL(fileURLWithPath: fixture.path("zoo.sqlite"))) == bytes)
  }

  // MARK: Migrations

  @Test func aMigrationThatLosesNothingIsDoneAndKeepsTheFormerStore() throws {
    let before = try contents("zoo.sqlite"), model = try writeModel(keepsRating: true)
    let preview = try run("migrate", "zoo.sqlite", "--to", model, "--dry-run")
    #expect(preview.status == 0 && preview.output.contains("Walk: 3 objects\n") && !preview.output.contains("Lost"), "\(preview)")
    #expect(try contents("zoo.sqlite") == before && !exists("zoo-backup.sqlite"))
    let done = try run("migrate", "zoo.sqlite", "--to", model)
    #expect(done.status == 0 && done.errors.isEmpty, "\(done)")
    #expect(done.output.hasSuffix("5 objects migrated. The former store is zoo-backup.sqlite.\n"), "\(done)")
    #expect(try contents("zoo-backup.sqlite") == before)
    #expect(try contents("zoo.sqlite").hasPrefix("5 objects, "))
    let again = try run("migrate", "zoo.sqlite", "--to", model)
    #expect(again.status == 0 && again.output == "The store already has this version.\n" && !exists("zoo-backup-2.sqlite"), "\(again)")
  }

  @Test func aMigrationThatLosesDataNeedsConsent() throws {
    let before = try contents("zoo.sqlite"), model = try writeModel(keepsRating: false)
    let refused = try run("migrate", "zoo.sqlite", "--to", model)
    #expect(refused.status == 1 && refused.output.contains("\nLost: Dog.rating of 2 objects\n"), "\(refused)")
    #expect(refused.errors == "holdfast: Data would be lost. To lose it, repeat the command with --yes.\n", "\(refused)")
    #expect(try contents("zoo.sqlite") == before && !exists("zoo-backup.sqlite"))
    let done = try run("migrate", "zoo.sqlite", "--to", model, "--yes", "--no-backup")
    #expect(done.status == 0 && done.output.hasSuffix("\n5 objects migrated.\n") && !exists("zoo-backup.sqlite"), "\(done)")
    #expect(try contents("zoo.sqlite") != before)
  }

  @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: CommandProcess.terminal), "The program script isn't installed."))
  func aMigrationThatLosesDataAsksOnATerminal() throws {
    let before = try contents("zoo.sqlite"), arguments = ["store", "migrate", "zoo.sqlite", "--to", try writeModel(keepsRating: false)]
    let refused = try CommandProcess(arguments, in: fixture, typing: "no")
    #expect(refused.status == 1 && refused.output.contains("Migrate anyway? Type yes: "), "\(refused)")
    #expect(try contents("zoo.sqlite") == before && !exists("zoo-backup.sqlite"))
    let done = try CommandProcess(arguments, in: fixture, typing: "yes")
    #expect(done.status == 0 && done.output.contains("5 objects migrated. The former store is zoo-backup.sqlite."), "\(done)")
    #expect(try contents("zoo-backup.sqlite") == before)
  }

  /// A file as Core Data writes it contains no model, so it is passed.
  @Test func anXMLStoreOfAnotherProgramIsMigratedAndImportedIntoWithBackups() throws {
    let name = AttributeDescription("firstname", .string, isOptional: true), old = try Kennel.model(name)
    let new = try Kennel.model(name, AttributeDescription("note", .string, isOptional: true)), text = Kennel.xml(of: old)
    for (file, model) in [("old.json", old), ("new.json", new)] {
      try Data(try model.canonicalJSON()).write(to: URL(fileURLWithPath: fixture.path(file)))
    }
    try Data(text.utf8).write(to: URL(fileURLWithPath: fixture.path("kennel.xml")))
    try Data(#"{"Dog": [{"firstname": "Rex"}]}"#.utf8).write(to: URL(fileURLWithPath: fixture.path("dogs.json")))

    expectFailure(try run("migrate", "kennel.xml", "--to", "new.json"), "kennel.xml", "Pass the model with --model")
    expectFailure(try run("import", "kennel.xml", "dogs.json", "--yes"), "kennel.xml", "Pass the model with --model")
    let preview = try run("migrate", "kennel.xml", "--model", "old.json", "--to", "new.json", "--dry-run")
    #expect(preview.status == 0 && preview.output.contains("Dog: 1 object") && !preview.output.contains("Lost"), "\(preview)")
    let refused = try run("import", "kennel.xml", "dogs.json", "--model", "old.json")
    #expect(refused.status == 1 && refused.errors.contains("repeat the command with --yes"), "\(refused)")
    #expect(try bytes("kennel.xml") == Data(text.utf8) && !exists("kennel-backup.xml"))

    let imported = try run("import", "kennel.xml", "dogs.json", "--model", "old.json", "--yes")
    #expect(imported.status == 0 && imported.output == "1 objects imported. The former store is kennel-backup.xml.\n", "\(imported)")
    #expect(try bytes("kennel-backup.xml") == Data(text.utf8))
    let migrated = try run("migrate", "kennel.xml", "--model", "old.json", "--to", "new.json")
    #expect(migrated.status == 0, "\(migrated)")
    #expect(migrated.output.hasSuffix("3 objects migrated. The former store is kennel-backup-2.xml.\n"), "\(migrated)")
    #expect(try contents("kennel.xml").hasPrefix("3 objects, digest "))
    #expect(try StoreReport(path: fixture.path("kennel.xml")).uuid == Kennel.uuid)
    // The former store as well, without the import.
    try Data(text.utf8).write(to: URL(fileURLWithPath: fixture.path("kennel.xml")))
    let first = try run("migrate", "kennel.xml", "--model", "old.json", "--to", "new.json", "--no-backup")
    #expect(first.status == 0 && first.output.hasSuffix("2 objects migrated.\n") && !exists("kennel-backup-3.xml"), "\(first)")
    #expect(try contents("kennel.xml").hasPrefix("2 objects, digest "))
  }
}
