import HoldfastStore
import Testing

@testable import Holdfast

/// Deletions by a child. Its parent applies the delete rules, too, also to links that the child doesn't know.
@Suite struct ChildDeletionTests {
  /// What the parent has of the objects when the child deletes some.
  enum Knowledge: CaseIterable { case faults, lists, unsavedObjects }

  private static let lists = ["parts", "shared", "debts"]
  private static let references = ["shown", "kept", "lent"]

  private static let model: ManagedObjectModel = {
    do {
      return try ManagedObjectModel(entities: [
        EntityDescription(
          "Box",
          relationships: [
            .toMany("parts", to: "Item", inverse: nil, deleteRule: .cascade, isOrdered: true),
            .toMany("shared", to: "Item", inverse: "sharers", deleteRule: .cascade),
            .toMany("debts", to: "Item", inverse: nil, deleteRule: .deny),
            .toOne("shown", to: "Item", inverse: nil, deleteRule: .cascade),
            .toOne("kept", to: "Item", inverse: "keepers", deleteRule: .cascade),
            .toOne("lent", to: "Item", inverse: nil, deleteRule: .deny),
          ]),
        EntityDescription(
          "Item", attributes: [AttributeDescription("name", .string, isOptional: true)],
          relationships: [
            .toMany("sharers", to: "Box", inverse: "shared"), .toMany("keepers", to: "Box", inverse: "kept", isOrdered: true),
            .toMany("pieces", to: "Item", inverse: nil, deleteRule: .cascade, isOrdered: true),
            .toMany("notes", to: "Item", inverse: nil),
          ]),
        // A key of an item alone doesn't determine its entity.
        EntityDescription("SpecialItem", superentity: "Item"),
      ])
    } catch { fatalError("\(error)") }
  }()

  /// A box with an item in each of its relationships, and a child of a context.
  private struct Scene {
    let place: TestStore.Place
    let parent: ManagedObjectContext, child: ManagedObjectContext
    let box: ManagedObjectID, items: [ManagedObjectID]
    /// Keeps the lists of the parent.
    private let known: ManagedObject?

    init(_ store: TestStore, _ knowledge: Knowledge) throws {
      place = try store.makePlace(model: ChildDeletionTests.model, classes: [])
      let first = try place.context(), setup = knowledge == .unsavedObjects ? ManagedObjectContext(parent: first) : first
      let owner = try setup.insert(entityNamed: "Box")
      let made = try (0..<6).map { try setup.insert(entityNamed: $0 % 2 == 0 ? "Item" : "SpecialItem") }
      for (name, item) in zip(ChildDeletionTests.lists, made) { try owner.toMany(forKey: name).insert(item) }
      for (name, item) in zip(ChildDeletionTests.references, made[3...]) { try owner.setValue(.objectID(item.objectID), forKey: name) }
      try setup.save()
      (box, items) = (owner.objectID, made.map(\.objectID))
      parent = knowledge == .faults ? try place.context() : first
      known = knowledge == .lists ? owner : nil
      child = ManagedObjectContext(parent: parent)
    }

    func counts(_ context: ManagedObjectContext) throws -> [Int] {
      try ["Box", "Item"].map { try context.count(for: FetchRequest<ManagedObject>(entityName: $0)) }
    }
  }

