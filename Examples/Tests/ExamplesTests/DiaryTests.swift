import Holdfast
import HoldfastMemoryStore
import HoldfastStoreConformance
import Testing

@testable import DogWalk

@Suite struct DiaryTests {
  private static let busy = StoreError(.locked, operation: "read", reason: "The test says so.", isRetryable: true)

  /// The relationship can't be read, or the rows of its walks can't.
  @Test(arguments: [FaultInjectingStore.Call.relationships, .rows])
  func aReadErrorIsReportedOnceAndLaterCallsWork(_ call: FaultInjectingStore.Call) throws {
    let contents = MemoryStoreContents()
    let first = try WalkTime.parse("2026-05-04T07:30:00Z"), second = try WalkTime.parse("2026-05-05T07:30:00Z")
    do {
      let context = try PersistentContainer(for: Dog.self, Walk.self, store: .memory(contents: contents)).newContext()
      let dog = context.insert(Dog.self) { $0.name = "Fido" }
      Walk(context: context, date: first.date).dog = dog
      try context.save()
    }

    let failing = FaultInjectingStore(MemoryStore(contents: contents))
    let diary = try Diary(StoreDescription(type: "failing") { failing })
    failing.fail(call, with: Self.busy)
    let error = try #require(throws: StoreError.self) { try diary.walkTimes() }
    #expect(error.code == .locked)
    #expect(try diary.walkTimes().map(\.date) == [first.date])
    try diary.addWalk(at: second)
    #expect(try diary.walkTimes().map(\.date) == [first.date, second.date])
  }
}
