#if Macros
  import Foundation
  import Holdfast
  import HoldfastBinaryStore
  import HoldfastJSONStore
  import HoldfastMemoryStore
  import HoldfastModelFile
  import HoldfastSQLiteStore
  import HoldfastXMLStore
  import TestSupport
  import Testing

  /// Classes with `@Entity` make a model, and their properties keep values.
  @Suite struct EntityTests {
    @Test func theModelIsWhatTheClassesDeclare() throws {
      let declared = try ManagedObjectModel.declared(by: [Ranch.Cow.self]), written = try Ranch.model.get()
      let texts = try [declared, written].map { String(decoding: try $0.canonicalJSON(), as: UTF8.self) }
      #expect(texts[0] == texts[1])
      #expect(declared.entityVersionHashesByName == written.entityVersionHashesByName)
    }

    @Test func everySettingOfAModelCanBeDeclared() throws {
      let declared = try ManagedObjectModel.declared(by: [Archive.Record.self]), written = try Archive.model.get()
      let texts = try [declared, written].map { String(decoding: try $0.canonicalJSON(), as: UTF8.self) }
      #expect(texts[0] == texts[1])
      #expect(declared.entityVersionHashesByName == written.entityVersionHashesByName)
      #expect(declared.configurations == written.configurations)
    }

    @Test func xcodesFileHasAllThatTheClassesDeclare() throws {
      for model in [try ManagedObjectModel.declared(by: [Ranch.Cow.self]), try .declared(by: [Archive.Record.self])] {
        let folder = TemporaryFolder(), path = folder.file("Model.xcdatamodeld")
        try ModelBundle.write(["Model": ModelDocument(model)], currentVersion: "Model", to: path)
        let read = try ManagedObjectModel(contentsOf: path)
        #expect(read.entityVersionHashesByName == model.entityVersionHashesByName)
        #expect(read.configurations == model.configurations && read.composites == model.composites)
        for entity in model.declarations {
          var (declared, kept) = (entity, try #require(read.declarations.first { $0.name == entity.name }))
          declared.attributes.sort { $0.name < $1.name }
          kept.attributes.sort { $0.name < $1.name }
          declared.relationships.sort { $0.name < $1.name }
          kept.relationships.sort { $0.name < $1.name }
          #expect(kept == declared)
        }
      }
    }

    @Test func slotsAreThoseOfTheModel() throws {
      let cow = try #require(try Ranch.model.get().entity(named: "Cow"))
      let slots: [String: SlotIndex] = [
        "born": Ranch.Animal.Slots.born, "owner": Ranch.Animal.Slots.owner, "count": Ranch.Cow.Slots.count,
        "default": Ranch.Cow.Slots.`default`, "field.centre.x": Ranch.Cow.Slots.field, "notes": Ranch.Cow.Slots.notes,
        "size": Ranch.Cow.Slots.extent, "tag": Ranch.Cow.Slots.tag,
      ]
      for (name, slot) in slots { #expect(cow.slot(named: name) == slot, "\(name)") }
      #expect(Ranch.Cow.SlotCounts.slots == cow.slots.count && Ranch.Cow.SlotCounts.toMany == 2)
      #expect(Ranch.Cow.SlotCounts.transients == 2 && Ranch.Cow.SlotCounts.transientLinks == 3)
    }

    private static let stores: [@Sendable (TemporaryFolder) -> StoreDescription] = [
      { _ in .memory() }, { .json(at: $0.file("ranch.json")) }, { .xml(at: $0.file("ranch.xml")) },
      { .binary(at: $0.file("ranch.holdfast")) }, { .sqlite(at: $0.file("ranch.sqlite")) },
    ]

    @Test(arguments: stores.indices) func propertiesKeepTheirValues(_ store: Int) async throws {
      let folder = TemporaryFolder()
      let container = try PersistentContainer(for: Ranch.Cow.self, store: EntityTests.stores[store](folder))
      try await container.performBackgroundTask { context in
        let ann = Ranch.Farmer(context: context, photo: Data([1, 2]), home: Ranch.Point(x: 3, y: 4))
        let bella = Ranch.Cow(context: context, tag: 7, milk: 21.5, field: Ranch.Field(name: "north", corner: Ranch.Point(x: 1, y: 2)))
        (bella.name, bella.owner, bella.notes, bella.isSelected, bella.sizes) = ("Bella", ann, ["old", "red"], true, ["left": 3])
        let calf = Ranch.Cow(context: context, milk: 0)
        bella.calves.append(calf)
        calf.leader = bella
        calf.friends.insert(bella)
        #expect(calf.name == "nobody" && calf.notes == [] && !calf.isSelected && calf.sizes == nil && calf.field == nil)
        #expect(calf.mood == .wild && calf.marks == .ear && calf.count == 3 && calf.`default` && calf.extent == 1.5)
        #expect(abs(calf.born.timeIntervalSinceNow) < 3600 && calf.id != bella.id)
        try context.save()
        #expect(bella.isSelected && bella.follower === calf && Array(calf.friends) == [bella])
      }
      try await container.performBackgroundTask { context in
        let bella = try #require(try context.fetch(FetchRequest<Ranch.Cow> { $0.tag == 7 }).first)
        #expect(bella.name == "Bella" && bella.milk == 21.5 && bella.field?.corner?.y == 2 && bella.field?.centre.x == 0)
        #expect(bella.notes == ["old", "red"] && !bella.isSelected && bella.follower == nil)
        #expect(bella.owner?.home.y == 4 && bella.owner?.photo == Data([1, 2]) && bella.owner?.herd == 1)
        #expect(bella.calves.count == 1 && bella.calves[0].mothers.contains(bella))
        bella.calves[0].calves = bella.calves
        #expect(bella.calves.count == 1 && bella.calves[0].calves.count == 1)
        let other = context.insert(Ranch.Cow.self) { $0.milk = 1 }
        other.mothers = bella.calves[0].mothers
        #expect(other.mothers.count == 2)
        other.friends = bella.calves[0].friends
        #expect(other.friends.isEmpty)
        bella.friends.append(contentsOf: [other, bella])
        other.friends = bella.friends
        #expect(Set(other.friends) == [other, bella])
      }
    }

    @Test(arguments: stores.indices) func attributesOfEveryTypeKeepTheirValues(_ store: Int) async throws {
      let folder = TemporaryFolder(), uuid = UUID(), made = Date(timeIntervalSinceReferenceDate: 0.25)
      let container = try PersistentContainer(for: Archive.Record.self, store: EntityTests.stores[store](folder))
      let origin = try await container.performBackgroundTask { context in
        let room = Archive.Room(context: context)
        let full = Archive.Record(
          context: context, small: .max, medium: 9, large: .min, single: -2.5, price: Decimal(string: "0.1"), isOpen: false, title: "full",
          code: "ü", made: made, key: uuid, bytes: Data([0, 255]), link: URL(string: "a:b?c"), shelf: .low, otherShelf: .high,
          colour: Archive.Colour(red: 1, blue: 2), list: .array([.string("a")]), room: room)
        _ = Archive.Record(context: context, title: "empty", room: room)
        try context.save()
        full.origin = room.objectID
        try context.save()
        return room.objectID
      }
      try await container.performBackgroundTask { context in
        let full = try #require(try context.fetchOne(Archive.Record.self) { $0.title == "full" })
        #expect(full.small == .max && full.medium == 9 && full.large == .min && full.single == -2.5 && full.price == Decimal(string: "0.1"))
        #expect(full.isOpen == false && full.code == "ü" && full.made == made && full.key == uuid && full.bytes == Data([0, 255]))
        #expect(full.link?.absoluteString == "a:b?c" && full.origin == origin && full.shelf == .low && full.otherShelf == .high)
        #expect(full.colour == Archive.Colour(red: 1, blue: 2) && full.list == .array([.string("a")]))
        #expect(full.room?.objectID == origin && full.room?.records.count == 2)
        #expect(try full.namesakes == [full])
        let empty = try #require(try context.fetchOne(Archive.Record.self) { $0.title == "empty" })
        #expect(empty.small == -3 && empty.large == 1 && empty.single == 0.5 && empty.code == "c" && empty.shelf == .high)
        #expect(empty.medium == nil && empty.price == nil && empty.isOpen == nil && empty.made == nil && empty.key == nil)
        #expect(empty.bytes == nil && empty.link == nil && empty.origin == nil && empty.otherShelf == nil && empty.colour == nil)
        #expect(empty.list == nil)
      }
    }

    @Test(arguments: stores.indices) func aCoordinatorWithoutAContainerUsesTheTransformersOfTheClasses(_ store: Int) throws {
      let folder = TemporaryFolder(), classes: [ManagedObject.Type] = [Archive.Record.self, Archive.Room.self]
      var transformers = AttributeTransformerRegistry()
      try transformers.registerCodableAttributes(of: classes)
      let coordinator = try PersistentStoreCoordinator(
        model: .declared(by: classes), transformers: transformers, store: EntityTests.stores[store](folder))
      let context = try ManagedObjectContext(coordinator: coordinator, classes: classes)
      _ = Archive.Record(context: context, colour: Archive.Colour(red: 1, blue: 2), room: Archive.Room(context: context))
      try context.save()
      let other = try ManagedObjectContext(coordinator: coordinator, classes: classes)
      #expect(try other.fetch(FetchRequest<Archive.Record>()).map(\.colour) == [Archive.Colour(red: 1, blue: 2)])
    }

    @Test(arguments: stores.indices) func rulesOfElementsApplyToTheAttribute(_ store: Int) throws {
      let folder = TemporaryFolder()
      let container = try PersistentContainer(for: Archive.Record.self, store: EntityTests.stores[store](folder))
      let context = container.newContext(), room = Archive.Room(context: context, mark: Archive.Mark(row: "long", height: 3))
      _ = Archive.Record(context: context, title: "a", room: room)
      let long = #expect(throws: PersistenceError.self) { try context.save() }
      #expect(long?.code == .stringTooLong && long?.property == "mark.row")
      room.mark = Archive.Mark(row: "a", height: 10)
      let high = #expect(throws: PersistenceError.self) { try context.save() }
      #expect(high?.code == .numberTooLarge && high?.property == "mark.height")
      room.mark?.height = 9
      try context.save()
      let saved = try #require(try container.newContext().fetchOne(Archive.Room.self) { $0.mark.height == 9 })
      #expect(saved.mark?.row == "a")
    }

    @Test(arguments: stores.indices) func queriesCompareEnumerationsOptionSetsAndComposites(_ store: Int) throws {
      let folder = TemporaryFolder(), container = try PersistentContainer(for: Ranch.Cow.self, store: EntityTests.stores[store](folder))
      let context = container.newContext()
      for (tag, mood, marks) in [(1, Ranch.Mood.calm, Ranch.Marks.ear), (2, .wild, [.ear, .tail]), (3, .wild, [])] {
        let cow = Ranch.Cow(context: context, tag: tag, mood: mood, marks: marks, milk: 0)
        cow.name = "cow \(tag)"
        if tag > 1 { cow.field = Ranch.Field(name: "field \(tag)", corner: tag == 2 ? Ranch.Point(x: 1, y: 2) : nil) }
      }
      func tags(_ conditions: (FetchPath<Ranch.Cow, Ranch.Cow>) -> FetchPredicate<Ranch.Cow>) throws -> [Int?] {
        try context.fetch(Ranch.Cow.self, sortedBy: \.tag) { conditions($0) }.map(\.tag)
      }
      // Unsaved objects, then saved ones.
      for _ in 0..<2 {
        #expect(try tags { $0.mood == .wild } == [2, 3] && tags { $0.mood != .wild } == [1] && tags { $0.mood.isIn([.calm]) } == [1])
        #expect(try tags { $0.marks == [.tail, .ear] } == [2] && tags { $0.marks != .ear } == [2, 3])
        #expect(try tags { $0.field == nil } == [1] && tags { $0.field != nil && $0.mood == .wild } == [2, 3])
        #expect(try tags { $0.field.name == "field 3" } == [3] && tags { $0.field.corner.y > 1 } == [2])
        try context.save()
      }
      let byMood = try context.aggregate(Ranch.Cow.self, by: \.mood) { $0.maximum(\.tag) }
      #expect(byMood.map(\.key) == [.calm, .wild] && byMood.map(\.value) == [1, 3])
      let byField = try context.aggregate(Ranch.Cow.self, by: \.field.name) { $0.count() }
      #expect(byField.map(\.key) == [nil, "field 2", "field 3"])
    }

    @Test func aFailedClosureInsertsNothing() async throws {
      let container = try PersistentContainer(for: Ranch.Cow.self, store: .memory())
      await container.performBackgroundTask { context in
        struct Refused: Error {}
        #expect(throws: Refused.self) { try context.insert(Ranch.Cow.self) { _ in throw Refused() } }
        #expect(!context.hasChanges)
      }
    }

    @Test func aFailedInsertionDeletesNoDestination() async throws {
      struct Refused: Error {}
      let container = try PersistentContainer(for: Ranch.Cow.self, store: .memory())
      try await container.performBackgroundTask { context in
        let calf = Ranch.Cow(context: context, milk: 0)
        try context.save()
        #expect(throws: Refused.self) {
          try context.insert(Ranch.Cow.self) {
            $0.calves.append(calf)
            throw Refused()
          }
        }
        try context.save()
        #expect(try context.fetch(FetchRequest<Ranch.Cow>()) == [calf] && !calf.isDeleted && calf.mothers.isEmpty)
      }
    }

    @Entity(name: "Ticket", isAbstract: true) class Numbered: ManagedObject {
      var number = 0
      override func awakeFromInsert() { number += 7 }
    }
    @Entity final class Receipt: Numbered {
      var total: Int
      override func awakeFromInsert() {
        super.awakeFromInsert()
        total += 1
      }
    }

    @Test func anObjectAwakesAfterItsInitializerHasSetItsProperties() throws {
      let model = try ManagedObjectModel.declared(by: [Receipt.self])
      #expect(model.entities.map(\.name) == ["Ticket", "Receipt"])
      let context = try ManagedObjectContext(
        coordinator: PersistentStoreCoordinator(model: model, store: .memory()), classes: [Numbered.self, Receipt.self])
      let receipt = Receipt(context: context, total: 5)
      #expect(receipt.number == 7 && receipt.total == 6)
    }

    @Entity final class Gate: ManagedObject {
      enum Lock: Int16, CaseIterable, AttributeValue { case chain, none, bolt }
      var lock: Lock = .none
      var secondLock: Lock? = .bolt
    }

    @Test func aCaseNamedNoneIsADefaultValueAndNotNil() throws {
      let entity = try #require(try ManagedObjectModel.declared(by: [Gate.self]).declarations.first)
      let defaults = entity.attributes.sorted { $0.name < $1.name }.map(\.defaultValue)
      #expect(defaults == [.int16(1), .int16(2)])
      let context = try PersistentContainer(for: Gate.self, store: .memory()).newContext()
      let gate = Gate(context: context)
      #expect(gate.lock == Gate.Lock.none && gate.secondLock == .bolt && Gate.Snapshot().lock == Gate.Lock.none)
    }

    @Entity final class Ticket: ManagedObject {
      struct Code: Codable, Equatable {
        var number = Int.random(in: 1...1_000_000_000)
      }
      @Attribute(.codable) var code = Code()
    }

    @Test(arguments: stores.indices) func aComputedCodableValueStaysTheSame(_ store: Int) throws {
      let folder = TemporaryFolder(), container = try PersistentContainer(for: Ticket.self, store: EntityTests.stores[store](folder))
      let context = container.newContext(), ticket = Ticket(context: context), code = ticket.code
      #expect(ticket.code == code)
      try context.save()
      #expect(try container.newContext().fetchOne(Ticket.self)?.code == code)
    }

    @Entity final class Parcel: ManagedObject {
      @Attribute(.setting(\.isOptional, false)) var place: Ranch.Field?
      @Attribute(.codable, .setting(\.isOptional, false)) var labels: [String]?
      @Attribute(.transient, .setting(\.isOptional, false)) var isSelected: Bool?
      @Attribute(.derived("now()"), .setting(\.isOptional, false)) var sent: Date?
    }

    @Test(arguments: stores.indices) func attributesThatAreOptionalByDefaultCanBeRequired(_ store: Int) throws {
      let entity = try #require(try ManagedObjectModel.declared(by: [Parcel.self]).declarations.first)
      #expect(entity.attributes.count == 4 && entity.attributes.allSatisfy { !$0.isOptional })
      let folder = TemporaryFolder(), container = try PersistentContainer(for: Parcel.self, store: EntityTests.stores[store](folder))
      let context = container.newContext(), parcel = Parcel(context: context)
      func missingProperty() -> String? {
        let error = #expect(throws: PersistenceError.self) { try context.save() }
        return error?.code == .missingMandatoryValue ? error?.property : nil
      }
      (parcel.place, parcel.labels) = (Ranch.Field(name: "north"), ["fragile"])
      #expect(missingProperty() == "isSelected")
      (parcel.isSelected, parcel.labels) = (true, nil)
      #expect(missingProperty() == "labels")
      (parcel.labels, parcel.place) = (["heavy"], nil)
      #expect(missingProperty() == "place")
      parcel.place = Ranch.Field(name: "south")
      try context.save()
      let saved = try #require(try container.newContext().fetchOne(Parcel.self))
      #expect(saved.place?.name == "south" && saved.labels == ["heavy"] && saved.sent != nil)
    }

    @Test(arguments: stores.indices) func unusualDeclarationsKeepTheirValues(_ store: Int) throws {
      let folder = TemporaryFolder()
      let container = try PersistentContainer(
        for: Oddities.Gadget.self, Oddities.Plain.self, store: EntityTests.stores[store](folder))
      let context = container.newContext()
      let plain = Oddities.Plain(context: context)
      #expect(Oddities.Chest(made: nil).lock == .bolt && Oddities.Chest(made: nil).made == nil)
      #expect(Oddities.Chest(lock: .none).lock == Oddities.Lock.none && Oddities.Chest(lock: .none).made == .distantPast)
      let whole = Oddities.Gadget(context: context, number: 3, class: "a", size: Oddities.Size(width: 2, measure: .foot))
      whole.parts.append(Oddities.Gadget(context: context, number: 4))
      try context.save()
      let part = try #require(try container.newContext().fetchOne(Oddities.Gadget.self) { $0.number == 4 })
      #expect(part.lock == Oddities.Lock.none && part.in == .bolt && part.made == .distantPast && part.size.measure == .metre)
      #expect(part.slotCount == 3 && Oddities.Gadget.Slots.whole == Oddities.Gadget.Slots.slotCount.advanced(by: 1))
      #expect(plain.lock == Oddities.Lock.none && plain.made == .distantPast)
      #expect(part.whole?.class == "a" && part.whole?.size.measure == .foot && part.text == "4")
      let entities = try ManagedObjectModel.declared(by: [Oddities.Gadget.self]).declarations
      #expect(entities.first { $0.name == "Gadget" }?.indexes.map(\.properties) == [["number", "made"], ["size.width"]])
    }

    // MARK: Snapshots

    @Test func aSnapshotIsEncodedByNameAndAppliedAgain() async throws {
      let container = try PersistentContainer(for: Ranch.Cow.self, store: .memory())
      let snapshot = try await container.performBackgroundTask { context in
        let bella = Ranch.Cow(context: context, tag: 7, milk: 21.5, field: Ranch.Field(name: "north"))
        (bella.name, bella.notes, bella.owner) = ("Bella", ["old"], Ranch.Farmer(context: context))
        try context.save()
        return try Ranch.Cow.Snapshot(bella)
      }
      let json = try JSONEncoder().encode(snapshot)
      let values = try #require(try JSONSerialization.jsonObject(with: json) as? [String: Any])
      #expect(values["name"] as? String == "Bella" && values["tag"] as? Int == 7 && values["mood"] as? Int == 1)
      #expect((values["field"] as? [String: Any])?["name"] as? String == "north" && values["isSelected"] == nil && values["calves"] == nil)
      var decoded = try JSONDecoder().decode(Ranch.Cow.Snapshot.self, from: json)
      #expect(decoded == snapshot && decoded.owner == snapshot.owner && decoded.owner != nil)
      decoded.name = "Bella II"
      decoded.tag = nil
      decoded.field = Ranch.Field(name: "south", centre: Ranch.Point(x: 1, y: 2))
      let changed = decoded
      try await container.performBackgroundTask { context in
        let copy = try context.insert(changed)
        #expect(copy.name == "Bella II" && copy.tag == nil && copy.milk == 21.5 && copy.notes == ["old"] && copy.owner?.herd == 1)
        #expect(copy.field?.name == "south" && copy.field?.centre.y == 2 && copy.mood == .wild)
        try context.save()
      }
    }

    @Test func aSnapshotWithoutAnObjectHasTheDefaultValues() throws {
      let snapshot = Ranch.Cow.Snapshot()
      #expect(snapshot.name == "nobody" && snapshot.mood == .wild && snapshot.count == 3 && snapshot.tag == nil && snapshot.milk == 0)
      let decoded = try JSONDecoder().decode(Ranch.Cow.Snapshot.self, from: Data(#"{"tag": 8, "unknown": true, "field": null}"#.utf8))
      #expect(decoded.tag == 8 && decoded.count == 3 && decoded.field == nil)
      #expect(throws: DecodingError.self) { try JSONDecoder().decode(Ranch.Cow.Snapshot.self, from: Data(#"{"tag": "x"}"#.utf8)) }
    }

    @Test(.ownThreads) func aTransientPropertyOfASnapshotTraps() async {
      let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
        _ = Ranch.Cow.Snapshot().isSelected
      }
      let message = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
      #expect(message.contains("A snapshot of Cow has no member isSelected"), "\(message)")
    }

    @Test func aSnapshotOfADeletedObjectIsAnError() async throws {
      let container = try PersistentContainer(for: Ranch.Cow.self, store: .memory())
      let id = try await container.performBackgroundTask { context in
        let cow = Ranch.Cow(context: context, milk: 1)
        try context.save()
        return cow.objectID
      }
      try await container.performBackgroundTask { context in
        let cow = try #require(try context.object(with: id) as? Ranch.Cow)
        try container.persistentStoreCoordinator.deleteAll(id, Ranch.Cow.self)
        let error = #expect(throws: PersistenceError.self) { try Ranch.Cow.Snapshot(cow) }
        #expect(error?.code == .missingObject)
        try context.save()
      }
    }

    @Test func aDestinationOfAnotherStoreIsRefused() async throws {
      let container = try PersistentContainer(for: Ranch.Cow.self, store: .memory())
      let other = try PersistentContainer(for: Ranch.Cow.self, store: .memory())
      let snapshot = try await other.performBackgroundTask { context in
        let cow = Ranch.Cow(context: context, milk: 1)
        cow.owner = Ranch.Farmer(context: context)
        try context.save()
        return try Ranch.Cow.Snapshot(cow)
      }
      await container.performBackgroundTask { context in
        let error = #expect(throws: PersistenceError.self) { try context.insert(snapshot) }
        #expect(error?.code == .foreignObject && !context.hasChanges)
      }
    }

    @Test func whatASnapshotDoesNotSetKeepsItsDefault() async throws {
      let snapshot = try JSONDecoder().decode(Ranch.Cow.Snapshot.self, from: Data(#"{"milk": 3, "tag": 7}"#.utf8))
      var same = Ranch.Cow.Snapshot()
      (same.milk, same.tag) = (3, 7)
      #expect(snapshot == same)
      let container = try PersistentContainer(for: Ranch.Cow.self, store: .memory())
      try await container.performBackgroundTask { context in
        let cow = try context.insert(snapshot)
        #expect(abs(cow.born.timeIntervalSinceNow) < 3600 && cow.mood == .wild && cow.milk == 3)
        try context.save()
        #expect(try Ranch.Cow.Snapshot(cow).tag == 7)
      }
    }
  }

  extension PersistentStoreCoordinator {
    /// Deletes an object in a context of its own.
    fileprivate func deleteAll(_ id: ManagedObjectID, _ classes: ManagedObject.Type...) throws {
      let context = try ManagedObjectContext(coordinator: self, classes: [Ranch.Animal.self, Ranch.Farmer.self] + classes)
      context.delete(try context.existingObject(with: id))
      try context.save()
    }
  }
#endif
