import Foundation
import Holdfast
import HoldfastFiles
import HoldfastStore
import TestSupport
import Testing

/// Several processes save to one file. Each computes its changes from the values that it has read.
@Suite(.serialized, .ownThreads) struct SeveralProcessesTests {
  private let folder: TemporaryFolder
  private var path: String { folder.file("harbour") }

  init() throws { folder = TemporaryFolder() }

  @Test(arguments: FileStore.wholeFile, [2, 8])
  func RD1_noUpdateOfSeveralProcessesIsLostAndNoKeyIsUsedTwice(store: FileStore, processes: Int) async throws {
    let saves = TestTier.count(60, full: 500)
    try Counting.begin(store, path)
    let began = Date()
    await withTaskGroup(of: Void.self) { group in
      for process in 0..<processes {
        group.addTask { [folder = folder.path] in
          await #expect(processExitsWith: .success) {
            [
              folder = folder as String, store = store as FileStore, process = process as Int, processes = processes as Int,
              saves = saves as Int
            ] in
            let report = try Counting.run(store, folder, process: process, of: processes, saves: saves)
            try TemporaryFolder.write(Array(try JSONEncoder().encode(report)), to: folder + "/report\(process)")
          }
        }
      }
    }
    let reports = try (0..<processes).map {
      try JSONDecoder().decode(Counting.Report.self, from: Data(try TemporaryFolder.read(folder.file("report\($0)"))))
    }
    let seconds = Int(Date().timeIntervalSince(began).rounded())
    print(
      "\(store): \(processes) processes, \(saves) saves each in \(seconds) s, \(reports.map(\.conflicts).reduce(0, +)) conflicts")
    #expect(reports.map(\.conflicts).reduce(0, +) > 0, "The processes never had a conflict.")
    try Counting.expect(reports, saves: saves, store, path)
    #expect(try store.fault(at: path) == nil)
  }

  /// Processes that only insert objects have no conflicts, and all objects are saved.
  @Test(arguments: FileStore.wholeFile, [2, 4])
  func RD1_newObjectsOfAllProcessesAreSavedWithDistinctKeys(store: FileStore, processes: Int) async throws {
    try Counting.begin(store, path)
    await withTaskGroup(of: Void.self) { group in
      for process in 0..<processes {
        group.addTask { [folder = folder.path] in
          await #expect(processExitsWith: .success) {
            [
              folder = folder as String, store = store as FileStore, process = process as Int, processes = processes as Int
            ] in
            let report = try Inserting.run(store, folder, process: process, of: processes)
            try TemporaryFolder.write(Array(try JSONEncoder().encode(report)), to: folder + "/report\(process)")
          }
        }
      }
    }
    let given = try (0..<processes).map {
      try JSONDecoder().decode([String: Int].self, from: Data(try TemporaryFolder.read(folder.file("report\($0)"))))
    }
    try Inserting.expect(given, store, path)
    #expect(try store.fault(at: path) == nil)
  }

  /// The bug: the save waited for the other process as long as one without a time limit, and threw `locked`.
  @Test(arguments: FileStore.wholeFile)
  func aSaveWithATimeLimitWaitsForAnotherProcessNoLonger(store: FileStore) async throws {
    try makeShip(store)
    async let other: Void = holdLock()
    let isLocked = await eventually { TemporaryFolder.exists(folder.file("locked")) }
    #expect(isLocked)
    try expectTimeouts(store)
    await other
    let context = try Harbour.context(store.description(at: path))
    #expect(try context.fetch(Ship.self).map(\.name) == ["Argo"])
    try context.persistentStoreCoordinator.close()
  }

  private func makeShip(_ store: FileStore) throws {
    let context = try Harbour.context(store.description(at: path)), ship = context.insert(Ship.self)
    (ship.name, ship.number) = ("Argo", 1)
    try context.save()
    try context.persistentStoreCoordinator.close()
  }

  /// Holds the lock in another process until a file appears.
  private func holdLock() async {
    await #expect(processExitsWith: .success) { [folder = folder.path as String] in
      let file = try DurableFile(path: folder + "/harbour"), lock = try file.beginReplacing()
      try TemporaryFolder.write([], to: folder + "/locked")
      let mayEnd = await eventually { TemporaryFolder.exists(folder + "/release") }
      precondition(mayEnd)
      lock.abort()
      file.close()
    }
  }

  /// Tries to save while the lock is held, and has it released.
  private func expectTimeouts(_ store: FileStore) throws {
    defer { try? TemporaryFolder.write([], to: folder.file("release")) }
    let context = try Harbour.context(store.description(at: path, file: DurableFileOptions(lockTimeout: .seconds(3600))))
    let ship = try #require(try context.fetch(Ship.self).first)
    context.requestTimeout = .milliseconds(50)
    ship.name = "Bremen"
    let updating = #expect(throws: StoreError.self) { try context.save() }
    let second = context.insert(Ship.self)
    (second.name, second.number) = ("Calypso", 2)
    let inserting = #expect(throws: StoreError.self) { try context.save() }
    for error in [updating, inserting] { #expect(error?.code == .timedOut, "\(String(describing: error))") }
    context.rollback()
    try context.persistentStoreCoordinator.close()
  }

  /// A process that continues with stale values, which the sum of the counters would reveal.
  @Test(arguments: FileStore.wholeFile)
  func RD1_aStaleObjectIsAConflictEachTime(store: FileStore) async throws {
    try Counting.begin(store, path)
    let context = try Harbour.context(store.description(at: path))
    let berth = try #require(try Counting.berths(context).first)
    berth.count += 1
    await #expect(processExitsWith: .success) { [folder = folder.path as String, store = store as FileStore] in
      _ = try Counting.run(store, folder, process: 0, of: 1, saves: 1)
    }
    for _ in 0..<3 {
      let conflict = try #require(throws: PersistenceError.self) { try context.save() }
      #expect(conflict.code == .conflict && conflict.objectIDs == [berth.objectID] && context.hasChanges, "\(conflict)")
    }
    context.reset()
    #expect(try Counting.berths(context).first?.count == 1)
    try context.persistentStoreCoordinator.close()
  }
}

