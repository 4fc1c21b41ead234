import Foundation
import Holdfast
import HoldfastCommands
import HoldfastJSONStore
import HoldfastModelFile
import HoldfastSQLiteStore
import HoldfastStore
import Testing

/// The command as its user runs it, in its own process.
@Suite struct CommandLineTests {
  private func run(_ arguments: String..., in fixture: Fixture) throws -> CommandProcess { try run(arguments, in: fixture) }

  private func run(_ arguments: [String], in fixture: Fixture) throws -> CommandProcess { try CommandProcess(arguments, in: fixture) }

  @Test func eachCommandDoesWhatItsLibraryDoes() throws {
    let fixture = try Fixture()
    _ = try fixture.writeModel()
    try fixture.writeStore(.sqlite(at: fixture.path("zoo.sqlite")))
    let info = try run("model", "info", "Zoo.xcdatamodeld", in: fixture)
    #expect(info.status == 0 && info.errors.isEmpty && info.output.hasPrefix("Zoo.xcdatamodeld: Xcode model with versions, 2 versions\n"))
    let json = try run("model", "info", "zoo.sqlite", "--json", in: fixture)
    #expect(
      try JSONDecoder().decode(ModelReport.self, from: Data(json.output.utf8)).versions.first?.digest == Fixture.model().versionDigest)
    let graph = try run("model", "graph", "Zoo.xcdatamodeld", "--format", "svg", "--version", "Zoo", in: fixture)
    #expect(graph.status == 0 && graph.output.hasPrefix("<svg"))
    #expect(try run("model", "convert", "Zoo.xcdatamodeld", "zoo.json", in: fixture).status == 0)
    #expect(FileManager.default.fileExists(atPath: fixture.path("zoo.json")))
    let store = try run("store", "info", "zoo.sqlite", "--model", "zoo.json", in: fixture)
    #expect(store.status == 0 && store.output.contains("model     zoo.json, version zoo"))
  }

  @Test func classesAreGeneratedAndChecked() throws {
    let fixture = try Fixture()
    _ = try fixture.writeModel()
    let arguments = ["generate", "Zoo.xcdatamodeld", "--output", "Classes"]
    #expect(try run(arguments + ["--check"], in: fixture).status == 2)
    let first = try run(arguments, in: fixture)
    #expect(first.status == 0 && first.output.contains("written: Dog+Class.swift\n") && first.errors.isEmpty)
    #expect(try run(arguments + ["--check"], in: fixture).status == 0)
    let properties = fixture.folder.appendingPathComponent("Classes/Dog+Properties.swift")
    try Data((try String(contentsOf: properties, encoding: .utf8) + "// changed").utf8).write(to: properties)
    let check = try run(arguments + ["--check"], in: fixture)
    #expect(check.status == 2 && check.output.contains("outdated: Dog+Properties.swift\n") && !check.output.contains("Dog+Class"))
    #expect(try run(arguments, in: fixture).output.contains("written: Dog+Properties.swift\n"))
    #expect(try run("generate", "nothing", "--output", "Classes", in: fixture).status == 1)
    #expect(try run("generate", "Zoo.xcdatamodeld", in: fixture).status == 64)
  }

  /// The bug: what a compiled model lost wasn't said.
  @Test func whatACompiledModelContainsAndTheOutputLacksIsNoted() throws {
    let fixture = try Fixture()
    func object(_ number: Int) -> String { "<dict><key>CF$UID</key><integer>\(number)</integer></dict>" }
    func instance(_ type: Int, _ values: String) -> String { "<dict><key>$class</key>\(object(type))\(values)</dict>" }
    func list(_ value: Int) -> String {
      instance(8, "<key>NS.keys</key><array>\(object(4))</array><key>NS.objects</key><array>\(object(value))</array>")
    }
    let objects =
      [
        "<string>$null</string>",
        instance(7, "<key>NSEntities</key>\(object(2))<key>NSFetchRequestTemplates</key>\(object(3))"), list(5), list(6),
        "<string>Dog</string>", instance(9, "<key>NSEntityName</key>\(object(4))"),
        instance(10, "<key>NSEntity</key>\(object(5))<key>NSFetchOffset</key><integer>5</integer>"),
      ]
      + ["NSManagedObjectModel", "NSDictionary", "NSEntityDescription", "NSFetchRequest"].map {
        "<dict><key>$classname</key><string>\($0)</string></dict>"
      }
    let archive = """
      <plist version="1.0"><dict><key>$archiver</key><string>NSKeyedArchiver</string><key>$version</key><integer>100000</integer>
      <key>$top</key><dict><key>root</key>\(object(1))</dict><key>$objects</key><array>\(objects.joined())</array></dict></plist>
      """
    try Data(archive.utf8).write(to: fixture.folder.appendingPathComponent("Zoo.mom"))
    let converted = try run("model", "convert", "Zoo.mom", "Zoo.xcdatamodeld", in: fixture)
    #expect(converted.status == 0 && converted.output.isEmpty, "\(converted)")
    #expect(converted.errors == "holdfast: note: version Zoo, fetch request \"Dog\": The offset was omitted.\n", "\(converted)")
    let generated = try run("generate", "Zoo.mom", "--output", "Classes", in: fixture)
    #expect(generated.status == 0 && generated.output.contains("note: fetch request \"Dog\": The offset was omitted.\n"), "\(generated)")
  }

  @Test func storesAreCompared() throws {
    let fixture = try Fixture()
    try fixture.writeStore(.sqlite(at: fixture.path("zoo.sqlite")))
    try fixture.writeStore(.sqlite(at: fixture.path("other.sqlite")))
    #expect(try run("store", "convert", "zoo.sqlite", "zoo.json", in: fixture).status == 0)
    let equal = try run("store", "diff", "zoo.sqlite", "zoo.json", "--by", "structure", in: fixture)
    #expect(equal.status == 0 && equal.output.hasPrefix("The stores are equal.\n") && equal.errors.isEmpty)
    let keyed = try run("store", "diff", "zoo.sqlite", "other.sqlite", "--key", "Walk=minutes", "--key", "Dog=rating", in: fixture)
    #expect(keyed.status == 0, "\(keyed)")
    let coordinator = try PersistentStoreCoordinator(model: Fixture.model(), store: .sqlite(at: fixture.path("other.sqlite")))
    let context = try ManagedObjectContext(coordinator: coordinator)
    try context.insert(entityNamed: "Dog").setValue(.string("Ada"), forKey: "name")
    try context.save()
    try coordinator.close()
    let different = try run("store", "diff", "zoo.sqlite", "other.sqlite", "--by", "unique", "--values", "--limit", "0", in: fixture)
    #expect(different.status == 2 && different.output.hasPrefix("The stores differ: 1 difference.\n") && different.errors.isEmpty)
    let missing = try run("store", "diff", "zoo.sqlite", "nothing.sqlite", in: fixture)
    #expect(missing.status == 1 && missing.output.isEmpty && missing.errors.hasPrefix("holdfast: nothing.sqlite: "))
    #expect(try run("store", "diff", "zoo.sqlite", in: fixture).status == 64)
    #expect(try run("store", "diff", "zoo.sqlite", "zoo.json", "--by", "name", in: fixture).status == 64)
  }

  @Test func exitCodesAreThoseOfTheReadMe() throws {
    let fixture = try Fixture()
    _ = try fixture.writeModel()
    let lint = try run("model", "lint", "Zoo.xcdatamodeld", in: fixture)
    #expect(lint.status == 2 && lint.output.contains("[no-inverse]"))
    try Data("<model>".utf8).write(to: fixture.folder.appendingPathComponent("Zoo.xcdatamodeld/Zoo 2.xcdatamodel/contents"))
    let unreadable = try run("model", "lint", "Zoo.xcdatamodeld", in: fixture)
    #expect(unreadable.status == 2 && unreadable.output.contains("[unreadable-version]"))
    for command in [["graph", "Zoo.xcdatamodeld"], ["convert", "Zoo.xcdatamodeld", "Copy.xcdatamodeld"]] {
      let refused = try run(["model"] + command, in: fixture)
      #expect(refused.status == 1 && refused.output.isEmpty && refused.errors.contains("Zoo 2"), "\(refused)")
    }
    let missing = try run("store", "info", "nowhere.sqlite", in: fixture)
    #expect(missing.status == 1 && missing.output.isEmpty && missing.errors.hasPrefix("holdfast: nowhere.sqlite: "))
    #expect(missing.errors.split(separator: "\n").count == 1)
    #expect(try run("model", "draw", "Zoo.xcdatamodeld", in: fixture).status == 64)
    #expect(try run("model", "graph", "Zoo.xcdatamodeld", "--format", "png", in: fixture).status == 64)
    let help = try run("model", "lint", "--help", in: fixture)
    #expect(help.status == 0 && ModelLint.rules.allSatisfy { help.output.contains($0.name) })
    #expect(try run("--generate-completion-script", "bash", in: fixture).output.contains("_holdfast"))
  }

  /// The bug: the next file that was opened, such as a store, got the number of a closed standard file, and output could be written to it.
  @Test(arguments: ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"]) func noOtherFileGetsTheNumberOfAClosedStandardFile(closing: String) throws {
    let fixture = try Fixture(), arguments = ["model", "convert", "model.json", "copy.json"]
    try Data(try Fixture.model().canonicalJSON()).write(to: fixture.folder.appendingPathComponent("model.json"))
    // Only the numbers of the standard files can be used.
    let limited = try CommandProcess(arguments, in: fixture, closing: closing, fileLimit: 3)
    #expect(limited.status == 1 && !FileManager.default.fileExists(atPath: fixture.path("copy.json")), "\(limited)")
    let unlimited = try CommandProcess(arguments, in: fixture, closing: closing)
    #expect(unlimited.status == 0 && FileManager.default.fileExists(atPath: fixture.path("copy.json")), "\(unlimited)")
  }

  @Test func aClosedStandardOutputIsAnError() throws {
    let fixture = try Fixture()
    try fixture.writeStore(.json(at: fixture.path("zoo.json")))
    let file = try Data(contentsOf: fixture.folder.appendingPathComponent("zoo.json"))
    let info = try CommandProcess(["store", "info", "zoo.json"], in: fixture, closing: ">&-")
    #expect(info.status == 1 && info.output.isEmpty && !info.errors.isEmpty, "\(info)")
    #expect(try Data(contentsOf: fixture.folder.appendingPathComponent("zoo.json")) == file)
  }

  /// The bug: the line feed was printed.
  @Test func anErrorWithALineFeedInItsPathIsOneLine() throws {
    let fixture = try Fixture()
    for (path, shown) in [("a\nb.sqlite", #"a\u000Ab.sqlite"#), ("a\r\nb.sqlite", #"a\u000D\u000Ab.sqlite"#)] {
      let missing = try run("store", "info", path, in: fixture)
      #expect(missing.errors == "holdfast: \(shown): There is no file at this path. Check the path.\n", "\(missing)")
    }
    try fixture.writeStore(.json(at: fixture.path("zoo.json")))
    try Data().write(to: fixture.folder.appendingPathComponent("a\nb"))
    // The path of the other store is part of the reason.
    let refused = try run("store", "diff", "zoo.json", "a\nb", in: fixture)
    #expect(refused.status == 1 && refused.errors.hasPrefix("holdfast: ") && refused.errors.contains(#"a\u000Ab"#), "\(refused)")
    #expect(refused.errors.utf8.count { $0 == UInt8(ascii: "\n") } == 1, "\(refused)")
  }

  #if os(Linux)
    /// The bug: the command trapped.
    @Test func anErrorThatCannotBeWrittenHasItsExitCode() throws {
      let fixture = try Fixture()
      let refused = try CommandProcess(["store", "info", "nowhere.sqlite"], in: fixture, errorsTo: "/dev/full")
      #expect(refused.status == 1 && refused.output.isEmpty, "\(refused)")
    }
  #endif

  /// Every key that a report can have.
  private func keys(_ value: Any) -> Set<String> {
    if let list = value as? [Any] { return list.reduce(into: []) { $0.formUnion(keys($1)) } }
    guard let object = value as? [String: Any] else { return [] }
    return object.reduce(into: Set(object.keys)) { $0.formUnion(keys($1.value)) }
  }

  @Test func everyKeyOfTheJSONFormsIsInTheReadMe() throws {
    let fixture = try Fixture()
    var photo = AttributeDescription(
      "a", .binaryData, isOptional: true, isTransient: true, validation: .none, allowsExternalBinaryDataStorage: true,
      versionHashModifier: "m",
      renamingIdentifier: "r")
    (photo.preservesValueInHistoryOnDeletion, photo.allowsCloudEncryption) = (true, true)
    (photo.valueTransformerName, photo.valueClassName) = ("t", "c")
    var request = FetchRequestDescription("all", entity: "E", predicateFormat: "TRUEPREDICATE")
    (request.resultType, request.fetchLimit, request.fetchBatchSize) = (.dictionaries, 1, 1)
    (request.includesSubentities, request.includesPropertyValues, request.includesPendingChanges) = (false, false, false)
    (request.returnsObjectsAsFaults, request.returnsDistinctResults) = (false, true)
    let model = try ManagedObjectModel(
      entities: [
        EntityDescription(
          "E",
          attributes: [
            photo, AttributeDescription("b", .double, default: .double(1), validation: .range(.double(0), .double(2))),
            AttributeDescription(
              "c", .string, validation: AttributeValidation(minimumLength: 1, maximumLength: 2, regularExpression: "x*")),
            .composite("d", "C"), .derived("n", .date, "now()"),
          ], relationships: [.toOne("r", to: "E", inverse: "r", versionHashModifier: "m")],
          fetchedProperties: [FetchedPropertyDescription("f", request)],
          uniquenessConstraints: [["c"]],
          indexes: [FetchIndexDescription("i", elements: [FetchIndexElement("b", isAscending: false, kind: .rTree)])],
          versionHashModifier: "m",
          renamingIdentifier: "r", managedObjectClassName: "K"), EntityDescription("S", superentity: "E"),
      ], configurations: [ConfigurationDescription("k", ["E"])],
      composites: [CompositeDescription("C", [AttributeDescription("x", .double)])],
      fetchRequestTemplates: [request])
    let encoder = JSONEncoder()
    try encoder.encode(CodableModel(model)).write(to: fixture.folder.appendingPathComponent("m.json"))
    try fixture.writeStore(.sqlite(at: fixture.path("zoo.sqlite")))
    let source = try ModelSource(path: fixture.path("m.json"))
    var all: Set<String> = []
    for data in [try ModelReport(source).json(), try LintReport(source).json(), try StoreReport(path: fixture.path("zoo.sqlite")).json()] {
      all.formUnion(keys(try JSONSerialization.jsonObject(with: data)))
    }
    #expect(all.count > 60)
    let readMe = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    let text = try String(contentsOf: readMe.appendingPathComponent("README.md"), encoding: .utf8)
    // Entity names are keys of the user's metadata and of unreadable versions.
    for key in all.subtracting(["author"]) { #expect(text.contains("`\(key)`"), "\(key)") }
  }
}
