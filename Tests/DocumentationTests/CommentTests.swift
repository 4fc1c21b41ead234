import Foundation
import Holdfast
import HoldfastAtomicStore
import HoldfastMemoryStore
import HoldfastSQLiteStore
import HoldfastStore
import HoldfastStoreConformance
import HoldfastStoreRecording
import HoldfastStoreWrappers
import TestSupport
import Testing

/// The examples in comments behave as they describe.
@Suite struct CommentTests {
  // MARK: The stack

  @Test @MainActor func aContainerSavesADog() throws {
    let (container, dog) = try SmallKennel.container()
    #expect(!dog.objectID.isTemporaryID)
    #expect(try container.viewContext.fetch(SmallKennel.Dog.self) { $0.name == "Fido" } == [dog])
  }

  @Test func aValueIsAskedForBeforeItIsSet() throws {
    let tie = try ValidationExamples.tie()
    #expect(ValidationExamples.ask(tie, 6) == "Rating may be at most 5." && ValidationExamples.ask(tie, 5) == nil)
    #expect(ValidationExamples.ask(tie, 3.5) == "Nobody rates a tie 3.5.")
    let error = try #require(throws: PersistenceError.self) { try tie.validateValue(.double(6), forKey: "rating") }
    #expect(ValidationExamples.show(error) == "Die Bewertung darf höchstens 5 sein.")
  }

