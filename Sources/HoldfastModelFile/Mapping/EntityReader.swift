import HoldfastStore

/// Reads declarations from `entity` elements.
struct EntityReader {
  private let element: ModelElement
  private let reader: ElementReader

  private init(_ element: ModelElement) {
    self.element = element
    reader = ElementReader(element, "entity")
  }

  static func entity(_ element: ModelElement) throws(ModelFileError) -> EntityDescription {
    try EntityReader(element).entity()
  }

  private func entity() throws(ModelFileError) -> EntityDescription {
    var entity = EntityDescription(
      try reader.required("name"), superentity: reader.text("parentEntity"), isAbstract: try reader.flag("isAbstract"),
      versionHashModifier: reader.text("versionHashModifier"), renamingIdentifier: reader.text("elementID"),
      managedObjectClassName: reader.text("representedClassName"), userInfo: try reader.userInfo())
    for child in element.children {
      switch child.name {
      case "attribute": entity.attributes.append(try AttributeReader.attribute(child, of: reader.what))
      case "relationship": entity.relationships.append(try RelationshipReader.relationship(child, of: reader.what))
      case "fetchedProperty": entity.fetchedProperties.append(try RelationshipReader.fetchedProperty(child, of: reader.what))
      case "fetchIndex": entity.indexes.append(try index(child))
      case "uniquenessConstraints": entity.uniquenessConstraints += try groups(child, "uniquenessConstraint", "constraint")
      default: break
      }
    }
    var names = Set(entity.indexes.map { $0.name.lowercased() })
    for index in try oldIndexes(entity) where names.insert(index.name.lowercased()).inserted {
      entity.indexes.append(index)
    }
    return entity
  }

  private func index(_ element: ModelElement) throws(ModelFileError) -> FetchIndexDescription {
    let reader = ElementReader(element, "index", of: reader.what)
    var elements: [FetchIndexElement] = []
    for child in element.children(named: "fetchIndexElement") {
      let part = ElementReader(child, "element", of: reader.what)
      guard let order = orders[part.text("order") ?? "ascending"] else { throw part.invalid("order", "neither ascending nor descending") }
      guard let kind = kinds[part.text("type") ?? "Binary"] else { throw part.invalid("type", "neither Binary nor RTree") }
      let property = if let expression = part.text("expression") { expression } else { try part.required("property") }
      elements.append(FetchIndexElement(property, isAscending: order, kind: kind))
    }
    return FetchIndexDescription(try reader.required("name"), elements: elements)
  }

  private let orders = ["ascending": true, "descending": false]
  private let kinds: [String: FetchIndexElement.Kind] = ["Binary": .binary, "RTree": .rTree]

  /// Lists of names in nested elements: constraints and compound indexes.
  private func groups(_ list: ModelElement, _ group: String, _ member: String) throws(ModelFileError) -> [[String]] {
    var groups: [[String]] = []
    for element in list.children(named: group) {
      var names: [String] = []
      for child in element.children(named: member) { names.append(try ElementReader(child, member, of: reader.what).required("value")) }
      groups.append(names)
    }
    return groups
  }

  /// The indexes in the forms of Xcode before 9: marks of single properties, and compound indexes. Core Data names them after their
  /// properties.
  private func oldIndexes(_ entity: EntityDescription) throws(ModelFileError) -> [FetchIndexDescription] {
    var names: [[String]] = []
    for list in element.children(named: "compoundIndexes") { names += try groups(list, "compoundIndex", "index") }
    // Ignore marks of properties that have no stored value.
    let kept = Set(
      entity.attributes.filter { !$0.isTransient && $0.type != .composite }.map(\.name)
        + entity.relationships.filter { !$0.isToMany && !$0.isTransient }.map(\.name))
    for child in element.children where child.name == "attribute" || child.name == "relationship" {
      if try ElementReader(child, child.name, of: reader.what).flag("indexed"), let name = child["name"], kept.contains(name) {
        names.append([name])
      }
    }
    var seen: Set<[String]> = []
    return names.filter { seen.insert($0).inserted }.map { FetchIndexDescription($0.joined(separator: "_"), $0) }
  }
}
