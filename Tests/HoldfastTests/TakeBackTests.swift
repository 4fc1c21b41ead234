import HoldfastStoreConformance
import Testing

@testable import Holdfast

/// Reverting changes of relationships separately for each end.
@Suite struct TakeBackTests {
  /// The bug: the objects lost their owner, so that the next save was refused if they need one.
  @Test(arguments: TestStore.withChild) func objectsThatADiscardedNewObjectHasTakenReturnToTheirOwners(_ store: TestStore) throws {
    let place = try store.makePlace(), setup = try place.context(), fidoThere = setup.dog("Fido")
    fidoThere.collar = setup.insert(Collar.self)
    let vaccinationThere = setup.insert(Vaccination.self)
    vaccinationThere.kind = "rabies"
    vaccinationThere.dog = fidoThere
    try setup.save()
    let context = try place.context(), fido = try #require(try context.fetchOne(Dog.self) { $0.name == "Fido" })
    let vaccination = try #require(fido.vaccinations.first), collar = try #require(fido.collar)
    let new = context.dog("New"), unsaved = context.insert(Vaccination.self)
    new.vaccinations.formUnion([vaccination, unsaved])
    new.collar = collar
    #expect(fido.vaccinations.isEmpty && fido.collar == nil && new.vaccinations.count == 2)
    try context.discardChanges(of: [new.objectID])
    #expect(vaccination.dog === fido && Array(fido.vaccinations) == [vaccination])
    #expect(collar.dog === fido && fido.collar === collar && unsaved.dog == nil)
    context.delete(unsaved)
    try context.save()
    #expect(vaccination.dog === fido && Array(fido.vaccinations) == [vaccination] && fido.collar === collar && new.isInaccessible)
    let saved = try place.context(), dogs = try saved.fetch(Dog.self)
    #expect(dogs.map(\.name) == ["Fido"] && dogs.first?.vaccinations.map(\.kind) == ["rabies"] && dogs.first?.collar != nil)
  }

  /// The same for an object that is discarded because its properties couldn't be set.
  @Test(arguments: TestStore.withChild) func anInsertionThatFailsTakesNoObjectsFromOthers(_ store: TestStore) throws {
    struct Refusal: Error {}
    let place = try store.makePlace(), setup = try place.context(), fidoThere = setup.dog("Fido", owner: setup.person("Ann"))
    fidoThere.collar = setup.insert(Collar.self)
    try setup.save()
    let context = try place.context(), fido = try #require(try context.fetchOne(Dog.self) { $0.name == "Fido" })
    let collar = try #require(fido.collar), ann = try #require(fido.owner)
    #expect(throws: Refusal.self) {
      try context.insert(Dog.self) { new in
        new.owner = ann
        new.collar = collar
        throw Refusal()
      }
    }
    #expect(throws: Refusal.self) {
      try context.insert(Person.self) { new in
        new.dogs.insert(fido)
        throw Refusal()
      }
    }
    #expect(fido.collar === collar && collar.dog === fido && fido.owner === ann && Array(ann.dogs) == [fido])
    try context.save()
    let saved = try place.context(), dogs = try saved.fetch(Dog.self)
    #expect(dogs.map(\.name) == ["Fido"] && dogs.first?.collar != nil && dogs.first?.owner?.name == "Ann")
  }

  /// Objects of different entities can have the same key. The bug: the deleted dogs lost their delete rules.
  @Test(arguments: TestStore.withChild) func deletionsThatAreDiscardedKeepTheDeleteRulesOfOtherEntities(_ store: TestStore) throws {
    let place = try store.makePlace(), context = try place.context()
    let people = (1...3).map { context.person("Person \($0)") }, dogs = (1...3).map { context.dog("Dog \($0)") }
    for dog in dogs {
      dog.collar = context.insert(Collar.self)
      let vaccination = context.insert(Vaccination.self)
      vaccination.kind = "rabies"
      vaccination.dog = dog
    }
    try context.save()
    for person in people { context.delete(person) }
    for dog in dogs { context.delete(dog) }
    try context.discardChanges(of: people.map(\.objectID))
    try context.save()
    let saved = try place.context()
    #expect(try saved.count(for: FetchRequest<Person>()) == 3 && saved.count(for: FetchRequest<Dog>()) == 0)
    #expect(try saved.count(for: FetchRequest<Collar>()) == 0 && saved.count(for: FetchRequest<Vaccination>()) == 0)
  }

  @Test(arguments: TestStore.withChild, [true, false]) func takingBackBothEndsOfALinkLeavesNone(_ store: TestStore, _ oneToMany: Bool)
    throws
  {
    let place = try store.makePlace(), setup = try place.context()
    setup.dog("Fido")
    setup.dog("Rex")
    setup.person("Ann")
    try setup.save()
    let context = try place.context()
    let fido = try #require(try context.one(Dog.self) { $0.name == "Fido" }),
      rex = try #require(try context.one(Dog.self) { $0.name == "Rex" })
    let ann = try #require(try context.one(Person.self) { $0.name == "Ann" })
    if oneToMany { fido.owner = ann } else { fido.friends.insert(rex) }
    for object in context.updatedObjects { try context.refresh(object, mergeChanges: false) }
    #expect(fido.owner == nil && ann.dogs.isEmpty && fido.friends.isEmpty && rex.friendOf.isEmpty)
    try context.save()
    let last = try place.context()
    #expect(try last.one(Dog.self) { $0.name == "Fido" }?.owner == nil)
    #expect(try last.one(Dog.self) { $0.name == "Fido" }?.friends.count == 0)
  }
}

/// Merging saved values into ordered relationships with pending changes.
@Suite struct MergeOrderTests {
  @Test(arguments: TestStore.withChild, [true, false]) func aMergingRefreshKeepsTheOrderOfAddedTargetsAfterARemoval(
    _ store: TestStore, _ oneToMany: Bool
  ) throws {
    let place = try store.makePlace(model: OrderAndRefreshTests.model, classes: [Album.self, Track.self, Genre.self])
    do {
      let setup = try place.context(), a = setup.insert(Album.self)
      a.name = "A"
      try setup.save()
    }
    let context = try place.context(), a = try #require(try context.one(Album.self) { $0.name == "A" })
    if oneToMany {
      let tracks = "xyz".map { letter in
        let t = context.insert(Track.self); t.title = String(letter); return t
      }
      for t in tracks { a.tracks.append(t) }
      a.tracks.remove(tracks[0])
      #expect(a.tracks.map(\.title) == ["y", "z"])
      try context.refresh(a, mergeChanges: true)
      #expect(a.tracks.map(\.title) == ["y", "z"])
    } else {
      let genres = "xyz".map { letter in
        let g = context.insert(Genre.self); g.name = String(letter); return g
      }
      for g in genres { a.genres.append(g) }
      a.genres.remove(genres[0])
      #expect(a.genres.map(\.name) == ["y", "z"])
      try context.refresh(a, mergeChanges: true)
      #expect(a.genres.map(\.name) == ["y", "z"])
    }
    try context.save()
    let last = try #require(try place.context().one(Album.self) { $0.name == "A" })
    #expect(oneToMany ? last.tracks.map(\.title) == ["y", "z"] : last.genres.map(\.name) == ["y", "z"])
  }
}
