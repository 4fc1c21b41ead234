import HoldfastPropertyList
import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Reads the objects of an `xcmapping.xml`, which is a Core Data XML store.
struct MappingModelReader: MappingModelSource {
  private let options: ModelFileOptions
  /// The objects by their IDs.
  private var objects: [String: ModelElement] = [:]
  private let mappingModels: [ModelElement]
  /// The objects that were read. Each has one owner; otherwise a small file could describe very many.
  private var used: Set<String> = []
  /// One for all expressions, because its limits are those of the file.
  private var expressions = ArchivedExpressionReader()
  /// The bytes of the texts in all expressions.
  private var textByteCount = 0

  init(_ root: ModelElement, _ options: ModelFileOptions) throws(ModelFileError) {
    self.options = options
    expressions.isForMapping = true
    let all = root.children(named: "object")
    mappingModels = all.filter { $0["type"] == "XDDEVMAPPINGMODEL" }
    for object in all { if let id = object["id"] { objects[id] = object } }
    guard root.name == "database", mappingModels.count == 1 else {
      throw ModelFileError(
        .notAModel, line: root.line,
        reason: "The file contains \(mappingModels.count) mapping models. Give that of an .xcmappingmodel folder.")
    }
  }

  var versions: MappingModelFile.Versions {
    .paths(source: text(mappingModels[0], "sourcemodelpath") ?? "", destination: text(mappingModels[0], "destinationmodelpath") ?? "")
  }

  mutating func read() throws(ModelFileError) -> [MappingModelFile.EntityMapping] {
    var mappings: [(number: Int, mapping: MappingModelFile.EntityMapping)] = []
    for object in try targets(mappingModels[0], "entitymappings") {
      mappings.append((Int(text(object, "mappingnumber") ?? "") ?? 0, try entityMapping(object)))
    }
    mappings.sort { ($0.number, $0.mapping.name) < ($1.number, $1.mapping.name) }
    return mappings.map(\.mapping)
  }

  private mutating func entityMapping(_ object: ModelElement) throws(ModelFileError) -> MappingModelFile.EntityMapping {
    let source = text(object, "sourcename"), destination = text(object, "destinationname")
    let name = text(object, "name") ?? [source, destination].compactMap(\.self).joined(separator: "To")
    guard source != nil || destination != nil else {
      throw ModelFileError(.malformed, line: object.line, reason: "An entity mapping has neither a source nor a destination.")
    }
    try checkSettings(object, Self.entityKeys, "entity mapping \(name.quoted)")
    var attributes: [MappingModelFile.PropertyMapping] = [], relationships = attributes
    for property in try targets(object, "attributemappings") { attributes.append(try propertyMapping(property, name)) }
    for property in try targets(object, "relationshipmappings") { relationships.append(try propertyMapping(property, name)) }
    return MappingModelFile.EntityMapping(
      name: name, sourceEntityName: source, destinationEntityName: destination, sourceFilter: text(object, "sourcefilterpredicatestring"),
      policyClassName: text(object, "migrationpolicyclassname"),
      attributeMappings: attributes.sorted { $0.name < $1.name }, relationshipMappings: relationships.sorted { $0.name < $1.name })
  }

  private mutating func propertyMapping(_ object: ModelElement, _ mapping: String) throws(ModelFileError)
    -> MappingModelFile.PropertyMapping
  {
    guard let name = text(object, "name") else {
      throw ModelFileError(
        .malformed, line: object.line, element: "entity mapping \(mapping.quoted)", reason: "A property mapping has no name.")
    }
    let element = "property \(name.quoted) of entity mapping \(mapping.quoted)"
    try checkSettings(object, Self.propertyKeys, element)
    if let archive = text(object, "valueexpressiondata") {
      return MappingModelFile.PropertyMapping(name: name, expression: try expression(archive, element))
    }
    // Two fields of Xcode's inspector, instead of an expression.
    guard let path = text(object, "sourcekeypath") ?? text(object, "sourcemappingname").map({ _ in "$source.\(name)" }) else {
      return MappingModelFile.PropertyMapping(name: name, expression: nil)
    }
    let prefix = "$source.", source = ArchivedExpression.variable("source")
    let isObject = path + "." == prefix
    let value = isObject ? source : .keyPath(source, path.hasPrefix(prefix) ? String(path.dropFirst(prefix.count)) : path)
    let mapped = text(object, "sourcemappingname").map { mapping in
      ArchivedExpression.method(
        .variable("manager"), "destinationInstancesForEntityMappingNamed:sourceInstances:", [.constant(.string(mapping)), value])
    }
    return MappingModelFile.PropertyMapping(name: name, expression: mapped ?? value)
  }

