import HoldfastPropertyList
import HoldfastStore

extension CompiledModelReader {
  /// The keys of every property.
  private static let knownKeys: Set<String> = [
    "NSPropertyName", "NSEntity", "NSIsOptional", "NSIsTransient", "NSIsIndexed", "NSIsReadOnly", "NSUserInfo", "NSVersionHashModifier",
    "NSRenamingIdentifier", "NSValidationPredicates", "NSValidationWarnings", "_P",
  ]

  /// A property of an entity; nil if it is inherited.
  mutating func property(
    _ name: String, _ reference: PropertyList, of entity: CompiledEntityPart, _ inherited: CompiledProperty?
  ) throws(ModelFileError) -> (declaration: CompiledProperty, isIndexed: Bool)? {
    let element = "property \(name.quoted) of entity \(entity.name.quoted)"
    guard let part = try ArchivedPart(archive, reference, as: element) else { throw entity.part.failure("A property is missing.") }
    if part.className == "_NSPropertyDescriptionProxy" {
      if inherited == nil { throw part.failure("The property is inherited, but no superentity has a property with this name.") }
      return nil
    }
    guard try part.requiredText("NSPropertyName") == name else { throw part.failure("The property's name differs from its key.") }
    guard let inherited else { return (try declaration(part, name, entity), try part.flag("NSIsIndexed")) }
    // Entities contain copies of inherited properties.
    let notes = declarations.notes.count
    let copy = try declaration(part, name, entity)
    declarations.notes.removeSubrange(notes...)
    if copy != inherited { note(part, "The entity's copy differs from the inherited property, which is used.") }
    return nil
  }

  private mutating func declaration(_ part: ArchivedPart, _ name: String, _ entity: CompiledEntityPart) throws(ModelFileError)
    -> CompiledProperty
  {
    var part = part
    func rename(_ kind: String) { part.element = "\(kind) \(name.quoted) of entity \(entity.name.quoted)" }
    switch part.className {
    case "NSAttributeDescription", "NSDerivedAttributeDescription":
      rename("attribute")
      return .attribute(try attribute(part, name))
    case "NSRelationshipDescription":
      rename("relationship")
      return .relationship(try relationship(part, name))
    case "NSFetchedPropertyDescription":
      rename("fetched property")
      return .fetched(try fetchedProperty(part, name))
    case "NSExpressionDescription":
      throw part.failure("Expressions are supported only in fetches, not as properties.", .unsupported)
    default: throw part.failure("Properties of the class \(part.className.quoted) aren't supported.", .unsupported)
    }
  }

  // MARK: Attributes

  private static let knownAttributeKeys = knownKeys.union([
    "NSAttributeType", "NSAttributeValueClassName", "NSDefaultValue", "NSValueTransformerName", "NSFlagsKey", "NSAllowsCloudEncryption",
    "NSDerivationExpression", "NSFilteringPredicate",
  ])
  private static let types = Dictionary(uniqueKeysWithValues: AttributeType.allCases.map { (Int($0.coreDataCode), $0) })
  /// Bits of `NSFlagsKey`. On disk: do not change.
  private static let externalFlag = 4, preservedFlag = 16

  private mutating func attribute(_ part: ArchivedPart, _ name: String) throws(ModelFileError) -> AttributeDescription {
    guard let type = Self.types[try part.integer("NSAttributeType") ?? 0] else {
      throw part.failure("The type \(try part.integer("NSAttributeType") ?? 0) isn't supported.", .unsupported)
    }
    guard type != .composite else { throw part.failure("Composite attributes in compiled models aren't supported.", .unsupported) }
    let flags = try part.integer("NSFlagsKey") ?? 0
    var attribute = AttributeDescription(
      name, type, isOptional: try part.flag("NSIsOptional"), isTransient: try part.flag("NSIsTransient"),
      allowsExternalBinaryDataStorage: flags & Self.externalFlag != 0, versionHashModifier: try part.filledText("NSVersionHashModifier"),
      renamingIdentifier: try renamingIdentifier(part, name), userInfo: try userInfo(part))
    attribute.preservesValueInHistoryOnDeletion = flags & Self.preservedFlag != 0
    if flags & ~(Self.externalFlag | Self.preservedFlag) != 0 {
      note(part, "Unknown bits in the flags \(flags) were omitted.")
    }
    attribute.allowsCloudEncryption = try part.flag("NSAllowsCloudEncryption")
    if type == .transformable {
      attribute.valueTransformerName = try part.filledText("NSValueTransformerName")
      attribute.valueClassName = try part.filledText("NSAttributeValueClassName")
    }
    if part.className == "NSDerivedAttributeDescription" {
      attribute.derivationExpression = try derivation(part)
    } else {
      attribute.defaultValue = try defaultValue(part, type)
    }
    attribute.validation = try validation(part, type)
    try noteKeys(of: part, besides: Self.knownAttributeKeys)
    return attribute
  }

