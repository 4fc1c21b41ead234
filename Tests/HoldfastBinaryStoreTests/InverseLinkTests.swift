import Foundation
import Holdfast
import HoldfastAtomicStore
import HoldfastPropertyList
import HoldfastStore
import HoldfastStoreConformance
import TestSupport
import Testing

@testable import HoldfastBinaryStore

/// To-many relationships that are answered from sections of links, without building tables.
@Suite struct InverseLinkTests {
  /// Relationships of every kind of storage.
  static let model: ManagedObjectModel = {
    do {
      return try ManagedObjectModel(entities: [
        EntityDescription(
          "Person", attributes: [AttributeDescription("number", .integer64)],
          relationships: [
            .toOne("employer", to: "Company", inverse: "employees"), .toMany("friends", to: "Person", inverse: "friendOf"),
            .toMany("friendOf", to: "Person", inverse: "friends"), .toMany("pets", to: "Pet", inverse: "owner"),
            .toMany("near", to: "Person", inverse: "near"), .toMany("prizes", to: "Prize", inverse: "winners", isOrdered: true),
            .toMany("visits", to: "Place", inverse: "visitors", deleteRule: .noAction), .toMany("notes", to: "Note", inverse: nil),
          ], uniquenessConstraints: [["number"]]),
        EntityDescription(
          "Company", attributes: [AttributeDescription("number", .integer64)],
          relationships: [.toMany("employees", to: "Person", inverse: "employer", deleteRule: .noAction)],
          uniquenessConstraints: [["number"]]),
        EntityDescription("Pet", relationships: [.toOne("owner", to: "Person", inverse: "pets")]),
        EntityDescription("Dog", superentity: "Pet"),
        EntityDescription("Prize", relationships: [.toMany("winners", to: "Person", inverse: "prizes")]),
        EntityDescription(
          "Place", relationships: [.toMany("visitors", to: "Person", inverse: "visits", deleteRule: .noAction)]),
        EntityDescription("Note"),
      ])
    } catch { fatalError("\(error)") }
  }()

  static let relationships = model.entities.flatMap(\.ownRelationships).filter(\.isToMany)

  static func description(_ disk: SimulatedFileSystem, isReadOnly: Bool = false, isUnverified: Bool = false) -> StoreDescription {
    var options = BinaryStoreOptions()
    options.wholeFile.file.fileSystem = disk
    options.wholeFile.allowsUnverified = isUnverified
    return .binary(at: "/people", isReadOnly: isReadOnly, options: options)
  }

  static func context(_ disk: SimulatedFileSystem) throws -> ManagedObjectContext {
    try ManagedObjectContext(coordinator: PersistentStoreCoordinator(model: model, store: description(disk)))
  }

  static func disk(_ bytes: [UInt8]) -> SimulatedFileSystem {
    let disk = SimulatedFileSystem()
    disk.setContents(of: "people", bytes)
    return disk
  }

  /// A file with people, a company for every 50, friends and pets.
  static func file(_ count: Int) throws -> [UInt8] {
    let disk = SimulatedFileSystem(), context = try context(disk)
    var random = SeededGenerator(seed: UInt64(count))
    let companies = try (0..<max(count / 50, 2)).map { number in
      let company = try context.insert(entityNamed: "Company")
      try company.setValue(.int64(Int64(number)), forKey: "number")
      return company
    }
    let people = try (0..<count).map { number in
      let person = try context.insert(entityNamed: "Person")
      try person.setValue(.int64(Int64(number)), forKey: "number")
      try person.setValue(companies[number % companies.count], forKey: "employer")
      return person
    }
    for (number, person) in people.enumerated() {
      for _ in 0..<3 { try person.toMany(forKey: "friends").insert(people.randomElement(using: &random)!) }
      if number % 10 == 0 { try context.insert(entityNamed: number % 20 == 0 ? "Dog" : "Pet").setValue(person, forKey: "owner") }
    }
    try context.save()
    try context.persistentStoreCoordinator.close()
    return disk.contents(of: "people") ?? []
  }

  /// An open store, and a view of its rows.
  final class Opened {
    let disk: SimulatedFileSystem
    let store: WholeFileStore
    let view: any ReadView
    private let before: Int

