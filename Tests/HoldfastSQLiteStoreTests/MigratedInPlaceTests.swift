import Foundation
import Holdfast
import HoldfastPropertyList
import HoldfastSQLiteStore
import HoldfastStore
import SQLiteTestSupport
import TestSupport
import Testing

/// Another program migrates the file of an open store in place, through SQLite. Holdfast's own migrations don't.
@Suite struct MigratedInPlaceTests {
  private let folder = TemporaryFolder()

  /// The entries of the metadata of a new file.
  private func entries(_ model: ManagedObjectModel, _ name: String) throws -> [String: PropertyList] {
    let path = folder.file(name)
    try PersistentStoreCoordinator(model: model, store: .sqlite(at: path)).close()
    let digits = Array(try SQL.rows(path, "SELECT hex(Z_PLIST) FROM Z_METADATA")[0][0].utf8)
    let bytes = stride(from: 0, to: digits.count, by: 2).compactMap { place in
      UInt8(String(decoding: digits[place...place + 1], as: UTF8.self), radix: 16)
    }
    return try #require(try PropertyList(binary: bytes).dictionary)
  }

  /// What a program that migrates a file keeps in the metadata.
  enum Kept: CaseIterable, Sendable {
    case nothing
    /// The entries of this framework, which the program doesn't know.
    case ours
    /// The entries of the user, with the former model's digest, in a file without entries of this framework.
    case digest
    case oursAndDigest
  }

  /// The bytes of the metadata of a file with a further entity, as hexadecimal digits.
  private func migratedMetadata(keeping kept: Kept) throws -> String {
    let model = try HistoryModel.model(), aardvark = AttributeDescription("name", .string, isOptional: true)
    let larger = try ManagedObjectModel(entities: model.declarations + [EntityDescription("Aardvark", attributes: [aardvark])])
    var list = try entries(larger, "Migrated.sqlite")
    switch kept {
    case .nothing: break
    case .ours, .oursAndDigest:
      for (key, value) in try entries(model, "Former.sqlite") where key.hasPrefix("_Holdfast") { list[key] = value }
    case .digest: list = list.filter { !$0.key.hasPrefix("_Holdfast") }
    }
    if kept == .digest || kept == .oursAndDigest { list["created with"] = .string(model.versionDigest) }
    return PropertyList.dictionary(list).binary.map { String(format: "%02X", $0) }.joined()
  }

  @Test(.ownThreads, arguments: SQLiteStoreOptions.JournalMode.allCases, Kept.allCases)
  func aFileThatAnotherProgramMigratesIsNotWrittenTo(_ journal: SQLiteStoreOptions.JournalMode, keeping kept: Kept) async throws {
    let path = folder.file("Kennel.sqlite"), metadata = try migratedMetadata(keeping: kept)
    let description = StoreDescription.sqlite(at: path, options: SQLiteStoreOptions(journalMode: journal))
    let coordinator = try PersistentStoreCoordinator(model: HistoryModel.model(), store: description)
    let context = try HistoryModel.context(coordinator), fido = try HistoryModel.insert("Dog", "Fido", context)
    try context.save()
    await #expect(processExitsWith: .success) { [path = path as String, metadata = metadata as String] in
      for statement in [
        "ALTER TABLE ZANIMAL ADD COLUMN ZCOLOR VARCHAR", "UPDATE Z_METADATA SET Z_PLIST = x'\(metadata)'",
      ] { _ = try SQL.rows(path, statement) }
      guard try SQL.rows(path, "SELECT hex(Z_PLIST) FROM Z_METADATA") == [[metadata]] else { exit(3) }
    }
    func expectRefusal(_ body: () throws -> Void) throws {
      let error = try #require(throws: StoreError.self) { try body() }
      #expect(error.code == .incompatibleModel && error.coreDataCode == 134100 && error.path == path, "\(error)")
      #expect("\(error)".contains("Aardvark") && "\(error)".contains("Close the store"), "\(error)")
    }
    for _ in 0..<2 {
      try fido.setValue(3, forKey: "age")
      try expectRefusal { try context.save() }
      #expect(context.hasChanges)
      context.rollback()
      _ = try HistoryModel.insert("Dog", "Rex", context)
      try expectRefusal { try context.save() }
      context.rollback()
      try expectRefusal { try coordinator.setMetadata(["key": .string("value")]) }
    }
    // Closing a store that has saved updates the model in the file, but not this one.
    try coordinator.close()
    #expect(try SQL.rows(path, "SELECT hex(Z_PLIST) FROM Z_METADATA") == [[metadata]])
    #expect(try SQL.rows(path, "SELECT count(*), max(ZAGE) FROM ZANIMAL") == [["1", "1"]])
  }

  /// Entries of the user, also with the same model in another encoding, are no migration.
  @Test(.ownThreads, arguments: SQLiteStoreOptions.JournalMode.allCases)
  func metadataThatAnotherProcessWritesPreventNoSave(_ journal: SQLiteStoreOptions.JournalMode) async throws {
    let path = folder.file("Kennel.sqlite")
    let description = StoreDescription.sqlite(at: path, options: SQLiteStoreOptions(journalMode: journal))
    let coordinator = try PersistentStoreCoordinator(model: HistoryModel.model(), store: description)
    let context = try HistoryModel.context(coordinator), fido = try HistoryModel.insert("Dog", "Fido", context)
    try context.save()
    for age in 2..<4 {
      await #expect(processExitsWith: .success) {
        [path = path as String, journal = journal as SQLiteStoreOptions.JournalMode, age = age as Int] in
        let description = StoreDescription.sqlite(at: path, options: SQLiteStoreOptions(journalMode: journal))
        let other = try PersistentStoreCoordinator(model: HistoryModel.model(), store: description)
        try other.setMetadata(["age": .int64(Int64(age))])
        try HistoryModel.save("Rex \(age)", other)
        try other.close()
      }
      try fido.setValue(age, forKey: "age")
      try context.save()
    }
    try coordinator.close()
    let again = try PersistentStoreCoordinator(model: HistoryModel.model(), store: description)
    #expect(again.metadata["age"] == .int64(3))
    #expect(try HistoryModel.context(again).fetch(FetchRequest<ManagedObject>(entityName: "Dog")).count == 3)
    try again.close()
  }
}
