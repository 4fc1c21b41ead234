import Foundation
import Holdfast
import Testing

/// A wardrobe whose entities have every validation rule of a model, and classes with their own rules.
private enum Wardrobe {
  static let place = CompositeDescription(
    "Shelf", [AttributeDescription("row", .integer16), AttributeDescription("label", .string, isOptional: true)])

  static let model: ManagedObjectModel = {
    do {
      return try ManagedObjectModel(
        entities: [
          EntityDescription(
            "Tie",
            attributes: [
              AttributeDescription("rating", .double, isOptional: true, validation: .range(.double(0), .double(5))),
              AttributeDescription("timesWorn", .integer32, isOptional: true, validation: .range(.int32(0), .int32(365))),
              AttributeDescription("weight", .float, isOptional: true, validation: .range(.float(0.5), nil)),
              AttributeDescription(
                "price", .decimal, isOptional: true,
                validation: .range(.decimal(Decimal(string: "0.01") ?? 0), .decimal(Decimal(string: "99.99") ?? 0))),
              AttributeDescription("lastWorn", .date, isOptional: true, validation: .range(.date(0), .date(1000))),
              AttributeDescription("name", .string, validation: .length(2, 8)),
              AttributeDescription("code", .string, isOptional: true, validation: .pattern("[A-Z]{2}[0-9]+")),
              AttributeDescription("address", .uri, isOptional: true, validation: .length(nil, 30)),
              .composite("place", "Shelf", isOptional: true),
            ], relationships: [.toOne("box", to: "Box", inverse: "ties")]),
          EntityDescription(
            "Box", attributes: [AttributeDescription("name", .string, isOptional: true), .composite("spot", "Shelf")],
            relationships: [.toMany("ties", to: "Tie", inverse: "box", minCount: 2, maxCount: 3)]),
        ], composites: [place])
    } catch { fatalError("\(error)") }
  }()
}

private struct Shortage: Error {}

private final class Tie: ManagedObject {
  override func validate(_ value: PropertyValue, forKey key: String) throws {
    if key == "rating", value == .double(3.5) { throw PersistenceError.invalid("Nobody rates a tie 3.5.") }
    if key == "timesWorn", value == .int32(13) { throw Shortage() }
    if key == "box", case .single(.objectID(let id)) = value, id.entityName != "Box" { throw Shortage() }
  }
  override func validateForInsert() throws { try agree() }
  override func validateForUpdate() throws { try agree() }
  override func validateForDelete() throws {
    if try value(forKey: "name") == .string("keep") { throw PersistenceError.invalid("This tie is to be kept.") }
  }
  private func agree() throws {
    if try value(forKey: "rating") == .double(5), try value(forKey: "timesWorn") == .int32(0) {
      throw PersistenceError(
        .multipleValidationFailures, reason: "",
        failures: [
          PersistenceError.invalid("A tie that was never worn is not rated 5.", property: "rating"), PersistenceError.invalid("Wear it."),
        ])
    }
  }
}

private final class Box: ManagedObject {}

@Suite struct ValidationTests {
  private static func context(_ store: TestStore) throws -> ManagedObjectContext {
    try store.makePlace(model: Wardrobe.model, classes: [Tie.self, Box.self]).context()
  }

  struct Refused: Sendable, CustomTestStringConvertible {
    let property: String
    let value: StoreValue
    let number: Int
    let predicate: String?
    var testDescription: String { "\(property) \(number)" }
  }

