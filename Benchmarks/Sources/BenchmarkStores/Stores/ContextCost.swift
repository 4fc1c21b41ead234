internal import BenchmarkData
internal import BenchmarkRunner
internal import Holdfast
internal import HoldfastStore

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// Measures what child contexts, histories, merging and pinning add to the workloads on people.
public struct ContextCost {
  /// The stores, by name. The memory store keeps no history.
  public static let stores = ["memory", "json", "xml", "binary", "sqlite"]

  private let folder: String
  private let people: PeopleDataset
  private let model: ManagedObjectModel

  /// - Parameter folder: A folder for the files, which is created if necessary.
  public init(size: Int, folder: String) throws {
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    self.folder = folder
    people = PeopleDataset(count: size)
    model = try PeopleModel.make()
  }

  /// The time of making all objects in a child, saving it and then its parent, as a ratio to that in one context: the median of all rounds.
  public func child(_ store: String, rounds: Int) throws -> Double {
    try median(rounds) {
      let direct = try inNewStore(store) { context in
        try time {
          let objects = PeopleGraph(context: context, count: people.count).insert(people)
          try context.save()
          withExtendedLifetime(objects) {}
        }
      }
      let through = try inNewStore(store) { context in
        try time {
          let child = ManagedObjectContext(parent: context)
          let objects = PeopleGraph(context: child, count: people.count).insert(people)
          try child.save()
          try context.save()
          withExtendedLifetime(objects) {}
        }
      }
      return through / direct
    }
  }

  /// The times of W1, W6 and W7 with a history, as ratios to those without: the medians of all rounds.
  public func history(_ store: String, rounds: Int) throws -> [Double] {
    let found = try (0..<rounds).map { _ in
      let without = try inNewStore(store, .never, workloads), with = try inNewStore(store, .always, workloads)
      return zip(with, without).map { $0 / $1 }
    }
    return (0..<3).map { place in Self.median(found.map { $0[place] }) }
  }

  /// The bytes that the history of W1 adds to the files of a store, and the number of its changes.
  ///
  /// In SQLite, the bytes include about 50 KB for empty tables and indexes.
  public func historySize(_ store: String) throws -> (bytes: Int64, changes: Int) {
    let with = try inNewStoreWithSize(store, .always, saveAll).size, without = try inNewStoreWithSize(store, .never, saveAll).size
    return (with - without, people.count + people.companyCount)
  }

  /// The bytes that the history of W6 adds to the files of a store, and the number of its changes.
  ///
  /// The size of a SQLite file is a multiple of its page size, so few changes may add nothing.
  public func historySizeOfUpdates(_ store: String) throws -> (bytes: Int64, changes: Int) {
    var changes = 0
    func size(_ history: HistoryTracking, updates: Bool) throws -> Int64 {
      try inNewStoreWithSize(store, history) { context in
        let graph = PeopleGraph(context: context, count: people.count), objects = graph.insert(people)
        try context.save()
        if updates {
          let persons = try graph.persons(withRemainder: 11)
          changes = persons.count
          _ = graph.celebrate(persons)
          try context.save()
        }
        withExtendedLifetime(objects) {}
      }.size
    }
    let with = try size(.always, updates: true) - size(.always, updates: false)
    let without = try size(.never, updates: true) - size(.never, updates: false)
    return (with - without, changes)
  }

  /// The times of a context that contains 100 objects: the medians of all rounds.
  public struct Following {
    /// The milliseconds for merging a save of 10,000 objects, or of all if there are fewer, by a context of the same coordinator.
    public var merge = 0.0
    /// The milliseconds for merging the same number of IDs that another coordinator has sent.
    public var foreignMerge = 0.0
    /// The microseconds for pinning the context to the current generation.
    public var pin = 0.0
  }

