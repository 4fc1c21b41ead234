import Foundation
import HoldfastJSONStore
import HoldfastStore
import HoldfastStoreConformance
import Testing

@testable import Holdfast

/// The ends of a link may have been read at different times. A change of a many-to-many link changes both ends. This also holds if one end
/// was read before another context added or removed the link, and therefore records no change.
@Suite struct StaleEndTests {
  /// Two dogs in one context. One was read before a second context linked or unlinked them, the other after that.
  private struct Kennelmates {
    let context: ManagedObjectContext
    let stale: Dog
    let fresh: Dog
    /// The relationship of each dog that contains the other.
    let staleList: ToMany<Dog>
    let freshList: ToMany<Dog>

    /// - Parameters:
    ///   - cuts: whether this context removes the link that the second one added. Otherwise it adds the link that the second one removed.
    ///   - isNamingStale: whether the stale end is the one that names the links.
    init(_ place: TestStore.Place, cuts: Bool, isNamingStale: Bool) throws {
      let setup = try place.context()
      let fido = setup.dog("Fido"), rex = setup.dog("Rex")
      if !cuts { fido.friends.insert(rex) }
      try setup.save()
      context = try place.context()
      // Reads a list for each dog, not one request for both.
      context.firesFaultsInBatches = false
      let dogs = try context.fetch(FetchRequest<Dog>(sortedBy: [.ascending(\.name)]))
      stale = dogs[isNamingStale ? 0 : 1]
      fresh = dogs[isNamingStale ? 1 : 0]
      staleList = isNamingStale ? stale.friends : stale.friendOf
      #expect(staleList.count == (cuts ? 0 : 1))
      if cuts { fido.friends.insert(rex) } else { fido.friends.remove(rex) }
      try setup.save()
      try context.refresh(fresh, mergeChanges: false)
      freshList = isNamingStale ? fresh.friendOf : fresh.friends
    }
  }

  private static func versions(_ place: TestStore.Place) throws -> [RowVersion] {
    try place.context().fetch(FetchRequest<Dog>(sortedBy: [.ascending(\.name)])).map { $0.readRow.version }
  }

  @Test(arguments: TestStore.withChild, [(true, true), (true, false), (false, true), (false, false)])
  func aChangeOfALinkThatOneEndHasNotHeardOfIsAConflict(_ store: TestStore, _ way: (cuts: Bool, isNamingStale: Bool)) throws {
    let place = try store.makePlace()
    let dogs = try Kennelmates(place, cuts: way.cuts, isNamingStale: way.isNamingStale)
    #expect(dogs.freshList.count == (way.cuts ? 1 : 0))
    if way.cuts { dogs.freshList.remove(dogs.stale) } else { dogs.freshList.insert(dogs.stale) }
    let before = try Self.versions(place)
    let error = try #require(throws: PersistenceError.self) { try dogs.context.save() }
    #expect(error.code == .conflict && error.objectIDs == [dogs.stale.id])
    #expect(try Self.versions(place) == before)
    for id in error.objectIDs { try dogs.context.refresh(dogs.context.object(with: id), mergeChanges: true) }
    #expect(dogs.staleList.contains(dogs.fresh) == !way.cuts)
    try dogs.context.save()
    #expect(try Self.versions(place) == before.map(\.next))
    try place.close()
    let last = try place.context()
    let fido = try #require(try last.one(Dog.self) { $0.name == "Fido" }), rex = try #require(try last.one(Dog.self) { $0.name == "Rex" })
    #expect(fido.friends.contains(rex) == !way.cuts && rex.friendOf.contains(fido) == !way.cuts)
  }

