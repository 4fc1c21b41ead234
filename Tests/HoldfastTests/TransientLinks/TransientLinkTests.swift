import Holdfast
import HoldfastStore
import HoldfastStoreConformance
import TestSupport
import Testing

/// Transient relationships: only in memory, on every store.
@Suite struct TransientLinkTests {
  private func place(_ store: TestStore) throws -> TestStore.Place { try store.makePlace(model: Web.model, classes: Web.classes) }

  private func names<Kind: Node>(_ nodes: some Sequence<Kind>) -> [String] { nodes.map(\.name).sorted() }

  // MARK: Both ends

  @Test(arguments: TestStore.allCases) func theInverseFollowsInEveryShape(_ store: TestStore) throws {
    let context = try place(store).context()
    let (a, b, c) = (context.node("a"), context.node("b"), context.leaf("c"))
    a.pick = b
    c.pick = b
    #expect(names(b.pickedBy) == ["a", "c"] && b.pickedBy.contains(a) && b.pickedBy.count == 2)
    b.pickedBy.remove(a)
    #expect(a.pick == nil && c.pick == b)
    a.pickedBy.insert(c)
    #expect(c.pick == a && b.pickedBy.isEmpty && names(a.pickedBy) == ["c"])

    a.next = b
    c.next = b
    #expect(a.next == nil && c.next == b && b.previous == c)
    a.previous = c
    #expect(c.next == a && b.previous == nil)
    a.next = a
    #expect(a.next == a && a.previous == a && c.next == nil)
    a.next = nil
    #expect(a.next == nil && a.previous == nil)

    a.mate = b
    #expect(b.mate == a)
    b.mate = c
    #expect(a.mate == nil && c.mate == b && b.mate == c)
    c.mate = c
    #expect(b.mate == nil && c.mate == c)
    c.mate = nil
    #expect(c.mate == nil)

    a.peers.formUnion([b, c, a])
    #expect(names(a.peers) == ["a", "b", "c"] && names(b.peers) == ["a"] && c.peers.contains(a))
    c.peers.remove(a)
    a.peers.remove(a)
    #expect(names(a.peers) == ["b"])

    a.queue.append(contentsOf: [b, c])
    b.queuedIn.insert(c)
    c.queue.insert(a, at: 0)
    #expect(a.queue.map(\.name) == ["b", "c"] && c.queue.map(\.name) == ["a", "b"] && names(b.queuedIn) == ["a", "c"])
    a.queue.move(from: 1, to: 0)
    a.queue.append(b)
    b.queuedIn.remove(c)
    #expect(a.queue.map(\.name) == ["c", "b"] && c.queue.map(\.name) == ["a"] && a.queue[1] == b && a.queue.firstIndex(of: c) == 0)
    a.queuedIn.insert(a)
    #expect(a.queue.map(\.name) == ["c", "b", "a"])

    a.held.insert(c)
    #expect(c.holder == a)
    c.holder = b
    #expect(a.held.isEmpty && b.held.contains(c))
    a.last = c
    a.seen.insert(c)
    #expect(a.last == c && names(a.seen) == ["c"])
  }

  @Test(arguments: TestStore.allCases) func theyAreCollectionsWhoseObjectsCanBeReplaced(_ store: TestStore) throws {
    let context = try place(store).context()
    let (a, b, c) = (context.node("a"), context.node("b"), context.leaf("c"))
    a.seen.append(b)
    a.seen.append(contentsOf: [c, b])
    #expect(names(a.seen) == ["b", "c"] && a.seen.first.map { [b, c].contains($0) } == true && a.seen.map(\.name).count == 2)
    a.seen.replaceAll(with: [a, c, a])
    #expect(names(a.seen) == ["a", "c"] && a.seen.filter { $0 == c } == [c])
    a.seen.remove(a)
    #expect(a.seen.first == c)
    a.seen.removeAll()
    #expect(a.seen.isEmpty && a.seen.first == nil)

    a.queue.append(contentsOf: [b, c])
    a.queue.replaceAll(with: [c, a, c])
    #expect(a.queue.map(\.name) == ["c", "a"] && a.queue.first == c && b.queuedIn.isEmpty && names(a.queuedIn) == ["a"])
    a.queue.remove(c)
    #expect(a.queue.first == a && c.queuedIn.isEmpty)
    a.queue.replaceAll(with: [])
    #expect(a.queue.first == nil && a.queuedIn.isEmpty)

    // Replacing moves objects that have another owner.
    b.pickedBy.append(a)
    c.pickedBy.replaceAll(with: [a, b])
    #expect(a.pick == c && b.pick == c && b.pickedBy.isEmpty)
  }

