import Foundation
import Holdfast
import HoldfastStore
import HoldfastXMLStore
import TestSupport
import Testing

/// Files that another program wrote.
@Suite(.bothReaders) struct XMLForeignFileTests {
  private let file: XMLFile
  init() throws { file = try XMLFile() }

  private static let fleet: ManagedObjectModel = {
    do {
      return try ManagedObjectModel(entities: [
        EntityDescription(
          "Ship", attributes: [AttributeDescription("fullName", .string, isOptional: true)],
          relationships: [
            .toMany("boats", to: "Boat", inverse: "ship"), .toMany("ports", to: "Port", inverse: "ships"),
            .toOne("flag", to: "Flag", inverse: "ship"),
          ]),
        EntityDescription("Boat", relationships: [.toOne("ship", to: "Ship", inverse: "boats")]),
        EntityDescription("Port", isAbstract: true, relationships: [.toMany("ships", to: "Ship", inverse: "ports")]),
        EntityDescription("Haven", superentity: "Port"),
        EntityDescription("Flag", relationships: [.toOne("ship", to: "Ship", inverse: "flag")]),
      ])
    } catch { fatalError("\(error)") }
  }()

  private func link(_ name: String, _ destination: String, _ ids: String) -> String {
    "<relationship name=\"\(name)\" type=\"0/0\" destination=\"\(destination)\" idrefs=\"\(ids)\"></relationship>"
  }

  private func object(_ type: String, _ id: Int, _ inside: String...) -> String {
    "<object type=\"\(type)\" id=\"z\(id)\">\(inside.joined())</object>"
  }

  private func text(_ objects: [String], info: String = "") -> String { "<database>\(info)\(objects.joined(separator: "\n"))</database>" }

  /// It is assumed to match the model, as when it is opened.
  @Test(arguments: [
    "", "<databaseInfo></databaseInfo>", "<databaseInfo><nextObjectID>120</nextObjectID></databaseInfo>",
    "<databaseInfo><UUID>B4FC79D0-E654-43EF-9020-A5273B3F104A</UUID><metadata/></databaseInfo>",
    "<databaseInfo><metadata><plist><dict><key>a</key><string>b</string></dict></plist></metadata></databaseInfo>",
  ])
  func RE6_aFileWithoutVersionHashesIsRepaired(_ info: String) throws {
    let objects = [
      object("SHIP", 102, link("boats", "BOAT", "z103 z104")), object("BOAT", 103, link("ship", "SHIP", "z102")),
      object("BOAT", 104, link("ship", "SHIP", "z102")),
    ]
    let intact = text(objects, info: info)
    for (text, keys) in [(intact, [103, 104]), (intact.replacingOccurrences(of: "id=\"z104\"", with: "id=\"\u{1}104\""), [103])] {
      try file.write(text)
      let folder = TemporaryFolder(), repaired = StoreDescription.xml(at: folder.file("repaired.xml"))
      let report = try PersistentStoreCoordinator.repairPersistentStore(.xml(at: file.path), to: repaired, model: Self.fleet)
      #expect(report.objectCount == keys.count + 1 && report.unreadableCount == 2 - keys.count, "\(report)")
      let context = try ManagedObjectContext(coordinator: PersistentStoreCoordinator(model: Self.fleet, store: repaired), classes: [])
      let ship = try #require(try context.fetch(FetchRequest<ManagedObject>(entityName: "Ship")).first)
      #expect(try ship.toMany(forKey: "boats").map(\.objectID.key.rawValue).sorted() == keys.map { Int64($0) })
      try context.persistentStoreCoordinator.close()
    }
  }

  @Test func aFileWithoutInformationOpensAndKeepsTheUUIDThatIsMadeUpForIt() throws {
    let objects = [
      object("Ship", 102, link("Boats", "boat", " z104\nz103 ")), object("BOAT", 104, link("ship", "SHIP", "z102")),
      object("boat", 103, link("SHIP", "Ship", "z102")),
    ]
    try file.write(text(objects))
    let uuids = try (0..<2).map { _ in
      let context = try file.context(Self.fleet)
      defer { try? context.persistentStoreCoordinator.close() }
      #expect(try context.fetch(FetchRequest<ManagedObject>(entityName: "Boat")).map(\.objectID.key).sorted() == [103, 104])
      return context.persistentStoreCoordinator.storeIdentifier
    }
    #expect(uuids[0] == uuids[1] && UUID(uuidString: uuids[0]) != nil)
    #expect(try PersistentStoreCoordinator.metadata(for: .xml(at: file.path)).storeUUID == uuids[0])
    #expect(try file.text() == text(objects))
    let context = try file.context(Self.fleet)
    let boat = try context.insert(entityNamed: "Boat")
    try context.save()
    #expect(boat.objectID.key == 105 && boat.objectID.uriRepresentation == "x-coredata://\(uuids[0])/Boat/p105")
    try context.persistentStoreCoordinator.close()
    #expect(try PersistentStoreCoordinator.metadata(for: .xml(at: file.path)).storeUUID == uuids[0])
    #expect(try file.text().contains("_HoldfastSeal") && file.text().contains("<nextObjectID>105</nextObjectID>"))
    try file.open(Self.fleet)
  }

