import Foundation
import Holdfast
import HoldfastJSONStore
import HoldfastMemoryStore
import HoldfastSQLiteStore
import HoldfastStoreConformance
import HoldfastXMLStore
import TestSupport
import Testing

/// Values at the ends of each type's range are returned bit for bit, or refused by a typed error that leaves the context usable.
@Suite struct ValueTests {
  enum Kind: Hashable, Sendable {
    case memory, sqlite, minimal
    case wholeFile(FileStore)

    static let all = [memory, sqlite, minimal] + FileStore.wholeFile.map { wholeFile($0) }
  }

  /// A store that can be closed and opened again.
  private final class Place {
    let folder: TemporaryFolder
    let description: StoreDescription

    init(_ kind: Kind) throws {
      folder = TemporaryFolder()
      description =
        switch kind {
        case .memory: .memory(contents: MemoryStoreContents())
        case .wholeFile(let store): store.description(at: folder.file())
        case .sqlite: .sqlite(at: folder.file(), options: SQLiteStoreOptions(storesExactDecimals: true))
        case .minimal: MinimalStore.description(contents: MinimalStore.Contents())
        }
    }

    func context() throws -> ManagedObjectContext { try Harbour.context(description) }
  }

  // MARK: Bit for bit

  private static let texts: [String] = [
    "", " ", "\u{0}", "a\u{0}b", "\u{FFFE}", "\u{FFFF}x", "\u{FEFF}mark", "\u{1}\u{1F}\u{7F}", "line\r\nline\rline\n", "\u{E9}", "e\u{301}",
    "\u{1F468}\u{200D}\u{1F469}\u{200D}\u{1F467}", "\u{10FFFF}", "\u{202E}backwards", "'); DROP TABLE ZSHIP; --", "%_\\\"[",
    "\u{1E9E}\u{DF}I\u{130}\u{131}",
    String(repeating: "\u{1F6A2}long ", count: 1_222_223),
  ]

