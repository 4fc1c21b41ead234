import HoldfastStore

/// Makes `entity` elements of declarations.
enum EntityWriter {
  static func element(_ entity: EntityDescription) throws(ModelFileError) -> ModelElement {
    var element = ModelElement("entity", ["name": entity.name])
    element["representedClassName"] = entity.managedObjectClassName
    element.mark("isAbstract", entity.isAbstract)
    element["parentEntity"] = entity.superentity
    element["elementID"] = entity.renamingIdentifier
    element["versionHashModifier"] = entity.versionHashModifier
    element["syncable"] = "YES"
    for attribute in NameOrder.sorted(entity.attributes, by: \.name) {
      element.children.append(try AttributeWriter.element(attribute, of: "entity \(entity.name.quoted)"))
    }
    for relationship in NameOrder.sorted(entity.relationships, by: \.name) { element.children.append(self.element(relationship)) }
    for property in NameOrder.sorted(entity.fetchedProperties, by: \.name) { element.children.append(self.element(property)) }
    for index in entity.indexes { element.children.append(self.element(index)) }
    element.add(entity.uniquenessConstraints, as: "uniquenessConstraints", "uniquenessConstraint", "constraint")
    element.add(userInfo: entity.userInfo)
    return element
  }

  private static func element(_ relationship: RelationshipDescription) -> ModelElement {
    var element = ModelElement("relationship", ["name": relationship.name])
    element.mark("optional", relationship.isOptional)
    element.mark("toMany", relationship.isToMany)
    if relationship.minCount != 0 { element["minCount"] = "\(relationship.minCount)" }
    if relationship.maxCount != 0 || !relationship.isToMany { element["maxCount"] = "\(relationship.maxCount)" }
    element["deletionRule"] = DeleteRuleText.text(relationship.deleteRule)
    element.mark("ordered", relationship.isOrdered)
    element["destinationEntity"] = relationship.destination
    if let inverse = relationship.inverse {
      element["inverseName"] = inverse
      element["inverseEntity"] = relationship.destination
    }
    element["elementID"] = relationship.renamingIdentifier
    element["versionHashModifier"] = relationship.versionHashModifier
    element.add(userInfo: relationship.userInfo)
    return element
  }

  private static func element(_ property: FetchedPropertyDescription) -> ModelElement {
    var element = ModelElement("fetchedProperty", ["name": property.name])
    element.mark("optional", property.isOptional)
    element.mark("transient", property.isTransient)
    element["elementID"] = property.renamingIdentifier
    element["versionHashModifier"] = property.versionHashModifier
    element.children.append(self.element(property.fetchRequest))
    element.add(userInfo: property.userInfo)
    return element
  }

  private static func element(_ index: FetchIndexDescription) -> ModelElement {
    ModelElement(
      "fetchIndex", ["name": index.name],
      children: index.elements.map {
        ModelElement(
          "fetchIndexElement",
          ["property": $0.property, "type": $0.kind == .binary ? "Binary" : "RTree", "order": $0.isAscending ? "ascending" : "descending"])
      })
  }

  /// A request. What differs from the standard settings is said; so are those that are YES, unless all are as in a new request.
  static func element(_ request: FetchRequestDescription) -> ModelElement {
    var element = ModelElement("fetchRequest", ["name": request.name, "entity": request.entity])
    element["predicateString"] = request.predicateFormat
    let standard = FetchRequestDescription(request.name, entity: request.entity, predicateFormat: request.predicateFormat)
    if request == standard { return element }
    if request.fetchLimit != 0 { element["fetchLimit"] = "\(request.fetchLimit)" }
    if request.fetchBatchSize != 0 { element["fetchBatchSize"] = "\(request.fetchBatchSize)" }
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

/// The order in which Xcode lists things: by name, without regard to case.
enum NameOrder {
  static func sorted<Element>(_ elements: [Element], by name: KeyPath<Element, String>) -> [Element] {
    elements.map { ($0[keyPath: name].lowercased(), $0) }.sorted { $0.0 < $1.0 }.map(\.1)
  }
}
