import FoundationEssentials
import Holdfast
import HoldfastBinaryStore
import HoldfastFiles
import HoldfastJSONStore
import HoldfastStore
import HoldfastStoreConformance
import HoldfastXMLStore
import Synchronization
import Testing

/// Derived values aren't changes of a context, so they never cause a conflict.
@Suite struct DerivedConflictTests {
  private func place(_ store: TestStore) throws -> TestStore.Place {
    let place = try store.park(), context = try place.context()
    let dog = context.make("Dog", ["name": .string("Rex")])
    dog.many("tricks").insert(context.make("Trick", ["level": .int32(1)]))
    dog.lead("owner", to: context.make("Person", ["name": .string("Ann")]))
    context.make("Walk", ["minutes": .int32(1), "distance": .double(1)], dog: dog)
    try context.save()
    return place
  }

  @Test(arguments: TestStore.allCases) func `two contexts add walks to one dog, and the count is right`(_ store: TestStore) throws {
    let place = try place(store), one = try place.context(), two = try place.context()
    let (first, second) = (try one.all("Dog")[0], try two.all("Dog")[0])
    #expect(first["walkCount"] == .int64(1) && second["walkCount"] == .int64(1))
    one.make("Walk", ["minutes": .int32(10), "distance": .double(1)], dog: first)
    two.make("Walk", ["minutes": .int32(100), "distance": .double(1)], dog: second)
    try one.save()
    try two.save()
    #expect(first["walkCount"] == .int64(2) && second["walkCount"] == .int64(3) && second["minutes"] == .int32(111))
    #expect(second["distance"] == .double(3))
    try place.expectRight("after both saved")
    try one.refresh(first, mergeChanges: true)
    #expect(first["walkCount"] == .int64(3))
    try one.refresh(first, mergeChanges: false)
    #expect(first["minutes"] == .int32(111))
  }

  @Test(arguments: TestStore.allCases) func `renaming a dog doesn't conflict with a walk of another context`(_ store: TestStore) throws {
    let place = try place(store), one = try place.context(), two = try place.context()
    let (first, second) = (try one.all("Dog")[0], try two.all("Dog")[0])
    _ = (first["name"], second["name"])
    one.make("Walk", ["minutes": .int32(10)], dog: first)
    try one.save()
    second["name"] = .string("Max")
    try two.save()
    #expect(second["walkCount"] == .int64(2), "The save didn't start from the store's value.")
    try place.expectRight("after a context that hasn't read the walk has renamed the dog")
    first["name"] = .string("Moritz")
    #expect(throws: PersistenceError.self) { try one.save() }
    one.rollback()
    try one.refreshAllObjects()
    #expect(first["walkCount"] == .int64(2) && first["name"] == .string("Max"))
  }

  // Destination objects aren't part of the save, so their versions aren't compared. Values derived from them use the store's values, not
  // those that the context has read.

  @Test(arguments: TestStore.allCases) func `a dog gets an owner whose new name the context hasn't read`(_ store: TestStore) throws {
    let place = try place(store), one = try place.context(), two = try place.context()
    let stray = one.make("Dog", ["name": .string("Stray")])
    one.make("Walk", ["minutes": .int32(1)], dog: stray)
    try one.save()
    let known = try two.all("Person")[0], dog = try #require(try two.all("Dog").first { $0["name"] == .string("Stray") })
    #expect(known["name"] == .string("Ann"))
    try one.all("Person")[0]["name"] = .string("Bea")
    try one.save()
    dog.lead("owner", to: known)
    try two.save()
    #expect(dog["ownerName"] == .string("Bea") && dog["loudOwner"] == .string("BEA"))
    try place.expectRight("after a dog got a renamed owner")
  }

  @Test(arguments: TestStore.allCases) func `a dog gets an owner that another context has deleted`(_ store: TestStore) throws {
    let place = try place(store), one = try place.context(), two = try place.context()
    let known = try two.all("Person")[0]
    #expect(known["name"] == .string("Ann"))
    one.delete(try one.all("Person")[0])
    try one.save()
    let stray = two.make("Dog", ["name": .string("Stray")])
    stray.lead("owner", to: known)
    do { try two.save() } catch let error as PersistenceError where error.code == .conflict { return }
    #expect(stray["ownerName"] == .null)
    try place.expectRight("after a dog got a deleted owner")
  }