  /// The stale end doesn't show that there is something to change, but the other one does.
  ///
  /// The bug: the change had no effect, so the save succeeded without it.
  @Test(arguments: TestStore.withChild, [(true, true), (true, false), (false, true), (false, false)])
  func aChangeAtTheEndThatHasNotHeardOfTheLinkIsAConflict(_ store: TestStore, _ way: (cuts: Bool, isNamingStale: Bool)) throws {
    let place = try store.makePlace()
    let dogs = try Kennelmates(place, cuts: way.cuts, isNamingStale: way.isNamingStale)
    #expect(dogs.freshList.count == (way.cuts ? 1 : 0))
    if way.cuts { dogs.staleList.remove(dogs.fresh) } else { dogs.staleList.insert(dogs.fresh) }
    #expect(dogs.freshList.contains(dogs.stale) == !way.cuts && dogs.staleList.contains(dogs.fresh) == !way.cuts)
    let error = try #require(throws: PersistenceError.self) { try dogs.context.save() }
    #expect(error.code == .conflict && error.objectIDs == [dogs.stale.id])
    for id in error.objectIDs { try dogs.context.refresh(dogs.context.object(with: id), mergeChanges: true) }
    try dogs.context.save()
    try place.close()
    let last = try place.context()
    let fido = try #require(try last.one(Dog.self) { $0.name == "Fido" }), rex = try #require(try last.one(Dog.self) { $0.name == "Rex" })
    #expect(fido.friends.contains(rex) == !way.cuts && rex.friendOf.contains(fido) == !way.cuts)
  }

