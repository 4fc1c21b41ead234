import Foundation
import Holdfast
import HoldfastFiles
import HoldfastJSONStore
import HoldfastSQLiteStore
import HoldfastStore
import Testing

/// The text that a program without knowledge of Holdfast's types shows for an error.
@Suite struct LocalizedErrorTests {
  /// A missing store file in its own folder.
  private let path = FileManager.default.temporaryDirectory.appendingPathComponent("holdfast-\(UUID().uuidString)/people").path

  private func expect(
    _ code: Int, _ text: String, in domain: String = "NSCocoaErrorDomain", sourceLocation: SourceLocation = #_sourceLocation,
    of body: () throws -> Void
  ) throws {
    let error = try #require(throws: (any Error).self, sourceLocation: sourceLocation) { try body() }
    let bridged = error as NSError
    #expect(bridged.domain == domain && bridged.code == code, sourceLocation: sourceLocation)
    #expect(error.localizedDescription == text, sourceLocation: sourceLocation)
    #expect(bridged.localizedDescription == text, sourceLocation: sourceLocation)
    // Only the domain and the number would make a useless sentence.
    #expect(!text.contains("error \(code)"), sourceLocation: sourceLocation)
  }

  private func context() throws -> ManagedObjectContext {
    let tie = EntityDescription(
      "Tie",
      attributes: [
        AttributeDescription("rating", .double, isOptional: true, validation: .range(.double(0), .double(5))),
        AttributeDescription("shopName", .string),
      ])
    return try TestStore.memory.makePlace(model: ManagedObjectModel(entities: [tie]), classes: []).context()
  }

  /// The URI of an object can come from a client of a server, and the error can be logged.
  @Test func theURIOfAnObjectForgesNoLineOfALog() throws {
    let uri = "x-coredata://0C5AF5B1-4D5F-4E37-9B5E-2C0B1F6D8A12/Tie\nforged line\u{1B}[2J/p1"
    let context = try context(), id = try #require(ManagedObjectID(uriRepresentation: uri))
    let error = try #require(throws: PersistenceError.self) { try context.object(with: id) }
    #expect(error.code == .foreignObject && error.objectID == id)
    #expect("\(error)".contains("/Tie\\u{A}forged line\\u{1B}[2J/p1: ") && !"\(error)".contains("\n"), "\(error)")
  }

  @Test func aNameThatAClientSendsForgesNoLineOfALog() throws {
    let context = try context(), name = "a\n\u{1B}[2J"
    let tie = try context.insert(entityNamed: "Tie")
    let error = try #require(throws: PersistenceError.self) { try tie.validateValue(.string("x"), forKey: name) }
    #expect(error.code == .unknownProperty && error.property == name)
    #expect(!"\(error)".contains("\u{1B}") && !error.localizedDescription.contains("\u{1B}"), "\(error)")
    let list = PropertyListError(.unsupported, "The keyed archive, by \(name), has an unknown version.")
    #expect(!"\(list)".contains("\n") && list.localizedDescription == "The keyed archive, by a\\u{A}\\u{1B}[2J, has an unknown version.")
  }

  @Test func aRefusedValueIsASentenceForPeople() throws {
    let context = try context()
    let tie = try context.insert(entityNamed: "Tie")
    try tie.setValue(.string("Secret"), forKey: "shopName")
    try tie.setValue(.double(6), forKey: "rating")
    try expect(1610, "Rating may be at most 5.") { try context.save() }
  }

  @Test func severalRefusedValuesAreALineEach() throws {
    let context = try context()
    let tie = try context.insert(entityNamed: "Tie")
    try tie.setValue(.double(-1), forKey: "rating")
    try expect(1560, "Rating must be at least 0.\nShop name must have a value.") { try context.save() }
  }

  @Test func aRuleOfAClassIsItsOwnSentence() throws {
    try expect(1550, "Wear it.") { throw PersistenceError.invalid("Wear it.") }
  }

  @Test func aStoreThatCannotBeOpenedNamesItsFileAndTheReason() throws {
    let descriptions: [StoreDescription] = [
      .sqlite(at: path, options: SQLiteStoreOptions(createsIfMissing: false)), .json(at: path),
    ]
    for description in descriptions {
      let error = try #require(throws: StoreError.self) { _ = try PersistentStoreCoordinator(model: Kennel.model, store: description) }
      try expect(134080, "Could not open the store at \(path): \(error.reason)") { throw error }
      #expect((error as NSError).localizedFailureReason == error.reason && !error.reason.isEmpty)
    }
  }

  @Test func aModelThatContradictsItselfNamesEveryProblem() throws {
    let error = try #require(throws: ModelError.self) {
      _ = try ManagedObjectModel(entities: [EntityDescription("Tie", attributes: [AttributeDescription("a b", .string)])])
    }
    try expect(134060, error.description) { throw error }
    #expect(error.localizedDescription.contains("Tie.a b"))
  }

  @Test func aQueryThatCannotBeAnsweredNamesItsPart() throws {
    let context = try context()
    let error = try #require(throws: (any Error).self) {
      _ = try context.fetch(
        FetchRequest<ManagedObject>(
          entityName: "Tie", where: FetchPredicate(.comparison(.property("price"), .equalTo, .constant(.int64(1)), []))))
    }
    #expect((error as NSError).domain == "NSCocoaErrorDomain" && (error as NSError).code == 134060)
    #expect(error.localizedDescription.contains("price"), "\(error.localizedDescription)")
  }

  @Test func aCallOfTheSystemHasItsOwnNumber() throws {
    let error = FileSystemError(.resolve, name: "people", number: 2)
    try expect(2, "Could not resolve the path people: No such file or directory (errno 2).", in: "NSPOSIXErrorDomain") { throw error }
  }

  @Test func aDamagedPropertyListNamesThePlace() throws {
    try expect(3840, "At byte 8: It ends here.") { throw PropertyListError(.damaged, at: .byte(8), "It ends here.") }
  }
}
