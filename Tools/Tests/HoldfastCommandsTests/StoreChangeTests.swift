import Foundation
import Holdfast
import HoldfastCommands
import HoldfastModelFile
import HoldfastSQLiteStore
import HoldfastStore
import HoldfastXMLStore
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
    let fixture = try Fixture(), path = try store(kind, fixture), source = try StoreSource(path: path), file = try StoreFile(path: path)
    let uuid = try StoreReport(path: path).uuid, copy = fixture.path("copy"), moved = fixture.path("moved")
    try file.copy(to: copy)
    #expect(try StoreReport(path: copy).uuid == uuid && StoreSource(path: copy).check() == source.check())
    #expect(throws: CommandError.self) { try file.copy(to: copy) }
    #expect(throws: CommandError.self) { try file.move(to: copy) }
    try file.move(to: moved)
    #expect(try StoreReport(path: moved).uuid == uuid && !FileManager.default.fileExists(atPath: path))
  }

  /// The bug: the sizes were those of the link.
  @Test func theSizesOfACompactedStoreAreThoseOfTheFileToWhichALinkPoints() throws {
    let fixture = try Fixture(), path = try store(.sqlite, fixture), link = fixture.path("link.sqlite")
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: "zoo.sqlite")
    let sizes = try StoreFile(path: link).compact()
    #expect((try FileManager.default.attributesOfItem(atPath: path)[.size] as? NSNumber)?.intValue == sizes.after)
    #expect(sizes.before >= 4_096 && sizes.after >= 4_096)
  }

  /// The bug: the log wasn't counted, so a compacted store seemed to have grown.
  @Test func theSizeBeforeACompactionIncludesTheLog() throws {
    let fixture = try Fixture(), path = fixture.path("zoo.sqlite"), copy = fixture.path("copy.sqlite")
    let coordinator = try PersistentStoreCoordinator(model: Fixture.model(), store: .sqlite(at: path))
    let context = try ManagedObjectContext(coordinator: coordinator)
    for minutes in 0..<500 { try context.insert(entityNamed: "Walk").setValue(.int32(Int32(minutes)), forKey: "minutes") }
    try context.save()
    // As a process that is killed leaves them.
    let files = [copy, copy + "-wal"]
    for (original, file) in zip([path, path + "-wal"], files) { try FileManager.default.copyItem(atPath: original, toPath: file) }
    try coordinator.close()
    let bytes = try files.map { (try FileManager.default.attributesOfItem(atPath: $0)[.size] as? NSNumber)?.intValue ?? 0 }
    let sizes = try StoreFile(path: copy).compact()
    #expect(bytes[1] > 0 && sizes.before == bytes[0] + bytes[1] && sizes.after <= sizes.before, "\(sizes), \(bytes)")
    #expect(try StoreSource(path: copy).check().objectCount == 500)
  }

  /// The file may be removed already when the error occurs, so the copy must not be deleted without looking.
  @Test(arguments: [Fixture.Kind.json, .xml, .binary]) func aMoveThatCannotRemoveTheStoreSaysWhichOneToKeep(kind: Fixture.Kind) throws {
    let fixture = try Fixture(), path = try store(kind, fixture), moved = fixture.path("moved")
    let digest = try StoreSource(path: path).check()
    // The copy is made without the lock.
    let lock = fixture.path(".zoo.\(Self.extensions[kind] ?? "").lock")
    try? FileManager.default.removeItem(atPath: lock)
    try FileManager.default.createDirectory(atPath: lock, withIntermediateDirectories: false)
    let error = try #require(throws: CommandError.self) { try StoreFile(path: path).move(to: moved) }
    #expect(error.reason.contains("copied to \(moved)") && error.reason.contains("If \(path) still exists, delete the copy"), "\(error)")
    #expect(error.reason.hasSuffix("Otherwise, keep the copy."), "\(error)")
    #expect(try StoreSource(path: path).check() == digest && StoreSource(path: moved).check() == digest)
  }

  /// None of the stores is replaced by the other one.
  @Test(arguments: Fixture.Kind.allCases) func twoStoresThatAreMovedToOnePathAreBothKept(kind: Fixture.Kind) throws {
    for _ in 0..<8 {
      let fixture = try Fixture(), moved = fixture.path("moved"), paths = try ["first", "second"].map { try store(kind, fixture, $0) }
      let uuids = try paths.map { try StoreReport(path: $0).uuid }
      let moves = DispatchGroup()
      for path in paths {
        moves.enter()
        Thread.detachNewThread {
          try? StoreFile(path: path).move(to: moved)
          moves.leave()
        }
      }
      moves.wait()
      let found = try (paths + [moved]).filter { FileManager.default.fileExists(atPath: $0) }.map { try StoreReport(path: $0).uuid }
      #expect(Set(uuids).count == 2 && found.sorted() == uuids.sorted(), "\(found)")
    }
  }

  /// A file as Core Data writes it, which contains no model.
  @Test func anXMLStoreWithoutAModelIsReadWithTheOneThatItsObjectsShow() throws {
    let fixture = try Fixture(), path = fixture.path("zoo.xml"), copy = fixture.path("copy.sqlite"), json = fixture.path("zoo.json")
    let text = """
      <?xml version="1.0" standalone="yes"?>
      <database>
          <databaseInfo>
              <version>134481920</version>
              <UUID>B4FC79D0-E654-43EF-9020-A5273B3F104A</UUID>
              <nextObjectID>103</nextObjectID>
              <metadata><plist version="1.0"><dict><key>NSStoreModelVersionHashes</key><dict>\
      <key>Dog</key><data>AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=</data></dict></dict></plist></metadata>
          </databaseInfo>
          <object type="DOG" id="z102"><attribute name="firstname" type="string">Fido</attribute>\
      <relationship name="walks" type="0/0" destination="WALK" idrefs="z103"></relationship></object>
          <object type="WALK" id="z103"><relationship name="dog" type="1/1" destination="DOG" idrefs="z102"></relationship></object>
      </database>

      """
    try Data(text.utf8).write(to: URL(fileURLWithPath: path))
    #expect(throws: CommandError.self) { try StoreSource(path: path) }
    let source = try StoreSource(path: path, derivesModel: true)
    #expect(source.isModelDerived && source.model.entities.map(\.name) == ["Dog", "WALK"])
    let digest = try source.check()
    #expect(try digest.objectCount == 2 && source.convert(to: copy) == digest)
    #expect(try !StoreSource(path: copy, derivesModel: true).isModelDerived)
    #expect(try source.export(to: json) == 2)
    #expect(try String(contentsOfFile: json, encoding: .utf8).contains(#""firstname": "Fido""#))
    try StoreFile(path: path).copy(to: fixture.path("again.xml"))
    #expect(try StoreSource(path: fixture.path("again.xml"), derivesModel: true).check() == digest)
    // What changes or compares a store needs its real model, also if the file has no version hashes, and so accepts any model.
    let hashes = try #require(text.firstMatch(of: /<dict><key>NSStoreModelVersionHashes.*<\/dict><\/dict>/)?.0)
    for content in [text, text.replacingOccurrences(of: hashes, with: "<dict></dict>")] {
      try Data(content.utf8).write(to: URL(fileURLWithPath: path))
      let source = try StoreSource(path: path, derivesModel: true)
      for change in [
        { _ = try StoreSource.importObjects(into: path, from: json) }, { _ = try StoreMigration(of: source, to: try Fixture.model()) },
        { _ = try StoreDifference(source, copy) },
      ] as [() throws -> Void] {
        let error = #expect(throws: CommandError.self) { try change() }
        #expect(error?.reason.contains("Pass the model with --model") == true, "\(error as Any)")
      }
      #expect(try String(contentsOfFile: path, encoding: .utf8) == content)
    }
  }

  @Test(arguments: Fixture.Kind.allCases) func aMigrationIsPreviewedAndKeepsTheFormerStore(kind: Fixture.Kind) throws {
    let fixture = try Fixture(), path = try store(kind, fixture), source = try StoreSource(path: path)
    var entities = try Fixture.model().declarations
    for place in entities.indices where entities[place].name == "Dog" { entities[place].attributes.removeAll { $0.name == "rating" } }
    for place in entities.indices where entities[place].name == "Dog" { entities[place].indexes = [] }
    let old = try Fixture.model()
    let new = try ManagedObjectModel(entities: entities, composites: old.composites)
    let before = try source.check(), bytes = try Data(contentsOf: URL(fileURLWithPath: path))
    let migration = try StoreMigration(of: source, to: new)
    #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == bytes)
    let preview = try #require(migration.previews.first)
    #expect(migration.losesData && migration.previews.count == 1)
    #expect(preview.losses.map(\.path) == ["Dog.rating"] && preview.objectCount == 5)
    #expect(try source.check() == before)
    let backup = StoreSource.backupPath(of: path)
    try migration.run(backup: backup)
    #expect(try StoreSource(path: backup).check() == before)
    #expect(StoreSource.backupPath(of: path).contains("-backup-2."))
    #expect(try StoreReport(path: path).digest == new.versionDigest)
    #expect(try StoreMigration(of: source, to: new).previews.isEmpty)
    #expect(try StoreReport(path: path).entities.map { $0.rows } == [0, 2, 3])
  }

  /// The bug: what another process saved after a preview without losses was removed.
  @Test(arguments: Fixture.Kind.allCases) func aMigrationRemovesNothingThatWasSavedAfterItsPreview(kind: Fixture.Kind) throws {
    let fixture = try Fixture(), path = try store(kind, fixture), source = try StoreSource(path: path), old = try Fixture.model()
    var entities = old.declarations
    for place in entities.indices where entities[place].name == "Dog" {
      entities[place].attributes.removeAll { $0.name == "rating" }
      entities[place].indexes = []
    }
    let new = try ManagedObjectModel(entities: entities, composites: old.composites)
    func rate(_ rating: StoreValue) throws {
      let coordinator = try PersistentStoreCoordinator(model: old, store: kind.description(at: path))
      let context = try ManagedObjectContext(coordinator: coordinator)
      for dog in try context.fetch(FetchRequest<ManagedObject>(entityName: "Dog")) { try dog.setValue(rating, forKey: "rating") }
      try context.save()
      try coordinator.close()
    }
    try rate(.null)
    let migration = try StoreMigration(of: source, to: new)
    #expect(!migration.losesData)
    try rate(.double(3))
    let before = try source.check()
    let error = #expect(throws: CommandError.self) { try migration.run(backup: nil) }
    #expect((error?.cause as? MigrationError)?.code == .lossOfData, "\(error as Any)")
    #expect(error?.reason.hasPrefix("Since the preview, another process has saved data") == true, "\(error as Any)")
    #expect(try source.check() == before)
    try rate(.null)
    try migration.run(backup: nil)
    #expect(try StoreReport(path: path).digest == new.versionDigest)
  }

  @Test(.enabled(if: Corpus.path != nil, "HOLDFAST_CORPUS is not set")) func aStoreIsMigratedByMappingModels() throws {
    let fixture = try Fixture(), path = fixture.path("Moody"), corpus = try #require(Corpus.path)
    try FileManager.default.copyItem(atPath: corpus + "/sqlite/objcio-Moody/MigrationsTests/Moody 2.moody", toPath: path)
    let bundle = corpus + "/models/objcio-core-data/Migrations/Migrations/Moody.xcdatamodeld"
    let source = try StoreSource(path: path, modelPath: bundle), before = try source.check()
    func migration(_ version: String) throws -> StoreMigration {
      try StoreMigration(of: source, to: bundle, version: version, mappingModels: corpus + "/xml/xcmapping/objcio-core-data")
    }
    let found = try migration("Moody 5")
    #expect(found.previews.count > 1 && found.previews.contains { $0.stage != nil })
    #expect(try source.check() == before)
    try found.run(backup: nil)
    #expect(try StoreSource(path: path, modelPath: bundle).check().objectCount == found.previews.last?.objectCount)
    // The last version needs a policy.
    #expect(throws: CommandError.self) { try migration("Moody 6") }
  }

  // MARK: Comparisons

  @Test(arguments: Fixture.Kind.allCases) func aStoreIsComparedWithItsCopies(kind: Fixture.Kind) throws {
    let fixture = try Fixture(), path = try store(kind, fixture), source = try StoreSource(path: path), copy = fixture.path("same")
    try StoreFile(path: path).copy(to: copy)
    for method in StoreDifference.Method.allCases {
      let result = try StoreDifference(source, copy, by: method)
      #expect(result.difference.isEmpty)
      #expect(result.text() == "The stores are equal.\nDog: 2 objects in both stores\nWalk: 3 objects in both stores\n")
    }
    for (other, name) in Self.extensions {
      let path = fixture.path("other.\(name)")
      _ = try source.convert(to: path)
      for method in [StoreDifference.Method.unique, .structure] {
        #expect(try StoreDifference(source, path, by: method).difference.isEmpty, "\(other) \(method)")
      }
    }
  }

  @Test(arguments: Fixture.Kind.allCases) func differencesAreListedWithAndWithoutValues(kind: Fixture.Kind) throws {
    let fixture = try Fixture(), path = try store(kind, fixture), source = try StoreSource(path: path), other = fixture.path("other")
    try StoreFile(path: path).copy(to: other)
    let coordinator = try PersistentStoreCoordinator(model: Fixture.model(), store: kind.description(at: other))
    let context = try ManagedObjectContext(coordinator: coordinator)
    let dogs = try context.fetch(FetchRequest<ManagedObject>(entityName: "Dog"))
    try #require(try dogs.first { try $0.value(forKey: "name") == .single("Rex") }).setValue(.string("Re\nx\u{1B}"), forKey: "name")
    try context.insert(entityNamed: "Walk").setValue(.int32(4), forKey: "minutes")
    try context.save()
    try coordinator.close()

    let plain = try StoreDifference(source, other).text().split(separator: "\n").map(String.init)
    #expect(plain.count == 5 && plain[0] == "The stores differ: 2 differences.", "\(plain)")
    #expect(plain[1] == "Dog: 2 objects in both stores, 1 changed")
    #expect(plain[2] == "Walk: 3 objects in both stores; 1 only in the second store")
    #expect(plain[3].hasPrefix("Changed: Dog/p") && plain[3].hasSuffix(": name"))
    #expect(plain[4].hasPrefix("Only in the second store: Walk/p"))
    let full = try StoreDifference(source, other, includesValues: true).text()
    #expect(full.contains(#": name ("Rex" → "Re\nx\u{1B}")"#), "\(full)")
    let short = try StoreDifference(source, other, limit: 1).text()
    #expect(short.hasPrefix("The stores differ: 2 differences.\n") && short.hasSuffix("\nAnd 1 more difference.\n"))
    // The key in the command replaces the constraint of the model.
    #expect(try StoreDifference(source, other, by: .unique).difference.differenceCount == 3)
    #expect(try StoreDifference(source, other, keys: ["Walk=minutes", "Dog=name"]).difference.differenceCount == 3)
  }

  /// The bug: these dates had the same text.
  @Test(arguments: [
    (0.0, 0.25, "2001-01-01T00:00:00Z → 2001-01-01T00:00:00.25Z"), (1e15, 2e15, "seconds:\(1e15) → seconds:\(2e15)"),
  ]) func datesThatDifferAreShownWithDifferentTexts(first: Double, second: Double, text: String) throws {
    let fixture = try Fixture(), path = fixture.path("first"), other = fixture.path("second")
    let model = try ManagedObjectModel(entities: [EntityDescription("Moment", attributes: [.init("date", .date)])])
    func change(_ path: String, _ date: Double) throws {
      let coordinator = try PersistentStoreCoordinator(model: model, store: Fixture.Kind.json.description(at: path))
      let context = try ManagedObjectContext(coordinator: coordinator, classes: [])
      let found = try context.fetch(FetchRequest<ManagedObject>(entityName: "Moment")).first
      try (found ?? context.insert(entityNamed: "Moment")).setValue(.date(date), forKey: "date")
      try context.save()
      try coordinator.close()
    }
    try change(path, first)
    try StoreFile(path: path).copy(to: other)
    try change(other, second)
    let found = try StoreDifference(try StoreSource(path: path), other, includesValues: true).text()
    #expect(found.contains(": date (\(text))"), "\(found)")
  }

  @Test func comparisonsReportWhatIsWrong() throws {
    let fixture = try Fixture(), source = try StoreSource(path: try store(.json, fixture)), other = fixture.path("zoo.json")
    func error(_ path: String, _ method: StoreDifference.Method? = nil, _ keys: [String] = []) throws -> CommandError {
      try #require(throws: CommandError.self) { try StoreDifference(source, path, by: method, keys: keys) }
    }
    #expect(try error(fixture.path("nothing")).path == fixture.path("nothing"))
    #expect(try error(other, .structure, ["Dog=name"]).reason.contains("--by unique"))
    for key in ["Dog", "Dog=", "=name"] { #expect(try error(other, nil, [key]).reason.contains("Entity=property")) }
    #expect(try error(other, nil, ["Dog=name", "Dog=rating"]).reason.contains("repeated"))
    let copy = fixture.path("copy.xml")
    _ = try source.convert(to: copy)
    #expect(try error(copy, nil, ["Dog=colour"]).description.contains("colour"))
    #expect(try error(copy, nil, ["Horse=name"]).description.contains("Horse"))
    let newer = try ManagedObjectModel(entities: [EntityDescription("Dog")])
    try PersistentStoreCoordinator(model: newer, store: .xml(at: fixture.path("newer.xml"))).close()
    let refused = try error(fixture.path("newer.xml"), .structure)
    #expect(refused.description.contains("Migrate the older one") && !refused.description.contains("\n"), "\(refused)")
  }

  /// Only SQLite stores have unused space; the other files stay the same.
  @Test(arguments: Fixture.Kind.allCases) func everyStoreIsCompacted(_ kind: Fixture.Kind) throws {
    let fixture = try Fixture(), path = try store(kind, fixture), file = try Data(contentsOf: URL(fileURLWithPath: path))
    let before = try StoreSource(path: path).check(), backup = fixture.path("backup")
    let sizes = try StoreFile(path: path).compact(backup: backup)
    #expect(try sizes.after > 0 && sizes.before > 0 && StoreSource(path: path).check() == before)
    #expect(FileManager.default.fileExists(atPath: backup) == (kind == .sqlite))
    if kind != .sqlite { #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == file && sizes.before == sizes.after) }
  }

  @Test func aDamagedStoreIsReported() throws {
    let fixture = try Fixture(), path = try store(.binary, fixture)
    var bytes = try Data(contentsOf: URL(fileURLWithPath: path))
    bytes[bytes.count / 2] ^= 0xFF
    try bytes.write(to: URL(fileURLWithPath: path))
    #expect(throws: CommandError.self) { try StoreSource(path: path).check() }
  }
}

/// The command that recovers damaged stores.
@Suite struct StoreRepairTests {
  @Test func aDamagedStoreIsRecoveredAndWhatIsLostIsCounted() throws {
    let fixture = try Fixture(), path = fixture.path("zoo.sqlite"), output = fixture.path("repaired.sqlite")
    try fixture.writeStore(.sqlite(at: path))
    let intact = try StoreRepair(path: path, output: output)
    #expect(intact.report.isComplete && intact.report.objectCounts == ["Dog": 2, "Walk": 3])
    #expect(try StoreSource(path: output).check() == StoreSource(path: path).check())
    #expect(throws: CommandError.self) { try StoreRepair(path: path, output: output) }
    // Without its header, the file isn't recognised, and its model is lost with the metadata's table.
    var bytes = try Data(contentsOf: URL(fileURLWithPath: path))
    bytes.replaceSubrange(0..<4096, with: Data(count: 4096))
    try bytes.write(to: URL(fileURLWithPath: path))
    let second = fixture.path("second.sqlite"), found = try StoreRepair(path: path, output: second, modelPath: try fixture.writeModel())
    #expect(found.report.objectCounts == ["Dog": 2, "Walk": 3] && !found.report.isComplete, "\(found.report)")
    #expect(try StoreSource(path: second).check() == StoreSource(path: output).check())
    #expect(throws: CommandError.self) { try StoreRepair(path: fixture.path("missing.sqlite"), output: fixture.path("third.sqlite")) }
  }

  @Test(arguments: Fixture.Kind.allCases) func storesOfEveryTypeAreRecovered(kind: Fixture.Kind) throws {
    let fixture = try Fixture(), name = kind.rawValue.lowercased(), path = fixture.path("zoo.\(name)"), url = URL(fileURLWithPath: path)
    try fixture.writeStore(kind.description(at: path))
    let digest = try StoreSource(path: path).check(), intact = fixture.path("intact.\(name)")
    #expect(try StoreRepair(path: path, output: intact).report.isComplete && StoreSource(path: intact).check() == digest)

    var bytes = try Data(contentsOf: url), modelPath: String?
    switch kind {
    case .sqlite:
      bytes.replaceSubrange(0..<4096, with: Data(count: 4096))
      modelPath = try fixture.writeModel()
    // Such a file has one digest, so any value may be damaged.
    case .json, .xml:
      let place = try #require(bytes.range(of: Data("Fido".utf8)))
      bytes.replaceSubrange(place, with: Data("Fida".utf8))
    case .binary: bytes[bytes.count - 1] ^= 1
    }
    try bytes.write(to: url)
    let error = #expect(throws: CommandError.self) { try StoreSource(path: path, modelPath: modelPath).check() }
    #expect(error?.path == path, "\(error as Any)")
    let output = fixture.path("repaired.\(name)"), report = try StoreRepair(path: path, output: output, modelPath: modelPath).report
    #expect(report.objectCounts == ["Dog": 2, "Walk": 3] && !report.isComplete, "\(report)")
    #expect(try StoreSource(path: output).check().objectCount == 5 && Data(contentsOf: url) == bytes)
  }

  /// A derived model would replace the version hashes, so the real one is needed. It is found by the hashes.
  @Test func anXMLStoreWithoutAModelIsRecoveredWithTheVersionThatItWasCreatedWith() throws {
    let fixture = try Fixture(), bundle = fixture.path("Zoo.xcdatamodeld")
    let path = fixture.path("zoo.xml"), output = fixture.path("repaired.xml")
    let name = AttributeDescription("firstname", .string, isOptional: true), model = try Kennel.model(name)
    let versions = [
      "Zoo": try ModelDocument(model), "Zoo 2": try ModelDocument(Kennel.model(name, .init("age", .integer16, isOptional: true))),
    ]
    try ModelBundle.write(versions, currentVersion: "Zoo 2", to: bundle)
    // The end of the second object is missing.
    let whole = Kennel.xml(of: model), end = try #require(whole.range(of: "idr", options: .backwards)).upperBound
    let damaged = Data(whole[..<end].utf8)
    try damaged.write(to: URL(fileURLWithPath: path))
    let error = #expect(throws: CommandError.self) { try StoreRepair(path: path, output: output) }
    #expect(error?.description.contains("Pass the model with which the store was created.") == true, "\(error as Any)")
    #expect(!FileManager.default.fileExists(atPath: output))
    let report = try StoreRepair(path: path, output: output, modelPath: bundle).report
    #expect(report.objectCount == 1 && report.damagedPlaceCount > 0, "\(report)")
    #expect(try StoreSource(path: output, modelPath: bundle).check().objectCount == 1)
    #expect(try StoreReport(path: output).uuid == Kennel.uuid)
    #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == damaged)
  }
}
