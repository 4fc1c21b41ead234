import Testing

@testable import Holdfast

/// Properties by name: to-many relationships, and paths through them, on every store.
@Suite struct KeyTests {
  private func kennel(_ store: TestStore) throws -> TestStore.Place {
    let place = try store.makePlace(), context = try place.context()
    let ann = context.person("Ann", city: "Oslo"), bob = context.person("Bob")
    let fido = context.dog("Fido", age: 3, owner: ann), rex = context.dog("Rex", age: 5, owner: ann)
    context.dog("Argos", age: 9, owner: bob).friends.insert(fido)
    fido.friends.insert(rex)
    fido.collar = context.insert(Collar.self)
    try context.save()
    return place
  }

  /// The bug: the number was cut to the width of the attribute, so a snapshot gave another object a number that the program had not set.
  @Test(arguments: TestStore.withChild) func aNumberThatIsTooLargeForItsAttributeIsReadAsItWasSet(_ store: TestStore) throws {
    let context = try store.makePlace().context(), fido = context.dog("Fido", age: 3), rex = context.dog("Rex", age: 5)
    try context.save()
    fido.age = 70_000
    #expect(try fido.value(forKey: "age") == .int64(70_000) && fido.changedValues()["age"] == .int64(70_000))
    #expect(try fido.committedValues(forKeys: ["age"]) == ["age": .int16(3)])
    let snapshot = try ManagedObjectSnapshot(fido)
    #expect(snapshot.age == 70_000)
    #expect(try #require(throws: PersistenceError.self) { try snapshot.apply(to: rex) }.code == .wrongType)
    #expect(rex.age == 5)
    fido.age = -32_768
    #expect(try fido.value(forKey: "age") == .int16(-32_768))
    try context.save()
  }

  @Test(arguments: TestStore.allCases) func aToManyRelationshipGivesItsObjects(_ store: TestStore) throws {
    let context = try kennel(store).context()
    let ann = try #require(try context.one(Person.self) { $0.name == "Ann" })
    let dogs = try #require(try ann.value(forKey: "dogs").objects)
    #expect(Set(dogs) == Set(try context.fetch(FetchRequest<Dog> { $0.age < 9 })))
    #expect(try ann.value(forKey: "licences") == .objects([]))
    #expect(try ann.value(forKey: "licences").storeValue == nil && ann.value(forKey: "name").objects == nil)
    context.delete(dogs[0])
    #expect(try ann.value(forKey: "dogs") == .objects([dogs[1]]))
    let error = try #require(throws: PersistenceError.self) { try ann.value(forKey: "cats") }
    #expect(error.code == .unknownProperty && error.property == "cats" && error.coreDataCode == 1550)
  }

  @Test(arguments: TestStore.allCases) func settingAnArrayReplacesTheObjectsAndInversesFollow(_ store: TestStore) throws {
    let place = try kennel(store), context = try place.context()
    let dogs = try context.fetch(FetchRequest<Dog>(sortedBy: [.ascending(\.name)]))
    let (argos, fido, rex) = (dogs[0], dogs[1], dogs[2])
    let ann = try #require(try context.one(Person.self) { $0.name == "Ann" }),
      bob = try #require(try context.one(Person.self) { $0.name == "Bob" })
    try ann.setValue([argos, rex, argos], forKey: "dogs")
    #expect(Set(ann.dogs) == [argos, rex] && bob.dogs.isEmpty && fido.owner == nil && argos.owner === ann)
    try fido.setValue([argos, fido], forKey: "friends")
    #expect(Set(fido.friends) == [argos, fido] && rex.friendOf.isEmpty)
    // The value of one object's property can be assigned to another object.
    try rex.setValue(fido.value(forKey: "friends"), forKey: "friends")
    try rex.setValue(fido.value(forKey: "age"), forKey: "age")
    #expect(Set(rex.friends) == [argos, fido] && rex.age == 3)
    try fido.setValue([], forKeyPath: "friends")
    try context.save()
    let last = try place.context()
    #expect(Set(try #require(try last.one(Person.self) { $0.name == "Ann" }).dogs.map(\.name)) == ["Argos", "Rex"])
  }

