// swift-format-ignore-file
// The examples in comments about property lists, word for word; `SnippetTests` compares them, `PropertyListExampleTests` runs them.
import HoldfastModelFile
import HoldfastPropertyList
import HoldfastStore

enum PropertyListExamples {
  static func lists(_ bytes: [UInt8]) throws -> (String?, [UInt8]) {
    let list = try PropertyList(bytes)                    // detects the format
    let version = list["NSManagedObjectModel_CurrentVersionName"]?.string
    let changed = PropertyList.dictionary(["name": .string("Rex")]).binary
    return (version, changed)
  }

  static func entityNames(_ bytes: [UInt8]) throws -> [String] {
    let archive = try KeyedArchive(bytes)
    guard case .instance(let model) = try archive.object(archive.root), model.className == "NSManagedObjectModel" else { return [] }
    let entities = try archive.entries(model["NSEntities"]) ?? []
    return entities.map(\.key)
  }

  static func compiledModel() throws -> ManagedObjectModel {
    let compiled = try CompiledModel(contentsOf: "Zoo.momd")
    for note in compiled.notes { print("Not in the model: \(note)") }
    return compiled.model
  }
}
