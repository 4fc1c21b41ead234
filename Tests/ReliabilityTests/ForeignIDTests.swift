import Foundation
import Holdfast
import HoldfastJSONStore
import HoldfastSQLiteStore
import HoldfastStore
import TestSupport
import Testing

/// Attributes with IDs of objects of other stores, which may not be open.
@Suite struct ForeignIDTests {
  private static let model = Harbour.made([
    EntityDescription(
      "Note", attributes: [AttributeDescription("subject", .objectID, isOptional: true), AttributeDescription("text", .string)])
  ])

  private func context(_ store: StoreDescription) throws -> ManagedObjectContext {
    try ManagedObjectContext(coordinator: PersistentStoreCoordinator(model: Self.model, store: store))
  }

  private func note(_ context: ManagedObjectContext) throws -> ManagedObject {
    let notes = try context.fetch(FetchRequest<ManagedObject>(entityName: "Note"))
    #expect(notes.count == 1)
    return try #require(notes.first)
  }

  private func subject(_ note: ManagedObject) throws -> ManagedObjectID {
    guard case .objectID(let id) = try note.value(forKey: "subject").storeValue else { throw FailureApart(description: "The ID is lost.") }
    return id
  }

  /// Only a store with text identifiers can have such an ID, and this process doesn't know yet that it does. The ID replaces
  /// another one with the same length in the file.
  private func replaceKey(in path: String) throws {
    var bytes = TestFile.read(path)
    let places = TestBytes.places(of: Array("/Dog/p12".utf8), in: bytes)
    try #require(!places.isEmpty)
    for place in places { bytes.replaceSubrange(place + 5..<place + 8, with: Array("prx".utf8)) }
    TestFile.write(bytes, to: path)
  }

  @Test(arguments: FileStore.all) func aTextIdentifierOfAStoreThatIsNotOpenIsNoDamageAndIsKept(_ kind: FileStore) throws {
    let folder = TemporaryFolder(), path = folder.file(), uuid = UUID().uuidString
    // The replacement makes the digests of whole files wrong.
    let edited = kind == .sqlite(.wal) ? kind.description(at: path) : kind.unverified(at: path)
    let first = try context(kind.description(at: path))
    let written = try first.insert(entityNamed: "Note"), dog = ManagedObjectID(uriRepresentation: "x-coredata://\(uuid)/Dog/p12")
    try written.setValue(.string("a"), forKey: "text")
    try written.setValue(StoreValue.objectID(#require(dog)), forKey: "subject")
    try first.save()
    try first.persistentStoreCoordinator.close()
    try replaceKey(in: path)

    let second = try context(edited), found = try note(second)
    #expect(try found.value(forKey: "text").storeValue == .string("a"))
    let uri = "x-coredata://\(uuid)/Dog/prx"
    #expect(try subject(found).uriRepresentation == uri)
    try found.setValue(.string("b"), forKey: "text")
    try second.save()
    try second.persistentStoreCoordinator.close()

    // The copy has it as well.
    let other = folder.file("copy")
    try PersistentStoreCoordinator.copyPersistentStore(kind.description(at: path), to: .json(at: other))
    #expect(TestBytes.contain(TestFile.read(other), uri))

    // Opening the store with text identifiers makes it available.
    _ = StoreIdentity.intern(storeUUID: uuid, model: Self.model, usesReferences: true)
    let third = try context(kind.description(at: path)), kept = try note(third)
    #expect(try kept.value(forKey: "text").storeValue == .string("b"))
    let id = try subject(kept)
    #expect(id.uriRepresentation == uri && id == ManagedObjectID(uriRepresentation: uri))
    try third.persistentStoreCoordinator.close()
  }

  /// The file is a copy, or was made to have that UUID.
  @Test(.ownThreads, arguments: FileStore.all)
  func aFileWithTheUUIDOfAStoreWithTextIdentifiersIsAnErrorWhenItIsOpened(_ kind: FileStore) async throws {
    let folder = TemporaryFolder(), made = try context(kind.description(at: folder.file())).persistentStoreCoordinator
    let uuid = made.storeIdentifier
    try made.close()
    await #expect(processExitsWith: .success) { [kind = kind as FileStore, path = folder.file() as String, uuid = uuid as String] in
      _ = StoreIdentity.intern(storeUUID: uuid, model: Self.model, usesReferences: true)
      for _ in 0..<2 {
        do {
          _ = try PersistentStoreCoordinator(model: Self.model, store: kind.description(at: path))
          preconditionFailure("The store was opened.")
        } catch let error as StoreError {
          precondition(error.code == .alreadyOpen && error.path == path && error.reason.contains("UUID"), "\(error)")
        }
      }
    }
    // The file is unchanged.
    try context(kind.description(at: folder.file())).persistentStoreCoordinator.close()
  }

  private static let family = Harbour.made([
    EntityDescription("Animal", attributes: [AttributeDescription("friend", .objectID, isOptional: true)]),
    EntityDescription("Dog", superentity: "Animal"),
  ])

  /// Makes and closes a store with a dog, which has its own ID in an attribute. Returns the ID as JSON.
  private func makeDog(_ store: StoreDescription) throws -> String {
    let context = try ManagedObjectContext(coordinator: PersistentStoreCoordinator(model: Self.family, store: store))
    let dog = try context.insert(entityNamed: "Dog")
    try dog.setValue(StoreValue.objectID(dog.objectID), forKey: "friend")
    try context.save()
    let coded = try JSONEncoder().encode([dog.objectID])
    try context.persistentStoreCoordinator.close()
    return String(decoding: coded, as: UTF8.self)
  }

  /// Such as an ID in a program's settings.
  @Test(.ownThreads, arguments: FileStore.all)
  func anIDThatWasDecodedBeforeItsStoreWasOpenedFindsAnObjectOfASubentity(_ kind: FileStore) async throws {
    let folder = TemporaryFolder(), coded = try makeDog(kind.description(at: folder.file()))
    await #expect(processExitsWith: .success) { [kind = kind as FileStore, path = folder.file() as String, coded = coded as String] in
      let ids = try JSONDecoder().decode([ManagedObjectID].self, from: Data(coded.utf8)), known = Set(ids)
      let coordinator = try PersistentStoreCoordinator(model: Self.family, store: kind.description(at: path))
      let context = try ManagedObjectContext(coordinator: coordinator), id = StoreValue.objectID(ids[0])
      let conditions: [QueryExpression] = [
        .comparison(.object, .equalTo, .constant(id), []), .membership(.object, [id]),
        .comparison(.property("friend"), .equalTo, .constant(id), []),
      ]
      for entity in ["Animal", "Dog"] {
        for condition in conditions {
          let found = try context.fetch(FetchRequest<ManagedObject>(entityName: entity, where: FetchPredicate(condition)))
          precondition(found.map(\.objectID) == ids, "\(entity): \(condition)")
        }
      }
      let dog = try context.existingObject(with: ids[0]), friend = try dog.value(forKey: "friend").storeValue
      precondition(known.contains(dog.objectID) && friend == id)
    }
  }

  @Test(arguments: ["", "rex", "x-coredata://A/Dog", "x-coredata://A/Dog/7", "x-coredata://A//p1", "x-coredata://A/Dog/p%4"])
  func aTextThatIsNoURIIsNoIDInAnyProcess(_ text: String) {
    #expect(!Array(text.utf8).withUnsafeBytes { ObjectIDText.isURI($0) })
  }
}
