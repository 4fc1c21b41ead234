import HoldfastPropertyList
import HoldfastStore

/// Reads declarations from the archive of a compiled model (`NSManagedObjectModel`).
struct CompiledModelReader {
  let archive: ModelArchive
  let options: ModelFileOptions
  var declarations = CompiledDeclarations()
  var expressions = ArchivedExpressionReader()
  /// The number of properties read, including inherited ones of each entity.
  var propertyCount = 0

  init(_ archive: KeyedArchive, _ options: ModelFileOptions) {
    self.archive = ModelArchive(archive, options)
    self.options = options
  }

  static func declarations(_ archive: KeyedArchive, _ options: ModelFileOptions) throws(ModelFileError) -> CompiledDeclarations {
    var reader = CompiledModelReader(archive, options)
    try reader.readModel()
    return reader.declarations
  }

  mutating func note(_ part: ArchivedPart, _ reason: String) {
    // A damaged or unknown file could cause any number of notes.
    let most = 1_000
    if declarations.notes.count < most {
      declarations.notes.append(CompiledModelNote(element: part.element, reason: reason))
    } else if declarations.notes.count == most {
      declarations.notes.append(CompiledModelNote(element: "model", reason: "More was omitted. There are at most \(most) notes."))
    }
  }

  /// Adds a note for each unknown key that has a value. Such keys may be new or very old.
  mutating func noteKeys(of part: ArchivedPart, besides known: Set<String>) throws(ModelFileError) {
    for key in try part.keys(besides: known) { note(part, "The unknown setting \(key.quoted) was omitted.") }
  }

  // MARK: The model

  private static let knownKeys: Set<String> = [
    "NSEntities", "NSFetchRequestTemplates", "NSVersionIdentifiers", "NSConfigurations", "CDMCompilerToolVersion",
    "CDMCompilerXcodeVersion",
  ]

