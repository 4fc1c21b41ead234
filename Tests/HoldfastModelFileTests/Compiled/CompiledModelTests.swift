import Foundation
import HoldfastModelFile
import HoldfastPropertyList
import HoldfastStore
import Testing

@Suite struct CompiledModelTests {
  private static func read(_ change: (ZooArchive) -> Void = { _ in }) throws -> CompiledModel {
    let zoo = ZooArchive()
    change(zoo)
    return try CompiledModel(bytes: zoo.bytes(), path: "Zoo.mom")
  }

  private static func failure(_ change: (ZooArchive) -> Void) -> ModelFileError? {
    do {
      _ = try read(change)
      return nil
    } catch { return error as? ModelFileError }
  }

  private func attribute(_ name: String, _ entity: String = "Dog", in compiled: CompiledModel) throws -> AttributeDescription {
    try #require(compiled.model.declarations.first { $0.name == entity }?.attributes.first { $0.name == name })
  }

  @Test func entitiesAreRead() throws {
    let compiled = try Self.read()
    #expect(compiled.notes == [])
    #expect(compiled.model.versionIdentifiers == ["v1", "v2"])
    #expect(compiled.model.configurations == [ConfigurationDescription("walks", ["Walk", "Dog"])])
    let animal = try #require(compiled.model.declarations.first { $0.name == "Animal" })
    #expect(animal.isAbstract && animal.superentity == nil && animal.userInfo == ["author": "Ada"])
    #expect(animal.uniquenessConstraints == [["name"]] && animal.versionHashModifier == "second" && animal.renamingIdentifier == nil)
    #expect(animal.indexes == [FetchIndexDescription("byName", elements: [FetchIndexElement("name", isAscending: false)])])
    #expect(animal.managedObjectClassName == "Zoo.Animal")
    let dog = try #require(compiled.model.declarations.first { $0.name == "Dog" })
    #expect(dog.superentity == "Animal" && dog.renamingIdentifier == "Hound")
    // Inherited properties aren't declared again.
    #expect(!dog.attributes.contains { $0.name == "name" } && compiled.model.entity(named: "Dog")?.slot(named: "name") == 0)
    let walk = try #require(compiled.model.declarations.first { $0.name == "Walk" })
    #expect(walk.managedObjectClassName == nil)
    #expect(walk.indexes == [FetchIndexDescription("minutes_dog", ["minutes", "dog"]), FetchIndexDescription("minutes", ["minutes"])])
  }