  /// The object has left the list after that was read.
  ///
  /// The bug: adding the object had no effect, although it wasn't in the list any more.
  @Test(arguments: TestStore.withChild) func anObjectThatAStaleOrderedListContainsCanBeAdded(_ store: TestStore) throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription("List", relationships: [.toMany("items", to: "Item", inverse: "list", isOrdered: true)]),
      EntityDescription("Item", relationships: [.toOne("list", to: "List", inverse: "items")]),
    ])
    let place = try store.makePlace(model: model, classes: []), setup = try place.context()
    let list = try setup.insert(entityNamed: "List"), item = try setup.insert(entityNamed: "Item")
    try item.setValue(list, forKey: "list")
    try setup.save()
    let context = try place.context(), stale = try context.existingObject(with: list.objectID)
    let fresh = try context.existingObject(with: item.objectID), items = try stale.ordered(forKey: "items")
    #expect(Array(items) == [fresh])
    try item.setValue(StoreValue.null, forKey: "list")
    try setup.save()
    try context.refresh(fresh, mergeChanges: false)
    #expect(try fresh.value(forKey: "list").storeValue == .null)
    items.append(fresh)
    #expect(try fresh.value(forKey: "list").storeValue == .objectID(stale.objectID) && Array(items) == [fresh])
    context.mergePolicy = .mergeByPropertyObjectTrump
    try context.save()
    let id = list.objectID
    try place.close()
    let last = try place.context()
    #expect(try last.existingObject(with: id).ordered(forKey: "items").map(\.objectID) == [item.objectID])
  }

  @Test(arguments: TestStore.withChild, [(true, true), (true, false), (false, true), (false, false)])
  func aConflictOfAStaleEndCanBeTakenBack(_ store: TestStore, _ way: (cuts: Bool, isNamingStale: Bool)) throws {
    let place = try store.makePlace()
    let dogs = try Kennelmates(place, cuts: way.cuts, isNamingStale: way.isNamingStale)
    if way.cuts { dogs.freshList.remove(dogs.stale) } else { dogs.freshList.insert(dogs.stale) }
    #expect(throws: PersistenceError.self) { try dogs.context.save() }
    dogs.context.rollback()
    #expect(!dogs.context.hasChanges && dogs.freshList.contains(dogs.stale) == way.cuts)
    try dogs.context.refreshAllObjects()
    #expect(dogs.freshList.contains(dogs.stale) == way.cuts && dogs.staleList.contains(dogs.fresh) == way.cuts)
    try dogs.context.save()
  }

  /// An unread end records a removal as a change. The other end knows that there is nothing to change.
  @Test(arguments: TestStore.withChild, [true, false]) func whatTurnsOutToChangeNothingIsNotSaved(_ store: TestStore, _ inserts: Bool)
    throws
  {
    let place = try store.makePlace(), setup = try place.context()
    let pair = (setup.dog("Fido"), setup.dog("Rex"))
    if inserts { pair.0.friends.insert(pair.1) }
    try setup.save()
    let context = try place.context()
    context.firesFaultsInBatches = false
    let dogs = try context.fetch(FetchRequest<Dog>(sortedBy: [.ascending(\.name)])), (fido, rex) = (dogs[0], dogs[1])
    #expect(rex.friendOf.count == (inserts ? 1 : 0))
    if inserts { fido.friends.insert(rex) } else { fido.friends.remove(rex) }
    let before = try Self.versions(place)
    try context.save()
    #expect(try Self.versions(place) == before)
    #expect(fido.friends.contains(rex) == inserts && rex.friendOf.contains(fido) == inserts)
  }

  /// The end that adds the link was read before another context added it, and the list of the other end was read after that.
  @Test(arguments: TestStore.withChild, [true, false]) func aTargetThatAListHasAlreadyIsInItOnce(_ store: TestStore, _ oneToMany: Bool)
    throws
  {
    let place = try store.makePlace(), setup = try place.context()
    let pair = (setup.dog("Fido"), setup.dog("Rex")), owner = setup.person("Ann")
    setup.person("Bob")
    try setup.save()
    let context = try place.context()
    context.firesFaultsInBatches = false
    let dogs = try context.fetch(FetchRequest<Dog>(sortedBy: [.ascending(\.name)])), (fido, rex) = (dogs[0], dogs[1])
    #expect(fido.friends.isEmpty && fido.owner == nil)
    pair.0.friends.insert(pair.1)
    pair.0.owner = owner
    try setup.save()
    let ann = try context.fetch(FetchRequest<Person>(sortedBy: [.ascending(\.name)]))[0]
    let list = oneToMany ? ann.dogs.map(\.name) : rex.friendOf.map(\.name)
    #expect(list == ["Fido"])
    if oneToMany { fido.owner = ann } else { fido.friends.insert(rex) }
    #expect((oneToMany ? ann.dogs.map(\.name) : rex.friendOf.map(\.name)) == list)
    #expect((oneToMany ? ann.dogs.count : rex.friendOf.count) == 1)
    let error = try #require(throws: PersistenceError.self) { try context.save() }
    #expect(error.code == .conflict)
    try context.refreshAllObjects()
    try context.save()
    #expect((oneToMany ? ann.dogs.map(\.name) : rex.friendOf.map(\.name)) == list)
  }

  /// A save reads ordered targets for their order, and counted ones for their number. It may then find that a change has no effect. That
  /// must apply to both ends. Otherwise one would be written without comparing the version of the other, which may be deleted.
  @Test(arguments: TestStore.withChild, [(true, true), (true, false), (false, true), (false, false)])
  func whatASaveFindsToChangeNothingIsSavedAtNeitherEnd(_ store: TestStore, _ way: (isOrdered: Bool, inserts: Bool)) throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Node", attributes: [AttributeDescription("n", .integer16)],
        relationships: [
          .toMany("links", to: "Node", inverse: "order", maxCount: way.isOrdered ? 0 : 9),
          .toMany("order", to: "Node", inverse: "links", isOrdered: way.isOrdered),
        ])
    ])
    for isNaming in [true, false] {
      let place = try store.makePlace(model: model, classes: [])
      func nodes(_ context: ManagedObjectContext) throws -> [ManagedObject] {
        try context.fetch(FetchRequest<ManagedObject>(entityName: "Node")).sorted { $0.objectKey < $1.objectKey }
      }
      let setup = try place.context()
      let pair = try (1...2).map { n in
        let node = try setup.insert(entityNamed: "Node")
        try node.setValue(.int16(Int16(n)), forKey: "n")
        return node
      }
      if way.inserts { try pair[0].toMany(forKey: "links").insert(pair[1]) }
      try setup.save()
      let context = try place.context()
      context.firesFaultsInBatches = false
      let read = try nodes(context)
      let (list, other) = isNaming ? (try read[0].toMany(forKey: "links"), read[1]) : (try read[1].toMany(forKey: "order"), read[0])
      if way.inserts { list.insert(other) } else { list.remove(other) }
      let before = try nodes(place.context()).map { $0.readRow.version }
      try context.save()
      #expect(try nodes(place.context()).map { $0.readRow.version } == before)
      #expect(try read[0].toMany(forKey: "links").contains(read[1]) == way.inserts)
      #expect(try read[1].toMany(forKey: "order").contains(read[0]) == way.inserts)
      #expect(!context.hasChanges)
    }
  }

  /// Another process accepts a file as a later version only if both ends of a changed link have new versions.
  @Test(arguments: [true, false], [true, false])
  func aFileSavedByAStaleContextIsALaterVersionForAnotherProcess(_ cuts: Bool, _ isNamingStale: Bool) throws {
    let place = try TestStore.json.makePlace()
    let dogs = try Kennelmates(place, cuts: cuts, isNamingStale: isNamingStale)
    let file = place.folder.appendingPathComponent("Kennel.json"), copy = place.folder.appendingPathComponent("Copy.json")
    try FileManager.default.copyItem(at: file, to: copy)
    let other = try ManagedObjectContext(
      coordinator: PersistentStoreCoordinator(model: place.model, store: .json(at: copy.path)), classes: place.classes)
    let fido = try #require(try other.one(Dog.self) { $0.name == "Fido" })
    #expect(fido.friends.count == (cuts ? 1 : 0))
    if cuts { dogs.freshList.remove(dogs.stale) } else { dogs.freshList.insert(dogs.stale) }
    do { try dogs.context.save() } catch let error as PersistenceError where error.code == .conflict {
      try dogs.context.refreshAllObjects()
      try dogs.context.save()
    }
    try Data(contentsOf: file).write(to: copy, options: .atomic)
    other.dog("Laika")
    try other.save()
    try other.refreshAllObjects()
    #expect(fido.friends.count == (cuts ? 0 : 1))
  }

  /// A relationship that is its own inverse has each link from both ends. One of them was read before another context added the link.
  @Test(arguments: TestStore.withChild, [true, false])
  func aLinkToItsOwnKindIsCutAtBothEndsAlsoWhenOneHasNotHeardOfIt(_ store: TestStore, _ isOrdered: Bool) throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Node", attributes: [AttributeDescription("n", .integer16)],
        relationships: [.toMany("peers", to: "Node", inverse: "peers", isOrdered: isOrdered)])
    ])
    let place = try store.makePlace(model: model, classes: [])
    func node(_ n: Int16, _ context: ManagedObjectContext) throws -> ManagedObject {
      let all = try context.fetch(FetchRequest<ManagedObject>(entityName: "Node"))
      return try #require(try all.first { try $0.value(forKey: "n").storeValue == .int16(n) })
    }
    func peers(_ n: Int16, _ context: ManagedObjectContext) throws -> [ManagedObject] {
      Array(try node(n, context).toMany(forKey: "peers"))
    }
    do {
      let setup = try place.context()
      for n in [1, 2] as [Int16] { try setup.insert(entityNamed: "Node").setValue(.int16(n), forKey: "n") }
      try setup.save()
    }
    do {
      let (a, b) = (try place.context(), try place.context())
      a.firesFaultsInBatches = false
      let first = try node(1, a)
      #expect(try first.toMany(forKey: "peers").isEmpty)
      try node(1, b).toMany(forKey: "peers").insert(node(2, b))
      try b.save()
      let second = try node(2, a)
      try a.refresh(second, mergeChanges: false)
      #expect(try second.toMany(forKey: "peers").contains(first))
      try second.toMany(forKey: "peers").remove(first)
      let error = try #require(throws: PersistenceError.self) { try a.save() }
      #expect(error.code == .conflict && error.objectIDs == [first.id])
      try a.refreshAllObjects()
      try a.save()
    }
    try place.close()
    let last = try place.context()
    #expect(try peers(1, last).isEmpty && peers(2, last).isEmpty)
  }
}