  private mutating func readModel() throws(ModelFileError) {
    let model = try root()
    let parts = try entityParts(model)
    try readEntities(parts)
    declarations.entities = IgnoredIndexes.marked(declarations.entities)
    for reference in try model.list("NSVersionIdentifiers") {
      declarations.versionIdentifiers.append(try model.text(of: reference, in: "NSVersionIdentifiers"))
    }
    declarations.versionIdentifiers.sort { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    try readConfigurations(model, parts)
    for (name, reference) in try model.entries("NSFetchRequestTemplates") {
      let element = "fetch request \(name.quoted)"
      guard let part = try ArchivedPart(archive, reference, as: element) else { continue }
      declarations.fetchRequestTemplates.append(try fetchRequest(part, name))
    }
    try noteKeys(of: model, besides: Self.knownKeys)
    do { try archive.check() } catch { throw ModelFileError(.tooLarge, cause: error) }
  }

  private func root() throws(ModelFileError) -> ArchivedPart {
    let reference: PropertyList
    do { reference = try archive.root } catch { throw ModelFileError(.malformed, cause: error) }
    guard let root = try ArchivedPart(archive, reference, as: "model") else {
      throw ModelFileError(.notAModel, reason: "The archive is empty.")
    }
    if root.className == "XDPMModel" {
      throw ModelFileError(
        .oldFormat, reason: "The file was saved by the editor of Xcode before 4. It isn't a compiled model and can't be read.")
    }
    guard root.className == "NSManagedObjectModel" else {
      throw ModelFileError(.notAModel, reason: "The archive contains \(root.className.quoted) instead of a model.")
    }
    return root
  }

  // MARK: Entities

  private func entityParts(_ model: ArchivedPart) throws(ModelFileError) -> [CompiledEntityPart] {
    var parts: [CompiledEntityPart] = []
    for (name, reference) in try model.entries("NSEntities") {
      guard parts.count < options.maximumEntityCount else {
        throw ModelFileError(.tooLarge, reason: "The model has more than \(options.maximumEntityCount) entities.")
      }
      guard let part = try ArchivedPart(archive, reference, as: "entity \(name.quoted)") else { continue }
      guard part.className == "NSEntityDescription" else { throw part.failure("The class \(part.className.quoted) isn't an entity.") }
      guard try part.requiredText("NSEntityName") == name else { throw part.failure("The entity's name differs from its key.") }
      parts.append(CompiledEntityPart(name: name, superentity: try part.part("NSSuperentity")?.requiredText("NSEntityName"), part: part))
    }
    return parts
  }

  private mutating func readEntities(_ parts: [CompiledEntityPart]) throws(ModelFileError) {
    let tree = try CompiledEntityTree(parts)
    var known: [String: [String: CompiledProperty]] = [:]
    // Superentities come first, so that inherited properties are known.
    for entity in tree.ordered {
      let inherited = entity.superentity.flatMap { known[$0] } ?? [:]
      try count(inherited.count, entity.part)
      let (declaration, own) = try self.entity(entity, inherited)
      declarations.entities.append(declaration)
      known[entity.name] = inherited.merging(own) { above, _ in above }
    }
  }

  /// Counts properties of an entity, because a few objects of an archive can represent a very large model.
  mutating func count(_ properties: Int, _ part: ArchivedPart) throws(ModelFileError) {
    propertyCount += properties
    if propertyCount > options.maximumPropertyCount {
      throw part.failure("The entities have more than \(options.maximumPropertyCount) properties, including inherited ones.", .tooLarge)
    }
    if properties > ModelSizeCheck.maximumPropertiesOfEntity {
      throw part.failure("It has more than \(ModelSizeCheck.maximumPropertiesOfEntity) properties, including inherited ones.", .tooLarge)
    }
  }

  private mutating func readConfigurations(_ model: ArchivedPart, _ parts: [CompiledEntityPart]) throws(ModelFileError) {
    let names = Dictionary(parts.map { ($0.part.instance.number, $0.name) }, uniquingKeysWith: { first, _ in first })
    for (name, reference) in try model.entries("NSConfigurations") {
      var members: [String] = []
      let element = "configuration \(name.quoted)"
      guard declarations.configurations.count < options.maximumEntityCount, let list = try ArchivedPart(archive, reference, as: element)
      else {
        throw ModelFileError(.malformed, element: element, reason: "The configuration isn't a list of entities.")
      }
      let references: [PropertyList]
      do { references = try archive.elements(reference) ?? [] } catch { throw ModelFileError(.malformed, element: element, cause: error) }
      for reference in references where members.count <= parts.count {
        guard let entity = try ArchivedPart(archive, reference, as: element), let name = names[entity.instance.number] else {
          throw list.failure("The configuration contains an entity that isn't in the model.")
        }
        members.append(name)
      }
      declarations.configurations.append(ConfigurationDescription(name, members))
    }
  }
}

/// An entity of the archive.
struct CompiledEntityPart {
  let name: String
  let superentity: String?
  let part: ArchivedPart
}

/// The entities of a model, each after its superentity.
struct CompiledEntityTree {
  private(set) var ordered: [CompiledEntityPart] = []

  init(_ parts: [CompiledEntityPart]) throws(ModelFileError) {
    let byName = Dictionary(parts.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
    var placed: Set<String> = []
    for part in parts {
      // This entity and its superentities, up to the first one that is already in the result.
      var chain: [CompiledEntityPart] = []
      var next: CompiledEntityPart? = part
      while let entity = next, !placed.contains(entity.name) {
        chain.append(entity)
        guard chain.count <= ModelSizeCheck.maximumInheritance else {
          throw part.part.failure("The entity inherits from more than \(ModelSizeCheck.maximumInheritance) entities, or from itself.")
        }
        next = entity.superentity.flatMap { byName[$0] }
        if let name = entity.superentity, next == nil {
          throw entity.part.failure("The entity inherits from \(name.quoted), which isn't in the model.")
        }
      }
      for entity in chain.reversed() {
        placed.insert(entity.name)
        ordered.append(entity)
      }
    }
  }
}