    init(_ bytes: [UInt8], isUnverified: Bool = false) throws {
      disk = InverseLinkTests.disk(bytes)
      let made = InverseLinkTests.description(disk, isReadOnly: true, isUnverified: isUnverified).makeStore()
      store = try #require(made as? WholeFileStore)
      _ = try store.open(model: InverseLinkTests.model, host: .none)
      view = try store.beginRead(.snapshot, options: .none)
      before = disk.count(of: .read)
    }

    deinit {
      view.end()
      try? store.close()
    }

    func verify() throws { try withExtendedLifetime(self) { try store.verify() } }

    /// The number of readings since opening.
    var readCount: Int { disk.count(of: .read) - before }

    func answer(_ relationship: ManagedObjectModel.Relationship, _ owners: [ObjectKey]) throws -> RelationshipAnswer {
      try store.relationships(
        RelationshipRequest(entity: relationship.entityIndex, relationship: relationship.index, sources: owners), in: view, options: .none)
    }

    func answer(_ name: String, _ owners: [ObjectKey]) throws -> [Int64] {
      let relationship = try #require(InverseLinkTests.relationships.first { $0.name == name })
      return try answer(relationship, owners).targets.map(\.rawValue)
    }

    func readRows(_ name: String) throws {
      let entity = try #require(InverseLinkTests.model.entity(named: name)).index
      try store.fetch(FetchPlan(entity: entity, concreteEntities: [entity]), in: view, options: .none, into: Discard())
    }
  }

  private final class Discard: RowSink {
    func take(_ batch: RowBatch, _ rows: RowSelection) throws -> SinkDemand { .more }
  }

  // MARK: What is read

  @Test func theFirstRelationshipReadsOneSectionHoweverManyObjectsThereAre() throws {
    for count in [200, 2_000, 30_000] {
      let bytes = try Self.file(count)
      for name in ["employees", "friends", "friendOf"] {
        let opened = try Opened(bytes)
        // The section of the owner's links, and the section of its row, which shows that the owner exists.
        #expect(try !opened.answer(name, [2]).isEmpty)
        #expect(opened.readCount == 2, "\(name) of \(count)")
        #expect(try !opened.answer(name, [2]).isEmpty && opened.readCount == 2, "\(name) of \(count)")
      }
      // The answer names the entity of the pet, whose row is looked up among pets and dogs.
      let opened = try Opened(bytes)
      #expect(try opened.answer("pets", [1]).count == 1)
      #expect((3...4).contains(opened.readCount), "\(opened.readCount)")
    }
  }

