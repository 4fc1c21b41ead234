import HoldfastStore
import HoldfastStoreConformance
import Testing

@testable import Holdfast

/// Objects whose rows are deleted. No operation on them traps, and saves report the problem. On every store.
@Suite struct InaccessibleTests {
  private struct Scene {
    let place: TestStore.Place
    let context: ManagedObjectContext
    let fido: Dog
    let ann: Person
  }

  /// A context with Fido as a fault, or with his row, after another context has deleted him.
  private func scene(_ store: TestStore, isFault: Bool) throws -> Scene {
    let place = try store.makePlace(), first = try place.context()
    let ann = first.person("Ann"), dog = first.dog("Fido", age: 3, owner: ann)
    dog.friends.insert(first.dog("Rex"))
    dog.collar = first.insert(Collar.self)
    try first.save()
    let context = try place.context()
    let fido = try #require(isFault ? context.object(with: dog.objectID) as? Dog : context.one(Dog.self) { $0.name == "Fido" })
    let person = try #require(try context.one(Person.self) { $0.name == "Ann" })
    first.delete(dog)
    try first.save()
    #expect(fido.isFault == isFault)
    return Scene(place: place, context: context, fido: fido, ann: person)
  }

  @Test(arguments: TestStore.allCases) func everyPropertyOfAFaultWithoutRowIsNil(_ store: TestStore) throws {
    let scene = try scene(store, isFault: true), fido = scene.fido
    #expect(fido.name == "" && fido.age == 0 && fido.weight == nil && fido.owner == nil && fido.collar == nil)
    #expect(fido.friends.isEmpty && Array(fido.friendOf).isEmpty && !fido.friends.contains(fido))
    #expect(try fido.value(forKey: "name") == .null && fido.value(forKeyPath: "owner.name") == .null)
    #expect(try fido.value(forKeyPath: "friends.@count") == .int64(0) && fido.changedValues().isEmpty)
    #expect(try fido.committedValues(forKeys: ["name", "owner"]) == ["name": .null, "owner": .null])
    #expect(fido.isInaccessible && !fido.isFault && !fido.hasChanges)
    #expect((scene.context.faultError as? PersistenceError)?.code == .missingObject)
    #expect(throws: PersistenceError.self) { try scene.context.existingObject(with: fido.objectID) }
  }

  /// A house whose links `guest`, to the superentity Animal, and `cat` lead to the same deleted cat.
  private struct EmptyHouse {
    let context: ManagedObjectContext
    let house: ManagedObject
    /// The object that the link to the superentity has made. Only its row would show its entity.
    let guest: ManagedObject

    init(_ store: TestStore) throws {
      let model = try ManagedObjectModel(entities: [
        EntityDescription("Animal", attributes: [AttributeDescription("name", .string, isOptional: true)]),
        EntityDescription("Cat", superentity: "Animal"),
        EntityDescription("House", relationships: [.toOne("guest", to: "Animal", inverse: nil), .toOne("cat", to: "Cat", inverse: nil)]),
      ])
      let place = try store.makePlace(model: model, classes: []), first = try place.context(), second = try place.context()
      let tom = try first.insert(entityNamed: "Cat"), original = try first.insert(entityNamed: "House")
      try first.save()
      let copy = try second.existingObject(with: original.objectID)
      for name in ["guest", "cat"] { try copy.setValue(StoreValue.objectID(tom.objectID), forKey: name) }
      first.delete(tom)
      try first.save()
      try second.save()
      context = try place.context()
      house = try context.existingObject(with: original.objectID)
      let link = try #require(house.entity.relationship(named: "guest"))
      guest = try #require(house.toOne(link))
      #expect(guest.entity.name == "Animal")
    }
  }

