import HoldfastStoreConformance
import TestSupport
import Testing

@testable import Holdfast

/// Properties that can't be read because of an error: placeholders are never saved. On every store.
@Suite struct FaultErrorTests {
  private static let busy = StoreError(.locked, operation: "read", reason: "The test says so.", isRetryable: true)

  private struct Scene {
    let place: TestStore.Place
    let context: ManagedObjectContext
    let failing: FaultInjectingStore
    let fido: Dog
    let rex: Dog
    let ann: Person

    /// Makes the next read of a row fail.
    func failNextRead() {
      failing.fail(.rows, with: FaultErrorTests.busy)
      failing.fail(.beginRead, with: FaultErrorTests.busy)
    }

    /// A separate context, which shows the saved values.
    func other() throws -> ManagedObjectContext {
      try ManagedObjectContext(coordinator: context.persistentStoreCoordinator, classes: Kennel.classes)
    }
  }

  /// A context in which Fido, aged 3, is a fault and Rex is not.
  private func scene(_ store: TestStore) throws -> Scene {
    let place = try store.makePlace(), first = try place.context()
    let ann = first.person("Ann"), fido = first.dog("Fido", age: 3, owner: ann)
    first.dog("Rex", age: 5)
    try first.save()
    let id = fido.objectID
    let (context, failing) = try place.faulty()
    let rex = try #require(try context.one(Dog.self) { $0.name == "Rex" }),
      known = try #require(try context.one(Person.self) { $0.name == "Ann" })
    // The weakest store delivers every row.
    context.persistentStoreCoordinator.rowCache.removeAll()
    return Scene(
      place: place, context: context, failing: failing, fido: try #require(context.object(with: id) as? Dog), rex: rex, ann: known)
  }

  /// Gives Rex the age of Fido, which can't be read.
  private func copyUnreadAge(_ scene: Scene) {
    scene.failNextRead()
    scene.rex.age = scene.fido.age
    scene.failing.clear()
    #expect(scene.rex.age == 0 && scene.fido.isInaccessible && (scene.context.faultError as? StoreError)?.code == .locked)
  }

  private func expectRefusal(_ scene: Scene) throws {
    let error = try #require(throws: PersistenceError.self) { try scene.context.save() }
    #expect(error.code == .unreadValues && error.objectIDs == [scene.fido.objectID] && (error.cause as? StoreError)?.code == .locked)
    #expect(scene.context.hasChanges)
    #expect(try scene.other().one(Dog.self) { $0.name == "Rex" }?.age == 5)
  }

  /// The bug: the child took the object for a deleted one, so that its policy discarded the change of the object.
  @Test(arguments: TestStore.allCases) func aChildReadsAnObjectThatItsParentHasChangedUnread(_ store: TestStore) throws {
    let scene = try scene(store), child = ManagedObjectContext(parent: scene.context)
    child.mergePolicy = .rollback
    scene.failNextRead()
    scene.fido.notes = "unread"
    scene.failing.clear()
    #expect(scene.fido.isInaccessible && scene.fido.notes == "unread")
    let mine = try child.existingDog(scene.fido.objectID)
    #expect(mine.age == 3)
    mine.age = 4
    let error = #expect(throws: PersistenceError.self) { try child.save() }
    #expect(error?.code == .unreadValues && mine.age == 4)
    try scene.context.refresh(scene.fido, mergeChanges: true)
    scene.context.acknowledgeFaultErrors()
    child.mergePolicy = .mergeByPropertyObjectTrump
    try child.save()
    try scene.context.save()
    let saved = try #require(try scene.other().one(Dog.self) { $0.name == "Fido" })
    #expect(saved.age == 4 && saved.notes == "unread")
  }

  /// Ways to acknowledge errors.
  enum Acknowledgement: CaseIterable, Sendable { case call, reset, rollback, refresh, refreshAll }

  @Test(arguments: TestStore.allCases, Acknowledgement.allCases)
  func aSaveIsRefusedUntilTheErrorIsAcknowledged(_ store: TestStore, _ acknowledgement: Acknowledgement) throws {
    let scene = try scene(store), context = scene.context
    copyUnreadAge(scene)
    try expectRefusal(scene)
    // Reading the value later doesn't undo that a placeholder was returned.
    #expect(scene.fido.age == 3 && !scene.fido.isInaccessible)
    try expectRefusal(scene)
    switch acknowledgement {
    case .call: context.acknowledgeFaultErrors()
    case .reset: context.reset()
    case .rollback: context.rollback()
    case .refresh: try context.refresh(scene.fido, mergeChanges: true)
    case .refreshAll: try context.refreshAllObjects()
    }
    #expect(acknowledgement == .refresh || context.faultError == nil)
    let rex = try #require(try context.one(Dog.self) { $0.name == "Rex" }),
      fido = try #require(try context.one(Dog.self) { $0.name == "Fido" })
    rex.age = fido.age + 1
    try context.save()
    #expect(try scene.other().one(Dog.self) { $0.name == "Rex" }?.age == 4)
  }

  @Test(arguments: TestStore.allCases) func afterAnErrorTheNextAccessReadsAgain(_ store: TestStore) throws {
    let scene = try scene(store)
    copyUnreadAge(scene)
    #expect(scene.fido.isFault)
    #expect(scene.fido.name == "Fido" && scene.fido.age == 3 && !scene.fido.isInaccessible)
  }

  @Test(arguments: TestStore.allCases) func valuesByNameThrowTheErrorInsteadOfAPlaceholder(_ store: TestStore) throws {
    let scene = try scene(store)
    for key in ["age", "owner", "friends"] {
      scene.failing.fail(.beginRead, with: Self.busy)
      #expect(throws: StoreError.self, "\(key)") { try scene.fido.value(forKey: key) }
      scene.failing.clear()
      scene.failing.fail(.rows, with: Self.busy)
      #expect(throws: StoreError.self, "\(key)") { try scene.fido.value(forKey: key) }
      scene.failing.clear()
    }
    // No placeholder was returned, so nothing needs to be acknowledged.
    scene.rex.age = 6
    try scene.context.save()
    #expect(try scene.fido.value(forKey: "age") == .int16(3))
  }

  @Test(arguments: TestStore.allCases) func committedValuesOfAnUnreadableObjectThrowTheError(_ store: TestStore) throws {
    let scene = try scene(store)
    scene.failNextRead()
    #expect(throws: StoreError.self) { try scene.fido.committedValues() }
    scene.failing.clear()
    // No value was returned, so nothing needs to be acknowledged.
    scene.rex.age = 6
    try scene.context.save()
    #expect(try scene.fido.committedValues(forKeys: ["age"]) == ["age": .int16(3)])
  }

  @Test(arguments: TestStore.allCases) func valuesAtTheEndOfAPathThrowTheErrorOfEachStep(_ store: TestStore) throws {
    let scene = try scene(store)
    scene.failing.fail(.relationships, with: Self.busy)
    #expect(throws: StoreError.self) { try scene.ann.value(forKeyPath: "dogs.@count") }
    scene.failing.clear()
    scene.failNextRead()
    #expect(throws: StoreError.self) { try scene.fido.value(forKeyPath: "owner.name") }
    scene.failing.clear()
    scene.failNextRead()
    #expect(throws: StoreError.self) { try scene.fido.setValue(.string("Oslo"), forKeyPath: "owner.city") }
    scene.failing.clear()
    // No placeholder was returned, so nothing needs to be acknowledged.
    try scene.fido.setValue(.string("Bergen"), forKeyPath: "owner.city")
    try scene.context.save()
    #expect(try scene.ann.value(forKeyPath: "dogs.@count") == .int64(1) && scene.ann.city == "Bergen")
  }

  @Test(arguments: TestStore.allCases) func aToManyRelationshipThatCannotBeReadRefusesSavesToo(_ store: TestStore) throws {
    let scene = try scene(store), context = scene.context
    scene.failing.fail(.relationships, with: Self.busy)
    scene.rex.age = scene.ann.dogs.count
    scene.failing.clear()
    let error = try #require(throws: PersistenceError.self) { try context.save() }
    #expect(error.code == .unreadValues && error.objectIDs == [scene.ann.objectID])
    try context.refresh(scene.ann, mergeChanges: true)
    scene.rex.age = scene.ann.dogs.count
    try context.save()
    #expect(try scene.other().one(Dog.self) { $0.name == "Rex" }?.age == 1)
  }

  @Test(arguments: TestStore.allCases) func theErrorNamesAllUnreadObjectsAndTheFirstCause(_ store: TestStore) throws {
    let scene = try scene(store), context = scene.context
    try context.refresh(scene.ann, mergeChanges: false)
    context.persistentStoreCoordinator.rowCache.removeAll()
    copyUnreadAge(scene)
    let later = StoreError(.inputOutput, operation: "read", reason: "The test says so.")
    scene.failing.fail(.rows, with: later)
    scene.failing.fail(.beginRead, with: later)
    scene.rex.name = scene.ann.name
    scene.failing.clear()
    let error = try #require(throws: PersistenceError.self) { try context.save() }
    #expect(error.code == .unreadValues && error.objectID == nil && error.objectIDs == [scene.fido.objectID, scene.ann.objectID])
    #expect((error.cause as? StoreError)?.code == .locked && error.reason.contains("2 objects"))
  }

  @Test(arguments: TestStore.allCases) func whatWasReadInCallbacksOfTheSaveCounts(_ store: TestStore) throws {
    let scene = try scene(store), context = scene.context, (rex, fido) = (scene.rex, scene.fido)
    let observation = context.onWillSave { _ in
      scene.failNextRead()
      rex.weight = fido.weight ?? -1
      scene.failing.clear()
    }
    defer { observation.cancel() }
    rex.age = 6
    #expect(try #require(throws: PersistenceError.self) { try context.save() }.code == .unreadValues)
    #expect(try scene.other().one(Dog.self) { $0.name == "Rex" }?.age == 5)
  }

  @Test(arguments: TestStore.allCases) func anObjectThatIsChangedUnreadIsNotSavedBeforeItIsRefreshed(_ store: TestStore) throws {
    for isRefreshed in [true, false] {
      let scene = try scene(store), context = scene.context, fido = scene.fido
      scene.failNextRead()
      fido.name = "Fidel"
      scene.failing.clear()
      context.acknowledgeFaultErrors()
      #expect(throws: PersistenceError.self) { try context.save() }
      if isRefreshed {
        try context.refresh(fido, mergeChanges: true)
        #expect(fido.name == "Fidel" && fido.age == 3)
        try context.save()
        #expect(try scene.other().one(Dog.self) { $0.name == "Fidel" }?.age == 3)
      } else {
        context.rollback()
        #expect(fido.name == "Fido" && fido.age == 3 && !fido.isInaccessible)
      }
    }
  }

  @Test(arguments: TestStore.allCases) func whatIsComputedFromAnObjectsOwnPlaceholderIsNotSavedByMergingIt(_ store: TestStore) throws {
    let scene = try scene(store), context = scene.context, fido = scene.fido
    scene.failNextRead()
    fido.age += 1
    scene.failing.clear()
    try context.refresh(fido, mergeChanges: true)
    #expect(try #require(throws: PersistenceError.self) { try context.save() }.code == .unreadValues)
    try context.refresh(fido, mergeChanges: false)
    fido.age += 1
    try context.save()
    #expect(try scene.other().one(Dog.self) { $0.name == "Fido" }?.age == 4)
  }

  private final class Meter: ManagedObject {
    var total: Int {
      get { self[0] }
      set { self[0] = newValue }
    }
    override class var properties: [PropertyBinding] { [.attribute("total", \Meter.total, slot: 0)] }
  }

  private final class Trip: ManagedObject {
    var meter: Meter? {
      get { toOne(0) }
      set { setToOne(0, newValue) }
    }
    var minutes: Int {
      get { self[1] }
      set { self[1] = newValue }
    }
    override func prepareForDeletion() { meter?.total -= minutes }
    override class var properties: [PropertyBinding] {
      [.toOne("meter", \Trip.meter, slot: 0), .attribute("minutes", \Trip.minutes, slot: 1)]
    }
  }

  @Test(arguments: TestStore.allCases) func whatACallbackComputesFromPlaceholdersIsNotSavedAfterTheErrorWasThrown(_ store: TestStore) throws
  {
    let model = try ManagedObjectModel(entities: [
      EntityDescription("Meter", attributes: [AttributeDescription("total", .integer64)]),
      EntityDescription(
        "Trip", attributes: [AttributeDescription("minutes", .integer64)],
        relationships: [.toOne("meter", to: "Meter", inverse: nil), .toOne("tour", to: "Tour", inverse: "trips")]),
      EntityDescription("Tour", relationships: [.toMany("trips", to: "Trip", inverse: "tour", deleteRule: .cascade)]),
    ])
    let place = try store.makePlace(model: model, classes: [Meter.self, Trip.self]), first = try place.context()
    let meter = first.insert(Meter.self), trip = first.insert(Trip.self), tour = try first.insert(entityNamed: "Tour")
    (meter.total, trip.minutes, trip.meter) = (100, 30, meter)
    try trip.setValue(.objectID(tour.objectID), forKey: "tour")
    try first.save()
    let (context, failing) = try place.faulty()
    let same = try #require(try context.fetch(FetchRequest<Meter>()).first)
    var wrong = 0
    // Whichever read of the deletion fails.
    for number in 1...4 {
      try context.refreshAllObjects()
      context.persistentStoreCoordinator.rowCache.removeAll()
      context.delete(try context.object(with: tour.objectID))
      failing.fail(.rows, onCall: number, with: Self.busy)
      // The first attempt throws. The second one would save what the callback computed.
      for _ in 0..<2 {
        do {
          try context.save()
          break
        } catch {}
      }
      failing.clear()
      let check = try ManagedObjectContext(coordinator: context.persistentStoreCoordinator, classes: [Meter.self, Trip.self])
      if try check.count(for: FetchRequest<Trip>()) == 0 {
        wrong += try check.fetch(FetchRequest<Meter>()).first?.total == 70 ? 0 : 1
        break
      }
      context.rollback()
    }
    #expect(wrong == 0)
    withExtendedLifetime(same) {}
  }

  private final class Route: ManagedObject {
    var meter: Meter? {
      get { toOne(0) }
      set { setToOne(0, newValue) }
    }
    override func validate(_ value: PropertyValue, forKey key: String) throws {
      if value.objects?.count == 9 { throw PersistenceError.invalid("There are 9 stops.") }
    }
    override func validateForUpdate() throws {
      if meter?.total == 0 { throw PersistenceError.invalid("The meter is at 0.") }
      if try value(forKey: "name").storeValue == .string("East") { _ = try value(forKey: "stops") }
    }
    override class var properties: [PropertyBinding] { [.toOne("meter", \Route.meter, slot: 0)] }
  }

  @Test(arguments: TestStore.allCases) func whatValidationCouldNotReadIsNotReportedAsInvalid(_ store: TestStore) throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription("Meter", attributes: [AttributeDescription("total", .integer64)]),
      EntityDescription(
        "Route", attributes: [AttributeDescription("name", .string, isOptional: true)],
        relationships: [.toOne("meter", to: "Meter", inverse: nil), .toMany("stops", to: "Stop", inverse: "route")]),
      EntityDescription("Stop", relationships: [.toOne("route", to: "Route", inverse: "stops")]),
    ])
    let place = try store.makePlace(model: model, classes: [Meter.self, Route.self]), first = try place.context()
    let meter = first.insert(Meter.self), saved = first.insert(Route.self)
    (meter.total, saved.meter) = (100, meter)
    try first.save()
    let (context, failing) = try place.faulty()
    let route = try #require(try context.fetch(FetchRequest<Route>()).first)
    context.persistentStoreCoordinator.rowCache.removeAll()

    // A method of the class reads another object.
    try route.setValue(.string("West"), forKey: "name")
    failing.fail(.rows, with: Self.busy)
    failing.fail(.beginRead, with: Self.busy)
    let refused = try #require(throws: PersistenceError.self) { try context.save() }
    failing.clear()
    #expect(refused.code == .unreadValues && (refused.cause as? StoreError)?.code == .locked)
    context.acknowledgeFaultErrors()
    try context.save()

    // The save reads the value that a method validates.
    let stop = try context.insert(entityNamed: "Stop")
    try stop.setValue(.objectID(route.objectID), forKey: "route")
    failing.fail(.relationships, with: Self.busy)
    let failed = #expect(throws: StoreError.self) { try context.save() }
    failing.clear()
    #expect(failed?.code == .locked && stop.isInserted)
    try context.save()
    #expect(try route.toMany(forKey: "stops").count == 1)

    // A method of the class throws the error of a request.
    try context.refresh(route, mergeChanges: false)
    try route.setValue(.string("East"), forKey: "name")
    failing.fail(.relationships, with: Self.busy)
    let thrown = #expect(throws: StoreError.self) { try context.save() }
    failing.clear()
    #expect(thrown?.code == .locked && route.isUpdated)
    try context.save()
  }

  @Test(arguments: TestStore.allCases) func aDeletedRowRefusesNoSave(_ store: TestStore) throws {
    let scene = try scene(store)
    let other = try scene.other()
    other.delete(try #require(try other.one(Dog.self) { $0.name == "Fido" }))
    try other.save()
    scene.rex.age = scene.fido.age
    #expect(scene.fido.isInaccessible && (scene.context.faultError as? PersistenceError)?.code == .missingObject)
    try scene.context.save()
    #expect(try scene.other().one(Dog.self) { $0.name == "Rex" }?.age == 0)
  }

  @Test(arguments: TestStore.allCases) func aStoreThatWasClosedRefusesSaves(_ store: TestStore) throws {
    let scene = try scene(store)
    try scene.context.persistentStoreCoordinator.close()
    scene.rex.age = scene.fido.age
    let error = try #require(throws: PersistenceError.self) { try scene.context.save() }
    #expect(error.code == .unreadValues && (error.cause as? StoreError)?.code == .notOpen)
  }

  @Test(arguments: TestStore.allCases) func readingThrowsTheErrorAndRefusesNoLaterSave(_ store: TestStore) throws {
    let scene = try scene(store), context = scene.context
    scene.failNextRead()
    let failed = #expect(throws: StoreError.self) { try context.reading { [scene.rex.name, scene.fido.name] } }
    scene.failing.clear()
    #expect(failed?.code == .locked && context.faultError == nil)
    #expect(try context.reading { [scene.rex.name, scene.fido.name] } == ["Rex", "Fido"])
    scene.rex.age = 6
    try context.save()

    let other = try scene.other()
    other.delete(try #require(try other.one(Dog.self) { $0.name == "Fido" }))
    try other.save()
    try context.refresh(scene.fido, mergeChanges: false)
    let missing = #expect(throws: PersistenceError.self) { try context.reading { scene.fido.age } }
    #expect(missing?.code == .missingObject && missing?.objectID == scene.fido.objectID && context.faultError == nil)
    scene.rex.age = 7
    try context.save()
    #expect(try scene.other().one(Dog.self) { $0.name == "Rex" }?.age == 7)
  }

  @Test(arguments: TestStore.allCases) func readingKeepsErrorsFromBeforeAndThrowsThoseOfItsClosure(_ store: TestStore) throws {
    struct Own: Error {}
    let scene = try scene(store)
    copyUnreadAge(scene)
    #expect(try scene.context.reading { scene.rex.name } == "Rex")
    #expect(throws: Own.self) { try scene.context.reading { () throws -> Int in throw Own() } }
    try expectRefusal(scene)
  }

  /// What a closure of `reading` does with the age of Fido, which can't be read.
  enum Use: CaseIterable, Sendable { case value, changedValue, insertion, deletion, toOne, toMany }

  @Test(arguments: TestStore.allCases, Use.allCases)
  func whatAReadingClosureComputesFromAPlaceholderIsNotSaved(_ store: TestStore, _ use: Use) throws {
    let scene = try scene(store), context = scene.context, rex = scene.rex
    // An object that was changed before isn't recorded as changed again.
    if use == .changedValue { rex.age = 6 }
    try changeWhileReading(scene) { age in
      switch use {
      case .value, .changedValue: rex.age = age
      case .insertion: context.dog("Pup", age: age)
      case .deletion: if age == 0 { context.delete(rex) }
      case .toOne: if age == 0 { rex.owner = scene.ann }
      case .toMany: if age == 0 { scene.ann.dogs.insert(rex) }
      }
    }
    try expectRefusal(scene)
    context.rollback()
    rex.age = scene.fido.age + 1
    try context.save()
    let check = try scene.other()
    #expect(try check.one(Dog.self) { $0.name == "Rex" }?.age == 4 && check.count(for: FetchRequest<Dog>()) == 2)
  }

  /// Calls a closure with the placeholder of Fido's age, within `reading`.
  private func changeWhileReading(_ scene: Scene, _ change: (Int) throws -> Void) throws {
    scene.failNextRead()
    let failed = #expect(throws: StoreError.self) { try scene.context.reading { try change(scene.fido.age) } }
    scene.failing.clear()
    #expect(failed?.code == .locked)
  }

  @Test(arguments: TestStore.allCases, Acknowledgement.allCases)
  func aReadingClosureThatChangedAnObjectRefusesSavesUntilTheErrorIsAcknowledged(
    _ store: TestStore, _ acknowledgement: Acknowledgement
  ) throws {
    let scene = try scene(store), context = scene.context
    try changeWhileReading(scene) { scene.rex.age = $0 }
    #expect((context.faultError as? StoreError)?.code == .locked)
    try expectRefusal(scene)
    switch acknowledgement {
    case .call: context.acknowledgeFaultErrors()
    case .reset: context.reset()
    case .rollback: context.rollback()
    case .refresh: try context.refresh(scene.fido, mergeChanges: true)
    case .refreshAll: try context.refreshAllObjects()
    }
    let rex = try #require(try context.one(Dog.self) { $0.name == "Rex" }),
      fido = try #require(try context.one(Dog.self) { $0.name == "Fido" })
    rex.age = fido.age + 1
    try context.save()
    #expect(try scene.other().one(Dog.self) { $0.name == "Rex" }?.age == 4)
  }

  @Test(arguments: TestStore.allCases) func whatAReadingClosureChangesBeforeTheErrorIsSaved(_ store: TestStore) throws {
    let scene = try scene(store), context = scene.context, rex = scene.rex
    rex.weight = 20
    scene.failNextRead()
    let failed = #expect(throws: StoreError.self) {
      try context.reading {
        (rex.age, rex.owner) = (6, scene.ann)
        context.dog("Pup", age: 1)
        return scene.fido.age
      }
    }
    scene.failing.clear()
    #expect(failed?.code == .locked && context.faultError == nil)
    try context.save()
    let check = try scene.other(), saved = try #require(try check.one(Dog.self) { $0.name == "Rex" })
    #expect(saved.age == 6 && saved.weight == 20 && saved.owner?.name == "Ann")
    #expect(try check.count(for: FetchRequest<Dog>()) == 3)
  }

  @Test(arguments: TestStore.allCases) func aReadingClosureThatThrowsAfterItsChangesRefusesSavesToo(_ store: TestStore) throws {
    struct Own: Error {}
    let scene = try scene(store)
    scene.failNextRead()
    #expect(throws: Own.self) {
      try scene.context.reading { () throws -> Int in
        scene.rex.age = scene.fido.age
        throw Own()
      }
    }
    scene.failing.clear()
    try expectRefusal(scene)
  }

  @Test(arguments: TestStore.allCases) func theErrorOfAnInnerReadingClosureLastsIfItChangedObjects(_ store: TestStore) throws {
    for isChanged in [true, false] {
      let scene = try scene(store), context = scene.context
      scene.failNextRead()
      let inner = {
        let age = scene.fido.age
        if isChanged { scene.rex.age = age }
      }
      var wasCaught = false
      let outer = {
        do { try context.reading(inner) } catch { wasCaught = true }
      }
      if isChanged {
        #expect(throws: StoreError.self) { try context.reading(outer) }
      } else {
        try context.reading(outer)
      }
      scene.failing.clear()
      #expect(wasCaught)
      if isChanged { try expectRefusal(scene) } else { try context.save() }
    }
  }

  @Test(arguments: TestStore.allCases) func handlersReceiveAnObjectOnceThatAReadingClosureChangesAgain(_ store: TestStore) throws {
    let scene = try scene(store), context = scene.context, rex = scene.rex
    var received: [ObjectChanges] = []
    let observation = context.onChange { received.append($1) }
    defer { observation.cancel() }
    rex.age = 6
    try changeWhileReading(scene) { rex.age = $0 }
    try context.processPendingChanges()
    #expect(received == [ObjectChanges(updated: [rex.objectID])])
  }

  @Test func withThePlaceholderPolicyAReadingClosureRefusesNoSave() throws {
    let scene = try scene(.sqlite)
    scene.context.faultErrorPolicy = .placeholder
    try changeWhileReading(scene) { scene.rex.age = $0 }
    try scene.context.save()
    #expect(try scene.other().one(Dog.self) { $0.name == "Rex" }?.age == 0)
  }

  @Test func withThePlaceholderPolicyNothingFollows() throws {
    let scene = try scene(.sqlite)
    scene.context.faultErrorPolicy = .placeholder
    copyUnreadAge(scene)
    try scene.context.save()
    #expect(try scene.other().one(Dog.self) { $0.name == "Rex" }?.age == 0)
    // Methods that throw do so under every policy.
    try scene.context.refresh(scene.fido, mergeChanges: false)
    scene.failing.fail(.beginRead, with: Self.busy)
    #expect(throws: StoreError.self) { try scene.fido.value(forKey: "age") }
  }

  @Test(.ownThreads) func withTheTrapPolicyTheProcessEndsWithTheError() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let tests = FaultErrorTests()
      let scene = try tests.scene(.memory)
      scene.context.faultErrorPolicy = .trap
      scene.failing.fail(.rows, with: FaultErrorTests.busy)
      _ = scene.fido.age
    }
    let output = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
    #expect(output.contains("could not be read, and the policy"))
  }

  // MARK: Random programs

  /// A program that computes values from what it reads and saves them. Plain dictionaries hold the expected values.
  private struct Program {
    var ages: [String: Int]
    var owners: [String: String]
    var friends: [String: Set<String>]
    let people = (0..<4).map { "p\($0)" }

    init(_ context: ManagedObjectContext, _ random: inout SeededGenerator) throws {
      (ages, owners, friends) = ([:], [:], [:])
      let people = people.map { context.person($0) }
      var dogs: [Dog] = []
      for number in 0..<12 {
        let owner = people[Int.random(in: 0..<4, using: &random)], dog = context.dog("d\(number)", age: number + 1, owner: owner)
        (ages[dog.name], owners[dog.name], friends[dog.name]) = (number + 1, owner.name, [])
        if let friend = dogs.randomElement(using: &random) {
          dog.friends.insert(friend)
          friends[dog.name] = [friend.name]
        }
        dogs.append(dog)
      }
      try context.save()
    }

    /// A step that reads faults and relationships, and writes what it read.
    mutating func step(_ dogs: [String: Dog], _ random: inout SeededGenerator) {
      let names = dogs.keys.sorted(), name = names[Int.random(in: 0..<names.count, using: &random)]
      let other = names[Int.random(in: 0..<names.count, using: &random)]
      guard let dog = dogs[name], let second = dogs[other] else { return }
      switch Int.random(in: 0..<5, using: &random) {
      case 0:
        dog.age = dogs.values.reduce(0) { $0 + $1.age } % 1000
        ages[name] = ages.values.reduce(0, +) % 1000
      case 1:
        dog.age = second.owner?.dogs.count ?? -1
        ages[name] = owners.values.count { $0 == owners[other] }
      case 2:
        dog.age = second.friends.reduce(0) { $0 + $1.age } % 1000
        ages[name] = (friends[other] ?? []).reduce(0) { $0 + (ages[$1] ?? 0) } % 1000
      case 3:
        dog.owner = second.owner
        owners[name] = owners[other]
      default:
        if !second.friends.contains(dog) { second.friends.insert(dog) }
        friends[other, default: []].insert(name)
      }
    }

    /// The differences in a store.
    func difference(_ context: ManagedObjectContext) throws -> String? {
      for dog in try context.fetch(FetchRequest<Dog>()) {
        let found = (dog.age, dog.owner?.name, Set(dog.friends.map(\.name)))
        if found.0 != ages[dog.name] { return "\(dog.name).age is \(found.0), not \(ages[dog.name] ?? -1)" }
        if found.1 != owners[dog.name] { return "\(dog.name).owner is \(found.1 ?? "nil"), not \(owners[dog.name] ?? "nil")" }
        if found.2 != friends[dog.name] { return "\(dog.name).friends are \(found.2), not \(friends[dog.name] ?? [])" }
      }
      return nil
    }
  }

  /// The same program runs repeatedly, and each time another of its reads fails once. The saved values must be correct.
  ///
  /// - Parameter isReading: Whether each step runs in a closure of `reading`, and the program continues after its error.
  @Test(arguments: TestStore.allCases, [false, true])
  func whicheverReadFailsNoWrongValueIsSaved(_ store: TestStore, _ isReading: Bool) throws {
    var seeds = SeededGenerator()
    print("failing reads on \(store)\(isReading ? " in closures" : ""): HOLDFAST_SEED=\(seeds.seed)")
    let seed = seeds.next()
    for call in [FaultInjectingStore.Call.beginRead, .rows, .relationships, .fetch] {
      var (number, refusals) = (1, 0)
      // Until the program makes fewer calls. Each call fails until a save is refused, and then a share of them, or all in the full tier.
      while try run(store, seed, call, number, isReading, &refusals) {
        number += refusals == 0 ? 1 : Int.random(in: 1..<2 * TestTier.step(4), using: &seeds)
      }
      #expect(number > 1 && (refusals > 0 || call == .fetch), "\(call): \(number) calls, \(refusals) saves refused")
    }
  }

  /// - Returns: whether the program made the failing call.
  private func run(
    _ store: TestStore, _ seed: UInt64, _ call: FaultInjectingStore.Call, _ number: Int, _ isReading: Bool, _ refusals: inout Int
  ) throws -> Bool {
    var random = SeededGenerator(seed: seed)
    let place = try store.makePlace()
    var now = try Program(try place.context(), &random), saved = now
    let (context, failing) = try place.faulty()
    let ids = try Dictionary(uniqueKeysWithValues: context.fetch(FetchRequest<Dog>()).map { ($0.name, $0.objectID) })
    context.reset()
    let before = failing.count(of: call)
    failing.fail(call, onCall: number, with: Self.busy)
    for round in 0..<6 {
      // Everything is a fault again, and the row cache is empty.
      try context.refreshAllObjects()
      context.persistentStoreCoordinator.rowCache.removeAll()
      let dogs = try ids.mapValues { try #require(try context.object(with: $0) as? Dog) }
      for _ in 0..<4 {
        guard isReading else {
          now.step(dogs, &random)
          continue
        }
        let before = now
        do { try context.reading { now.step(dogs, &random) } } catch {
          #expect((error as? StoreError)?.code == .locked, "\(error)")
          // The save is refused if the step has changed anything.
          now = before
        }
      }
      do {
        // Every program fetches at least once.
        if Bool.random(using: &random) || round == 0 { _ = try context.fetch(FetchRequest<Dog> { $0.age > 3 }) }
        try context.save()
        saved = now
      } catch {
        let isRefusal = (error as? PersistenceError)?.code == .unreadValues
        if isRefusal { refusals += 1 }
        #expect(isRefusal || (error as? StoreError)?.code == .locked, "\(error)")
        context.rollback()
        now = saved
      }
    }
    let made = failing.count(of: call) - before >= number
    failing.clear()
    let check = try ManagedObjectContext(coordinator: context.persistentStoreCoordinator, classes: Kennel.classes)
    if let difference = try saved.difference(check) {
      Issue.record("HOLDFAST_SEED=\(seed): \(call) number \(number) failed on \(store), then \(difference)")
      return false
    }
    return made
  }
}
