internal import BenchmarkData
internal import BenchmarkRunner
internal import Holdfast
internal import HoldfastStore

/// The workloads on people. They measure the same intervals as the reference programs in C.
///
/// | workload | measured interval |
/// |---|---|
/// | `W1` | from opening to the end of the save; `W1close` includes closing, `W1save` is only the save |
/// | `W2` `W3` | from opening until all attributes are read, or until the object is read |
/// | `W3again` | the same as `W3`, after the process has opened, read and closed the store before |
/// | `W4` `W4i` `W5` `W5b` `W8` | the requests, after one that warmed up the store; `W4i` has an index on names, `W5b` one request
/// for all persons |
/// | `W6` `W7` | from the fetch to the end of the save, with an open store |
/// | `S1` … `S1000` | from the change to the end of the save, with an open store and persons in memory |
///
/// The input's bytes exist before any clock starts. `W1` includes making strings of them, as a program does that reads its input.
/// Models are created before any clock starts, because an application has its model when it opens a store.
struct PeopleWorkloads {
  let kind: StoreKind

  /// For a store that reads on demand: one process per workload.
  var separate: [Workload] {
    [
      workload("W1", .makesStore, insert), workload("W2", .readsStore, readAll), workload("W3", .readsStore, readOne),
      workload("W3again", .readsStore, readOneAgain), workload("W4", .readsStore, search), workload("W4i", .changesStore, searchIndexed),
      workload("W5", .readsStore) { try warm("W5", $0) { try $0.walk() } },
      workload("W5b", .readsStore) { try warm("W5b", $0) { try $0.walkTogether() } },
      workload("W8", .readsStore) { try warm("W8", $0) { try $0.aggregate() } },
      workload("W6", .changesStore) { try update("W6", $0) },
      workload("W7", .changesStore) { try delete("W7", $0) },
      workload("SAVES", .changesStore, minimumSize: leastForSaves) { try saves($0, try open($0, PeopleModel.make())) },
    ]
  }

  /// For a store that reads its entire file: one process that creates it, and one that opens it once and performs all phases.
  var whole: [Workload] {
    [
      workload("W1", .makesStore, insertAndTimeSave), workload("READ", .changesStore, readOnce),
      workload("SAVES", .changesStore, minimumSize: leastForSaves) { try saves($0, try open($0, PeopleModel.make())) },
    ]
  }

  /// For an in-memory store: one process that creates the graph and performs all phases.
  var together: [Workload] {
    [
      workload("READ", .needsNoFile, everything),
      workload("SAVES", .needsNoFile, minimumSize: leastForSaves) { try saves($0, try made($0)) },
    ]
  }

  /// Fewer people aren't enough for any ``/BenchmarkData/SavePhase``, so the saves would report no figures.
  private var leastForSaves: Int { SavePhase.ones.places.upperBound }

  private func workload(
    _ name: String, _ use: Workload.StoreUse, minimumSize: Int = 1, _ body: @escaping @Sendable (StoreRun) throws -> Void
  ) -> Workload {
    let kind = kind
    return Workload(name, .people, use, minimumSize: minimumSize) { try body(StoreRun(kind, $0)) }
  }

  private func open(_ run: StoreRun, _ model: ManagedObjectModel) throws -> PeopleGraph {
    let context = try run.open(model, PeopleModel.classes)
    return PeopleGraph(context: context, count: run.context.size)
  }

  // MARK: Creating

  private func insert(_ run: StoreRun) throws {
    let people = run.context.people()
    try StoreFiles(run.context.path).remove()
    let model = try PeopleModel.make()
    run.begin()
    let graph = try open(run, model)
    let objects = graph.insert(people)
    try graph.context.save()
    let saved = withExtendedLifetime(objects) { run.figure("W1") }, count = UInt64(objects.persons.count)
    try run.close()
    let closed = withExtendedLifetime(objects) { run.figure("W1close") }
    // Afterwards, because reporting takes time and allocates.
    run.report(saved, check: count)
    run.report(closed, check: count)
  }

