// swift-format-ignore-file
#if Macros
import Foundation
import Holdfast
import HoldfastSQLiteStore
import HoldfastStore
import HoldfastStoreConformance
import HoldfastTesting
import TestSupport
import Testing

/// The code of the article *On a server*.
@Suite struct ServerExamples {
  @Entity final class Account: ManagedObject {
    @Attribute(.unique) var owner: String
    var balance = 0
  }

  func openAccounts(at path: String) throws -> PersistentContainer {
    let container = try PersistentContainer(for: Account.self, store: .sqlite(at: path))
    container.persistentStoreCoordinator.logRequests(slow: .milliseconds(200))
    return container
  }

  func richest(_ container: PersistentContainer, limit: Int) throws -> [(owner: String, balance: Int)] {
    try container.withContext { context in
      context.requestTimeout = .seconds(5)
      return try context.fetch(Account.self, sortedBy: [.descending(\.balance)], limit: limit).map { ($0.owner, $0.balance) }
    }
  }

  func deposit(_ amount: Int, to owner: String, in container: PersistentContainer) async throws -> Int? {
    try await container.performBackgroundTask { context in
      guard let account = try context.fetchOne(Account.self, where: { $0.owner == owner }) else { return nil }
      account.balance += amount
      try context.save()
      return account.balance
    }
  }

  func retrying<Result>(_ attempts: Int, _ body: () async throws -> Result) async throws -> Result {
    for _ in 1..<attempts {
      do { return try await body() } catch let error as PersistenceError where error.code == .conflict { continue }
    }
    return try await body()
  }

  func status(for error: any Error) -> Int {
    switch error {
    case let error as PersistenceError where error.code == .missingObject: 404
    case let error as PersistenceError where [.conflict, .constraintConflict].contains(error.code): 409
    case let error as PersistenceError where (1550...1690).contains(error.coreDataCode): 422
    case let error as StoreError where error.code == .outcomeUnknown: 500
    case let error as StoreError where error.isRetryable: 503
    default: 500
    }
  }

  @Test func depositsOfManyTasksAreAllCounted() async throws {
    let folder = TemporaryFolder(), container = try openAccounts(at: folder.file("accounts.sqlite"))
    try container.withContext { context in
      for owner in ["Ann", "Bob"] { context.insert(Account.self) { $0.owner = owner } }
      try context.save()
    }
    await withTaskGroup { group in
      for task in 0..<8 {
        group.addTask {
          for _ in 0..<10 {
            do { _ = try await retrying(1_000) { try await deposit(1, to: task % 2 == 0 ? "Ann" : "Bob", in: container) } } catch {
              Issue.record("\(error)")
            }
          }
        }
      }
    }
    #expect(try await deposit(5, to: "Ann", in: container) == 45)
    #expect(try await deposit(1, to: "Cid", in: container) == nil)
    #expect(try untilInTime { try richest(container, limit: 1) }.map(\.owner) == ["Ann"])
    #expect(try untilInTime { try richest(container, limit: 5) }.map(\.balance) == [45, 40])
    try container.persistentStoreCoordinator.close()
  }

  @Test func errorsHaveStatusCodes() throws {
    let test = try TestContainer(for: Account.self), context = test.newContext(), other = test.newContext()
    context.insert(Account.self) { $0.owner = "Ann" }
    try context.save()
    #expect(status { try other.save() } == 200)
    other.insert(Account.self) { $0.owner = "Ann" }
    #expect(status { try other.save() } == 409)
    other.rollback()
    let mine = try #require(try context.fetchOne(Account.self)), theirs = try #require(try other.fetchOne(Account.self))
    mine.balance = 1
    theirs.balance = 2
    try context.save()
    #expect(status { try other.save() } == 409)
    other.rollback()
    _ = other.insert(Account.self)
    #expect(status { try other.save() } == 422)
    other.rollback()
    test.faults.fail(.commit, with: StoreError(.locked, operation: "save", reason: "A test said so.", isRetryable: true))
    mine.balance = 3
    #expect(status { try context.save() } == 503)
    // A client repeats a request that was answered with 503.
    test.faults.fail(.commit, with: StoreError(.outcomeUnknown, operation: "save", reason: "A test said so.", isRetryable: true))
    #expect(status { try context.save() } == 500)
    context.resolveUncertainSave(wasCommitted: false)
    context.delete(mine)
    try context.save()
    #expect(status { _ = try test.newContext().existingObject(with: theirs.objectID) } == 404)
    #expect(status { throw CancellationError() } == 500)
  }

  private func status(_ body: () throws -> Void) -> Int {
    do { try body() } catch { return status(for: error) }
    return 200
  }
}
#endif
