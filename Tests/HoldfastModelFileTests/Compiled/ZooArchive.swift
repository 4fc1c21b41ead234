import HoldfastPropertyList
import HoldfastStore

/// The archive of a model with every known feature of compiled models.
final class ZooArchive {
  let builder = ArchiveBuilder()
  /// Additional keys for the properties with a name, or for the entities.
  var extra: [String: [String: PropertyList]] = [:]
  private lazy var animal = builder.reserve()
  private lazy var dog = builder.reserve()
  private lazy var walk = builder.reserve()

  func bytes() -> [UInt8] { list().binary }

  func list() -> PropertyList {
    entity(
      animal, "Animal",
      [
        "NSProperties": builder.dictionary(["name": name(of: animal)]), "NSSubentities": builder.dictionary(["Dog": dog]),
        "NSIsAbstract": .bool(true), "NSUserInfo": builder.dictionary(["author": builder.text("Ada")]),
        "NSUniqueTuples": builder.list([builder.list([builder.text("name")])]),
        "NSFetchIndexDescriptions": builder.list([index("byName", [("name", false)])]),
        "NSVersionHashModifier": builder.text("second"),
      ])
    entity(dog, "Dog", ["NSSuperentity": animal, "NSProperties": dogProperties(), "NSRenamingIdentifier": builder.text("Hound")])
    let owner = relationship("dog", of: walk, to: "Dog", inverse: "walks", ["NSMinCount": .integer(1), "NSMaxCount": .integer(1)])
    entity(
      walk, "Walk",
      [
        "NSProperties": builder.dictionary(["minutes": attribute("minutes", 300, of: walk, ["NSIsIndexed": .bool(true)]), "dog": owner]),
        "NSCompoundIndexes": builder.list([builder.list([builder.text("minutes"), builder.text("dog")])]),
        "NSClassNameForEntity": builder.text("NSManagedObject"),
      ])
    return builder.archive(root: model())
  }

  private func model() -> PropertyList {
    builder.object(
      "NSManagedObjectModel",
      [
        "NSEntities": builder.dictionary(["Dog": dog, "Animal": animal, "Walk": walk]),
        "NSVersionIdentifiers": builder.list([builder.text("v2"), builder.text("v1")], as: "NSSet"),
        "NSConfigurations": builder.dictionary(["walks": builder.list([walk, dog])]),
        "NSFetchRequestTemplates": builder.dictionary(["old": request(builder.comparison(builder.keyPath("age"), 2, variable("AGE")))]),
        "CDMCompilerToolVersion": .real(22_758),
      ].merging(extra["model"] ?? [:]) { $1 })
  }

  private func variable(_ name: String) -> PropertyList { builder.object("NSVariableExpression", ["NSVariable": builder.text(name)]) }

  private func request(_ predicate: PropertyList) -> PropertyList {
    builder.object(
      "NSFetchRequest",
      [
        "NSEntity": dog, "NSPredicate": predicate, "NSHasFetchRequestFlags": .bool(true), "NSFetchRequestFlags": .integer(30),
        "NSFetchLimit": .integer(7), "NSResultType": .integer(0), "NSBatchSize": .integer(0), "NSSortDescriptors": ArchiveBuilder.null,
      ].merging(extra["request"] ?? [:]) { $1 })
  }

  @discardableResult private func entity(_ place: PropertyList, _ name: String, _ values: [String: PropertyList]) -> PropertyList {
    let usual: [String: PropertyList] = [
      "NSEntityName": builder.text(name), "NSClassNameForEntity": builder.text("Zoo.\(name)"), "NSRenamingIdentifier": builder.text(name),
      "NSSubentities": builder.dictionary([:]), "NSSuperentity": ArchiveBuilder.null, "NSUserInfo": builder.dictionary([:]),
      "NSVersionHashModifier": ArchiveBuilder.null,
    ]
    return builder.object("NSEntityDescription", usual.merging(values) { $1 }.merging(extra[name] ?? [:]) { $1 }, at: place)
  }

  func index(_ name: String, _ elements: [(String, Bool)]) -> PropertyList {
    let parts = elements.map { element in
      builder.object(
        "NSFetchIndexElementDescription",
        ["NSPropertyName": builder.text(element.0), "NSFetchIndexElementType": .integer(0), "NSAscending": .bool(element.1)]
          .merging(extra["element"] ?? [:]) { $1 })
    }
    return builder.object(
      "NSFetchIndexDescription",
      ["NSIndexName": builder.text(name), "NSIndexElements": builder.list(parts), "NSPartialIndexPredicate": ArchiveBuilder.null]
        .merging(extra["index"] ?? [:]) { $1 })
  }

  // MARK: Properties

  private func property(_ name: String, of entity: PropertyList, _ values: [String: PropertyList]) -> [String: PropertyList] {
    [
      "NSPropertyName": builder.object("NSMutableString", ["NS.string": .string(name)]), "NSEntity": entity, "_P": .integer(241),
      "NSRenamingIdentifier": builder.text(name),
    ].merging(values) { $1 }.merging(extra[name] ?? [:]) { $1 }
  }

