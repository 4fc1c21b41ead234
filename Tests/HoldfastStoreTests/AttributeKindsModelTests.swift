import Foundation
import HoldfastStore
import Testing

/// Attributes that aren't plain columns: composite, transient and derived ones, and other settings of a model.
@Suite struct AttributeKindsModelTests {
  private static let place = CompositeDescription(
    "Place",
    [
      AttributeDescription("longitude", .double, default: .double(0)), AttributeDescription("latitude", .double),
      .composite("address", "Address", isOptional: true),
    ])
  private static let address = CompositeDescription("Address", [AttributeDescription("city", .string, default: .string("Bern"))])

  private static func model(_ attributes: [AttributeDescription], composites: [CompositeDescription] = [place, address]) throws
    -> ManagedObjectModel
  {
    try ManagedObjectModel(
      entities: [
        EntityDescription("Dog", attributes: attributes, relationships: [.toMany("walks", to: "Walk", inverse: "dog")]),
        EntityDescription(
          "Walk", attributes: [AttributeDescription("minutes", .integer32), AttributeDescription("note", .string, isTransient: true)],
          relationships: [.toOne("dog", to: "Dog", inverse: "walks")]),
      ], composites: composites)
  }

  private static func reasons(_ attribute: AttributeDescription, composites: [CompositeDescription] = [place, address]) -> [String] {
    do {
      _ = try model([AttributeDescription("name", .string), attribute], composites: composites)
      return []
    } catch { return (error as? ModelError)?.problems.map(\.description) ?? ["\(error)"] }
  }

  @Test func elementsOfCompositeAttributesHaveSlotsOfTheirOwnSideBySide() throws {
    let model = try Self.model([AttributeDescription("homer", .string), .composite("home", "Place"), AttributeDescription("a", .string)])
    let dog = try #require(model.entity(named: "Dog"))
    #expect(dog.slots.map(\.name) == ["a", "home.address.city", "home.latitude", "home.longitude", "homer"])
    #expect(dog.composites.map(\.name) == ["home", "home.address"])
    #expect(dog.composites.map(\.slots) == [1..<4, 1..<2])
    #expect(dog.composites.map(\.isOptional) == [false, true])
    guard case .composite(let home)? = dog.property(named: "home") else {
      Issue.record("home isn't a composite attribute")
      return
    }
    #expect(home.compositeName == "Place" && dog.property(named: "home")?.slot == nil)
  }

  @Test func elementsOfAnOptionalGroupAreOptionalAndBeginWithoutValue() throws {
    let dog = try #require(Self.model([.composite("home", "Place")]).entity(named: "Dog"))
    let city = try #require(dog.attributes.first { $0.name == "home.address.city" })
    let longitude = try #require(dog.attributes.first { $0.name == "home.longitude" })
    #expect(city.isOptional && city.defaultValue == nil && !city.declaration.isOptional)
    #expect(!longitude.isOptional && longitude.defaultValue == .double(0))
  }

  @Test func queriesNameElementsByTheirPath() throws {
    let model = try Self.model([.composite("home", "Place"), AttributeDescription("mood", .undefined, isOptional: true, isTransient: true)])
    let dog = try #require(model.entity(named: "Dog")), walk = try #require(model.entity(named: "Walk"))
    #expect(try ResolvedPath("home.address.city", from: dog, in: model).slot == 0)
    let crossed = try ResolvedPath("dog.home.latitude", from: walk, in: model)
    #expect(crossed.hops.count == 1 && crossed.slot == dog.slot(named: "home.latitude"))
    for path in ["home", "home.address", "home.nowhere", "mood", "walks.mood"] {
      #expect(throws: QueryError.self) { try ResolvedPath(PropertyPath(dotted: path), from: dog, in: model) }
    }
  }

  @Test func transientAttributesHaveNoSlotAndDoNotEnterTheVersionHash() throws {
    let mood = AttributeDescription("mood", .undefined, isOptional: true, isTransient: true)
    let with = try Self.model([mood, AttributeDescription("name", .string)]),
      without = try Self.model([AttributeDescription("name", .string)])
    let dog = try #require(with.entity(named: "Dog"))
    #expect(dog.slots.map(\.name) == ["name"] && dog.transientAttributes.map(\.name) == ["mood"])
    #expect(dog.versionHash == without.entity(named: "Dog")?.versionHash)
    #expect(dog.property(named: "mood")?.slot == nil)
  }

