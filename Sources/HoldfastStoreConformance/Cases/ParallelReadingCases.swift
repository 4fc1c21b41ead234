import HoldfastStore
import Synchronization

/// Tests rules F7, F8 and S8 of the store contract: reading while another thread saves.
///
/// The order in which the threads run varies, but a correct store passes in every order.
enum ParallelReadingCases {
  static let all = [
    StoreConformanceCase(
      "S8", "a view that begins during saves shows all of a save or nothing", requires: .with { $0.snapshots = true }, entireSaves),
    StoreConformanceCase("F8", "a row that is read during saves has the values of one save", entireRows),
    StoreConformanceCase("F7", "a sink may send requests while another thread saves", requestsOfSink),
  ]

  // MARK: Rows that change together

  /// The keys of rows that each save changes together.
  private struct Keys: Sendable {
    let company: ObjectKey
    let people: [ObjectKey]
    let club: ObjectKey
  }

  private static func insert(_ store: TestedStore, _ graph: ExpectedGraph) throws -> Keys {
    let keys = Keys(
      company: try store.keys("Company", 1)[0], people: try store.keys("Person", 5), club: try store.keys("Club", 1)[0])
    try store.save(graph) { edit in
      edit.insert("Company", keys.company, company(0))
      edit.insert("Club", keys.club, ["name": .string("Club")])
      for (place, key) in keys.people.enumerated() { edit.insert("Person", key, person(place, keys, 0)) }
      edit.link("Person", "clubs", keys.people[0], keys.club)
    }
    return keys
  }

  /// Changes all rows. In even rounds, the people have an employer, and the first is in the club.
  private static func change(_ edit: GraphEdit, _ keys: Keys, _ round: Int) {
    edit.update("Company", keys.company, company(round))
    for (place, key) in keys.people.enumerated() { edit.update("Person", key, person(place, keys, round)) }
    if round % 2 == 0 {
      edit.link("Person", "clubs", keys.people[0], keys.club)
    } else {
      edit.unlink("Person", "clubs", keys.people[0], keys.club)
    }
  }

  private static func company(_ round: Int) -> [String: StoreValue] {
    ["name": .string("Round \(round)"), "size": .int32(Int32(round))]
  }

  private static func person(_ place: Int, _ keys: Keys, _ round: Int) -> [String: StoreValue] {
    [
      "name": .string("Round \(round)"), "city": .string("Round \(round)"), "number": .int64(Int64(round * 10 + place)),
      "employer": round % 2 == 0 ? .key(keys.company) : .null,
    ]
  }

  // MARK: Readers beside saves

  /// A reader on another thread.
  private final class Reader: Sendable {
    let store: any IncrementalStore
    let model: ManagedObjectModel
    /// The number of the last round that is committed.
    let committed = Atomic(0)
    let isDone = Atomic(false)
    let steps = ParallelSteps()
    /// Locked while the reader uses a view.
    let gate = Mutex(())
    private let found = Mutex<[StoreConformanceFailure.Difference]>([])

    init(_ store: TestedStore) { (self.store, self.model) = (store.store, store.model) }

    /// Repeats an observation until the saves are done. Errors such as `locked` are allowed.
    func observe(_ observation: (Reader) throws -> Void) throws {
      defer { steps.end() }
      while !isDone.load(ordering: .sequentiallyConsistent) {
        try gate.withLock { _ in
          do { try observation(self) } catch let error as StoreError where error.isRetryable || error.code == .locked {}
        }
        steps.step()
      }
    }

    var differences: [StoreConformanceFailure.Difference] { found.withLock { $0 } }

    func expect(_ holds: Bool, _ expected: @autoclosure () -> String, got: @autoclosure () -> String) {
      if !holds { found.withLock { $0.append(.init(expected: expected(), got: got())) } }
    }

    func rows(_ name: String, _ keys: [ObjectKey], in view: any ReadView) throws -> [RowView] {
      let sink = CollectingSink()
      try store.rows(FaultRequest(entity: model.entity(named: name)!.index, keys: keys), in: view, into: sink)
      return sink.rows
    }

    func people(in view: any ReadView) throws -> [RowView] {
      let sink = CollectingSink(), person = model.entity(named: "Person")!.index
      try store.fetch(FetchPlan(entity: person, concreteEntities: [person]), in: view, into: sink)
      return sink.rows
    }

    func targets(_ name: String, _ relationship: String, _ source: ObjectKey, in view: any ReadView) throws -> [ObjectKey] {
      let entity = model.entity(named: name)!, relationship = entity.relationship(named: relationship)!.index
      let request = RelationshipRequest(entity: entity.index, relationship: relationship, sources: [source])
      return try store.relationships(request, in: view).targets.sorted()
    }

    func value(_ row: RowView?, _ name: String, _ entity: String) -> StoreValue {
      row?[model.entity(named: entity)!.slot(named: name)!] ?? .null
    }
  }

