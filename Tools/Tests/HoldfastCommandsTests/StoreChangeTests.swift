import Foundation
import Holdfast
import HoldfastCommands
import HoldfastStore
import Testing

/// The commands that check, copy and migrate stores.
@Suite struct StoreChangeTests {
  private static let extensions: [Fixture.Kind: String] = [.sqlite: "sqlite", .json: "json", .xml: "xml", .binary: "binary"]

  private func store(_ kind: Fixture.Kind, _ fixture: Fixture, _ name: String = "zoo") throws -> String {
    let path = fixture.path("\(name).\(Self.extensions[kind] ?? "")")
    try fixture.writeStore(kind.description(at: path))
    return path
  }

  @Test(arguments: Fixture.Kind.allCases) func aStoreIsConvertedToEveryOtherTypeWithTheSameDigest(kind: Fixture.Kind) throws {
    let fixture = try Fixture(), source = try StoreSource(path: try store(kind, fixture)), digest = try source.check()
    #expect(digest.objectCount == 5)
    for (other, name) in Self.extensions {
      let path = fixture.path("copy.\(name)")
      #expect(try source.convert(to: path) == digest)
      #expect(try StoreReport(path: path).type == other.rawValue)
      #expect(try StoreSource(path: path).check() == digest)
      #expect(throws: CommandError.self) { try source.convert(to: path) }
    }
    let error = #expect(throws: CommandError.self) { try source.convert(to: fixture.path("copy.txt")) }
    #expect(error?.reason.contains("The extension isn't .sqlite") == true)
  }

  @Test(arguments: Fixture.Kind.allCases) func aStoreIsCopiedAndMoved(kind: Fixture.Kind) throws {
    let fixture = try Fixture(), path = try store(kind, fixture), source = try StoreSource(path: path)
    let uuid = try StoreReport(path: path).uuid, copy = fixture.path("copy"), moved = fixture.path("moved")
    try source.copy(to: copy)
    #expect(try StoreReport(path: copy).uuid == uuid && StoreSource(path: copy).check() == source.check())
    #expect(throws: CommandError.self) { try source.copy(to: copy) }
    #expect(throws: CommandError.self) { try source.move(to: copy) }
    try source.move(to: moved)
    #expect(try StoreReport(path: moved).uuid == uuid && !FileManager.default.fileExists(atPath: path))
  }

  @Test(arguments: Fixture.Kind.allCases) func aMigrationIsPreviewedAndKeepsTheFormerStore(kind: Fixture.Kind) throws {
    let fixture = try Fixture(), path = try store(kind, fixture), source = try StoreSource(path: path)
    var entities = try Fixture.model().declarations
    for place in entities.indices where entities[place].name == "Dog" { entities[place].attributes.removeAll { $0.name == "rating" } }
    for place in entities.indices where entities[place].name == "Dog" { entities[place].indexes = [] }
    let old = try Fixture.model()
    let new = try ManagedObjectModel(entities: entities, composites: old.composites)
    let before = try source.check(), preview = try #require(try source.preview(to: new))
    #expect(preview.losses.map(\.path) == ["Dog.rating"] && preview.objectCount == 5)
    #expect(try source.check() == before)
    let backup = StoreSource.backupPath(of: path)
    try source.migrate(to: new, backup: backup)
    #expect(try StoreSource(path: backup).check() == before)
    #expect(StoreSource.backupPath(of: path).contains("-backup-2."))
    #expect(try StoreReport(path: path).digest == new.versionDigest && source.preview(to: new) == nil)
    #expect(try StoreReport(path: path).entities.map { $0.rows } == [0, 2, 3])
  }

  @Test func onlySQLiteStoresAreCompacted() throws {
    let fixture = try Fixture(), sizes = try StoreSource(path: try store(.sqlite, fixture)).compact()
    #expect(sizes.after > 0 && sizes.before > 0)
    let json = try StoreSource(path: try store(.json, fixture))
    #expect(throws: CommandError.self) { try json.compact() }
  }

  @Test func aDamagedStoreIsReported() throws {
    let fixture = try Fixture(), path = try store(.binary, fixture)
    var bytes = try Data(contentsOf: URL(fileURLWithPath: path))
    bytes[bytes.count / 2] ^= 0xFF
    try bytes.write(to: URL(fileURLWithPath: path))
    #expect(throws: CommandError.self) { try StoreSource(path: path).check() }
  }
}
