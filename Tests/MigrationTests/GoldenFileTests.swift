import Foundation
import Holdfast
import HoldfastBinaryStore
import HoldfastJSONStore
import HoldfastSQLiteStore
import HoldfastStore
import HoldfastXMLStore
import TestSupport
import Testing

/// Files that released versions wrote are opened and migrated by all later versions.
///
/// Files of a new version are written with `HOLDFAST_GOLDEN=FOLDER`, and are never changed afterwards.
@Suite struct GoldenFileTests {
  private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("Golden").path
  private static let versions = ["0.1"]
  private static let kinds: [MigratedStore] = [.json, .xml, .binary, .sqlite]

  private let old: ManagedObjectModel
  private let new: ManagedObjectModel

  init() throws {
    func zoo(_ attributes: [AttributeDescription], name: String = "name") throws -> ManagedObjectModel {
      try model(
        EntityDescription(
          "Animal", isAbstract: true,
          attributes: [AttributeDescription(name, .string, default: "?").renamed(from: "name")] + attributes,
          relationships: [.toOne("owner", to: "Owner", inverse: "animals")]),
        EntityDescription(
          "Cat", superentity: "Animal",
          attributes: [
            .init("a16", .integer16, isOptional: true), .init("a32", .integer32, isOptional: true),
            .init("a64", .integer64, isOptional: true),
            .init("amount", .decimal, isOptional: true), .init("born", .date, isOptional: true),
            .init("photo", .binaryData, isOptional: true, allowsExternalBinaryDataStorage: true),
            .init("bytes", .binaryData, isOptional: true),
            .init("chip", .uuid, isOptional: true), .init("favourite", .objectID, isOptional: true),
            .init("flag", .boolean, isOptional: true),
            .init("page", .uri, isOptional: true), .init("ratio", .float, isOptional: true), .init("weight", .double, isOptional: true),
            .composite("home", "Place", isOptional: true),
          ]), EntityDescription("Dog", superentity: "Animal", relationships: [.toMany("peers", to: "Dog", inverse: "peers")]),
        EntityDescription(
          "Owner", attributes: [.derived("count", .integer64, "animals.@count")],
          relationships: [.toMany("animals", to: "Animal", inverse: "owner", isOrdered: true), .toMany("seen", to: "Animal", inverse: nil)]),
        composites: [
          CompositeDescription("Place", [.init("latitude", .double, isOptional: true), .init("name", .string, isOptional: true)])
        ])
    }
    old = try zoo([])
    new = try zoo([.init("note", .string, default: "new")], name: "title")
  }

  private func fill(_ description: StoreDescription) throws {
    let coordinator = try PersistentStoreCoordinator(model: old, store: description)
    let context = try ManagedObjectContext(coordinator: coordinator, classes: [])
    let owner = try context.add("Owner", "o")
    let cat = try context.add(
      "Cat", "c",
      [
        "name": "Ünal ☃", "a16": .int16(-3), "a32": .int32(70_000), "a64": .int64(.min), "amount": .decimal(Decimal(string: "12.75") ?? 0),
        "born": .date(801_234_567.25), "photo": .data(Data((0..<2_000).map { UInt8($0 % 251) })), "bytes": .data(Data([0, 255])),
        "chip": .uuid(UUID(uuidString: "00000000-0000-0000-0000-00000000000A") ?? UUID()), "flag": true,
        "page": .uri("https://example.org/a"),
        "ratio": .float(0.1), "weight": .double(1e-7), "home.latitude": .double(52.5), "home.name": "A \"b\" <c>",
      ])
    try context.add("Cat", "empty")
    let dogs = try (1...3).map { try context.add("Dog", "d\($0)") }
    try owner.setValue([dogs[2], cat, dogs[0]], forKey: "animals")
    try owner.setValue([cat], forKey: "seen")
    try dogs[0].setValue([dogs[1], dogs[2]], forKey: "peers")
    try context.save()
    try cat.setValue(StoreValue.objectID(owner.objectID), forKey: "favourite")
    try context.save()
    try coordinator.persistentStores[0].setMetadata(["note": "kept", "number": 3])
    try coordinator.close()
  }

