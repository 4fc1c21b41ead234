import HoldfastPropertyList
import HoldfastStore

/// Reads the archive of a compiled mapping model (`NSMappingModel`).
struct CompiledMappingReader: MappingModelSource {
  /// An entity mapping whose properties weren't read yet.
  private struct Mapping {
    let part: ArchivedPart
    let name: String
    let source: String?
    let destination: String?
  }

  private let archive: ModelArchive
  private var mappings: [Mapping] = []
  /// The version hashes of the entities, by name.
  private var sources: [String: [UInt8]] = [:]
  private var destinations: [String: [UInt8]] = [:]
  /// One for all expressions, because its limits are those of the file.
  private var expressions = ArchivedExpressionReader()

  static func isArchive(_ bytes: [UInt8]) -> Bool { bytes.starts(with: "bplist".utf8) }

  init(_ bytes: [UInt8], _ options: ModelFileOptions) throws(ModelFileError) {
    archive = ModelArchive(try CompiledModel.archive(bytes, options), options)
    expressions.isForMapping = true
    let root: PropertyList
    do throws(PropertyListError) { root = try archive.root } catch { throw ModelFileError(.malformed, cause: error) }
    guard let model = try ArchivedPart(archive, root, as: "mapping model"), model.className == "NSMappingModel" else {
      throw ModelFileError(.notAModel, reason: "The archive contains no mapping model. Give a file that Xcode compiled from one.")
    }
    for reference in try model.list("NSEntityMappings") {
      guard let part = try ArchivedPart(archive, reference, as: "entity mapping \(mappings.count + 1)"), part.className == "NSEntityMapping"
      else { throw model.failure("A part of its list isn't an entity mapping.") }
      try addMapping(part)
    }
  }

  private mutating func addMapping(_ part: ArchivedPart) throws(ModelFileError) {
    let source = try part.filledText("NSSourceEntityName"), destination = try part.filledText("NSDestinationEntityName")
    guard source != nil || destination != nil else { throw part.failure("An entity mapping has neither a source nor a destination.") }
    let name = try part.filledText("NSMappingName") ?? "\(source ?? "")->\(destination ?? "")"
    var named = part
    named.element = "entity mapping \(name.quoted)"
    try Self.addHash(of: source, "NSSourceEntityVersionHash", named, &sources)
    try Self.addHash(of: destination, "NSDestinationEntityVersionHash", named, &destinations)
    mappings.append(Mapping(part: named, name: name, source: source, destination: destination))
  }

  private static func addHash(
    of entity: String?, _ key: String, _ part: ArchivedPart, _ hashes: inout [String: [UInt8]]
  ) throws(ModelFileError) {
    guard let entity else { return }
    guard let hash = try part.bytes(key) else {
      throw part.failure("It has no version hash of the entity \(entity.quoted). Compile the mapping model in Xcode.")
    }
    if let known = hashes.updateValue(hash, forKey: entity), known != hash {
      throw part.failure("It has another version hash of the entity \(entity.quoted) than an earlier mapping.")
    }
  }

  var versions: MappingModelFile.Versions { .hashes(source: sources, destination: destinations) }

  mutating func read() throws(ModelFileError) -> [MappingModelFile.EntityMapping] {
    var found: [MappingModelFile.EntityMapping] = []
    for mapping in mappings { found.append(try entityMapping(mapping)) }
    do throws(PropertyListError) { try archive.check() } catch { throw ModelFileError(.tooLarge, cause: error) }
    return found
  }

  // MARK: Mappings

  private static let entityKeys: Set<String> = [
    "NSMappingName", "NSMappingType", "NSSourceEntityName", "NSSourceEntityVersionHash", "NSDestinationEntityName",
    "NSDestinationEntityVersionHash", "NSSourceExpression", "NSEntityMigrationPolicyClassName", "NSAttributeMappings",
    "NSRelationshipMappings", "NSUserInfo",
  ]
  private static let propertyKeys: Set<String> = [
    "NSDestinationPropertyName", "NSValueExpression", "NSPropertyTransforms", "NSUserInfo",
  ]

  private mutating func entityMapping(_ mapping: Mapping) throws(ModelFileError) -> MappingModelFile.EntityMapping {
    let part = mapping.part, policy = try part.filledText("NSEntityMigrationPolicyClassName")
    try checkKeys(part, Self.entityKeys)
    var filter: String?
    if let source = mapping.source { filter = try self.filter(part, source) }
    return MappingModelFile.EntityMapping(
      name: mapping.name, sourceEntityName: mapping.source, destinationEntityName: mapping.destination,
      sourceFilter: filter, policyClassName: policy == "NSEntityMigrationPolicy" ? nil : policy,
      attributeMappings: try properties(part, "NSAttributeMappings"), relationshipMappings: try properties(part, "NSRelationshipMappings"))
  }

  /// The filter in the request for the source objects, which Xcode compiles to a fetch.
  private mutating func filter(_ part: ArchivedPart, _ source: String) throws(ModelFileError) -> String? {
    if let fetch = try part.part("NSSourceExpression"), fetch.className == "NSFetchRequestExpression",
      let request = try fetch.part("NSFRExpression"), let context = try fetch.part("NSMOCExpression"),
      case .method(.variable("manager"), "fetchRequestForSourceEntityNamed:predicateString:", let arguments) = try expressions.expression(
        request),
      arguments.count == 2, arguments[0] == .constant(.string(source)), case .constant(.string(let filter)) = arguments[1],
      Self.sourceContexts.contains(try expressions.expression(context)), try !fetch.flag("NSCountOnlyFlag")
    {
      return filter.isEmpty || filter == "TRUEPREDICATE" ? nil : filter
    }
    throw part.failure(
      "It fetches its source objects by an expression. Replace it by a filter predicate in Xcode, and choose the objects in a policy.",
      .unsupported)
  }

  private static let sourceContexts: Set<ArchivedExpression> = [
    .method(.variable("manager"), "sourceContext", []), .keyPath(.variable("manager"), "sourceContext"),
  ]

  private mutating func properties(_ part: ArchivedPart, _ key: String) throws(ModelFileError) -> [MappingModelFile.PropertyMapping] {
    var found: [MappingModelFile.PropertyMapping] = []
    for reference in try part.list(key) {
      guard var property = try ArchivedPart(archive, reference, as: part.element), property.className == "NSPropertyMapping" else {
        throw part.failure("A part of \(key) isn't a property mapping.")
      }
      let name = try property.requiredText("NSDestinationPropertyName")
      property.element = "property \(name.quoted) of \(part.element)"
      try checkKeys(property, Self.propertyKeys)
      guard try property.list("NSPropertyTransforms").isEmpty else {
        throw property.failure("It has transforms, which aren't supported. Remove them, and do the same in a policy.", .unsupported)
      }
      // Without an expression, the property isn't set.
      guard let value = try property.part("NSValueExpression") else { continue }
      found.append(MappingModelFile.PropertyMapping(name: name, expression: try expressions.expression(value)))
    }
    return found.sorted { $0.name < $1.name }
  }

  /// Refuses settings that could change the result.
  private func checkKeys(_ part: ArchivedPart, _ known: Set<String>) throws(ModelFileError) {
    guard let key = try part.keys(besides: known).first else { return }
    throw part.failure("The setting \(key.quoted) isn't supported. Remove it in Xcode, and do the same in a policy.", .unsupported)
  }
}