  /// Without an inverse, the save doesn't compare the toy's version, but it finds that the toy is missing.
  ///
  /// The bug: the deleted toy was counted.
  @Test(arguments: TestStore.allCases) func `a toy that another context has deleted isn't counted`(_ store: TestStore) throws {
    let place = try place(store), one = try place.context(), two = try place.context()
    let toys = [Int32(5), 7].map { one.make("Toy", ["price": .int32($0)]) }
    try one.save()
    let (dog, known) = (try two.all("Dog")[0], try two.all("Toy"))
    one.delete(toys[0])
    try one.save()
    dog.many("toys").formUnion(known)
    two.mergePolicy = .mergeByPropertyObjectTrump
    try two.save()
    #expect(dog["toyCount"] == .int64(1) && dog["toyPrice"] == .decimal(7))
    try place.expectRight("after a dog got a deleted toy")
  }

  /// No store keeps a link to the missing toy, which a third context inserts again.
  @Test(arguments: TestStore.allCases) func `a toy that is inserted again doesn't belong to a dog that got it while it was deleted`(
    _ store: TestStore
  ) throws {
    let place = try place(store), one = try place.context(), two = try place.context(), three = try place.context()
    let toy = one.make("Toy", ["price": .int32(5)])
    try one.save()
    for context in [two, three] { context.mergePolicy = .mergeByPropertyObjectTrump }
    let dog = try two.all("Dog")[0], known = try two.all("Toy")[0], changed = try three.all("Toy")[0]
    changed["price"] = .int32(7)
    one.delete(toy)
    try one.save()
    dog.many("toys").insert(known)
    try two.save()
    try three.save()
    #expect(dog["toyCount"] == .int64(0) && changed["price"] == .int32(7))
    #expect(try place.context().all("Dog")[0].many("toys").isEmpty)
    try place.expectRight("after the toy was inserted again")
  }

  /// The store still has objects that reference a dog which is inserted again: a bill, because of the delete rule, and a walk that a third
  /// context has given it meanwhile.
  ///
  /// The bug: the dog's counts and sums began at 0, and the copies of its name stayed nil. Deleting the walk then made the count -1.
  @Test(arguments: TestStore.allCases) func `a dog that is inserted again counts the objects that still reference it`(_ store: TestStore)
    throws
  {
    let place = try place(store), one = try place.context()
    let deleted = try one.all("Dog")[0], bill = one.make("Bill", ["sum": .int32(5)], dog: deleted)
    try one.save()
    let two = try place.context(), three = try place.context()
    let (dog, known) = (try two.all("Dog")[0], try three.all("Dog")[0])
    two.mergePolicy = .overwrite
    dog["name"] = .string("Max")
    one.delete(deleted)
    try one.save()
    #expect(bill["payer"] == .null)
    let walk = three.make("Walk", ["minutes": .int32(100), "distance": .double(0.5)], dog: known)
    try three.save()
    #expect(walk["dogName"] == .null)
    let own = two.make("Walk", ["minutes": .int32(10)], dog: dog)
    try two.save()
    #expect(dog["walkCount"] == .int64(2) && dog["minutes"] == .int32(110) && dog["distance"] == .double(0.5))
    #expect(dog["billCount"] == .int64(1) && own["dogName"] == .string("Max"))
    try place.expectRight("after the dog was inserted again")
    let last = try place.context()
    for walk in try last.all("Walk") { last.delete(walk) }
    try last.save()
    #expect(try last.all("Dog")[0]["walkCount"] == .int64(0))
    try place.expectRight("after its walks were deleted")
  }

