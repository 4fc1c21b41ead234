import CSVStore
import Foundation
import Holdfast
import HoldfastAtomicStore
import HoldfastBinaryStore
import HoldfastJSONStore
import HoldfastSQLiteStore
import HoldfastStore
import HoldfastXMLStore
import LogStore
import TestSupport
import Testing

/// Metadata with IDs of objects of a store that this process hasn't opened.
@Suite(.ownThreads) struct ForeignMetadataTests {
  enum Kind: String, CaseIterable, Codable, Sendable {
    case json, xml, binary, sqlite, document, log

    func description(at path: String) -> StoreDescription {
      switch self {
      case .json: .json(at: path)
      case .xml: .xml(at: path)
      case .binary: .binary(at: path)
      case .sqlite: .sqlite(at: path)
      case .document: .document(CSVFormat(), at: path)
      case .log: .log(at: path)
      }
    }
  }

  private static func model() throws -> ManagedObjectModel {
    try ManagedObjectModel(entities: [EntityDescription("Note", attributes: [AttributeDescription("text", .string, isOptional: true)])])
  }

  /// The ID of an object of a store with text identifiers, which is open from now on.
  private static func id(_ uuid: String) throws -> ManagedObjectID {
    let model = try model(), identity = StoreIdentity.intern(storeUUID: uuid, model: model, usesReferences: true)
    return identity.objectID(entity: model.entities[0], key: identity.references.key(for: "notes/1"))
  }

  /// Opens the store, and writes its changed metadata.
  private static func change(_ kind: Kind, _ path: String, _ body: (inout [String: StoreValue]) throws -> Void) throws {
    let coordinator = try PersistentStoreCoordinator(model: try model(), store: kind.description(at: path))
    var metadata = coordinator.metadata
    try body(&metadata)
    try coordinator.setMetadata(metadata)
    try coordinator.close()
  }

  @Test(arguments: Kind.allCases) func anObjectIDOfAStoreThatIsNotOpenIsReadAndKept(_ kind: Kind) async throws {
    let folder = TemporaryFolder(), path = folder.file("store"), uuid = UUID().uuidString, uri = "x-coredata://\(uuid)/Note/pnotes%2F1"
    await #expect(processExitsWith: .success) { [kind = kind as Kind, path = path as String, uuid = uuid as String] in
      try Self.change(kind, path) { $0["subject"] = .objectID(try Self.id(uuid)) }
    }
    for number in 0..<2 {
      try Self.change(kind, path) { metadata in
        guard case .objectID(let id)? = metadata["subject"] else {
          Issue.record("The metadata is \(metadata).")
          return
        }
        #expect(id.uriRepresentation == uri && !id.isTemporaryID && ManagedObjectID(uriRepresentation: uri) == nil)
        metadata["number"] = .int64(Int64(number))
      }
    }
    // The type is kept, so a process that has opened the other store reads an ID of it.
    let id = try Self.id(uuid)
    try Self.change(kind, path) { metadata in
      let found = metadata
      #expect(found == ["subject": .objectID(id), "number": .int64(1)])
    }
  }
}
