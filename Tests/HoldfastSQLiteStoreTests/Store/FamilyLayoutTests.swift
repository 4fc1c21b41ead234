import Foundation
import HoldfastStore
import SQLiteTestSupport
import TestSupport
import Testing

@testable import HoldfastSQLiteStore

/// How entities with inheritance are stored in a file.
@Suite struct FamilyLayoutTests {
  private static func model() throws -> ManagedObjectModel {
    try ManagedObjectModel(entities: [
      EntityDescription(
        "Animal", isAbstract: true, attributes: [AttributeDescription("name", .string)],
        relationships: [.toOne("keeper", to: "Keeper", inverse: "animals")]),
      EntityDescription(
        "Cat", superentity: "Animal",
        attributes: [
          AttributeDescription("lives", .integer16, isOptional: true), AttributeDescription("title", .string, isOptional: true),
        ],
        uniquenessConstraints: [["name"], ["title"]]),
      EntityDescription(
        "Dog", superentity: "Animal",
        attributes: [AttributeDescription("title", .string, isOptional: true), AttributeDescription("born", .date, isOptional: true)],
        relationships: [.toOne("title2", to: "Keeper", inverse: "dogs")]),
      EntityDescription("Puppy", superentity: "Dog", attributes: [AttributeDescription("title1", .string, isOptional: true)]),
      EntityDescription(
        "Keeper", attributes: [AttributeDescription("name", .string)],
        relationships: [
          .toMany("animals", to: "Animal", inverse: "keeper"), .toMany("dogs", to: "Dog", inverse: "title2"),
        ]),
      EntityDescription("HeadKeeper", superentity: "Keeper"),
    ])
  }

