import FoundationEssentials
import Holdfast
import HoldfastSQLiteStore
import HoldfastStore
import HoldfastStoreConformance
import Synchronization
import TestSupport
import Testing

/// The requests and statements that derived values cost.
@Suite struct DerivedCostTests {
  private func readings(_ store: RecordingStore) -> [RecordedRequest] {
    store.requests.filter {
      switch $0 {
      case .fetch, .rows, .relationships: true
      default: false
      }
    }
  }

  private static let simple: ManagedObjectModel = {
    do {
      return try ManagedObjectModel(entities: [
        EntityDescription(
          "Dog",
          attributes: [
            AttributeDescription("name", .string, isOptional: true), .derived("walkCount", .integer64, "walks.@count"),
            .derived("minutes", .integer64, "walks.minutes.@sum"),
          ], relationships: [.toMany("walks", to: "Walk", inverse: "dog", deleteRule: .cascade)]),
        EntityDescription(
          "Walk", attributes: [AttributeDescription("minutes", .integer32, isOptional: true)],
          relationships: [.toOne("dog", to: "Dog", inverse: "walks")]),
      ])
    } catch { fatalError("\(error)") }
  }()

  @Test(arguments: [TestStore.memory, .json, .xml, .binary, .sqlite]) func `any number of new walks of a dog costs one request`(
    _ store: TestStore
  )
    throws
  {
    let place = try store.park(DerivedCostTests.simple)
    var (context, recorder) = try place.recording()
    let dog = context.make("Dog")
    for _ in 0..<500 { context.make("Walk", ["minutes": .int32(1)], dog: dog) }
    recorder.clear()
    try context.save()
    #expect(readings(recorder).isEmpty, "The save of new objects read something.")
    for count in [1, 100] {
      for _ in 0..<count { context.make("Walk", ["minutes": .int32(1)], dog: dog) }
      recorder.clear()
      try context.save()
      #expect(readings(recorder) == [.rows(FaultRequest(entity: 0, keys: [dog.objectID.key]))])
      #expect(recorder.saves.map { $0.entities[0]?.derived } == [[dog.objectID.key: [0, 2]]])
      #expect(recorder.saves.map { $0.entities[0]?.updated } == [[:]])
    }
    #expect(dog["walkCount"] == .int64(601))
    try context.persistentStoreCoordinator.close()
    (context, recorder) = try place.recording()
    let walk = try #require(try context.all("Walk").last)
    context.delete(walk)
    recorder.clear()
    try context.save()
    #expect(readings(recorder).filter { if case .rows(let request) = $0 { request.entity == 0 } else { true } }.count == 1)
    walk.managedObjectContext.reset()
    #expect(try context.all("Dog")[0]["walkCount"] == .int64(600))
  }

  @Test(arguments: [TestStore.memory, .json, .xml, .binary, .sqlite]) func `an entity without derived attributes costs no request`(
    _ store: TestStore
  )
    throws
  {
    let place = try store.park(Park.plain)
    let (context, recorder) = try place.recording()
    let dog = context.make("Dog", ["name": .string("Rex")])
    try context.save()
    recorder.clear()
    dog["name"] = .string("Max")
    context.make("Walk", dog: dog)
    try context.save()
    #expect(readings(recorder).isEmpty)
  }

  @Test func `a floating-point sum reads all its objects in two requests`() throws {
    let place = try TestStore.sqlite.park(
      try ManagedObjectModel(entities: [
        EntityDescription(
          "Dog", attributes: [.derived("distance", .double, "walks.distance.@sum")],
          relationships: [.toMany("walks", to: "Walk", inverse: "dog")]),
        EntityDescription(
          "Walk", attributes: [AttributeDescription("distance", .double, isOptional: true)],
          relationships: [.toOne("dog", to: "Dog", inverse: "walks")]),
      ]))
    let (context, recorder) = try place.recording()
    let dog = context.make("Dog")
    for _ in 0..<2000 { context.make("Walk", ["distance": .double(0.25)], dog: dog) }
    try context.save()
    recorder.clear()
    for _ in 0..<10 { context.make("Walk", ["distance": .double(0.25)], dog: dog) }
    try context.save()
    #expect(readings(recorder).count == 3, "Expected requests for the dog, its walks and their rows.")
    #expect(dog["distance"] == .double(502.5))
  }

  /// The bug: each deleted object was looked for among the objects of each owner.
  @Test func `deleting objects with many owners isn't quadratic`() throws {
    func time(_ count: Int) throws -> Duration {
      let context = try TestStore.memory.park().context()
      let tricks = (0..<count).map { _ in context.make("Trick", ["ease": .double(0.5)]) }
      let shared = context.make("Trick", ["ease": .double(0.25)])
      let dogs = tricks.map { trick in
        let dog = context.make("Dog")
        dog.many("tricks").formUnion([trick, shared])
        return dog
      }
      try context.save()
      for trick in tricks { context.delete(trick) }
      let time = try processorTime { try context.save() }
      #expect(dogs.allSatisfy { $0["ease"] == .double(0.25) && $0["trickCount"] == .int16(1) })
      return time
    }
    // Sixteen times as many objects; quadratic time would be 256 times as long.
    try expectCost(below: 80, times: { try time(500) }) { try time(8_000) }
  }

  @Test func `a SQLite store runs one query and one update for each changed owner`() throws {
    let store = Mutex<SQLiteStore?>(nil)
    let place = try TestStore.sqlite.park(DerivedCostTests.simple)
    let path = place.folder.appendingPathComponent("counted.sqlite").path
    let coordinator = try PersistentStoreCoordinator(
      model: DerivedCostTests.simple,
      store: StoreDescription(type: "SQLite", at: .file(path)) {
        let made = SQLiteStore(path: path)
        store.withLock { $0 = made }
        return made
      })
    let context = try ManagedObjectContext(coordinator: coordinator)
    let dog = context.make("Dog")
    context.make("Walk", dog: dog)
    try context.save()
    func statements(_ count: Int) throws -> Int {
      let before = store.withLock { $0?.statementCount ?? 0 }
      for _ in 0..<count { context.make("Walk", ["minutes": .int32(1)], dog: dog) }
      try context.save()
      return store.withLock { $0?.statementCount ?? 0 } - before
    }
    let (one, many) = (try statements(1), try statements(51))
    #expect(many - one == 50, "Each further walk should cost one insertion.")
    #expect(dog["walkCount"] == .int64(53))
  }

  @Test(arguments: [TestStore.memory, .json, .xml, .binary, .sqlite]) func `linking two loaded objects reads few links`(_ store: TestStore)
    throws
  {
    let place = try store.park()
    let (context, recorder) = try place.recording()
    let dogs = (0..<40).map { _ in context.make("Dog") }, trick = context.make("Trick")
    trick.many("dogs").formUnion(dogs.dropFirst())
    try context.save()
    recorder.clear()
    dogs[0].many("tricks").insert(trick)
    try context.save()
    #expect(dogs[0]["trickCount"] == .int16(1) && trick["dogCount"] == .int64(40))
    let asked = readings(recorder).filter { if case .relationships = $0 { true } else { false } }
    #expect(asked.count == 3, "Expected requests for the dog's links, the trick's links and the objects of a sum.")
  }
}
