/// Xcode's order of the XML attributes of each element, learned from files that it wrote.
///
/// The order has no meaning, but a file in another order has large differences when versions are compared line by line.
enum AttributeOrder {
  /// The attributes of an element in Xcode's order, followed by unknown ones in their own order.
  static func sorted(_ element: ModelElement) -> [ModelElement.Attribute] {
    let order = order(of: element)
    let ranked = element.attributes.enumerated().map { (order[$1.name] ?? Int.max, $0, $1) }
    return ranked.sorted { ($0.0, $0.1) < ($1.0, $1.1) }.map(\.2)
  }

  private static func order(of element: ModelElement) -> [String: Int] {
    element.name == "model" && isOld(element) ? oldModel : orders[element.name] ?? [:]
  }

  /// Whether a file has the version's identifier at the beginning of the outermost element, as in Xcode up to 8. It then stays there.
  private static func isOld(_ model: ModelElement) -> Bool {
    let names = model.attributes.map(\.name)
    guard let identifier = names.firstIndex(of: "userDefinedModelVersionIdentifier"), let type = names.firstIndex(of: "type") else {
      return false
    }
    return identifier < type
  }

  private static let oldModel = ranks(
    """
    name userDefinedModelVersionIdentifier type documentVersion lastSavedToolsVersion systemVersion minimumToolsVersion macOSVersion
    iOSVersion
    """)

  private static let orders: [String: [String: Int]] = [
    "model": ranks(
      """
      name type documentVersion lastSavedToolsVersion systemVersion minimumToolsVersion sourceLanguage usedWithCloudKit usedWithSwiftData
      userDefinedModelVersionIdentifier macOSVersion iOSVersion
      """),
    "entity": ranks(
      "name representedClassName isAbstract parentEntity elementID versionHashModifier syncable codeGenerationType"),
    "attribute": ranks(
      """
      name optional transient attributeType allowsExternalBinaryDataStorage allowsCloudEncryption composite derived derivationExpression
      minDateTimeInterval minValueString maxDateTimeInterval maxValueString defaultDateTimeInterval defaultValueString
      regularExpressionString spotlightIndexingEnabled storedInTruthFile usesScalarValueType indexed elementID versionHashModifier
      preserveAfterDeletion valueTransformerName customClassName syncable
      """),
    "relationship": ranks(
      """
      name optional transient toMany minCount maxCount deletionRule ordered destinationEntity inverseName inverseEntity indexed elementID
      versionHashModifier syncable
      """),
    "fetchedProperty": ranks("name optional transient elementID versionHashModifier syncable"),
    "fetchRequest": ranks(
      """
      name entity predicateString fetchLimit fetchBatchSize includeSubentities includePropertyValues includesPendingChanges
      returnObjectsAsFaults returnDistinctResults resultType
      """),
    "fetchIndex": ranks("name"),
    "fetchIndexElement": ranks("property expression expressionType type order"),
    "entry": ranks("key value"),
    "element": ranks("name positionX positionY width height"),
  ]

  private static func ranks(_ names: String) -> [String: Int] {
    Dictionary(uniqueKeysWithValues: names.split { $0 == " " || $0 == "\n" }.enumerated().map { (String($1), $0) })
  }
}
