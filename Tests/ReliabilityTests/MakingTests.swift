import Foundation
import Holdfast
import HoldfastSQLiteStore
import TestSupport
import Testing

/// Several processes or threads create one store at the same time.
@Suite(.serialized, .ownThreads) struct MakingTests {
  private static let stores: [FileStore] = FileStore.wholeFile + SQLiteStoreOptions.JournalMode.allCases.map { .sqlite($0) }
  private static let processes = 8

  private let folder: TemporaryFolder

  init() throws { folder = TemporaryFolder() }

  /// A process that finds the file already created opens it.
  @Test(arguments: MakingTests.stores)
  func RD1_processesThatCreateTheFileAtTheSameTimeCreateOne(store: FileStore) async throws {
    let rounds = TestTier.count(6, full: 200)
    await withTaskGroup(of: Void.self) { group in
      for process in 0..<MakingTests.processes {
        group.addTask { [folder = folder.path] in
          await #expect(processExitsWith: .success) {
            [folder = folder as String, store = store as FileStore, process = process as Int, rounds = rounds as Int] in
            for round in 0..<rounds {
              try MakingTests.meet(in: folder, process: process, round: round)
              do { try MakingTests.save(process, store, folder + "/harbour\(round)") } catch {
                try TemporaryFolder.write(Array("\(error)".utf8), to: folder + "/error\(round)-\(process)")
              }
            }
          }
        }
      }
    }
    for name in try FileManager.default.contentsOfDirectory(atPath: folder.path) where name.hasPrefix("error") {
      Issue.record("\(name): \(String(decoding: try TemporaryFolder.read(folder.file(name)), as: UTF8.self))")
    }
    for round in 0..<rounds { try expectAll(store, folder.file("harbour\(round)")) }
  }

  /// Only one thread of a process can have the store open. The others get an error and try again.
  @Test(arguments: MakingTests.stores)
  func RD1_threadsThatCreateTheFileAtTheSameTimeCreateOne(store: FileStore) async throws {
    let path = folder.file("harbour")
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<MakingTests.processes {
        group.addTask {
          while true {
            do { return try MakingTests.save(number, store, path) } catch let error as StoreError where error.code == .alreadyOpen {
              await Task.yield()
            }
          }
        }
      }
      try await group.waitForAll()
    }
    try expectAll(store, path)
    #expect(folder.openDescriptors == 0)
  }

  private func expectAll(_ store: FileStore, _ path: String) throws {
    let context = try Harbour.context(store.description(at: path))
    let routes = try context.fetch(FetchRequest<Route>(sortedBy: [.ascending(\.number)]))
    #expect(routes.map(\.number) == Array(0..<MakingTests.processes))
    try context.persistentStoreCoordinator.close()
    #expect(try store.fault(at: path) == nil)
  }

  /// Waits until all processes have reached this round.
  private static func meet(in folder: String, process: Int, round: Int) throws {
    try TemporaryFolder.write([], to: folder + "/ready\(round)-\(process)")
    for other in 0..<processes { waitUntil { TemporaryFolder.exists(folder + "/ready\(round)-\(other)") } }
  }

  private static func save(_ number: Int, _ store: FileStore, _ path: String) throws {
    // On a busy machine, the default timeout of five seconds may be too short.
    let description: StoreDescription =
      if case .sqlite(let journal) = store {
        .sqlite(at: path, options: SQLiteStoreOptions(journalMode: journal, busyTimeout: .seconds(3600)))
      } else { store.description(at: path, file: Inserting.options) }
    let context = try Harbour.context(description)
    let route = context.insert(Route.self)
    (route.number, route.count) = (number, 0)
    try context.save()
    try context.persistentStoreCoordinator.close()
  }
}
