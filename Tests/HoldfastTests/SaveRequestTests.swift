import Foundation
import Holdfast
import HoldfastStore
import HoldfastStoreConformance
import Synchronization
import Testing

/// What a save sends to its store.
@Suite struct SaveRequestTests {
  @Test(arguments: TestStore.allCases) func oneRequestReservesTheKeysOfAllEntities(_ store: TestStore) throws {
    let (context, recorder) = try store.makePlace().recording()
    let dog = context.dog("rex"), owner = context.insert(Person.self)
    owner.name = "Ada"
    dog.owner = owner
    context.dog("max")
    recorder.clear()
    try context.save()
    let demands = recorder.requests.compactMap { if case .reserveKeys(let demands) = $0 { demands } else { nil } }
    #expect(demands == [[KeyDemand(entity: dog.entity.index, count: 2), KeyDemand(entity: owner.entity.index, count: 1)]])
    recorder.clear()
    dog.age = 3
    try context.save()
    #expect(!recorder.requests.contains { if case .reserveKeys = $0 { true } else { false } }, "No object was new.")
  }

  @Test func aSaveHasAnIDAuthorAndTime() throws {
    let seen = Seen(), (context, _) = try TestStore.memory.makePlace().recording { OriginStore($0, seen) }
    let start = Date()
    let dog = context.dog("rex")
    try context.save()
    (context.name, context.transactionAuthor) = ("night", "importer")
    dog.age = 2
    try context.save()
    let origins = seen.origins.withLock { $0 }
    #expect(origins.map(\.contextName) == [nil, "night"] && origins.map(\.author) == [nil, "importer"])
    #expect(origins[0].id != origins[1].id)
    for origin in origins { #expect((start...Date()).contains(origin.time)) }
  }

  @Test(arguments: TestStore.allCases) func aConflictThatACommitFindsIsReportedAsAConflict(_ store: TestStore) throws {
    let box = Mutex<FaultInjectingStore?>(nil)
    let (context, _) = try store.makePlace().recording { base in
      let faulty = FaultInjectingStore(base)
      box.withLock { $0 = faulty }
      return faulty
    }
    let dog = context.dog("rex")
    try context.save()
    dog.age = 2
    let faulty = try #require(box.withLock { $0 })
    for (code, expected) in [(StoreError.Code.conflict, PersistenceError.Code.conflict), (.constraintConflict, .constraintConflict)] {
      faulty.fail(
        .commit,
        with: StoreError(
          code, operation: "save", reason: "Another process has saved.",
          conflicts: code == .conflict ? [SaveConflict(objectID: dog.objectID, expectedVersion: 1, persisted: nil)] : [],
          constraintConflicts: code == .conflict ? [] : [ConstraintConflict(objectID: dog.objectID, existing: nil, constraint: ["chip"])]))
      let error = #expect(throws: PersistenceError.self) { try context.save() }
      #expect(error?.code == expected && error?.objectIDs == [dog.objectID] && (error?.cause as? StoreError)?.code == code)
      #expect(context.hasChanges && dog.age == 2)
    }
    try context.save()
    #expect(!context.hasChanges)
  }

  private final class Seen: Sendable { let origins = Mutex<[SaveOrigin]>([]) }

  private final class OriginStore: ForwardingStore {
    let base: any IncrementalStore
    private let seen: Seen
    init(_ base: any IncrementalStore, _ seen: Seen) { (self.base, self.seen) = (base, seen) }

    func prepare(_ request: SaveRequest, options: RequestOptions) throws -> any PreparedSave {
      if let origin = request.origin { seen.origins.withLock { $0.append(origin) } }
      return try base.prepare(request, options: options)
    }
  }
}
