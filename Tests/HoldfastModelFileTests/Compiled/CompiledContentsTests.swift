import Foundation
import HoldfastModelFile
import HoldfastStore
import Testing

/// A model's `contents` file and its compiled file declare the same.
@Suite(.enabled(if: Corpus.root != nil, "\(Corpus.isMissing)")) struct CompiledContentsTests {
  /// The declarations without the settings that one of the two forms omits.
  private static func common(_ entities: [EntityDescription]) -> [EntityDescription] {
    entities.map { entity in
      var entity = entity
      // Xcode includes the module in the name; stores omit the name.
      entity.managedObjectClassName = nil
      entity.attributes = entity.attributes.map(common).sorted { $0.name < $1.name }
      entity.relationships.sort { $0.name < $1.name }
      entity.fetchedProperties.sort { $0.name < $1.name }
      entity.indexes.sort { $0.name < $1.name }
      return entity
    }
  }

  private static func common(_ attribute: AttributeDescription) -> AttributeDescription {
    var attribute = attribute
    // The class of values is for code generation. It is only compiled if it differs from the transformer's.
    attribute.valueClassName = nil
    // It is only compiled for transformable attributes.
    if attribute.type != .transformable { attribute.valueTransformerName = nil }
    return attribute
  }

  private static let documents: [(file: String, model: ManagedObjectModel)] = Corpus.contents.compactMap { file in
    (try? ModelDocument(contentsOf: Corpus.path(file)).model()).map { (file, $0) }
  }

  /// The documents of the same version of a model.
  private static func documents(for model: ManagedObjectModel) -> [(file: String, model: ManagedObjectModel)] {
    documents.filter { $0.model.versionDigest == model.versionDigest }
  }

  /// The differences, by entity, property and setting.
  private static func differences(_ compiled: ManagedObjectModel, _ document: ManagedObjectModel) -> [String] {
    zip(common(compiled.declarations), common(document.declarations)).flatMap { a, b -> [String] in
      let properties =
        zip(a.attributes, b.attributes).flatMap { settings($0, $1, "\(a.name).\($0.name)") }
        + zip(a.relationships, b.relationships).flatMap { settings($0, $1, "\(a.name).\($0.name)") }
      let rest = settings(a, b, a.name).filter { !$0.hasSuffix(".attributes") && !$0.hasSuffix(".relationships") }
      return properties + rest
    }
  }

  private static func settings(_ a: Any, _ b: Any, _ name: String) -> [String] {
    zip(Mirror(reflecting: a).children, Mirror(reflecting: b).children).filter { "\($0.value)" != "\($1.value)" }
      .map { "\(name).\($0.0.label ?? "")" }
  }

  @Test(arguments: Corpus.compiled) func aCompiledFileDeclaresWhatItsDocumentDoes(_ file: String) throws {
    let compiled = try CompiledModel(contentsOf: Corpus.path(file)).model
    let found = Self.documents(for: compiled)
    #expect(!found.isEmpty)
    let all = found.map { ($0.file, Self.differences(compiled, $0.model)) }
    #expect(all.contains { $0.1.isEmpty }, "\(all)")
  }

  /// Settings in which the model of a store differs from the document with the same hashes, and why.
  private static let exceptions: [String: Set<String>] = [
    // Hashes don't cover default values. The document was edited after the store was created.
    "SampleStore2.0.sqlite": ["defaultValue"],
    // Its framework version, 865, didn't support named indexes.
    "Tests-SampleModelV1.sqlite": ["indexes"],
  ]

  @Test(arguments: Corpus.stores) func aModelCacheDeclaresWhatItsDocumentDoes(_ file: String) throws {
    guard let cache = try Corpus.store(file).cache else { return }
    let compiled = try CompiledModel(modelCache: cache).model
    let all = Self.documents(for: compiled).map { Self.differences(compiled, $0.model) }
    let expected = Self.exceptions[(file as NSString).lastPathComponent] ?? []
    let differing = all.map { differences in Set(differences.map { String($0.split(separator: ".").last ?? "") }) }
    if !all.isEmpty { #expect(differing.contains(expected), "\(all)") }
  }
}
