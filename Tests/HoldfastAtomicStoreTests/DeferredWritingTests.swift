import CSVStore
import Foundation
import Holdfast
import HoldfastFiles
import HoldfastStore
import HoldfastStoreConformance
import Synchronization
import TestSupport
import Testing

@testable import HoldfastAtomicStore

/// Stores that write their file when they are closed, as the copies that migrations change.
@Suite struct DeferredWritingTests {
  private let folder = TemporaryFolder()
  private var path: String { folder.file("notes.csv") }
  private let model: ManagedObjectModel

  init() throws {
    let text = AttributeDescription("text", .string),
      image = AttributeDescription("image", .binaryData, isOptional: true, allowsExternalBinaryDataStorage: true)
    model = try ManagedObjectModel(entities: [EntityDescription("Note", attributes: [text, image])])
  }

  private func open(_ change: (inout WholeFileOptions) -> Void = { _ in }) throws -> ManagedObjectContext {
    var options = WholeFileOptions()
    options.defersWrites = true
    options.externalData.threshold = 100
    change(&options)
    return try ManagedObjectContext(
      coordinator: PersistentStoreCoordinator(model: model, store: .document(CSVFormat(), at: path, options: options)))
  }

  private func insert(_ numbers: Range<Int>, _ context: ManagedObjectContext) throws {
    for number in numbers { try context.insert(entityNamed: "Note").setValue(.string("\(number)"), forKey: "text") }
    try context.save()
  }

  private func file() throws -> Data { try Data(contentsOf: URL(fileURLWithPath: path)) }

  /// The number of objects in a file. A copy of it is opened, because a process opens a file once.
  private func storedCount() throws -> Int {
    let copy = folder.file("copy.csv")
    try? FileManager.default.removeItem(atPath: copy)
    try FileManager.default.copyItem(atPath: path, toPath: copy)
    let coordinator = try PersistentStoreCoordinator(model: model, store: .document(CSVFormat(), at: copy, isReadOnly: true))
    defer { try? coordinator.close() }
    return try ManagedObjectContext(coordinator: coordinator).count(for: FetchRequest<ManagedObject>(entityName: "Note"))
  }

  @Test func theFileIsWrittenAfterChangesOfAQuarterOfTheObjectsAndWhenTheStoreIsClosed() throws {
    let context = try open()
    try insert(0..<100, context)
    var counts = [try storedCount()]
    for start in [100, 110, 120, 130] {
      try insert(start..<start + 10, context)
      counts.append(try storedCount())
    }
    // 30 changes of 120 objects are a quarter of them.
    #expect(counts == [100, 100, 100, 130, 130])
    #expect(try context.count(for: FetchRequest<ManagedObject>(entityName: "Note")) == 140)
    try context.persistentStoreCoordinator.close()
    #expect(try storedCount() == 140)
  }

  @Test func closingAStoreWithoutChangesWritesNothing() throws {
    let context = try open()
    try insert(0..<10, context)
    let state = StoreFileState(ofFileAt: path)
    try context.persistentStoreCoordinator.close()
    #expect(StoreFileState(ofFileAt: path) == state)
  }

  @Test func metadataIsWrittenWithTheObjects() throws {
    let context = try open()
    try insert(0..<100, context)
    let before = try file()
    try context.persistentStoreCoordinator.setMetadata(["step": 1])
    try insert(100..<101, context)
    #expect(try file() == before)
    #expect(context.persistentStoreCoordinator.persistentStores[0].metadata == ["step": 1])
    try context.persistentStoreCoordinator.close()
    let description = StoreDescription.document(CSVFormat(), at: path)
    #expect(try PersistentStoreCoordinator.metadata(for: description).userInfo == ["step": 1])
    #expect(try storedCount() == 101)
  }

  @Test func aSaveThatWritesExternalFilesWritesTheFile() throws {
    let context = try open()
    try insert(0..<100, context)
    let note = try context.insert(entityNamed: "Note")
    try note.setValue(.string("large"), forKey: "text")
    try note.setValue(.data(Data(repeating: 7, count: 1_000)), forKey: "image")
    try context.save()
    #expect(try storedCount() == 101)
    try insert(101..<102, context)
    #expect(try storedCount() == 101)
    try context.persistentStoreCoordinator.close()
    #expect(try storedCount() == 102)
  }