  @Test func ofADerivedAttributeTheExpressionAloneEntersTheVersionHash() throws {
    func hash(_ attribute: AttributeDescription) throws -> [UInt8]? { try Self.model([attribute]).entity(named: "Dog")?.versionHash }
    let count = try hash(.derived("walkCount", .integer64, "walks.@count"))
    #expect(try count == hash(.derived("number", .integer16, "count:(walks)")))
    #expect(try count != hash(.derived("walkCount", .integer64, "walks.minutes.@sum")))
    #expect(try count != hash(AttributeDescription("walkCount", .integer64, isOptional: true)))
  }

  @Test func externalStorageEntersTheVersionHashAndValidationDoesNot() throws {
    func hash(_ attribute: AttributeDescription) throws -> [UInt8]? { try Self.model([attribute]).entity(named: "Dog")?.versionHash }
    let plain = try hash(AttributeDescription("photo", .binaryData))
    #expect(try plain != hash(AttributeDescription("photo", .binaryData, allowsExternalBinaryDataStorage: true)))
    let age = try hash(AttributeDescription("age", .integer16))
    #expect(try age == hash(AttributeDescription("age", .integer16, validation: .range(.int16(0), .int16(30)), userInfo: ["a": "b"])))
  }

  @Test(arguments: [
    ("name", "name"), ("owner.name", "owner.name"), ("walks.@count", "count:(walks)"), ("count:(walks)", "count:(walks)"),
    ("walks.minutes.@sum", "sum:(walks.minutes)"), (" canonical:( title ) ", "canonical:(title)"), ("uppercase:(a.b)", "uppercase:(a.b)"),
    ("now()", "now()"), ("#size", "size"), ("owner.#first", "owner.first"), ("sum:(walks.#size)", "sum:(walks.size)"),
    ("#all.@count", "count:(all)"),
  ]) func expressionsAreDescribedAsCoreDataDoes(text: String, description: String) throws {
    #expect(try #require(Derivation(text)).description == description)
  }

  @Test(arguments: [
    "", "a b", "walks.@avg", "walks.@sum.minutes", "@count", ".@count", "walks.minutes.more.@sum", "reverse:(name)", "now", "canonical:()",
    "canonical:(name", "a..b", "count:(walks.minutes)", "name.@uppercase", "name.uppercase.@uppercase", "#", "##size",
    "a.#", "si#ze",
  ]) func otherExpressionsAreNotUnderstood(text: String) {
    // `now` alone is the name of an attribute.
    #expect(Derivation(text) == (text == "now" ? .copy("now") : nil))
  }

  /// The bug: a model file can contain a path of a million names, and checking it took hours.
  @Test func aPathHasAtMostAsManyNamesAsInAPredicate() {
    func path(_ count: Int) -> String { Array(repeating: "owner", count: count - 1).joined(separator: ".") + ".name" }
    for text in ["", "canonical:("] {
      let end = text.isEmpty ? "" : ")"
      #expect(Derivation(text + path(50) + end) != nil)
      #expect(Derivation(text + path(51) + end) == nil)
      #expect(Derivation(text + path(1_000_000) + end) == nil)
    }
    #expect(Self.reasons(.derived("n", .string, path(51))).joined().contains("expression is invalid"))
  }

