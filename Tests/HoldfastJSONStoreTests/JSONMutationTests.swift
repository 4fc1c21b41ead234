import Foundation
import Holdfast
import HoldfastJSONStore
import HoldfastStore
import TestSupport
import Testing

/// Files with random changed values, opened without checking the digest. A file that opens can be read completely, changed, saved and
/// opened again.
@Suite(.bothReaders) struct JSONMutationTests {
  private let file: JSONFile
  private let text: NSString
  /// The ranges of scalars and lists of keys, except in the model.
  private let places: [NSRange]

  private static let values = [
    "1", "2", "3", "4", "99", "null", "\"1\"", "[1]", "[2,1]", "[]", "true", "0.5", "-1", "4611686018427387904", "9223372036854775807",
    "\"\"", "{}",
  ]

  init() throws {
    file = try JSONFile()
    let context = try file.context()
    try Library.fill(context)
    try context.persistentStoreCoordinator.close()
    let text = try file.text() as NSString
    self.text = text
    let pattern = try NSRegularExpression(pattern: "(?<=:)(\"[^\"]*\"|-?[0-9.e+]+|true|false|null|\\[[0-9,]*\\])")
    let (model, entities) = (text.range(of: "\"model\"").location, text.range(of: "\"entities\"").location)
    places = pattern.matches(in: text as String, range: NSRange(location: 0, length: text.length)).map(\.range)
      .filter { $0.location > entities || $0.location < model }
  }

  @Test(arguments: 0..<4) func whateverOpensCanBeReadChangedSavedAndOpenedAgain(_ round: Int) throws {
    var random = SeededGenerator("Changed values, \(round)")
    var opened = 0
    for _ in 0..<150 {
      var changed = text
      let chosen = Set((0..<Int.random(in: 1...2, using: &random)).compactMap { _ in places.randomElement(using: &random) })
      for place in chosen.sorted(by: { $0.location > $1.location }) {
        changed = changed.replacingCharacters(in: place, with: Self.values.randomElement(using: &random) ?? "1") as NSString
      }
      try? FileManager.default.removeItem(atPath: file.folder.appendingPathComponent(".store.json.lock").path)
      try file.write(changed as String)
      if file.refusal(options: JSONFile.unverified) != nil { continue }
      opened += 1
      do {
        try readChangeAndSave()
        if let refusal = file.refusal(options: JSONFile.unverified) { Issue.record("After the save: \(refusal)\n\(changed)") }
      } catch {
        Issue.record("\(error)\n\(changed)")
      }
    }
    #expect((31...140).contains(opened), "\(opened) of 150 opened")
  }

  private func readChangeAndSave() throws {
    let context = try file.context(options: JSONFile.unverified)
    for entity in ["Book", "Author", "Shelf", "Sign"] {
      for object in try context.fetch(FetchRequest<ManagedObject>(entityName: entity)) {
        for slot in object.entity.slots { _ = try object.value(forKey: slot.name) }
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
    }
    try context.persistentStoreCoordinator.close()
  }
}
