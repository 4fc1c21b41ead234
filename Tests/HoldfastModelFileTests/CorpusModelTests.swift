import Foundation
import HoldfastModelFile
import HoldfastStore
import Testing

/// Every model that Xcode wrote can be converted to a model of Holdfast without losing anything relevant.
@Suite(.enabled(if: Corpus.root != nil, "\(Corpus.isMissing)")) struct CorpusModelTests {
  @Test(arguments: Corpus.contents) func aModelLoadsAndSurvivesWritingAndReading(_ file: String) throws {
    let document = try ModelDocument(contentsOf: Corpus.path(file))
    let model = try document.model(path: file)
    #expect(model.declarations.count == document.root.children(named: "entity").count)
    let again = try ModelDocument(bytes: ModelDocument(model).serialized()).model()
    #expect(again.versionChecksum == model.versionChecksum)
    #expect(again.versionIdentifiers == model.versionIdentifiers)
    // A file written by another program may have its properties in another order than Xcode's.
    let sorted = try ManagedObjectModel(
      entities: model.declarations.map { entity in
        var entity = entity
        entity.attributes.sort { $0.name < $1.name }
        return entity
      }, versionIdentifiers: model.versionIdentifiers, configurations: model.configurations, composites: model.composites,
      fetchRequestTemplates: model.fetchRequestTemplates)
    #expect(again == sorted)
  }

  /// A file that is read and written by way of a model is unchanged, except for settings without effect at run time.
  @Test(arguments: Corpus.contents) func aModelSaysAllThatItsFileSays(_ file: String) throws {
    let document = try ModelDocument(contentsOf: Corpus.path(file))
    let written = try ModelDocument(document.model(path: file))
    #expect(meaning(of: written.root) == meaning(of: document.root))
  }

  private func meaning(of model: ModelElement) -> ModelElement {
    var model = reduced(model)
    model.attributes = []
    model.children.removeAll { $0.name == "elements" }
    model.children = sorted(model.children)
    for (place, entity) in model.children.enumerated() where entity.name == "entity" {
      model.children[place].children = sorted(indexed(entity)).map { child in
        var child = child
        child["indexed"] = nil
        return child
      }
    }
    return model
  }

  private static let meaningless: Set<String> = [
    "usesScalarValueType", "codeGenerationType", "syncable", "spotlightIndexingEnabled", "storedInTruthFile",
  ]

  private func reduced(_ element: ModelElement) -> ModelElement {
    var element = element
    element.attributes.removeAll { attribute in
      Self.meaningless.contains(attribute.name)
        || attribute.value.isEmpty && ["valueTransformerName", "elementID", "versionHashModifier"].contains(attribute.name)
    }
    if element["attributeType"] == "Date" { for name in ["min", "max", "default"] { element["\(name)ValueString"] = nil } }
    for name in ["minValueString", "maxValueString", "defaultValueString"] where element["attributeType"] != "String" {
      if let value = element[name], let number = Double(value) { element[name] = "\(number)" }
    }
    element.children = element.children.map(reduced).filter { $0 != ModelElement("userInfo") }
    return element
  }

  /// The children of an entity, with old index marks converted to the new form.
  private func indexed(_ entity: ModelElement) -> [ModelElement] {
    var children = entity.children.filter { $0.name != "compoundIndexes" }
    let compound = entity.child(named: "compoundIndexes")?.children.map { $0.children.compactMap { $0["value"] } } ?? []
    let single = entity.children.filter { $0["indexed"] == "YES" && $0["toMany"] != "YES" && $0["transient"] != "YES" }
      .compactMap { $0["name"] }.map { [$0] }
    for names in compound + single
    where !children.contains(where: { $0.name == "fetchIndex" && $0["name"] == names.joined(separator: "_") }) {
      children.append(
        ModelElement(
          "fetchIndex", ["name": names.joined(separator: "_")],
          children: names.map { ModelElement("fetchIndexElement", ["property": $0, "type": "Binary", "order": "ascending"]) }))
    }
    return children
  }

  private func sorted(_ elements: [ModelElement]) -> [ModelElement] {
    elements.sorted { ($0.name, $0["name"] ?? "") < ($1.name, $1["name"] ?? "") }
  }

  @Test(arguments: Corpus.bundles) func aBundleGivesItsCurrentModel(_ path: String) throws {
    let bundle = try ModelBundle(contentsOf: Corpus.path(path))
    do {
      let model = try ManagedObjectModel(contentsOf: Corpus.path(path))
      #expect(try model == bundle.model())
      #expect(try model == bundle.document().model())
    } catch {
      #expect(error.code == .oldFormat)
    }
  }

  @Test func theOldBinaryVersionsAreRefused() throws {
    var refused: [String] = []
    for path in Corpus.bundles {
      let bundle = try ModelBundle(contentsOf: Corpus.path(path))
      for name in bundle.versionNames {
        do { _ = try bundle.document(version: name) } catch {
          #expect(error.code == .oldFormat)
          refused.append(name)
        }
      }
    }
    #expect(refused.sorted() == ["MyModel", "MyModel", "Recipes", "Recipes 2"])
  }
}