  private func insertAndTimeSave(_ run: StoreRun) throws {
    let people = run.context.people()
    try StoreFiles(run.context.path).remove()
    let model = try PeopleModel.make()
    run.begin()
    let graph = try open(run, model)
    let objects = graph.insert(people)
    let beforeSave = run.split()
    try graph.context.save()
    let figure = withExtendedLifetime(objects) { run.figure("W1") }, count = UInt64(objects.persons.count)
    run.report(figure, check: count)
    run.report(run.figure("W1save", since: beforeSave, endingWith: figure), check: count)
    try run.close()
  }

  // MARK: Reading

  private func readAll(_ run: StoreRun) throws {
    let model = try PeopleModel.make()
    run.begin()
    let graph = try open(run, model)
    let persons = try graph.all()
    let sum = graph.read(persons)
    withExtendedLifetime(persons) { run.report("W2", check: sum) }
  }

  private func readOne(_ run: StoreRun) throws {
    let model = try PeopleModel.make()
    run.begin()
    run.report("W3", check: try open(run, model).one())
  }

  private func readOneAgain(_ run: StoreRun) throws {
    let model = try PeopleModel.make()
    _ = try open(run, model).one()
    try run.close()
    run.begin()
    run.report("W3again", check: try open(run, model).one())
  }

  private func search(_ run: StoreRun) throws { try warm("W4", run) { try $0.search() } }

  private func searchIndexed(_ run: StoreRun) throws { try warm("W4i", run, indexesNames: true) { try $0.search() } }

  /// Measures a request to a store that has already answered another one.
  private func warm(_ name: String, _ run: StoreRun, indexesNames: Bool = false, _ body: (PeopleGraph) throws -> UInt64) throws {
    let graph = try open(run, PeopleModel.make(indexesNames: indexesNames))
    _ = try graph.context.count(StoredPerson.self) { $0.id == PeopleDataset.id(at: 0) }
    run.begin()
    run.report(name, check: try body(graph))
  }

  // MARK: Changing

  private func update(_ name: String, _ run: StoreRun) throws {
    let graph = try open(run, PeopleModel.make())
    run.begin()
    let changed = try graph.persons(withRemainder: 11), sum = graph.celebrate(changed)
    try graph.context.save()
    let figure = run.figure(name)
    try expectSavedAges(of: changed, where: FetchPredicate { $0.id % 100 == 11 }, run)
    run.report(figure, check: sum)
  }

  private func delete(_ name: String, _ run: StoreRun) throws {
    let graph = try open(run, PeopleModel.make())
    run.begin()
    let deleted = try graph.persons(withRemainder: 37)
    for person in deleted { graph.context.delete(person) }
    try graph.context.save()
    try report(name, run, deleted: deleted.count)
  }

  /// Changes persons that were read before, and saves. Small saves are first, as in a program that saves while the user types.
  private func saves(_ run: StoreRun, _ graph: PeopleGraph) throws {
    var changed: [StoredPerson] = []
    for phase in SavePhase.phases(of: graph.count) {
      let persons = try phase.places.map { try graph.person(PeopleDataset.sampleID($0, of: graph.count)) }
      changed += persons
      let each = persons.count / phase.saveCount
      run.begin()
      var sum: UInt64 = 0
      for save in 0..<phase.saveCount {
        sum += graph.celebrate(Array(persons[save * each..<(save + 1) * each]))
        try graph.context.save()
      }
      run.report(phase.rawValue, check: sum)
    }
    let ids = changed.map(\.id)
    try expectSavedAges(of: changed, where: FetchPredicate { $0.id.isIn(ids) }, run)
  }

