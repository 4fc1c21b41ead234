import Foundation
import HoldfastStore
import TestSupport
import Testing

@Suite struct RowTests {
  private static let types = AttributeType.storedCases

  private func values() -> [StoreValue] {
    Self.types.map { type in
      switch type {
      case .integer16: .int16(.min)
      case .integer32: .int32(.max)
      case .integer64: .int64(.min)
      case .decimal: .decimal(Decimal(string: "-12345678901234567890123456789012345678.5") ?? 0)
      case .double: .double(0.1)
      case .float: .float(0.1)
      case .string: .string("näïve 🐕‍🦺\u{0}end")
      case .boolean: .bool(true)
      case .date: .date(-0.5)
      case .binaryData: .data(Data([0, 1, 255]))
      case .uuid: .uuid(UUID(uuidString: "00112233-4455-6677-8899-AABBCCDDEEFF") ?? UUID())
      case .uri: .uri("file:///a%20b")
      case .transformable: .data(Data([7, 0]))
      case .objectID:
        ManagedObjectID(uriRepresentation: "x-coredata://6BA7B810-9DAD-11D1-80B4-00C04FD430C8/Dog/p4").map { .objectID($0) } ?? .null
      case .composite, .undefined: .null
      }
    }
  }

  @Test func everyTypeOfValueComesBackFromARow() throws {
    let builder = RowBatchBuilder(layout: RowLayout(Self.types.map { .attribute($0) }), idPrefix: nil)
    try builder.append(key: 7, version: 3, values: values())
    try builder.append(key: 8, version: 1, values: Self.types.map { _ in .null })
    let batch = builder.seal()
    #expect(batch.count == 2 && batch[0].key == 7 && batch[0].version == 3 && batch[1].key == 8)
    #expect(batch[0].values == values())
    #expect(batch[1].values == Self.types.map { _ in .null })
  }

  @Test func rowsOfManyColumnsKeepTheirPresenceBitsApart() throws {
    let columns = [ColumnType](repeating: .attribute(.integer64), count: 200)
    let builder = RowBatchBuilder(layout: RowLayout(columns), idPrefix: nil)
    let values: [StoreValue] = (0..<200).map { $0 % 3 == 0 ? .null : .int64($0) }
    try builder.append(key: 1, version: 1, values: values)
    #expect(builder.seal()[0].values == values)
  }

  @Test func aPageTakesAbout64KiBAndALongRowMakesALongPage() throws {
    let builder = RowBatchBuilder(layout: RowLayout([.attribute(.string)]), idPrefix: nil)
    var sizes: [Int] = []
    for key in 0..<5_000 {
      try builder.append(key: ObjectKey(key), version: 1, values: [.string(String(repeating: "x", count: 100))])
      if builder.isFull { sizes.append(builder.seal().byteCount) }
    }
    #expect(sizes.count > 5)
    #expect(sizes.allSatisfy { (60_000...70_000).contains($0) })
    let long = String(repeating: "y", count: 1_000_000)
    try builder.append(key: 1, version: 1, values: [.string(long)])
    let batch = builder.seal()
    #expect(batch[batch.count - 1].values == [.string(long)])
  }

  @Test func aValueThatDoesNotFitIsRefusedAndLeavesNoRow() throws {
    let builder = RowBatchBuilder(layout: RowLayout([.attribute(.integer16), .attribute(.string)]), idPrefix: nil)
    try builder.append(key: 1, version: 1, values: [.int64(5), .string("a")])
    for wrong: [StoreValue] in [[.int64(70_000), .null], [.string("5"), .null], [.int16(5), .data(Data())], [.int16(5)]] {
      let error = #expect(throws: StoreError.self) { try builder.append(key: 2, version: 1, values: wrong) }
      #expect(error?.code == .wrongType)
    }
    try builder.append(key: 3, version: 1, values: [.int16(6), .string("b")])
    let batch = builder.seal()
    #expect((0..<batch.count).map { batch[$0].key } == [1, 3])
    #expect(batch[1].values == [.int16(6), .string("b")])
  }