  @Test(arguments: TestStore.allCases) func aSaveKeepsThemInTheContextAndGivesThemToNoStore(_ store: TestStore) throws {
    let place = try place(store), context = try place.context()
    let (a, b, c) = (context.node("a"), context.node("b"), context.leaf("c"))
    a.pick = c
    a.queue.append(contentsOf: [c, b])
    a.mate = a
    b.held.insert(c)
    b.seen.insert(a)
    c.last = b
    a.parent = b
    try context.save()
    func check() {
      #expect(a.pick == c && names(c.pickedBy) == ["a"] && a.queue.map(\.name) == ["c", "b"] && a.mate == a)
      #expect(c.holder == b && names(b.held) == ["c"] && names(b.seen) == ["a"] && c.last == b && a.parent == b)
    }
    check()
    let d = context.node("d")
    d.pick = c
    a.queue.insert(d, at: 1)
    d.mate = a
    b.name = "b"
    try context.save()
    #expect(names(c.pickedBy) == ["a", "d"] && a.queue.map(\.name) == ["c", "d", "b"] && a.mate == d)
    a.queue.remove(d)
    d.pick = nil
    a.mate = a
    check()
    let other = try #require(try place.context().node(named: "a"))
    #expect(other.pick == nil && other.queue.isEmpty && other.mate == nil && other.parent?.name == "b" && other.seen.isEmpty)
    try context.save()
    try place.close()
    let again = try #require(try place.context().node(named: "a"))
    #expect(again.pick == nil && again.queue.isEmpty && again.mate == nil && again.parent?.name == "b")
  }