  private mutating func expression(_ text: String, _ element: String) throws(ModelFileError) -> ArchivedExpression {
    guard let data = Data(base64Encoded: text, options: .ignoreUnknownCharacters) else {
      throw ModelFileError(.malformed, element: element, reason: "The expression isn't valid base64.")
    }
    let archive: ModelArchive, root: PropertyList
    do throws(ModelFileError) { archive = ModelArchive(try CompiledModel.archive(Array(data), options), options) } catch {
      throw ModelFileError(.malformed, element: element, reason: "The expression isn't a readable archive.", cause: error)
    }
    do throws(PropertyListError) { root = try archive.root } catch { throw ModelFileError(.malformed, element: element, cause: error) }
    guard let part = try ArchivedPart(archive, root, as: element) else {
      throw ModelFileError(.malformed, element: element, reason: "The expression is missing.")
    }
    let expression = try expressions.expression(part)
    textByteCount += archive.bytes
    if textByteCount > options.maximumByteCount {
      throw ModelFileError(
        .tooLarge, element: element, reason: "The texts of all expressions have more than \(options.maximumByteCount) bytes.")
    }
    return expression
  }

  // MARK: Objects

  private static let entityKeys: Set<String> = [
    "name", "sourcename", "destinationname", "mappingtypename", "mappingnumber", "autogenerateexpression", "migrationpolicyclassname",
    "sourcefilterpredicatestring", "userinfodata",
  ]
  private static let propertyKeys: Set<String> = [
    "name", "autogenerateexpression", "sourcekeypath", "sourcemappingname", "valueexpressiondata",
  ]

  /// Refuses settings that would change the result, such as a fetch of the source objects by an expression.
  private func checkSettings(_ object: ModelElement, _ known: Set<String>, _ element: String) throws(ModelFileError) {
    let names = object.children.filter { $0.name == "attribute" && !$0.text.isEmpty }.compactMap { $0["name"] }
    guard let name = names.first(where: { !known.contains($0) }) else { return }
    throw ModelFileError(
      .unsupported, line: object.line, element: element,
      reason: "The setting \(name.quoted) isn't supported. Remove it in Xcode, and do the same in a policy.")
  }

  /// The text of an attribute; nil if it is missing or empty, since Xcode writes both.
  private func text(_ object: ModelElement, _ name: String) -> String? {
    let value = object.children.first { $0.name == "attribute" && $0["name"] == name }?.text
    return value.flatMap { $0.isEmpty ? nil : Self.unescaped($0) }
  }

  /// Decodes what Core Data writes for the characters <, > and &, and perhaps for others: the two bytes of a UTF-16 code unit, the lower first.
  private static func unescaped(_ text: String) -> String {
    guard text.contains("\\u") else { return text }
    let paired = text.replacing(/\\u([0-9A-Fa-f]{2})([Dd][89ABab])\\u([0-9A-Fa-f]{2})([Dd][C-Fc-f])/) { match -> String in
      let units = ["\(match.output.2)\(match.output.1)", "\(match.output.4)\(match.output.3)"]
      return String(decoding: units.compactMap { UInt16($0, radix: 16) }, as: UTF16.self)
    }
    return paired.replacing(/\\u([0-9A-Fa-f]{2})([0-9A-Fa-f]{2})/) { match in
      UInt32(match.output.2 + match.output.1, radix: 16).flatMap { Unicode.Scalar($0) }.map { String($0) } ?? String(match.output.0)
    }
  }

  private mutating func targets(_ object: ModelElement, _ name: String) throws(ModelFileError) -> [ModelElement] {
    let lists = object.children.filter { $0.name == "relationship" && $0["name"] == name }
    var found: [ModelElement] = []
    for id in lists.flatMap({ ($0["idrefs"] ?? "").split(separator: " ") }) {
      guard let target = objects[String(id)], used.insert(String(id)).inserted else {
        throw ModelFileError(
          .malformed, line: object.line, reason: "The object \(String(id).quoted) doesn't exist, or belongs to several others.")
      }
      found.append(target)
    }
    return found
  }
}