  @Test func defaultValuesHaveTheTypeOfTheirAttribute() throws {
    let compiled = try Self.read()
    let expected: [(String, StoreValue)] = [
      ("age", .int16(3)), ("weight", .decimal(Decimal(string: "12.5") ?? 0)), ("born", .date(86_400)), ("isGood", .bool(true)),
      ("chip", .uuid(try #require(UUID(uuidString: "00010203-0405-0607-0809-0A0B0C0D0E0F")))), ("home", .uri("https://example.org")),
      ("size", .float(0.1)),
    ]
    for (name, value) in expected { #expect(try attribute(name, in: compiled).defaultValue == value, "\(name)") }
    #expect(try attribute("name", "Animal", in: compiled).defaultValue == .string("Rex"))
    #expect(try attribute("photo", in: compiled).defaultValue == nil)
  }

  @Test func rulesBecomeTheBoundsThatXcodeMadeThemOf() throws {
    let compiled = try Self.read()
    #expect(
      try attribute("name", "Animal", in: compiled).validation
        == AttributeValidation(minimumLength: 1, maximumLength: 50, regularExpression: "[A-Z].*"))
    #expect(try attribute("age", in: compiled).validation == .range(.int16(0), .int16(40)))
    #expect(try attribute("weight", in: compiled).validation == .range(.decimal(-5), .decimal(900)))
    #expect(try attribute("born", in: compiled).validation == .range(.date(86_400), .date(1e9)))
  }

  /// The bug: the bounds became floating-point numbers, which rounded the first one to ...992 and made the second one too large.
  @Test func boundsOfIntegersThatAreArchivedAsDecimalsKeepTheirDigits() throws {
    let compiled = try Self.read { zoo in
      let b = zoo.builder
      func bound(_ number: UInt64, _ type: Int64) -> PropertyList {
        let mantissa = (0..<16).map { $0 < 8 ? UInt8(truncatingIfNeeded: number >> (8 * UInt64($0))) : 0 }
        let decimal = b.object(
          "NSDecimalNumber",
          [
            "NS.mantissa": .data(mantissa), "NS.exponent": .integer(0), "NS.length": .integer(4), "NS.negative": .bool(false),
            "NS.compact": .bool(true), "NS.mantissa.bo": .integer(1),
          ])
        return b.comparison(b.selfExpression(), type, b.constant(decimal))
      }
      zoo.extra["age"] = [
        "NSAttributeType": .integer(300),
        "NSValidationPredicates": b.list([bound(9_007_199_254_740_993, 3), bound(UInt64(Int64.max), 1)]),
      ]
    }
    #expect(try attribute("age", in: compiled).validation == .range(.int64(9_007_199_254_740_993), .int64(.max)))
    #expect(compiled.notes == [])
  }

  @Test func settingsOfAttributesAreRead() throws {
    let compiled = try Self.read()
    let photo = try attribute("photo", in: compiled), mood = try attribute("mood", in: compiled),
      colour = try attribute("colour", in: compiled)
    #expect(photo.allowsExternalBinaryDataStorage && photo.preservesValueInHistoryOnDeletion && photo.allowsCloudEncryption)
    #expect(mood.isTransient && mood.type == .undefined)
    #expect(colour.type == .transformable && colour.valueTransformerName == "ColourTransformer" && colour.valueClassName == "Colour")
    #expect(try attribute("age", in: compiled).isOptional && !photo.isOptional)
    #expect(try attribute("walkCount", in: compiled).derivationExpression == "count:(walks)")
  }

  /// The bug: the model couldn't be read, because Core Data's text of the expression has a # before the name.
  @Test func anAttributeMayBeDerivedFromOneWhoseNameIsReserved() throws {
    let compiled = try Self.read { zoo in
      zoo.extra["walkCount"] = ["NSDerivationExpression": zoo.builder.keyPath("size"), "NSAttributeType": .integer(600)]
    }
    #expect(try attribute("walkCount", in: compiled).derivationExpression == "#size")
    let dog = try #require(compiled.model.entity(named: "Dog"))
    #expect(dog.derivedAttributes.map(\.derivation) == [.copy("size")])
  }

  @Test func relationshipsAndRequestsAreRead() throws {
    let compiled = try Self.read()
    let dog = try #require(compiled.model.declarations.first { $0.name == "Dog" })
    #expect(
      dog.relationships == [.toMany("walks", to: "Walk", inverse: "dog", isOptional: true, deleteRule: .cascade, isOrdered: true)])
    let walk = try #require(compiled.model.declarations.first { $0.name == "Walk" })
    #expect(walk.relationships.first?.minCount == 1 && walk.relationships.first?.isToMany == false)
    var request = FetchRequestDescription("fetchedPropertyFetchRequest", entity: "Dog", predicateFormat: "name == $FETCH_SOURCE.name")
    request.fetchLimit = 7
    #expect(dog.fetchedProperties == [FetchedPropertyDescription("namesakes", request)])
    #expect(compiled.model.fetchRequestTemplate(named: "old")?.predicateFormat == "age > $AGE")
  }

  // MARK: Settings that a model can't have

  @Test func aRuleThatIsNoBoundIsNotedWithItsText() throws {
    let compiled = try Self.read { zoo in
      let b = zoo.builder
      let contains = b.comparison(b.selfExpression(), 99, b.constant(b.text("a")), options: 3)
      let short = b.comparison(b.keyPath("length"), 1, b.constant(b.plain(.integer(9)))), odd = b.object("NSBlockPredicate", [:])
      zoo.extra["name"] = [
        "NSValidationPredicates": b.list([b.compound(1, [short]), contains, b.compound(0, [contains]), odd]),
        "NSValidationWarnings": b.list([b.text("Too long.")]),
      ]
    }
    #expect(try attribute("name", "Animal", in: compiled).validation == .length(nil, 9))
    #expect(
      compiled.notes.map(\.description) == [
        "attribute \"name\" of entity \"Animal\": The rule \"SELF CONTAINS[cd] \"a\"\" was omitted, because it isn't a bound, a length or a pattern.",
        "attribute \"name\" of entity \"Animal\": The rule \"NOT (SELF CONTAINS[cd] \"a\")\" was omitted, because it isn't a bound, a length or a pattern.",
        "attribute \"name\" of entity \"Animal\": A rule was omitted. Predicates of the class \"NSBlockPredicate\" aren't supported.",
        "attribute \"name\" of entity \"Animal\": The message \"Too long.\" of a rule was omitted.",
      ])
  }

