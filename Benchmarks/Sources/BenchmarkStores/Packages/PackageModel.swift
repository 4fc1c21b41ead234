internal import Holdfast
internal import HoldfastStore

/// The model of the package input. A package has a many-to-many pair of relationships for each kind of link.
enum PackageModel {
  static let classes: [ManagedObject.Type] = [StoredPackage.self, StoredSection.self, StoredMaintainer.self]

  /// Creates the model.
  static func make() throws -> ManagedObjectModel { try ManagedObjectModel(entities: [package, section, maintainer]) }

  private static let package = EntityDescription(
    "Package",
    attributes: [
      AttributeDescription("name", .string), AttributeDescription("version", .string), AttributeDescription("architecture", .string),
      AttributeDescription("installedSize", .integer64, isOptional: true), AttributeDescription("size", .integer64, isOptional: true),
    ] + optionalTexts.map { AttributeDescription($0, .string, isOptional: true) },
    relationships: [
      .toOne("section", to: "Section", inverse: "packages"), .toOne("maintainer", to: "Maintainer", inverse: "packages"),
    ]
      + linkPairs.flatMap { forward, back in
        [
          RelationshipDescription.toMany(forward, to: "Package", inverse: back),
          RelationshipDescription.toMany(back, to: "Package", inverse: forward),
        ]
      },
    uniquenessConstraints: [["name", "version", "architecture"]])

  private static let optionalTexts = ["summary", "longDescription", "homepage", "priority", "source", "multiArch"]

  private static let linkPairs = [
    ("depends", "dependedOnBy"), ("preDepends", "preDependedOnBy"), ("recommends", "recommendedBy"), ("suggests", "suggestedBy"),
    ("breaks", "brokenBy"), ("conflicts", "conflictedBy"), ("replaces", "replacedBy"), ("provides", "providedBy"),
  ]

  private static let section = EntityDescription(
    "Section", attributes: [AttributeDescription("name", .string)],
    relationships: [.toMany("packages", to: "Package", inverse: "section")], uniquenessConstraints: [["name"]])

  /// Without a uniqueness constraint, because the input identifies maintainers by their full text, and some differ only in
  /// whitespace.
  private static let maintainer = EntityDescription(
    "Maintainer", attributes: [AttributeDescription("name", .string), AttributeDescription("email", .string, isOptional: true)],
    relationships: [.toMany("packages", to: "Package", inverse: "maintainer")])
}
