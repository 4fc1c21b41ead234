import Foundation
import Holdfast
import HoldfastCommands
import HoldfastSQLiteStore
import HoldfastStore
import Testing

/// The commands on a SQLite file that Core Data created for a configuration of a model: it has nothing of the model's other entities.
@Suite struct ConfigurationTests {
  private let fixture: Fixture
  private let cloud = ["--model", "model.json", "--configuration", "cloud"]

  init() throws {
    fixture = try Fixture()
    let part = try Kennel.model(AttributeDescription("firstname", .string, isOptional: true))
    let coordinator = try PersistentStoreCoordinator(model: part, store: .sqlite(at: fixture.path("own.sqlite")))
    let context = try ManagedObjectContext(coordinator: coordinator)
    let dog = try context.insert(entityNamed: "Dog")
    try dog.setValue(.string("Fido"), forKey: "firstname")
    for _ in 0..<2 { try context.insert(entityNamed: "Walk").setValue(dog, forKey: "dog") }
    try context.save()
    try coordinator.close()
    // Without the marks and the model that only Holdfast's files have. Their keys are replaced by others that only stores may write.
    try StoreFile(path: fixture.path("own.sqlite")).copy(to: fixture.path("cloud.sqlite"))
    var file = try bytes("cloud.sqlite")
    for name in ["Layout", "Model"] {
      let key = Data("_Holdfast\(name)".utf8)
      while let range = file.range(of: key) { file.replaceSubrange(range, with: Data("_NSldfast\(name)".utf8)) }
    }
    try file.write(to: URL(fileURLWithPath: fixture.path("cloud.sqlite")))
    let whole = try ManagedObjectModel(
      entities: part.declarations + [EntityDescription("Account", attributes: [AttributeDescription("note", .string, isOptional: true)])],
      configurations: [
        ConfigurationDescription("cloud", ["Dog", "Walk"]), ConfigurationDescription("few", ["Dog"]),
        ConfigurationDescription("local", ["Account"]),
      ])
    try Data(try whole.canonicalJSON()).write(to: URL(fileURLWithPath: fixture.path("model.json")))
  }

  private func run(_ arguments: [String]) throws -> CommandProcess { try CommandProcess(["store"] + arguments, in: fixture) }

  private func bytes(_ name: String) throws -> Data { try Data(contentsOf: URL(fileURLWithPath: fixture.path(name))) }

  private func expectFailure(_ arguments: [String], _ reason: String) throws {
    let outcome = try run(arguments)
    #expect(outcome.status == 1 && outcome.output.isEmpty && outcome.errors.contains(reason), "\(outcome)")
  }

  @Test func theFileIsReadWithItsConfiguration() throws {
    let before = try bytes("cloud.sqlite"), info = try run(["info", "cloud.sqlite", "--json"] + cloud)
    #expect(info.status == 0 && info.errors.isEmpty, "\(info)")
    let report = try JSONDecoder().decode(StoreReport.self, from: Data(info.output.utf8))
    #expect(report.entities.map { "\($0.name) \($0.rows ?? -1)" } == ["Dog 1", "Walk 2"] && report.notes.isEmpty, "\(report)")
    let check = try run(["check", "cloud.sqlite"] + cloud)
    #expect(check.status == 0 && check.errors.isEmpty && check.output.hasPrefix("3 objects, digest "), "\(check)")
    let convert = try run(["convert", "cloud.sqlite", "whole.json"] + cloud)
    #expect(convert.status == 0 && convert.output == check.output, "\(convert)")
    // The copy has a place for all entities.
    #expect(try run(["check", "whole.json"]).output == check.output)
    #expect(try run(["check", "whole.json", "--configuration", "cloud"]).output == check.output)
    for pair in [["cloud.sqlite", "whole.json"], ["whole.json", "cloud.sqlite"]] {
      let diff = try run(["diff"] + pair + ["--by", "structure"] + cloud)
      #expect(diff.status == 0 && diff.output.hasPrefix("The stores are equal."), "\(diff)")
    }
    let export = try run(["export", "cloud.sqlite", "objects.json"] + cloud)
    #expect(export.status == 0 && export.output == "3 objects\n", "\(export)")
    let objects = try #require(try JSONSerialization.jsonObject(with: bytes("objects.json")) as? [String: [Any]])
    #expect(objects.mapValues(\.count) == ["Dog": 1, "Walk": 2])
    #expect(try bytes("cloud.sqlite") == before)
  }

  @Test func objectsAreImportedIntoTheFileIfItHasTheirEntities() throws {
    try Data(#"{"Dog": [{"firstname": "Rex"}]}"#.utf8).write(to: URL(fileURLWithPath: fixture.path("dogs.json")))
    try Data(#"{"Account": [{"note": "a"}], "Dog": [{}]}"#.utf8).write(to: URL(fileURLWithPath: fixture.path("both.json")))
    let done = try run(["import", "cloud.sqlite", "dogs.json", "--yes"] + cloud)
    #expect(done.status == 0 && done.output == "1 objects imported. The former store is cloud-backup.sqlite.\n", "\(done)")
    let imported = try run(["check", "cloud.sqlite"] + cloud)
    #expect(imported.output.hasPrefix("4 objects, digest "), "\(imported)")
    try expectFailure(
      ["import", "cloud.sqlite", "both.json", "--yes"] + cloud, "Account, object 1: The store's configuration has no entity Account.")
    #expect(try run(["check", "cloud.sqlite"] + cloud).output == imported.output)
    try expectFailure(["import", "new.sqlite", "dogs.json"] + cloud, "There is no store at this path. A new one has all entities")
    #expect(!FileManager.default.fileExists(atPath: fixture.path("new.sqlite")))
  }

  @Test(arguments: ["check", "export"]) func theConfigurationsThatFitAreNamed(_ command: String) throws {
    let arguments = [command, "cloud.sqlite"] + (command == "export" ? ["objects"] : []) + ["--model", "model.json"]
    for more in [[], ["--configuration", "local"], ["--configuration", "cats"]] {
      try expectFailure(arguments + more, "pass it with --configuration. These fit: cloud, few.")
    }
    #expect(!FileManager.default.fileExists(atPath: fixture.path("objects")))
  }

  @Test func aConfigurationThatTheModelLacksIsRefusedAlsoIfNoneIsNeeded() throws {
    #expect(try run(["convert", "cloud.sqlite", "whole.json"] + cloud).status == 0)
    for command in ["check", "info"] {
      try expectFailure(
        [command, "whole.json", "--configuration", "cats"], "The model has no configuration cats. Its configurations: cloud, few, local.")
      try expectFailure([command, "own.sqlite", "--configuration", "cats"], "The model has no configuration cats. Omit --configuration.")
    }
  }

  /// An export of some objects would look like an export of all.
  @Test func anExportWithAConfigurationThatLacksEntitiesOfTheFileIsRefused() throws {
    let few = ["--model", "model.json", "--configuration", "few"]
    try expectFailure(["export", "cloud.sqlite", "objects"] + few, "The configuration few lacks entities that the store has: Walk.")
    let info = try run(["info", "cloud.sqlite", "--json"] + few)
    let report = try JSONDecoder().decode(StoreReport.self, from: Data(info.output.utf8))
    #expect(report.entities.map(\.rows) == [1, nil])
    #expect(try run(["check", "cloud.sqlite"] + few).output.hasPrefix("3 objects, digest "))
  }
}