  @Test func aFileThatCannotBeWrittenIsAnErrorOfClosingAndStaysAsItWas() throws {
    let context = try open { $0.file.fileSystem = POSIXFileSystem().withRoom(20 << 10) }
    try insert(0..<100, context)
    let before = try file()
    try insert(100..<110, context)
    let text = String(repeating: "a", count: 50 << 10)
    try context.insert(entityNamed: "Note").setValue(.string(text), forKey: "text")
    try context.save()
    let error = #expect(throws: StoreError.self) { try context.persistentStoreCoordinator.close() }
    #expect(error?.code == .diskFull, "\(String(describing: error))")
    #expect(try file() == before)
  }

  @Test func changesInMemoryAreNotLostInSilenceWhenAnotherStoreSavesTheFile() throws {
    let context = try open()
    try insert(0..<100, context)
    try insert(100..<101, context)
    let copy = folder.file("copy.csv")
    try FileManager.default.copyItem(atPath: path, toPath: copy)
    let other = try ManagedObjectContext(
      coordinator: PersistentStoreCoordinator(model: model, store: .document(CSVFormat(), at: copy)))
    try insert(101..<102, other)
    try other.persistentStoreCoordinator.close()
    #expect(rename(copy, path) == 0)
    let error = #expect(throws: StoreError.self) { try context.persistentStoreCoordinator.close() }
    #expect(error?.code == .storeReplaced, "\(String(describing: error))")
    #expect(try storedCount() == 101)
  }