  /// The no-action rule leaves the links of a deleted sitter.
  ///
  /// The bug: the dogs didn't count the sitter that was inserted again, and it didn't count them. Deleting it again made the dogs count one
  /// sitter too few.
  @Test(arguments: TestStore.allCases) func `a sitter that is inserted again is counted by the dogs that are still linked to it`(
    _ store: TestStore
  ) throws {
    let place = try place(store), one = try place.context()
    let rex = try one.all("Dog")[0], ada = one.make("Dog", ["name": .string("Ada")])
    let sitters = [Int16(1), 2].map { one.make("Sitter", ["age": .int16($0)]) }
    for dog in [rex, ada] { dog.many("sitters").formUnion(sitters) }
    try one.save()
    let id = sitters[0].objectID, two = try place.context(), known = try two.existingObject(with: id)
    two.mergePolicy = .overwrite
    known["age"] = .int16(10)
    one.delete(sitters[0])
    try one.save()
    #expect(rex["sitterCount"] == .int64(1) && rex["sitterAges"] == .int64(2))
    try two.save()
    #expect(known["chargeCount"] == .int64(2))
    try place.expectRight("after the sitter was inserted again")
    let last = try place.context()
    #expect(try last.all("Dog").map { $0["sitterAges"] } == [.int64(12), .int64(12)])
    last.delete(try last.existingObject(with: id))
    try last.save()
    #expect(try last.all("Dog").map { $0["sitterCount"] } == [.int64(1), .int64(1)])
    try place.expectRight("after it was deleted again")
  }

