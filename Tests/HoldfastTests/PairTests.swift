import HoldfastStoreConformance
import Testing

@testable import Holdfast

/// One-to-one relationships are stored in two rows. They must agree after every save, whenever a context has read each end.
@Suite struct PairTests {
  @Test(arguments: TestStore.withChild) func aMergedOneToOneLinkIsTakenFromTheObjectThatAnotherContextGaveItTo(_ store: TestStore) throws {
    let place = try store.makePlace()
    do {
      let setup = try place.context()
      setup.dog("Fido")
      setup.dog("Rex")
      _ = setup.insert(Collar.self)
      try setup.save()
    }
    do {
      let a = try place.context(), b = try place.context()
      let fido = try #require(try a.one(Dog.self) { $0.name == "Fido" }), collar = try #require(try a.fetch(FetchRequest<Collar>()).first)
      fido.collar = collar
      let rex = try #require(try b.one(Dog.self) { $0.name == "Rex" })
      rex.collar = try b.fetch(FetchRequest<Collar>()).first
      try b.save()
      #expect(throws: PersistenceError.self) { try a.save() }
      try a.refreshAllObjects()
      try a.save()
    }
    try place.close()
    let last = try place.context()
    let fido = try #require(try last.one(Dog.self) { $0.name == "Fido" }), rex = try #require(try last.one(Dog.self) { $0.name == "Rex" })
    #expect(fido.collar?.dog === fido)
    #expect(rex.collar == nil)
  }

