import Foundation
import Holdfast
import HoldfastBinaryStore
import HoldfastStore
import TestSupport
import Testing

/// Files with impossible contents and valid digests. The tests shared by all whole-file stores cover damaged bytes.
@Suite struct BinaryDamageTests {
  private let file: BinaryTestFile
  private let whole: [UInt8]

  init() throws {
    file = try BinaryTestFile()
    let context = try file.context()
    try Library.fill(context)
    try context.persistentStoreCoordinator.close()
    whole = try file.bytes()
  }

  @Test func RE4_aNewerFormatIsRefusedAndLeftAlone() throws {
    let version = BinaryParts(whole) { $0[8] = 2 }
    let marks = BinaryParts(whole) { $0[12] = 1 }
    let kind = BinaryParts(whole, directory: { $0[$0.count - 56] = 9 })
    let rows = BinaryParts(whole, info: { $0.replace("Sign", with: "Lamp") })
    let cases: [(String, BinaryParts, StoreError.Code)] = [
      ("version", version, .newerFormat), ("marks", marks, .newerFormat), ("kind", kind, .newerFormat),
      // A model without such an entity is another model.
      ("entity", rows, .incompatibleModel),
    ]
    for (what, changed, code) in cases {
      let sealed = changed.bytes
      #expect(sealed != whole)
      try file.write(sealed)
      for options in [BinaryStoreOptions(), BinaryTestFile.unverified] {
        let refusal = try #require(file.refusal(options: options), "\(what)")
        #expect(refusal.code == code && refusal.path == file.path, "\(what): \(refusal)")
        #expect(refusal.reason.contains(code == .newerFormat ? "newer version" : "Lamp"), "\(what): \(refusal)")
      }
      #expect(try file.bytes() == sealed)
      #expect(file.names.filter { !$0.hasSuffix("SUPPORT") } == [".store.holdfast.lock", "store.holdfast"])
    }
  }

  /// The bug: the repair copied what this version knows, and reported the rest as damage.
  @Test func RE4_theRepairOfANewerFormatIsRefused() throws {
    let version = BinaryParts(whole) { $0[8] = 2 }
    let marks = BinaryParts(whole) { $0[12] = 1 }
    let kind = BinaryParts(whole, directory: { $0[$0.count - 56] = 9 })
    func repair(_ bytes: [UInt8]) throws -> RepairReport {
      try file.write(bytes)
      return try PersistentStoreCoordinator.repairPersistentStore(.binary(at: file.path), to: .binary(at: file.path + ".repaired"))
    }
    for changed in [version, marks, kind] {
      let refusal = try #require(throws: StoreError.self) { _ = try repair(changed.bytes) }
      #expect(refusal.code == .newerFormat && refusal.path == file.path && refusal.reason.contains("newer version"), "\(refusal)")
      #expect(!file.names.contains("store.holdfast.repaired"))
    }
    // Without a right digest, it is damage.
    var damaged = whole
    damaged[8] = 2
    #expect(try repair(damaged).damagedPlaceCount == 1)
  }

  @Test func aDamagedSectionIsFoundWhenItIsUsedAndTheRestCanBeRead() throws {
    var bytes = whole
    let parts = BinaryParts(whole)
    let rows = try #require(parts.entries.last { $0.kind == 3 })
    bytes[rows.offset] ^= 1
    try file.write(bytes)
    let context = try file.context(isReadOnly: true)
    var (failed, read) = (0, 0)
    for entity in ["Book", "Author", "Shelf", "Sign"] {
      do {
        read += try context.fetch(FetchRequest<ManagedObject>(entityName: entity)).count
      } catch let error as StoreError {
        #expect(error.code == .damaged && error.path == file.path && error.reason.contains("a section of rows"), "\(error)")
        failed += 1
      }
    }
    #expect(failed == 1 && read > 3)
  }

