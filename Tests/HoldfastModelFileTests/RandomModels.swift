import Foundation
import HoldfastStore
import TestSupport

/// Models with any combination of settings, in Xcode's order. The odd ones also use settings that a model file may not support.
struct RandomModels {
  private var generator: SeededGenerator
  private let isOdd: Bool
  private var nameCount = 0
  private let entityNames: [String]
  private let compositeNames: [String]

  /// The model for a seed.
  static func model(seed: UInt64, isOdd: Bool) throws -> ManagedObjectModel {
    var models = RandomModels(seed: seed, isOdd: isOdd)
    return try models.model()
  }

  private init(seed: UInt64, isOdd: Bool) {
    var generator = SeededGenerator(seed: seed)
    self.isOdd = isOdd
    entityNames = (0..<Int.random(in: 1...4, using: &generator)).map { "E\($0)" }
    compositeNames = (0..<Int.random(in: 0...2, using: &generator)).map { "Group \($0)" }
    self.generator = generator
  }

  private mutating func model() throws -> ManagedObjectModel {
    var entities = entityNames.map { EntityDescription($0) }
    for place in entities.indices { fill(&entities[place], place) }
    for _ in entities { relate(&entities) }
    for place in entities.indices {
      entities[place].attributes.sort { $0.name.lowercased() < $1.name.lowercased() }
      entities[place].relationships.sort { $0.name.lowercased() < $1.name.lowercased() }
      entities[place].fetchedProperties.sort { $0.name.lowercased() < $1.name.lowercased() }
    }
    let composites = compositeNames.indices.map { place in
      CompositeDescription(compositeNames[place], list(0...3) { $0.element(of: place) })
    }
    let configurations = list(0...2) { $0.configuration() }, templates = list(0...2) { $0.request("template \($0.name())") }
    return try ManagedObjectModel(
      entities: entities, versionIdentifiers: list(0...(isOdd ? 2 : 1)) { $0.text() }, configurations: configurations,
      composites: composites, fetchRequestTemplates: templates)
  }

  // MARK: Entities

  private mutating func fill(_ entity: inout EntityDescription, _ place: Int) {
    if place > 0, chance(3) { entity.superentity = entityNames[Int.random(in: 0..<place, using: &generator)] }
    entity.isAbstract = chance(4)
    entity.attributes = list(0...6) { $0.attribute() }
    if let text = entity.attributes.first(where: { $0.type == .string && !$0.isTransient }), chance(2) {
      var derived = AttributeDescription.derived(
        name(), .string, pick([" uppercase:( \(text.name) )\n", text.name, "canonical:(\(text.name))"]))
      derived.isOptional = chance(2)
      derived.validation = .length(maybe { $0.whole(0...9) }, nil)
      entity.attributes.append(derived)
    }
    entity.fetchedProperties = list(0...2) { $0.fetchedProperty() }
    let kept = entity.attributes.filter {
      !$0.isTransient && !$0.isDerived && $0.type != .composite && !$0.allowsExternalBinaryDataStorage
    }.map(\.name)
    if !kept.isEmpty {
      entity.uniquenessConstraints = list(0...2) { random in random.list(1...2) { $0.pick(kept) } }
      entity.indexes = list(0...2) { random in
        FetchIndexDescription(
          random.name(),
          elements: [FetchIndexElement(random.pick(kept), isAscending: random.chance(2), kind: random.chance(3) ? .rTree : .binary)])
      }
    }
    entity.versionHashModifier = maybe { $0.text() }
    entity.renamingIdentifier = maybe { $0.text() }
    entity.managedObjectClassName = maybe { $0.text() }
    entity.userInfo = userInfo()
  }

