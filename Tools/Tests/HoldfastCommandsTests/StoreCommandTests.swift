import Foundation
import Holdfast
import HoldfastCommands
import HoldfastSQLiteStore
import HoldfastStore
import HoldfastXMLStore
import Testing

@Suite struct StoreCommandTests {
  @Test(arguments: Fixture.Kind.allCases) func infoCountsTheRowsOfAStoreWithTheModelThatItKeeps(kind: Fixture.Kind) throws {
    let fixture = try Fixture()
    let path = fixture.path("zoo")
    try fixture.writeStore(kind.description(at: path))
    let before = try Data(contentsOf: URL(fileURLWithPath: path))
    let report = try StoreReport(path: path)
    #expect(report.type == kind.rawValue && report.model == "embedded" && report.notes.isEmpty)
    #expect(report.entities.map { "\($0.name) \($0.rows ?? -1)" } == ["Animal 0", "Dog 2", "Walk 3"])
    #expect(try report.digest == Fixture.model().versionDigest && report.metadata == ["author": "\"Ann\""])
    #expect(try JSONDecoder().decode(StoreReport.self, from: report.json()) == report)
    #expect(report.text().contains("UUID      \(report.uuid)") && report.text().contains("Dog"))
    #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == before)
    #expect(try ModelSource(path: path).current?.model.versionDigest == report.digest)
  }

  /// As saved by an editor that adds a byte order mark: without the digest, which only an unedited file has.
  @Test func anXMLStoreThatBeginsWithAMarkOfItsEncodingIsAStore() throws {
    let fixture = try Fixture()
    let path = fixture.path("zoo.xml")
    try fixture.writeStore(.xml(at: path))
    let sealed = try String(contentsOfFile: path, encoding: .utf8)
    let text = sealed.replacing(/<key>_HoldfastSeal<\/key>\s*<integer>1<\/integer>/, with: "").replacing(/<!-- xxh64.*/, with: "")
    try Data(("\u{FEFF}" + text).utf8).write(to: URL(fileURLWithPath: path))
    #expect(text.count < sealed.count - 60)
    let report = try StoreReport(path: path)
    #expect(report.type == "XML" && report.entities.map(\.rows) == [0, 2, 3])
  }

  @Test func aModelThatIsNotTheStoresIsRefused() throws {
    let fixture = try Fixture()
    try fixture.writeStore(.sqlite(at: fixture.path("zoo.sqlite")))
    let model = try fixture.writeModel()
    #expect(try StoreReport(path: fixture.path("zoo.sqlite"), modelPath: model).model == "\(model), version Zoo 2")
    try FileManager.default.removeItem(atPath: model + "/Zoo 2.xcdatamodel")
    try FileManager.default.removeItem(atPath: model + "/.xccurrentversion")
    let error = #expect(throws: CommandError.self) { try StoreReport(path: fixture.path("zoo.sqlite"), modelPath: model) }
    #expect(error?.reason.contains("These entities differ from the most similar version, Zoo: Dog.") == true, "\(error as Any)")
    #expect(error?.reason.hasSuffix("Give the model with which the store was created.") == true, "\(error as Any)")
  }

  @Test(arguments: ["nothing", "text.txt", "marked.txt", "broken.sqlite", "broken.json", "broken.xml", "broken.binary"])
  func whatIsNoStoreIsAnErrorWithThePath(name: String) throws {
    let fixture = try Fixture()
    let contents = [
      "text.txt": Data("hello".utf8), "marked.txt": Data("\u{FEFF}hello".utf8),
      "broken.sqlite": Data("SQLite format 3\0 and then nothing of the kind".utf8), "broken.json": Data("{\"format\": 1".utf8),
      "broken.xml": Data("<?xml version=\"1.0\"?><!DOCTYPE database".utf8), "broken.binary": Data([0x89, 0x48, 0x46, 0x42, 1]),
    ]
    if let bytes = contents[name] { try bytes.write(to: fixture.folder.appendingPathComponent(name)) }
    let error = try #require(throws: CommandError.self) { try StoreReport(path: fixture.path(name)) }
    #expect(error.path.hasSuffix(name))
  }

  /// A copy of a store with a log that wasn't checkpointed, in its own folder, without the log's index.
  private func copyInUse(_ fixture: Fixture) throws -> String {
    let path = fixture.path("used.sqlite"), copy = fixture.path("copy")
    try FileManager.default.createDirectory(atPath: copy, withIntermediateDirectories: true)
    let coordinator = try PersistentStoreCoordinator(model: Fixture.model(), store: .sqlite(at: path))
    let context = try ManagedObjectContext(coordinator: coordinator)
    try context.insert(entityNamed: "Dog").setValue(.string("Fido"), forKey: "name")
    try context.save()
    for ending in ["", "-wal"] { try FileManager.default.copyItem(atPath: path + ending, toPath: copy + "/zoo.sqlite" + ending) }
    try coordinator.close()
    return copy
  }

  private func files(_ folder: String) throws -> [String: Data] {
    try FileManager.default.contentsOfDirectory(atPath: folder).reduce(into: [:]) {
      $0[$1] = try Data(contentsOf: URL(fileURLWithPath: "\(folder)/\($1)"))
    }
  }

  @Test func readingALogLeavesNothing() throws {
    let fixture = try Fixture()
    let folder = try copyInUse(fixture)
    let before = try files(folder)
    #expect(before.keys.sorted() == ["zoo.sqlite", "zoo.sqlite-wal"] && before["zoo.sqlite-wal"]?.isEmpty == false)
    let report = try StoreReport(path: folder + "/zoo.sqlite")
    #expect(report.entities.first { $0.name == "Dog" }?.rows == 1)
    #expect(try files(folder) == before)
  }

  @Test func readingAStoreWithoutALogLeavesNothing() throws {
    let fixture = try Fixture()
    try fixture.writeStore(.sqlite(at: fixture.path("zoo.sqlite")))
    let before = try files(fixture.folder.path)
    _ = try StoreReport(path: fixture.path("zoo.sqlite"))
    #expect(try files(fixture.folder.path) == before && before.count == 1)
  }

  /// Stores that Core Data wrote. They are copied, since reading a log may create files beside it.
  @Test(.enabled(if: Corpus.path != nil, "HOLDFAST_CORPUS is not set")) func everyStoreOfTheCorpusCanBeLookedAt() throws {
    let paths = Corpus.paths("sqlite", [".sqlite", ".moody", ".original"])
    #expect(paths.count > 20)
    let facts = try #require(
      try JSONSerialization.jsonObject(with: Data(contentsOf: URL(fileURLWithPath: "\(Corpus.path ?? "")/facts.json"))) as? [String: Any])
    #expect(!facts.isEmpty)
    for path in paths {
      let fixture = try Fixture()
      for ending in ["", "-wal", "-shm"] where FileManager.default.fileExists(atPath: path + ending) {
        try FileManager.default.copyItem(atPath: path + ending, toPath: fixture.path("store.sqlite" + ending))
      }
      let report = try StoreReport(path: fixture.path("store.sqlite"))
      #expect(!report.entities.isEmpty && report.uuid.count == 36, "\(path)")
      if report.model != nil {
        #expect(report.entities.allSatisfy { $0.rows != nil }, "\(path)")
      } else {
        #expect(!report.notes.isEmpty, "\(path)")
      }
    }
  }
}