  @Test(arguments: TestStore.allCases) func `a part changes its number while another context adds an object to it`(_ store: TestStore)
    throws
  {
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Box", attributes: [.derived("weight", .double, "parts.weight.@sum"), AttributeDescription("name", .string, isOptional: true)],
        relationships: [.toMany("parts", to: "Part", inverse: "box")]),
      EntityDescription(
        "Part", attributes: [AttributeDescription("weight", .double)],
        relationships: [.toOne("box", to: "Box", inverse: "parts"), .toMany("screws", to: "Screw", inverse: "part")]),
      EntityDescription("Screw", relationships: [.toOne("part", to: "Part", inverse: "screws")]),
    ])
    let place = try store.makePlace(model: model, classes: []), one = try place.context(), two = try place.context()
    let part = one.make("Part", ["weight": .double(1)])
    part.lead("box", to: one.make("Box", ["name": .string("A")]))
    try one.save()
    let known = try two.all("Part")[0], box = try two.all("Box")[0]
    #expect(known["weight"] == .double(1) && box["weight"] == .double(1))
    part["weight"] = .double(5)
    try one.save()
    two.make("Screw", [:]).lead("part", to: known)
    two.make("Part", ["weight": .double(1)]).lead("box", to: box)
    try two.save()
    #expect(box["weight"] == .double(6))
    #expect(try place.context().all("Box")[0]["weight"] == .double(6))
  }

  /// The new number is added to a sum that doesn't contain the one that the context has read.
  ///
  /// The bug: the save threw 1610, under every policy.
  @Test(arguments: TestStore.allCases) func `a sum that doesn't fit because of an outdated number is a conflict`(_ store: TestStore)
    throws
  {
    let place = try place(store), one = try place.context(), two = try place.context()
    let walk = try one.all("Walk")[0], known = try two.all("Walk")[0]
    #expect(known["minutes"] == .int32(1))
    walk["minutes"] = .int32(.max)
    try one.save()
    known["minutes"] = .int32(5)
    let error = #expect(throws: PersistenceError.self) { try two.save() }
    #expect(error?.code == .conflict && error?.objectIDs == [known.objectID])
    two.mergePolicy = .mergeByPropertyObjectTrump
    try two.save()
    let dog = try two.all("Dog")[0]
    #expect(known["minutes"] == .int32(5) && dog["minutes"] == .int32(5))
    try place.expectRight("after the conflict was resolved")
  }

  @Test(arguments: TestStore.allCases) func `a walk changes while another context renames its owner`(_ store: TestStore) throws {
    let place = try place(store), one = try place.context(), two = try place.context()
    let walk = try one.all("Walk")[0]
    #expect(walk["walker"] == .string("Ann"))
    try two.all("Person")[0]["name"] = .string("Bea")
    try two.save()
    walk["minutes"] = .int32(5)
    try one.save()
    #expect(walk["walker"] == .string("Bea"))
    try place.expectRight("after both saved")
  }

  @Test(arguments: TestStore.allCases) func `a fault reads the latest derived value`(_ store: TestStore) throws {
    let place = try place(store), one = try place.context(), two = try place.context()
    let dog = try one.all("Dog")[0]
    #expect(dog["walkCount"] == .int64(1))
    let id = dog.objectID
    two.make("Walk", dog: try two.all("Dog")[0])
    try two.save()
    try one.refresh(dog, mergeChanges: false)
    #expect(dog["walkCount"] == .int64(2))
    #expect(try place.context().existingObject(with: id)["walkCount"] == .int64(2))
  }

  /// The store clears the reference of a dog that the deleting context hasn't read, which gives the dog's row a new version. The save knows
  /// the former row, because the dog has values derived from its owner.
  ///
  /// The bug: the cache got the former row with the new values, so a fault had the reference, and its save was a conflict.
  @Test(arguments: TestStore.allCases) func `a fault whose owner was deleted has no owner, and can be saved`(_ store: TestStore) throws {
    let place = try place(store), one = try place.context(), two = try place.context()
    let id = try one.all("Dog")[0].objectID
    two.delete(try two.all("Person")[0])
    try two.save()
    let fresh = try place.context(), dog = try fresh.existingObject(with: id)
    #expect(dog["owner"] == .null && dog["ownerName"] == .null && dog["walkCount"] == .int64(1))
    dog["name"] = .string("Max")
    try fresh.save()
    try place.expectRight("after a dog without an owner was renamed")
  }

  @Test(arguments: TestStore.allCases) func `a sum of decimals is exact after any number of saves`(_ store: TestStore) throws {
    let place = try place(store), context = try place.context()
    let dog = try context.all("Dog")[0]
    for _ in 0..<30 {
      context.make("Walk", ["cost": .decimal(0.1), "distance": .double(0.1)], dog: dog)
      try context.save()
    }
    #expect(dog["cost"] == .decimal(3))
    try place.expectRight("after thirty saves")
    for walk in try context.all("Walk").dropFirst() { context.delete(walk) }
    try context.save()
    #expect(dog["cost"] == .decimal(0) && dog["distance"] == .double(1))
  }

  @Test func `objects whose derived values change are reported as refreshed`() throws {
    let place = try place(.memory), context = try place.context()
    let (walk, dog) = (try context.all("Walk")[0], try context.all("Dog")[0])
    _ = dog["name"]
    var told: [ManagedObjectID] = []
    let observation = context.onChange { _, changes in told += changes.refreshed }
    defer { observation.cancel() }
    context.delete(walk)
    try context.save()
    #expect(told.contains(dog.objectID) && dog["walkCount"] == .int64(0))
  }

  /// The bug: handlers received only the objects that the save hadn't written.
  @Test func `changed and new objects whose derived values the save computes are reported as refreshed`() throws {
    let place = try place(.memory), context = try place.context(), dog = try context.all("Dog")[0]
    var told: [ObjectChanges] = []
    let observation = context.onChange { _, changes in told.append(changes) }
    defer { observation.cancel() }
    dog["name"] = .string("Max")
    let new = context.make("Dog", ["name": .string("New")])
    try context.save()
    #expect(dog["upperName"] == .string("MAX") && new["upperName"] == .string("NEW"))
    let (first, last) = (try #require(told.first), try #require(told.last))
    #expect(told.count == 2 && first.updated == [dog.objectID] && first.inserted.count == 1 && first.refreshed.isEmpty)
    #expect(last.updated.isEmpty && Set(last.refreshed).isSuperset(of: [dog.objectID, new.objectID]))
  }

  /// A store without versions of its own may have rows of version 0, whose values are compared instead.
  ///
  /// The bug: the new count made such a row one that others had changed, and the policy discarded the context's own change.
  @Test func `merging a new derived value of a row without a version discards no change`() throws {
    let place = try place(.weakest), box = Mutex<(any IncrementalStore)?>(nil)
    let (context, _) = try place.recording { base in
      box.withLock { $0 = base }
      return base
    }
    let known = try context.all("Dog")[0], builder = RowBatchBuilder(layout: known.entity.layout, idPrefix: known.objectID.withKey(0))
    try builder.append(key: known.objectID.key, version: 0, values: known.entity.slots.map { _ in .null })
    var changes = SaveRequest.EntityChanges(entity: known.entity.index)
    changes.updated = [SaveRequest.UpdatedRows(rows: builder.seal(), expectedVersions: [1], changedSlots: [0], wordsPerRow: 1)]
    let base = try #require(box.withLock { $0 })
    try base.prepare(SaveRequest(entities: [changes]), options: .none).commit()
    let ours = try ManagedObjectContext(coordinator: context.persistentStoreCoordinator)
    let theirs = try ManagedObjectContext(coordinator: context.persistentStoreCoordinator)
    ours.mergePolicy = .rollback
    ours.automaticallyMergesChanges = true
    let dog = try ours.all("Dog")[0]
    dog["name"] = .string("Max")
    theirs.make("Walk", dog: try theirs.all("Dog")[0])
    try theirs.save()
    try ours.processPendingChanges()
    #expect(dog["name"] == .string("Max") && dog.isUpdated)
    try ours.save()
    let saved = try ManagedObjectContext(coordinator: context.persistentStoreCoordinator).all("Dog")[0]
    #expect(saved["name"] == .string("Max") && saved["walkCount"] == .int64(2))
  }

  @Test func `an object keeps the values that it has read, except derived ones`() throws {
    let place = try place(.sqlite), one = try place.context(), two = try place.context()
    let dog = try one.all("Dog")[0], walks = dog.many("walks")
    #expect(dog["name"] == .string("Rex") && walks.count == 1)
    try two.all("Dog")[0]["name"] = .string("Max")
    try two.save()
    one.make("Walk", dog: dog)
    try one.save()
    #expect(dog["name"] == .string("Rex") && dog["walkCount"] == .int64(2) && walks.count == 2)
  }
}