  @Test(arguments: TestStore.allCases) func noStoreIsAskedForThem(_ store: TestStore) throws {
    let place = try place(store), first = try place.context()
    for name in ["a", "b", "c"] { first.node(name) }
    let root = first.leaf("root")
    for node in first.insertedObjects where node != root { (node as? Node)?.parent = root }
    try first.save()
    let (context, recorder) = try place.recording()
    let ids = try ["a", "b", "c"].map { try #require(try context.node(named: $0)).objectID }
    context.reset()
    recorder.clear()
    let (a, b, c) = try (context.object(with: ids[0]), context.object(with: ids[1]), context.object(with: ids[2]))
    guard let a = a as? Node, let b = b as? Node, let c = c as? Node else { throw TestFailure() }
    #expect(a.pick == nil && a.pickedBy.isEmpty && a.queue.isEmpty && a.mate == nil && a.seen.count == 0)
    a.pick = b
    a.queue.append(contentsOf: [b, c])
    a.queue.swapAt(0, 1)
    a.peers.insert(b)
    a.mate = c
    b.pickedBy.insert(c)
    b.last = a
    #expect(Set(b.pickedBy) == [a, c] && Array(a.queue) == [c, b] && c.mate == a && a.isFault && b.isFault)
    #expect(a.isUpdated && b.isUpdated && c.isUpdated && context.hasChanges)
    try context.save()
    #expect(!context.hasChanges && Set(b.pickedBy) == [a, c] && b.last == a)
    context.rollback()
    #expect(a.pick == b && Array(a.queue) == [c, b])
    try context.refresh(a, mergeChanges: false)
    #expect(a.pick == nil && a.queue.isEmpty && b.pickedBy.count == 1 && c.mate == nil && b.last == a)
    context.reset()
    #expect(recorder.requests.isEmpty, "\(recorder.requests)")
  }

  // MARK: Lifetime

  /// The new objects have permanent IDs already.
  @Test(arguments: TestStore.allCases) func rollbackRemovesThoseToNewObjectsWithPermanentIDs(_ store: TestStore) throws {
    let context = try place(store).context(), a = context.node("a"), b = context.node("b")
    try context.save()
    let new = context.leaf("new"), other = context.node("other")
    a.last = new
    a.seen.formUnion([new, b, other])
    a.queue.append(contentsOf: [other, b])
    try context.obtainPermanentIDs(for: [new, other])
    context.rollback()
    #expect(a.last == nil && names(a.seen) == ["b"] && a.seen.count == 1 && Array(a.queue) == [b])
    a.last = b
    try context.save()
    #expect(a.last == b && names(a.seen) == ["b"])
  }

  /// The linked object is inserted when the outcome of the other one's save is unknown, and saved when it is known.
  @Test(arguments: [TestStore.memory, .sqlite, .weakest], OutcomeStore.Loss.allCases)
  func thoseToAnObjectThatIsInsertedAfterASaveWithAnUnknownOutcomeStay(_ store: TestStore, _ loss: OutcomeStore.Loss) throws {
    let stack = try LossyStack(store, model: Web.model, classes: Web.classes), context = stack.context, a = context.node("a")
    stack.saveInVain(loss)
    let b = context.node("b")
    a.pick = b
    a.seen.insert(b)
    a.queue.append(b)
    try context.save()
    #expect(a.pick == b && Array(a.seen) == [b] && Array(a.queue) == [b] && Array(b.pickedBy) == [a] && !context.hasChanges)
  }

  /// The linked object is in a store that doesn't commit.
  @Test(arguments: StorePair.allCases, [false, true])
  func thoseToAnObjectThatAnIncompleteSaveLeavesOutFollowIt(_ pair: StorePair, _ isRolledBack: Bool) throws {
    let pack = try StorePack(pair.kinds, model: Web.model)
    let context = try ManagedObjectContext(coordinator: pack.coordinator, classes: Web.classes)
    let (a, b) = (context.node("a"), context.node("b"))
    try context.assign(b, to: pack.stores[1])
    a.pick = b
    a.seen.insert(b)
    pack.faults[1].fail(.commit, with: StoreError(.diskFull, operation: "save", reason: "A test said so."))
    #expect(try #require(throws: PersistenceError.self) { try context.save() }.code == .incompleteSave)
    #expect(a.pick == b && Array(a.seen) == [b] && !a.hasChanges && context.updatedObjects.isEmpty)
    if isRolledBack { context.rollback() } else { try context.save() }
    #expect(a.pick == (isRolledBack ? nil : b) && Array(a.seen) == (isRolledBack ? [] : [b]) && !context.hasChanges)
    if !isRolledBack { #expect(Array(b.pickedBy) == [a] && !b.objectID.isTemporaryID) }
  }

  @Test(arguments: [TestStore.memory, .sqlite, .second]) func rollbackKeepsThemAndARefreshWithoutMergingForgetsThemAtBothEnds(
    _ store: TestStore
  ) throws {
    let context = try place(store).context()
    let (a, b) = (context.node("a"), context.node("b"))
    try context.save()
    a.pick = b
    a.queue.append(b)
    a.name = "changed"
    let new = context.leaf("new")
    new.pick = b
    new.holder = a
    a.last = new
    a.seen.formUnion([new, b])
    context.rollback()
    // As for transient attributes, unsaved values have no last saved value to restore.
    #expect(a.name == "a" && a.pick == b && Array(a.queue) == [b] && names(b.pickedBy) == ["a"] && !a.isUpdated)
    #expect(a.last == nil && names(a.seen) == ["b"] && a.seen.count == 1 && a.held.isEmpty && new.holder == nil)
    a.parent = b
    try context.refresh(a, mergeChanges: true)
    #expect(a.pick == b && a.parent == b)
    try context.save()
    var refreshed: [ManagedObjectID] = []
    let observation = context.onChange { refreshed += $1.refreshed }
    try context.refresh(b, mergeChanges: false)
    try context.processPendingChanges()
    observation.cancel()
    #expect(a.pick == nil && a.queue.isEmpty && b.pickedBy.isEmpty && b.queuedIn.isEmpty && names(a.seen) == ["b"])
    #expect(Set(refreshed) == [a.objectID, b.objectID] && !context.hasChanges)
    a.mate = b
    context.reset()
    #expect(a.mate == nil && b.mate == nil)
  }

  @Test(arguments: [TestStore.memory, .sqlite, .weakest, .second]) func anObjectThatWentHasItsLinksWhenItIsMadeAgain(_ store: TestStore)
    throws
  {
    let context = try place(store).context()
    do {
      let (a, b, c) = (context.node("a"), context.node("b"), context.leaf("c"))
      a.pick = c
      a.queue.append(contentsOf: [b, c])
      a.queue.swapAt(0, 1)
      a.last = b
      b.seen.insert(c)
      c.holder = a
      try context.save()
    }
    #expect(context.registeredObjects.isEmpty)
    do {
      let c = try #require(try context.node(named: "c") as? Leaf)
      #expect(names(c.pickedBy) == ["a"] && c.holder?.name == "a" && Array(c.queuedIn).first?.queue.map(\.name) == ["c", "b"])
    }
    do {
      // Only one end is referenced while the other loses the link.
      let b = try #require(try context.node(named: "b"))
      b.queuedIn.removeAll()
      #expect(names(b.seen) == ["c"])
      try context.save()
    }
    let a = try #require(try context.node(named: "a"))
    a.queue.append(a)
    #expect(a.queue.map(\.name) == ["c", "a"] && a.pick?.name == "c" && a.last?.name == "b" && a.held.map(\.name) == ["c"])
    context.reset()
    let again = try #require(try context.node(named: "a"))
    #expect(again.queue.isEmpty && again.pick == nil && again.held.isEmpty)
  }

  @Test func objectsAreNotKeptAliveByLinks() throws {
    let context = try place(.memory).context()
    do {
      let (a, b) = (context.node("a"), context.node("b"))
      a.mate = b
      try context.save()
      #expect(context.registeredObjects.count == 2)
    }
    #expect(context.registeredObjects.isEmpty)
  }

  // MARK: Deletion

  @Test(arguments: TestStore.allCases) func deletedObjectsLeaveThemAndComeBackWithARollback(_ store: TestStore) throws {
    let context = try place(store).context()
    let (a, b, c) = (context.node("a"), context.node("b"), context.leaf("c"))
    a.pick = b
    c.next = b
    a.queue.append(contentsOf: [b, c])
    a.seen.formUnion([b, c])
    a.last = b
    try context.save()
    var updated: [ManagedObjectID] = []
    let observation = context.onChange { updated += $1.updated }
    context.delete(b)
    try context.processPendingChanges()
    observation.cancel()
    #expect(a.pick == nil && c.next == nil && a.queue.map(\.name) == ["c"] && names(a.seen) == ["c"] && a.last == nil)
    #expect(Set(updated) == [a.objectID, c.objectID])
    context.rollback()
    #expect(a.pick == b && c.next == b && a.queue.map(\.name) == ["b", "c"] && a.last == b)
    context.delete(b)
    try context.save()
    #expect(a.pick == nil && c.next == nil && a.queue.map(\.name) == ["c"] && names(a.seen) == ["c"] && a.last == nil && a.seen.count == 1)
    let gone = context.node("gone")
    gone.pick = a
    a.last = gone
    a.seen.insert(gone)
    context.delete(gone)
    try context.save()
    #expect(a.pickedBy.isEmpty && a.last == nil && names(a.seen) == ["c"])
  }

  /// The program has released the linked object, and may have found it again since.
  ///
  /// The bug: the links stayed, and referenced an object without values.
  @Test(arguments: TestStore.allCases, [false, true])
  func objectsThatAMergeFindsDeletedLeaveThem(_ store: TestStore, _ isFound: Bool) throws {
    let place = try place(store), context = try place.context(), a = context.node("a")
    do {
      let b = context.node("b")
      a.pick = b
      a.mate = b
      a.queue.append(b)
      b.queue.append(a)
      try context.save()
    }
    #expect(context.registeredObjects == [a])
    let found = try isFound ? context.node(named: "b") : nil
    context.automaticallyMergesChanges = true
    let other = try place.context()
    other.delete(try #require(try other.node(named: "b")))
    try other.save()
    try context.processPendingChanges()
    #expect(found.map(\.isInaccessible) != false)
    #expect(a.pick == nil && a.mate == nil && a.queue.isEmpty && a.queuedIn.isEmpty)
  }

  /// A merge has discarded the change of the object with the link, so the save has nothing to write.
  ///
  /// The bug: the links stayed, and referenced an object without values.
  @Test(arguments: TestStore.allCases) func deletedNewObjectsLeaveThemIfASaveHasNothingToWrite(_ store: TestStore) throws {
    let place = try place(store), context = try place.context(), a = context.node("a")
    try context.save()
    context.mergePolicy = .rollback
    context.automaticallyMergesChanges = true
    let new = context.node("new")
    a.name = "changed"
    a.last = new
    a.seen.insert(new)
    let other = try place.context()
    try #require(try other.node(named: "a")).name = "stored"
    try other.save()
    try context.processPendingChanges()
    #expect(a.name == "stored" && !a.hasChanges && a.last == new)
    context.delete(new)
    try context.save()
    #expect(a.last == nil && a.seen.isEmpty && !context.hasChanges)
  }

  /// The bug: the merge of a deletion in the store that was removed since discarded the change, although the save couldn't have its store.
  @Test func anObjectOfARemovedStoreKeepsItsChangesBesideLinksInMemory() throws {
    let places = [try place(.memory), try place(.memory)]
    let coordinator = try PersistentStoreCoordinator(model: Web.model, stores: places.map(\.description))
    let ours = try ManagedObjectContext(coordinator: coordinator, classes: Web.classes)
    let theirs = try ManagedObjectContext(coordinator: coordinator, classes: Web.classes)
    let a = ours.node("a"), changed = ours.node("c")
    try ours.assign(changed, to: coordinator.persistentStores[1])
    do {
      a.pick = ours.node("b")
      try ours.save()
    }
    ours.automaticallyMergesChanges = true
    ours.mergePolicy = .rollback
    changed.name = "changed"
    theirs.delete(try #require(try theirs.node(named: "c")))
    try theirs.save()
    try coordinator.remove(coordinator.persistentStores[1])
    try ours.processPendingChanges()
    #expect(changed.name == "changed" && changed.isUpdated)
    #expect(try #require(throws: PersistenceError.self) { try ours.save() }.code == .missingStore)
  }

  private static func ruled(_ rule: DeleteRule) throws -> ManagedObjectModel {
    try ManagedObjectModel(entities: [
      EntityDescription("Owner", relationships: [.toMany("things", to: "Thing", inverse: "owner", isTransient: true, deleteRule: rule)]),
      EntityDescription("Thing", relationships: [.toOne("owner", to: "Owner", inverse: "things", isTransient: true)]),
    ])
  }

  @Test(arguments: [DeleteRule.cascade, .deny, .nullify, .noAction]) func deleteRulesGoByWhatIsInMemory(_ rule: DeleteRule) throws {
    let context = try TestStore.sqlite.makePlace(model: try Self.ruled(rule), classes: []).context()
    let owner = try context.insert(entityNamed: "Owner")
    let things = try (0..<3).map { _ in try context.insert(entityNamed: "Thing") }
    try context.save()
    try owner.setValue(Array(things[..<2]), forKey: "things")
    context.delete(owner)
    switch rule {
    case .cascade:
      try context.save()
      #expect(
        things.map { $0.isInaccessible || $0.entity.name == "Thing" && (try? context.existingObject(with: $0.objectID)) == nil } == [
          true, true, false,
        ])
    case .deny:
      let error = try #require(throws: PersistenceError.self) { try context.save() }
      #expect(error.code == .deniedDelete && error.property == "things" && Set(error.objectIDs) == Set(things[..<2].map(\.objectID)))
      try things[0].setValue(.null, forKey: "owner")
      try things[1].setValue(.null, forKey: "owner")
      try context.save()
    case .nullify, .noAction:
      try context.save()
      #expect(try things.allSatisfy { try $0.value(forKey: "owner") == .null })
    }
  }

  // MARK: By name, in queries, in validation

  @Test func theyHaveNames() throws {
    let context = try place(.memory).context()
    let gone = try Self.goneObject(context)
    let (a, b, c) = (context.node("a"), context.node("b"), context.leaf("c"))
    #expect(try a.value(forKey: "pick") == .single(.null) && a.value(forKey: "queue").objects == [])
    try a.setValue(.objectID(b.objectID), forKey: "pick")
    try a.setValue([c, b], forKey: "queue")
    try a.setValue([c], forKey: "peers")
    #expect(a.pick == b && Array(a.queue) == [c, b] && c.peers.contains(a))
    #expect(try a.value(forKey: "pick") == .single(.objectID(b.objectID)) && a.value(forKey: "queue").objects == [c, b])
    #expect(try a.value(forKeyPath: "pick.name") == .single(.string("b")))
    #expect(try a.value(forKeyPath: "queue.@count") == .single(.int64(2)))
    #expect(try a.toMany(forKey: "peers").contains(c) && a.ordered(forKey: "queue").count == 2)
    try a.setValue(.string("B"), forKeyPath: "pick.name")
    #expect(b.name == "B")
    try a.setValue(.null, forKey: "pick")
    #expect(a.pick == nil && b.pickedBy.isEmpty)
    func code(_ body: () throws -> Void) throws -> PersistenceError.Code {
      try #require(throws: PersistenceError.self, performing: body).code
    }
    #expect(try code { try a.setValue(.string("x"), forKey: "pick") } == .wrongType)
    #expect(try code { try a.setValue(.null, forKey: "queue") } == .wrongType)
    #expect(try code { try a.setValue([b], forKey: "pick") } == .wrongType)
    #expect(try code { try a.setValue([b], forKey: "held") } == .wrongType)
    #expect(try code { try c.setValue(.objectID(gone), forKey: "holder") } == .foreignObject)
    #expect(try code { try a.validateValue(.int64(1), forKey: "pick") } == .wrongType)
    try a.validateValue(.objectID(b.objectID), forKey: "pick")
  }

  private static func goneObject(_ context: ManagedObjectContext) throws -> ManagedObjectID {
    let gone = context.node("gone")
    defer { context.rollback() }
    return gone.objectID
  }

  @Test(arguments: TestStore.allCases) func queriesRefuseThemAsTransientAttributes(_ store: TestStore) throws {
    let context = try place(store).context()
    let a = context.node("a")
    try context.save()
    func reason(_ request: FetchRequest<Node>) throws -> String {
      let error = try #require(throws: QueryError.self) { try context.fetch(request) }
      return error.reason
    }
    #expect(try reason(FetchRequest { $0.pick == a }) == "Node.pick is transient, so stores have no values of it.")
    #expect(try reason(FetchRequest { $0.pick.name == "a" }).contains("Node.pick is transient"))
    #expect(try reason(FetchRequest(sortedBy: [.ascending(\.pick.name)])).contains("Node.pick is transient"))
    let isA = QueryExpression.comparison(.property("name"), .equalTo, .constant(.string("a")), [])
    #expect(try reason(FetchRequest(where: FetchPredicate(.any("queue", isA)))).contains("Node.queue is transient"))
  }

  @Test func mandatoryOnesAndCountsAreChecked() throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "E", attributes: [AttributeDescription("n", .integer16, isOptional: true)],
        relationships: [
          .toOne("must", to: "E", inverse: nil, isOptional: false, isTransient: true),
          .toMany("few", to: "E", inverse: nil, isTransient: true, minCount: 2, maxCount: 3),
        ])
    ])
    let place = try TestStore.sqlite.makePlace(model: model, classes: []), context = try place.context()
    let e = try context.insert(entityNamed: "E")
    func codes() -> [PersistenceError.Code] {
      do {
        try context.save()
        return []
      } catch let error as PersistenceError {
        return error.failures.isEmpty ? [error.code] : error.failures.map(\.code)
      } catch { return [] }
    }
    try e.setValue([e], forKey: "few")
    #expect(Set(codes()) == [.missingMandatoryValue, .tooFewObjects])
    try e.setValue(.objectID(e.objectID), forKey: "must")
    try e.setValue([], forKey: "few")
    #expect(codes() == [])
    #expect(try e.value(forKey: "must") == .single(.objectID(e.objectID)))
    // A fetched object has no transient links, and they aren't required.
    try place.close()
    let other = try place.context()
    let fetched = try #require(try other.fetch(FetchRequest<ManagedObject>(entityName: "E")).first)
    try fetched.setValue(.int16(1), forKey: "n")
    try other.save()
  }

  // MARK: Classes

  final class WrongNode: ManagedObject {
    override class var entityName: String { "Node" }
    var pick: WrongNode? { transientToOne(0) }
    var mate: WrongNode? { toOne(0) }
    var queue: ToMany<WrongNode> { toMany(0) }
    var seen: OrderedToMany<WrongNode> { transientOrdered(10) }
    override class var properties: [PropertyBinding] {
      [
        .transientToOne("pick", \WrongNode.pick, index: 0), .toOne("mate", \WrongNode.mate, slot: 0),
        .toMany("queue", \WrongNode.queue, index: 0), .transientToMany("seen", \WrongNode.seen, index: 10),
        .transientToOne("parent", \WrongNode.pick, index: 0),
      ]
    }
  }

  @Test func aClassThatSaysOtherwiseIsRefused() throws {
    let error = try #require(throws: PersistenceError.self) {
      try TestStore.memory.makePlace(model: Web.model, classes: [WrongNode.self]).context()
    }
    for line in [
      "WrongNode.pick: Its slot is 5, not 0.", "WrongNode.mate: The model declares a transient relationship.",
      "WrongNode.queue: The model declares a transient relationship.", "WrongNode.seen: The relationship isn't ordered in the model.",
      "WrongNode.parent: The model declares another kind of property.",
    ] { #expect(error.reason.contains(line), "\(error.reason)") }
  }

  @Test(.ownThreads) func anIndexThatTheEntityDoesNotHaveTraps() async {
    await #expect(processExitsWith: .failure) {
      mustTrap {
        let node = try TestStore.memory.makePlace(model: Web.model, classes: Web.classes).context().node("a")
        let _: Node? = node.transientToOne(99)
      }
    }
    await #expect(processExitsWith: .failure) {
      mustTrap {
        let node = try TestStore.memory.makePlace(model: Web.model, classes: Web.classes).context().node("a")
        let _: ToMany<Node> = node.transientToMany(Node.Slot.pick)
      }
    }
    await #expect(processExitsWith: .failure) {
      mustTrap {
        try TestStore.memory.makePlace(model: Web.model, classes: Web.classes).context().node("a").setTransientToOne(-1, nil)
      }
    }
  }

  @Test func keyPathsOfAnInheritedClassAreFound() throws {
    let context = try place(.memory).context()
    let leaf = context.leaf("l")
    try context.save()
    let error = try #require(throws: QueryError.self) { try context.fetch(Leaf.self) { $0.mate == leaf } }
    #expect(error.reason == "Leaf.mate is transient, so stores have no values of it.")
  }

  final class Waking: ManagedObject {
    override class var entityName: String { "Node" }
    var pick: Waking? {
      get { transientToOne(5) }
      set { setTransientToOne(5, newValue) }
    }
    override class var properties: [PropertyBinding] { [.transientToOne("pick", \Waking.pick, index: 5)] }
    override func awakeFromFetch() { pick = self }
  }

  @Test func aClassMaySetThemWhenItsObjectGetsItsRow() throws {
    let place = try TestStore.sqlite.makePlace(model: Web.model, classes: [Waking.self]), first = try place.context()
    let id = try {
      let made = first.insert(Waking.self)
      try made.setValue(.string("w"), forKey: "name")
      try first.save()
      return made.objectID
    }()
    try place.close()
    let context = try place.context()
    let object = try #require(try context.object(with: id) as? Waking)
    #expect(object.isFault && object.pick === object && !object.isFault)
  }

  private struct TestFailure: Error {}
}
