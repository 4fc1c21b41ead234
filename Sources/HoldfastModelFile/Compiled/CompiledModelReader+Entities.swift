import HoldfastPropertyList
import HoldfastStore

extension CompiledModelReader {
  private static let knownEntityKeys: Set<String> = [
    "NSEntityName", "NSClassNameForEntity", "NSProperties", "NSSubentities", "NSSuperentity", "NSIsAbstract", "NSUserInfo",
    "NSVersionHashModifier", "NSRenamingIdentifier", "NSCompoundIndexes", "NSFetchIndexDescriptions", "NSUniqueTuples",
    "NSManagedObjectModel",
  ]

  /// The declaration of an entity, and its own properties.
  mutating func entity(_ entity: CompiledEntityPart, _ inherited: [String: CompiledProperty]) throws(ModelFileError)
    -> (EntityDescription, [String: CompiledProperty])
  {
    let part = entity.part
    var declaration = EntityDescription(
      entity.name, superentity: entity.superentity, isAbstract: try part.flag("NSIsAbstract"),
      uniquenessConstraints: try uniqueness(part), versionHashModifier: try part.filledText("NSVersionHashModifier"),
      renamingIdentifier: try renamingIdentifier(part, entity.name), managedObjectClassName: try className(part),
      userInfo: try userInfo(part))
    var own: [String: CompiledProperty] = [:], marked: [String] = []
    let properties = try part.entries("NSProperties")
    try count(properties.count, part)
    for (name, reference) in properties {
      guard let property = try property(name, reference, of: entity, inherited[name]) else { continue }
      own[name] = property.declaration
      if property.isIndexed { marked.append(name) }
      switch property.declaration {
      case .attribute(let attribute): declaration.attributes.append(attribute)
      case .relationship(let relationship): declaration.relationships.append(relationship)
      case .fetched(let property): declaration.fetchedProperties.append(property)
      }
    }
    declaration.indexes = withoutShadows(try indexes(part))
    declaration.indexes += try oldIndexes(part, marked, besides: declaration.indexes)
    try noteKeys(of: part, besides: Self.knownEntityKeys)
    return (declaration, own)
  }

  private func className(_ part: ArchivedPart) throws(ModelFileError) -> String? {
    let name = try part.filledText("NSClassNameForEntity")
    return name == "NSManagedObject" ? nil : name
  }

  /// The renaming identifier; nil if it equals the name. Compiled models contain an identifier for every element.
  func renamingIdentifier(_ part: ArchivedPart, _ name: String) throws(ModelFileError) -> String? {
    let identifier = try part.filledText("NSRenamingIdentifier")
    return identifier == name ? nil : identifier
  }

  /// The texts by key. Adds a note for each value that isn't a text.
  mutating func userInfo(_ part: ArchivedPart) throws(ModelFileError) -> [String: String] {
    var info: [String: String] = [:]
    for (key, reference) in try part.entries("NSUserInfo") {
      if let text = try? archive.string(reference) {
        info[key] = text
      } else {
        note(part, "The value for \(key.quoted) in the user info isn't text and was omitted.")
      }
    }
    return info
  }

  // MARK: Groups of properties

  /// Lists of names. Each name is a text or a property.
  private func groups(_ part: ArchivedPart, _ key: String) throws(ModelFileError) -> [[String]] {
    var groups: [[String]] = []
    for reference in try part.list(key) {
      var names: [String] = []
      let members: [PropertyList]
      do { members = try archive.elements(reference) ?? [] } catch { throw ModelFileError(.malformed, element: part.element, cause: error) }
      for member in members { names.append(try propertyName(member, part, key)) }
      groups.append(names)
    }
    return groups
  }

  private func propertyName(_ reference: PropertyList, _ part: ArchivedPart, _ key: String) throws(ModelFileError) -> String {
    if let name = try? archive.string(reference) { return name }
    guard let property = try ArchivedPart(archive, reference, as: part.element) else { throw part.failure("A name in \(key) is missing.") }
    return try property.requiredText("NSPropertyName")
  }

  private func uniqueness(_ part: ArchivedPart) throws(ModelFileError) -> [[String]] { try groups(part, "NSUniqueTuples") }

  // MARK: Indexes

  /// The indexes, without the duplicates that Core Data created from marks of properties. A duplicate is named after its properties, and
  /// another index has the same elements.
  private func withoutShadows(_ indexes: [FetchIndexDescription]) -> [FetchIndexDescription] {
    var names: [[FetchIndexElement]: Set<String>] = [:]
    for index in indexes { names[index.elements, default: []].insert(index.name) }
    return indexes.filter { names[$0.elements]?.count == 1 || $0.name != $0.properties.joined(separator: "_") }
  }

  /// Indexes in the forms of Xcode before 9: compound indexes, and marks of single properties. Newer models contain duplicates of their
  /// indexes in these forms, for older frameworks. Those are left out.
  private func oldIndexes(_ part: ArchivedPart, _ marked: [String], besides indexes: [FetchIndexDescription]) throws(ModelFileError)
    -> [FetchIndexDescription]
  {
    let covered = Set(indexes.flatMap(\.properties)), lists = Set(indexes.map(\.properties))
    let compound = try groups(part, "NSCompoundIndexes").filter { !lists.contains($0) }
    let single = marked.filter { !covered.contains($0) }.map { [$0] }
    var seen: Set<[String]> = []
    return (compound + single).filter { seen.insert($0).inserted }.map { FetchIndexDescription($0.joined(separator: "_"), $0) }
  }

  private static let knownIndexKeys: Set<String> = ["NSIndexName", "NSIndexElements", "NSPartialIndexPredicate", "NSEntity"]
  private static let knownElementKeys: Set<String> = [
    "NSPropertyName", "NSFetchIndexElementType", "NSAscending", "NSIndexedProperty", "NSFetchIndexDescription",
  ]

  private mutating func indexes(_ part: ArchivedPart) throws(ModelFileError) -> [FetchIndexDescription] {
    var found: [FetchIndexDescription] = []
    for reference in try part.list("NSFetchIndexDescriptions") {
      guard let index = try ArchivedPart(archive, reference, as: part.element) else { continue }
      let name = try index.requiredText("NSIndexName")
      if try index.part("NSPartialIndexPredicate") != nil {
        note(part, "The condition of the index \(name.quoted) was omitted, so the index contains all objects.")
      }
      var elements: [FetchIndexElement] = []
      var isWhole = true
      for reference in try index.list("NSIndexElements") {
        guard let element = try ArchivedPart(archive, reference, as: part.element) else { continue }
        if let element = try indexElement(element) { elements.append(element) } else { isWhole = false }
      }
      if isWhole {
        found.append(FetchIndexDescription(name, elements: elements))
      } else {
        note(part, "The index \(name.quoted) has an expression or an unknown kind and was omitted.")
      }
      try noteKeys(of: index, besides: Self.knownIndexKeys)
    }
    return found
  }

  /// An element of an index; nil if it isn't a property.
  private mutating func indexElement(_ part: ArchivedPart) throws(ModelFileError) -> FetchIndexElement? {
    let kinds: [Int: FetchIndexElement.Kind] = [0: .binary, 1: .rTree]
    try noteKeys(of: part, besides: Self.knownElementKeys)
    let isAscending = try part.flag("NSAscending")
    guard let kind = kinds[try part.integer("NSFetchIndexElementType") ?? 0] else { return nil }
    if let property = try part.part("NSIndexedProperty"), property.className == "NSExpressionDescription" { return nil }
    return FetchIndexElement(try part.requiredText("NSPropertyName"), isAscending: isAscending, kind: kind)
  }
}