  @Test(arguments: TestStore.allCases) func anArrayGivesAnOrderedRelationshipItsOrder(_ store: TestStore) throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription("List", relationships: [.toMany("entries", to: "Entry", inverse: "list", isOrdered: true)]),
      EntityDescription(
        "Entry", attributes: [AttributeDescription("number", .integer64)], relationships: [.toOne("list", to: "List", inverse: "entries")]),
    ])
    let place = try store.makePlace(model: model, classes: []), context = try place.context()
    let list = try context.insert(entityNamed: "List")
    let entries = try (0..<5).map { number in
      let entry = try context.insert(entityNamed: "Entry")
      try entry.setValue(.int64(Int64(number)), forKey: "number")
      return entry
    }
    try list.setValue([4, 2, 0, 2].map { entries[$0] }, forKey: "entries")
    #expect(try list.value(forKey: "entries") == .objects([4, 2, 0].map { entries[$0] }))
    try context.save()
    try list.setValue([1, 0, 4].map { entries[$0] }, forKey: "entries")
    try context.save()
    let found = try #require(try place.context().fetch(FetchRequest<ManagedObject>(entityName: "List")).first)
    #expect(try found.value(forKeyPath: "entries.number").storeValues == [.int64(1), .int64(0), .int64(4)])
    #expect(try found.value(forKeyPath: "entries.list.entries.@count") == .list(Array(repeating: .single(.int64(3)), count: 3)))
  }

  @Test(arguments: TestStore.allCases) func whatDoesNotFitIsRefusedAndChangesNothing(_ store: TestStore) throws {
    let place = try kennel(store), context = try place.context(), other = try place.context()
    let ann = try #require(try context.one(Person.self) { $0.name == "Ann" }),
      fido = try #require(try context.one(Dog.self) { $0.name == "Fido" })
    let foreign = try #require(try other.one(Dog.self) { $0.name == "Fido" })
    let rex = try #require(try context.one(Dog.self) { $0.name == "Rex" })
    context.delete(rex)
    try context.save()
    func code(_ body: () throws -> Void) throws -> PersistenceError.Code {
      try #require(throws: PersistenceError.self, performing: body).code
    }
    #expect(try code { try ann.setValue(.string("x"), forKey: "dogs") } == .wrongType)
    #expect(try code { try ann.setValue(.null, forKey: "dogs") } == .wrongType)
    #expect(try code { try ann.setValue([fido], forKey: "name") } == .wrongType)
    #expect(try code { try fido.setValue([ann], forKey: "owner") } == .wrongType)
    #expect(try code { try ann.setValue([fido, ann], forKey: "dogs") } == .wrongType)
    #expect(try code { try ann.setValue([foreign], forKey: "dogs") } == .foreignObject)
    #expect(try code { try ann.setValue([rex], forKey: "dogs") } == .foreignObject)
    #expect(try code { try ann.setValue([], forKey: "cats") } == .unknownProperty)
    #expect(try code { try ann.setValue([], forKeyPath: "dogs.friends") } == .unknownProperty)
    #expect(try code { try ann.setValue(ann.value(forKeyPath: "dogs.name"), forKey: "dogs") } == .wrongType)
    #expect(Array(ann.dogs) == [fido] && !context.hasChanges)
  }

  /// The bug: the relationship was set to a new fault with the key of the deleted object, and the next save stored that key.
  @Test(arguments: TestStore.withChild) func aDeletedObjectIsRefusedAsADestination(_ store: TestStore) throws {
    let context = try store.makePlace().context(), ann = context.person("Ann"), bob = context.person("Bob")
    let fido = context.dog("Fido", owner: bob)
    try context.save()
    let id = ann.objectID
    context.delete(ann)
    try context.save()
    let byObject = try #require(throws: PersistenceError.self) { try fido.setValue(ann, forKey: "owner") }
    let byID = try #require(throws: PersistenceError.self) { try fido.setValue(.objectID(id), forKey: "owner") }
    for error in [byObject, byID] {
      #expect(error.code == .missingObject && error.property == "owner" && error.objectID == fido.objectID && error.objectIDs == [id])
    }
    #expect(fido.owner === bob && !context.hasChanges)
  }

  @Test(arguments: TestStore.allCases) func pathsThroughToManyRelationshipsCollect(_ store: TestStore) throws {
    let context = try kennel(store).context()
    let ann = try #require(try context.one(Person.self) { $0.name == "Ann" }),
      fido = try #require(try context.one(Dog.self) { $0.name == "Fido" })
    #expect(Set(try #require(try ann.value(forKeyPath: "dogs.name").storeValues)) == [.string("Fido"), .string("Rex")])
    #expect(try ann.value(forKeyPath: "dogs.@count") == .int64(2) && fido.value(forKeyPath: "owner.dogs.@count") == .int64(2))
    #expect(try fido.value(forKeyPath: "owner.dogs").objects?.count == 2)
    #expect(try fido.value(forKeyPath: "friends.owner.city") == .list([.single(.string("Oslo"))]))
    // A list for each object on the path; null where a path ends early.
    #expect(try fido.value(forKeyPath: "friendOf.friends.name") == .list([.list([.single(.string("Fido"))])]))
    #expect(try fido.value(forKeyPath: "friends.collar.color") == .list([.single(.null)]))
    #expect(try fido.value(forKeyPath: "vaccinations.kind") == .list([]) && fido.value(forKeyPath: "vaccinations.@count") == .int64(0))
    for path in ["dogs.nothing", "dogs.name.x", "licences.nothing", "licences.holder.nothing", "dogs.@sum", "dogs.@count.x", "name.@count"]
    {
      let error = try #require(throws: PersistenceError.self) { try ann.value(forKeyPath: path) }
      #expect(error.code == .unknownProperty && error.property == path, "\(path)")
    }
  }
}