  @Test func rowsHaveTheSameValuesAtAnyLocation() throws {
    let layout = RowLayout(Self.types.map { .attribute($0) })
    let builder = RowBatchBuilder(layout: layout, idPrefix: nil)
    try builder.append(key: 7, version: 3, values: values())
    let alone = builder.seal()
    var other = values()
    for slot in other.indices {
      other[slot] = .null
      try builder.append(key: 8, version: 4, values: other)
      other = values()
    }
    try builder.append(key: 9, version: 5, values: other)
    let batch = builder.seal()
    for row in other.indices {
      #expect(!batch.pointer(row).hasSameValues(as: alone.pointer(0), layout), "slot \(row)")
      let differing = layout.slots.filter { batch.pointer(row).differs(from: alone.pointer(0), $0, layout.kinds[$0]) }
      #expect(differing == [SlotIndex(row)])
    }
    #expect(batch.pointer(other.count).hasSameValues(as: alone.pointer(0), layout))
  }

  @Test func copiesOfRowsHoldTheSameInPagesOfAnySize() throws {
    let layout = RowLayout([.attribute(.string), .attribute(.integer64), .attribute(.binaryData), .attribute(.string)])
    let builder = RowBatchBuilder(layout: layout, idPrefix: nil), copier = RowBatchBuilder(layout: layout, idPrefix: nil)
    func text(_ number: Int) -> StoreValue { number % 5 == 0 ? .null : .string(String(repeating: "ab", count: number % 97)) }
    func values(_ number: Int) -> [StoreValue] {
      [
        text(number), number % 3 == 0 ? .null : .int64(Int64(number)), .data(Data(repeating: UInt8(number % 251), count: number % 7)),
        text(number / 2),
      ]
    }
    for count in [1, 2, 3, 7, 40, 5000] {
      var (seen, copied) = (0, 0)
      func check(_ batch: RowBatch, _ seen: inout Int) {
        for index in 0..<batch.count {
          #expect(batch[index].key.rawValue == Int64(seen) && batch[index].values == values(seen))
          seen += 1
        }
      }
      for number in 0..<count {
        try builder.append(key: ObjectKey(number), version: 1, values: values(number))
        guard builder.isFull || number == count - 1 else { continue }
        let batch = builder.seal()
        check(batch, &seen)
        for index in 0..<batch.count {
          copier.append(batch.pointer(index))
          if copier.isFull { check(copier.seal(), &copied) }
        }
      }
      check(copier.seal(), &copied)
      #expect(seen == count && copied == count)
    }
  }

  /// Rows whose texts are all empty need no bytes after the rows, but their cells must still move with the page.
  @Test func emptyTextsBeforeTheFirstLongOneStayEmpty() throws {
    let layout = RowLayout([.attribute(.string), .attribute(.binaryData)])
    for empties in [0, 1, 2, 3, 5, 9, 40, 3000] {
      let builder = RowBatchBuilder(layout: layout, idPrefix: nil)
      let empty: [StoreValue] = [.string(""), .data(Data())], long: [StoreValue] = [.string("long enough"), .null]
      for key in 0..<empties { try builder.append(key: ObjectKey(key), version: 1, values: empty) }
      try builder.append(key: ObjectKey(empties), version: 1, values: long)
      let batch = builder.seal()
      #expect((0..<batch.count).map { batch[$0].values } == Array(repeating: empty, count: empties) + [long], "\(empties)")
    }
  }

  @Test func negativeZeroBecomesZero() throws {
    let builder = RowBatchBuilder(layout: RowLayout([.attribute(.double)]), idPrefix: nil)
    try builder.append(key: 1, version: 1, values: [.double(-0.0)])
    guard case .double(let value) = builder.seal()[0][0] else {
      Issue.record("The value isn't a number.")
      return
    }
    #expect(value.sign == .plus)
  }

  @Test func codedRowsAreTheSameRows() throws {
    let builder = RowBatchBuilder(layout: RowLayout(Self.types.map { .attribute($0) }), idPrefix: nil)
    try builder.append(key: 7, version: 3, values: values())
    let batch = builder.seal()
    let coded = try JSONDecoder().decode(CodedRows.self, from: JSONEncoder().encode(CodedRows(batch))).batch()
    #expect(coded[0].values == batch[0].values && coded[0].key == 7 && coded[0].version == 3)
  }
}

@Suite struct ObjectIDTests {
  private let model: ManagedObjectModel

  init() throws {
    model = try ManagedObjectModel(entities: [EntityDescription("Dog"), EntityDescription("Cat")])
  }