  /// Saves in several rounds, while another thread repeats an observation. At least one observation ends between two saves.
  private static func observe(_ run: CaseRun, _ observation: @escaping @Sendable (Reader, Keys) throws -> Void) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = ExpectedGraph(store), reader = Reader(store), keys = try insert(store, graph)
    let reading = ParallelWork { try reader.observe { try observation($0, keys) } }
    defer { reader.isDone.store(true, ordering: .sequentiallyConsistent) }
    for round in 1...30 {
      reader.steps.waitForNext()
      do {
        try store.save(graph) { change($0, keys, round) }
      } catch let error as StoreError where error.isRetryable || error.code == .locked {
        // The reader's view made the save fail, so the save is repeated while the reader has no view.
        try reader.gate.withLock { _ in _ = try store.save(graph) { change($0, keys, round) } }
      }
      reader.committed.store(round, ordering: .sequentiallyConsistent)
    }
    reader.isDone.store(true, ordering: .sequentiallyConsistent)
    try reading.wait()
    for difference in reader.differences { run.fail(difference.expected, got: difference.got) }
    try store.expectContents(graph, "after saves beside a reader")
  }

  private static func entireSaves(_ run: CaseRun) throws {
    try observe(run) { reader, keys in
      for kind in [ReadViewKind.consistent, .snapshot] {
        let committed = reader.committed.load(ordering: .sequentiallyConsistent)
        let view = try reader.store.beginRead(kind)
        defer { view.end() }
        let size = reader.value(try reader.rows("Company", [keys.company], in: view).first, "size", "Company")
        let employees = try reader.targets("Company", "employees", keys.company, in: view)
        let clubs = try reader.targets("Person", "clubs", keys.people[0], in: view)
        let people = try reader.people(in: view)
        let round = Int(size.integer ?? -1), isEven = round % 2 == 0
        func expect(_ holds: Bool, _ what: String, got: @autoclosure () -> String) {
          reader.expect(holds, "\(what) in a \(kind) view that shows round \(round) of the company", got: got())
        }
        expect(round >= committed, "round \(committed) or a later one", got: "the round before")
        expect(employees == (isEven ? keys.people.sorted() : []), "the employees of that round", got: "\(employees)")
        expect(clubs == (isEven ? [keys.club] : []), "the clubs of that round", got: "\(clubs)")
        for row in people {
          let number = reader.value(row, "number", "Person")
          expect((number.integer ?? -1) / 10 == round, "a person of that round", got: "\(number)")
        }
      }
    }
  }

  private static func entireRows(_ run: CaseRun) throws {
    try observe(run) { reader, keys in
      let view = try reader.store.beginRead(.latest)
      defer { view.end() }
      let fetched = try reader.people(in: view), read = try reader.rows("Person", keys.people, in: view)
      reader.expect(fetched.count == 5 && read.count == 5, "5 rows of Person during saves", got: "\(fetched.count) and \(read.count)")
      for row in fetched + read {
        let round = (reader.value(row, "number", "Person").integer ?? -1) / 10
        let texts = ["name", "city"].map { reader.value(row, $0, "Person") }
        let isEmployed = reader.value(row, "employer", "Person") != .null
        let isEntire =
          texts.allSatisfy { $0 == .string("Round \(round)") } && isEmployed == (round % 2 == 0) && row.version == RowVersion(round + 1)
        let values = row.values.map { "\($0)" }.joined(separator: ", ")
        reader.expect(isEntire, "a row of Person with the values of one save", got: "\(values) with version \(row.version)")
      }
    }
  }

  // MARK: Requests of a sink beside a save

  /// A sink that starts a save on another thread when it receives the first rows, and sends requests for each row.
  private final class SavingSink: RowSink {
    private let store: TestedStore
    private let view: any ReadView
    private let request: SaveRequest
    private(set) var save: ParallelWork?
    private(set) var rows: [RowView] = []
    private(set) var nested: [RowView] = []

    init(_ store: TestedStore, _ view: any ReadView, _ request: SaveRequest) {
      (self.store, self.view, self.request) = (store, view, request)
    }

    func take(_ batch: RowBatch, _ selection: RowSelection) throws -> SinkDemand {
      if save == nil { save = ParallelWork { [store = store.store, request] in try store.prepare(request).commit() } }
      let received = CollectingSink()
      _ = received.take(batch, selection)
      rows += received.rows
      for row in received.rows {
        nested += try store.rows("Person", [row.key], in: view)
        _ = try store.targets("Person", "friends", [row.key], in: view)
      }
      return .more
    }
  }

  private static func requestsOfSink(_ run: CaseRun) throws {
    let store = try run.openNew(ConformanceModel.general)
    let graph = try ConformanceRows.people(store), keys = graph.rows("Person").keys.sorted()
    for kind in [ReadViewKind.latest, .consistent, .snapshot] {
      let edit = GraphEdit(graph), before = ExpectedGraph(graph)
      for key in keys { edit.update("Person", key, ["name": .string("After \(kind)")]) }
      let view = try store.store.beginRead(kind), sink = SavingSink(store, view, edit.request())
      let result = Result { try store.store.fetch(store.plan("Person"), in: view, into: sink) }
      view.end()
      do { try sink.save?.wait() } catch let error as StoreError where error.isRetryable || error.code == .locked {
        // The reader's view made the save fail, so the save is repeated after the view has ended.
        try store.save(edit.request())
      }
      edit.apply()
      try result.get()
      for (rows, what) in [(sink.rows, "rows fetched"), (sink.nested, "rows requested by the sink")] {
        let what = "the \(what) in a view of kind \(kind) beside a save"
        if run.harness.capabilities.snapshots, kind != .latest {
          store.expectRows(rows, Array(before.rows("Person").values), what)
        } else {
          run.expectEqual(rows.map(\.key).sorted(), keys, "the keys of \(what)")
        }
      }
      try store.expectContents(graph, "after a save beside a fetch in a view of kind \(kind)")
    }
  }
}