  private static let refused: [Refused] = [
    Refused(property: "rating", value: .double(5.000001), number: 1610, predicate: "SELF <= 5"),
    Refused(property: "rating", value: .double(-0.1), number: 1620, predicate: "SELF >= 0"),
    Refused(property: "rating", value: .double(.nan), number: 1610, predicate: "SELF <= 5"),
    Refused(property: "rating", value: .double(.infinity), number: 1610, predicate: "SELF <= 5"),
    Refused(property: "timesWorn", value: .int32(366), number: 1610, predicate: "SELF <= 365"),
    Refused(property: "timesWorn", value: .int32(-1), number: 1620, predicate: "SELF >= 0"),
    Refused(property: "weight", value: .float(0.4), number: 1620, predicate: "SELF >= 0.5"),
    Refused(property: "price", value: .decimal(100), number: 1610, predicate: "SELF <= 99.99"),
    Refused(property: "price", value: .decimal(0), number: 1620, predicate: "SELF >= 0.01"),
    Refused(property: "price", value: .decimal(.nan), number: 1610, predicate: "SELF <= 99.99"),
    Refused(property: "lastWorn", value: .date(1001), number: 1630, predicate: "SELF <= 2001-01-01T00:16:40Z"),
    Refused(property: "lastWorn", value: .date(-1), number: 1640, predicate: "SELF >= 2001-01-01T00:00:00Z"),
    Refused(property: "lastWorn", value: .date(.nan), number: 1650, predicate: nil),
    Refused(property: "name", value: .string("123456789"), number: 1660, predicate: "length <= 8"),
    // Five characters, nine UTF-16 code units, which is what Core Data counts.
    Refused(property: "name", value: .string("a🐕🐕🐕🐕"), number: 1660, predicate: "length <= 8"),
    Refused(property: "name", value: .string("é"), number: 1670, predicate: "length >= 2"),
    Refused(property: "name", value: .null, number: 1570, predicate: nil),
    Refused(property: "code", value: .string("AB12x"), number: 1680, predicate: "SELF MATCHES \"[A-Z]{2}[0-9]+\""),
    Refused(property: "address", value: .uri("http://a b"), number: 1690, predicate: nil),
    Refused(property: "address", value: .uri("50%"), number: 1690, predicate: nil),
    Refused(property: "address", value: .uri("https://example.org/0123456789abcdef"), number: 1660, predicate: "length <= 30"),
  ]

  private static let right: [(String, StoreValue)] = [
    ("rating", .double(0)), ("rating", .double(5)), ("rating", .null), ("timesWorn", .int32(365)), ("weight", .float(0.5)),
    ("weight", .float(.greatestFiniteMagnitude)), ("price", .decimal(Decimal(string: "99.99") ?? 0)), ("lastWorn", .date(0)),
    ("lastWorn", .date(1000)), ("name", .string("éé")), ("name", .string("🐕🐕🐕🐕")), ("code", .string("ZZ0")),
    ("address", .uri("https://example.org/%20?q#ä")), ("address", .uri("")),
  ]