  @Test func anIDTakesSixteenBytes() { #expect(MemoryLayout<ManagedObjectID>.size == 16) }

  @Test func aURIOfCoreDataNamesTheSameObject() throws {
    let uri = "x-coredata://E8AFD1EB-9427-4A64-ABDA-AA06F7B1092C/Session/p1"
    let id = try #require(ManagedObjectID(uriRepresentation: uri))
    #expect(id.key == 1 && id.entityName == "Session" && id.uriRepresentation == uri)
    #expect(id == ManagedObjectID(uriRepresentation: uri))
  }

  @Test(arguments: [
    "", "x-coredata:///Dog/t1", "x-coredata://A/Dog", "x-coredata://A/Dog/7", "http://A/Dog/p7", "x-coredata://A/Dog/p",
    "x-coredata://A//p1", "x-coredata://A/Dog/p%4",
  ])
  func whatIsNoURIOfASavedObjectNamesNone(_ text: String) { #expect(ManagedObjectID(uriRepresentation: text) == nil) }

  /// The names are kept as long as the process runs, and clients can send any.
  @Test(.ownThreads) func theNamesInURIsTakeLimitedMemory() async {
    await #expect(processExitsWith: .success) {
      let model = try ManagedObjectModel(entities: [EntityDescription("Dog")])
      func uri(_ store: String, _ entity: String = "Dog") -> String { "x-coredata://\(store)/\(entity)/p1" }
      func id(_ store: String, _ entity: String = "Dog") -> ManagedObjectID? { ManagedObjectID(uriRepresentation: uri(store, entity)) }
      let identity = StoreIdentity.intern(storeUUID: "open", model: model), first = try #require(id("first"))
      let long = String(repeating: "x", count: 1 << 20)
      #expect((0..<40).allSatisfy { id("\($0)\(long)") != nil })
      #expect((0..<40).count { id("open", "A\($0)\(long)") != nil } == 23)
      #expect((0..<10_000).count { id("store \($0)") != nil } < 10_000)
      #expect(id("another") == nil && id("open", "Another") == nil)
      #expect(id("first") == first && id("open")?.identity === identity)
      // Values of a store are kept, and a store that is opened has IDs.
      #expect(ManagedObjectID(storedURI: uri("stored"))?.uriRepresentation == uri("stored"))
      _ = StoreIdentity.intern(storeUUID: "another", model: model)
      #expect(id("another") != nil)
    }
  }

  @Test func textReferencesSurviveTheURIWhateverTheyContain() throws {
    let identity = StoreIdentity.intern(storeUUID: UUID().uuidString, model: model, usesReferences: true), table = identity.references
    for text in ["key with/slash", "100%", "ü", "p7", ""] {
      let id = identity.objectID(entity: try #require(model.entity(named: "Dog")), key: table.key(for: text))
      #expect(ManagedObjectID(uriRepresentation: id.uriRepresentation) == id)
    }
    #expect(table.count == 5 && table.key(for: "ü") == table.existingKey(for: "ü"))
  }

  @Test func theURIOfARecordThatWasNotReadYetResolves() throws {
    let uuid = UUID().uuidString, identity = StoreIdentity.intern(storeUUID: uuid, model: model, usesReferences: true)
    let id = try #require(ManagedObjectID(uriRepresentation: "x-coredata://\(uuid)/Dog/pkennel%2Frex"))
    #expect(identity.references.existingKey(for: "kennel/rex") == id.key && id.uriRepresentation.hasSuffix("/Dog/pkennel%2Frex"))
  }

  /// Clients can send URIs with any text. Texts of records that the store has read don't count, and neither do stored ones.
  @Test(.ownThreads) func theTextsInURIsTakeLimitedMemory() async {
    await #expect(processExitsWith: .success) {
      let model = try ManagedObjectModel(entities: [EntityDescription("Dog")])
      let table = StoreIdentity.intern(storeUUID: "texts", model: model, usesReferences: true).references
      let long = String(repeating: "x", count: 1 << 20)
      func uri(_ text: String) -> String { "x-coredata://texts/Dog/p\(text)" }
      func count(_ numbers: Range<Int>) -> Int { numbers.count { ManagedObjectID(uriRepresentation: uri("\(long)\($0)")) != nil } }
      #expect(count(0..<40) == 31 && table.count == 31)
      #expect(count(0..<31) == 31 && count(31..<40) == 0)
      for number in 0..<3 {
        let known = table.existingKey(for: "\(long)\(number)")
        #expect(table.key(for: "\(long)\(number)") == known)
      }
      #expect(count(31..<40) == 3 && table.count == 34)
      #expect(ManagedObjectID(storedURI: uri("\(long)stored"))?.uriRepresentation == uri("\(long)stored"))
      #expect(ManagedObjectID(uriRepresentation: uri("7"))?.key == 7)
    }
  }

  @Test func idsKeepTheirMeaningWhenAStoreWithTextIdentifiersIsOpenedAgain() throws {
    let uuid = UUID().uuidString, dog = try #require(model.entity(named: "Dog"))
    func identity() -> StoreIdentity { .intern(storeUUID: uuid, model: model, usesReferences: true) }
    let id = identity().objectID(entity: dog, key: identity().references.key(for: "rex"))
    _ = identity().references.key(for: "ajax")
    #expect(identity().references.reference(for: id.key) == "rex" && identity().references === identity().references)
  }

  /// The two texts have the same characters in different normalization forms.
  @Test func textsWithOtherBytesAreOtherRecords() {
    let identity = StoreIdentity.intern(storeUUID: UUID().uuidString, model: model, usesReferences: true), table = identity.references
    let (composed, decomposed) = (table.key(for: "caf\u{E9}"), table.key(for: "cafe\u{301}"))
    #expect(composed != decomposed && table.count == 2)
    #expect(table.reference(for: decomposed)?.utf8.count == 6)
  }

  @Test func aURIThatWasUsedBeforeItsStoreWasOpenedKeepsItsMeaning() throws {
    let uuid = UUID().uuidString, uri = "x-coredata://\(uuid)/Dog/p2"
    let early = try #require(ManagedObjectID(uriRepresentation: uri))
    // A text, or a number in another form, has no key yet.
    for other in ["rex", "02", "+2"] { #expect(ManagedObjectID(uriRepresentation: "x-coredata://\(uuid)/Dog/p\(other)") == nil) }
    let identity = StoreIdentity.intern(storeUUID: uuid, model: model, usesReferences: true), table = identity.references
    #expect(table.key(for: "2") == early.key && table.reference(for: early.key) == "2")
    // New texts get other keys.
    let keys = ["rex", "ajax", "fido"].map { table.key(for: $0) }
    #expect(Set(keys + [early.key]).count == 4)
    #expect(early.uriRepresentation == uri && ManagedObjectID(uriRepresentation: uri) == early)
  }

  /// For example an ID that a program has kept since it was last run.
  @Test func anIDThatWasCreatedBeforeItsStoreWasOpenedEqualsThatOfASubentitysObject() throws {
    let uuid = UUID().uuidString
    func id(_ entity: String) throws -> ManagedObjectID {
      try #require(ManagedObjectID(uriRepresentation: "x-coredata://\(uuid)/\(entity)/p7"))
    }
    let early = try ["Dog", "Animal", "Owner"].map(id)
    var known = Set(early)
    #expect(known.count == 3)
    let model = try ManagedObjectModel(entities: [
      EntityDescription("Animal"), EntityDescription("Dog", superentity: "Animal"), EntityDescription("Owner"),
    ])
    let identity = StoreIdentity.intern(storeUUID: uuid, model: model), dog = try #require(model.entity(named: "Dog"))
    let late = identity.objectID(entity: dog, key: 7)
    #expect(early[0] == late && early[1] == late && early[2] != late && early[2] != early[0])
    #expect(early[0].hashValue == late.hashValue && Set([late]).contains(early[0]) && Set([early[0]]).contains(late))
    let again = try ["Dog", "Animal", "Owner"].map(id)
    #expect(early == again && Set(again).count == 2)
    // The set compares its elements again when it grows.
    #expect(early[0] != early[1])
    for number: Int64 in 100..<1100 { known.insert(late.withKey(ObjectKey(rawValue: number))) }
    let areKnown = early.allSatisfy { known.contains($0) }
    #expect(known.count == 1003 && areKnown && known.contains(late))
    // A link that wasn't read has the name of the superentity.
    let link = identity.objectID(entity: try #require(model.entity(named: "Animal")), key: 7)
    #expect(early[0] == link && Set([link]).contains(early[0]) && link == late)
    // Another version of the model.
    let other = try ManagedObjectModel(entities: [EntityDescription("Animal"), EntityDescription("Dog")])
    _ = StoreIdentity.intern(storeUUID: uuid, model: other)
    let (newDog, newAnimal) = try (id("Dog"), id("Animal"))
    #expect(early[0] == newDog && early[1] == newAnimal && newAnimal != newDog && newAnimal == late && newDog != late)
  }

  /// The opening of another version of a store, as in a migration, changes no ID of a root entity that stays one.
  @Test func idsOfARootEntityStayEqualWhenASubentityThatAnEarlyIDNamesIsAdded() throws {
    let uuid = UUID().uuidString, animal = EntityDescription("Animal"), owner = EntityDescription("Owner")
    let former = try ManagedObjectModel(entities: [animal, owner])
    let model = try ManagedObjectModel(entities: [animal, EntityDescription("Dog", superentity: "Animal"), owner])
    func ids(_ model: ManagedObjectModel) -> [ManagedObjectID] {
      let identity = StoreIdentity.intern(storeUUID: uuid, model: model)
      return model.entities.map { identity.objectID(entity: $0, key: 7) }
    }
    let first = ids(former)
    #expect(ManagedObjectID(uriRepresentation: "x-coredata://\(uuid)/Dog/p7") != nil)
    let second = ids(model), third = ids(former)
    #expect(first == third && Set(first + second + third).count == 2 && Set(first + second).count == 2)
  }

  /// Otherwise a set of objects of many entities would be slow.
  @Test func idsOfDifferentRootEntitiesHaveDifferentHashes() throws {
    let model = try ManagedObjectModel(entities: (0..<50).map { EntityDescription("Entity\($0)") }), uuid = UUID().uuidString
    let early = try #require(ManagedObjectID(uriRepresentation: "x-coredata://\(uuid)/Entity7/p7"))
    let identity = StoreIdentity.intern(storeUUID: uuid, model: model)
    let ids = model.entities.map { identity.objectID(entity: $0, key: 7) }
    let equalIDs = ids.filter { $0 == early }
    #expect(Set(ids).count == 50 && Set(ids.map(\.hashValue)).count == 50 && equalIDs.count == 1)
  }

  /// A negative key would be a temporary ID, and one from 2^56 on would be ambiguous among several stores.
  @Test func aNumberThatCanNotBeAKeyIsATextLikeAnyOther() throws {
    let uuid = UUID().uuidString, numbers = ["-3", "140737488355328", "1152921504606846976", "99999999999999999999"]
    for number in numbers { #expect(ManagedObjectID(uriRepresentation: "x-coredata://\(uuid)/Dog/p\(number)") == nil) }
    let identity = StoreIdentity.intern(storeUUID: uuid, model: model, usesReferences: true), table = identity.references
    let keys = numbers.map { table.key(for: $0) }
    #expect(Set(keys).count == 4 && table.count == 4 && keys.allSatisfy { (1 << 47..<1 << 48).contains($0.rawValue) })
    #expect(keys.map { table.reference(for: $0) } == numbers && table.reference(for: -3) == nil)
    #expect(table.key(for: "140737488355327").rawValue == 140_737_488_355_327)
  }

  @Test(arguments: ["rex", "-3", "140737488355328", "kennel%2Frex"]) func aStoredURIOfAStoreThatIsNotOpenIsKept(_ text: String) throws {
    let uuid = UUID().uuidString, uri = "x-coredata://\(uuid)/Dog/p\(text)"
    let id = try #require(ManagedObjectID(storedURI: uri))
    #expect(id.uriRepresentation == uri && id.entityName == "Dog" && !id.isTemporaryID && ManagedObjectID(storedURI: uri) == id)
    let coded = try HistoryCoding.encode(StoreValue.objectID(id))
    #expect(try HistoryCoding.decode(StoreValue.self, from: coded) == .objectID(id))
    // Nothing else decodes it, and the store's own keys are unaffected.
    #expect(throws: DecodingError.self) { try JSONDecoder().decode(StoreValue.self, from: Data(coded)) }
    #expect(ManagedObjectID(uriRepresentation: uri) == nil && ManagedObjectID(storedURI: "x-coredata://\(uuid)/Dog") == nil)
    let identity = StoreIdentity.intern(storeUUID: uuid, model: model, usesReferences: true)
    #expect(identity.references.count == 0 && identity.number != id.storeNumber)
    #expect(try #require(ManagedObjectID(storedURI: uri)).storeNumber == identity.number)
  }

  /// IDs of other stores, such as in attributes with object IDs, would otherwise stay in memory.
  @Test func URIsOfAStoreThatIsNeverOpenedKeepNothing() throws {
    let uuid = UUID().uuidString
    for number in 0..<1000 { #expect(ManagedObjectID(uriRepresentation: "x-coredata://\(uuid)/Dog/p\(number)") != nil) }
    #expect(StoreIdentity.intern(storeUUID: uuid, model: model, usesReferences: true).references.count == 0)
  }

  /// A copied or crafted file can have the UUID of any store.
  @Test(arguments: [false, true]) func aStoredUUIDOfAStoreWithOtherIdentifiersIsAnError(_ usesReferences: Bool) throws {
    let uuid = UUID().uuidString, dog = try #require(model.entity(named: "Dog"))
    let identity = try StoreIdentity.intern(storedUUID: uuid, model: model, usesReferences: usesReferences)
    let other = try ManagedObjectModel(entities: [EntityDescription("Wolf", attributes: [])])
    let error = try #require(throws: StoreError.self) {
      _ = try StoreIdentity.intern(storedUUID: uuid, model: other, usesReferences: !usesReferences, path: "/a")
    }
    #expect(error.code == .alreadyOpen && error.path == "/a", "\(error)")
    // The open store isn't affected.
    #expect(identity.objectID(entity: dog, key: 7).uriRepresentation == "x-coredata://\(uuid)/Dog/p7")
    #expect(try StoreIdentity.intern(storedUUID: uuid, model: model, usesReferences: usesReferences) === identity)
  }

  /// Two copies of a store are open, and one of them was migrated: its model has another entity before the destination.
  @Test func destinationsAreNamedByTheModelOfTheRowsWhenACopyIsOpenedWithAnother() throws {
    func version(_ names: String...) throws -> ManagedObjectModel {
      try ManagedObjectModel(
        entities: names.map { EntityDescription($0, attributes: [AttributeDescription("age", .integer64)]) } + [
          EntityDescription("Dog", relationships: [.toOne("kennel", to: "Kennel", inverse: "dogs")]),
          EntityDescription("Kennel", relationships: [.toMany("dogs", to: "Dog", inverse: "kennel")]),
        ])
    }
    let uuid = UUID().uuidString, models = [try version(), try version("Cat")]
    let plan = AggregatePlan(groupBy: [0], columns: [.group(slot: 0)])
    let identities = models.map { StoreIdentity.intern(storeUUID: uuid, model: $0) }
    for (model, identity) in zip(models, identities) {
      let dog = try #require(model.entity(named: "Dog")), kennel = try #require(model.entity(named: "Kennel"))
      let destination = StoreValue.objectID(identity.objectID(entity: kennel, key: 7))
      for layout in [dog.layout, plan.layout(in: dog)] {
        let builder = RowBatchBuilder(layout: layout, idPrefix: identity.prefix(for: dog))
        try builder.append(key: 1, version: 1, values: [.key(7)])
        let batch = builder.seal(), row = batch[0]
        #expect(try CodedRows(batch).batch()[0][0] == destination)
        #expect(row[0] == destination && row.pointer.value(0, layout.columns[0]) == .key(7))
        #expect(dog.historyValues(of: row, idPrefix: identity.prefix(for: dog)) { _ in true } == ["kennel": destination])
      }
    }
  }

  @Test(.ownThreads) func openingAStoreWithNumbersWithTextIdentifiersIsMisuse() async {
    await #expect(processExitsWith: .failure) {
      mustTrap {
        let model = try ManagedObjectModel(entities: [EntityDescription("Dog", attributes: [])])
        _ = StoreIdentity.intern(storeUUID: "A", model: model)
        _ = StoreIdentity.intern(storeUUID: "A", model: model, usesReferences: true)
      }
    }
  }

  @Test(.ownThreads) func openingAStoreWithTextIdentifiersWithoutThemIsMisuse() async {
    await #expect(processExitsWith: .failure) {
      mustTrap {
        let model = try ManagedObjectModel(entities: [EntityDescription("Dog", attributes: [])])
        _ = StoreIdentity.intern(storeUUID: "A", model: model, usesReferences: true)
        _ = StoreIdentity.intern(storeUUID: "A", model: model)
      }
    }
  }

  @Test func aTemporaryIDCannotBeCoded() throws {
    let identity = StoreIdentity.intern(storeUUID: "", model: model)
    let id = identity.objectID(entity: model.entities[0], key: -3)
    #expect(id.isTemporaryID && id.uriRepresentation == "x-coredata:///Cat/t3")
    #expect(throws: EncodingError.self) { try JSONEncoder().encode([id]) }
  }

  @Test func objectsOfDifferentEntitiesOrStoresAreDifferent() throws {
    let a = StoreIdentity.intern(storeUUID: UUID().uuidString, model: model),
      b = StoreIdentity.intern(storeUUID: UUID().uuidString, model: model)
    let ids = [a, b].flatMap { identity in model.entities.map { identity.objectID(entity: $0, key: 1) } }
    #expect(Set(ids).count == 4)
  }
}
