import Foundation
import Holdfast
import HoldfastSQLiteStore
import Logging
import TestSupport
import Testing

/// The warnings about a write-ahead log that readers keep from restarting.
@Suite struct LogGrowthTests {
  private static let model = try? ManagedObjectModel(entities: [EntityDescription("Item", attributes: [.init("text", .string)])])

  // A process has one logging system, so each case has a process.
  @Test(.ownThreads, arguments: [false, true]) func aPinnedContextThatMakesTheLogGrowIsReported(_ isPinned: Bool) async throws {
    let folder = TemporaryFolder()
    let child = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
      [path = folder.file("items.sqlite") as String, isPinned = isPinned as Bool] in
      LoggingSystem.bootstrap { StreamLogHandler.standardError(label: $0) }
      let model = try #require(Self.model), options = SQLiteStoreOptions(durability: .normal, checkpointPages: 10)
      let coordinator = try PersistentStoreCoordinator(model: model, store: .sqlite(at: path, options: options))
      let writer = try ManagedObjectContext(coordinator: coordinator), reader = try ManagedObjectContext(coordinator: coordinator)
      let item = try writer.insert(entityNamed: "Item")
      if isPinned { try reader.setQueryGeneration(from: .current) }
      // Each save writes at least 5 pages: 500 in all, so that the log reaches 80, 160 and 320.
      for round in 0..<100 {
        try item.setValue(String(repeating: "\(round % 10)", count: 20_000), forKey: "text")
        try writer.save()
      }
      try coordinator.close()
    }
    let text = String(decoding: try #require(child).standardErrorContent, as: UTF8.self)
    let warnings = text.split(separator: "\n").filter { $0.contains("write-ahead log grows") }
    #expect(isPinned ? (3...6).contains(warnings.count) : warnings.isEmpty, "\(text)")
    #expect(warnings.allSatisfy { $0.contains("pages=") && $0.contains("items.sqlite") })
  }
}
