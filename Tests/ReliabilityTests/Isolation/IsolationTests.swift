import Foundation
import Holdfast
import HoldfastMemoryStore
import HoldfastSQLiteStore
import Synchronization
import TestSupport
import Testing

/// Several writers read lists and append to them. The lists show how the transactions were isolated from each other.
@Suite(.serialized, .ownThreads) struct IsolationTests {
  private let folder = TemporaryFolder()

  private func registers(_ reading: Registers.Reading, writers: Int, transactions: Int = IsolationTests.fewTransactions) -> Registers {
    let random = SeededGenerator("\(reading), \(writers) writers")
    return Registers(reading: reading, folder: folder.path, writers: writers, transactions: transactions, seed: random.seed)
  }

  /// The number of transactions of each writer in most tests.
  private static var fewTransactions: Int { TestTier.count(40, full: 1000) }

  private func expect(_ histories: [[AppendTransaction]], _ last: [Int: [Int]], _ reading: Registers.Reading, _ title: String) {
    let all = histories.joined(), refused = all.count { !$0.isSaved }
    print("\(title), \(reading): \(all.count) transactions, \(refused) refused")
    #expect(refused > 0 && refused < all.count)
    #expect(AppendHistory(writers: histories, last: last).anomalies(except: reading.allowed) == [], "\(title), \(reading)")
  }

  @Test(arguments: [nil] + FileStore.all.map(Optional.some), Registers.Reading.allCases)
  func RD6_contextsAreIsolatedAsTheirReadingPromises(store: FileStore?, reading: Registers.Reading) async throws {
    try await expectIsolation(ofContextsOf: store, registers(reading, writers: 8))
  }

  /// 100,000 transactions with `HOLDFAST_TESTS=full`. Stores that write their entire file would take hours.
  @Test(arguments: [nil, FileStore.sqlite(.wal)], Registers.Reading.allCases)
  func RD6_aLongHistoryIsIsolatedAsItsReadingPromises(store: FileStore?, reading: Registers.Reading) async throws {
    let count = TestTier.count(100, full: 12_500)
    try await expectIsolation(ofContextsOf: store, registers(reading, writers: 8, transactions: count), durability: .normal)
  }

  private func expectIsolation(
    ofContextsOf store: FileStore?, _ registers: Registers, durability: SQLiteStoreOptions.Durability = .full
  ) async throws {
    let description = store.map { registers.description($0, durability: durability) } ?? .memory()
    let coordinator = try PersistentStoreCoordinator(model: Harbour.model, store: description)
    try registers.fill(ManagedObjectContext(coordinator: coordinator, classes: Harbour.classes))
    let histories = try await Self.run(registers, coordinator)
    let last = try registers.lists(ManagedObjectContext(coordinator: coordinator, classes: Harbour.classes))
    expect(histories, last, registers.reading, "Contexts of \(store.map { "\($0)" } ?? "memory")")
    try coordinator.close()
  }

  @Test(arguments: FileStore.all, Registers.Reading.allCases)
  func RD6_processesAreIsolatedAsTheirReadingPromises(store: FileStore, reading: Registers.Reading) async throws {
    let registers = registers(reading, writers: TestTier.count(4, full: 8))
    let context = try Harbour.context(registers.description(store))
    try registers.fill(context)
    try context.persistentStoreCoordinator.close()
    await withTaskGroup(of: Void.self) { group in
      for writer in 0..<registers.writers {
        group.addTask {
          await #expect(processExitsWith: .success) {
            [registers = registers as Registers, store = store as FileStore, writer = writer as Int] in
            let context = try Harbour.context(registers.description(store))
            let history = try registers.run(context, writer: writer)
            try context.persistentStoreCoordinator.close()
            try TemporaryFolder.write(Array(try JSONEncoder().encode(history)), to: registers.folder + "/history\(writer)")
          }
        }
      }
    }
    let histories = try (0..<registers.writers).map {
      try JSONDecoder().decode([AppendTransaction].self, from: Data(try TemporaryFolder.read(folder.file("history\($0)"))))
    }
    let reader = try Harbour.context(registers.description(store))
    expect(histories, try registers.lists(reader), reading, "Processes of \(store)")
    try reader.persistentStoreCoordinator.close()
  }

  /// So the tests that it runs have no race that it can see.
  @Test(.enabled(if: TestTier.isThreadSanitized, "The thread sanitizer isn't on."))
  func RD5_theThreadSanitizerFindsAPlantedRace() async {
    await #expect(processExitsWith: .exitCode(66)) {
      nonisolated(unsafe) let number = UnsafeMutablePointer<Int>.allocate(capacity: 1)
      number.initialize(to: 0)
      let written = Flag()
      Thread.detachNewThread {
        number.pointee += 1
        written.isSet.store(true, ordering: .relaxed)
      }
      // Unlike a lock, a relaxed flag doesn't order the accesses, however slow the machine is.
      while !written.isSet.load(ordering: .relaxed) { usleep(1000) }
      number.pointee += 1
    }
  }

  /// The policy that saves over what others have saved loses their updates.
  @Test func RD6_theCheckFindsTheUpdatesThatAPolicyOverwrites() async throws {
    let registers = registers(.unpinned, writers: 8)
    let coordinator = try PersistentStoreCoordinator(model: Harbour.model, store: .memory())
    let context = try ManagedObjectContext(coordinator: coordinator, classes: Harbour.classes)
    try registers.fill(context)
    let histories = try await Self.run(registers, coordinator, .overwrite)
    let found = AppendHistory(writers: histories, last: try registers.lists(context)).anomalies()
    #expect(found.contains(.lostUpdate))
  }

  /// Runs each writer on a thread with a context.
  private static func run(
    _ registers: Registers, _ coordinator: PersistentStoreCoordinator, _ policy: MergePolicy = .error
  ) async throws -> [[AppendTransaction]] {
    try await withThrowingTaskGroup(of: (Int, [AppendTransaction]).self) { group in
      for writer in 0..<registers.writers {
        group.addTask {
          try await onThread {
            let context = try ManagedObjectContext(coordinator: coordinator, classes: Harbour.classes)
            context.mergePolicy = policy
            return (writer, try registers.run(context, writer: writer))
          }
        }
      }
      return try await group.reduce(into: Array(repeating: [], count: registers.writers)) { $0[$1.0] = $1.1 }
    }
  }
}

private final class Flag: Sendable {
  let isSet = Atomic(false)
}
