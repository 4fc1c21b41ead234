import HoldfastPropertyList
import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Reads the objects of an `xcmapping.xml`, which is a Core Data XML store.
struct MappingModelReader {
  private let options: ModelFileOptions
  /// The objects by their IDs.
  private var objects: [String: ModelElement] = [:]
  private let mappingModels: [ModelElement]

  init(_ root: ModelElement, _ options: ModelFileOptions) throws(ModelFileError) {
    self.options = options
    let all = root.children(named: "object")
    mappingModels = all.filter { $0["type"] == "XDDEVMAPPINGMODEL" }
    for object in all { if let id = object["id"] { objects[id] = object } }
    guard root.name == "database", mappingModels.count == 1 else {
      throw ModelFileError(
        .notAModel, line: root.line,
        reason: "The file contains \(mappingModels.count) mapping models. Give that of an .xcmappingmodel folder.")
    }
  }

  mutating func read() throws(ModelFileError) -> (source: String, destination: String, [MappingModelFile.EntityMapping]) {
    let model = mappingModels[0]
    var mappings: [(number: Int, mapping: MappingModelFile.EntityMapping)] = []
    for object in try targets(model, "entitymappings") {
      mappings.append((Int(text(object, "mappingnumber") ?? "") ?? 0, try entityMapping(object)))
    }
    mappings.sort { ($0.number, $0.mapping.name) < ($1.number, $1.mapping.name) }
    return (text(model, "sourcemodelpath") ?? "", text(model, "destinationmodelpath") ?? "", mappings.map(\.mapping))
  }

  private func entityMapping(_ object: ModelElement) throws(ModelFileError) -> MappingModelFile.EntityMapping {
    let source = text(object, "sourcename"), destination = text(object, "destinationname")
    let name = text(object, "name") ?? [source, destination].compactMap(\.self).joined(separator: "To")
    guard source != nil || destination != nil else {
      throw ModelFileError(.malformed, line: object.line, reason: "An entity mapping has neither a source nor a destination.")
    }
    var attributes: [MappingModelFile.PropertyMapping] = [], relationships = attributes
    for property in try targets(object, "attributemappings") { attributes.append(try propertyMapping(property, name)) }
    for property in try targets(object, "relationshipmappings") { relationships.append(try propertyMapping(property, name)) }
    return MappingModelFile.EntityMapping(
      name: name, sourceEntityName: source, destinationEntityName: destination, policyClassName: text(object, "migrationpolicyclassname"),
      attributeMappings: attributes.sorted { $0.name < $1.name }, relationshipMappings: relationships.sorted { $0.name < $1.name })
  }

  private func propertyMapping(_ object: ModelElement, _ mapping: String) throws(ModelFileError) -> MappingModelFile.PropertyMapping {
    guard let name = text(object, "name") else {
      throw ModelFileError(
        .malformed, line: object.line, element: "entity mapping \(mapping.quoted)", reason: "A property mapping has no name.")
    }
    if let archive = text(object, "valueexpressiondata") {
      let element = "property \(name.quoted) of entity mapping \(mapping.quoted)"
      return MappingModelFile.PropertyMapping(name: name, expression: try expression(archive, element))
    }
    // Two fields of Xcode's inspector, instead of an expression.
    guard let path = text(object, "sourcekeypath") ?? text(object, "sourcemappingname").map({ _ in "$source.\(name)" }) else {
      return MappingModelFile.PropertyMapping(name: name, expression: nil)
    }
    let prefix = "$source.", source = ArchivedExpression.variable("source")
    let value = ArchivedExpression.keyPath(source, path.hasPrefix(prefix) ? String(path.dropFirst(prefix.count)) : path)
    let mapped = text(object, "sourcemappingname").map { mapping in
      ArchivedExpression.method(
        .variable("manager"), "destinationInstancesForEntityMappingNamed:sourceInstances:", [.constant(.string(mapping)), value])
    }
    return MappingModelFile.PropertyMapping(name: name, expression: mapped ?? value)
  }

  private func expression(_ text: String, _ element: String) throws(ModelFileError) -> ArchivedExpression {
    guard let data = Data(base64Encoded: text, options: .ignoreUnknownCharacters) else {
      throw ModelFileError(.malformed, element: element, reason: "The expression isn't valid base64.")
    }
    let archive = ModelArchive(try CompiledModel.archive(Array(data), options), options), root: PropertyList
    do throws(PropertyListError) { root = try archive.root } catch { throw ModelFileError(.malformed, element: element, cause: error) }
    guard let part = try ArchivedPart(archive, root, as: element) else {
      throw ModelFileError(.malformed, element: element, reason: "The expression is missing.")
    }
    var reader = ArchivedExpressionReader()
    reader.allowsMethods = true
    return try reader.expression(part)
  }

  // MARK: Objects

  /// The text of an attribute; nil if it is missing or empty, since Xcode writes both.
  private func text(_ object: ModelElement, _ name: String) -> String? {
    let value = object.children.first { $0.name == "attribute" && $0["name"] == name }?.text
    return value.flatMap { $0.isEmpty ? nil : $0 }
  }

  private func targets(_ object: ModelElement, _ name: String) throws(ModelFileError) -> [ModelElement] {
    let lists = object.children.filter { $0.name == "relationship" && $0["name"] == name }
    var found: [ModelElement] = []
    for id in lists.flatMap({ ($0["idrefs"] ?? "").split(separator: " ") }) {
      guard let target = objects[String(id)] else {
        throw ModelFileError(.malformed, line: object.line, reason: "The object \(String(id).quoted) doesn't exist.")
      }
      found.append(target)
    }
    return found
  }
}
