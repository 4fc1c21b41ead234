import Foundation
import Holdfast
import HoldfastMemoryStore
import HoldfastStore
import HoldfastStoreConformance
import Synchronization
import Testing

/// Stores that save other rows than requested, and say so in the receipt.
@Suite struct ReceiptTests {
  /// What a store does besides saving.
  private final class Trigger: Sendable {
    struct State: Sendable {
      /// Whether names are saved in upper case, with a version that is 10 higher.
      var normalises = false
      /// A row that every save changes as well, and its new age.
      var other: (key: ObjectKey, age: Int16)?
      /// Whether the receipt names the other object, or any object.
      var namesOther = true
      /// Whether the receipt contains a row that wasn't saved.
      var isInvalid = false
      /// Whether the receipt contains rows of no entity.
      var hasOtherLayout = false
    }
    let state = Mutex(State())
  }

  private final class TriggeringStore: ForwardingStore {
    let base: any IncrementalStore
    private let trigger: Trigger
    private let dog = Kennel.model.entity(named: "Dog")!

    init(_ base: any IncrementalStore, _ trigger: Trigger) { (self.base, self.trigger) = (base, trigger) }

    func prepare(_ request: SaveRequest, options: RequestOptions) throws -> any PreparedSave {
      var request = request, receipt = SaveReceipt()
      let state = trigger.state.withLock { $0 }
      for index in request.entities.indices where request.entities[index].entity == dog.index {
        if state.normalises {
          request.entities[index].inserted = try request.entities[index].inserted.map(normalised)
          for place in request.entities[index].updated.indices {
            request.entities[index].updated[place].rows = try normalised(request.entities[index].updated[place].rows)
          }
          receipt.rows = request.entities[index].inserted + request.entities[index].updated.map(\.rows)
        }
        if let other = state.other, let row = try row(other.key) {
          let changed = try copy(row.batch, [row.index]) { values, version in
            values[Dog.Slot.age] = .int16(other.age)
            version = version.next
          }
          if state.isInvalid { receipt.rows = [changed] }
          request.entities[index].updated.append(
            SaveRequest.UpdatedRows(
              rows: changed, expectedVersions: [row.version], changedSlots: [Dog.Slot.age.bit], wordsPerRow: 1))
          receipt.others = state.namesOther ? StoreChange(updated: [row.objectID].compactMap { $0 }) : StoreChange(mayIncludeOthers: true)
        }
      }
      if state.hasOtherLayout {
        let builder = RowBatchBuilder(layout: RowLayout([]), idPrefix: nil)
        builder.beginRow(key: 1, version: 1)
        builder.endRow()
        receipt.rows = [builder.seal()]
      }
      return TriggeringSave(try base.prepare(request, options: options), receipt)
    }

    private func normalised(_ batch: RowBatch) throws -> RowBatch {
      try copy(batch, Array(0..<batch.count)) { values, version in
        if case .string(let name) = values[Dog.Slot.name] { values[Dog.Slot.name] = .string(name.uppercased()) }
        version = version.advanced(by: 10)
      }
    }

    private func copy(_ batch: RowBatch, _ rows: [Int], _ change: (inout [StoreValue], inout RowVersion) -> Void) throws -> RowBatch {
      let builder = RowBatchBuilder(layout: batch.layout, idPrefix: batch.idPrefix)
      for index in rows {
        var (values, version) = (batch[index].values, batch[index].version)
        change(&values, &version)
        try builder.append(key: batch[index].key, version: version, values: values)
      }
      return builder.seal()
    }

    private func row(_ key: ObjectKey) throws -> RowView? {
      final class Sink: RowSink {
        var row: RowView?
        func take(_ batch: RowBatch, _ rows: RowSelection) -> SinkDemand {
          switch rows {
          case .all: row = batch[0]
          case .one(let index): row = batch[index]
          case .rows(let indexes): row = batch[Int(indexes[0])]
          }
          return .enough
        }
      }
      let view = try base.beginRead(.latest), sink = Sink()
      defer { view.end() }
      try base.rows(FaultRequest(entity: dog.index, keys: [key]), in: view, options: .none, into: sink)
      return sink.row
    }
  }