  private mutating func defaultValue(_ part: ArchivedPart, _ type: AttributeType) throws(ModelFileError) -> StoreValue? {
    guard let reference = part.instance["NSDefaultValue"] else { return nil }
    let found: KeyedArchive.Object
    do { found = try archive.object(reference) } catch { throw ModelFileError(.malformed, element: part.element, cause: error) }
    if case .null = found { return nil }
    if let value = ArchivedValue.value(archive, reference, type) { return value }
    switch found {
    case .instance(let object): note(part, "The default value of class \(object.className.quoted) was omitted.")
    default: note(part, "The default value doesn't match the type and was omitted.")
    }
    return nil
  }

  private mutating func derivation(_ part: ArchivedPart) throws(ModelFileError) -> String {
    if try part.part("NSFilteringPredicate") != nil {
      note(part, "The condition of the derived attribute was omitted. Its value is derived from all objects.")
    }
    guard let expression = try part.part("NSDerivationExpression") else { throw part.failure("The derivation expression is missing.") }
    return try expressions.expression(expression).text
  }

  private mutating func validation(_ part: ArchivedPart, _ type: AttributeType) throws(ModelFileError) -> AttributeValidation {
    var rules = CompiledRules(type)
    for reference in try part.list("NSValidationPredicates") {
      guard let predicate = try ArchivedPart(archive, reference, as: part.element) else { continue }
      do throws(ModelFileError) { rules.add(try expressions.predicate(predicate)) } catch {
        guard error.code == .unsupported else { throw error }
        rules.add(unknown: error)
      }
    }
    for reason in rules.reasons { note(part, reason) }
    // Xcode stores an error number for each rule. A text is the message of a rule that Xcode didn't create.
    for reference in try part.list("NSValidationWarnings") {
      if let message = try? archive.string(reference) { note(part, "The message \(message.quoted) of a rule was omitted.") }
    }
    return rules.validation
  }

  // MARK: Relationships

  private static let knownRelationshipKeys = knownKeys.union([
    "NSDestinationEntity", "_NSDestinationEntityName", "NSInverseRelationship", "_NSInverseRelationshipName", "NSMinCount", "NSMaxCount",
    "NSDeleteRule", "NSIsOrdered",
  ])
  private static let rules: [Int: DeleteRule] = [0: .noAction, 1: .nullify, 2: .cascade, 3: .deny]

  private mutating func relationship(_ part: ArchivedPart, _ name: String) throws(ModelFileError) -> RelationshipDescription {
    guard let rule = Self.rules[try part.integer("NSDeleteRule") ?? 0] else {
      throw part.failure("The delete rule isn't supported.", .unsupported)
    }
    let minCount = try part.integer("NSMinCount") ?? 0, maxCount = try part.integer("NSMaxCount") ?? 0
    let destination = try part.requiredText("_NSDestinationEntityName"), inverse = try part.text("_NSInverseRelationshipName")
    let isOptional = try part.flag("NSIsOptional"), modifier = try part.filledText("NSVersionHashModifier")
    var relationship: RelationshipDescription
    if maxCount == 1 {
      relationship = .toOne(
        name, to: destination, inverse: inverse, isOptional: isOptional, deleteRule: rule, versionHashModifier: modifier)
      relationship.minCount = minCount
    } else {
      relationship = .toMany(
        name, to: destination, inverse: inverse, isOptional: isOptional, deleteRule: rule, minCount: minCount, maxCount: maxCount,
        versionHashModifier: modifier)
    }
    // The order of a to-one relationship has no effect except on the version hash.
    relationship.isOrdered = try part.flag("NSIsOrdered")
    relationship.isTransient = try part.flag("NSIsTransient")
    relationship.renamingIdentifier = try renamingIdentifier(part, name)
    relationship.userInfo = try userInfo(part)
    if try !part.list("NSValidationPredicates").isEmpty { note(part, "The rules were omitted; relationships support only counts.") }
    try noteKeys(of: part, besides: Self.knownRelationshipKeys)
    return relationship
  }

  // MARK: Fetched properties

  private static let knownFetchedKeys = knownKeys.union(["NSFetchRequest", "_NSFetchRequestEntityName"])

  private mutating func fetchedProperty(_ part: ArchivedPart, _ name: String) throws(ModelFileError) -> FetchedPropertyDescription {
    guard let request = try part.part("NSFetchRequest") else { throw part.failure("The fetch request is missing.") }
    let property = FetchedPropertyDescription(
      name, try fetchRequest(request, Self.nameInFetchedProperty, entity: try part.text("_NSFetchRequestEntityName")),
      isOptional: try part.flag("NSIsOptional"), isTransient: try part.flag("NSIsTransient"),
      versionHashModifier: try part.filledText("NSVersionHashModifier"), renamingIdentifier: try renamingIdentifier(part, name),
      userInfo: try userInfo(part))
    try noteKeys(of: part, besides: Self.knownFetchedKeys)
    return property
  }

  /// Xcode's name for the request of every fetched property.
  private static let nameInFetchedProperty = "fetchedPropertyFetchRequest"
}