  @Test func contradictionsInAttributesAreReported() {
    #expect(Self.reasons(.derived("n", .integer64, "walks.@count")).isEmpty)
    #expect(Self.reasons(.derived("n", .string, "walks.@count")).joined().contains("A count requires an integer attribute."))
    #expect(Self.reasons(.derived("n", .integer64, "toys.@count")).joined().contains("to-many relationship toys doesn't exist"))
    #expect(Self.reasons(.derived("n", .integer64, "walks.note.@sum")).joined().contains("transient, derived or composite"))
    #expect(Self.reasons(.derived("n", .string, "canonical:(name)")).isEmpty)
    #expect(Self.reasons(.derived("n", .string, "somehow:(name)")).joined().contains("expression is invalid"))
    #expect(Self.reasons(AttributeDescription("n", .undefined)).joined().contains("can only be transient"))
    #expect(Self.reasons(.composite("n", "Nowhere")).joined().contains("The composite Nowhere doesn't exist."))
    #expect(
      Self.reasons(AttributeDescription("n", .string, validation: .range(.int16(1), nil))).joined()
        .contains("A bound isn't of type string."))
    #expect(Self.reasons(AttributeDescription("n", .double, validation: .range(.double(2), .double(1)))).joined().contains("greater than"))
    #expect(Self.reasons(AttributeDescription("n", .double, validation: .pattern("a"))).joined().contains("Only text"))
    #expect(Self.reasons(AttributeDescription("n", .string, allowsExternalBinaryDataStorage: true)).joined().contains("bytes"))
  }

  /// The bug: a model with such a bound, which a file can contain, was accepted, and making a container of it trapped.
  @Test(
    arguments: [(.double, .double(.nan)), (.float, .float(.nan)), (.date, .date(.nan)), (.decimal, .decimal(.nan))]
      as [(AttributeType, StoreValue)]
  ) func boundsThatAreNaNAreRefused(type: AttributeType, bound: StoreValue) {
    for range in [AttributeValidation.range(bound, nil), .range(nil, bound)] {
      #expect(Self.reasons(AttributeDescription("n", type, validation: range)).joined().contains("A bound is NaN"))
    }
  }

  @Test func compositesThatContainThemselvesOrTooMuchAreRefused() {
    let selfish = CompositeDescription("Selfish", [.composite("again", "Selfish")])
    #expect(Self.reasons(AttributeDescription("n", .double), composites: [selfish]).joined().contains("contains itself"))
    let levels = (0..<40).map { level in
      CompositeDescription(
        "L\(level)", level == 39 ? [AttributeDescription("x", .double)] : ["a", "b"].map { .composite($0, "L\(level + 1)") })
    }
    #expect(Self.reasons(.composite("n", "L0"), composites: levels).joined().contains("more than 4096 values"))
  }

  @Test func allThatIsDeclaredSurvivesCoding() throws {
    var photo = AttributeDescription("photo", .binaryData, isOptional: true, allowsExternalBinaryDataStorage: true, userInfo: ["k": "v"])
    photo.preservesValueInHistoryOnDeletion = true
    photo.allowsCloudEncryption = true
    photo.renamingIdentifier = "image"
    var colour = AttributeDescription.transformable("colour", by: "ColourTransformer", isOptional: true)
    colour.valueClassName = "UIColor"
    var newest = FetchRequestDescription("newest", entity: "Dog", predicateFormat: "name == $NAME")
    newest.fetchLimit = 3
    newest.resultType = .dictionaries
    let model = try ManagedObjectModel(
      entities: [
        EntityDescription(
          "Dog",
          attributes: [
            photo, colour, .composite("home", "Place"), .derived("shout", .string, "uppercase:(name)"),
            AttributeDescription("name", .string, validation: AttributeValidation(minimumLength: 1, regularExpression: "[A-Z].*")),
            AttributeDescription("rating", .double, validation: .range(.double(0), .double(5))),
            AttributeDescription("mood", .undefined, isOptional: true, isTransient: true),
          ], fetchedProperties: [FetchedPropertyDescription("friends", newest, userInfo: ["x": "y"])],
          indexes: [FetchIndexDescription("by", elements: [FetchIndexElement("name", isAscending: false), FetchIndexElement("rating")])],
          renamingIdentifier: "Hound", managedObjectClassName: ".Dog", userInfo: ["author": "me"])
      ], versionIdentifiers: ["2"], composites: [Self.place, Self.address], fetchRequestTemplates: [newest])
    let copy = try JSONDecoder().decode(CodableModel.self, from: JSONEncoder().encode(CodableModel(model))).model
    #expect(copy == model && copy.declarations == model.declarations)
    #expect(copy.fetchRequestTemplate(named: "newest")?.fetchLimit == 3)
    #expect(copy.entity(named: "Dog")?.versionHash == model.entity(named: "Dog")?.versionHash)
  }

  @Test func declarationsOfEarlierVersionsDecodeWithDefaults() throws {
    let text = """
      {"entities":[{"name":"Dog","isAbstract":false,"attributes":[{"name":"name","type":"string","isOptional":false}],"relationships":[],
      "uniquenessConstraints":[],"indexes":[{"name":"i","properties":["name"]}]}],"versionIdentifiers":[]}
      """
    let model = try JSONDecoder().decode(CodableModel.self, from: Data(text.utf8)).model
    #expect(model.declarations.first?.indexes.first == FetchIndexDescription("i", ["name"]))
  }
}