  private final class TriggeringSave: PreparedSave {
    private let base: any PreparedSave
    private let receipt: SaveReceipt
    init(_ base: any PreparedSave, _ receipt: SaveReceipt) { (self.base, self.receipt) = (base, receipt) }
    func commit() throws -> SaveReceipt {
      try base.commit()
      return receipt
    }
    func abort() { base.abort() }
  }

  private func open(_ store: TestStore) throws -> (ManagedObjectContext, RecordingStore, Trigger) {
    let trigger = Trigger()
    let (context, recorder) = try store.makePlace().recording { TriggeringStore($0, trigger) }
    return (context, recorder, trigger)
  }

  private func another(_ context: ManagedObjectContext) throws -> ManagedObjectContext {
    try ManagedObjectContext(coordinator: context.persistentStoreCoordinator, classes: Kennel.classes)
  }

  @Test(arguments: TestStore.allCases) func objectsGetTheRowsOfTheReceipt(_ store: TestStore) throws {
    let (context, recorder, trigger) = try open(store)
    trigger.state.withLock { $0.normalises = true }
    let dogs = ["rex", "max", "fido"].map { context.dog($0) }
    context.insert(Person.self).name = "Ada"
    try context.save()
    recorder.withStoreBlocked { #expect(dogs.map(\.name) == ["REX", "MAX", "FIDO"] && !context.hasChanges) }
    dogs[1].name = "bello"
    // The expected version is that of the receipt.
    try context.save()
    recorder.withStoreBlocked { #expect(dogs.map(\.name) == ["REX", "BELLO", "FIDO"]) }
    #expect(try another(context).fetch(FetchRequest<Dog>()).map(\.name).sorted() == ["BELLO", "FIDO", "REX"])
    let later = try another(context)
    #expect(try dogs.map { try (later.existingObject(with: $0.objectID) as? Dog)?.name } == ["REX", "BELLO", "FIDO"])
  }

  /// The bug: handlers of changes weren't called after the save.
  @Test(arguments: TestStore.allCases) func objectsWithOtherValuesInTheReceiptAreReportedAsRefreshed(_ store: TestStore) throws {
    let (context, _, trigger) = try open(store), dog = context.dog("rex"), other = context.dog("MAX")
    trigger.state.withLock { $0.normalises = true }
    var heard: [ObjectChanges] = []
    let observation = context.onChange { _, changes in heard.append(changes) }
    try context.save()
    #expect(dog.name == "REX" && other.name == "MAX" && heard == [ObjectChanges(refreshed: [dog.objectID])])
    withExtendedLifetime(observation) {}
  }

  /// The store saves the values of a child, and chooses other versions. What the parent changes itself is a conflict nevertheless.
  @Test(arguments: TestStore.allCases) func aVersionThatTheStoreChoosesIsNoConflictForAChild(_ store: TestStore) throws {
    let (parent, _, trigger) = try open(store), child = ManagedObjectContext(parent: parent)
    trigger.state.withLock { $0.normalises = true }
    let theirs = parent.dog("MAX")
    try parent.save()
    let new = child.dog("REX"), mine = try #require(try child.one(Dog.self) { $0.name == "MAX" })
    for age in 2...5 {
      for dog in [new, mine] { dog.age = age }
      try child.save()
      try parent.save()
    }
    #expect(try another(parent).fetch(FetchRequest<Dog>()).map(\.age) == [5, 5])
    theirs.age = 9
    try parent.save()
    mine.weight = 1
    let error = #expect(throws: PersistenceError.self) { try child.save() }
    #expect(error?.code == .conflict && error?.objectIDs == [mine.objectID])
  }

  /// The same if the outcome of the parent's save is unknown at first, and the child changes its objects again before the parent learns it.
  @Test(arguments: TestStore.allCases, OutcomeStore.Loss.allCases)
  func aVersionThatTheStoreChoosesIsNoConflictForAChildIfTheOutcomeWasUnknown(_ store: TestStore, _ loss: OutcomeStore.Loss) throws {
    final class Made: @unchecked Sendable { var store: OutcomeStore? }  // because only this test uses it, in one thread
    let made = Made(), trigger = Trigger()
    let (parent, _) = try store.makePlace().recording { base in
      let store = OutcomeStore(TriggeringStore(base, trigger))
      made.store = store
      return store
    }
    let child = ManagedObjectContext(parent: parent)
    trigger.state.withLock { $0.normalises = true }
    parent.dog("MAX")
    try parent.save()
    let new = child.dog("REX"), mine = try #require(try child.one(Dog.self) { $0.name == "MAX" })
    for age in 2...5 {
      for dog in [new, mine] { dog.age = age }
      try child.save()
      made.store?.loseCommit(loss)
      let error = #expect(throws: StoreError.self) { try parent.save() }
      #expect(error?.code == .outcomeUnknown)
      for dog in [new, mine] { dog.weight = Double(age) }
      try child.save()
      try parent.save()
    }
    let saved = try another(parent).fetch(FetchRequest<Dog>())
    #expect(saved.map(\.age) == [5, 5] && saved.map(\.weight) == [5, 5])
  }

  @Test(arguments: TestStore.allCases, [true, false])
  func otherObjectsThatTheStoreChangedAreReadAgain(_ store: TestStore, isNamed: Bool) async throws {
    // The receipt of the second of several stores has that store's keys; this trigger knows only keys.
    let (context, _, trigger) = try open(store == .second ? .memory : store)
    let dog = context.dog("rex"), other = context.dog("max", age: 3)
    try context.save()
    let changes = context.persistentStoreCoordinator.savedChanges()
    let reading = try another(context)
    #expect(try (reading.existingObject(with: other.objectID) as? Dog)?.age == 3)
    trigger.state.withLock { ($0.other, $0.namesOther) = ((other.objectID.key, 9), isNamed) }
    dog.age = 5
    try context.save()
    trigger.state.withLock { $0.other = nil }
    #expect(try (another(context).existingObject(with: other.objectID) as? Dog)?.age == 9)
    var iterator = changes.makeAsyncIterator()
    let announced = await iterator.next()
    #expect(announced?.updated == (isNamed ? [dog.objectID, other.objectID] : [dog.objectID]))
    try context.refresh(other, mergeChanges: false)
    other.age += 1
    try context.save()
    #expect(other.age == 10)
  }

  /// The bug: all contexts merged them, except for the one that had saved.
  @Test(arguments: TestStore.allCases, [true, false])
  func theSavingContextMergesOtherObjectsThatTheStoreChanged(_ store: TestStore, isNamed: Bool) throws {
    let (context, _, trigger) = try open(store == .second ? .memory : store)
    context.automaticallyMergesChanges = true
    let dog = context.dog("rex"), other = context.dog("max", age: 3)
    try context.save()
    trigger.state.withLock { ($0.other, $0.namesOther) = ((other.objectID.key, 9), isNamed) }
    dog.age = 5
    try context.save()
    trigger.state.withLock { $0.other = nil }
    try context.processPendingChanges()
    #expect(other.age == 9)
    other.age += 1
    try context.save()
    #expect(other.age == 10)
  }

  @Test func aReceiptWithARowThatWasNotSavedIsAnErrorAfterTheSave() throws {
    let (context, _, trigger) = try open(.sqlite)
    let dog = context.dog("rex"), other = context.dog("max", age: 3)
    try context.save()
    trigger.state.withLock { ($0.other, $0.isInvalid) = ((other.objectID.key, 9), true) }
    dog.age = 5
    let error = #expect(throws: StoreError.self) { try context.save() }
    #expect(error?.code == .damaged && error?.reason.contains("took effect") == true)
    #expect(!context.hasChanges && dog.age == 5)
    trigger.state.withLock { $0 = Trigger.State() }
    #expect(try another(context).fetch(FetchRequest<Dog>(sortedBy: [.ascending(\.age)])).map(\.age) == [5, 9])
    dog.age = 6
    try context.save()
  }

  /// The bug: the error said that rows couldn't be read, and not that the save took effect.
  @Test(arguments: TestStore.allCases) func aReceiptWithRowsOfNoEntityIsAnErrorOfASaveThatTookEffect(_ store: TestStore) throws {
    let (context, _, trigger) = try open(store), dog = context.dog("rex")
    trigger.state.withLock { $0.hasOtherLayout = true }
    let error = #expect(throws: StoreError.self) { try context.save() }
    #expect(error?.code == .damaged && error?.reason.contains("took effect") == true, "\(error as Any)")
    #expect(!context.hasChanges && !dog.objectID.isTemporaryID)
    #expect(try another(context).count(for: FetchRequest<Dog>()) == 1)
  }
}