  @Test(arguments: TestStore.withChild) func aStaleContextThatTakesAPartnerLeavesNoHalfLink(_ store: TestStore) throws {
    let place = try store.makePlace()
    do {
      let setup = try place.context()
      let fido = setup.dog("Fido")
      setup.dog("Rex")
      fido.collar = setup.insert(Collar.self)
      try setup.save()
    }
    do {
      let a = try place.context()
      let rex = try #require(try a.one(Dog.self) { $0.name == "Rex" }), collar = try #require(try a.fetch(FetchRequest<Collar>()).first)
      rex.collar = collar
      // Reverts only one of the two dogs.
      let fido = try #require(try a.one(Dog.self) { $0.name == "Fido" })
      #expect(fido.collar == nil)
      try a.refresh(fido, mergeChanges: false)
      try a.save()
    }
    try place.close()
    let last = try place.context()
    let fido = try #require(try last.one(Dog.self) { $0.name == "Fido" }), rex = try #require(try last.one(Dog.self) { $0.name == "Rex" })
    for dog in [fido, rex] { if let collar = dog.collar { #expect(collar.dog === dog, "\(dog.name)") } }
  }

  /// Another context deletes the other end while one end gets a new partner.
  @Test(arguments: TestStore.withChild, [true, false]) func aPartnerDeletedByAnotherContextLeavesNoHalfLink(
    _ store: TestStore, _ deletesDog: Bool
  ) throws {
    let place = try store.makePlace()
    do {
      let setup = try place.context()
      setup.dog("Fido").collar = setup.insert(Collar.self)
      setup.dog("Rex")
      try setup.save()
    }
    do {
      let a = try place.context(), b = try place.context()
      let rex = try #require(try a.one(Dog.self) { $0.name == "Rex" }), collar = try #require(try a.fetch(FetchRequest<Collar>()).first)
      rex.collar = collar
      if deletesDog {
        b.delete(try #require(try b.one(Dog.self) { $0.name == "Fido" }))
      } else {
        b.delete(try #require(try b.fetch(FetchRequest<Collar>()).first))
      }
      try b.save()
      do { try a.save() } catch {
        do { try a.refreshAllObjects(); try a.save() } catch { a.rollback() }
      }
    }
    try place.close()
    let last = try place.context()
    for dog in try last.fetch(FetchRequest<Dog>()) { if let collar = dog.collar { #expect(collar.dog === dog, "\(dog.name)") } }
  }
  @Test(arguments: TestStore.withChild, [true, false]) func clearingAOneToOneLinkOfWhichOneEndIsStaleClearsBothOrConflicts(
    _ store: TestStore, _ clears: Bool
  ) throws {
    let place = try store.makePlace()
    do {
      let setup = try place.context()
      setup.dog("Fido")
      setup.dog("Rex")
      _ = setup.insert(Collar.self)
      try setup.save()
    }
    do {
      let a = try place.context(), b = try place.context()
      let fido = try #require(try a.one(Dog.self) { $0.name == "Fido" }), rex = try #require(try a.one(Dog.self) { $0.name == "Rex" })
      #expect(fido.collar == nil && rex.collar == nil)
      try b.one(Dog.self) { $0.name == "Fido" }?.collar = b.fetch(FetchRequest<Collar>()).first
      try b.save()
      let collar = try #require(try a.fetch(FetchRequest<Collar>()).first)
      #expect(collar.dog === fido)
      if clears { collar.dog = nil } else { collar.dog = rex }
      do { try a.save() } catch let error as PersistenceError { #expect(error.code == .conflict) }
    }
    try place.close()
    let last = try place.context()
    for dog in try last.fetch(FetchRequest<Dog>()) { if let collar = dog.collar { #expect(collar.dog === dog, "\(dog.name)") } }
  }

  /// The other end has the version that this context read, so the save compares it although it doesn't change.
  @Test(arguments: TestStore.withChild) func theOtherEndOfALinkIsComparedAlsoWhenItDoesNotChange(_ store: TestStore) throws {
    let place = try store.makePlace()
    do {
      let setup = try place.context()
      setup.dog("Fido")
      _ = setup.insert(Collar.self)
      try setup.save()
    }
    let a = try place.context(), b = try place.context()
    let fido = try #require(try a.one(Dog.self) { $0.name == "Fido" })
    #expect(fido.collar == nil)
    try b.one(Dog.self) { $0.name == "Fido" }?.collar = b.fetch(FetchRequest<Collar>()).first
    try b.save()
    let collar = try #require(try a.fetch(FetchRequest<Collar>()).first)
    collar.dog = nil
    let error = #expect(throws: PersistenceError.self) { try a.save() }
    #expect(error?.code == .conflict && error?.objectIDs == [fido.objectID])
    // The next attempt, with the saved values, removes the link at both ends.
    try a.refreshAllObjects()
    try a.save()
    let last = try place.context()
    #expect(try last.one(Dog.self) { $0.name == "Fido" }?.collar == nil)
    #expect(try last.fetch(FetchRequest<Collar>()).first?.dog == nil)
  }

  @Test(arguments: TestStore.withChild) func anObjectLinkedToItselfIsOnePairWithItself(_ store: TestStore) throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Node", relationships: [.toOne("next", to: "Node", inverse: "previous"), .toOne("previous", to: "Node", inverse: "next")])
    ])
    let place = try store.makePlace(model: model, classes: []), context = try place.context()
    let (a, b) = (try context.insert(entityNamed: "Node"), try context.insert(entityNamed: "Node"))
    let next = try #require(a.entity.relationship(named: "next")), previous = try #require(a.entity.relationship(named: "previous"))
    a.setToOne(next, a)
    try context.save()
    a.setToOne(next, b)
    try context.save()
    #expect(a.toOne(previous) == nil && b.toOne(previous) === a && b.toOne(next) == nil)
    b.setToOne(next, b)
    try context.save()
    try place.close()
    let last = try place.context()
    let nodes = try last.fetch(FetchRequest<ManagedObject>(entityName: "Node"))
    for node in nodes {
      if let other = node.toOne(next) { #expect(other.toOne(previous) === node) }
      if let other = node.toOne(previous) { #expect(other.toOne(next) === node) }
    }
    #expect(nodes.compactMap { $0.toOne(next) }.count == 1)
  }
}
