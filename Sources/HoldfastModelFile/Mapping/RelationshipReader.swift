import HoldfastStore

/// Reads declarations from `relationship`, `fetchedProperty` and `fetchRequest` elements.
enum RelationshipReader {
  static func relationship(_ element: ModelElement, of owner: String) throws(ModelFileError) -> RelationshipDescription {
    let reader = ElementReader(element, "relationship", of: owner)
    let name = try reader.required("name"), destination = try reader.required("destinationEntity")
    let inverse = reader.text("inverseName"), isOptional = try reader.flag("optional"), rule = try deleteRule(reader)
    let minCount = try reader.integer("minCount") ?? 0, maxCount = try reader.integer("maxCount")
    let isToMany = try reader.flag("toMany", default: (maxCount ?? 1) != 1)
    if let maxCount, !isToMany && maxCount != 1 { throw reader.invalid("maxCount", "not 1, although the relationship is to-one") }
    var relationship: RelationshipDescription
    if isToMany {
      relationship = .toMany(
        name, to: destination, inverse: inverse, isOptional: isOptional, deleteRule: rule, minCount: minCount, maxCount: maxCount ?? 0,
        versionHashModifier: reader.text("versionHashModifier"))
    } else {
      relationship = .toOne(
        name, to: destination, inverse: inverse, isOptional: isOptional, deleteRule: rule,
        versionHashModifier: reader.text("versionHashModifier"))
      relationship.minCount = minCount
    }
    // The order of a to-one relationship has no effect except on the version hash.
    relationship.isOrdered = try reader.flag("ordered")
    relationship.isTransient = try reader.flag("transient")
    relationship.renamingIdentifier = reader.text("elementID")
    relationship.userInfo = try reader.userInfo()
    return relationship
  }

  static func fetchedProperty(_ element: ModelElement, of owner: String) throws(ModelFileError) -> FetchedPropertyDescription {
    let reader = ElementReader(element, "fetched property", of: owner)
    guard let request = element.child(named: "fetchRequest") else {
      throw ModelFileError(.missingAttribute, line: element.line, element: reader.what, reason: "The fetchRequest element is missing.")
    }
    return FetchedPropertyDescription(
      try reader.required("name"), try fetchRequest(request, named: request["name"] ?? "", of: reader.what),
      isOptional: try reader.flag("optional"),
      isTransient: try reader.flag("transient"), versionHashModifier: reader.text("versionHashModifier"),
      renamingIdentifier: reader.text("elementID"), userInfo: try reader.userInfo())
  }

  /// A request that programs look up by name.
  static func template(_ element: ModelElement) throws(ModelFileError) -> FetchRequestDescription {
    try fetchRequest(element, named: ElementReader(element, "fetch request").required("name"), of: nil)
  }

  /// A request. A fetched property's request needs no name, because it isn't looked up by name.
  private static func fetchRequest(
    _ element: ModelElement, named name: String, of owner: String?
  ) throws(ModelFileError) -> FetchRequestDescription {
    let reader = ElementReader(element, "fetch request", of: owner)
    var request = FetchRequestDescription(
      name, entity: try reader.required("entity"), predicateFormat: reader.text("predicateString"))
    let number = try reader.integer("resultType") ?? 0
    guard let resultType = FetchRequestDescription.ResultType(rawValue: number) else {
      throw reader.invalid("resultType", "not 0, 1, 2 or 4")
    }
    request.resultType = resultType
    request.fetchLimit = try reader.count("fetchLimit") ?? 0
    request.fetchBatchSize = try reader.count("fetchBatchSize") ?? 0
    request.includesSubentities = try reader.flag("includeSubentities", default: true)
    request.includesPropertyValues = try reader.flag("includePropertyValues", default: true)
    request.includesPendingChanges = try reader.flag("includesPendingChanges", default: true)
    request.returnsObjectsAsFaults = try reader.flag("returnObjectsAsFaults", default: true)
    request.returnsDistinctResults = try reader.flag("returnDistinctResults")
    return request
  }

  private static func deleteRule(_ reader: ElementReader) throws(ModelFileError) -> DeleteRule {
    guard let text = reader.text("deletionRule") else { return .nullify }
    guard let rule = DeleteRule.allCases.first(where: { DeleteRuleText.text($0) == text }) else {
      throw reader.invalid("deletionRule", "not Nullify, Cascade, Deny or No Action")
    }
    return rule
  }
}

/// The spelling of delete rules in model files.
enum DeleteRuleText {
  static func text(_ rule: DeleteRule) -> String {
    switch rule {
    case .noAction: "No Action"
    case .nullify: "Nullify"
    case .cascade: "Cascade"
    case .deny: "Deny"
    }
  }
}
