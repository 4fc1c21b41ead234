// swift-format-ignore-file
// The examples of HoldfastModelFile, word for word; `SnippetTests` compares them, `ModelFileTests` runs them.
import Holdfast
import HoldfastMemoryStore
import HoldfastModelFile
import HoldfastStore

/// A zoo in a model file.
enum ModelFileExamples {
  static let model = try! ManagedObjectModel(entities: [
    EntityDescription("Animal", attributes: [AttributeDescription("name", .string)])
  ])

  static func write(to path: String) throws -> ManagedObjectModel {
    let first = try ModelDocument(model)
    try ModelBundle.write(["Zoo": first], currentVersion: "Zoo", to: path)
    let read = try ManagedObjectModel(contentsOf: path)
    return read
  }

  static func addVersion(to path: String) throws {
    var document = try ModelDocument(contentsOf: path + "/Zoo.xcdatamodel/contents")
    document.root["userDefinedModelVersionIdentifier"] = "2"
    try ModelBundle.write(["Zoo 2": document], currentVersion: "Zoo 2", to: path)
  }

  static func version(of metadata: PersistentStoreMetadata, in path: String) throws -> String? {
    let bundle = try ModelBundle(contentsOf: path)
    for name in bundle.versionNames where name != bundle.currentVersionName {
      let old = try bundle.model(version: name)
      if metadata.isCompatible(with: old) { return name }
    }
    return nil
  }

  static func age() -> ModelElement {
    var age = ModelElement("attribute", ["name": "age", "attributeType": "Integer 16"])
    age["optional"] = "YES"
    return age
  }

  final class Animal: ManagedObject {
    enum Slot { static let name: SlotIndex = 0 }
    var name: String { get { self[Slot.name] } set { self[Slot.name] = newValue } }
    override class var properties: [PropertyBinding] { [.attribute("name", \Animal.name, slot: Slot.name)] }
  }

  @MainActor static func container(_ path: String) throws -> PersistentContainer {
    let model = try ManagedObjectModel(contentsOf: path)
    let container = try PersistentContainer(model: model, classes: [Animal.self], store: .memory())
    return container
  }

  static func add(_ element: ModelElement, to path: String) throws {
    let bundle = try ModelBundle(contentsOf: path)
    var document = try bundle.document()
    for place in document.root.children.indices where document.root.children[place]["name"] == "Animal" {
      document.root.children[place].children.append(ModelElement("attribute", ["name": "age", "attributeType": "Integer 16"]))
    }
    try ModelBundle.write(["Zoo 3": document], currentVersion: "Zoo 3", to: path)
  }
}