  /// Adds a relationship, and often its inverse.
  private mutating func relate(_ entities: inout [EntityDescription]) {
    let start = Int.random(in: entities.indices, using: &generator), end = Int.random(in: entities.indices, using: &generator)
    var there = relationship(to: entityNames[end])
    there.isTransient = chance(4)
    if chance(3) { return entities[start].relationships.append(there) }
    if start == end, chance(2) {
      there.inverse = there.name
    } else {
      var back = relationship(to: entityNames[start])
      back.isTransient = there.isTransient
      (there.inverse, back.inverse) = (back.name, there.name)
      entities[end].relationships.append(back)
    }
    entities[start].relationships.append(there)
  }

  private mutating func relationship(to destination: String) -> RelationshipDescription {
    let rule = pick(DeleteRule.allCases)
    var made: RelationshipDescription
    if chance(2) {
      made = .toOne(name(), to: destination, inverse: nil, isOptional: chance(2), deleteRule: rule)
      made.minCount = whole(-1...1)
      if isOdd, chance(3) { made.isOrdered = true }
    } else {
      let count = pick([-1, 0, 5])
      made = .toMany(
        name(), to: destination, inverse: nil, isOptional: chance(2), deleteRule: rule, minCount: whole(0...3), maxCount: count,
        isOrdered: chance(2))
    }
    made.versionHashModifier = maybe { $0.text() }
    made.renamingIdentifier = maybe { $0.text() }
    made.userInfo = userInfo()
    return made
  }

  private mutating func fetchedProperty() -> FetchedPropertyDescription {
    FetchedPropertyDescription(
      name(), request(chance(3) ? "" : "fetchedPropertyFetchRequest"), isOptional: chance(2), isTransient: chance(2),
      versionHashModifier: maybe { $0.text() }, renamingIdentifier: maybe { $0.text() }, userInfo: userInfo())
  }

  private mutating func request(_ name: String) -> FetchRequestDescription {
    var made = FetchRequestDescription(name, entity: pick(entityNames), predicateFormat: maybe { $0.text() })
    made.resultType = pick([.managedObjects, .managedObjectIDs, .dictionaries, .count])
    if chance(2) { (made.fetchLimit, made.fetchBatchSize) = (whole((isOdd ? -1 : 0)...9), whole((isOdd ? -1 : 0)...9)) }
    (made.includesSubentities, made.includesPropertyValues, made.includesPendingChanges) = (chance(2), chance(2), chance(2))
    (made.returnsObjectsAsFaults, made.returnsDistinctResults) = (chance(2), chance(2))
    return made
  }

  private mutating func configuration() -> ConfigurationDescription {
    let members = entityNames.shuffled(using: &generator).prefix(whole(0...4))
    return ConfigurationDescription("configuration <\(name())>", Array(members))
  }

  // MARK: Attributes

  private mutating func element(of composite: Int) -> AttributeDescription {
    var element = attribute()
    element.isTransient = false
    // A composite contains only later ones, so it can't contain itself.
    if element.type == .composite || element.type == .undefined {
      element = AttributeDescription(element.name, .double)
      if composite + 1 < compositeNames.count { element = .composite(element.name, compositeNames[composite + 1], isOptional: chance(2)) }
    }
    return element
  }

  private mutating func attribute() -> AttributeDescription {
    var type = pick(AttributeType.allCases)
    if type == .composite && compositeNames.isEmpty { type = .string }
    var made = AttributeDescription(name(), type, isOptional: chance(2), isTransient: type == .undefined || chance(6))
    if type == .composite {
      made.compositeName = pick(compositeNames)
      made.isTransient = false
    }
    made.defaultValue = maybe { $0.value(type) } ?? nil
    made.validation = validation(type)
    if type == .binaryData || type == .transformable { made.allowsExternalBinaryDataStorage = chance(2) }
    (made.preservesValueInHistoryOnDeletion, made.allowsCloudEncryption) = (chance(4), chance(4))
    if chance(type == .transformable ? 2 : 6) {
      (made.valueTransformerName, made.valueClassName) = (maybe { $0.text() }, maybe { $0.text() })
    }
    made.versionHashModifier = maybe { $0.text() }
    made.renamingIdentifier = maybe { $0.text() }
    made.userInfo = userInfo()
    return made
  }