  /// Measures merging and pinning in a context that contains 100 of the changed objects.
  public func following(_ store: String, rounds: Int) throws -> Following {
    try inNewStore(store) { context in
      let objects = PeopleGraph(context: context, count: people.count).insert(people)
      try context.save()
      let changed = objects.persons.prefix(10_000), coordinator = context.persistentStoreCoordinator
      let received = SavedChanges(
        storeIdentifier: coordinator.persistentStores[0].identifier, contextName: "", updated: changed.map(\.objectID))
      let reader = try ManagedObjectContext(coordinator: coordinator, classes: PeopleModel.classes)
      reader.automaticallyMergesChanges = true
      let held = try reader.fetch(StoredPerson.self, sortedBy: \.id, limit: 100) { $0.id > 0 }
      func saveAndRead(_ merge: () throws -> Void) throws -> Double {
        for person in changed { person.age = (person.age + 1) % 100 }
        try context.save()
        let seconds = try time(merge)
        for person in held { _ = person.age }
        return seconds
      }
      var following = Following()
      following.merge = try median(rounds) { try saveAndRead { try reader.processPendingChanges() } * 1e3 }
      // Otherwise, the context would also merge the saves.
      reader.automaticallyMergesChanges = false
      following.foreignMerge = try median(rounds) { try saveAndRead { try reader.mergeChanges(from: received) } * 1e3 }
      following.pin = try median(rounds) {
        let pin = try time { try reader.setQueryGeneration(from: .current) }
        try reader.setQueryGeneration(from: nil)
        return pin * 1e6
      }
      withExtendedLifetime(held) {}
      return following
    }
  }

  /// The times of reading all people with their attributes, and of fetching a thousand of them one by one by their unique id, in a pinned
  /// context, as ratios to those in a context that isn't pinned: the medians of all rounds.
  ///
  /// Each context is new. The first round isn't counted, because it warms up the store.
  ///
  /// - Parameter isOlder: Whether one percent of the people are changed and saved between pinning the context and reading.
  public func reading(_ store: String, rounds: Int, isOlder: Bool) throws -> (all: Double, one: Double) {
    try inNewStore(store) { context in
      let writer = PeopleGraph(context: context, count: people.count)
      let objects = writer.insert(people)
      try context.save()
      func read(isPinned: Bool) throws -> (all: Double, one: Double) {
        let reader = try ManagedObjectContext(coordinator: context.persistentStoreCoordinator, classes: PeopleModel.classes)
        if isPinned { try reader.setQueryGeneration(from: .current) }
        if isOlder {
          _ = writer.celebrate(try writer.persons(withRemainder: 11))
          try context.save()
        }
        return try timesOfReading(reader)
      }
      let found = try (0...rounds).map { _ in
        let without = try read(isPinned: false), with = try read(isPinned: true)
        return (all: with.all / without.all, one: with.one / without.one)
      }.dropFirst()
      withExtendedLifetime(objects) {}
      return (Self.median(found.map { $0.all }), Self.median(found.map { $0.one }))
    }
  }

  /// The times of reading all people with their attributes, and of fetching a thousand of them one by one by their unique id, through a
  /// child, as ratios to those in a context without a parent: the medians of all rounds.
  ///
  /// Each context, and each parent, is new. The first round isn't counted, because it warms up the store.
  public func childReading(_ store: String, rounds: Int) throws -> (all: Double, one: Double) {
    try inNewStore(store) { context in
      try saveAll(context)
      func read(isChild: Bool) throws -> (all: Double, one: Double) {
        let reader = try ManagedObjectContext(coordinator: context.persistentStoreCoordinator, classes: PeopleModel.classes)
        return try timesOfReading(isChild ? ManagedObjectContext(parent: reader) : reader)
      }
      let found = try (0...rounds).map { _ in
        let without = try read(isChild: false), with = try read(isChild: true)
        return (all: with.all / without.all, one: with.one / without.one)
      }.dropFirst()
      return (Self.median(found.map { $0.all }), Self.median(found.map { $0.one }))
    }
  }