/// A counter that all processes increment, one counter for each half of them, and ships that each inserts.
enum Counting {
  /// The number of saves between two ships that a process inserts.
  private static let stride = 20

  struct Report: Codable {
    var conflicts = 0
    /// The ships, by their IDs.
    var ships: [String: Int64] = [:]
  }

  static func begin(_ store: FileStore, _ path: String) throws {
    let context = try Harbour.context(store.description(at: path))
    for number in 0..<3 {
      let berth = context.insert(Berth.self)
      (berth.number, berth.count) = (number, 0)
    }
    try context.save()
    try context.persistentStoreCoordinator.close()
  }

  static func berths(_ context: ManagedObjectContext) throws -> [Berth] {
    try context.fetch(FetchRequest<Berth>(sortedBy: [.ascending(\.number)]))
  }

  /// Saves `saves` times. After a conflict, repeats the save with the current values.
  static func run(_ store: FileStore, _ folder: String, process: Int, of processes: Int, saves: Int) throws -> Report {
    let context = try Harbour.context(store.description(at: folder + "/harbour", file: Inserting.options))
    var report = Report()
    var done = 0
    var hasMet = false
    while done < saves {
      do {
        let ship = try change(context, process, done)
        // All processes read the same version, and wait for each other's saves. So all but one have a conflict at once.
        if !hasMet { try Rendezvous.wait(in: folder, process: process, of: processes) }
        hasMet = true
        try context.save()
        done += 1
        if let ship { report.ships[ship.objectID.uriRepresentation] = ship.number }
      } catch let error as PersistenceError where error.code == .conflict {
        report.conflicts += 1
        context.reset()
      }
    }
    try context.persistentStoreCoordinator.close()
    return report
  }

  private static func change(_ context: ManagedObjectContext, _ process: Int, _ done: Int) throws -> Ship? {
    let berths = try berths(context)
    berths[0].count += 1
    berths[1 + process % 2].count += 1
    guard done % stride == 0 else { return nil }
    let ship = context.insert(Ship.self)
    ship.name = "Ship \(done) of \(process)"
    ship.number = Int64(process * 1_000_000 + done)
    ship.berth = berths[1 + process % 2]
    return ship
  }

  static func expect(_ reports: [Report], saves: Int, _ store: FileStore, _ path: String) throws {
    let context = try Harbour.context(store.description(at: path))
    let odd = reports.count / 2
    #expect(try berths(context).map(\.count) == [reports.count * saves, (reports.count - odd) * saves, odd * saves])
    let ships = try context.fetch(FetchRequest<Ship>())
    let expected = reports.count * ((saves + stride - 1) / stride)
    #expect(Set(reports.flatMap(\.ships.keys)).count == expected, "Two processes gave the same key.")
    #expect(ships.count == expected)
    let given = reports.reduce(into: [:]) { $0.merge($1.ships) { first, _ in first } }
    for ship in ships { #expect(given[ship.objectID.uriRepresentation] == ship.number, "\(ship.name)") }
    try context.persistentStoreCoordinator.close()
  }
}

/// Linked ships, routes and journals that each process inserts.
enum Inserting {
  static let rounds = 30

  /// Waits an hour for the other processes.
  static var options: DurableFileOptions { DurableFileOptions(lockTimeout: .seconds(3600)) }

  /// - Returns: The number of every new object, by the object's ID.
  static func run(_ store: FileStore, _ folder: String, process: Int, of processes: Int) throws -> [String: Int] {
    let context = try Harbour.context(store.description(at: folder + "/harbour", file: options))
    try Rendezvous.wait(in: folder, process: process, of: processes)
    var given: [String: Int] = [:]
    for round in 0..<rounds {
      let number = process * 1000 + round
      let route = context.insert(Route.self), journal = context.insert(Journal.self)
      (route.number, route.count, journal.saves) = (number, 2, number)
      let ships = (0..<2).map { half in
        let ship = context.insert(Ship.self)
        (ship.name, ship.number) = ("Ship", Int64(2 * number + half))
        ship.routes.insert(route)
        return ship
      }
      try context.save()
      for object in [route, journal] + ships { given[object.objectID.uriRepresentation] = number }
    }
    try context.persistentStoreCoordinator.close()
    return given
  }

  static func expect(_ given: [[String: Int]], _ store: FileStore, _ path: String) throws {
    let all = given.reduce(into: [:]) { $0.merge($1) { first, _ in first } }
    #expect(all.count == given.count * rounds * 4, "Two processes gave the same key.")
    let context = try Harbour.context(store.description(at: path))
    let (ships, routes) = (try context.fetch(FetchRequest<Ship>()), try context.fetch(FetchRequest<Route>()))
    let journals = try context.fetch(FetchRequest<Journal>())
    #expect((ships.count, routes.count, journals.count) == (given.count * rounds * 2, given.count * rounds, given.count * rounds))
    for ship in ships {
      let number = Int((ship.number ?? -2) / 2)
      #expect(all[ship.objectID.uriRepresentation] == number && ship.routes.map(\.number) == [number])
    }
    for route in routes { #expect(all[route.objectID.uriRepresentation] == route.number && route.ships.count == 2) }
    for journal in journals { #expect(all[journal.objectID.uriRepresentation] == journal.saves) }
    try context.persistentStoreCoordinator.close()
  }
}