  /// A plan records that a copy is complete. After a power loss, a former version of the copy would pass for it.
  @Test func theCopiesOfAMigrationAreDurableAndKeepNoBackups() throws {
    let calls = Calls()
    var options = WholeFileOptions()
    options.file = DurableFileOptions(durability: .normal, backupCount: 2, fileSystem: RecordingFileSystem(calls: calls))
    let usual = StoreDescription.document(CSVFormat(), at: path, options: options)
    let coordinator = try PersistentStoreCoordinator(model: model, store: try #require(usual.inFileWithSmallCaches?(path)))
    let context = try ManagedObjectContext(coordinator: coordinator)
    for start in [0, 10, 20] { try insert(start..<start + 10, context) }
    try insert(30..<31, context)
    try coordinator.close()
    #expect(try storedCount() == 31)
    #expect(calls.names.withLock { $0.suffix(3) } == ["synchronize", "rename", "synchronize"])
    #expect(!folder.names.contains { $0.contains("~") }, "\(folder.names)")
  }

  private final class Calls: Sendable {
    let names = Mutex<[String]>([])
  }

  private struct RecordingFileSystem: ForwardingFileSystem {
    let base: any StoreFileSystem = POSIXFileSystem()
    let calls: Calls

    func rename(_ name: String, to newName: String, in folder: StoreFileHandle) throws(FileSystemError) {
      calls.names.withLock { $0.append("rename") }
      try base.rename(name, to: newName, in: folder)
    }

    func synchronize(_ file: StoreFileHandle) throws(FileSystemError) {
      calls.names.withLock { $0.append("synchronize") }
      try base.synchronize(file)
    }
  }

  // MARK: Without a coordinator

  /// An open store, whose rows are all in a temporary file.
  private struct Opened {
    let store: WholeFileStore
    let identity: StoreIdentity
    let note: ManagedObjectModel.Entity

    func keys(_ count: Int) throws -> [ObjectKey] { try store.reserveKeys(entity: note.index, count: count).sorted() }

    func rows(_ keys: [ObjectKey], text: String = "a") throws -> RowBatch {
      let builder = RowBatchBuilder(entity: note, identity: identity)
      for key in keys { try builder.append(key: key, version: 1, values: note.slots.map { $0.name == "text" ? .string(text) : .null }) }
      return builder.seal()
    }

    func insertion(of keys: [ObjectKey]) throws -> any PreparedSave {
      var changes = SaveRequest.EntityChanges(entity: note.index)
      changes.inserted.append(try rows(keys))
      return try prepare(changes)
    }

    func prepare(_ changes: SaveRequest.EntityChanges) throws -> any PreparedSave {
      try store.prepare(SaveRequest(entities: [changes]), options: .none)
    }
  }

  private func openStore(_ change: (inout WholeFileOptions) -> Void = { _ in }) throws -> Opened {
    let (store, identity) = try openStore(of: model, change)
    return Opened(store: store, identity: identity, note: try #require(model.entity(named: "Note")))
  }

  private func openStore(
    of model: ManagedObjectModel, _ change: (inout WholeFileOptions) -> Void = { _ in }
  ) throws -> (WholeFileStore, StoreIdentity) {
    var options = WholeFileOptions()
    options.defersWrites = true
    change(&options)
    let store = WholeFileStore(format: DocumentFile(CSVFormat(), path, options), at: path, options: options)
    return (store, try RowSpill.$residentByteCount.withValue(0) { try store.open(model: model, host: .none).identity })
  }

  @Test func aSaveThatFailsChangesNothing() throws {
    let opened = try openStore(), keys = try opened.keys(102)
    _ = try opened.insertion(of: Array(keys[..<100])).commit()
    let before = try file()
    try opened.insertion(of: [keys[100]]).abort()
    _ = try opened.insertion(of: [keys[101]]).commit()
    #expect(throws: StoreError.self) { try opened.insertion(of: [keys[0]]) }
    #expect(try file() == before)
    try opened.store.close()
    #expect(try storedCount() == 101)
  }

  /// Without its lock file, another process can save beside a prepared save. The bug: loading that version ended the process.
  /// Without loading it, the version of the other process was lost.
  @Test(arguments: [(false, false), (false, true), (true, true)])
  func aPreparedSaveIsRefusedIfAnotherProcessSavesWithoutTheLock(defersWrites: Bool, loads: Bool) throws {
    let opened = try openStore { $0.defersWrites = defersWrites }, keys = try opened.keys(101)
    _ = try opened.insertion(of: Array(keys[..<100])).commit()
    let save = try opened.insertion(of: [keys[100]]), copy = folder.file("copy.csv")
    try FileManager.default.copyItem(atPath: path, toPath: copy)
    let other = try ManagedObjectContext(
      coordinator: PersistentStoreCoordinator(model: model, store: .document(CSVFormat(), at: copy)))
    try insert(200..<203, other)
    try other.persistentStoreCoordinator.close()
    try FileManager.default.removeItem(atPath: folder.file(".notes.csv.lock"))
    #expect(rename(copy, path) == 0)
    let theirs = try file()
    // This loads the version, as looking for saves of other processes does.
    var further = loads ? try opened.keys(1) : []
    let error = #expect(throws: StoreError.self) { try save.commit() }
    #expect(error?.code == .storeReplaced && error?.isRetryable == true && error?.path == path, "\(String(describing: error))")
    #expect(try file() == theirs)
    if !loads { further = try opened.keys(1) }
    _ = try opened.insertion(of: further).commit()
    try opened.store.close()
    #expect(try storedCount() == 104)
  }

  #if os(Linux)
    /// Loops leave out rows that can't be read, and the error comes at their end.
    @Test func aFileWithoutRowsThatCannotBeReadDoesNotTakeThePlaceOfTheFormerOne() throws {
      let opened = try openStore(), keys = try opened.keys(101)
      _ = try opened.insertion(of: Array(keys[..<100])).commit()
      let before = try file()
      _ = try opened.insertion(of: [keys[100]]).commit()
      #expect(folder.truncateUnnamedFiles() >= 1)
      let error = #expect(throws: StoreError.self) { try opened.store.close() }
      #expect(error?.code == .inputOutput, "\(String(describing: error))")
      #expect(try file() == before)
    }
  #endif

  /// Such rows are evicted when the save has failed.
  @Test func theRowsOfConflictsCanBeReadAfterwards() throws {
    let opened = try openStore(), keys = try opened.keys(100)
    _ = try opened.insertion(of: keys).commit()
    var changes = SaveRequest.EntityChanges(entity: opened.note.index)
    changes.deleted = SaveRequest.KeyedRows(keys: [keys[7]], expectedVersions: [2])
    let error = #expect(throws: StoreError.self) { try opened.prepare(changes) }
    let row = try #require(error?.conflicts.first?.persisted), text = try #require(opened.note.slot(named: "text"))
    #expect(row.key == keys[7] && row.version == 1 && row[text] == .string("a"))
    #expect(row.objectID == opened.identity.objectID(entity: opened.note, key: keys[7]))
  }

  /// The store doesn't look at which attributes are derived.
  @Test func aSaveOfDerivedValuesAloneIsWritten() throws {
    let opened = try openStore(), keys = try opened.keys(100), text = try #require(opened.note.slot(named: "text"))
    _ = try opened.insertion(of: keys).commit()
    var changes = SaveRequest.EntityChanges(entity: opened.note.index)
    changes.derived = [
      SaveRequest.DerivedRows(
        rows: try opened.rows([keys[3]], text: "made of others"), setSlots: [text.bit], addedSlots: [0], wordsPerRow: 1)
    ]
    _ = try opened.prepare(changes).commit()
    try opened.store.close()
    #expect(try String(decoding: file(), as: UTF8.self).contains("made of others"))
  }

  /// So nothing comes between a save and its end: neither metadata, which a save that writes the file would replace by the former ones, nor
  /// a writing of the file without the save.
  @Test(arguments: [1, 50]) func aPreparedSaveExcludesOtherChanges(_ count: Int) throws {
    let opened = try openStore { $0.file.lockTimeout = .zero }, keys = try opened.keys(100 + count)
    _ = try opened.insertion(of: Array(keys[..<100])).commit()
    for ends in [false, true] {
      let save = try opened.insertion(of: Array(keys[100...]))
      let refusals = [
        #expect(throws: StoreError.self) { try opened.store.setMetadata(["step": 3]) },
        #expect(throws: StoreError.self) { try opened.keys(1) },
        #expect(throws: StoreError.self) { try opened.insertion(of: [keys[100]]) },
      ]
      #expect(refusals.allSatisfy { $0?.code == .locked }, "\(refusals)")
      if ends { _ = try save.commit() } else { save.abort() }
      try opened.store.setMetadata(["step": ends ? 2 : 1])
    }
    try opened.store.close()
    #expect(try storedCount() == 100 + count)
    let description = StoreDescription.document(CSVFormat(), at: path)
    #expect(try PersistentStoreCoordinator.metadata(for: description).userInfo == ["step": 2])
  }

  // MARK: Nested requests

  private final class Receiver: RowSink {
    private let body: (RowBatch) throws -> Void

    init(_ body: @escaping (RowBatch) throws -> Void) { self.body = body }

    func take(_ batch: RowBatch, _ rows: RowSelection) throws -> SinkDemand {
      try body(batch)
      return .more
    }
  }

  /// A lookup of nil finds rows of several entities, and passes their keys on one entity after the other.
  @Test func aReceiverOfTheKeysOfALookupCanSendRequests() throws {
    let model = try ManagedObjectModel(
      entities: [
        EntityDescription(
          "Animal", isAbstract: true, attributes: [AttributeDescription("chip", .integer64, isOptional: true)],
          uniquenessConstraints: [["chip"]]),
        EntityDescription("Cat", superentity: "Animal"), EntityDescription("Dog", superentity: "Animal"),
      ])
    let (store, identity) = try openStore(of: model), animal = try #require(model.entity(named: "Animal"))
    var request = SaveRequest()
    for name in ["Cat", "Dog"] {
      let entity = try #require(model.entity(named: name)), builder = RowBatchBuilder(entity: entity, identity: identity)
      for key in try store.reserveKeys(entity: entity.index, count: 3).sorted() {
        try builder.append(key: key, version: 1, values: [.null])
      }
      var changes = SaveRequest.EntityChanges(entity: entity.index)
      changes.inserted.append(builder.seal())
      request.entities.append(changes)
    }
    _ = try store.prepare(request, options: .none).commit()

    let view = try store.beginRead(.snapshot, options: .none)
    let isMissing = QueryExpression.comparison(.property(PropertyPath("chip")), .equalTo, .constant(.null), [])
    let all = FetchPlan(entity: animal.index, concreteEntities: animal.concreteIndexes)
    for output in [FetchOutput.keys, .rows] {
      var plan = all, keys: [ObjectKey] = []
      (plan.predicate, plan.output) = (isMissing, output)
      let receiver = Receiver { batch in
        keys += (0..<batch.count).map { batch[$0].key }
        try store.fetch(all, in: view, options: .none, into: Receiver { _ in })
      }
      try store.fetch(plan, in: view, options: .none, into: receiver)
      #expect(keys.sorted() == [1, 2, 3, 4, 5, 6])
    }
    view.end()
    try store.close()
  }
}