/// Saves by another process after a save has read the store and before it has locked the store.
@Suite struct DerivedRaceTests {
  /// A store that commits another save before the next one is prepared.
  private final class RacedStore: ForwardingStore {
    let base: any IncrementalStore
    let rival = Mutex<SaveRequest?>(nil)

    init(_ base: any IncrementalStore) { self.base = base }

    func prepare(_ request: SaveRequest, options: RequestOptions) throws -> any PreparedSave {
      let first = rival.withLock { rival in
        defer { rival = nil }
        return rival
      }
      if let first { try base.prepare(first, options: options).commit() }
      return try base.prepare(request, options: options)
    }
  }

  @Test(arguments: [TestStore.memory, .json, .xml, .binary, .sqlite, .weakest]) func `differences are added to the store's current values`(
    _ store: TestStore
  )
    throws
  {
    let place = try store.park(), box = Mutex<RacedStore?>(nil)
    let (context, _) = try place.recording { base in
      let raced = RacedStore(base)
      box.withLock { $0 = raced }
      return raced
    }
    let dog = context.make("Dog", ["name": .string("Rex")])
    context.make("Walk", ["minutes": .int32(1), "cost": .decimal(1)], dog: dog)
    try context.save()
    let entity = dog.entity, names = ["walkCount": StoreValue.int64(1), "minutes": .int32(10), "cost": .decimal(0.5)]
    func race() throws {
      let builder = RowBatchBuilder(layout: entity.layout, idPrefix: dog.objectID.withKey(0))
      try builder.append(key: dog.objectID.key, version: 0, values: entity.slots.map { names[$0.name] ?? .null })
      let mask = names.keys.reduce(UInt64(0)) { $0 | (entity.slot(named: $1) ?? 0).bit }
      var changes = SaveRequest.EntityChanges(entity: entity.index)
      changes.derived = [SaveRequest.DerivedRows(rows: builder.seal(), setSlots: [0], addedSlots: [mask], wordsPerRow: 1)]
      box.withLock { $0?.rival.withLock { $0 = SaveRequest(entities: [changes]) } }
    }
    func expect(_ count: Int64, _ minutes: Int32, _ cost: Decimal, _ location: SourceLocation = #_sourceLocation) throws {
      try context.refresh(dog, mergeChanges: true)
      #expect(
        dog["walkCount"] == .int64(count) && dog["minutes"] == .int32(minutes) && dog["cost"] == .decimal(cost), sourceLocation: location)
    }
    try race()
    context.make("Walk", ["minutes": .int32(100)], dog: dog)
    try context.save()
    try expect(3, 111, 1.5)
    try race()
    dog["name"] = .string("Max")
    try context.save()
    try expect(4, 121, 2)
    try race()
    dog["name"] = .string("Moritz")
    context.make("Walk", ["minutes": .int32(1000)], dog: dog)
    try context.save()
    try expect(6, 1131, 2.5)
  }

  /// A description of a copy of a place's file.
  private func copy(_ place: TestStore.Place, _ path: String) -> StoreDescription {
    switch place.store {
    case .xml: .xml(at: path)
    case .binary: .binary(at: path)
    default: .json(at: path)
    }
  }

  /// Saves as another process: in a copy, which replaces the file.
  private func saveAsAnotherProcess(_ place: TestStore.Place, _ change: (ManagedObjectContext) throws -> Void) throws {
    let path = path(of: place), other = path + ".other"
    try FileManager.default.copyItem(atPath: path, toPath: other)
    let coordinator = try PersistentStoreCoordinator(model: Park.model, store: copy(place, other))
    let theirs = try ManagedObjectContext(coordinator: coordinator)
    try change(theirs)
    try theirs.save()
    try coordinator.close()
    try FileManager.default.removeItem(atPath: path)
    try FileManager.default.moveItem(atPath: other, toPath: path)
  }

  private func path(of place: TestStore.Place) -> String {
    place.folder.appendingPathComponent("Kennel.\(place.store.rawValue)").path
  }

  /// The save inserts nothing, so it reserves no keys, which would load the other process's version.
  @Test(arguments: [TestStore.json, .xml, .binary]) func `copies and sums include what another process has saved before the save`(
    _ store: TestStore
  )
    throws
  {
    let place = try store.park(), context = try place.context(), rex = context.make("Dog", ["name": .string("Rex")])
    let walk = context.make("Walk", ["distance": .double(1)], dog: rex), late = context.make("Walk", ["distance": .double(100)])
    try context.save()
    try saveAsAnotherProcess(place) { theirs in
      let dog = try theirs.all("Dog")[0]
      dog["name"] = .string("Max")
      theirs.make("Walk", ["distance": .double(10)], dog: dog)
    }
    walk["distance"] = .double(2)
    late.lead("dog", to: rex)
    try context.save()
    #expect(rex["distance"] == .double(112) && late["dogName"] == .string("Max"))
    try place.close()
    let again = try place.context(), walks = try again.all("Walk")
    #expect(try again.all("Dog").map { $0["distance"] } == [.double(112)])
    #expect(walks.count == 3 && walks.allSatisfy { $0["dogName"] == .string("Max") })
  }

  /// The bug: the save waited for the other process as long as one without a time limit, and threw `locked`.
  @Test(arguments: [TestStore.json, .xml, .binary]) func `a save that loads the file waits for its lock until its deadline`(
    _ store: TestStore
  )
    throws
  {
    let place = try store.park(), context = try place.context(), rex = context.make("Dog", ["name": .string("Rex")])
    let walk = context.make("Walk", ["distance": .double(1)], dog: rex)
    try context.save()
    try saveAsAnotherProcess(place) { theirs in theirs.make("Walk", ["distance": .double(10)], dog: try theirs.all("Dog")[0]) }
    // A process can't open a store twice, so this is only the lock of another one.
    let system = POSIXFileSystem(), folder = try system.openDirectory(place.folder.path)
    let lock = try system.openLockFile(".Kennel.\(store.rawValue).lock", in: folder)
    try system.lock(lock, timeout: .zero)
    context.requestTimeout = .milliseconds(50)
    walk["distance"] = .double(2)
    let error = #expect(throws: StoreError.self) { try context.save() }
    #expect(error?.code == .timedOut && error?.isRetryable == true && error?.operation == "save", "\(String(describing: error))")
    try system.unlock(lock)
    for handle in [lock, folder] { try system.close(handle) }
    context.requestTimeout = nil
    try context.save()
    #expect(rex["distance"] == .double(12))
    try place.close()
  }
}
