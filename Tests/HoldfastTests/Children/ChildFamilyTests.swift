import HoldfastStore
import Testing

@testable import Holdfast

/// Children of contexts with unread faults of superentities. Only the row of such a fault determines its entity.
@Suite struct ChildFamilyTests {
  /// The cat Tom, whose keeper is the head keeper Hedy; a context that has read neither, and its child.
  private struct Scene {
    let place: TestStore.Place
    let parent: ManagedObjectContext, child: ManagedObjectContext
    let tom: ManagedObjectID, hedy: ManagedObjectID

    init(_ store: TestStore) throws {
      place = try store.makePlace(model: Menagerie.model, classes: Menagerie.classes)
      let setup = try place.context(), keeper = setup.insert(HeadKeeper.self) { $0.name = "Hedy" }
      let cat = setup.animal(Cat.self, "Tom", keeper: keeper)
      try setup.save()
      (tom, hedy) = (cat.objectID, keeper.objectID)
      parent = try place.context()
      child = ManagedObjectContext(parent: parent)
    }

    /// A fault of the parent, made with an ID that names a superentity.
    func fault(_ id: ManagedObjectID, as name: String) throws -> ManagedObject {
      let uri = id.uriRepresentation.replacing("/\(id.entityName)/", with: "/\(name)/")
      let fault = try parent.object(with: try #require(ManagedObjectID(uriRepresentation: uri)))
      #expect(fault.isFault && fault.entity.name == name)
      return fault
    }

    func keeper(_ context: ManagedObjectContext) throws -> HeadKeeper { try #require(try context.fetch(FetchRequest<HeadKeeper>()).first) }
  }

  @Test(arguments: TestStore.allCases) func aChildFindsAnObjectThatItsParentHasAsAFaultOfASuperentity(_ store: TestStore) throws {
    let scene = try Scene(store), fault = try scene.fault(scene.tom, as: "Animal")
    let tom = try #require(try scene.child.existingObject(with: scene.tom) as? Cat)
    #expect(tom.name == "Tom" && tom.lives == 9)
    withExtendedLifetime(fault) {}
  }

  @Test(arguments: TestStore.allCases) func aChildChangesAnObjectThatItsParentHasAsAFaultOfASuperentity(_ store: TestStore) throws {
    let scene = try Scene(store), fault = try scene.fault(scene.tom, as: "Animal")
    let tom = try #require(try scene.child.fetch(FetchRequest<Cat>()).first)
    tom.lives = 8
    try scene.child.save()
    try scene.parent.save()
    #expect(try scene.place.context().fetch(FetchRequest<Cat>()).map(\.lives) == [8])
    withExtendedLifetime(fault) {}
  }

  @Test(arguments: TestStore.allCases) func aChildLinksAnObjectThatItsParentHasAsAFaultOfASuperentity(_ store: TestStore) throws {
    let scene = try Scene(store), fault = try scene.fault(scene.tom, as: "Animal")
    let visit = scene.child.insert(Visit.self) { $0.day = 7 }
    visit.animal = try scene.child.fetch(FetchRequest<Cat>()).first
    try scene.child.save()
    let same = try #require(try scene.parent.fetch(FetchRequest<Visit>()).first)
    #expect(same.animal is Cat && same.animal?.name == "Tom" && scene.parent.faultError == nil)
    try scene.parent.save()
    #expect(try scene.place.context().fetch(FetchRequest<Cat>()).first?.visits.map(\.day) == [7])
    withExtendedLifetime(fault) {}
  }

  /// The child reads the list from the parent, because the parent has added a bird to it.
  @Test(arguments: TestStore.allCases) func aListOfAChildHasAnObjectThatItsParentHasAsAFaultOfASuperentity(_ store: TestStore) throws {
    let scene = try Scene(store), fault = try scene.fault(scene.tom, as: "Animal")
    scene.parent.animal(Bird.self, "Robin", keeper: try scene.keeper(scene.parent))
    let animals = try scene.keeper(scene.child).animals
    #expect(animals.map(\.name).sorted() == ["Robin", "Tom"] && animals.contains { $0 is Cat })
    #expect(scene.child.faultError == nil)
    withExtendedLifetime(fault) {}
  }

  /// The child reads the lists of both keepers together: one from its parent, which has added a bird to it, and the other from the store.
  @Test(arguments: TestStore.allCases) func aListThatOnlyTheStoreHasContainsObjectsOfTheirOwnClasses(_ store: TestStore) throws {
    let place = try store.makePlace(model: Menagerie.model, classes: Menagerie.classes), setup = try place.context()
    for name in ["Ann", "Bob"] {
      let keeper = setup.insert(Keeper.self) { $0.name = name }
      setup.animal(Cat.self, "Tom of \(name)", keeper: keeper)
    }
    try setup.save()
    let parent = try place.context(), child = ManagedObjectContext(parent: parent)
    parent.animal(Bird.self, "Robin", keeper: try parent.one(Keeper.self) { $0.name == "Ann" })
    let keepers = try child.fetch(FetchRequest<Keeper>(sortedBy: [.ascending(\.name)]))
    let animals = keepers.map { keeper in keeper.animals.map { "\(type(of: $0)) \($0.name)" }.sorted() }
    #expect(animals == [["Bird Robin", "Cat Tom of Ann"], ["Cat Tom of Bob"]])
    #expect(child.faultError == nil)
  }

  /// The parent has recorded a link of the fault.
  @Test(arguments: TestStore.allCases) func aChildReadsTheListOfAnOwnerThatItsParentHasAsAFaultOfASuperentity(_ store: TestStore) throws {
    let scene = try Scene(store), fault = try #require(try scene.fault(scene.hedy, as: "Keeper") as? Keeper)
    scene.parent.animal(Bird.self, "Robin", keeper: fault)
    #expect(try scene.keeper(scene.child).animals.contains { $0.name == "Tom" })
    try scene.parent.save()
    #expect(try scene.keeper(scene.place.context()).animals.map(\.name).sorted() == ["Robin", "Tom"])
    withExtendedLifetime(fault) {}
  }

  /// The child renames the dog, which changes only the derived value of the walk.
  @Test(arguments: TestStore.allCases) func aDerivedValueIsShownInAParentWithAFaultOfASuperentity(_ store: TestStore) throws {
    let place = try store.park(), setup = try place.context(), dog = setup.make("Dog", ["name": .string("Rex")])
    let walk = setup.make("LongWalk", dog: dog)
    try setup.save()
    let parent = try place.context(), child = ManagedObjectContext(parent: parent)
    let uri = walk.objectID.uriRepresentation.replacing("/LongWalk/", with: "/Walk/")
    let fault = try parent.object(with: try #require(ManagedObjectID(uriRepresentation: uri)))
    #expect(fault.isFault && fault.entity.name == "Walk")
    let mine = try child.existingObject(with: dog.objectID)
    mine["name"] = .string("Max")
    try child.save()
    #expect(try parent.existingObject(with: walk.objectID)["dogName"] == .string("Max"))
    withExtendedLifetime(fault) {}
  }
}
