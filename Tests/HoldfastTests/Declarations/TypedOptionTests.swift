import FoundationEssentials
import Holdfast
import HoldfastMemoryStore
import Testing

/// Options of attributes with key paths and transformers instead of names.
@Suite struct TypedOptionTests {
  class Named: ManagedObject {
    enum Slots { static let name: SlotIndex = 0 }
    var name: String {
      get { self[property: Slots.name] }
      set { self[property: Slots.name] = newValue }
    }
    override class var declaration: EntityDeclaration? {
      EntityDeclaration(Named.self, [.property("name", \Named.name, default: "")])
    }
  }

  final class Dog: Named {
    enum Slots {
      static let heard: SlotIndex = 1, minutes: SlotIndex = 2, owner: SlotIndex = 3, ownerName: SlotIndex = 4, walkCount: SlotIndex = 5
      static let walks = ToManyIndex(0)
    }
    var heard: String? { self[property: Slots.heard] }
    var minutes: Int? { self[property: Slots.minutes] }
    var owner: Owner? {
      get { self[property: Slots.owner] }
      set { self[property: Slots.owner] = newValue }
    }
    var ownerName: String? { self[property: Slots.ownerName] }
    var walkCount: Int? { self[property: Slots.walkCount] }
    var walks: ToMany<Walk> { self[property: Slots.walks] }
    override class var declaration: EntityDeclaration? {
      EntityDeclaration(
        Dog.self,
        [
          .property("walks", \Dog.walks, inverse: \Walk.dog), .property("owner", \Dog.owner),
          // An inherited property.
          .property("heard", \Dog.heard, .derived(copyOf: \Dog.name, as: .uppercase)),
          .property("ownerName", \Dog.ownerName, .derived(copyOf: \Owner.name, through: \Dog.owner)),
          .property("walkCount", \Dog.walkCount, .derived(countOf: \Dog.walks)),
          .property("minutes", \Dog.minutes, .derived(sumOf: \Walk.minutes, through: \Dog.walks)),
        ])
    }
  }

  final class Owner: ManagedObject {
    enum Slots {
      static let name: SlotIndex = 0
      static let dogs = ToManyIndex(0)
    }
    var name: String {
      get { self[property: Slots.name] }
      set { self[property: Slots.name] = newValue }
    }
    var dogs: ToMany<Dog> { self[property: Slots.dogs] }
    override class var declaration: EntityDeclaration? {
      EntityDeclaration(
        Owner.self, [.property("name", \Owner.name, default: ""), .property("dogs", \Owner.dogs, inverse: \Dog.owner)])
    }
  }

  final class Walk: ManagedObject {
    enum Slots { static let dog: SlotIndex = 0, minutes: SlotIndex = 1, ownerHeard: SlotIndex = 2 }
    var dog: Dog? {
      get { self[property: Slots.dog] }
      set { self[property: Slots.dog] = newValue }
    }
    var minutes: Int {
      get { self[property: Slots.minutes] }
      set { self[property: Slots.minutes] = newValue }
    }
    var ownerHeard: String? { self[property: Slots.ownerHeard] }
    override class var declaration: EntityDeclaration? {
      EntityDeclaration(
        Walk.self,
        [
          .property("dog", \Walk.dog), .property("minutes", \Walk.minutes, default: 0),
          .property("ownerHeard", \Walk.ownerHeard, .derived(copyOf: \Dog.name, through: \Walk.dog, as: .canonical)),
        ])
    }
  }