  /// Throws unless the store has the ages of changed persons. The checksums are those of the objects, which have their new ages also if a
  /// save did nothing. Call it after the last measured interval of the process, or when the figure was taken.
  private func expectSavedAges(
    of persons: [StoredPerson], where predicate: FetchPredicate<StoredPerson>, _ run: StoreRun
  ) throws {
    let saved = try PeopleGraph(context: run.newContext(), count: run.context.size).totalAge(where: predicate)
    let expected = persons.reduce(0) { $0 + Int64($1.age) }
    if saved != expected { throw UnsavedValues("the ages of \(persons.count) persons", saved: saved, expected: expected) }
  }

  /// Counts the remaining links in a new context, outside the measured interval.
  private func report(_ name: String, _ run: StoreRun, deleted: Int) throws {
    let figure = run.figure(name)
    let remaining = try PeopleGraph(context: run.newContext(), count: run.context.size).linkCount()
    run.report(figure, check: UInt64(deleted + 7 * remaining))
  }

  // MARK: All in one process

  private func readOnce(_ run: StoreRun) throws {
    let model = try PeopleModel.make()
    run.begin()
    let graph = try open(run, model)
    let one = try graph.one(), first = run.figure("W3")
    let persons = try graph.all()
    let sum = graph.read(persons), all = run.figure("W2")
    // Afterwards, because reporting takes time and allocates.
    run.report(first, check: one)
    run.report(all, check: sum)
    try useLoaded(run, graph)
    withExtendedLifetime(persons) {}
  }

  private func everything(_ run: StoreRun) throws {
    let beginning = run.split()
    try makeGraph(run)
    let graph = PeopleGraph(context: try run.newContext(), count: run.context.size)
    let persons = try readGraph(run, graph, since: beginning)
    run.begin()
    run.report("W3", check: try graph.one())
    try useLoaded(run, graph)
    withExtendedLifetime(persons) {}
  }

  /// Measures requests for a graph that is in memory.
  private func useLoaded(_ run: StoreRun, _ graph: PeopleGraph) throws {
    run.begin()
    run.report("W4", check: try graph.search())
    run.begin()
    run.report("W5", check: try graph.walk())
    run.begin()
    run.report("W8", check: try graph.aggregate())
    run.begin()
    let changed = try graph.persons(withRemainder: 11), sum = graph.celebrate(changed)
    try graph.context.save()
    run.report("W6", check: sum)
    run.begin()
    let deleted = try graph.persons(withRemainder: 37)
    for person in deleted { graph.context.delete(person) }
    try graph.context.save()
    try report("W7", run, deleted: deleted.count)
    try expectSavedAges(of: changed, where: FetchPredicate { $0.id % 100 == 11 }, run)
  }

  /// The context's objects are released at the end, so that the next phase begins without objects.
  private func makeGraph(_ run: StoreRun) throws {
    let people = run.context.people()
    let model = try PeopleModel.make()
    run.begin()
    let graph = try open(run, model)
    let objects = graph.insert(people)
    try graph.context.save()
    withExtendedLifetime(objects) { run.report("W1", check: UInt64(objects.persons.count)) }
    // Read the same objects, as the program that created them would.
    run.begin()
    let sum = graph.read(try graph.all())
    withExtendedLifetime(objects) { run.report("W2again", check: sum) }
  }

  /// Creates a graph that is in an in-memory store, but not in the context.
  private func made(_ run: StoreRun) throws -> PeopleGraph {
    let people = run.context.people()
    let graph = try open(run, PeopleModel.make())
    let objects = graph.insert(people)
    try graph.context.save()
    return try withExtendedLifetime(objects) { PeopleGraph(context: try run.newContext(), count: run.context.size) }
  }

  /// Memory is counted from the beginning, because the store's own memory is part of having everything loaded.
  private func readGraph(_ run: StoreRun, _ graph: PeopleGraph, since beginning: Mark) throws -> [StoredPerson] {
    run.begin()
    let persons = try graph.all()
    let sum = graph.read(persons)
    var figure = run.figure("W2")
    figure.heapDeltaBytes = run.figure("W2", since: beginning).heapDeltaBytes
    run.report(figure, check: sum)
    return persons
  }
}
