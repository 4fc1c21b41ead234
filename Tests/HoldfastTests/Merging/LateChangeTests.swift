import HoldfastStore
import HoldfastStoreConformance
import Testing

@testable import Holdfast

/// Changes of objects that others have removed from the context.
@Suite struct LateChangeTests {
  enum Change: CaseIterable {
    case attribute, toOne, toMany, destination, member, friend, listed

    /// Changes a removed dog, or links one that is left with it.
    func make(_ removed: Dog, _ rest: Dog, _ owner: Person) {
      switch self {
      case .attribute: removed.age = 9
      case .toOne: removed.owner = owner
      case .toMany: removed.friends.insert(rest)
      case .destination: rest.collar?.dog = removed
      case .member: owner.dogs.insert(removed)
      case .friend: rest.friends.insert(removed)
      case .listed: rest.owner?.dogs.insert(removed)
      }
    }
  }

  /// - Parameter wasChanged: Whether the removed object had changes, which the policy discards.
  @Test(arguments: TestStore.withChild, [false, true])
  func theNextSaveThrowsIfAnObjectWasChangedAfterOthersDeletedIt(_ store: TestStore, _ wasChanged: Bool) throws {
    for change in Change.allCases {
      let place = try store.makePlace(), setup = try place.context()
      let comment = Comment(rawValue: "\(change)")
      let fido = setup.dog("Fido", age: 3), rex = setup.dog("Rex")
      rex.collar = setup.insert(Collar.self)
      rex.owner = setup.person("Bob")
      _ = (fido, setup.person("Ann"))
      try setup.save()
      let (ours, theirs) = try place.twoContexts(.mergeByPropertyStoreTrump)
      ours.automaticallyMergesChanges = true
      let removed = try #require(try ours.one(Dog.self) { $0.name == "Fido" })
      let rest = try #require(try ours.one(Dog.self) { $0.name == "Rex" })
      let ann = try #require(try ours.one(Person.self) { $0.name == "Ann" })
      #expect(rest.collar?.dog === rest && rest.owner?.name == "Bob" && removed.age == 3, comment)
      if wasChanged { removed.age = 4 }
      theirs.delete(try #require(try theirs.one(Dog.self) { $0.name == "Fido" }))
      try theirs.save()
      try ours.processPendingChanges()
      #expect(removed.isInaccessible && !ours.hasChanges, comment)

      change.make(removed, rest, ann)
      #expect(ours.hasChanges, comment)
      let error = #expect(throws: PersistenceError.self) { try ours.save() }
      #expect(error?.code == .lostChanges && error?.objectID == removed.id, comment)
      ours.rollback()
      #expect(!ours.hasChanges && !removed.hasChanges && rest.collar?.dog === rest && rest.friends.isEmpty && ann.dogs.isEmpty, comment)
      #expect(removed.isInaccessible && removed.age == 0 && removed.owner == nil, comment)

      change.make(removed, rest, ann)
      let second = #expect(throws: PersistenceError.self) { try ours.save() }
      #expect(second?.code == .lostChanges && second?.objectID == removed.id, comment)
      ours.rollback()
      #expect(!ours.hasChanges && rest.collar?.dog === rest && rest.friends.isEmpty && ann.dogs.isEmpty, comment)
      rest.age = 5
      try ours.save()
      try place.close()
      let saved = try place.context()
      #expect(try saved.fetch(Dog.self).map(\.age) == [5], comment)
      #expect(try saved.one(Dog.self) { $0.name == "Rex" }?.collar != nil, comment)
    }
  }

  /// Its callback fetches, rolls back or resets, depending on a value.
  private final class Trip: ManagedObject {
    var usage: Int {
      get { self[0] }
      set { self[0] = newValue }
    }
    override func prepareForDeletion() {
      let context = managedObjectContext
      switch usage {
      case 0: #expect(throws: Never.self) { _ = try context.fetch(FetchRequest<Trip>()) }
      case 1: context.rollback()
      default: context.reset()
      }
    }
    override class var properties: [PropertyBinding] { [.attribute("usage", \Trip.usage, slot: 0)] }
  }

  /// The bug: the fetch merged that others had deleted the object, and the next save threw `lostChanges`. The program ended if the callback
  /// had removed the object itself.
  @Test(arguments: TestStore.withChild, [0, 1, 2])
  func deletingAnObjectThatLeavesTheGraphInItsCallbackChangesNothing(_ store: TestStore, _ usage: Int) throws {
    let model = try ManagedObjectModel(entities: [EntityDescription("Trip", attributes: [AttributeDescription("usage", .integer64)])])
    let place = try store.makePlace(model: model, classes: [Trip.self])
    let (ours, theirs) = try place.twoContexts(.mergeByPropertyStoreTrump)
    ours.automaticallyMergesChanges = true
    let trip = ours.insert(Trip.self)
    trip.usage = usage
    if usage == 0 {
      try ours.save()
      theirs.delete(try #require(try theirs.fetch(FetchRequest<Trip>()).first))
      try theirs.save()
    }
    ours.delete(trip)
    #expect(trip.isInaccessible && !trip.isDeleted && !ours.hasChanges)
    try ours.save()
    #expect(try place.context().fetch(FetchRequest<Trip>()).isEmpty)
  }

  @Test(arguments: TestStore.withChild) func aResetDiscardsALateChange(_ store: TestStore) throws {
    let place = try store.makePlace(), (ours, removed, _) = try removing(place)
    removed.age = 4
    try ours.processPendingChanges()
    removed.age = 9
    ours.reset()
    #expect(!ours.hasChanges && removed.isInaccessible && removed.age == 0)
    removed.age = 9
    let error = #expect(throws: PersistenceError.self) { try ours.save() }
    #expect(error?.code == .lostChanges && error?.objectID == removed.id)
    ours.rollback()
    try ours.save()
  }

  @Test(arguments: TestStore.withChild) func removingAnObjectThatOthersHaveDeletedFromAListChangesNothing(_ store: TestStore) throws {
    let place = try store.makePlace(), (ours, removed, rest) = try removing(place)
    try ours.processPendingChanges()
    for _ in 0..<2 {
      rest.friends.remove(removed)
      rest.friendOf.remove(removed)
      #expect(removed.isInaccessible && !ours.hasChanges && rest.friends.isEmpty && !rest.friends.contains(removed))
    }
    rest.age = 7
    try ours.save()
    #expect(try place.context().fetch(Dog.self).map(\.age) == [7])
  }

  /// Other objects keep their transient links in a rollback.
  @Test(arguments: TestStore.withChild) func aRollbackDiscardsLateTransientLinks(_ store: TestStore) throws {
    let place = try store.makePlace(model: Web.model, classes: Web.classes), setup = try place.context()
    _ = (setup.node("a"), setup.node("b"))
    try setup.save()
    let (ours, theirs) = try place.twoContexts(.mergeByPropertyStoreTrump)
    ours.automaticallyMergesChanges = true
    let removed = try #require(try ours.node(named: "a")), rest = try #require(try ours.node(named: "b"))
    rest.mate = rest
    try ours.save()
    theirs.delete(try #require(try theirs.node(named: "a")))
    try theirs.save()
    try ours.processPendingChanges()
    #expect(removed.isInaccessible)
    for _ in 0..<2 {
      removed.pick = rest
      removed.next = rest
      removed.peers.insert(rest)
      let error = #expect(throws: PersistenceError.self) { try ours.save() }
      #expect(error?.code == .lostChanges && error?.objectID == removed.id)
      ours.rollback()
      #expect(removed.pick == nil && removed.next == nil && removed.peers.isEmpty && !removed.hasChanges)
      #expect(rest.pickedBy.isEmpty && rest.previous == nil && rest.peers.isEmpty && rest.mate == rest && !ours.hasChanges)
    }
  }

  /// The save merges the deletion before it calls the handler.
  @Test(arguments: TestStore.withChild, [false, true]) func aSaveThrowsIfItsHandlerChangesAnObjectThatOthersHaveRemoved(
    _ store: TestStore, _ isLink: Bool
  ) throws {
    let place = try store.makePlace(), (ours, removed, rest) = try removing(place)
    let observation = ours.onWillSave { _ in if isLink { removed.friends.insert(rest) } else { removed.age = 9 } }
    rest.age = 7
    let error = #expect(throws: PersistenceError.self) { try ours.save() }
    #expect(error?.code == .lostChanges && error?.objectID == removed.id)
    withExtendedLifetime(observation) {}
    ours.rollback()
    #expect(rest.age == 2 && rest.friendOf.isEmpty)
    #expect(try place.context().fetch(Dog.self).map(\.age) == [2])
  }

  @Test(arguments: TestStore.withChild) func anOrderedListIsReplacedWithoutObjectsThatOthersHaveRemoved(_ store: TestStore) throws {
    let lists = try Lists(store, ["a", "b"]), (ours, theirs) = try lists.place.twoContexts(.mergeByPropertyStoreTrump)
    ours.automaticallyMergesChanges = true
    let removed = try lists.item("a", ours), rest = try lists.item("b", ours)
    theirs.delete(try lists.item("a", theirs))
    try theirs.save()
    try ours.processPendingChanges()
    #expect(removed.isInaccessible)
    let items = try ours.insert(entityNamed: "List").ordered(forKey: "items")
    items.replaceAll(with: [removed, rest])
    try items.append(Lists.newItem("c", ours))
    #expect(try items.count == 2 && Lists.names(of: items) == ["b", "c"])
    let error = #expect(throws: PersistenceError.self) { try ours.save() }
    #expect(error?.code == .lostChanges && error?.objectID == removed.id)
    ours.rollback()
    #expect(try Lists.names(of: lists.items(ours)) == ["b"])
  }

  /// The bug: ordered relationships ignored such changes, and the next save succeeded without them.
  @Test(arguments: TestStore.withChild) func theNextSaveThrowsIfAnOrderedListOfARemovedObjectWasChanged(_ store: TestStore) throws {
    for number in 0..<4 {
      let place = try albums(store), (ours, theirs) = try place.twoContexts(.mergeByPropertyStoreTrump)
      ours.automaticallyMergesChanges = true
      let removed = try #require(try ours.fetch(Album.self).first), track = try #require(try ours.fetch(Track.self).first)
      let genre = try #require(try ours.fetch(Genre.self).first)
      track.album = nil
      try ours.save()
      #expect(removed.name == "A" && removed.genres.isEmpty && removed.tracks.isEmpty)
      theirs.delete(try #require(try theirs.fetch(Album.self).first))
      try theirs.save()
      try ours.processPendingChanges()
      #expect(removed.isInaccessible && !ours.hasChanges, "\(number)")
      switch number {
      case 0: removed.tracks.append(track)
      case 1: removed.tracks.insert(track, at: 0)
      case 2: removed.genres.append(genre)
      default: removed.genres.replaceAll(with: [genre])
      }
      let error = #expect(throws: PersistenceError.self) { try ours.save() }
      #expect(error?.code == .lostChanges && error?.objectID == removed.id, "\(number)")
      ours.rollback()
      #expect(!ours.hasChanges && track.album == nil && genre.albums.isEmpty && removed.tracks.isEmpty && removed.genres.isEmpty)
      track.title = "b"
      try ours.save()
    }
  }

  /// The list has the key of the removed object, hidden.
  @Test(arguments: TestStore.withChild) func theNextSaveThrowsIfARemovedObjectWasAddedToItsOrderedListAgain(_ store: TestStore) throws {
    let place = try albums(store), (ours, theirs) = try place.twoContexts(.mergeByPropertyStoreTrump)
    ours.automaticallyMergesChanges = true
    let album = try #require(try ours.fetch(Album.self).first), removed = try #require(album.tracks.first)
    #expect(removed.title == "a")
    theirs.delete(try #require(try theirs.fetch(Track.self).first))
    try theirs.save()
    try ours.processPendingChanges()
    #expect(removed.isInaccessible && album.tracks.isEmpty && !ours.hasChanges)
    album.tracks.append(removed)
    let error = #expect(throws: PersistenceError.self) { try ours.save() }
    #expect(error?.code == .lostChanges && error?.objectID == removed.id)
    ours.rollback()
    #expect(album.tracks.isEmpty && !ours.hasChanges)
  }

  /// A store with an album, its track, and a genre.
  private func albums(_ store: TestStore) throws -> TestStore.Place {
    let place = try store.makePlace(model: OrderAndRefreshTests.model, classes: [Album.self, Track.self, Genre.self])
    let setup = try place.context(), album = setup.insert(Album.self), track = setup.insert(Track.self), genre = setup.insert(Genre.self)
    (album.name, track.title, genre.name) = ("A", "a", "Jazz")
    album.tracks.append(track)
    try setup.save()
    return place
  }

  /// A context that will merge that another one has deleted Fido; with Fido and Rex.
  private func removing(_ place: TestStore.Place) throws -> (ours: ManagedObjectContext, removed: Dog, rest: Dog) {
    let setup = try place.context()
    _ = (setup.dog("Fido", age: 3), setup.dog("Rex", age: 2))
    try setup.save()
    let (ours, theirs) = try place.twoContexts(.mergeByPropertyStoreTrump)
    ours.automaticallyMergesChanges = true
    let removed = try #require(try ours.one(Dog.self) { $0.name == "Fido" })
    let rest = try #require(try ours.one(Dog.self) { $0.name == "Rex" })
    #expect(removed.age == 3 && rest.age == 2)
    theirs.delete(try #require(try theirs.one(Dog.self) { $0.name == "Fido" }))
    try theirs.save()
    return (ours, removed, rest)
  }

  @Test(arguments: TestStore.allCases) func theNextSaveThrowsIfAnObjectWasChangedAfterASaveMergedItWithAnother(_ store: TestStore) throws {
    let place = try store.makePlace(), context = try place.context()
    context.mergePolicy = .mergeByPropertyObjectTrump
    let dogs = ["First", "Second"].map { name -> Dog in
      let dog = context.dog(name)
      dog.chip = 7
      return dog
    }
    try context.save()
    let merged = try #require(dogs.first { $0.isInaccessible }), kept = try #require(dogs.first { !$0.isInaccessible })
    #expect(!context.hasChanges)
    merged.age = 9
    let error = #expect(throws: PersistenceError.self) { try context.save() }
    #expect(error?.code == .lostChanges && error?.objectID == merged.id)
    context.rollback()
    kept.age = 4
    try context.save()
    #expect(try place.context().fetch(Dog.self).map(\.age) == [4])
  }
}
