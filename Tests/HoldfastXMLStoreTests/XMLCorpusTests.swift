import Foundation
import Holdfast
import HoldfastStore
import HoldfastXMLStore
import TestSupport
import Testing

/// XML stores that Core Data wrote: old stores of an application, and mapping models, which are such stores too.
@Suite(.bothReaders, .enabled(if: XMLCorpus.files.count > 0, "HOLDFAST_CORPUS names no folder with XML stores."))
struct XMLCorpusTests {
  private static let files = XMLCorpus.files
  private let file: XMLFile
  init() throws { file = try XMLFile() }

  @Test func theCorpusHasStoresAndMappingModels() {
    #expect(
      Self.files.count >= 17 && Self.files.contains { $0.contains("things-rb") } && Self.files.contains { $0.contains("xcmapping.xml") })
  }

  @Test(arguments: XMLCorpus.files) func aModelOtherThanTheFilesIsRefused(_ path: String) throws {
    let text = try String(contentsOfFile: path, encoding: .utf8), document = try #require(XMLCorpus.documents[path])
    try file.write(text)
    let model = try #require(XMLCorpus.models[path]).get(), error = try #require(file.refusal(model))
    #expect(error.code == .incompatibleModel && error.coreDataCode == 134100, "\(error)")
    #expect(try file.text() == text)
    let metadata = try PersistentStoreCoordinator.metadata(for: .xml(at: file.path))
    #expect(metadata.entityVersionHashes.count >= 5 && metadata.storeUUID == document.uuid)
    #expect(try PersistentStoreCoordinator.cachedModel(for: .xml(at: file.path)) == nil)
  }

  @Test(arguments: XMLCorpus.files) func whatCoreDataWroteIsReadWrittenAndReadAgain(_ path: String) throws {
    // A model derived from the file doesn't have the hashes of the original.
    let text = try String(contentsOfFile: path, encoding: .utf8)
      .replacing(/<key>NSStoreModelVersionHashes<\/key>\s*<dict>.*?<\/dict>/.dotMatchesNewlines(), with: "")
    let document = try #require(XMLCorpus.documents[path]), model = try #require(XMLCorpus.models[path]).get()
    #expect(document.objects.count > 3)
    try file.write(text)
    if let repeated = document.repeated {
      // Test data of another project, with an object added by hand. The object has the number of another one, and a link that its other end
      // lacks. Links to that number are ambiguous, so the file is refused and the error contains the number.
      let error = try #require(file.refusal(model))
      #expect(error.code == .damaged && "\(error)".contains("key \(repeated)"), "\(error)")
      return
    }
    // The file of another project has objects with larger numbers than the recorded last one.
    let last = max(document.nextObjectID ?? 0, document.objects.keys.max() ?? 0)
    var context = try file.context(model)
    #expect(context.persistentStoreCoordinator.storeIdentifier == document.uuid)
    try compare(context, document)
    let before = try Library.contents(context)
    let metadata = context.persistentStoreCoordinator.metadata
    if path.contains("things-rb") { #expect([.int64(1430), .int64(591)].contains(metadata["BuildNumber"] ?? .null)) }
    // Opening changes nothing; the first save writes a digest.
    #expect(try file.text() == text)
    try context.persistentStoreCoordinator.setMetadata(metadata)
    try context.persistentStoreCoordinator.close()
    let written = try file.text()
    #expect(written.contains("_HoldfastSeal") && written.contains("<!-- xxh64:"))
    #expect(written.contains("<nextObjectID>\(last)</nextObjectID>"))

    context = try file.context(model)
    #expect(try Library.contents(context) == before)
    #expect(context.persistentStoreCoordinator.metadata == metadata)
    #expect(context.persistentStoreCoordinator.storeIdentifier == document.uuid)
    let entity = try #require(model.entities.first { entity in !entity.isAbstract && entity.relationships.allSatisfy(\.isOptional) })
    let new = try context.insert(entityNamed: entity.name)
    try context.save()
    #expect(new.objectID.key.rawValue == last + 1)
    try context.persistentStoreCoordinator.close()
  }

  @Test(arguments: XMLCorpus.files) func aFileIsReadAndCopiedWithTheModelThatItsObjectsShow(_ path: String) throws {
    let text = try String(contentsOfFile: path, encoding: .utf8), document = try #require(XMLCorpus.documents[path])
    try file.write(text)
    let store = StoreDescription.xml(at: file.path, options: XMLStoreOptions(derivesModel: true))
    let model = try #require(try PersistentStoreCoordinator.cachedModel(for: store))
    let names = try PersistentStoreCoordinator.metadata(for: .xml(at: file.path)).entityVersionHashes.keys
    // The second file was altered by hand, too: two of its links refer to objects of other entities.
    if document.repeated != nil || path.contains("bb2f5daa59") {
      let error = #expect(throws: StoreError.self) { try PersistentStoreCoordinator(model: model, store: store) }
      #expect(error?.code == .damaged)
      return
    }
    let context = try ManagedObjectContext(coordinator: PersistentStoreCoordinator(model: model, store: store), classes: [])
    try compare(context, document)
    // The names of entities are those in the version hashes.
    #expect(Set(model.entities.map(\.name)).isSuperset(of: names))
    if path.contains("things-rb") {
      let toDo = try #require(model.entity(named: "ToDo"))
      #expect(toDo.superentityIndex != nil && toDo.relationships.contains { model.inverse(of: $0) != nil })
    }
    if let mapping = model.entity(named: "XDDevAttributeMapping"), !(mapping.relationships.isEmpty) {
      let inverses = mapping.relationships.compactMap { model.inverse(of: $0)?.name }
      #expect(inverses.contains("attributemappings"), "\(inverses)")
    }
    try context.persistentStoreCoordinator.close()
    let copy = StoreDescription.xml(at: file.path + "-copy")
    #expect(try PersistentStoreCoordinator.copyPersistentStore(store, to: copy, model: model).digest.objectCount == document.objects.count)
    #expect(try file.text() == text)
  }

  /// Compares objects with the results of a plain text search.
  private func compare(_ context: ManagedObjectContext, _ document: ForeignDocument) throws {
    var count = 0
    for entity in context.persistentStoreCoordinator.model.entities where !entity.isAbstract {
      for object in try context.fetch(FetchRequest<ManagedObject>(entityName: entity.name)) where object.entity.name == entity.name {
        let found = try #require(document.objects[object.objectID.key.rawValue])
        #expect(found.type == entity.name.uppercased())
        for attribute in entity.attributes {
          let value = try object.value(forKey: attribute.name).storeValue
          #expect(value == (found.attributes[attribute.name.lowercased()].flatMap(ForeignDocument.value) ?? .null), "\(attribute.name)")
        }
        for relationship in entity.relationships {
          let links = (found.links[relationship.name.lowercased()] ?? []).sorted()
          if relationship.isToMany {
            #expect(try object.toMany(forKey: relationship.name).map(\.objectID.key.rawValue).sorted() == links)
          } else {
            let target: Int64? =
              if case .objectID(let id)? = try object.value(forKey: relationship.name).storeValue { id.key.rawValue } else { nil }
            #expect(target == links.first, "\(relationship.name)")
          }
        }
        count += 1
      }
    }
    #expect(count == document.objects.count)
  }
}

/// The files of the corpus.
enum XMLCorpus {
  static let files: [String] = {
    guard let corpus = ProcessInfo.processInfo.environment["HOLDFAST_CORPUS"] else { return [] }
    let names = FileManager.default.enumerator(atPath: corpus + "/xml")?.compactMap { $0 as? String } ?? []
    return names.filter { $0.hasSuffix(".xml") }.sorted().map { "\(corpus)/xml/\($0)" }
  }()

  /// What a plain text search finds in the files, by path. The search takes longer than reading the file as a store.
  static let documents: [String: ForeignDocument] = files.reduce(into: [:]) { documents, path in
    if let text = try? String(contentsOfFile: path, encoding: .utf8) { documents[path] = ForeignDocument(text) }
  }

  static let models: [String: Result<ManagedObjectModel, any Error>] = documents.mapValues { document in Result { try document.model() } }
}