  @Test func keyPathsOfDerivedAttributesAreExpressionsInTheModel() throws {
    let derived = try ManagedObjectModel.declared(by: [Dog.self]).declarations.flatMap(\.attributes).filter(\.isDerived)
    #expect(
      Set(derived.map { "\($0.name) = \($0.derivationExpression ?? "")" }) == [
        "heard = uppercase:(name)", "ownerName = owner.name", "walkCount = walks.@count", "minutes = walks.minutes.@sum",
        "ownerHeard = canonical:(dog.name)",
      ])
    #expect(!derived.contains { !$0.isOptional })
  }

  /// The bug: the default value wasn't of the attribute's type, so there was no model.
  @Test func aTextIsTheDefaultValueOfAURI() throws {
    final class Page: ManagedObject {
      var address: String {
        get { self[property: 0] }
        set { self[property: 0] = newValue }
      }
      override class var declaration: EntityDeclaration? {
        EntityDeclaration(Page.self, [.property("address", \Page.address, .type(.uri), default: "about:blank")])
      }
    }
    let model = try ManagedObjectModel.declared(by: [Page.self])
    #expect(model.declarations.flatMap(\.attributes).map(\.defaultValue) == [.uri("about:blank")])
  }

  @Test(arguments: TestStore.allCases) func savesComputeDerivedAttributesWithKeyPaths(_ store: TestStore) throws {
    let classes: [ManagedObject.Type] = [Named.self, Dog.self, Owner.self, Walk.self]
    let place = try store.makePlace(model: .declared(by: classes), classes: classes), context = try place.context()
    let ann = context.insert(Owner.self), fido = context.insert(Dog.self), walk = context.insert(Walk.self)
    (ann.name, fido.name, fido.owner, walk.minutes, walk.dog) = ("Ann", "Fido", ann, 40, fido)
    try context.save()
    #expect(fido.heard == "FIDO" && fido.ownerName == "Ann" && fido.walkCount == 1 && fido.minutes == 40 && walk.ownerHeard == "fido")
  }

  @Test func aDerivedAttributeOfAComputedPropertyIsRefused() throws {
    final class Hound: ManagedObject {
      var shout: String { "" }
      var heard: String? { self[property: 0] }
      override class var declaration: EntityDeclaration? {
        EntityDeclaration(Hound.self, [.property("heard", \Hound.heard, .derived(copyOf: \Hound.shout))])
      }
    }
    let error = try #require(throws: ModelError.self) { try ManagedObjectModel.declared(by: [Hound.self]) }
    #expect(error.problems.map(\.path) == ["Hound.heard"])
    #expect(error.problems.first?.reason.contains("none of the properties listed in Hound.properties") == true)
  }

  // MARK: Transformers

  final class Tile: ManagedObject {
    var colour: Colour? {
      get { self[property: TransformableSlot(0)] }
      set { self[property: TransformableSlot(0)] = newValue }
    }
    override class var declaration: EntityDeclaration? {
      EntityDeclaration(Tile.self, [.transformable("colour", \Tile.colour, .transformable(by: ColourTransformer()))])
    }
  }

  @Test func aContainerRegistersTheTransformerInADeclaration() throws {
    let container = try PersistentContainer(for: Tile.self, store: .memory()), red = Colour(red: 255, green: 0, blue: 0)
    try container.withContext { context in
      context.insert(Tile.self).colour = red
      try context.save()
    }
    #expect(try container.newContext().fetch(Tile.self).map(\.colour) == [red])
    #expect(container.managedObjectModel.declarations.flatMap(\.attributes).map(\.valueTransformerName) == ["ColourTransformer"])
  }

  private struct Failure: Error {}

  private enum Shop {
    struct Coder: AttributeTransformer {
      func data(from value: Int) throws -> Data { throw Failure() }
      func value(from data: Data) throws -> Int { throw Failure() }
    }
  }

  private enum House {
    struct Coder: AttributeTransformer {
      func data(from value: Int) throws -> Data { throw Failure() }
      func value(from data: Data) throws -> Int { throw Failure() }
    }
  }

  @Test func twoTransformersWithOneNameAreNamed() throws {
    final class Owner: ManagedObject {
      var house: Int? { self[property: TransformableSlot(0)] }
      var same: Int? { self[property: TransformableSlot(1)] }
      var shop: Int? { self[property: TransformableSlot(2)] }
      override class var declaration: EntityDeclaration? {
        EntityDeclaration(
          Owner.self,
          [
            .transformable("house", \Owner.house, .transformable(by: House.Coder())),
            .transformable("same", \Owner.same, .transformable(by: House.Coder())),
            .transformable("shop", \Owner.shop, .transformable(by: Shop.Coder())),
          ])
      }
    }
    let error = try #require(throws: PersistenceError.self) { try ManagedObjectModel.declared(by: [Owner.self]) }
    #expect("\(error)".contains("Owner.shop: Another transformer is also named Coder.") && !"\(error)".contains("Owner.same"))
  }

  private struct Shifted: AttributeTransformer {
    var offset: UInt8
    var reporting: @Sendable () -> Void = {}
    func data(from value: UInt8) throws -> Data { Data([value &+ offset]) }
    func value(from data: Data) throws -> UInt8 { (data.first ?? 0) &- offset }
  }

  /// The bug: the attribute `second` was encoded with the settings of `first`, in silence.
  @Test func twoTransformersOfOneTypeWithDifferentSettingsAreRefused() throws {
    final class Owner: ManagedObject {
      var first: UInt8? { self[property: TransformableSlot(0)] }
      var list: [String]? { self[property: TransformableSlot(1)] }
      var names: [String]? { self[property: TransformableSlot(2)] }
      var same: UInt8? { self[property: TransformableSlot(3)] }
      var second: UInt8? { self[property: TransformableSlot(4)] }
      override class var declaration: EntityDeclaration? {
        EntityDeclaration(
          Owner.self,
          [
            .transformable("first", \Owner.first, .transformable(by: Shifted(offset: 1))),
            .transformable("list", \Owner.list, .transformable(by: CodableTransformer<[String]>(.propertyList))),
            .transformable("names", \Owner.names, .transformable(by: CodableTransformer<[String]>())),
            .transformable("same", \Owner.same, .transformable(by: Shifted(offset: 1))),
            .transformable("second", \Owner.second, .transformable(by: Shifted(offset: 2))),
          ])
      }
    }
    let error = try #require(throws: PersistenceError.self) { try ManagedObjectModel.declared(by: [Owner.self]) }
    #expect("\(error)".contains("Owner.second: Another attribute has a Shifted with other settings."))
    #expect("\(error)".contains("Owner.names: Another attribute has a CodableTransformer<Array<String>> with other settings."))
    #expect(!"\(error)".contains("Owner.same"))
  }
}