  @Test func wrappersForwardToTheirStores() throws {
    let model = try SmallKennel.model(), folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString).path
    defer { try? FileManager.default.removeItem(atPath: folder) }
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    try PersistentStoreCoordinator(model: model, store: .sqlite(at: folder + "/Kennel.sqlite")).close()
    for description in [
      WrapperExamples.traced(.memory()), WrapperExamples.slow(.memory()), WrapperExamples.overlay(folder + "/Kennel.sqlite"),
    ] {
      let coordinator = try PersistentStoreCoordinator(model: model, store: description)
      let context = try ManagedObjectContext(coordinator: coordinator, classes: [SmallKennel.Dog.self])
      context.insert(SmallKennel.Dog.self).name = "Fido"
      try context.save()
      #expect(try context.count(SmallKennel.Dog.self) == 1)
      try coordinator.close()
    }
    #expect(try WrapperExamples.evaluating(.memory(), model).capabilities.aggregates)
    #expect(try WrapperExamples.anna("B", model, model.entities[0]).uriRepresentation == "x-coredata://B/Dog/ppeople%2Fanna")
  }

  @Test func aRecordedProgramIsReplayed() throws {
    let folder = TemporaryFolder(), model = try SmallKennel.model()
    let recordings = ["a", "b"].map { folder.file("\($0).recording") }
    let coordinators = [
      try PersistentStoreCoordinator(model: model, store: WrapperExamples.record(.memory(), recordings[0])),
      try WrapperExamples.recordRun(.memory(), model, recordings[1]),
    ]
    for coordinator in coordinators {
      let context = try ManagedObjectContext(coordinator: coordinator, classes: [SmallKennel.Dog.self])
      context.insert(SmallKennel.Dog.self).name = "Fido"
      try context.save()
      #expect(try context.count(SmallKennel.Dog.self) == 1)
      try coordinator.close()
    }
    #expect(try WrapperExamples.replay(recordings[0], folder.file("copy.sqlite")).hasSameAnswers)
    try WrapperExamples.compare(recordings[1], folder.file("other.json"))
  }

  @Test func aRequestWaitsForAnAsynchronousClient() async throws {
    #expect(try await onThread { try WrapperExamples.wait(WrapperExamples.Client(), "here", .none) } == "here")
  }

  @Test @MainActor func aRowStoreInDictionariesKeepsAGraph() throws {
    let model = try LargeKennel.container().managedObjectModel
    let classes: [ManagedObject.Type] = [LargeKennel.Dog.self, LargeKennel.Owner.self, LargeKennel.Walk.self]
    let coordinator = try PersistentStoreCoordinator(model: model, store: DictionaryExample().description)
    let context = try ManagedObjectContext(coordinator: coordinator, classes: classes)
    let dogs = ["Argos", "Rex", "Ajax"].map { name in
      let dog = context.insert(LargeKennel.Dog.self)
      (dog.name, dog.breed, dog.age) = (name, "pug", 3)
      return dog
    }
    dogs[0].friends.insert(dogs[1])
    dogs[2].friends.insert(dogs[0])
    try context.save()
    let other = try ManagedObjectContext(coordinator: coordinator, classes: classes)
    let found = try other.fetch(LargeKennel.Dog.self) { $0.name == "Argos" }
    #expect(Set(found.flatMap { $0.friends.map { $0.name } }) == ["Rex", "Ajax"])
    other.delete(try #require(found.first?.friends.first { $0.name == "Rex" }))
    try other.save()
    #expect(found[0].friends.map { $0.name } == ["Ajax"])
    #expect(try other.count(LargeKennel.Dog.self) == 2)
  }

  @Test func aRecordingStoreRecordsItsRequests() throws { try SmallKennel.recording() }

  @MainActor private func kennel() throws -> PersistentContainer {
    let container = try LargeKennel.container(), context = container.viewContext
    let anna = context.insert(LargeKennel.Owner.self)
    anna.name = "Anna"
    for (name, age, breed) in [("argos", 20, "collie"), ("Rex", 3, "pug"), ("Ajax", 12, "collie")] {
      let dog = context.insert(LargeKennel.Dog.self)
      (dog.name, dog.age, dog.breed) = (name, age, breed)
      if name == "Ajax" { dog.owner = anna }
    }
    try context.save()
    return container
  }

  @MainActor private func dog(_ name: String, _ container: PersistentContainer) throws -> LargeKennel.Dog {
    try #require(try container.viewContext.fetchOne(LargeKennel.Dog.self) { $0.name == name })
  }

  @Test @MainActor func walksAreInsertedMovedAndSorted() throws {
    let container = try kennel(), context = container.viewContext, rex = try dog("Rex", container)
    let walks = (0..<4).map { number in
      let walk = context.insert(LargeKennel.Walk.self)
      walk.date = Date(timeIntervalSinceReferenceDate: Double(10 - number))
      return walk
    }
    rex.walks.append(contentsOf: walks[1...])
    LargeKennel.takeWalks(rex, walks[0])
    #expect(Array(rex.walks) == walks.reversed())
  }

  @Test @MainActor func valuesAreFoundByName() throws {
    let container = try kennel(), ajax = try dog("Ajax", container)
    ajax.friends.insert(try dog("Rex", container))
    #expect(try LargeKennel.byName(ajax) == (true, 1))
  }

  @Test @MainActor func requestsFindWhatTheyAskFor() throws {
    let container = try kennel(), context = container.viewContext, rex = try dog("Rex", container)
    let walk = context.insert(LargeKennel.Walk.self)
    walk.date = Date(timeIntervalSinceReferenceDate: 1)
    rex.walks.append(walk)
    let requests = LargeKennel.requests(Date(timeIntervalSinceReferenceDate: 0))
    #expect(try requests.map { Set(try context.fetch($0).map(\.name)) } == [["argos", "Ajax"], ["Rex"], ["Ajax"]])
    #expect(try LargeKennel.firstTen(context) == ["Ajax", "argos"])
    try context.save()
    let ages = try LargeKennel.ages(context)
    #expect(ages == [["breed": .string("collie"), "age": .double(16)], ["breed": .string("pug"), "age": .double(3)]])
  }

  @Test @MainActor func aBackgroundContextRetiresOldDogs() async throws {
    let container = try kennel()
    #expect(try await LargeKennel.retire(container.newBackgroundContext()) == 1)
    #expect(try container.viewContext.count(LargeKennel.Dog.self) { $0.isRetired == true } == 1)
  }

  @Test @MainActor func listeningEndsWithItsTask() async throws {
    let container = try kennel()
    let listener = Task { await LargeKennel.listen(container) }
    listener.cancel()
    await listener.value
  }

  // MARK: The boundary

  @Test func modelsAreMadeOfTheirDeclarations() throws {
    let model = try ManagedObjectModel(entities: ModelExamples.entities())
    #expect(model.entity(named: "Dog")?.slots.map(\.name) == ["name", "breed"])
    #expect(ModelExamples.configuration().name == "cloud")
    #expect(ModelExamples.attributes().map(\.isOptional) == [false, true, true, true, true])
    #expect(ModelExamples.composite().elements.count == 2 && ModelExamples.index().elements.map(\.isAscending) == [false, true])
    #expect(ModelExamples.rules().map(\.validation.maximum) == [.double(5), nil])
    #expect(ModelExamples.relationships().map(\.deleteRule) == [.nullify, .deny])
    #expect(try ModelExamples.model().entities.map(\.name) == ["Dog"])
  }

  @Test func textFoldsAsItSays() { #expect(ValueExamples.folds()) }

  private final class Names: RowSink {
    var names: [StoreValue] = []
    func take(_ batch: RowBatch, _ rows: RowSelection) -> SinkDemand {
      names += (0..<batch.count).map { batch[$0].pointer.value(1, .attribute(.string)) }
      return .more
    }
  }

  @Test func rowsAreBuiltAndDelivered() throws {
    let model = try SmallKennel.model(), dog = try #require(model.entity(named: "Dog")), sink = Names()
    let identity = StoreIdentity.intern(storeUUID: UUID().uuidString, model: model)
    try ValueExamples.deliver((1...2000).map { (ObjectKey(Int64($0)), 3, "dog \($0)") }, of: dog, identity, to: sink)
    #expect(sink.names.count == 2000 && sink.names.last == .string("dog 2000"))
  }

  @Test func anIDIsMadeOfStoreEntityAndKey() throws {
    let model = try SmallKennel.model(), uuid = UUID().uuidString
    let id = try ValueExamples.id(uuid, model, try #require(model.entity(named: "Dog")))
    #expect(id.uriRepresentation == "x-coredata://\(uuid)/Dog/p7")
  }

  @Test func digestsHaveTheirLengths() {
    let bytes = Array("body".utf8)
    #expect(bytes.withUnsafeBytes(ValueExamples.digest) == bytes.withUnsafeBytes(ContentDigest.value(of:)))
    #expect(ValueExamples.sha256([1], bytes).count == 32)
    #expect(ValueExamples.sha512([1], bytes).count == 64)
  }

  // MARK: Stores

  private func withFolder(_ body: (URL) throws -> Void) throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("holdfast-comments-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    try body(folder)
  }

  @Test func aSQLiteStoreOpensByItself() throws {
    try withFolder { folder in
      let (store, metadata) = try StoreExamples.openSQLite(folder.appendingPathComponent("dogs.sqlite").path, try SmallKennel.model())
      #expect(UUID(uuidString: metadata.identity.storeUUID) != nil)
      try store.close()
    }
  }

  @Test func heldContentsAreFoundAgain() throws {
    let description = StoreExamples.keptContents(), model = try SmallKennel.model()
    for expected in [0, 1] {
      let context = try ManagedObjectContext(coordinator: PersistentStoreCoordinator(model: model, store: description))
      #expect(try context.count(for: FetchRequest<ManagedObject>(entityName: "Dog")) == expected)
      try context.insert(entityNamed: "Dog").setValue(.string("Fido"), forKey: "name")
      for dog in context.insertedObjects { try dog.setValue(.int16(1), forKey: "age") }
      try context.save()
      try context.persistentStoreCoordinator.close()
    }
  }

  @Test func aSumIsExact() { #expect(WrapperExamples.exactSum() == 1) }

  @Test func aFileIsReplacedWhole() throws {
    try withFolder { folder in
      let path = folder.appendingPathComponent("harbour").path
      for (contents, before) in [("first", nil), ("second", "first"), ("third", "second")] as [(String, String?)] {
        let found = try Array(contents.utf8).withUnsafeBytes { try StoreExamples.replace(path, with: $0) }
        #expect(found == before)
      }
    }
  }

  @Test func aFaultComesAtTheCallThatWasNamed() throws {
    let store = StoreExamples.failing()
    let description = StoreDescription(type: "failing") { store }
    let context = try ManagedObjectContext(coordinator: PersistentStoreCoordinator(model: SmallKennel.model(), store: description))
    func save() throws {
      let dog = try context.insert(entityNamed: "Dog")
      try dog.setValue(.string("Fido"), forKey: "name")
      try dog.setValue(.int16(1), forKey: "age")
      try context.save()
    }
    try save()
    #expect(throws: StoreError.self) { try save() }
    try context.save()
  }
}
