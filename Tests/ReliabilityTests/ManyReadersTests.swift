import Foundation
import Holdfast
import HoldfastSQLiteStore
import TestSupport
import Testing

/// More contexts than connections read one SQLite store at the same time.
@Suite struct ManyReadersTests {
  private let folder: TemporaryFolder
  private var path: String { folder.file() }

  /// 600 ships at three berths, each with a price, which SQLite doesn't compare.
  private static let ships = 600

  init() throws {
    folder = TemporaryFolder()
    let context = try Harbour.context(.sqlite(at: folder.file()))
    let berths = (0..<3).map { number in
      let berth = context.insert(Berth.self)
      (berth.number, berth.count) = (number, 0)
      return berth
    }
    for number in 0..<ManyReadersTests.ships {
      let ship = context.insert(Ship.self)
      (ship.name, ship.number, ship.price) = ("Ship \(number)", Int64(number), Decimal(number))
      ship.berth = berths[number % 3]
    }
    try context.save()
    try context.persistentStoreCoordinator.close()
  }

  /// Reads with one context; returns the number of wrong values.
  private static func mistakes(_ context: ManagedObjectContext, _ ids: [ManagedObjectID], from start: Int) throws -> Int {
    context.firesFaultsInBatches = false
    var mistakes = 0
    for number in stride(from: start, to: ids.count, by: 60) {
      guard let ship = try context.object(with: ids[number]) as? Ship else { return -1 }
      if ship.name != "Ship \(number)" || ship.berth?.number != number % 3 { mistakes += 1 }
    }
    let third = try context.fetch(FetchRequest<Ship> { $0.number < 30 })
    if third.count != 30 { mistakes += 1 }
    // The framework compares decimals, and reads the ships of each berth while the store delivers the berths.
    let berths = try context.fetch(FetchRequest<Berth> { $0.ships.any { $0.price == Decimal(start) } })
    if berths.map(\.number) != [start % 3] { mistakes += 1 }
    if context.faultError != nil { mistakes += 1 }
    return mistakes
  }

  @Test(arguments: [SQLiteStoreOptions.JournalMode.wal, .delete], [1, 4])
  func twoHundredContextsReadAtOnceAndEveryValueIsCorrect(journal: SQLiteStoreOptions.JournalMode, connections: Int)
    async throws
  {
    let options = SQLiteStoreOptions(journalMode: journal, maximumReaders: connections, readerTimeout: .seconds(1e6))
    let container = try PersistentContainer(
      model: Harbour.model, classes: Harbour.classes, store: .sqlite(at: path, options: options))
    let ids = try await container.performBackgroundTask { context in
      try context.fetchObjectIDs(FetchRequest<Ship>(sortedBy: [.ascending(\.number)]))
    }
    let mistakes = try await withThrowingTaskGroup(of: Int.self) { group in
      for number in 0..<200 {
        group.addTask {
          try await container.newBackgroundContext().perform { try ManyReadersTests.mistakes($0, ids, from: number % 60) }
        }
      }
      return try await group.reduce(0, +)
    }
    #expect(mistakes == 0)
    // The writer, and two connections for each reader, because requests nest. Each has the database and the log open; all share one index.
    #expect(folder.openDescriptors <= (2 * connections + 1) * 2 + 1, "\(folder.openDescriptors) descriptors")
    try container.persistentStoreCoordinator.close()
    #expect(folder.openDescriptors == 0)
  }

  @Test func contextsThatAddUpFaultsSaveTheCorrectTotal() async throws {
    let options = SQLiteStoreOptions(maximumReaders: 1, readerTimeout: .seconds(1e6))
    let container = try PersistentContainer(
      model: Harbour.model, classes: Harbour.classes, store: .sqlite(at: path, options: options))
    let ids = try await container.performBackgroundTask { try $0.fetchObjectIDs(FetchRequest<Ship>()) }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<12 {
        group.addTask {
          try await container.performBackgroundTask { context in
            var total = 0
            for id in ids { total += try (context.object(with: id) as? Ship).map { Int($0.number ?? 0) } ?? 0 }
            context.insert(Journal.self).saves = total
            try context.save()
          }
        }
      }
      try await group.waitForAll()
    }
    let totals = try await container.performBackgroundTask { try $0.fetch(FetchRequest<Journal>()).map(\.saves) }
    #expect(totals == Array(repeating: ManyReadersTests.ships * (ManyReadersTests.ships - 1) / 2, count: 12))
    try container.persistentStoreCoordinator.close()
  }
}