  @Test func `a family has one table, with digits for colliding sibling names and the entity beside keys to families`() throws {
    let folder = TemporaryFolder()
    try StoreUnderTest(folder, try Self.model()).store.close()
    let found = try SQL.rows(folder.file(), "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid").map { $0[0] }
    #expect(
      found.prefix(9) == [
        "CREATE TABLE ZANIMAL ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZKEEPER INTEGER, Z5_KEEPER INTEGER, ZLIVES INTEGER, ZTITLE2 INTEGER, Z5_TITLE2 INTEGER, ZBORN TIMESTAMP, ZNAME VARCHAR, ZTITLE VARCHAR, ZTITLE1 VARCHAR, ZTITLE11 VARCHAR )",
        "CREATE INDEX ZANIMAL_ZKEEPER_INDEX ON ZANIMAL (ZKEEPER)",
        "CREATE INDEX ZANIMAL_Z_ENT_INDEX ON ZANIMAL (Z_ENT)",
        "CREATE UNIQUE INDEX Z_Cat_UNIQUE_name ON ZANIMAL (ZNAME COLLATE BINARY ASC) WHERE Z_ENT IN (2)",
        "CREATE UNIQUE INDEX Z_Cat_UNIQUE_title ON ZANIMAL (ZTITLE COLLATE BINARY ASC)",
        "CREATE INDEX ZANIMAL_ZTITLE2_INDEX ON ZANIMAL (ZTITLE2)",
        "CREATE TABLE ZKEEPER ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZNAME VARCHAR )",
        "CREATE INDEX ZKEEPER_Z_ENT_INDEX ON ZKEEPER (Z_ENT)",
        "CREATE TABLE Z_PRIMARYKEY (Z_ENT INTEGER PRIMARY KEY, Z_NAME VARCHAR, Z_SUPER INTEGER, Z_MAX INTEGER)",
      ])
    #expect(
      try SQL.rows(folder.file(), "SELECT Z_ENT, Z_NAME, Z_SUPER, Z_MAX FROM Z_PRIMARYKEY") == [
        ["1", "Animal", "0", "0"], ["2", "Cat", "1", "0"], ["3", "Dog", "1", "0"], ["4", "Puppy", "3", "0"], ["5", "Keeper", "0", "0"],
        ["6", "HeadKeeper", "5", "0"],
      ])
  }

  @Test func `a relationship without inverse has a column with its owner's key, and one that is its own inverse a table`() throws {
    let folder = TemporaryFolder()
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Team", relationships: [.toMany("players", to: "Player", inverse: nil), .toOne("sponsor", to: "Sponsor", inverse: nil)]),
      EntityDescription("Player", relationships: [.toMany("mates", to: "Player", inverse: "mates")]), EntityDescription("Sponsor"),
    ])
    let tested = try StoreUnderTest(folder, model)
    let players = try tested.insert("Player", [[:], [:], [:]])
    var owned = SaveRequest.LinkChanges(entity: 2, relationship: 0), mates = SaveRequest.LinkChanges(entity: 0, relationship: 0)
    owned.added = [SaveRequest.Link(source: 1, target: players[1])]
    mates.added = [SaveRequest.Link(source: 1, target: 3), SaveRequest.Link(source: 3, target: 1)]
    try tested.insert("Team", [[:]], links: [owned, mates])
    try tested.store.close()
    let found = try SQL.rows(folder.file(), "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid").map { $0[0] }
    #expect(
      found.prefix(6) == [
        "CREATE TABLE ZPLAYER ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, Z3PLAYERS INTEGER )",
        "CREATE INDEX ZPLAYER_Z3PLAYERS_INDEX ON ZPLAYER (Z3PLAYERS)",
        "CREATE TABLE ZSPONSOR ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER )",
        "CREATE TABLE ZTEAM ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZSPONSOR INTEGER )",
        "CREATE INDEX ZTEAM_ZSPONSOR_INDEX ON ZTEAM (ZSPONSOR)",
        "CREATE TABLE Z_1MATES ( Z_1MATES INTEGER, REFLEXIVE INTEGER, PRIMARY KEY (Z_1MATES, REFLEXIVE) )",
      ])
    let rows = try SQL.rows(folder.file(), "SELECT Z_PK, Z3PLAYERS FROM ZPLAYER ORDER BY 1")
    #expect(rows == [["1", "NULL"], ["2", "1"], ["3", "NULL"]])
    #expect(try SQL.rows(folder.file(), "SELECT Z_1MATES, REFLEXIVE FROM Z_1MATES ORDER BY 1") == [["1", "3"], ["3", "1"]])
  }

  @Test func `order keys are stored beside the keys that they order`() throws {
    let folder = TemporaryFolder()
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Album",
        relationships: [
          .toMany("tracks", to: "Track", inverse: "album", isOrdered: true),
          .toMany("genres", to: "Genre", inverse: "albums", isOrdered: true),
          .toMany("notes", to: "Note", inverse: nil, isOrdered: true),
        ]),
      EntityDescription("Genre", relationships: [.toMany("albums", to: "Album", inverse: "genres", isOrdered: true)]),
      EntityDescription("Note"), EntityDescription("Track", relationships: [.toOne("album", to: "Album", inverse: "tracks")]),
    ])
    let tested = try StoreUnderTest(folder, model)
    let (album, genre, note) = (
      try tested.insert("Album", [[:]])[0], try tested.insert("Genre", [[:]])[0], try tested.insert("Note", [[:]])[0]
    )
    let track = try tested.insert("Track", [["album": .key(album)]])[0]
    var request = SaveRequest()
    for (name, target, key) in [("genres", genre, 5), ("notes", note, 6), ("tracks", track, 7)] as [(String, ObjectKey, Int64)] {
      let relationship = try #require(tested.entity("Album").relationship(named: name))
      var order = SaveRequest.OrderChanges(entity: 0, relationship: relationship.index)
      order.links = [SaveRequest.Link(source: album, target: target)]
      order.keys = [key]
      request.orders.append(order)
      if name == "tracks" { continue }
      var links = SaveRequest.LinkChanges(entity: 0, relationship: relationship.index)
      links.added = order.links
      request.links.append(links)
    }
    try tested.save(request)
    try tested.store.close()
    let found = try SQL.rows(folder.file(), "SELECT sql FROM sqlite_master WHERE type = 'table' ORDER BY rowid").map { $0[0] }
    #expect(
      found.prefix(5) == [
        "CREATE TABLE ZALBUM ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER )",
        "CREATE TABLE ZGENRE ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER )",
        "CREATE TABLE ZNOTE ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, Z1NOTES INTEGER, Z_FOK_1NOTES INTEGER )",
        "CREATE TABLE ZTRACK ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZALBUM INTEGER, Z_FOK_ALBUM INTEGER )",
        "CREATE TABLE Z_1GENRES ( Z_1ALBUMS INTEGER, Z_2GENRES INTEGER, Z_FOK_2GENRES INTEGER, Z_FOK_1ALBUMS INTEGER, PRIMARY KEY (Z_1ALBUMS, Z_2GENRES) )",
      ])
    #expect(try SQL.rows(folder.file(), "SELECT * FROM Z_1GENRES") == [["1", "1", "5", "NULL"]])
    #expect(try SQL.rows(folder.file(), "SELECT Z1NOTES, Z_FOK_1NOTES FROM ZNOTE") == [["1", "6"]])
    #expect(try SQL.rows(folder.file(), "SELECT ZALBUM, Z_FOK_ALBUM FROM ZTRACK") == [["1", "7"]])
  }

  @Test func `rows contain the number of their entity and of their destinations' entities`() throws {
    let folder = TemporaryFolder()
    let tested = try StoreUnderTest(folder, try Self.model())
    let head = try tested.insert("HeadKeeper", [["name": .string("H")]])[0],
      plain = try tested.insert("Keeper", [["name": .string("K")]])[0]
    #expect([head, plain] == [1, 2])
    try tested.insert("Cat", [["name": .string("c"), "title": .string("t"), "keeper": .key(head)]])
    try tested.insert("Puppy", [["name": .string("p"), "title": .string("u"), "title1": .string("v"), "title2": .key(plain)]])
    // A row and its destination in one save, in either order.
    let both = [try tested.store.reserveKeys(entity: 5, count: 1)[0], try tested.store.reserveKeys(entity: 2, count: 1)[0]]
    var dog = SaveRequest.EntityChanges(entity: 2), keeper = SaveRequest.EntityChanges(entity: 5)
    dog.inserted = [try tested.batch("Dog", [(both[1], 1, ["name": .string("d"), "keeper": .key(both[0])])])]
    keeper.inserted = [try tested.batch("HeadKeeper", [(both[0], 1, ["name": .string("N")])])]
    try tested.save(SaveRequest(entities: [dog, keeper]))
    func rows() throws -> [[String]] {
      try SQL.rows(
        folder.file(), "SELECT Z_PK, Z_ENT, ZNAME, ZTITLE, ZTITLE1, ZTITLE11, ZKEEPER, Z5_KEEPER, ZTITLE2, Z5_TITLE2 FROM ZANIMAL")
    }
    let none = "NULL"
    #expect(
      try rows() == [
        ["1", "2", "c", "t", none, none, "1", "6", none, none], ["2", "4", "p", none, "u", "v", none, none, "2", "5"],
        ["3", "3", "d", none, none, none, "3", "6", none, none],
      ])
    #expect(
      try SQL.rows(folder.file(), "SELECT Z_MAX FROM Z_PRIMARYKEY ORDER BY Z_ENT").map { $0[0] } == ["3", "0", "0", "0", "3", "0"])
    try tested.update("Puppy", [(2, 1, ["name": .string("p"), "title2": .key(head)], ["title2"])])
    #expect(try rows()[1].suffix(2) == ["1", "6"])
    try tested.save(try tested.deletion("HeadKeeper", [head]))
    #expect(try rows().map { Array($0.suffix(4)) } == [[none, none, none, none], [none, none, none, none], ["3", "6", none, none]])
  }

  @Test func `a row whose entity isn't in the model is damage`() throws {
    let folder = TemporaryFolder()
    let tested = try StoreUnderTest(folder, try Self.model())
    try tested.insert("Cat", [["name": .string("c")], ["name": .string("d")]])
    try tested.store.close()
    _ = try SQL.rows(folder.file(), "UPDATE ZANIMAL SET Z_ENT = 17 WHERE Z_PK = 2")
    let again = try StoreUnderTest(folder, try Self.model())
    #expect(try again.all("Cat").count == 1)
    var plan = try again.plan("Animal")
    plan.concreteEntities = try again.entity("Animal").concreteIndexes
    let error = try #require(throws: StoreError.self) { try again.fetch(plan) }
    #expect(error.code == .damaged && error.reason.contains("17 in Z_ENT"))
  }

  private static func walks() throws -> ManagedObjectModel {
    try ManagedObjectModel(entities: [
      EntityDescription("Animal", isAbstract: true, attributes: [AttributeDescription("name", .string)]),
      EntityDescription("Cat", superentity: "Animal"),
      EntityDescription(
        "Dog", superentity: "Animal",
        relationships: [
          .toMany("walks", to: "Walk", inverse: "dogs"), .toMany("led", to: "Walk", inverse: "leader"),
          .toOne("favourite", to: "Walk", inverse: "fans"),
        ]),
      EntityDescription(
        "Walk",
        relationships: [
          .toMany("dogs", to: "Dog", inverse: "walks"), .toOne("leader", to: "Dog", inverse: "led"),
          .toMany("fans", to: "Dog", inverse: "favourite"),
        ]),
    ])
  }

  /// Inserts a dog that is the leader, the only dog and the only fan of a walk, and returns the keys of both.
  private static func insertWalk(_ tested: StoreUnderTest) throws -> (dog: ObjectKey, walk: ObjectKey) {
    let entity = try tested.entity("Walk"), relationship = try #require(entity.relationship(named: "dogs"))
    let dog = try tested.insert("Dog", [["name": .string("Rex")]])[0]
    let walk = try tested.insert("Walk", [["leader": .key(dog)]])[0]
    var links = SaveRequest.LinkChanges(entity: entity.index, relationship: relationship.index)
    links.added = [SaveRequest.Link(source: walk, target: dog)]
    try tested.save(SaveRequest(links: [links]))
    try tested.update("Dog", [(dog, 1, ["name": .string("Rex"), "favourite": .key(walk)], ["favourite"])])
    return (dog, walk)
  }

  /// Changes the dog's entity in the file, as damage would.
  private static func turnDogIntoCat(_ folder: TemporaryFolder, _ model: ManagedObjectModel) throws {
    let cat = try #require(model.entity(named: "Cat")).index.rawValue + 1
    _ = try SQL.rows(folder.file(), "UPDATE ZANIMAL SET Z_ENT = \(cat)")
  }

  /// The bug: conditions were tested with the row of the other entity. Other stores treat such an object as missing.
  @Test func `a query follows no reference to an object of another entity`() throws {
    let folder = TemporaryFolder(), model = try Self.walks(), tested = try StoreUnderTest(folder, model)
    _ = try Self.insertWalk(tested)
    func isRex(_ path: PropertyPath) -> QueryExpression { .comparison(.property(path), .equalTo, .constant(.string("Rex")), []) }
    let queries: [QueryExpression] = [isRex("leader.name"), .any("dogs", isRex("name")), .any("fans", isRex("name"))]
    for query in queries { #expect(try tested.fetch(tested.plan("Walk", query)).count == 1, "\(query)") }
    try tested.store.close()
    try Self.turnDogIntoCat(folder, model)
    let again = try StoreUnderTest(folder, model)
    for query in queries { #expect(try again.fetch(again.plan("Walk", query)).isEmpty, "\(query)") }
  }

  /// The bug: the row of a cat was returned as that of a dog, which didn't exist otherwise.
  @Test(arguments: ["dogs", "fans"]) func `rows of destinations don't include those of another entity`(_ name: String) throws {
    let folder = TemporaryFolder(), model = try Self.walks(), tested = try StoreUnderTest(folder, model)
    let (dog, walk) = try Self.insertWalk(tested)
    func answer(_ tested: StoreUnderTest) throws -> RelationshipAnswer {
      let entity = try tested.entity("Walk"), relationship = try #require(entity.relationship(named: name))
      let request = RelationshipRequest(entity: entity.index, relationship: relationship.index, sources: [walk], acceptsRows: true)
      return try tested.store.relationships(request, in: try tested.store.beginRead(.latest, options: .none), options: .none)
    }
    #expect(try answer(tested).targets == [dog] && answer(tested).rows.map(\.count) == [1])
    try tested.store.close()
    try Self.turnDogIntoCat(folder, model)
    let again = try StoreUnderTest(folder, model), found = try answer(again)
    #expect(found.targets == [dog] && found.rows.isEmpty)
    #expect(try again.row("Dog", dog) == nil)
  }

  /// The bug: SQLite used the index of `Z_ENT`, and so read all rows of the entity.
  @Test func `a fetch of a subentity uses the index of its condition`() throws {
    let tested = try StoreUnderTest(TemporaryFolder(), try Self.model())
    let keeper = try tested.insert("Keeper", [["name": .string("K")]])[0]
    func text(_ number: Int) -> StoreValue { .string("text \(number)") }
    let queries: [(QueryExpression, index: String)] = [
      (.comparison(.property("name"), .equalTo, .constant(text(1)), []), "Z_Cat_UNIQUE_name"),
      (.comparison(.property("title"), .equalTo, .constant(text(1)), []), "Z_Cat_UNIQUE_title"),
      (.membership(.property("title"), (1...20).map(text)), "Z_Cat_UNIQUE_title"),
      (.membership(.property("title"), (1...100).map(text)), "Z_Cat_UNIQUE_title"),
      (.between(.property("title"), text(1), text(2)), "Z_Cat_UNIQUE_title"),
      (.comparison(.property("keeper"), .equalTo, .constant(.objectID(try tested.id("Keeper", keeper))), []), "ZANIMAL_ZKEEPER_INDEX"),
    ]
    for (query, index) in queries {
      let plan = try tested.store.answers.perform(ExplanationRequest(tested.plan("Cat", query)))
      #expect(plan.contains("USING INDEX \(index) "), "\(plan)")
    }
    // Without another index, that one is best.
    let plan = try tested.store.answers.perform(ExplanationRequest(tested.plan("Cat")))
    #expect(plan.contains("USING INDEX ZANIMAL_Z_ENT_INDEX "), "\(plan)")
  }

  // MARK: A Core Data file

  private static let corpus = ProcessInfo.processInfo.environment["HOLDFAST_CORPUS"]

  /// The model of the file. Its colours, which have no type here, are bytes.
  private static func moods() throws -> ManagedObjectModel {
    try ManagedObjectModel(entities: [
      EntityDescription(
        "GeographicRegion", isAbstract: true,
        attributes: [
          AttributeDescription("markedForDeletionDate", .date, isOptional: true), AttributeDescription("numberOfMoods", .integer64),
          AttributeDescription("numericISO3166Code", .integer16), AttributeDescription("uniquenessDummy", .integer16),
          AttributeDescription("updatedAt", .date),
        ], uniquenessConstraints: [["numericISO3166Code", "uniquenessDummy"]]),
      EntityDescription(
        "Continent", superentity: "GeographicRegion", attributes: [AttributeDescription("numberOfCountries", .integer64)],
        relationships: [.toMany("countries", to: "Country", inverse: "continent", isOptional: false)]),
      EntityDescription(
        "Country", superentity: "GeographicRegion",
        relationships: [
          .toOne("continent", to: "Continent", inverse: "countries"), .toMany("moods", to: "Mood", inverse: "country", isOptional: false),
        ]),
      EntityDescription(
        "Mood", attributes: [AttributeDescription("colors", .binaryData, isOptional: true), AttributeDescription("date", .date)],
        relationships: [.toOne("country", to: "Country", inverse: "moods")]),
    ])
  }

  /// Copies the file and declares in its metadata that colours are bytes.
  private func moodFile(_ folder: TemporaryFolder, _ model: ManagedObjectModel) throws {
    let path = try #require(Self.corpus) + "/sqlite/objcio-Moody/MigrationsTests/Moody.moody"
    for end in ["", "-wal"] where FileManager.default.fileExists(atPath: path + end) {
      try Data(contentsOf: URL(fileURLWithPath: path + end)).write(to: URL(fileURLWithPath: folder.file() + end))
    }
    let hex = try SQL.rows(folder.file(), "SELECT hex(Z_PLIST) FROM Z_METADATA")[0][0]
    let bytes = stride(from: 0, to: hex.utf8.count, by: 2).compactMap { UInt8(hex.dropFirst($0).prefix(2), radix: 16) }
    var plist = try #require(try PropertyListSerialization.propertyList(from: Data(bytes), format: nil) as? [String: Any])
    var hashes = try #require(plist["NSStoreModelVersionHashes"] as? [String: Data])
    for region in ["GeographicRegion", "Continent", "Country"] {
      #expect(hashes[region] == model.entity(named: region).map { Data($0.versionHash) })
    }
    hashes["Mood"] = model.entity(named: "Mood").map { Data($0.versionHash) }
    plist["NSStoreModelVersionHashes"] = hashes
    plist["NSStoreModelVersionHashesDigest"] = nil
    let changed = try PropertyListSerialization.data(fromPropertyList: plist, format: .binary, options: 0)
    _ = try SQL.rows(folder.file(), "UPDATE Z_METADATA SET Z_PLIST = x'\(changed.map { String(format: "%02x", $0) }.joined())'")
  }

  @Test(.enabled(if: corpus != nil, "HOLDFAST_CORPUS is not set")) func `a family that Core Data wrote contains what plain SQL reads`()
    throws
  {
    let folder = TemporaryFolder(), model = try Self.moods()
    try moodFile(folder, model)
    let regions = try SQL.rows(
      folder.file(), "SELECT Z_PK, Z_ENT, ZNUMERICISO3166CODE, ZCONTINENT, ZNUMBEROFCOUNTRIES FROM ZGEOGRAPHICREGION ORDER BY Z_PK")
    let moods = try SQL.rows(folder.file(), "SELECT ZCOUNTRY, Z_PK FROM ZMOOD ORDER BY Z_PK")
    let tested = try StoreUnderTest(folder, model)
    var plan = try tested.plan("GeographicRegion")
    plan.concreteEntities = try tested.entity("GeographicRegion").concreteIndexes
    let found = try tested.fetch(plan).sorted { $0.key < $1.key }
    #expect(found.count == regions.count && found.count == 5)
    for (row, plain) in zip(found, regions) {
      let entity = try tested.entity(plain[1] == "2" ? "Continent" : "Country")
      #expect(row.key.description == plain[0] && row.batch.idPrefix?.entityName == entity.name)
      #expect(row[try #require(entity.slot(named: "numericISO3166Code"))] == .int16(try #require(Int16(plain[2]))))
      if let slot = entity.slot(named: "continent") {
        #expect(
          row[slot]
            == (Int64(plain[3]).map { .objectID(tested.metadata.identity.objectID(entity: model.entities[1], key: ObjectKey($0))) } ?? .null)
        )
      }
      if let slot = entity.slot(named: "numberOfCountries") { #expect(row[slot] == .int64(try #require(Int64(plain[4])))) }
    }
    let countries = try tested.all("Country")
    let targets = try tested.targets("Country", "moods", countries.map(\.key))
    #expect(
      targets
        == countries.map { country in moods.filter { $0[0] == country.key.description }.compactMap { Int64($0[1]).map { ObjectKey($0) } } })
    #expect(targets.joined().count == moods.count && moods.count == 4)
    let date = StoreValue.date(0)
    let new = try tested.insert(
      "Continent",
      [
        [
          "numericISO3166Code": .int16(999), "uniquenessDummy": .int16(0), "numberOfMoods": .int64(0), "updatedAt": date,
          "numberOfCountries": .int64(0),
        ]
      ])
    #expect(new == [37])
    try tested.store.close()
    #expect(
      try SQL.rows(folder.file(), "SELECT Z_ENT, Z_OPT, ZNUMERICISO3166CODE FROM ZGEOGRAPHICREGION WHERE Z_PK = 37") == [
        ["2", "1", "999"]
      ])
    #expect(try SQL.rows(folder.file(), "SELECT Z_MAX FROM Z_PRIMARYKEY WHERE Z_NAME = 'GeographicRegion'") == [["37"]])
  }
}
