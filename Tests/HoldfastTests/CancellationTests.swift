import Foundation
import HoldfastStore
import HoldfastStoreConformance
import Testing

@testable import Holdfast

/// Cancelled tasks, on every store and for any number of rows: fetches are cancelled; faults and saves aren't.
@Suite struct CancellationTests {
  /// Runs a body in a cancelled task.
  private func cancelled<Result: Sendable>(_ body: @escaping @Sendable () throws -> Result) async throws -> Result {
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      #expect(Task.isCancelled)
      return try body()
    }
    return try await task.value
  }

  @Test(arguments: TestStore.allCases, [0, 1, 2000]) func aFetchInACancelledTaskThrowsBeforeItAsksTheStore(_ store: TestStore, _ rows: Int)
    async throws
  {
    let place = try store.makePlace()
    for isChanged in [false, true] {
      try await cancelled {
        let first = try place.context()
        for number in 0..<rows { first.dog("d\(number)") }
        try first.save()
        let (context, recorder) = try place.recording()
        if isChanged { context.dog("new") }
        func code(_ body: () throws -> Void) -> String? {
          do {
            try body()
            return nil
          } catch { return (error as? StoreError)?.code.rawValue ?? "\(error)" }
        }
        let request = FetchRequest<Dog>(sortedBy: [.ascending(\.owner.name)]) { $0.name == "d0" }
        #expect(code { _ = try context.fetch(FetchRequest<Dog>()) } == "cancelled")
        #expect(code { _ = try context.fetch(request) } == "cancelled")
        #expect(code { _ = try context.count(for: FetchRequest<Dog>()) } == "cancelled")
        #expect(code { _ = try context.fetchObjectIDs(FetchRequest<Dog> { $0.age > 3 }) } == "cancelled")
        #expect(code { _ = try context.fetch(DictionaryFetchRequest<Dog>(columns: ["n": .count()])) } == "cancelled")
        #expect(recorder.requests.isEmpty)
        context.rollback()
      }
    }
  }

  @Test(arguments: TestStore.allCases) func faultsAndSavesWorkInACancelledTask(_ store: TestStore) async throws {
    let place = try store.makePlace()
    try await cancelled {
      let first = try place.context()
      let ann = first.person("Ann"), dog = first.dog("Fido", age: 3, owner: ann)
      dog.chip = 7
      try first.save()
      let (context, _) = try place.recording()
      let fido = try #require(try context.existingObject(with: dog.objectID) as? Dog)
      #expect(fido.age == 3 && fido.owner?.name == "Ann" && fido.owner?.dogs.count == 1)
      // If a store doesn't check uniqueness itself, the save reads its rows.
      let rex = context.dog("Rex")
      rex.chip = 8
      fido.age = 4
      context.delete(try #require(fido.owner))
      try context.refresh(fido, mergeChanges: true)
      try context.save()
      #expect(context.faultError == nil && !context.hasChanges)
    }
    #expect(try place.context().fetch(FetchRequest<Dog>(sortedBy: [.ascending(\.name)])).map(\.age) == [4, 1])
  }

  @Test(arguments: TestStore.allCases) func aFetchEndsAtTheNextBatchWhenItsTaskIsCancelled(_ store: TestStore) async throws {
    let place = try store.makePlace()
    let task = Task {
      let first = try place.context()
      for number in 0..<3000 { first.dog("d\(number)") }
      try first.save()
      let (context, _) = try place.recording { CancellingStore($0) }
      return try context.fetch(FetchRequest<Dog>()).count
    }
    let error = await #expect(throws: StoreError.self) { try await task.value }
    #expect(error?.code == .cancelled)
  }

  /// The bug: the error had the code of an unknown failure.
  @Test(arguments: TestStore.allCases) func aCancellationThatAStoreThrowsIsNamedAsOne(_ store: TestStore) throws {
    let place = try store.makePlace(), (context, _) = try place.recording { InterruptedStore($0) }
    let dog = context.dog("Fido")
    for body in [{ _ = try context.fetch(FetchRequest<Person>()) }, { try context.save() }] as [() throws -> Void] {
      let error = try #require(throws: StoreError.self) { try body() }
      #expect(error.code == .cancelled && error.cause is CancellationError && error.coreDataCode == 134070)
    }
    #expect(dog.isInserted)
    context.rollback()
  }
}

/// Throws the error of a cancelled asynchronous function.
private final class InterruptedStore: ForwardingStore {
  let base: any IncrementalStore
  init(_ base: any IncrementalStore) { self.base = base }

  func fetch(_ plan: FetchPlan, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
    throw CancellationError()
  }

  func prepare(_ request: SaveRequest, options: RequestOptions) throws -> any PreparedSave { throw CancellationError() }
}

/// Cancels the fetching task during the fetch.
private final class CancellingStore: ForwardingStore {
  let base: any IncrementalStore
  init(_ base: any IncrementalStore) { self.base = base }

  func fetch(_ plan: FetchPlan, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
    withUnsafeCurrentTask { $0?.cancel() }
    try base.fetch(plan, in: view, options: options, into: sink)
  }
}