  private func attribute(_ name: String, _ type: Int64, of entity: PropertyList, _ values: [String: PropertyList] = [:]) -> PropertyList {
    let usual: [String: PropertyList] = [
      "NSAttributeType": .integer(type), "NSFlagsKey": .integer(0), "NSDefaultValue": ArchiveBuilder.null,
    ]
    return builder.object(
      extra[name]?["class"]?.string ?? "NSAttributeDescription", property(name, of: entity, usual.merging(values) { $1 }))
  }

  private func name(of entity: PropertyList) -> PropertyList {
    let length = builder.keyPath("length")
    return attribute(
      "name", 700, of: entity,
      [
        "NSDefaultValue": builder.text("Rex"),
        "NSValidationPredicates": builder.list([
          builder.comparison(length, 3, builder.constant(builder.plain(.integer(1)))),
          builder.comparison(length, 1, builder.constant(builder.plain(.integer(50)))),
          builder.comparison(builder.selfExpression(), 6, builder.constant(builder.text("[A-Z].*"))),
        ]),
        "NSValidationWarnings": builder.list([builder.plain(.integer(1670)), builder.plain(.integer(1660)), builder.plain(.integer(1680))]),
      ])
  }

  private func bounds(_ minimum: PropertyList, _ maximum: PropertyList) -> PropertyList {
    builder.list([
      builder.comparison(builder.selfExpression(), 3, builder.constant(minimum)),
      builder.comparison(builder.selfExpression(), 1, builder.constant(maximum)),
    ])
  }

  private func decimal(_ mantissa: UInt8, _ exponent: Int64, isNegative: Bool = false) -> PropertyList {
    builder.object(
      "NSDecimalNumber",
      [
        "NS.mantissa": .data([mantissa] + Array(repeating: 0, count: 15)), "NS.exponent": .integer(exponent), "NS.length": .integer(1),
        "NS.negative": .bool(isNegative), "NS.compact": .bool(true), "NS.mantissa.bo": .integer(1),
      ])
  }

  private func relationship(_ name: String, of entity: PropertyList, to: String, inverse: String?, _ values: [String: PropertyList])
    -> PropertyList
  {
    let usual: [String: PropertyList] = [
      "_NSDestinationEntityName": builder.text(to), "_NSInverseRelationshipName": inverse.map(builder.text) ?? ArchiveBuilder.null,
      "NSMinCount": .integer(0), "NSMaxCount": .integer(0), "NSDeleteRule": .integer(1), "NSIsOptional": .bool(true),
    ]
    return builder.object("NSRelationshipDescription", property(name, of: entity, usual.merging(values) { $1 }))
  }

  private func dogProperties() -> PropertyList {
    let date = builder.object("NSDate", ["NS.time": .real(86_400)]), maximum = builder.object("NSDate", ["NS.time": .real(1e9)])
    let friends = request(builder.comparison(builder.keyPath("name"), 4, builder.keyPath("name", of: variable("FETCH_SOURCE"))))
    return builder.dictionary([
      // The copy of its inherited properties.
      "name": name(of: dog),
      "age": attribute(
        "age", 100, of: dog,
        [
          "NSDefaultValue": builder.plain(.integer(3)), "NSIsOptional": .bool(true),
          "NSValidationPredicates": bounds(builder.plain(.integer(0)), builder.plain(.integer(40))),
        ]),
      "weight": attribute(
        "weight", 400, of: dog,
        ["NSDefaultValue": decimal(125, -1), "NSValidationPredicates": bounds(decimal(5, 0, isNegative: true), decimal(9, 2))]),
      "born": attribute("born", 900, of: dog, ["NSDefaultValue": date, "NSValidationPredicates": bounds(date, maximum)]),
      "chip": attribute("chip", 1100, of: dog, ["NSDefaultValue": builder.object("NSUUID", ["NS.uuidbytes": .data(Array(0..<16))])]),
      "home": attribute(
        "home", 1200, of: dog,
        ["NSDefaultValue": builder.object("NSURL", ["NS.relative": builder.text("https://example.org"), "NS.base": ArchiveBuilder.null])]),
      "photo": attribute("photo", 1000, of: dog, ["NSFlagsKey": .integer(20), "NSAllowsCloudEncryption": .bool(true)]),
      "isGood": attribute("isGood", 800, of: dog, ["NSDefaultValue": builder.plain(.integer(1))]),
      "size": attribute("size", 600, of: dog, ["NSDefaultValue": builder.plain(.real(0.1))]),
      "mood": attribute("mood", 0, of: dog, ["NSIsTransient": .bool(true)]),
      "colour": attribute(
        "colour", 1800, of: dog,
        ["NSValueTransformerName": builder.text("ColourTransformer"), "NSAttributeValueClassName": builder.text("Colour")]),
      "walkCount": builder.object(
        "NSDerivedAttributeDescription",
        property(
          "walkCount", of: dog,
          [
            "NSAttributeType": .integer(300), "NSIsOptional": .bool(true),
            "NSDerivationExpression": builder.function("count:", [builder.keyPath("walks")]),
          ])),
      "walks": relationship("walks", of: dog, to: "Walk", inverse: "dog", ["NSIsOrdered": .bool(true), "NSDeleteRule": .integer(2)]),
      "namesakes": builder.object(
        "NSFetchedPropertyDescription",
        property(
          "namesakes", of: dog, ["NSFetchRequest": friends, "_NSFetchRequestEntityName": builder.text("Dog"), "NSIsOptional": .bool(true)])),
    ])
  }
}