  private static let samples: [(String, [StoreValue])] = [
    ("tons", [.int16(.min), .int16(.max), .int16(-1), .int16(0)]), ("crew", [.int32(.min), .int32(.max), .int32(-1), .null]),
    ("number", [.int64(.min), .int64(.max), .int64(1 << 53 - 1), .int64(1 << 53 + 1), .int64(-(1 << 53) - 1), .int64(-1), .null]),
    ("isAfloat", [.bool(true), .bool(false)]),
    (
      "length",
      [
        .double(0.1), .double(.leastNonzeroMagnitude), .double(-.leastNormalMagnitude), .double(.greatestFiniteMagnitude),
        .double(.infinity),
        .double(-.infinity), .double(.ulpOfOne), .double(9_007_199_254_740_991), .double(9_007_199_254_740_992), .double(1), .double(-1e15),
        .double(0x1.8p-1050), .double(-0x1p-1074),
        .double(.greatestFiniteMagnitude.nextDown), .double(1.0.nextUp), .null,
      ]
    ),
    (
      "draught",
      [
        .float(0.1), .float(.leastNonzeroMagnitude), .float(.greatestFiniteMagnitude), .float(-.infinity), .float(16_777_215),
        .float(-0x1p-149), .float(0x1.8p-140), .float(.leastNormalMagnitude),
      ]
    ),
    (
      "launched",
      [
        .date(0), .date(Date.distantPast.timeIntervalSinceReferenceDate), .date(Date.distantFuture.timeIntervalSinceReferenceDate),
        .date(1e300),
        .date(-1e300), .date(0.1), .date(-0.000_001), .null,
      ]
    ),
    (
      "price",
      [
        "0", "-1", "0.1", "12345678901234567890123456789012345678", "-0.00000000000000000000000000000000000001",
        "9.9999999999999999999999999999999999999",
        "3.4e38", "340282366920938463463374607431768211455", "123456789012345", "0.3", "1e-100", "1e100", "99999999999999.99",
      ].map { .decimal(Decimal(string: $0) ?? .nan) } + [
        .decimal(.greatestFiniteMagnitude), .decimal(.leastNonzeroMagnitude), .decimal(.pi), .null,
      ]
    ),
    ("log", texts.map { .string($0) } + [.null]),
    ("page", ["", "a/b", "x:", "https://example.org/%00?q=\u{E9}#\u{1F6A2}"].map { .uri($0) } + [.null]),
    ("plan", [.data(Data()), .data(Data([0])), .data(Data([0xFF, 0, 0xFE])), .data(Data(repeating: 0xC0, count: 11_000_000)), .null]),
    ("uid", [.uuid(UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))), .uuid(UUID()), .null]),
  ]

  @Test(arguments: Kind.all)
  func RH2_everyValueOfAnAttributeIsReturnedBitForBit(kind: Kind) throws {
    let place = try Place(kind)
    let context = try place.context()
    var ids: [[ManagedObjectID]] = []
    for (key, values) in Self.samples {
      let ships = try values.map { value in
        let ship = context.insert(Ship.self)
        ship.name = key
        try ship.setValue(value, forKey: key)
        return ship
      }
      try context.save()
      ids.append(ships.map(\.objectID))
    }
    try context.persistentStoreCoordinator.close()
    let again = try place.context()
    for ((key, values), ids) in zip(Self.samples, ids) {
      for (value, id) in zip(values, ids) {
        let found = try #require(try again.existingObject(with: id).value(forKey: key).storeValue)
        #expect(Self.bits(found) == Self.bits(value), "\(key): \(String("\(found)".prefix(100))) for \(String("\(value)".prefix(100)))")
      }
    }
    try again.persistentStoreCoordinator.close()
  }

  @Test(arguments: Kind.all)
  func RH2_everyValueOfTheMetadataIsReturnedBitForBit(kind: Kind) throws {
    let place = try Place(kind), context = try place.context()
    let dog = try #require(ManagedObjectID(uriRepresentation: "x-coredata://6BA7B810-9DAD-11D1-80B4-00C04FD430C8/Dog/p4"))
    let metadata: [String: StoreValue] = [
      "none": .null, "flag": .bool(true), "small": .int16(.min), "middle": .int32(.max), "large": .int64(.min), "single": .float(0.1),
      "number": .double(0.1), "nan": .double(.nan), "infinite": .double(-.infinity), "no decimal": .decimal(.nan), "pi": .decimal(.pi),
      "digits": .decimal(Decimal(string: "12345678901234567890123456789012345678") ?? .nan), "when": .date(0.1), "far": .date(-1e300),
      "never": .date(.nan), "text": .string("e\u{301}\u{0}\r\n\u{FFFE} "), "empty": .string(""), "link": .uri("\u{1}"),
      "id": .uuid(UUID()), "bytes": .data(Data([0, 0xFF])), "object": .objectID(dog),
    ]
    try context.persistentStoreCoordinator.setMetadata(metadata)
    try context.persistentStoreCoordinator.close()
    let again = try place.context(), found = again.persistentStoreCoordinator.metadata
    #expect(Set(found.keys) == Set(metadata.keys))
    for (key, value) in metadata {
      #expect(found[key].map { Self.bits($0) } == Self.bits(value), "\(key): \(String(describing: found[key]))")
    }
    try again.persistentStoreCoordinator.close()
  }

  /// A description of the exact bits of a value. Equal strings can have different bytes.
  private static func bits(_ value: StoreValue) -> String {
    switch value {
    case .double(let number): "\(number.bitPattern)"
    case .date(let number): "\(number.bitPattern)"
    case .float(let number): "\(number.bitPattern)"
    case .string(let text), .uri(let text):
      // In a debug build, describing millions of bytes takes a minute. A hash takes almost no time.
      text.utf8.count < 10_000 ? "\(Array(text.utf8))" : "\(text.utf8.count) \(Array(text.utf8).hashValue)"
    case .data(let data): data.count < 10_000 ? "\(Array(data))" : "\(data.count) \(Array(data).hashValue)"
    default: "\(value)"
    }
  }

  /// Without `storesExactDecimals`, decimals are stored as SQLite numbers, which don't have all digits.
  @Test func RH2_decimalsThatSQLiteWouldRoundAreRefusedAndAllOthersReturned() throws {
    let folder = TemporaryFolder()
    let context = try Harbour.context(.sqlite(at: folder.file()))
    let samples = try #require(Self.samples.first { $0.0 == "price" }).1
    var refused = 0, kept: [(ManagedObjectID, StoreValue)] = []
    for value in samples {
      let ship = context.insert(Ship.self)
      ship.name = "price"
      try ship.setValue(value, forKey: "price")
      do {
        try context.save()
        kept.append((ship.objectID, value))
      } catch let error as StoreError {
        #expect(error.code == .unstorableValue && "\(error)".contains("Ship.price"), "\(value)")
        refused += 1
        // The refused value is still set, and a valid value can be saved.
        #expect(try ship.value(forKey: "price").storeValue == value && context.hasChanges)
        ship.price = 1
        try context.save()
      }
    }
    #expect(refused > 0 && kept.count > refused / 2)
    try context.persistentStoreCoordinator.close()
    let again = try Harbour.context(.sqlite(at: folder.file()))
    for (id, value) in kept {
      #expect(try again.existingObject(with: id).value(forKey: "price").storeValue == value)
    }
    try again.persistentStoreCoordinator.close()
  }

  @Test(arguments: Kind.all)
  func RH2_typedAccessorsKeepTheSameValues(kind: Kind) throws {
    let place = try Place(kind)
    let context = try place.context()
    let ship = context.insert(Ship.self)
    let uid = UUID()
    ship.name = "e\u{301}\u{0}\u{FFFE}"
    (ship.tons, ship.crew, ship.number, ship.isAfloat) = (Int(Int16.min), Int(Int32.max), .min, false)
    (ship.length, ship.draught, ship.launched) = (-.leastNonzeroMagnitude, .greatestFiniteMagnitude, .distantPast)
    (ship.price, ship.uid, ship.plan) = (Decimal(string: "12345678901234567890123456789012345678"), uid, Data())
    (ship.page, ship.log) = ("", String(repeating: "x", count: 1 << 20))
    try context.save()
    let id = ship.objectID
    try context.persistentStoreCoordinator.close()
    let again = try place.context()
    let found = try #require(try again.existingObject(with: id) as? Ship)
    #expect(Array(found.name.utf8) == Array("e\u{301}\u{0}\u{FFFE}".utf8))
    #expect(found.tons == Int(Int16.min) && found.crew == Int(Int32.max) && found.number == .min && !found.isAfloat)
    #expect(found.length == -.leastNonzeroMagnitude && found.draught == .greatestFiniteMagnitude && found.launched == .distantPast)
    #expect(found.price == Decimal(string: "12345678901234567890123456789012345678") && found.uid == uid && found.plan == Data())
    #expect(found.page == "" && found.log?.utf8.count == 1 << 20)
    try again.persistentStoreCoordinator.close()
  }

  @Test(arguments: Kind.all)
  func RH2_aNegativeZeroIsZeroEverywhere(kind: Kind) throws {
    let place = try Place(kind)
    let context = try place.context()
    let ship = context.insert(Ship.self)
    ship.name = ""
    (ship.length, ship.draught) = (-0.0, -0.0)
    #expect(ship.length?.sign == .plus && ship.draught?.sign == .plus)
    try context.save()
    context.reset()
    let found = try #require(try context.fetch(FetchRequest<Ship> { $0.length == -0.0 }).first)
    #expect(found.length?.sign == .plus && found.draught?.sign == .plus)
  }

  // MARK: Refused by the save

  struct Refused: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let code: PersistenceError.Code
    let property: String
    let set: @Sendable (Ship) -> Void

    init(_ description: String, _ code: PersistenceError.Code, _ property: String, _ set: @escaping @Sendable (Ship) -> Void) {
      (testDescription, self.code, self.property, self.set) = (description, code, property, set)
    }
  }

  static let refused: [Refused] = [
    Refused("40,000 tons", .numberTooLarge, "tons") { $0.tons = 40_000 },
    Refused("-32,769 tons", .numberTooSmall, "tons") { $0.tons = -32_769 },
    Refused("the largest Int as tons", .numberTooLarge, "tons") { $0.tons = .max },
    Refused("2^31 people", .numberTooLarge, "crew") { $0.crew = 1 << 31 },
    Refused("the smallest Int as people", .numberTooSmall, "crew") { $0.crew = .min },
    Refused("an infinite date", .invalidDate, "launched") { $0.launched = Date(timeIntervalSinceReferenceDate: .infinity) },
    Refused("a date before all others", .invalidDate, "launched") { $0.launched = Date(timeIntervalSinceReferenceDate: -.infinity) },
    Refused("a NaN date", .invalidDate, "launched") { $0.launched = Date(timeIntervalSinceReferenceDate: .nan) },
    Refused("an infinite date by name", .invalidDate, "launched") { try? $0.setValue(.date(.infinity), forKey: "launched") },
    Refused("a page with a space", .invalidURI, "page") { try? $0.setValue(.uri("a b"), forKey: "page") },
    Refused("no name", .missingMandatoryValue, "name") { try? $0.setValue(.null, forKey: "name") },
  ]

  @Test(arguments: Kind.all, Self.refused)
  func RH2_aValueOutOfRangeIsRefusedAndTheContextStaysUsable(kind: Kind, refused: Refused) throws {
    let place = try Place(kind)
    let context = try place.context()
    let (other, ship) = (context.insert(Ship.self), context.insert(Ship.self))
    (other.name, ship.name) = ("Other", "Ship")
    try context.save()
    other.name = "Renamed"
    refused.set(ship)
    let error = try #require(throws: PersistenceError.self) { try context.save() }
    #expect(error.code == refused.code && error.objectID == ship.objectID && error.property == refused.property, "\(error)")
    #expect(context.hasChanges && other.isUpdated && ship.isUpdated)
    refused.set(other)
    let both = try #require(throws: PersistenceError.self) { try context.save() }
    #expect(both.code == .multipleValidationFailures && both.failures.count == 2 && both.coreDataCode == 1560, "\(both)")

    // Neither change is in the store. With valid values, both are saved.
    let observer = try ManagedObjectContext(coordinator: context.persistentStoreCoordinator, classes: Harbour.classes)
    #expect(try observer.count(for: FetchRequest<Ship> { $0.name.isIn(["Other", "Ship"]) }) == 2)
    for fixed in [other, ship] {
      (fixed.tons, fixed.crew, fixed.launched, fixed.name) = (5, 5, .distantFuture, "Renamed")
      try fixed.setValue(.uri("https://example.org"), forKey: "page")
    }
    try context.save()
    #expect(try observer.count(for: FetchRequest<Ship> { $0.name == "Renamed" }) == 2)
    try context.persistentStoreCoordinator.close()
  }

  /// Not all stores support NaN: it is returned unchanged or refused.
  @Test(arguments: Kind.all, ["length", "draught", "price"])
  func RH2_notANumberIsKeptOrRefused(kind: Kind, key: String) throws {
    let place = try Place(kind)
    let context = try place.context()
    let ship = context.insert(Ship.self)
    ship.name = "Ship"
    try context.save()
    ship.tons = 7
    switch key {
    case "length": ship.length = .nan
    case "draught": ship.draught = .nan
    default: ship.price = .nan
    }
    do {
      try context.save()
      #expect(kind != .sqlite)
      context.reset()
      let found = try #require(try context.fetch(FetchRequest<Ship>()).first)
      #expect(found.length?.isNaN ?? found.draught?.isNaN ?? found.price?.isNaN == true)
      #expect(found.tons == 7)
    } catch let error as StoreError {
      #expect(kind == .sqlite || kind == .minimal, "Other stores keep it.")
      #expect(error.code == .unstorableValue && error.reason.contains("Ship.\(key)"), "\(error)")
      #expect(context.hasChanges && ship.tons == 7)
      (ship.length, ship.draught, ship.price) = (1, 1, 1)
      try context.save()
    } catch let error as PersistenceError {
      #expect(error.property == key && error.objectID == ship.objectID, "\(error)")
      (ship.length, ship.draught, ship.price) = (1, 1, 1)
      try context.save()
    }
    try context.persistentStoreCoordinator.close()
  }

  @Test func RH2_aValueLargerThanTheStoresLimitIsRefused() throws {
    let folder = TemporaryFolder()
    let context = try Harbour.context(.sqlite(at: folder.file(), options: SQLiteStoreOptions(maximumValueBytes: 1 << 20)))
    let ship = context.insert(Ship.self)
    ship.name = "Ship"
    ship.log = String(repeating: "x", count: 2 << 20)
    let error = try #require(throws: StoreError.self) { try context.save() }
    #expect(error.code == .unstorableValue && error.path == folder.file(), "\(error)")
    #expect(context.hasChanges && ship.isInserted && ship.log?.utf8.count == 2 << 20)
    ship.log = String(repeating: "x", count: 1 << 19)
    try context.save()
    try context.persistentStoreCoordinator.close()
  }

  // MARK: Refused by the setter

  private static let wrong: [(String, StoreValue)] = [
    ("tons", .string("7")), ("tons", .int64(40_000)), ("tons", .int32(-32_769)), ("tons", .double(1.5)), ("tons", .double(.nan)),
    ("tons", .double(1e300)),
    ("tons", .decimal(1)), ("crew", .int64(.max)), ("crew", .float(.infinity)), ("number", .double(9.3e18)), ("number", .uuid(UUID())),
    ("isAfloat", .int64(2)), ("isAfloat", .string("yes")), ("length", .string("1")), ("length", .int64(1 << 53 + 1)), ("length", .date(1)),
    ("draught", .double(0.1)), ("draught", .double(1e300)), ("price", .double(0.5)), ("price", .string("1")), ("launched", .double(1)),
    ("launched", .string("today")), ("name", .int64(1)), ("name", .data(Data([0x41]))), ("name", .uri("a")), ("page", .string("a")),
    ("plan", .string("a")), ("uid", .string("00000000-0000-0000-0000-000000000000")), ("uid", .data(Data(count: 16))), ("berth", .int64(1)),
    ("berth", .string("Berth")),
  ]

  @Test(arguments: Kind.all)
  func aValueOfTheWrongTypeIsRefusedByNameAndNothingChanges(kind: Kind) throws {
    let place = try Place(kind)
    let context = try place.context()
    let ship = context.insert(Ship.self)
    ship.name = "Ship"
    try context.save()
    for (key, value) in Self.wrong {
      let before = try ship.value(forKey: key)
      let error = try #require(throws: PersistenceError.self, "\(key) took \(value)") { try ship.setValue(value, forKey: key) }
      #expect(error.code == .wrongType && error.property == key && error.objectID == ship.objectID, "\(error)")
      #expect(try ship.value(forKey: key) == before)
    }
    #expect(!ship.hasChanges && !context.hasChanges)
    #expect(try #require(throws: PersistenceError.self) { try ship.setValue(.null, forKey: "routes") }.code == .wrongType)
    for key in ["", "Name", "nothing", "objectID"] {
      #expect(try #require(throws: PersistenceError.self) { try ship.setValue(.null, forKey: key) }.code == .unknownProperty)
      #expect(try #require(throws: PersistenceError.self) { try ship.value(forKey: key) }.code == .unknownProperty)
    }
    #expect(try #require(throws: PersistenceError.self) { try ship.toMany(forKey: "berth") }.code == .unknownProperty)
    #expect(try #require(throws: PersistenceError.self) { try context.insert(entityNamed: "Whale") }.code == .unknownEntity)
    try context.persistentStoreCoordinator.close()
  }

  @Test(arguments: Kind.all)
  func anIDOfAnotherStoreIsRefusedByName(kind: Kind) throws {
    let (place, foreign) = (try Place(kind), try Place(kind))
    let (context, other) = (try place.context(), try foreign.context())
    let ship = context.insert(Ship.self), route = context.insert(Route.self), berth = other.insert(Berth.self)
    (ship.name, route.number, route.count, berth.number, berth.count) = ("Ship", 1, 1, 1, 1)
    try context.save()
    // A temporary ID of the other context, then a permanent one of the other store, then one of another entity.
    #expect(
      try #require(throws: PersistenceError.self) { try ship.setValue(.objectID(berth.objectID), forKey: "berth") }.code == .foreignObject)
    try other.save()
    #expect(
      try #require(throws: PersistenceError.self) { try ship.setValue(.objectID(berth.objectID), forKey: "berth") }.code == .foreignObject)
    #expect(
      try #require(throws: PersistenceError.self) { try ship.setValue(.objectID(route.objectID), forKey: "berth") }.code == .wrongType)
    #expect(try #require(throws: PersistenceError.self) { try context.existingObject(with: berth.objectID) }.code == .foreignObject)
    #expect(!context.hasChanges && ship.berth == nil)
  }
}