  @Test(arguments: refused) func aValueBeyondARuleIsRefusedWithNumberKeyAndValue(refused: Refused) throws {
    let context = try Self.context(.memory)
    let tie = context.insert(Tie.self)
    if refused.property != "name" { try tie.setValue(.string("Bow"), forKey: "name") }
    try tie.setValue(refused.value, forKey: refused.property)
    let error = try #require(throws: PersistenceError.self) { try context.save() }
    #expect(error.coreDataCode == refused.number && error.property == refused.property && error.objectID == tie.objectID, "\(error)")
    #expect(error.validation?.predicate == refused.predicate)
    if refused.value != .null {
      #expect(error.coreDataUserInfo["NSValidationErrorKey"] as? String == refused.property)
      #expect(
        "\(String(describing: error.coreDataUserInfo["NSValidationErrorValue"]))" == "\(Optional<any Sendable>(refused.value) as Any)")
    }
    if case .string(let text) = refused.value, text.count > 2 {
      #expect(!error.description.contains(text) && !error.userMessage().contains(text))
    }
    let asked = try #require(throws: PersistenceError.self) { try tie.validateValue(refused.value, forKey: refused.property) }
    #expect(asked.coreDataCode == refused.number)
  }

  @Test func whatIsNoNumberIsBeyondTheBoundThatThereIs() throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Scale",
        attributes: [
          AttributeDescription("least", .double, isOptional: true, validation: .range(.double(1), nil)),
          AttributeDescription("exact", .decimal, isOptional: true, validation: .range(.decimal(0), nil)),
          AttributeDescription("most", .float, isOptional: true, validation: .range(nil, .float(0.3))),
        ])
    ])
    let context = try TestStore.memory.makePlace(model: model, classes: []).context()
    let scale = try context.insert(entityNamed: "Scale")
    func refusal(_ key: String, _ value: StoreValue) throws -> PersistenceError {
      try #require(throws: PersistenceError.self) { try scale.validateValue(value, forKey: key) }
    }
    #expect(try refusal("least", .double(.nan)).validation?.predicate == "SELF >= 1")
    #expect(try refusal("least", .double(.nan)).userMessage() == "Least must be at least 1.")
    #expect(try refusal("exact", .decimal(.nan)).validation?.predicate == "SELF >= 0")
    let heavy = try refusal("most", .float(0.5))
    #expect(heavy.validation?.predicate == "SELF <= 0.3" && heavy.userMessage() == "Most may be at most 0.3.")
    #expect(heavy.validation?.bound == .float(0.3))
    try scale.validateValue(.float(0.3), forKey: "most")
  }

  @Test func everySlotOfALongRowIsChecked() throws {
    let numbers = (10..<80).map {
      AttributeDescription("n\($0)", .integer16, isOptional: true, validation: .range(.int16(1), .int16(9)))
    }
    let others = [AttributeDescription("when", .date, isOptional: true), AttributeDescription("zone", .integer16)]
    let model = try ManagedObjectModel(entities: [EntityDescription("Form", attributes: numbers + others)])
    let context = try TestStore.memory.makePlace(model: model, classes: []).context()
    let form = try context.insert(entityNamed: "Form")
    let missing = try #require(throws: PersistenceError.self) { try context.save() }
    #expect(missing.code == .missingMandatoryValue && missing.property == "zone")
    try form.setValue(.int16(0), forKey: "zone")
    let refused: [(String, StoreValue, PersistenceError.Code)] = [
      ("n10", .int16(0), .numberTooSmall), ("n10", .int16(10), .numberTooLarge), ("n79", .int16(0), .numberTooSmall),
      ("n79", .int16(10), .numberTooLarge), ("when", .date(.infinity), .invalidDate), ("when", .date(.nan), .invalidDate),
    ]
    for (key, value, code) in refused {
      try form.setValue(value, forKey: key)
      let error = try #require(throws: PersistenceError.self) { try context.save() }
      #expect(error.code == code && error.property == key)
      try form.setValue(.null, forKey: key)
    }
    try context.save()
  }

  /// As in ICU, whose syntax Core Data's patterns use: scalars, not user-perceived characters.
  @Test(arguments: [
    ("..", "e\u{301}", true), (".", "e\u{301}", false), (".", "\u{1F1E9}\u{1F1EA}", false), ("\u{E9}", "e\u{301}", false),
    ("[^x]{2}", "\r\n", true), ("[a-z]+", "abc", true), ("\\d+", "12", true), ("\\d", "1\u{FE0F}\u{20E3}", false),
  ]) func patternsMatchScalars(pattern: String, text: String, isRight: Bool) throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription("Note", attributes: [AttributeDescription("text", .string, validation: .pattern(pattern))])
    ])
    let context = try TestStore.memory.makePlace(model: model, classes: []).context()
    let note = try context.insert(entityNamed: "Note")
    let passes = (try? note.validateValue(.string(text), forKey: "text")) != nil
    #expect(passes == isRight)
  }

  @Test func patternsThatDifferOnlyInTheirNormalizationMatchDifferentTexts() throws {
    let texts = ["\u{E9}", "e\u{301}"], names = ["composed", "decomposed"]
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Note",
        attributes: zip(names, texts).map { AttributeDescription($0, .string, isOptional: true, validation: .pattern($1)) })
    ])
    let context = try TestStore.memory.makePlace(model: model, classes: []).context()
    let note = try context.insert(entityNamed: "Note")
    for (name, pattern) in zip(names, texts) {
      for text in texts {
        let passes = (try? note.validateValue(.string(text), forKey: name)) != nil
        #expect(passes == text.utf8.elementsEqual(pattern.utf8))
      }
    }
  }

  @Test func aTargetOfAnotherEntityIsNoValueOfARelationship() throws {
    let context = try Self.context(.memory)
    let (tie, box) = (context.insert(Tie.self), context.insert(Box.self))
    try tie.validateValue(.objectID(box.objectID), forKey: "box")
    let error = try #require(throws: PersistenceError.self) { try tie.validateValue(.objectID(tie.objectID), forKey: "box") }
    #expect(error.code == .wrongType)
  }

  @Test(arguments: right.indices) func aValueAtTheBoundIsSaved(place: Int) throws {
    let (property, value) = Self.right[place]
    let context = try Self.context(.sqlite)
    let tie = context.insert(Tie.self)
    try tie.setValue(.string("Bow"), forKey: "name")
    try tie.validateValue(value, forKey: property)
    try tie.setValue(value, forKey: property)
    try context.save()
  }

  /// The bug: counting the destinations of one object reads those of others that were fetched with it. Then theirs seemed to be counted.
  @Test(arguments: TestStore.allCases) func aListThatLosesADeletedObjectIsCountedAlsoIfTheListOfAnotherIs(store: TestStore) throws {
    let name = AttributeDescription("name", .string, isOptional: true)
    let model = try ManagedObjectModel(entities: [
      EntityDescription("Team", attributes: [name], relationships: [.toMany("players", to: "Player", inverse: "team", minCount: 2)]),
      EntityDescription("Player", attributes: [name], relationships: [.toOne("team", to: "Team", inverse: "players", isOptional: true)]),
    ])
    let place = try store.makePlace(model: model, classes: []), first = try place.context()
    for team in ["a", "b"] {
      let object = try first.insert(entityNamed: "Team")
      try object.setValue(.string(team), forKey: "name")
      for number in 1...2 {
        let player = try first.insert(entityNamed: "Player")
        try player.setValue(.string("\(team)\(number)"), forKey: "name")
        try player.setValue(.objectID(object.objectID), forKey: "team")
      }
    }
    try first.save()
    func named(_ entity: String, _ context: ManagedObjectContext) throws -> [ManagedObject] {
      let all = try context.fetch(FetchRequest<ManagedObject>(entityName: entity))
      return try all.map { ($0, "\(try $0.value(forKey: "name"))") }.sorted { $0.1 < $1.1 }.map(\.0)
    }
    for refreshes in [false, true] {
      let context = try place.context(), teams = try named("Team", context), players = try named("Player", context)
      try teams[0].setValue(.string("c"), forKey: "name")
      context.delete(players[1])
      try players[2].setValue(.null, forKey: "team")
      if refreshes { try context.refreshAllObjects() }
      let error = try #require(throws: PersistenceError.self) { try context.save() }
      #expect(error.failures.count == 2 && error.failures.allSatisfy { $0.coreDataCode == 1580 }, "\(error)")
      #expect(Set(error.failures.map(\.objectID)) == Set(teams.map(\.objectID)), "\(error)")
    }
  }

  /// As Apple's documentation of `NSRelationshipDescription` and the stores of Core Data's users show: an empty relationship is refused only
  /// if it isn't optional and has a minimum.
  @Test(arguments: TestStore.allCases) func toManyRelationshipsCanBeEmptyIfTheyAreOptionalOrHaveNoMinimum(store: TestStore) throws {
    for (isOptional, minCount, count) in [
      (true, 0, 0), (true, 2, 0), (true, 2, 1), (false, 0, 0), (false, 2, 0), (false, 2, 1), (false, 2, 2),
    ] {
      let model = try ManagedObjectModel(entities: [
        EntityDescription(
          "Team", relationships: [.toMany("members", to: "Member", inverse: "team", isOptional: isOptional, minCount: minCount)]),
        EntityDescription("Member", relationships: [.toOne("team", to: "Team", inverse: "members")]),
      ])
      let context = try store.makePlace(model: model, classes: []).context()
      let team = try context.insert(entityNamed: "Team")
      for _ in 0..<count { try team.toMany(forKey: "members").insert(context.insert(entityNamed: "Member")) }
      let isRefused = count < minCount && !(isOptional && count == 0)
      if isRefused {
        let error = try #require(throws: PersistenceError.self) { try context.save() }
        #expect(error.coreDataCode == 1580 && error.property == "members" && error.validation?.bound == .int64(2))
      } else {
        try context.save()
      }
      #expect(team.isInserted == isRefused)
    }
  }

  @Test(arguments: TestStore.allCases) func allFailuresOfAllObjectsComeTogetherAndNothingIsSaved(store: TestStore) throws {
    let context = try Self.context(store)
    let kept = context.insert(Tie.self)
    try kept.setValue(.string("keep"), forKey: "name")
    try context.save()
    let tie = context.insert(Tie.self), box = context.insert(Box.self)
    try tie.setValue(.string("x"), forKey: "name")
    try tie.setValue(.double(3.5), forKey: "rating")
    try tie.setValue(.int32(13), forKey: "timesWorn")
    try tie.setValue(.objectID(box.objectID), forKey: "box")
    context.delete(kept)
    let error = try #require(throws: PersistenceError.self) { try context.save() }
    #expect(error.coreDataCode == 1560)
    let found = error.failures.map { "\($0.property ?? "-") \($0.coreDataCode)" }
    #expect(found == ["rating 1550", "timesWorn 1550", "- 1550", "name 1670", "spot.row 1570", "ties 1580"], "\(error)")
    #expect(error.failures[1].cause is Shortage && (error.coreDataUserInfo["NSDetailedErrors"] as? [PersistenceError])?.count == 6)
    #expect(tie.isInserted && kept.isDeleted)
    let other = try ManagedObjectContext(coordinator: context.persistentStoreCoordinator, classes: [Tie.self, Box.self])
    #expect(try other.count(for: FetchRequest<Tie>()) == 1)
  }

  @Test func theRulesOfAClassAreAskedForNewAndForChangedObjects() throws {
    let context = try Self.context(.memory)
    let tie = context.insert(Tie.self)
    try tie.setValue(.string("Bow"), forKey: "name")
    try context.save()
    try tie.setValue(.double(5), forKey: "rating")
    try tie.setValue(.int32(0), forKey: "timesWorn")
    let error = try #require(throws: PersistenceError.self) { try context.save() }
    #expect(error.failures.map(\.reason) == ["A tie that was never worn is not rated 5.", "Wear it."])
    #expect(error.failures.allSatisfy { $0.objectID == tie.objectID })
    try tie.setValue(.int32(1), forKey: "timesWorn")
    try context.save()
  }

  @Test func aCompositeAttributeIsCompleteOrMissing() throws {
    let context = try Self.context(.json)
    let tie = context.insert(Tie.self)
    try tie.setValue(.string("Bow"), forKey: "name")
    try context.save()
    try tie.setValue(.string("left"), forKey: "place.label")
    let error = try #require(throws: PersistenceError.self) { try context.save() }
    #expect(error.coreDataCode == 1570 && error.property == "place.row")
    try tie.setValue(.int16(3), forKey: "place.row")
    try context.save()
  }

  @Test func sentencesNamePropertyAndBoundInTheLanguageThatIsGiven() throws {
    let context = try Self.context(.memory)
    let tie = context.insert(Tie.self)
    func message(_ value: StoreValue, _ key: String, _ dictionary: [String: String] = [:]) -> String? {
      do {
        try tie.validateValue(value, forKey: key)
        return nil
      } catch { return (error as? PersistenceError)?.userMessage(dictionary) }
    }
    #expect(message(.double(6), "rating") == "Rating may be at most 5.")
    #expect(message(.int32(-1), "timesWorn") == "Times worn must be at least 0.")
    #expect(message(.string("a"), "name") == "Name has too few characters: the minimum is 2.")
    #expect(message(.date(-1), "lastWorn") == "Last worn may not be earlier than 2001-01-01T00:00:00Z.")
    #expect(message(.double(3.5), "rating") == "Nobody rates a tie 3.5.")
    let german = [
      "Property/rating/Entity/Tie": "Die Bewertung",
      "ErrorString/{property} may be at most {bound}.": "{property} darf höchstens {bound} sein.",
      "ErrorString/Nobody rates a tie 3.5.": "So bewertet niemand.",
    ]
    #expect(message(.double(6), "rating", german) == "Die Bewertung darf höchstens 5 sein.")
    #expect(message(.double(3.5), "rating", german) == "So bewertet niemand.")
    #expect(message(.double(1), "rating", german) == nil)
  }

  @Test func everyKindOfFailureHasASentenceWithoutOpenMarks() {
    for (code, sentence) in PersistenceError.validationSentences {
      var error = PersistenceError(code, property: "someName", reason: "reason")
      error.validation = ValidationFailure(bound: .int64(3))
      #expect((1550...1699).contains(error.coreDataCode), "\(code)")
      #expect(!error.userMessage().contains("{") && !error.userMessage().contains("reason"), "\(sentence)")
    }
  }

  @Test func askingForAValueOfTheWrongKindOrAnUnknownKeyIsAnError() throws {
    let context = try Self.context(.memory)
    let tie = context.insert(Tie.self)
    #expect(try #require(throws: PersistenceError.self) { try tie.validateValue(.string("x"), forKey: "rating") }.code == .wrongType)
    #expect(try #require(throws: PersistenceError.self) { try tie.validateValue(.string("x"), forKey: "colour") }.code == .unknownProperty)
    #expect(!tie.isUpdated)
  }

  /// The bug: the whole number was taken as the key of an object.
  @Test func aWholeNumberIsNoValueOfARelationship() throws {
    let context = try Self.context(.memory), tie = context.insert(Tie.self)
    let error = try #require(throws: PersistenceError.self) { try tie.validateValue(.int64(1), forKey: "box") }
    #expect(error.code == .wrongType && error.property == "box")
  }
}