  /// The time of W6 beside a context that is pinned to the generation before it, as a ratio to that without: the median of all rounds.
  ///
  /// The first round isn't counted, because it warms up the store.
  public func savingBesideGeneration(_ store: String, rounds: Int) throws -> Double {
    try inNewStore(store) { context in
      let graph = PeopleGraph(context: context, count: people.count), objects = graph.insert(people)
      try context.save()
      let reader = try ManagedObjectContext(coordinator: context.persistentStoreCoordinator, classes: PeopleModel.classes)
      func save(isPinned: Bool) throws -> Double {
        try reader.setQueryGeneration(from: isPinned ? .current : nil)
        return try time {
          _ = graph.celebrate(try graph.persons(withRemainder: 11))
          try context.save()
        }
      }
      let found = try (0...rounds).map { _ in
        let without = try save(isPinned: false), with = try save(isPinned: true)
        return with / without
      }.dropFirst()
      withExtendedLifetime(objects) {}
      return Self.median(Array(found))
    }
  }

  // MARK: Measuring

  /// The times of fetching a thousand people one by one, and then of reading all of them.
  private func timesOfReading(_ reader: ManagedObjectContext) throws -> (all: Double, one: Double) {
    let graph = PeopleGraph(context: reader, count: people.count)
    let one = try time { for k in 0..<1000 { _ = try graph.person(PeopleDataset.sampleID(k, of: people.count)) } }
    let all = try time { _ = graph.read(try graph.all()) }
    return (all, one)
  }

  /// Makes all objects and saves them.
  private func saveAll(_ context: ManagedObjectContext) throws {
    let objects = PeopleGraph(context: context, count: people.count).insert(people)
    try context.save()
    withExtendedLifetime(objects) {}
  }

  private func workloads(_ context: ManagedObjectContext) throws -> [Double] {
    let graph = PeopleGraph(context: context, count: people.count)
    var objects: (companies: [StoredCompany], persons: [StoredPerson]) = ([], [])
    let make = try time {
      objects = graph.insert(people)
      try context.save()
    }
    let update = try time {
      _ = graph.celebrate(try graph.persons(withRemainder: 11))
      try context.save()
    }
    let delete = try time {
      for person in try graph.persons(withRemainder: 37) { context.delete(person) }
      try context.save()
    }
    withExtendedLifetime(objects) {}
    return [make, update, delete]
  }

  private func inNewStore<Result>(
    _ store: String, _ history: HistoryTracking = .ifPresent, _ body: (ManagedObjectContext) throws -> Result
  ) throws -> Result {
    try inNewStoreWithSize(store, history, body).result
  }

  /// Also returns the size of the files after the store was closed, in bytes.
  private func inNewStoreWithSize<Result>(
    _ store: String, _ history: HistoryTracking, _ body: (ManagedObjectContext) throws -> Result
  ) throws -> (result: Result, size: Int64) {
    let files = StoreFiles(folder + "/people." + store)
    try files.remove()
    let coordinator = try PersistentStoreCoordinator(model: model, store: kind(store, history).describe(files.path))
    let result = try body(ManagedObjectContext(coordinator: coordinator, classes: PeopleModel.classes))
    try coordinator.close()
    let size = files.size ?? 0
    try files.remove()
    return (result, size)
  }

  private func kind(_ store: String, _ history: HistoryTracking) -> StoreKind {
    switch store {
    case "json": .json(history)
    case "xml": .xml(history)
    case "binary": .binary(history)
    case "sqlite": .sqlite(history)
    case "memory": .memory
    default: preconditionFailure("There is no store \(store).")
    }
  }

  /// The seconds that a closure takes.
  private func time(_ body: () throws -> Void) rethrows -> Double { try ContinuousClock().measure(body) / .seconds(1) }

  private func median(_ rounds: Int, _ body: () throws -> Double) rethrows -> Double {
    Self.median(try (0..<rounds).map { _ in try body() })
  }

  private static func median(_ values: [Double]) -> Double { Spread(values).median }
}