  private static func description(_ kind: MigratedStore, _ path: String) -> StoreDescription {
    let external = ExternalDataOptions(threshold: 1_000), whole = WholeFileOptions(externalData: external)
    return switch kind {
    case .json: .json(at: path, options: JSONStoreOptions(wholeFile: whole))
    case .xml: .xml(at: path, options: XMLStoreOptions(wholeFile: whole))
    case .binary: .binary(at: path, options: BinaryStoreOptions(wholeFile: whole))
    case .sqlite, .coreData: .sqlite(at: path, options: SQLiteStoreOptions(externalData: external))
    }
  }

  private let lines = [
    "Cat c: a16=-3 a32=70000 a64=-9223372036854775808 amount=12.75 born=@801234567.25 bytes=0ff "
      + "chip=00000000-0000-0000-0000-00000000000A favourite=o flag=true home.latitude=52.5 home.name=A \"b\" <c> name=Ünal ☃ "
      + "page=uri(\"https://example.org/a\") photo=2000 bytes 0 ratio=0.10000000149011612 weight=1e-07 owner=o",
    "Cat empty: a16=nil a32=nil a64=nil amount=nil born=nil bytes=nil chip=nil favourite=nil flag=nil home.latitude=nil home.name=nil name=? "
      + "page=nil photo=nil ratio=nil weight=nil owner=nil",
    "Dog d1: name=? owner=o peers=[d2 d3]", "Dog d2: name=? owner=nil peers=[d1]", "Dog d3: name=? owner=o peers=[d1]",
    "Owner o: count=3 animals=[d3 c d1] seen=[c]",
  ]

  /// The contents, with the tag of the object whose ID an attribute has.
  private func contents(_ place: MigratedStore.Place, _ model: ManagedObjectModel) throws -> [String] {
    var lines: [String] = []
    try place.change(model) { context in
      let id = try context.tagged("Owner", "o").objectID
      lines = try Contents(of: context).lines.map {
        $0.replacing("objectID(\(id))", with: "o").replacing("\(StoreValue.objectID(id))", with: "o")
      }
    }
    return lines
  }

  @Test(.enabled(if: ProcessInfo.processInfo.environment["HOLDFAST_GOLDEN"] != nil, "HOLDFAST_GOLDEN names no folder to write to."))
  func filesOfThisVersionAreWritten() throws {
    let folder = ProcessInfo.processInfo.environment["HOLDFAST_GOLDEN"] ?? ""
    for kind in Self.kinds {
      let path = "\(folder)/\(kind.rawValue)"
      try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
      try fill(Self.description(kind, path + "/Store"))
      for name in try FileManager.default.contentsOfDirectory(atPath: path) where name.hasSuffix(".lock") {
        try FileManager.default.removeItem(atPath: "\(path)/\(name)")
      }
    }
  }

  @Test(arguments: versions, kinds) func RE7_filesOfEveryVersionAreOpenedAndMigrated(version: String, kind: MigratedStore) throws {
    let place = MigratedStore.Place(kind), golden = "\(Self.folder)/\(version)/\(kind.rawValue)"
    for name in try FileManager.default.contentsOfDirectory(atPath: golden) {
      try FileManager.default.copyItem(atPath: "\(golden)/\(name)", toPath: place.folder.file(name))
    }
    #expect(try PersistentStoreCoordinator.metadata(for: place.description).userInfo == ["note": "kept", "number": .int64(3)])
    #expect(try PersistentStoreCoordinator.cachedModel(for: place.description)?.versionDigest == old.versionDigest)
    #expect(try contents(place, old) == lines)
    let migrated = try contents(place, new)
    #expect(migrated.count == lines.count && migrated[0].contains("title=Ünal ☃") && migrated[1].contains("note=new"))
    #expect(migrated.last == lines.last)
  }
}
