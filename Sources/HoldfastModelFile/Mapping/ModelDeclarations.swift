import HoldfastStore

/// The declarations of a document, before they are checked and frozen.
struct ModelDeclarations {
  private(set) var entities: [EntityDescription] = []
  private(set) var versionIdentifiers: [String] = []
  private(set) var configurations: [ConfigurationDescription] = []
  private(set) var composites: [CompositeDescription] = []
  private(set) var fetchRequestTemplates: [FetchRequestDescription] = []

  init(_ document: ModelDocument, _ options: ModelFileOptions) throws(ModelFileError) {
    for element in document.root.children {
      switch element.name {
      case "entity": entities.append(try EntityReader.entity(element))
      case "configuration": configurations.append(try ModelDeclarations.configuration(element))
      case "composite": composites.append(try ModelDeclarations.composite(element))
      case "fetchRequest": fetchRequestTemplates.append(try RelationshipReader.template(element))
      default: break
      }
    }
    if let identifier = document.root["userDefinedModelVersionIdentifier"] { versionIdentifiers = [identifier] }
    try ModelSizeCheck(self, options).run()
    // After the check, because it goes through all superentities of each entity.
    entities = IgnoredIndexes.marked(entities)
    try options.checkPatterns(entities, composites)
  }

  private static func configuration(_ element: ModelElement) throws(ModelFileError) -> ConfigurationDescription {
    let reader = ElementReader(element, "configuration")
    var members: [String] = []
    for member in element.children(named: "memberEntity") {
      members.append(try ElementReader(member, "member", of: reader.what).required("name"))
    }
    return ConfigurationDescription(try reader.required("name"), members)
  }

  private static func composite(_ element: ModelElement) throws(ModelFileError) -> CompositeDescription {
    let reader = ElementReader(element, "composite")
    var elements: [AttributeDescription] = []
    for child in element.children(named: "attribute") { elements.append(try AttributeReader.attribute(child, of: reader.what)) }
    return CompositeDescription(try reader.required("name"), elements)
  }
}