  /// The bug: the delete rules of the parent followed links that the child had removed before it deleted their owner. So the objects were
  /// deleted as well, or the save of the parent was refused.
  @Test(arguments: TestStore.allCases, Knowledge.allCases)
  func objectsThatAChildHasRemovedFromAnOwnerBeforeItDeletesThatStay(_ store: TestStore, _ knowledge: Knowledge) throws {
    let scene = try Scene(store, knowledge), (parent, child) = (scene.parent, scene.child)
    let box = try child.existingObject(with: scene.box)
    for (name, item) in zip(Self.lists, scene.items) { try box.toMany(forKey: name).remove(child.existingObject(with: item)) }
    for name in Self.references { try box.setValue(.null, forKey: name) }
    child.delete(box)
    try child.save()
    for context in [child, parent] { #expect(try scene.counts(context) == [0, 6]) }
    try parent.save()
    #expect(try scene.counts(scene.place.context()) == [0, 6])
    withExtendedLifetime(scene) {}
  }

  /// Links that the child hasn't removed are followed by the rules of the child and of the parent.
  @Test(arguments: TestStore.allCases, Knowledge.allCases)
  func objectsThatAChildLeavesInADeletedOwnerAreDeletedWithIt(_ store: TestStore, _ knowledge: Knowledge) throws {
    let scene = try Scene(store, knowledge), (parent, child) = (scene.parent, scene.child)
    let box = try child.existingObject(with: scene.box)
    try box.toMany(forKey: "debts").remove(child.existingObject(with: scene.items[2]))
    try box.setValue(.null, forKey: "lent")
    child.delete(box)
    try child.save()
    for context in [child, parent] { #expect(try scene.counts(context) == [0, 2]) }
    parent.rollback()
    #expect(try scene.counts(parent) == (knowledge == .unsavedObjects ? [0, 0] : [1, 6]))
    withExtendedLifetime(scene) {}
  }

  /// The same over two levels: the grandchild's changes become those of the child, which it saves.
  @Test(arguments: TestStore.allCases, Knowledge.allCases)
  func objectsThatAGrandchildHasRemovedFromADeletedOwnerStay(_ store: TestStore, _ knowledge: Knowledge) throws {
    let scene = try Scene(store, knowledge), (parent, child) = (scene.parent, scene.child)
    let grandchild = ManagedObjectContext(parent: child), box = try grandchild.existingObject(with: scene.box)
    for (name, item) in zip(Self.lists, scene.items) { try box.toMany(forKey: name).remove(grandchild.existingObject(with: item)) }
    for name in Self.references { try box.setValue(.null, forKey: name) }
    grandchild.delete(box)
    for context in [grandchild, child, parent] { try context.save() }
    #expect(try scene.counts(scene.place.context()) == [0, 6])
    withExtendedLifetime(scene) {}
  }

  /// The bug: `onSave` reported an object that the parent had deleted, because it didn't have the former owner's list in memory.
  @Test(arguments: TestStore.allCases, [false, true])
  func anObjectThatAChildMovesFromADeletedOwnerToItselfStays(_ store: TestStore, _ isSaved: Bool) throws {
    let place = try store.makePlace(model: Self.model, classes: []), first = try place.context()
    let setup = isSaved ? first : ManagedObjectContext(parent: first)
    let saved = try (0..<3).map { _ in try setup.insert(entityNamed: "Item") }
    try saved[0].toMany(forKey: "pieces").insert(saved[1])
    try saved[0].toMany(forKey: "pieces").insert(saved[2])
    try saved[1].toMany(forKey: "notes").insert(saved[2])
    try setup.save()
    let parent = isSaved ? try place.context() : first, child = ManagedObjectContext(parent: parent)
    var saves: [ObjectChanges] = []
    let observation = child.onSave { _, changes in saves.append(changes) }
    let items = try saved.map { try child.existingObject(with: $0.objectID) }
    try items[0].toMany(forKey: "pieces").remove(items[1])
    try items[1].ordered(forKey: "pieces").insert(items[1], at: 0)
    child.delete(items[0])
    try child.save()
    observation.cancel()
    #expect(saves.map(\.updated) == [[items[1].objectID]])
    #expect(saves.map { Set($0.deleted) } == [[saved[0].objectID, saved[2].objectID]])
    for context in [child, parent] {
      let item = try context.existingObject(with: saved[1].objectID)
      #expect(try item.toMany(forKey: "pieces").map(\.objectID) == [item.objectID] && item.toMany(forKey: "notes").isEmpty)
      #expect(try context.count(for: FetchRequest<ManagedObject>(entityName: "Item")) == 1)
    }
    try parent.save()
    #expect(try place.context().count(for: FetchRequest<ManagedObject>(entityName: "Item")) == 1)
  }

  /// The bug: the reference that the deletion had cleared in the child replaced the one that the parent had set. If the child hadn't read
  /// the dog, the parent's reference stayed.
  @Test(arguments: TestStore.allCases, [false, true])
  func anOwnerThatTheParentHasSetStaysIfAChildDeletesTheFormerOne(_ store: TestStore, _ isRead: Bool) throws {
    let place = try store.makeKennelsOfTwo(), parent = try place.context(), child = ManagedObjectContext(parent: parent)
    let ann = try #require(try child.one(Person.self) { $0.name == "Ann" })
    let read = isRead ? try child.fetch(FetchRequest<Dog>()) : []
    let fido = try #require(try parent.one(Dog.self) { $0.name == "Fido" })
    fido.owner = try parent.one(Person.self) { $0.name == "Bob" }
    child.delete(ann)
    try child.save()
    #expect(fido.owner?.name == "Bob")
    #expect(try parent.one(Dog.self) { $0.name == "Rex" }.map { $0.owner == nil } == true)
    try parent.save()
    let saved = try place.context()
    #expect(try saved.one(Dog.self) { $0.name == "Fido" }?.owner?.name == "Bob")
    #expect(try saved.one(Person.self) { $0.name == "Bob" }?.dogs.map(\.name) == ["Fido"])
    withExtendedLifetime(read) {}
  }

  /// What the child clears itself is a change: its value wins over that of the parent.
  @Test(arguments: TestStore.allCases) func anOwnerThatAChildHasRemovedBeforeItDeletesHimIsNil(_ store: TestStore) throws {
    let place = try store.makeKennelsOfTwo(), parent = try place.context(), child = ManagedObjectContext(parent: parent)
    let mine = try #require(try child.one(Dog.self) { $0.name == "Fido" }), ann = try #require(mine.owner)
    let fido = try #require(try parent.one(Dog.self) { $0.name == "Fido" })
    fido.owner = try parent.one(Person.self) { $0.name == "Bob" }
    mine.owner = nil
    child.delete(ann)
    try child.save()
    #expect(fido.owner == nil)
    try parent.save()
    #expect(try place.context().one(Dog.self) { $0.name == "Fido" }.map { $0.owner == nil } == true)
  }
}
