import HoldfastStore

/// Writes `entity` elements of declarations.
enum EntityWriter {
  static func element(_ entity: EntityDescription) throws(ModelFileError) -> ModelElement {
    let what = "entity \(entity.name.quoted)"
    var element = ModelElement("entity", ["name": entity.name])
    try element.say("representedClassName", entity.managedObjectClassName, "class name", of: what)
    element.mark("isAbstract", entity.isAbstract)
    element["parentEntity"] = entity.superentity
    try element.say("elementID", entity.renamingIdentifier, "renaming identifier", of: what)
    try element.say("versionHashModifier", entity.versionHashModifier, "hash modifier", of: what)
    element["syncable"] = "YES"
    for attribute in NameOrder.sorted(entity.attributes, by: \.name) {
      element.children.append(try AttributeWriter.element(attribute, of: what))
    }
    for relationship in NameOrder.sorted(entity.relationships, by: \.name) {
      element.children.append(try self.element(relationship, of: what))
    }
    for property in NameOrder.sorted(entity.fetchedProperties, by: \.name) {
      element.children.append(try self.element(property, of: what))
    }
    for index in entity.indexes { element.children.append(self.element(index)) }
    element.add(entity.uniquenessConstraints, as: "uniquenessConstraints", "uniquenessConstraint", "constraint")
    element.add(userInfo: entity.userInfo)
    return element
  }

  private static func element(_ relationship: RelationshipDescription, of owner: String) throws(ModelFileError) -> ModelElement {
    let what = "relationship \(relationship.name.quoted) of \(owner)"
    var element = ModelElement("relationship", ["name": relationship.name])
    element.mark("optional", relationship.isOptional)
    element.mark("transient", relationship.isTransient)
    element.mark("toMany", relationship.isToMany)
    if relationship.minCount != 0 { element["minCount"] = "\(relationship.minCount)" }
    if relationship.maxCount != 0 { element["maxCount"] = "\(relationship.maxCount)" }
    element["deletionRule"] = DeleteRuleText.text(relationship.deleteRule)
    element.mark("ordered", relationship.isOrdered)
    element["destinationEntity"] = relationship.destination
    if let inverse = relationship.inverse {
      element["inverseName"] = inverse
      element["inverseEntity"] = relationship.destination
    }
    try element.say("elementID", relationship.renamingIdentifier, "renaming identifier", of: what)
    try element.say("versionHashModifier", relationship.versionHashModifier, "hash modifier", of: what)
    element.add(userInfo: relationship.userInfo)
    return element
  }

  private static func element(_ property: FetchedPropertyDescription, of owner: String) throws(ModelFileError) -> ModelElement {
    let what = "fetched property \(property.name.quoted) of \(owner)"
    var element = ModelElement("fetchedProperty", ["name": property.name])
    element.mark("optional", property.isOptional)
    element.mark("transient", property.isTransient)
    try element.say("elementID", property.renamingIdentifier, "renaming identifier", of: what)
    try element.say("versionHashModifier", property.versionHashModifier, "hash modifier", of: what)
    element.children.append(try self.element(property.fetchRequest, what))
    element.add(userInfo: property.userInfo)
    return element
  }

  private static func element(_ index: FetchIndexDescription) -> ModelElement {
    ModelElement("fetchIndex", ["name": index.name], children: index.elements.map(element))
  }

  private static func element(_ part: FetchIndexElement) -> ModelElement {
    let isProperty = !part.isExpression || part.property == FetchIndexElement.wholeObject
    return ModelElement(
      "fetchIndexElement",
      [
        isProperty ? "property" : "expression": part.property, "type": part.kind == .binary ? "Binary" : "RTree",
        "order": part.isAscending ? "ascending" : "descending",
      ])
  }

  /// Writes a request. If all settings have their default values, writes none. Otherwise writes the settings that differ, and some that
  /// default to YES.
  static func element(_ request: FetchRequestDescription, _ what: String) throws(ModelFileError) -> ModelElement {
    var element = ModelElement("fetchRequest", ["name": request.name, "entity": request.entity])
    try element.say("predicateString", request.predicateFormat, "predicate", of: what)
    let standard = FetchRequestDescription(request.name, entity: request.entity, predicateFormat: request.predicateFormat)
    if request == standard { return element }
    if request.fetchLimit != 0 { try element.say("fetchLimit", request.fetchLimit, "limit", of: what) }
    if request.fetchBatchSize != 0 { try element.say("fetchBatchSize", request.fetchBatchSize, "batch size", of: what) }
    element["includeSubentities"] = text(request.includesSubentities)
    element["includePropertyValues"] = text(request.includesPropertyValues)
    if !request.includesPendingChanges { element["includesPendingChanges"] = "NO" }
    element["returnObjectsAsFaults"] = text(request.returnsObjectsAsFaults)
    element.mark("returnDistinctResults", request.returnsDistinctResults)
    if request.resultType != .managedObjects { element["resultType"] = "\(request.resultType.rawValue)" }
    return element
  }

  private static func text(_ isSo: Bool) -> String { isSo ? "YES" : "NO" }
}

/// The order in which Xcode lists elements: by name, ignoring case.
enum NameOrder {
  static func sorted<Element>(_ elements: [Element], by name: KeyPath<Element, String>) -> [Element] {
    elements.map { ($0[keyPath: name].lowercased(), $0) }.sorted { $0.0 < $1.0 }.map(\.1)
  }
}