  /// Walking the graph reads the entire file, because a section for each step would take longer.
  @Test func manyRelationshipsAreAnsweredFromTables() throws {
    let bytes = try Self.file(30_000), opened = try Opened(bytes)
    // All sections but the store information, which was read.
    let sections = BinaryParts(bytes).entries.count { $0.kind != 1 }
    let relationship = try #require(Self.relationships.first { $0.name == "friends" })
    let all = try opened.answer(relationship, (1...30_000).map { ObjectKey($0) })
    #expect(opened.readCount == sections && all.targets.count > 80_000)
    let before = opened.readCount
    for name in ["employees", "friendOf", "pets"] { #expect(try !opened.answer(name, [1]).isEmpty) }
    #expect(opened.readCount == before)
    // One by one, only the first ones are read section by section.
    let other = try Opened(bytes)
    for owner in 1...1_500 { _ = try other.answer("friends", [ObjectKey(Int64(owner) * 20)]) }
    #expect((sections + 1...sections + 4).contains(other.readCount), "\(other.readCount) of \(sections)")
  }

  // MARK: The same answers

  /// Compares the answers from sections with those from tables, and the sections with the tables.
  static func expectSame(_ bytes: [UInt8], _ most: Int64, _ name: String, sourceLocation: SourceLocation = #_sourceLocation) throws {
    let tables = try Opened(bytes)
    try tables.verify()
    let owners = (1...most + 2).map { ObjectKey($0) }
    for relationship in relationships {
      let expected = try tables.answer(relationship, owners)
      for step in [20, 1] {
        // A new store for every 20 owners, so that the answers are from sections.
        var found: [RelationshipAnswer] = [], opened = try Opened(bytes)
        for start in stride(from: 0, to: owners.count, by: step) {
          if start % 20 == 0 { opened = try Opened(bytes) }
          found.append(try opened.answer(relationship, Array(owners[start..<min(start + step, owners.count)])))
        }
        #expect(found.flatMap(\.targets) == expected.targets, "\(name), \(relationship.name)", sourceLocation: sourceLocation)
        #expect(
          found.flatMap { zip($0.offsets.dropFirst(), $0.offsets).map { $0 - $1 } }
            == zip(expected.offsets.dropFirst(), expected.offsets).map { $0 - $1 },
          "\(name), \(relationship.name)", sourceLocation: sourceLocation)
        #expect(
          found.flatMap { $0.entities ?? [] } == expected.entities ?? [], "\(name), \(relationship.name)", sourceLocation: sourceLocation)
        #expect(
          found.flatMap { $0.orderKeys ?? [] } == expected.orderKeys ?? [], "\(name), \(relationship.name)", sourceLocation: sourceLocation)
        // The rows confirm the links.
        for entity in model.entities { try opened.readRows(entity.name) }
      }
    }
  }

  /// Random changes and saves, by one open store and by a new one after each save.
  @Test(arguments: 0..<6) func sectionsAnswerLikeTablesAfterEverySave(_ round: Int) throws {
    var random = SeededGenerator("Inverse links, \(round)")
    let disk = SimulatedFileSystem()
    var context = try Self.context(disk)
    var number: Int64 = 0, most: Int64 = 0, saves = 0
    func all(_ name: String) throws -> [ManagedObject] { try context.fetch(FetchRequest<ManagedObject>(entityName: name)) }
    for save in 0..<8 {
      if round % 2 == 1 || Int.random(in: 0..<4, using: &random) == 0 {
        try context.persistentStoreCoordinator.close()
        context = try Self.context(disk)
      }
      for name in ["Person", "Company", "Pet", "Dog", "Prize", "Place", "Note"] {
        for _ in 0..<Int.random(in: 0...(name == "Person" ? 30 : 4), using: &random) {
          let object = try context.insert(entityNamed: name)
          number += 1
          if name == "Person" || name == "Company" { try object.setValue(.int64(number), forKey: "number") }
        }
      }
      let people = try all("Person"), companies = try all("Company"), pets = try all("Pet")
      for person in people where Int.random(in: 0..<3, using: &random) == 0 {
        let company = Int.random(in: 0..<4, using: &random) == 0 ? nil : companies.randomElement(using: &random)
        try person.setValue(company, forKey: "employer")
        for (name, entity) in [("friends", "Person"), ("friendOf", "Person"), ("near", "Person"), ("visits", "Place"), ("notes", "Note")] {
          guard let other = try all(entity).randomElement(using: &random) else { continue }
          let set = try person.toMany(forKey: name)
          if set.contains(other) { set.remove(other) } else { set.insert(other) }
        }
        if let prize = try all("Prize").randomElement(using: &random) {
          let list = try person.ordered(forKey: "prizes")
          if list.contains(prize) { list.remove(prize) } else { list.append(prize) }
        }
      }
      for pet in pets where Bool.random(using: &random) {
        try pet.setValue(people.randomElement(using: &random), forKey: "owner")
      }
      if save > 1 {
        for name in ["Person", "Company", "Pet", "Place", "Prize"] where Int.random(in: 0..<2, using: &random) == 0 {
          if let object = try all(name).randomElement(using: &random) { context.delete(object) }
        }
      }
      do { try context.save() } catch let error as PersistenceError where error.coreDataCode == 133_020 {
        // An object points to one that was deleted with the rule "no action", and that link was changed.
        context.rollback()
        continue
      }
      saves += 1
      for name in ["Person", "Company", "Pet"] { most = try all(name).reduce(most) { max($0, $1.objectID.key.rawValue) } }
      try Self.expectSame(disk.contents(of: "people") ?? [], most, "round \(round), save \(save)")
    }
    #expect(saves >= 3)
    try context.persistentStoreCoordinator.close()
  }

  // MARK: Files of version 0.1

  /// The file as version 0.1 writes it.
  static func old(_ bytes: [UInt8]) throws -> [UInt8] {
    var image = BinaryImage(bytes)
    image.sections.removeAll { $0.kind == 8 }
    try image.changeInfo { $0["inverses"] = nil }
    return image.bytes
  }

  @Test func aFileWithoutInverseLinksIsReadAndGetsThemFromTheNextSave() throws {
    let bytes = try Self.file(2_000), old = try Self.old(bytes)
    #expect(BinaryImage(bytes).places(of: 8).count == 3 && BinaryImage(old).places(of: 8).isEmpty)
    let (first, second) = (try Opened(bytes), try Opened(old))
    for name in ["employees", "friends", "friendOf", "pets"] {
      for owner in [1, 2, 11, 1_999, 2_000, 5_000] as [ObjectKey] {
        #expect(try first.answer(name, [owner]) == second.answer(name, [owner]))
      }
    }
    // It has to read everything.
    #expect(second.readCount > BinaryImage(old).places(of: 3).count)
    let disk = Self.disk(old), context = try Self.context(disk)
    _ = try context.insert(entityNamed: "Note")
    try context.save()
    try context.persistentStoreCoordinator.close()
    let saved = BinaryImage(disk.contents(of: "people") ?? []), whole = BinaryImage(bytes)
    #expect(saved.places(of: 8).map { saved.sections[$0].bytes } == whole.places(of: 8).map { whole.sections[$0].bytes })
    try Opened(disk.contents(of: "people") ?? []).verify()
  }

  // MARK: Saves

  @Test func aSaveCopiesTheSectionsWhoseLinksItDoesNotChange() throws {
    let disk = Self.disk(try Self.file(30_000)), context = try Self.context(disk)
    func sections() -> [[UInt8]] {
      let image = BinaryImage(disk.contents(of: "people") ?? [])
      return image.places(of: 8).map { image.sections[$0].bytes }
    }
    let before = sections()
    let person = try #require(
      try context.fetch(
        FetchRequest<ManagedObject>(
          entityName: "Person", where: FetchPredicate(.comparison(.property("number"), .equalTo, .constant(.int64(7)), [])))
      ).first)
    try person.setValue(.int64(-7), forKey: "number")
    try context.save()
    #expect(sections() == before && before.count > 5)
    let other = try #require(context.fetch(FetchRequest<ManagedObject>(entityName: "Person")).last)
    try person.toMany(forKey: "friends").insert(other)
    try context.save()
    #expect(Set(sections()).subtracting(before).count == 1)
    try person.setValue(nil as ManagedObject?, forKey: "employer")
    try context.save()
    #expect(Set(sections()).subtracting(before).count == 2)
    try context.persistentStoreCoordinator.close()
    try Opened(disk.contents(of: "people") ?? []).verify()
  }

  @Test func inverseLinksTakeAtMostTheirShareOfTheFile() throws {
    let bytes = try Self.file(30_000), entries = BinaryParts(bytes).entries
    let count = entries.filter { $0.kind == 8 }.reduce(0) { $0 + $1.byteCount }
    // 30,000 links to employers, 90,000 to friends and 3,000 to owners of pets.
    #expect(count <= 123_000 * 5 / 2, "\(count) of \(bytes.count) bytes")
  }

  // MARK: Damage

  @Test func RE1_aChangedByteOfInverseLinksIsFoundWhenItIsReadAndByVerifying() throws {
    let bytes = try Self.file(200)
    for entry in BinaryParts(bytes).entries where entry.kind == 8 {
      for place in stride(from: entry.offset, to: entry.offset + entry.byteCount, by: 3) {
        var changed = bytes
        changed[place] ^= 0x10
        let opened = try Opened(changed)
        let error = try #require(throws: StoreError.self) { try opened.verify() }
        #expect(error.code == .damaged && error.reason.contains("a section of inverse links"), "\(error)")
        let name = try Self.relationshipName(entry.subject, bytes), other = try Opened(changed)
        let second = try #require(throws: StoreError.self) { _ = try other.answer(name, (1...40).map { ObjectKey($0) }) }
        #expect(second.code == .damaged && second.path == "/people", "\(second)")
      }
    }
  }

  /// Reading everything verifies the digests of inverse links, although they aren't needed.
  @Test func RE1_aChangedByteOfInverseLinksIsFoundWhenEverythingIsRead() throws {
    let bytes = try Self.file(200)
    for entry in BinaryParts(bytes).entries where entry.kind == 8 {
      var changed = bytes
      changed[entry.offset + entry.byteCount / 2] ^= 1
      let opened = try Opened(changed)
      let error = try #require(throws: StoreError.self) { _ = try opened.answer("notes", (1...200).map { ObjectKey($0) }) }
      #expect(error.code == .damaged && error.reason.contains("a section of inverse links"), "\(error)")
    }
  }

  static func relationshipName(_ subject: Int, _ bytes: [UInt8]) throws -> String {
    let names = try PropertyList(binary: BinaryImage(bytes).sections[0].bytes)["inverses"]?.array ?? []
    return try #require(names[subject].array?.last?.string)
  }

  /// A file with valid digests in which the inverse links of a relationship are changed.
  static func changed(_ bytes: [UInt8], _ name: String, _ change: (inout InverseSectionTests.Runs) -> Void) throws -> [UInt8] {
    var image = BinaryImage(bytes)
    for place in image.places(of: 8) where try relationshipName(Int(image.sections[place].subject), bytes) == name {
      let section = image.sections[place]
      let entry = SectionEntry(
        kind: .inverse, subject: 0, offset: 0, byteCount: section.bytes.count, digest: 0, count: Int(section.count),
        first: Int64(section.first),
        last: Int64(section.last))
      var runs = try InverseSectionTests.decoded(section.bytes, entry)
      change(&runs)
      let (bytes, new) = InverseSectionTests.encoded(runs)
      (image.sections[place].bytes, image.sections[place].count) = (bytes, UInt64(new.count))
      (image.sections[place].first, image.sections[place].last) = (UInt64(new.first), UInt64(new.last))
      break
    }
    return image.bytes
  }

  /// An employee who works for another company. The digests are valid.
  @Test func anInverseLinkThatARowContradictsIsFoundWhenTheRowIsRead() throws {
    let bytes = try Self.changed(Self.file(200)) { runs in
      let moved = runs[1].targets.removeFirst()
      runs[0].targets = (runs[0].targets + [moved]).sorted()
    }
    func expectDamage(_ body: () throws -> Void, sourceLocation: SourceLocation = #_sourceLocation) throws {
      let error = try #require(throws: StoreError.self, sourceLocation: sourceLocation) { try body() }
      #expect(
        error.code == .damaged && error.path == "/people" && error.reason.contains("ends"), "\(error)", sourceLocation: sourceLocation)
    }
    // The answer comes first: no row can be read that contradicts it.
    let opened = try Opened(bytes)
    #expect(try opened.answer("employees", [1]).count == 51)
    for _ in 0..<2 { try expectDamage { try opened.readRows("Person") } }
    // The rows come first.
    let other = try Opened(bytes)
    try other.readRows("Person")
    try expectDamage { _ = try other.answer("employees", [1]) }
    // The company without one of its employees is found by verifying, and when tables are built.
    let third = try Opened(bytes)
    #expect(try third.answer("employees", [2]).count == 49)
    let error = try #require(throws: StoreError.self) { try third.verify() }
    #expect(error.code == .damaged && error.reason.contains("inverse links of employees of Company"), "\(error)")
    let fourth = try Opened(bytes)
    _ = try fourth.answer("employees", [2])
    #expect(throws: StoreError.self) { try fourth.answer("friends", (1...5_000).map { ObjectKey($0) }) }
  }

  private static func changed(_ bytes: [UInt8], _ change: (inout InverseSectionTests.Runs) -> Void) throws -> [UInt8] {
    try changed(bytes, "employees", change)
  }

  @Test func missingAndAdditionalInverseLinksAreFoundByVerifying() throws {
    let bytes = try Self.file(200)
    let changes: [(String, (inout InverseSectionTests.Runs) -> Void)] = [
      ("employees", { $0[1].targets.removeLast() }), ("employees", { $0.removeFirst() }), ("employees", { $0.removeLast() }),
      ("employees", { $0[0].targets.append(201) }), ("employees", { $0.append((owner: 9, targets: [1])) }),
      ("pets", { $0.remove(at: 3) }), ("pets", { $0[0].targets = [2] }),
    ]
    for (place, (name, change)) in changes.enumerated() {
      let opened = try Opened(Self.changed(bytes, name, change))
      let error = try #require(throws: StoreError.self, "\(place)") { try opened.verify() }
      #expect(error.code == .damaged && error.reason.contains("inverse links of \(name)"), "\(place): \(error)")
    }
    // Without any section of a relationship.
    var image = BinaryImage(bytes)
    image.sections.removeAll { $0.kind == 8 && (try? Self.relationshipName(Int($0.subject), bytes)) == "employees" }
    let opened = try Opened(image.bytes)
    #expect(throws: StoreError.self) { try opened.verify() }
  }

  /// The directory shows that one end of a many-to-many relationship has more links.
  @Test func anotherNumberOfLinksAtTheOtherEndIsFoundOnOpening() throws {
    let bytes = try Self.file(200)
    let fewer = try Self.changed(bytes, "friends") { $0[3].targets.removeLast() }
    let error = try #require(throws: StoreError.self) { _ = try Opened(fewer) }
    #expect(error.code == .damaged && error.path == "/people", "\(error)")
    // As many links, but others: both ends contradict each other as soon as both were read.
    let other = try Self.changed(bytes, "friends") { runs in
      let last = runs[3].targets.removeLast()
      runs[3].targets = (runs[3].targets + [(1...200).first { !runs[3].targets.contains($0) && $0 != last } ?? 0]).sorted()
    }
    for names in [["friends", "friendOf"], ["friendOf", "friends"]] {
      let opened = try Opened(other)
      #expect(try !opened.answer(names[0], (1...20).map { ObjectKey($0) }).isEmpty)
      let error = try #require(throws: StoreError.self) { _ = try opened.answer(names[1], (1...20).map { ObjectKey($0) }) }
      #expect(error.code == .damaged && error.reason.contains("ends"), "\(error)")
    }
    #expect(throws: StoreError.self) { try Opened(other).verify() }
  }

  /// Wrong inverse links aren't used and not copied if digests needn't match.
  @Test func unverifiedInverseLinksAreNeitherUsedNorCopied() throws {
    let bytes = try Self.file(2_000)
    let wrong = try Self.changed(bytes, "employees") { $0[1].targets.removeLast() }
    let opened = try Opened(wrong, isUnverified: true)
    #expect(try opened.answer("employees", [2]).count == 50)
    let disk = Self.disk(wrong)
    let context = try ManagedObjectContext(
      coordinator: PersistentStoreCoordinator(model: Self.model, store: Self.description(disk, isUnverified: true)))
    _ = try context.insert(entityNamed: "Note")
    try context.save()
    try context.persistentStoreCoordinator.close()
    try Opened(disk.contents(of: "people") ?? []).verify()
  }

  @Test func aSectionOfInverseLinksOfAnUnknownRelationshipIsOfANewerFormat() throws {
    let bytes = try Self.file(200)
    for name in [.array([.string("Company"), .string("friends")]), .array([.string("Lamp"), .string("books")]), .integer(1)]
      as [PropertyList]
    {
      var image = BinaryImage(bytes)
      let place = try #require(image.places(of: 8).first)
      let subject = Int(image.sections[place].subject)
      try image.changeInfo { info in
        var names = info["inverses"]?.array ?? []
        names[subject] = name
        info["inverses"] = .array(names)
      }
      let error = try #require(throws: StoreError.self) { _ = try Opened(image.bytes) }
      #expect(error.code == .newerFormat, "\(error)")
    }
    for subject in [20, .max] as [UInt32] {
      var image = BinaryImage(bytes)
      let place = try #require(image.places(of: 8).last)
      image.sections[place].subject = subject
      #expect(throws: StoreError.self) { _ = try Opened(image.bytes) }
    }
    // Not a list, or a relationship twice.
    for value in [.integer(1), .string("employees")] as [PropertyList] {
      var image = BinaryImage(bytes)
      try image.changeInfo { $0["inverses"] = value }
      let error = try #require(throws: StoreError.self) { _ = try Opened(image.bytes) }
      #expect(error.code == .damaged, "\(error)")
    }
    var image = BinaryImage(bytes)
    try image.changeInfo { $0["inverses"] = .array(($0["inverses"]?.array ?? []) + [($0["inverses"]?.array ?? [])[0]]) }
    let error = try #require(throws: StoreError.self) { _ = try Opened(image.bytes) }
    #expect(error.code == .damaged && error.reason.contains("twice"), "\(error)")
  }
}
