import Foundation
import Holdfast
import HoldfastBinaryStore
import HoldfastJSONStore
import HoldfastSQLiteStore
import HoldfastStore
import HoldfastXMLStore
import TestSupport
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Stores made by an attacker, opened by every entry point in a process with limited memory and processor time. Each gives a typed error or an
/// answer, and only the store's own files change.
@Suite(.ownThreads) struct HostileStoreTests {
  /// A way of opening a store.
  enum Opening { case writable, readOnly, metadata, model }

  @Test(arguments: HostileStore.allCases) func openingIsBounded(_ attack: HostileStore) async throws {
    let folder = TemporaryFolder(), victim = TemporaryFolder()
    try TemporaryFolder.write(Array("precious".utf8), to: victim.file("victim"))
    let path = folder.file(attack.fileName)
    try attack.make(at: path, victim: victim.file("victim"))
    let before = try (folder.snapshot(), victim.snapshot())
    let reader = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
      [attack = attack as HostileStore, path = path as String] in
      ProcessLimits.set(memory: 512 << 20, processorSeconds: 60)
      print("REPORT \(attack): \([.metadata, .model, .readOnly].map { Self.outcome(attack, path, $0) }.joined(separator: ", "))")
    }
    report(reader)
    #expect(try TestBytes.areEqual(folder.snapshot(), before.0))
    #expect(try TestBytes.areEqual(victim.snapshot(), before.1))
    let writer = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
      [attack = attack as HostileStore, path = path as String] in
      ProcessLimits.set(memory: 512 << 20, processorSeconds: 60)
      let outcome = Self.outcome(attack, path, .writable), expected = attack.refusalOfWriting?.rawValue ?? "5000 objects"
      demand(outcome == "writable: \(expected)", outcome)
      print("REPORT \(attack): \(outcome)")
    }
    report(writer)
    func others(_ files: [String: [UInt8]]) -> [String: [UInt8]] { files.filter { !$0.key.contains(attack.fileName) } }
    #expect(try TestBytes.areEqual(others(folder.snapshot()), others(before.0)))
    #expect(try TestBytes.areEqual(victim.snapshot(), before.1))
  }

  /// The outcome of opening a store: an answer or the code of a typed error.
  private static func outcome(_ attack: HostileStore, _ path: String, _ opening: Opening) -> String {
    do {
      return "\(opening): \(try use(attack, path, opening))"
    } catch let error as StoreError {
      demand(error.code != .general, "\(error)")
      return "\(opening): \(error.code.rawValue)"
    } catch let error as PersistenceError {
      return "\(opening): \(error.code.rawValue)"
    } catch { complain("\(error)") }
  }

  /// Opens a store, reads everything and, if it is writable, saves. Returns a summary.
  private static func use(_ attack: HostileStore, _ path: String, _ opening: Opening) throws -> String {
    let store = attack.description(path, isReadOnly: opening == .readOnly)
    switch opening {
    case .metadata: return "\(try PersistentStoreCoordinator.metadata(for: store).userInfo.count) user values"
    case .model: return "\(try PersistentStoreCoordinator.cachedModel(for: store)?.entities.count ?? 0) entities"
    case .readOnly, .writable: break
    }
    let context = try ManagedObjectContext(coordinator: PersistentStoreCoordinator(model: attack.model, store: store))
    var count = 0
    for entity in attack.model.entities where entity.superentityIndex == nil {
      count += try context.fetch(FetchRequest<ManagedObject>(entityName: entity.name)).count
    }
    if opening == .writable {
      try context.insert(entityNamed: "Journal").setValue(.int64(1), forKey: "saves")
      try context.save()
    }
    try context.persistentStoreCoordinator.close()
    return "\(count) objects"
  }

  @Test(arguments: [HostileStore.emptyRowsInJSON, .emptyRowsInXML, .emptyRowsInBinary])
  func rowsAboveTheMaximumMemoryAreNeitherSavedNorRead(_ kind: HostileStore) throws {
    let folder = TemporaryFolder(), path = folder.file(kind.fileName)
    let size = 3 * (try #require(kind.model.entity(named: "Wide")).layout.fixedByteCount)
    func context(_ maximumRowByteCount: Int?) throws -> ManagedObjectContext {
      let store = kind.description(path, maximumRowByteCount: maximumRowByteCount)
      return try ManagedObjectContext(coordinator: PersistentStoreCoordinator(model: kind.model, store: store))
    }
    let small = try context(size - 1)
    for _ in 0..<3 { _ = try small.insert(entityNamed: "Wide") }
    let refusal = #expect(throws: StoreError.self) { try small.save() }
    #expect(refusal?.code == .unstorableValue && refusal?.reason.contains("maximumRowByteCount") == true, "\(String(describing: refusal))")
    #expect(small.insertedObjects.count == 3)
    try small.persistentStoreCoordinator.close()
    let exact = try context(size)
    for _ in 0..<3 { _ = try exact.insert(entityNamed: "Wide") }
    try exact.save()
    try exact.persistentStoreCoordinator.close()
    for largest in [size, nil] {
      let again = try context(largest)
      #expect(try again.fetch(FetchRequest<ManagedObject>(entityName: "Wide")).count == 3)
      try again.persistentStoreCoordinator.close()
    }
    let error = #expect(throws: StoreError.self) { try context(size - 1) }
    #expect(
      error?.code == .tooLarge && error?.path == path && error?.reason.contains("maximumRowByteCount") == true,
      "\(String(describing: error))")
  }

  @Test(arguments: [HostileStore.emptyRowsInJSON, .emptyRowsInXML, .emptyRowsInBinary])
  func aRepairReadsNoMoreThanTheMaximumMemory(_ kind: HostileStore) throws {
    let folder = TemporaryFolder(), path = folder.file(kind.fileName), repaired = folder.file("repaired")
    let size = 3 * (try #require(kind.model.entity(named: "Wide")).layout.fixedByteCount)
    let filled = try ManagedObjectContext(
      coordinator: PersistentStoreCoordinator(model: kind.model, store: kind.description(path, maximumRowByteCount: size)))
    for _ in 0..<3 { _ = try filled.insert(entityNamed: "Wide") }
    try filled.save()
    try filled.persistentStoreCoordinator.close()
    let bytes = try TemporaryFolder.read(path)
    // The second file lacks the end of its digest.
    for bytes in [bytes, Array(bytes.dropLast(4))] {
      try TemporaryFolder.write(bytes, to: path)
      func repair(_ largest: Int) throws -> RepairReport {
        try PersistentStoreCoordinator.repairPersistentStore(
          kind.description(path, maximumRowByteCount: largest), to: kind.description(repaired, maximumRowByteCount: largest),
          model: kind.model)
      }
      let error = #expect(throws: StoreError.self) { try repair(size - 1) }
      #expect(error?.code == .tooLarge && error?.reason.contains("maximumRowByteCount") == true, "\(String(describing: error))")
      #expect(!folder.exists("repaired"))
      #expect(try repair(size).objectCount == 3)
      for name in folder.names where name.hasPrefix("repaired") { unlink(folder.file(name)) }
    }
  }
}
