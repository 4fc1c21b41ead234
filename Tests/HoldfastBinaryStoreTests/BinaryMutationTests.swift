import Foundation
import Holdfast
import HoldfastBinaryStore
import HoldfastStore
import TestSupport
import Testing

/// Files with random changed bytes, opened without checking digests. What is read conforms to the model or is refused. What can be read
/// completely can be changed, saved and opened again.
@Suite struct BinaryMutationTests {
  private let file: BinaryTestFile
  private let whole: [UInt8]

  init() throws {
    file = try BinaryTestFile()
    let context = try file.context()
    try Library.fill(context)
    try context.persistentStoreCoordinator.close()
    whole = try file.bytes()
  }

  @Test(arguments: 0..<4) func whateverOpensCanBeReadChangedSavedAndOpenedAgain(_ round: Int) throws {
    var random = SeededGenerator("Changed bytes, \(round)")
    let sections = BinaryParts(whole).entries.filter { $0.kind >= 3 }
    var opened = 0
    for _ in 0..<100 {
      var changed = whole
      for _ in 0..<Int.random(in: 1...3, using: &random) {
        let section = try #require(sections.randomElement(using: &random))
        let place = section.offset + Int.random(in: 0..<section.byteCount, using: &random)
        let values: [UInt8] = [0, 1, 2, 4, 8, 0x7F, 0x80, 0xFF, changed[place] ^ 1, .random(in: 0...255, using: &random)]
        changed[place] = values.randomElement(using: &random) ?? 0
      }
      try? FileManager.default.removeItem(atPath: file.folder.appendingPathComponent(".store.holdfast.lock").path)
      try file.write(changed)
      // Page by page first, before pages are compared with each other.
      try readPages()
      if file.refusal(options: BinaryTestFile.unverified) != nil { continue }
      opened += 1
      do {
        try readChangeAndSave()
        if let refusal = file.refusal(options: BinaryTestFile.unverified) {
          Issue.record("After the save: \(refusal)\nbytes changed: \(places(changed))")
        }
      } catch {
        Issue.record("\(error)\nbytes changed: \(places(changed))")
      }
    }
    #expect((3...70).contains(opened), "\(opened) of 100 opened")
  }

  private func places(_ changed: [UInt8]) -> [String] {
    whole.indices.filter { whole[$0] != changed[$0] }.map { "\($0): \(whole[$0]) became \(changed[$0])" }
  }

  private func readPages() throws {
    guard let context = try? file.context(options: BinaryTestFile.unverified, isReadOnly: true) else { return }
    for entity in ["Book", "Author", "Shelf", "Sign"] {
      let objects = (try? context.fetch(FetchRequest<ManagedObject>(entityName: entity))) ?? []
      for object in objects { for slot in object.entity.slots { _ = try? object.value(forKey: slot.name) } }
    }
    for number in 0..<4 as Range<Int64> {
      let isNumber = QueryExpression.comparison(.property("number"), .equalTo, .constant(.int64(number + 1 << 60)), [])
      _ = try? context.fetch(FetchRequest<ManagedObject>(entityName: "Book", where: FetchPredicate(isNumber)))
    }
    try context.persistentStoreCoordinator.close()
  }

  private func readChangeAndSave() throws {
    let context = try file.context(options: BinaryTestFile.unverified)
    for entity in ["Book", "Author", "Shelf", "Sign"] {
      for object in try context.fetch(FetchRequest<ManagedObject>(entityName: entity)) {
        // A value may name a missing file, and a text may be an invalid URI.
        for slot in object.entity.slots where slot.name != "scan" && slot.name != "page" { _ = try object.value(forKey: slot.name) }
        for relationship in object.entity.relationships where relationship.isToMany { _ = try object.value(forKey: relationship.name) }
      }
    }
    let books = try context.fetch(FetchRequest<ManagedObject>(entityName: "Book"))
    for book in books { try book.setValue(.string("new"), forKey: "title") }
    if let last = books.last { context.delete(last) }
    try context.insert(entityNamed: "Sign").setValue(.string("new"), forKey: "text")
    do {
      try context.save()
    } catch let error as PersistenceError where [1560, 1570].contains(error.coreDataCode) {
      // An object lacks a required value.
    } catch let error as StoreError where error.code == .unstorableValue {
      // No keys or generations are left.
    } catch  where "\(error)".contains("invalidURI") {
      // A changed object has a text that isn't a URI.
    }
    try context.persistentStoreCoordinator.close()
  }
}