  private mutating func validation(_ type: AttributeType) -> AttributeValidation {
    if chance(2) { return .none }
    switch type {
    case .string, .uri:
      return AttributeValidation(
        minimumLength: maybe { $0.whole(($0.isOdd ? -2 : 0)...4) }, maximumLength: maybe { $0.whole(4...9) },
        regularExpression: maybe { $0.pick($0.isOdd ? ["", "[a-z]+"] : ["[a-z]+\\s<&>\"", "a|b"]) })
    case .date: return ordered(value(type), value(type))
    case _ where type.isNumber: return ordered(value(type), value(type))
    default: return .none
    }
  }

  private mutating func ordered(_ a: StoreValue?, _ b: StoreValue?) -> AttributeValidation {
    guard let a, let b, a != .null, b != .null else { return .none }
    return ValueComparison.holds(a, .lessThanOrEqualTo, b) ? .range(a, maybe { _ in b }) : .range(maybe { _ in b }, a)
  }

  /// A value of a type; nil for types without writable values.
  private mutating func value(_ type: AttributeType) -> StoreValue? {
    if isOdd, chance(8) { return type == .composite ? nil : .null }
    let real = pick([
      0, -0.0, 0.1, -1, .leastNonzeroMagnitude, 1.7976931348623157e308, .infinity, -.infinity, Double(bitPattern: 0x3FF0_0000_0000_0001),
    ])
    switch type {
    case .integer16: return .int16(pick([0, .min, .max, -7]))
    case .integer32: return .int32(pick([0, .min, .max, -7]))
    case .integer64: return .int64(pick([0, .min, .max, -7]))
    case .decimal: return .decimal(decimal())
    case .double: return .double(real)
    case .float: return .float(Float(real))
    case .date: return .date(real)
    case .boolean: return .bool(chance(2))
    case .string: return .string(chance(4) ? "" : text())
    case .uri: return .uri(text())
    case .uuid: return .uuid(UUID(uuid: (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, UInt8(whole(0...255)))))
    case .binaryData, .transformable: return isOdd ? .data(Data([1])) : nil
    case .objectID, .composite, .undefined: return nil
    }
  }

  private mutating func decimal() -> Decimal {
    let digits = pick(["0", "1", "10", "1.50", "-0.000001", "12345678901234567890123456789012345678", "-1e100", "1e127", "1e-127"])
    return Decimal(string: digits) ?? 0
  }

  // MARK: Components

  private mutating func chance(_ count: Int) -> Bool { Int.random(in: 0..<count, using: &generator) == 0 }

  private mutating func whole(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &generator) }

  private mutating func pick<Element>(_ elements: [Element]) -> Element {
    elements[Int.random(in: elements.indices, using: &generator)]
  }

  private mutating func maybe<Part>(_ make: (inout RandomModels) -> Part) -> Part? { chance(3) ? make(&self) : nil }

  private mutating func list<Element>(_ count: ClosedRange<Int>, _ make: (inout RandomModels) -> Element) -> [Element] {
    var elements: [Element] = []
    for _ in 0..<whole(count) { elements.append(make(&self)) }
    return elements
  }

  /// A unique name.
  private mutating func name() -> String {
    nameCount += 1
    return pick(["a", "B", "_", "class"]) + "\(nameCount)"
  }

  private mutating func text() -> String {
    if isOdd, chance(20) { return pick(["", "\u{1}", "a\u{FFFE}"]) }
    return pick([
      "x", " a\nb\t\r\n ", "<&>\"'&#38;&amp;]]>", "\u{301}e\u{301}\u{E9}", "\u{85}\u{2028}\u{FEFF}\u{7F}", "😀", "<\u{338}&\u{338}", "NO",
    ])
  }

  private mutating func userInfo() -> [String: String] {
    guard chance(4) else { return [:] }
    return ["": maybe { $0.text() } ?? "", "key": text(), "Key <": "", "é": "\u{E9}"]
  }
}