  @Test func twoBoundsOfAKindAreNoted() throws {
    let compiled = try Self.read { zoo in
      let b = zoo.builder
      let bounds = [3, 4].map { b.comparison(b.selfExpression(), 3, b.constant(b.plain(.integer($0)))) }
      zoo.extra["age"] = ["NSValidationPredicates": b.list(bounds)]
    }
    #expect(try attribute("age", in: compiled).validation == .range(.int16(3), nil))
    #expect(compiled.notes.map(\.reason) == ["The rule \"SELF >= 4\" was omitted, because the attribute has another rule of this kind."])
  }

  @Test func whatIsNotKnownIsNoted() throws {
    let compiled = try Self.read { zoo in
      let b = zoo.builder
      zoo.extra["age"] = ["NSNewSetting": .bool(true), "NSFlagsKey": .integer(33), "NSDefaultValue": b.text("young")]
      zoo.extra["colour"] = ["NSDefaultValue": b.object("UIColor", ["red": .real(1)])]
      zoo.extra["Animal"] = ["NSUserInfo": b.dictionary(["n": b.plain(.integer(1))])]
      zoo.extra["index"] = ["NSPartialIndexPredicate": b.object("NSTruePredicate", [:])]
      zoo.extra["element"] = ["NSIndexedProperty": b.object("NSExpressionDescription", [:])]
      zoo.extra["request"] = [
        "NSSortDescriptors": b.list([b.object("NSSortDescriptor", [:])]), "NSFetchRequestFlags": .integer(31),
        "NSPredicate": b.object("NSBlockPredicate", [:]),
      ]
      zoo.extra["model"] = ["NSOther": b.text("x")]
    }
    let reasons = Set(compiled.notes.map(\.reason))
    for expected in [
      "The unknown setting \"NSNewSetting\" was omitted.", "Unknown bits in the flags 33 were omitted.",
      "The default value doesn't match the type and was omitted.", "The default value of class \"UIColor\" was omitted.",
      "The value for \"n\" in the user info isn't text and was omitted.",
      "The condition of the index \"byName\" was omitted, so the index contains all objects.",
      "The index \"byName\" has an expression or an unknown kind and was omitted.", "The order was omitted.",
      "The flags 31 are unknown. The default flags are used.",
      "The predicate was omitted, so the request finds nothing. Predicates of the class \"NSBlockPredicate\" aren't supported.",
      "The unknown setting \"NSOther\" was omitted.",
    ] { #expect(reasons.contains(expected), "\(expected)") }
    #expect(compiled.model.fetchRequestTemplate(named: "old")?.predicateFormat == "FALSEPREDICATE")
  }

  @Test func transientRelationshipsAreRead() throws {
    let compiled = try Self.read { zoo in
      for name in ["walks", "dog"] { zoo.extra[name] = ["NSIsTransient": .bool(true)] }
      // Otherwise it would count the walks, which are transient here.
      zoo.extra["walkCount"] = ["NSDerivationExpression": zoo.builder.keyPath("name"), "NSAttributeType": .integer(700)]
    }
    let (dog, walk) = (try #require(compiled.model.entity(named: "Dog")), try #require(compiled.model.entity(named: "Walk")))
    #expect(dog.transientRelationships.map(\.name) == ["walks"] && dog.relationship(named: "walks") == nil)
    #expect(walk.transientRelationships.map(\.name) == ["dog"] && walk.declaration.indexes.contains { $0.isIgnored })
  }

  @Test func theOrderOfAToOneRelationshipIsReadForTheVersionHash() throws {
    let compiled = try Self.read { zoo in zoo.extra["dog"] = ["NSIsOrdered": .bool(true)] }
    let walk = try #require(compiled.model.entity(named: "Walk")), usual = try #require(try Self.read().model.entity(named: "Walk"))
    #expect(walk.declaration.relationships.map(\.isOrdered) == [true] && walk.relationships.map(\.isOrdered) == [false])
    #expect(walk.versionHash != usual.versionHash)
  }

  @Test func anIndexThatNoStoreCanKeepIsIgnored() throws {
    let compiled = try Self.read { zoo in
      let b = zoo.builder
      let indexes = ["byName", "byWalks"].map { zoo.index($0, [($0 == "byName" ? "age" : "walks", true)]) }
      zoo.extra["Dog"] = ["NSFetchIndexDescriptions": b.list(indexes + [zoo.index("BYNAME", [("colour", true)])])]
    }
    let dog = try #require(compiled.model.entity(named: "Dog"))
    #expect(dog.declaration.indexes.map(\.isIgnored) == [false, true, true], "\(dog.declaration.indexes)")
    #expect(dog.indexes.map(\.name) == ["byName"])
  }

  /// Older Core Data reads such duplicates. A small archive may refer to one index many times.
  @Test func duplicatesOfIndexesAreLeftOutWithoutComparingAllOfThem() throws {
    func names(_ indexes: (ZooArchive) -> [PropertyList]) throws -> [String] {
      let compiled = try Self.read { zoo in zoo.extra["Dog"] = ["NSFetchIndexDescriptions": zoo.builder.list(indexes(zoo))] }
      return try #require(compiled.model.entity(named: "Dog")).declaration.indexes.map(\.name)
    }
    #expect(try names { [$0.index("age", [("age", true)]), $0.index("byAge", [("age", true)])] } == ["byAge"])
    #expect(try names { [$0.index("byAge", [("age", true)]), $0.index("age", [("age", false)])] } == ["byAge", "age"])
    #expect(try names { [$0.index("age", [("age", true)])] } == ["age"])
    let count = 40_000
    let many = try names { zoo in
      Array(repeating: zoo.index("colour", [("colour", true)]), count: count) + [zoo.index("age", [("age", true)])]
    }
    #expect(many.count == count + 1 && many.last == "age")
  }

  @Test func predicatesAreWrittenAsTheyAreRead() throws {
    func format(_ make: @escaping (ArchiveBuilder) -> PropertyList) throws -> String? {
      try Self.read { zoo in zoo.extra["request"] = ["NSPredicate": make(zoo.builder)] }.model.fetchRequestTemplate(named: "old")?
        .predicateFormat
    }
    let one = { (b: ArchiveBuilder) in b.comparison(b.keyPath("age"), 0, b.constant(b.plain(.integer(1)))) }
    #expect(try format { b in b.compound(2, [one(b), b.compound(1, [one(b), one(b)])]) } == "age < 1 OR (age < 1 AND age < 1)")
    #expect(
      try format { b in b.comparison(b.keyPath("walks.minutes"), 5, b.constant(ArchiveBuilder.null), modifier: 2) }
        == "ANY walks.minutes != NULL")
    #expect(try format { b in b.comparison(b.keyPath("in"), 7, b.constant(b.text("a\"b\\*"))) } == "#in LIKE \"a\\\"b\\\\*\"")
    #expect(
      try format { b in
        b.comparison(b.keyPath("age"), 10, b.object("NSAggregateExpression", ["NSCollection": b.list([b.constant(b.plain(.real(1.5)))])]))
      }
        == "age IN {1.5}")
    #expect(
      try format { b in b.comparison(b.keyPath("age"), 100, b.constant(b.list([b.plain(.integer(1)), b.plain(.integer(2))]))) }
        == "age BETWEEN {1, 2}")
    #expect(
      try format { b in b.comparison(b.function("add:to:", [b.keyPath("age"), b.constant(b.plain(.bool(true)))]), 4, b.function("now", []))
      }
        == "(age + TRUE) == now()")
    #expect(try format { b in b.object("NSTruePredicate", [:]) } == "TRUEPREDICATE")
  }

  // MARK: Errors

  @Test func anErrorNamesFilePartAndObject() throws {
    let error = Self.failure { $0.extra["age"] = ["NSAttributeType": .integer(77)] }
    #expect(error?.code == .unsupported && error?.path == "Zoo.mom")
    #expect(error?.element?.hasPrefix("attribute \"age\" of entity \"Dog\" (object ") == true)
    #expect(error?.reason == "The type 77 isn't supported.")
  }

  @Test func compositeAttributesAreRefusedByName() {
    #expect(
      Self.failure { $0.extra["age"] = ["NSAttributeType": .integer(2100)] }?.reason
        == "Composite attributes in compiled models aren't supported.")
    #expect(Self.failure { $0.extra["age"] = ["class": .string("NSCompositeAttributeDescription")] }?.code == .unsupported)
  }

  @Test func contradictionsAreRefused() {
    let error = Self.failure { zoo in zoo.extra["walks"] = ["_NSInverseRelationshipName": zoo.builder.text("minutes")] }
    #expect(error?.code == .contradictory && error?.cause is ModelError)
    #expect(Self.failure { zoo in zoo.extra["age"] = ["NSPropertyName": zoo.builder.text("other")] }?.code == .malformed)
    #expect(Self.failure { zoo in zoo.extra["age"] = ["NSPropertyName": .uid(999_999)] }?.code == .malformed)
    #expect(Self.failure { zoo in zoo.extra["age"] = ["NSIsOptional": zoo.builder.text("x")] }?.code == .malformed)
  }

  @Test func otherFilesAreNoCompiledModels() throws {
    func code(_ bytes: [UInt8]) -> ModelFileError.Code? {
      do throws(ModelFileError) {
        _ = try CompiledModel(bytes: bytes)
        return nil
      } catch { return error.code }
    }
    #expect(code([]) == .notAModel)
    #expect(code(Array("<model/>".utf8)) == .notAModel)
    #expect(code(PropertyList.dictionary([:]).binary) == .notAModel)
    #expect(code(try KeyedArchive.bytes(of: .array([]))) == .notAModel)
    let editor = ArchiveBuilder()
    #expect(code(editor.archive(root: editor.object("XDPMModel", [:])).binary) == .oldFormat)
    #expect(code(Array(ZooArchive().bytes().dropLast(3))) == .malformed)
  }

  @Test func anXMLArchiveIsReadToo() throws {
    let text = try ZooArchive().list().xml()
    #expect(try CompiledModel(bytes: Array(text.utf8)).model == Self.read().model)
  }

  @Test func limitsHoldForEntitiesPropertiesAndDepth() {
    var few = ModelFileOptions()
    few.maximumEntityCount = 2
    #expect(throws: ModelFileError.self) { try CompiledModel(bytes: ZooArchive().bytes(), options: few) }
    few = ModelFileOptions()
    few.maximumPropertyCount = 10
    #expect(throws: ModelFileError.self) { try CompiledModel(bytes: ZooArchive().bytes(), options: few) }
    let deep = Self.failure { zoo in
      let b = zoo.builder
      let predicate = (0..<100).reduce(b.object("NSTruePredicate", [:])) { inner, _ in b.compound(0, [inner]) }
      zoo.extra["name"] = ["NSValidationPredicates": b.list([predicate])]
    }
    #expect(deep?.code == .tooLarge)
    // Each of 25 predicates contains the next one four times.
    let wide = Self.failure { zoo in
      let b = zoo.builder
      let predicate = (0..<25).reduce(b.object("NSTruePredicate", [:])) { inner, _ in b.compound(1, [inner, inner, inner, inner]) }
      zoo.extra["name"] = ["NSValidationPredicates": b.list([predicate])]
    }
    #expect(wide?.code == .tooLarge)
  }

  /// Many objects can reference one.
  @Test func whatIsSharedCountsEachTimeThatItIsRead() throws {
    var few = ModelFileOptions()
    few.maximumAttributeCount = 20_000
    func shared(_ key: String, entities: Int, _ value: (ArchiveBuilder) -> PropertyList) -> ModelFileError? {
      let b = ArchiveBuilder()
      let one = value(b)
      let entries = (0..<entities).map { number in
        ("E\(number)", b.object("NSEntityDescription", ["NSEntityName": b.text("E\(number)"), key: one]))
      }
      let root = b.object(
        "NSManagedObjectModel",
        [
          "NSEntities": b.object(
            "NSDictionary", ["NS.keys": .array(entries.map { b.text($0.0) }), "NS.objects": .array(entries.map { $0.1 })])
        ])
      let error = #expect(throws: ModelFileError.self) { try CompiledModel(bytes: b.archive(root: root).binary, options: few) }
      return error
    }
    func keys(_ b: ArchiveBuilder, _ count: Int) -> [String: PropertyList] {
      Dictionary(uniqueKeysWithValues: (0..<count).map { ("k\($0)", ArchiveBuilder.null) })
    }
    let info = shared("NSUserInfo", entities: 50) { b in
      let texts = (0..<1000).map { b.text("k\($0)") }
      return b.object("NSDictionary", ["NS.keys": .array(texts), "NS.objects": .array(texts)])
    }
    #expect(info?.code == .tooLarge && info?.description.contains("NSUserInfo") == true, "\(String(describing: info))")
    let long = shared("NSUserInfo", entities: 100) { b in
      b.object("NSDictionary", ["NS.keys": .array([b.text("k")]), "NS.objects": .array([b.text(String(repeating: "x", count: 1 << 20))])])
    }
    #expect(long?.code == .tooLarge, "\(String(describing: long))")
    let unknown = shared("NSProperties", entities: 50) { b in
      let property = b.object(
        "NSAttributeDescription",
        keys(b, 1000).merging(["NSPropertyName": b.text("x"), "NSAttributeType": .integer(700), "NSIsOptional": .bool(true)]) { $1 })
      return b.object("NSDictionary", ["NS.keys": .array([b.text("x")]), "NS.objects": .array([property])])
    }
    #expect(unknown?.code == .tooLarge, "\(String(describing: unknown))")
    let missing = shared("NSUserInfo", entities: 50) { b in
      let nothing = b.text("nothing here"), list = b.list(Array(repeating: nothing, count: 1000))
      let mapping = b.object("NSKnownKeysMappingStrategy1", ["keys": list])
      return b.object("NSKnownKeysDictionary1", ["values": list, "searchMapping": mapping, "emptyToken": nothing])
    }
    #expect(missing?.code == .tooLarge, "\(String(describing: missing))")
  }

  @Test func notesAreBounded() throws {
    let compiled = try Self.read { zoo in
      zoo.extra["name"] = Dictionary(uniqueKeysWithValues: (0..<5000).map { ("k\($0)", .integer(1)) })
    }
    #expect(compiled.notes.count == 1001 && compiled.notes.last?.element == "model")
  }

  @Test func entitiesThatInheritInACircleAreRefused() {
    #expect(
      Self.failure { zoo in
        zoo.extra["Animal"] = ["NSSuperentity": zoo.builder.object("NSEntityDescription", ["NSEntityName": zoo.builder.text("Dog")])]
      } != nil)
  }
}
