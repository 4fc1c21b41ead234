import Foundation
import Holdfast
import HoldfastSQLiteStore
import Logging
import TestSupport
import Testing

/// The log of SQLite's statements.
@Suite struct StatementLogTests {
  private static let model = try? ManagedObjectModel(entities: [
    EntityDescription("Item", attributes: [.init("number", .integer64), .init("title", .string)])
  ])

  // A process has one logging system, so each case has a process.
  @Test(.ownThreads, arguments: SQLiteStoreOptions.StatementLogging.allCases)
  func statementsAreLoggedWithValuesOnlyIfAsked(_ logging: SQLiteStoreOptions.StatementLogging) async throws {
    let folder = TemporaryFolder()
    let child = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
      [path = folder.file("items.sqlite") as String, logging = logging as SQLiteStoreOptions.StatementLogging] in
      LoggingSystem.bootstrap { label in
        var handler = StreamLogHandler.standardError(label: label)
        handler.logLevel = .debug
        return handler
      }
      let model = try #require(Self.model), options = SQLiteStoreOptions(statementLogging: logging)
      let context = try ManagedObjectContext(
        coordinator: PersistentStoreCoordinator(model: model, store: .sqlite(at: path, options: options)))
      let item = try context.insert(entityNamed: "Item")
      try item.setValue(1, forKey: "number")
      try item.setValue("a secret", forKey: "title")
      try context.save()
      let request = FetchRequest<ManagedObject>(entityName: "Item")
      _ = try context.count(for: request)
      try context.persistentStoreCoordinator.close()
    }
    let text = String(decoding: try #require(child).standardErrorContent, as: UTF8.self)
    #expect(text.contains("INSERT INTO") == (logging != .none) && text.contains("duration=") == (logging != .none), "\(text)")
    #expect(text.contains("a secret") == (logging == .values), "\(text)")
  }
}