  @Test func anIndexThatLookUpsCouldNotUseIsFoundByVerifying() throws {
    let place = try #require(BinaryParts(whole).entries.firstIndex { $0.kind == 6 })
    let changed = BinaryParts(whole, directory: { $0.set(0xFFFF_FFFE, at: place * 56 + 40) })
    try file.write(changed.bytes)
    let refusal = try #require(file.refusal())
    #expect(refusal.code == .damaged && refusal.reason.contains("index of number of Book"), "\(refusal)")
  }

  @Test func aDamagedIndexIsNotUsedWhereDigestsNeedNotBeRight() throws {
    var bytes = whole
    let index = try #require(BinaryParts(whole).entries.first { $0.kind == 6 })
    for place in index.offset..<index.offset + index.byteCount { bytes[place] = 0 }
    try file.write(bytes)
    #expect(file.refusal()?.code == .damaged)
    let context = try file.context(options: BinaryTestFile.unverified)
    let isNumber = QueryExpression.comparison(.property("number"), .equalTo, .constant(.int64(2 + 1 << 60)), [])
    let found = try context.fetch(FetchRequest<ManagedObject>(entityName: "Book", where: FetchPredicate(isNumber)))
    #expect(try found.map { try $0.value(forKey: "title").storeValue } == [.string("Volume 2")])
    try #require(found.first).setValue(.string("Volume two"), forKey: "title")
    try context.save()
    try context.persistentStoreCoordinator.close()
    // The save has rebuilt the index.
    #expect(file.refusal() == nil)
  }

  @Test func rowsThatTakeMoreMemoryThanTheOptionsAllowAreRefusedBeforeOneIsRead() throws {
    let size = try BinaryTestFile.rowByteCount(Library.model, ["Book": 3, "Atlas": 1, "Author": 1, "Shelf": 1, "Sign": 1])
    for (largest, code) in [(size - 1, StoreError.Code.tooLarge), (size, nil), (size + 1, nil)] as [(Int, StoreError.Code?)] {
      let refusal = file.refusal(options: BinaryStoreOptions(wholeFile: WholeFileOptions(maximumRowByteCount: largest)))
      #expect(refusal?.code == code, "\(largest) of \(size)")
    }
  }

  @Test func RG4_rowsThatTakeMoreMemoryThanTheOptionsAllowAreNotSaved() throws {
    let size = try BinaryTestFile.rowByteCount(Library.model, ["Sign": 3])
    for (largest, isWithin) in [(size, true), (size - 1, false)] {
      try? FileManager.default.removeItem(atPath: file.path)
      let context = try file.context(options: BinaryStoreOptions(wholeFile: WholeFileOptions(maximumRowByteCount: largest)))
      for number in 0..<3 { try context.insert(entityNamed: "Sign").setValue(.string("\(number)"), forKey: "text") }
      if isWithin {
        try context.save()
      } else {
        let error = try #require(throws: StoreError.self) { try context.save() }
        #expect(error.code == .unstorableValue && context.hasChanges, "\(error)")
      }
      try context.persistentStoreCoordinator.close()
      try file.open(options: BinaryStoreOptions(wholeFile: WholeFileOptions(maximumRowByteCount: largest)))
    }
  }

  @Test func aConstraintThatIsDeclaredTwiceIsOne() throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Coin", attributes: [AttributeDescription("number", .integer64)], uniquenessConstraints: [["number"], ["number"]])
    ])
    try? FileManager.default.removeItem(atPath: file.path)
    let context = try file.context(model)
    try context.insert(entityNamed: "Coin").setValue(.int64(7), forKey: "number")
    try context.save()
    try context.persistentStoreCoordinator.close()
    try file.open(model)
    let again = try file.context(model)
    try again.insert(entityNamed: "Coin").setValue(.int64(7), forKey: "number")
    let error = try #require(throws: PersistenceError.self) { try again.save() }
    #expect(error.code == .constraintConflict && error.objectIDs.count == 1, "\(error)")
    try again.persistentStoreCoordinator.close()
  }
}
