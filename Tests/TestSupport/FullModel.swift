import Foundation
public import HoldfastStore

/// A model that uses every setting, in Xcode's order.
public enum FullModel {
  /// The model.
  public static func model() throws -> ManagedObjectModel {
    var all = FetchRequestDescription("all", entity: "Item", predicateFormat: "text == $text AND whole16 > 5 AND text != \"<&>\"")
    (all.resultType, all.fetchLimit, all.fetchBatchSize) = (.dictionaries, 10, 5)
    (all.includesSubentities, all.includesPropertyValues, all.includesPendingChanges) = (false, false, false)
    (all.returnsObjectsAsFaults, all.returnsDistinctResults) = (false, true)
    return try ManagedObjectModel(
      entities: [base(), item(), owner()], versionIdentifiers: ["1.0 <beta>"],
      configurations: [ConfigurationDescription("Cloud", ["Item", "Owner"]), ConfigurationDescription("Empty", [])],
      composites: [
        CompositeDescription("Place", [AttributeDescription("lat", .double), .composite("inner", "Point", isOptional: true)]),
        CompositeDescription("Point", [AttributeDescription("y", .integer16, default: .int16(2)), AttributeDescription("x", .integer16)]),
      ], fetchRequestTemplates: [all, FetchRequestDescription("plain", entity: "Owner")])
  }

  private static func base() -> EntityDescription {
    EntityDescription("Base", isAbstract: true, attributes: [AttributeDescription("created", .date)], versionHashModifier: "m")
  }

  private static func owner() -> EntityDescription {
    var items = RelationshipDescription.toMany(
      "items", to: "Item", inverse: "owner", isOptional: false, deleteRule: .deny, minCount: 1, maxCount: 9, isOrdered: true,
      versionHashModifier: "r")
    items.renamingIdentifier = "things"
    items.userInfo = ["k": "v", "a": ""]
    return EntityDescription("Owner", relationships: [items])
  }

  private static func item() -> EntityDescription {
    var old = RelationshipDescription.toOne("first", to: "Item", inverse: nil, isOptional: false, deleteRule: .noAction)
    old.minCount = 1
    return EntityDescription(
      "Item", superentity: "Base", attributes: attributes(),
      relationships: [old, .toOne("owner", to: "Owner", inverse: "items"), .toOne("self_", to: "Item", inverse: "self_")],
      fetchedProperties: [
        FetchedPropertyDescription(
          "peers", FetchRequestDescription("fetchedPropertyFetchRequest", entity: "Item", predicateFormat: "owner == $FETCH_SOURCE.owner"),
          isOptional: false, isTransient: true, versionHashModifier: "f", renamingIdentifier: "others", userInfo: ["x": "y"])
      ], uniquenessConstraints: [["text"], ["whole16", "owner"]],
      indexes: [
        FetchIndexDescription("byText", elements: [FetchIndexElement("text", isAscending: false), FetchIndexElement("whole16")]),
        FetchIndexDescription("byPlace", elements: [FetchIndexElement("real", kind: .rTree)]),
      ], versionHashModifier: "2", renamingIdentifier: "Thing", managedObjectClassName: ".Item", userInfo: ["note": "a\nb\t<\"&'> é"])
  }

  private static func attributes() -> [AttributeDescription] {
    var encrypted = AttributeDescription("bytes", .binaryData, isOptional: true, allowsExternalBinaryDataStorage: true)
    encrypted.allowsCloudEncryption = true
    var colour = AttributeDescription.transformable("colour", by: "ColourTransformer", isOptional: true)
    colour.valueClassName = "[Colour]"
    let uuid = UUID(uuidString: "0F1E2D3C-4B5A-6978-8796-A5B4C3D2E1F0") ?? UUID()
    var kept = AttributeDescription("kept", .uuid, default: .uuid(uuid), versionHashModifier: "v", renamingIdentifier: "was")
    kept.preservesValueInHistoryOnDeletion = true
    let number = Decimal(string: "12345678901234567890.0123456789") ?? 0
    return [
      encrypted, colour, AttributeDescription("decimal", .decimal, default: .decimal(number), validation: .range(.decimal(-4), nil)),
      AttributeDescription("flag", .boolean, default: .bool(false)), kept, AttributeDescription("link", .uri, default: .uri("a?b&c")),
      AttributeDescription("moment", .date, default: .date(0.1), validation: .range(.date(-1e10), .date(1e10))),
      .composite("place", "Place", isOptional: true),
      AttributeDescription("real", .double, default: .double(.pi), validation: .range(.double(-3.5), .double(1e300))),
      AttributeDescription("reference", .objectID, isOptional: true),
      AttributeDescription("single", .float, default: .float(0.1), validation: .range(.float(-2.5), .float(2.5))),
      AttributeDescription(
        "text", .string, default: .string(" a\nb "),
        validation: AttributeValidation(minimumLength: 1, maximumLength: 64, regularExpression: "[a-z]+\\s"), userInfo: ["": "empty"]),
      .derived("upper", .string, "uppercase:(text)"), AttributeDescription("volatile", .undefined, isTransient: true),
      AttributeDescription("whole16", .integer16, default: .int16(.min), validation: .range(.int16(.min), .int16(.max))),
      AttributeDescription("whole32", .integer32, default: .int32(.max)),
      AttributeDescription("whole64", .integer64, default: .int64(.min), validation: .range(nil, .int64(.max))),
    ]
  }
}
