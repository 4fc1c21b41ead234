import FoundationEssentials
import Holdfast
import HoldfastMemoryStore
import HoldfastStoreConformance
import Testing

/// Classes that declare their entities make a model, and their accessors use its slots.
@Suite struct DeclarationTests {
  @Test func theModelIsWhatTheClassesDeclare() throws {
    let declared = try ManagedObjectModel.declared(by: [Farm.Cow.self]), written = try Farm.model.get()
    let texts = try [declared, written].map { String(decoding: try $0.canonicalJSON(), as: UTF8.self) }
    #expect(texts[0] == texts[1])
    #expect(declared.entityVersionHashesByName == written.entityVersionHashesByName)
  }

  @Test func aSlotIsTheSuperclassesCountAndTheSlotsOfTheNamesBefore() throws {
    let cow = try #require(try Farm.model.get().entity(named: "Cow"))
    let slots: [String: SlotIndex] = [
      "name": Farm.Animal.Slots.name, "owner": Farm.Animal.Slots.owner, "milk": Farm.Cow.Slots.milk, "mood": Farm.Cow.Slots.mood,
      "tag": Farm.Cow.Slots.tag, "field.corner.x": Farm.Cow.Slots.field,
    ]
    for (name, slot) in slots { #expect(cow.slot(named: name) == slot, "\(name)") }
    #expect(Farm.Field.slotCount == 3 && Farm.Animal.SlotCounts.slots == 2)
  }

  @Test(arguments: TestStore.allCases) func valuesAreSavedAndReadThroughTheAccessors(_ store: TestStore) throws {
    let place = try store.makePlace(model: Farm.model.get(), classes: [Farm.Animal.self, Farm.Cow.self, Farm.Farmer.self])
    let context = try place.context()
    let ann = context.insert(Farm.Farmer.self), bella = context.insert(Farm.Cow.self), calf = context.insert(Farm.Cow.self)
    #expect(bella.name == "nobody" && bella.mood == .wild && bella.tag == nil && bella.field == nil && ann.home.x == 0)
    (bella.name, bella.milk, bella.mood, bella.tag, bella.owner) = ("Bella", 21.5, .calm, 7, ann)
    bella.field = Farm.Field(name: "north", corner: Farm.Point(x: 1, y: 2))
    ann.home = Farm.Point(x: 3, y: 4)
    ann.photo = Data([1, 2, 3])
    bella.calves.append(calf)
    calf.milk = 0
    try context.save()
    try place.close()

    let again = try place.context()
    let found = try #require(try again.fetch(FetchRequest<Farm.Cow> { $0.tag == 7 }).first)
    #expect(found.name == "Bella" && found.milk == 21.5 && found.mood == .calm)
    #expect(found.field?.name == "north" && found.field?.corner?.y == 2)
    #expect(found.owner?.home.y == 4 && found.owner?.photo == Data([1, 2, 3]) && found.owner?.herd == 1)
    #expect(found.calves.count == 1 && found.calves[0].mothers.contains(found) && found.owner?.animals.contains(found) == true)
    #expect(try again.fetch(FetchRequest<Farm.Cow> { $0.name == "Bella" }) == [found])
    let owned = FetchRequest<Farm.Cow> { $0.field.corner.x == 1.0 }
    #expect(try again.fetch(owned) == [found])
  }

  @Test(arguments: TestStore.allCases) func aSnapshotIsAppliedToAnExistingObject(_ store: TestStore) throws {
    let place = try store.makePlace(model: Farm.model.get(), classes: [Farm.Animal.self, Farm.Cow.self, Farm.Farmer.self])
    let context = try place.context()
    let bella = context.insert(Farm.Cow.self), dora = context.insert(Farm.Cow.self), ann = context.insert(Farm.Farmer.self)
    (bella.name, bella.milk, bella.tag, bella.owner) = ("Bella", 21.5, 7, ann)
    (dora.name, dora.milk, dora.tag) = ("Dora", 0, 8)
    bella.calves.append(dora)
    try context.save()
    let snapshot = try ManagedObjectSnapshot(bella)
    (bella.name, bella.milk, bella.tag, bella.owner) = ("Bell", 1, 9, nil)
    try context.save()

    // To another context's object; what the snapshot has not, such as the calves, stays.
    let other = try place.context(), found = try #require(try other.fetchOne(Farm.Cow.self) { $0.tag == 9 })
    try snapshot.apply(to: found)
    #expect(found.name == "Bella" && found.milk == 21.5 && found.tag == 7 && found.owner?.objectID == ann.objectID && found.hasChanges)
    try other.save()
    #expect(try place.context().count(Farm.Cow.self) { $0.name == "Bella" && $0.tag == 7 } == 1 && found.calves.count == 1)

    // A snapshot in which only one property is set changes only this one.
    var milk = ManagedObjectSnapshot<Farm.Cow>()
    milk.milk = 30
    try milk.apply(to: found)
    #expect(found.milk == 30 && found.name == "Bella" && found.tag == 7)
  }

  /// The bug: null counted as missing, so the object kept its composite attribute.
  @Test(arguments: TestStore.allCases) func aDecodedSnapshotWithoutACompositeValueClearsIt(_ store: TestStore) throws {
    let place = try store.makePlace(model: Farm.model.get(), classes: [Farm.Animal.self, Farm.Cow.self, Farm.Farmer.self])
    let context = try place.context(), bella = context.insert(Farm.Cow.self)
    (bella.milk, bella.field) = (1, Farm.Field(name: "north", corner: Farm.Point(x: 1, y: 2)))
    try context.save()
    func apply(_ text: String) throws {
      try JSONDecoder().decode(ManagedObjectSnapshot<Farm.Cow>.self, from: Data(text.utf8)).apply(to: bella)
    }
    try apply(#"{"tag": 7}"#)
    #expect(bella.tag == 7 && bella.field?.name == "north" && bella.field?.corner?.y == 2)
    try apply(#"{"field": {"corner": null}}"#)
    #expect(bella.field?.name == "north" && bella.field?.corner == nil)
    try apply(#"{"field": null}"#)
    #expect(bella.field == nil && bella.tag == 7)
    try context.save()
    #expect(try place.context().count(Farm.Cow.self) { $0.field == nil && $0.tag == 7 } == 1)
  }

  @MainActor @Test func aContainerNeedsOnlyTheClassesThatNothingLeadsTo() throws {
    let container = try PersistentContainer(for: Farm.Cow.self, store: .memory())
    #expect(container.managedObjectModel.entities.map(\.name) == ["Animal", "Cow", "Farmer"])
    let farmer = container.viewContext.insert(Farm.Farmer.self)
    let cow = container.viewContext.insert(Farm.Cow.self)
    cow.owner = farmer
    #expect(Array(farmer.animals).map { $0 is Farm.Cow } == [true])
  }

  @Test func configurationsContainTheClassesThatNameThem() throws {
    final class Kept: ManagedObject {
      override class var declaration: EntityDeclaration? {
        var declaration = EntityDeclaration(Kept.self, [])
        declaration.configurations = ["local", "shared"]
        return declaration
      }
    }
    final class Local: ManagedObject {
      override class var declaration: EntityDeclaration? {
        var declaration = EntityDeclaration(Local.self, [])
        declaration.configurations = ["local"]
        return declaration
      }
    }
    let model = try ManagedObjectModel.declared(by: [Kept.self, Local.self])
    #expect(model.configurations == [ConfigurationDescription("local", ["Kept", "Local"]), ConfigurationDescription("shared", ["Kept"])])
  }

  /// The bug: the model lacked the composite if only a transient attribute used it, so the classes that are generated for such a model made
  /// none.
  @Test func aTransientCompositeAttributeHasTheCompositeOfItsStruct() throws {
    final class Marker: ManagedObject {
      var spot: Farm.Field? {
        get { self[property: TransientIndex(0)] }
        set { self[property: TransientIndex(0)] = newValue }
      }
      override class var declaration: EntityDeclaration? {
        EntityDeclaration(
          Marker.self, [.transient("spot", \Marker.spot, .type(.composite), .setting(\.compositeName, "Field"), .userInfo(["a": "b"]))])
      }
    }
    let model = try ManagedObjectModel.declared(by: [Marker.self])
    var spot = AttributeDescription.composite("spot", "Field", isOptional: true)
    (spot.isTransient, spot.userInfo) = (true, ["a": "b"])
    #expect(model.declarations.map(\.attributes) == [[spot]])
    #expect(try model.composites == Farm.model.get().composites)

    let container = try PersistentContainer(for: Marker.self, store: .memory()), context = container.newBackgroundContext()
    context.performAndWait { context in
      let marker = context.insert(Marker.self)
      marker.spot = Farm.Field(name: "north", corner: Farm.Point(x: 1, y: 2))
      #expect(marker.spot?.corner?.y == 2)
    }
  }

  // MARK: Mistakes

  private func reason(_ classes: ManagedObject.Type...) throws -> String {
    let error = try #require(throws: PersistenceError.self) { try ManagedObjectModel.declared(by: classes) }
    #expect(error.code == .classMismatch)
    return "\(error)"
  }

  @Test func aClassWithoutADeclarationIsNamedWithTheReasonWhyItIsNeeded() throws {
    final class Plain: ManagedObject {}
    final class Pointing: ManagedObject {
      var plain: Plain? { self[property: 0] }
      override class var declaration: EntityDeclaration? { EntityDeclaration(Pointing.self, [.property("plain", \Pointing.plain)]) }
    }
    class Above: ManagedObject {
      override class var declaration: EntityDeclaration? { EntityDeclaration(Above.self, []) }
    }
    final class Below: Above {}
    let text = try reason(Pointing.self, Below.self)
    #expect(text.contains("Plain: Pointing.plain has objects of it, and it has no declaration of its own."))
    #expect(text.contains("Below: It was passed, and it has no declaration of its own."))
  }

  private enum Other {
    /// Named as another struct, with other elements.
    struct Point: CompositeAttributeValue {
      var depth = 0.0
      static let elements: CompositeElements<Point> = [.attribute("depth", \.depth)]
    }
  }

  @Test func twoStructsWithOneNameAreNamed() throws {
    final class Placed: ManagedObject {
      var here: Farm.Point? { self[property: 0] }
      var there: Other.Point? { self[property: 2] }
      override class var declaration: EntityDeclaration? {
        EntityDeclaration(Placed.self, [.property("here", \Placed.here), .property("there", \Placed.there)])
      }
    }
    #expect(try reason(Placed.self).contains("Placed.there: Another struct is also named Point and has other elements."))
  }

  private enum Shop {
    struct Settings: Codable { var a = 0 }
  }

  private enum House {
    struct Settings: Codable { var b = "" }
  }

  @Test func twoCodableTypesWithOneNameAreNamed() throws {
    final class Owner: ManagedObject {
      var house: House.Settings? { self[property: TransformableSlot(0)] }
      var same: House.Settings? { self[property: TransformableSlot(1)] }
      var shop: Shop.Settings? { self[property: TransformableSlot(2)] }
      override class var declaration: EntityDeclaration? {
        EntityDeclaration(
          Owner.self, [.codable("house", \Owner.house), .codable("same", \Owner.same), .codable("shop", \Owner.shop)])
      }
    }
    let text = try reason(Owner.self)
    #expect(text.contains("Owner.shop: Another Codable type is also named Settings.") && !text.contains("Owner.same"))
  }

  final class Knot: ManagedObject {
    var first: Knot? { self[property: 0] }
    var second: Knot? { self[property: 1] }
    var third: Knot? { self[property: 2] }
    var number: Int { self[property: 3] }
    override class var declaration: EntityDeclaration? {
      EntityDeclaration(
        Knot.self,
        [
          .property("first", \Knot.first, inverse: \Knot.second), .property("second", \Knot.second),
          .property("third", \Knot.third, inverse: \Knot.second), .property("number", \Knot.number),
        ])
    }
  }

  @Test func twoRelationshipsWithOneInverseAreNamed() throws {
    #expect(try reason(Knot.self).contains("Knot.third: Its inverse Knot.second is the inverse of another relationship."))
  }

  final class Fence: ManagedObject {
    var post: Post? { self[property: 0] }
    override class var declaration: EntityDeclaration? {
      EntityDeclaration(Fence.self, [.property("post", \Fence.post, inverse: \Post.computed)])
    }
  }

  final class Post: ManagedObject {
    /// Of the type of a relationship, but none.
    var computed: Fence? { nil }
    override class var declaration: EntityDeclaration? { EntityDeclaration(Post.self, []) }
  }

  @Test func anInverseThatIsNotDeclaredIsNamed() throws {
    #expect(try reason(Fence.self).contains("Fence.post: Its inverse isn't a relationship that Post declares."))
  }

  @Test func anAccessorWithAnotherSlotIsFoundWhenTheClassIsBound() throws {
    final class Wrong: ManagedObject {
      var age: Int {
        get { self[property: 1] }
        set { self[property: 0] = newValue }
      }
      var size: Int {
        get { self[property: 1] }
        set { self[property: 1] = newValue }
      }
      override class var declaration: EntityDeclaration? {
        EntityDeclaration(Wrong.self, [.property("age", \Wrong.age), .property("size", \Wrong.size)])
      }
    }
    let model = try ManagedObjectModel.declared(by: [Wrong.self])
    let error = try #require(throws: PersistenceError.self) {
      try ManagedObjectContext(coordinator: PersistentStoreCoordinator(model: model, store: .memory()), classes: [Wrong.self])
    }
    #expect("\(error)".contains("Wrong.age: Its getter uses slot 1, not 0."))
  }

  @Test func aCompositeAttributeThatIsUniqueByItselfIsRefused() throws {
    struct Spot: CompositeAttributeValue {
      var depth = 0.0
      static let elements: CompositeElements<Spot> = [.attribute("depth", \.depth)]
    }
    final class Dive: ManagedObject {
      var spot: Spot? { self[property: SlotIndex(0)] }
      override class var declaration: EntityDeclaration? {
        EntityDeclaration(Dive.self, [.property("spot", \Dive.spot, .unique)])
      }
    }
    let error = try #require(throws: PersistenceError.self) { try ManagedObjectModel.declared(by: [Dive.self]) }
    #expect("\(error)".contains("Dive.spot: A composite attribute can't be unique by itself."))
  }

  @Test func elementsHaveRulesAndSettingsButAreNotUnique() throws {
    struct Spot: CompositeAttributeValue {
      var depth = 0.0
      static let elements: CompositeElements<Spot> = [.attribute("depth", \.depth, .range(0...11_000), .setting(\.isOptional, false))]
    }
    final class Dive: ManagedObject {
      var spot: Spot { self[property: SlotIndex(0)] }
      override class var declaration: EntityDeclaration? { EntityDeclaration(Dive.self, [.property("spot", \Dive.spot)]) }
    }
    let depth = AttributeDescription("depth", .double, validation: .range(.double(0), .double(11_000)))
    #expect(try ManagedObjectModel.declared(by: [Dive.self]).composites == [CompositeDescription("Spot", [depth])])

    struct Label: CompositeAttributeValue {
      var number = 0
      static let elements: CompositeElements<Label> = [.attribute("number", \.number, .unique)]
    }
    struct Cover: CompositeAttributeValue {
      var label: Label?
      static let elements: CompositeElements<Cover> = [.composite("label", \.label, .userInfo(["a": "b"]))]
    }
    final class Book: ManagedObject {
      var cover: Cover? { self[property: SlotIndex(0)] }
      override class var declaration: EntityDeclaration? { EntityDeclaration(Book.self, [.property("cover", \Book.cover)]) }
    }
    #expect(try reason(Book.self).contains("Book.cover: The element label.number can't be unique by itself."))
  }

  @Test func anOptionForOneBoundKeepsTheOtherBound() throws {
    struct Spot: CompositeAttributeValue {
      var depth = 0.0
      var label = ""
      static let elements: CompositeElements<Spot> = [
        .attribute("depth", \.depth, .range(1...), .range(...10), .setting(\.isOptional, false)),
        .attribute("label", \.label, .length(...8), .length(2...), .setting(\.isOptional, false)),
      ]
    }
    final class Dive: ManagedObject {
      var spot: Spot { self[property: SlotIndex(0)] }
      override class var declaration: EntityDeclaration? { EntityDeclaration(Dive.self, [.property("spot", \Dive.spot)]) }
    }
    let elements = [
      AttributeDescription("depth", .double, validation: .range(.double(1), .double(10))),
      AttributeDescription("label", .string, validation: .length(2, 8)),
    ]
    #expect(try ManagedObjectModel.declared(by: [Dive.self]).composites == [CompositeDescription("Spot", elements)])
  }

  @Test func aDefaultValueOfAnotherTypeIsAProblemOfTheModel() throws {
    final class Odd: ManagedObject {
      var age: Int { self[property: 0] }
      override class var declaration: EntityDeclaration? {
        EntityDeclaration(Odd.self, [.property("age", \Odd.age, .type(.integer16), default: 70_000)])
      }
    }
    let error = try #require(throws: ModelError.self) { try ManagedObjectModel.declared(by: [Odd.self]) }
    #expect(error.problems.map(\.path) == ["Odd.age"])
  }
}