  @Test func whatOtherProgramsSayOfTheStoreStays() throws {
    let list =
      "<plist version=\"1.0\"><dict><key>NSPersistenceFrameworkVersion</key><integer>251</integer><key>NSStoreOther</key><array><string>a</string>"
      + "</array><key>lists</key><array><integer>1</integer></array><key>Build</key><integer>7</integer></dict></plist>"
    try file.write(
      text([], info: "<databaseInfo><UUID>b4fc79d0-e654-43ef-9020-a5273b3f104a</UUID><metadata>\(list)</metadata></databaseInfo>"))
    for round in 0..<2 {
      let context = try file.context(Self.fleet)
      #expect(context.persistentStoreCoordinator.storeIdentifier == "B4FC79D0-E654-43EF-9020-A5273B3F104A")
      #expect(context.persistentStoreCoordinator.metadata == (round == 0 ? ["Build": .int64(7)] : ["Mine": .bool(true)]))
      try context.persistentStoreCoordinator.setMetadata(["Mine": .bool(true)])
      try context.persistentStoreCoordinator.close()
    }
    let written = try file.text()
    for key in [
      "NSPersistenceFrameworkVersion</key>\n\t<integer>251", "NSStoreOther", "lists", "NSStoreModelVersionHashesDigest",
      "NSStoreModelVersionChecksumKey",
    ] {
      #expect(written.contains(key), "\(key)")
    }
    #expect(!written.contains("Build"))
  }

  @Test func everyKindOfMetadataComesBack() throws {
    let metadata: [String: StoreValue] = [
      "null": .null, "bool": .bool(true), "int16": .int16(.min), "int32": .int32(.max), "int64": .int64(.min), "float": .float(0.1),
      "double": .double(-0.1), "inf": .double(-.infinity), "date": .date(0.5), "whole": .date(1e9), "far": .date(1e300),
      "string": .string("a<&>\r\n\t "),
      "control": .string("a\u{0}\u{FFFE}"), "uri": .uri("x:\u{1}"), "data": .data(Data([0, 1])), "empty": .data(Data()),
      "uuid": .uuid(UUID()), "decimal": .decimal(Decimal(string: "1.50") ?? 0), "space": .string("  "),
    ]
    let context = try file.context()
    try context.persistentStoreCoordinator.setMetadata(metadata)
    try context.persistentStoreCoordinator.close()
    let again = try file.context()
    #expect(again.persistentStoreCoordinator.metadata == metadata)
    for key in ["NSStoreMine", "_HoldfastMine", "a\u{1}"] {
      let refusal = try #require(throws: StoreError.self) { try again.persistentStoreCoordinator.setMetadata([key: .null]) }
      #expect(refusal.code == .unstorableValue && refusal.path == file.path, "\(refusal)")
    }
    try again.persistentStoreCoordinator.close()
  }

  @Test func endsThatDoNotAgreeAreDamageAndAnObjectIsNamed() throws {
    let right = [
      object("SHIP", 1, link("boats", "BOAT", "z2"), link("ports", "PORT", "z3"), link("flag", "FLAG", "z4")),
      object("BOAT", 2, link("ship", "SHIP", "z1")),
      object("HAVEN", 3, link("ships", "SHIP", "z1")), object("FLAG", 4, link("ship", "SHIP", "z1")), object("SHIP", 5),
    ]
    try file.write(text(right))
    #expect(file.refusal(Self.fleet) == nil)
    for (old, new, word) in [
      ("BOAT\" idrefs=\"z2\"", "BOAT\"", "object 2"), ("BOAT\" idrefs=\"z2\"", "BOAT\" idrefs=\"z2 z2\"", "object 2"),
      ("BOAT\" idrefs=\"z2\"", "BOAT\" idrefs=\"z2 z9\"", "object 9"), ("PORT\" idrefs=\"z3\"", "PORT\"", "object 3"),
      ("\"FLAG\" idrefs=\"z4\"", "\"FLAG\"", "object 4"),
      // One link is missing and one is superfluous. Which of the two is reported depends on chance; rarely, it is neither.
      ("PORT\" idrefs=\"z3\"", "PORT\" idrefs=\"z2\"", "ports of Ship"),
      ("<object type=\"HAVEN\"", "<object type=\"PORT\"", "abstract"),
    ] {
      let changed = text(right).replacingOccurrences(of: old, with: new)
      #expect(changed != text(right))
      try file.write(changed)
      let refusal = try #require(file.refusal(Self.fleet), "\(old)")
      #expect(refusal.code == .damaged && refusal.reason.contains(word), "\(refusal)")
    }
    // A deletion without a rule leaves links to the missing object.
    try file.write(text([object("BOAT", 2, link("ship", "SHIP", "z77")), object("HAVEN", 3, link("ships", "SHIP", ""))]))
    #expect(file.refusal(Self.fleet) == nil)
  }

  @Test func metadataOfAFileWithoutModelAreNotWrittenUnopened() throws {
    try file.write(text([object("SHIP", 1)]))
    let refusal = try #require(throws: StoreError.self) { try PersistentStoreCoordinator.setMetadata([:], for: .xml(at: file.path)) }
    #expect(refusal.code == .unsupportedRequest && refusal.path == file.path, "\(refusal)")
  }
}