  @Test(arguments: TestStore.allCases) func aDeletedObjectCanBeTheDestinationOfLinksToItsEntityAndItsSuperentity(_ store: TestStore) throws
  {
    let scene = try EmptyHouse(store), context = scene.context
    for name in ["cat", "guest"] { #expect(try scene.house.value(forKeyPath: "\(name).name") == .null) }
    #expect((context.faultError as? PersistenceError)?.code == .missingObject, "\(String(describing: context.faultError))")
    context.acknowledgeFaultErrors()
    try scene.house.setValue(StoreValue.null, forKey: "cat")
    try context.save()
  }

  @Test(arguments: TestStore.allCases) func anObjectThatIsDeletedByItsSuperentityIsNilForLinksToItsEntity(_ store: TestStore) throws {
    let scene = try EmptyHouse(store), context = scene.context
    context.delete(scene.guest)
    #expect(try scene.house.value(forKeyPath: "cat.name") == .null)
    #expect(context.faultError == nil, "\(String(describing: context.faultError))")
  }

  /// The operations on an object.
  enum Deed: String, CaseIterable, Sendable {
    case setNumber, setText, setNil, setToOne, clearToOne, addLink, removeLink, addFromTheOtherSide, setByName, delete, deleteOwner
  }

  private func perform(_ deed: Deed, _ scene: Scene) throws {
    let fido = scene.fido, rex = try #require(try scene.context.one(Dog.self) { $0.name == "Rex" })
    switch deed {
    case .setNumber: fido.age = 4
    case .setText: fido.notes = "a text that is long enough to need some room of its own, wherever that is"
    case .setNil: fido.weight = nil
    case .setToOne: fido.owner = scene.context.person("Bob")
    case .clearToOne: fido.owner = nil
    case .addLink: fido.friends.insert(rex)
    case .removeLink: fido.friends.remove(rex)
    case .addFromTheOtherSide: scene.ann.dogs.insert(fido)
    case .setByName:
      try fido.setValue(.string("x"), forKey: "name")
      try fido.setValue([rex, fido], forKey: "friendOf")
    case .delete: scene.context.delete(fido)
    case .deleteOwner: scene.context.delete(scene.ann)
    }
  }

  @Test(arguments: TestStore.allCases, Deed.allCases) func whateverIsDoneWithItNothingTraps(_ store: TestStore, _ deed: Deed) throws {
    for isFault in [true, false] {
      let scene = try scene(store, isFault: isFault), context = scene.context
      try perform(deed, scene)
      try context.processPendingChanges()
      _ = (scene.fido.name, scene.fido.owner?.name, scene.fido.friends.count, scene.fido.collar?.color, scene.fido.description)
      _ = try context.fetch(FetchRequest<Dog> { $0.age > 0 && $0.owner.name == "Ann" })
      // Either the object has nothing to save, or the save reports that it is deleted and changes nothing.
      do {
        try context.save()
      } catch let error as PersistenceError {
        #expect(error.code == .conflict && !error.objectIDs.isEmpty, "\(deed): \(error)")
        #expect(context.hasChanges)
      }
      try context.refresh(scene.fido, mergeChanges: false)
      context.rollback()
      #expect(!context.hasChanges)
      try context.save()
      let last = try scene.place.context()
      #expect(try last.count(for: FetchRequest<Dog> { $0.name == "Fido" }) == 0 && last.count(for: FetchRequest<Dog>()) == 1)
    }
  }

  /// The bug: the ordered relationship ignored the object, which was saved without its list.
  @Test(arguments: TestStore.allCases) func anObjectAddedToItsOrderedRelationshipIsLinked(_ store: TestStore) throws {
    for isFault in [true, false] {
      let lists = try Lists(store, ["a"]), first = try lists.place.context(), context = try lists.place.context()
      let list = try isFault ? context.object(with: lists.id) : context.existingObject(with: lists.id)
      first.delete(try first.existingObject(with: lists.id))
      try first.save()
      let item = try Lists.newItem("b", context)
      try list.ordered(forKey: "items").append(item)
      #expect(try item.value(forKey: "list") == .objectID(lists.id) && list.isUpdated)
      context.rollback()
      #expect(!context.hasChanges)
    }
  }

  /// A change of a deleted object is refused as a conflict, with its ID.
  @Test(arguments: TestStore.allCases, [Deed.setNumber, .setText, .setToOne, .addLink])
  func savingItsChangesIsAConflict(_ store: TestStore, _ deed: Deed) throws {
    for isFault in [true, false] {
      let scene = try scene(store, isFault: isFault)
      try perform(deed, scene)
      let error = try #require(throws: PersistenceError.self) { try scene.context.save() }
      #expect(error.code == .conflict && error.coreDataCode == 133020 && error.objectIDs.contains(scene.fido.objectID))
      let last = try scene.place.context()
      #expect(try last.count(for: FetchRequest<Dog>()) == 1 && last.count(for: FetchRequest<Person>()) == 1)
    }
  }

  /// So a program can discard the changes that the error names, and save all others.
  @Test(arguments: TestStore.allCases) func theConflictAlsoNamesTheObjectsThatAnotherContextHasChanged(_ store: TestStore) throws {
    for isFault in [true, false] {
      let scene = try scene(store, isFault: isFault), context = scene.context
      let rex = try #require(try context.one(Dog.self) { $0.name == "Rex" }), other = try scene.place.context()
      #expect(rex.age == 1)
      try #require(try other.one(Dog.self) { $0.name == "Rex" }).age = 8
      try other.save()
      (scene.fido.age, rex.age, scene.ann.name) = (4, 9, "Anna")
      let error = try #require(throws: PersistenceError.self) { try context.save() }
      #expect(error.code == .conflict && Set(error.objectIDs) == [scene.fido.objectID, rex.objectID])
      #expect(error.objectIDs.count == 2)
      try context.discardChanges(of: error.objectIDs)
      try context.save()
      let last = try scene.place.context()
      #expect(try last.fetch(FetchRequest<Person>()).map(\.name) == ["Anna"] && last.fetch(FetchRequest<Dog>()).map(\.age) == [8])
    }
  }

  @Test(arguments: TestStore.allCases) func theConflictAlsoNamesUnchangedObjectsWhoseConflictsAreDetected(_ store: TestStore) throws {
    let scene = try scene(store, isFault: true), context = scene.context, other = try scene.place.context()
    try context.detectConflicts(for: scene.ann)
    try #require(try other.one(Person.self) { $0.name == "Ann" }).city = "Ulm"
    try other.save()
    scene.fido.age = 4
    let error = try #require(throws: PersistenceError.self) { try context.save() }
    #expect(error.code == .conflict && error.objectIDs == [scene.fido.objectID, scene.ann.objectID])
  }

  /// The row of a deleted object has no relationships, so delete rules find nothing. Fetches still work. The save reports the objects that
  /// another context has deleted: this one, or those that its rules would have deleted.
  @Test(arguments: TestStore.allCases) func deletingItIsAConflictThatTheSaveReports(_ store: TestStore) throws {
    for isFault in [true, false] {
      let scene = try scene(store, isFault: isFault)
      scene.context.delete(scene.fido)
      try scene.context.processPendingChanges()
      #expect(try scene.context.fetch(FetchRequest<Dog>()).map(\.name) == ["Rex"])
      let error = try #require(throws: PersistenceError.self) { try scene.context.save() }
      #expect(error.code == .conflict && !error.objectIDs.isEmpty)
      if isFault { #expect(error.objectIDs == [scene.fido.objectID]) }
      scene.context.rollback()
      try scene.context.save()
    }
  }

  /// A context with Fido's row, and with Ann, the other end of a link, as a fault, after another context has deleted her.
  private func leadingToGone(_ store: TestStore) throws -> (context: ManagedObjectContext, fido: Dog, ann: ManagedObjectID) {
    let place = try store.makePlace(), first = try place.context()
    let ann = first.person("Ann")
    first.dog("Fido", owner: ann)
    first.person("Bob")
    try first.save()
    let context = try place.context(), fido = try #require(try context.one(Dog.self) { $0.name == "Fido" })
    #expect(fido.age == 1)
    first.delete(ann)
    try first.save()
    return (context, fido, ann.objectID)
  }

  /// Removing a link to a deleted object changes that object as well. Fetches omit it, and the save reports it.
  @Test(arguments: TestStore.allCases) func fetchesWorkAfterALinkToItWasCleared(_ store: TestStore) throws {
    let (context, fido, ann) = try leadingToGone(store)
    fido.owner = nil
    for _ in 0..<2 {
      #expect(try context.fetch(FetchRequest<Person>()).map(\.name) == ["Bob"])
      #expect(try context.count(for: FetchRequest<Person> { $0.name != "Bob" && $0.dogs.count == 0 }) == 0)
      #expect(try context.count(for: FetchRequest<Dog> { $0.owner.name == "Ann" }) == 0)
      #expect(context.faultError == nil)
    }
    let error = try #require(throws: PersistenceError.self) { try context.save() }
    #expect(error.code == .conflict && error.objectIDs.contains(ann))
    context.rollback()
    fido.age = 7
    #expect(try context.fetch(FetchRequest<Person>()).map(\.name) == ["Bob"])
  }

  /// A query about a link clears it in rows that point to objects being deleted. One of those rows may be deleted itself.
  @Test(arguments: TestStore.allCases) func fetchesWorkWhenAnObjectWithALinkToADeletedOneIsDeleted(_ store: TestStore) throws {
    let place = try store.makePlace(), first = try place.context()
    let ann = first.person("Ann"), gone = first.dog("Rex", owner: ann)
    first.dog("Fido", owner: ann)
    try first.save()
    let context = try place.context(), same = try #require(try context.one(Person.self) { $0.name == "Ann" })
    #expect(same.dogs.count == 2)
    first.delete(gone)
    try first.save()
    context.delete(same)
    #expect(try context.fetch(FetchRequest<Dog> { $0.owner.name != "Ann" }).map(\.name) == ["Fido"])
    #expect(context.faultError == nil)
    try context.save()
    #expect(try place.context().fetch(FetchRequest<Dog>()).map(\.owner) == [nil])
  }
}
