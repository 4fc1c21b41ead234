import Foundation
import Holdfast
import HoldfastAtomicStore
import HoldfastStore
import SQLiteTestSupport
import TestSupport
import Testing

/// Random models, graphs and changes: every store has the contents that a simple rule says, and is as if it were created with the new model.
@Suite struct RandomMigrationTests {
  @Test func everyStoreHasTheExpectedContents() throws {
    var random = SeededGenerator("Migrations"), refusals = 0
    let rounds = TestTier.count(12, full: 300)
    for _ in 0..<rounds {
      var one = random.round()
      let seed = one.seed
      let first = RandomModel(&one), graph = RandomGraph(first, &one)
      var second = first
      for _ in 0..<Int.random(in: 1...5, using: &one) { second.change(&one) }
      let (old, new) = (try first.model(), try second.model())
      let isRefused = second.needsDecision(since: first)
      do {
        _ = try MappingModel.inferred(from: old, to: new)
        #expect(!isRefused, "HOLDFAST_SEED=\(seed): nothing was asked")
      } catch {
        #expect(isRefused && error.code == .inferredMappingModel, "HOLDFAST_SEED=\(seed): \(error)")
      }
      if isRefused {
        refusals += 1
        continue
      }
      let migrated = graph.migrated(from: first, to: second)
      let expected = migrated.lines(second), unsettled = migrated.unsettledNames(second)
      for store in MigratedStore.allCases where store != .coreData || !RandomModel.hidesChanges([old, new]) {
        let place = MigratedStore.Place(store)
        try place.fill(old) { try graph.insert(into: $0, first) }
        var found: [String] = []
        do {
          // In half of the rounds, all rows of whole files go through a temporary file.
          try RowSpill.$residentByteCount.withValue(seed % 2 == 0 ? 0 : RowSpill.residentByteCount) {
            try place.change(new, from: [old]) { found = try Contents(of: $0, sorting: unsettled).lines }
          }
        } catch { Issue.record("HOLDFAST_SEED=\(seed) \(store): \(error)") }
        #expect(found == expected, "HOLDFAST_SEED=\(seed) \(store)")
        if store == .sqlite || store == .coreData { try expectLayout(of: new, from: old, at: place.path, store, seed) }
        // The migrated store takes new objects and changes.
        try place.change(new) { context in
          for entity in new.entities where !entity.isAbstract { try context.add(entity.name, "new \(entity.name)") }
        }
        let lines = try place.contents(new)
        #expect(lines.count == expected.count + new.entities.count { !$0.isAbstract }, "HOLDFAST_SEED=\(seed) \(store)")
      }
    }
    #expect(refusals * 2 < rounds)
  }

  /// The tables, indexes and numbers of entities are those of a new store.
  private func expectLayout(
    of model: ManagedObjectModel, from old: ManagedObjectModel, at path: String, _ store: MigratedStore, _ seed: UInt64
  ) throws {
    let fresh = MigratedStore.Place(store)
    try fresh.change(model) { _ in }
    #expect(try SQL.rows(path, "PRAGMA integrity_check") == [["ok"]])
    let names = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
    #expect(try SQL.rows(path, names) == SQL.rows(fresh.path, names), "HOLDFAST_SEED=\(seed)")
    for table in try SQL.rows(fresh.path, names) {
      let columns = "SELECT name, type, pk, dflt_value FROM pragma_table_info('\(table[0])') ORDER BY name"
      #expect(try SQL.rows(path, columns) == SQL.rows(fresh.path, columns), "HOLDFAST_SEED=\(seed) \(table)")
    }
    let indexes =
      "SELECT DISTINCT substr(sql, instr(sql, ' ON ') + 1), sql LIKE '%UNIQUE INDEX%' FROM sqlite_master WHERE sql LIKE '%INDEX%' ORDER BY 1, 2"
    // Fetch indexes aren't added to another program's tables.
    if store == .sqlite {
      let (found, expected) = (try SQL.rows(path, indexes), try SQL.rows(fresh.path, indexes))
      // If only indexes differ, the file isn't migrated, and keeps those that aren't declared any more.
      let isMigrated =
        old.entityVersionHashesByName != model.entityVersionHashesByName
        || old.entityLayoutHashesByName != model.entityLayoutHashesByName
      #expect(isMigrated ? found == expected : Set(found).isSuperset(of: expected), "HOLDFAST_SEED=\(seed) \(found) \(expected)")
    }
    let numbers = "SELECT Z_ENT, Z_NAME, Z_SUPER FROM Z_PRIMARYKEY ORDER BY 1"
    #expect(try SQL.rows(path, numbers) == SQL.rows(fresh.path, numbers), "HOLDFAST_SEED=\(seed)")
  }
}

/// A model that remembers what its parts were in former versions, by numbers.
struct RandomModel {
  struct Attribute {
    var id: Int
    var name: String
    var formerName: String?
    var type: AttributeType
    var isOptional = true
    var defaultValue: StoreValue?
    /// Whether large values are in external files.
    var isExternal = false
    var isIndexed = false
    /// The elements of a composite; empty for other attributes.
    var elements: [Attribute] = []

    /// What has a value: the attribute, or the elements of a composite, named by their key paths. Those of an optional composite have no
    /// default values.
    var leaves: [Attribute] {
      if elements.isEmpty { return [self] }
      return elements.map { element in
        var leaf = element
        leaf.name = "\(name).\(element.name)"
        if isOptional { (leaf.isOptional, leaf.defaultValue) = (true, nil) }
        return leaf
      }
    }
  }

  struct Entity {
    var id: Int
    var name: String
    var formerName: String?
    var parent: Int?
    var isAbstract = false
    var attributes: [Attribute] = []
    /// Whether the tags of its objects are unique.
    var isUnique = false
  }

  /// One end of a pair of relationships.
  struct End {
    var entity: Int
    var name: String
    var formerName: String?
    var isToMany: Bool
    var isOrdered = false
  }

  /// Two ends, or one without an inverse.
  struct Pair {
    var id: Int
    var ends: [End]
  }

  private(set) var entities: [Entity] = []
  private(set) var pairs: [Pair] = []
  private var next = 0
  private let isPlain: Bool

  /// - Parameter isPlain: Whether there are only simple attributes and relationships, and tags needn't be unique.
  init(_ random: inout SeededGenerator, isPlain: Bool = false) {
    self.isPlain = isPlain
    for _ in 0..<Int.random(in: 2...5, using: &random) { addEntity(&random) }
    for _ in 0..<Int.random(in: 0...6, using: &random) { addAttribute(&random) }
    for _ in 0..<Int.random(in: 1...4, using: &random) { addPair(&random) }
    // All entities can have objects in the first version, so that there is something to migrate.
    for place in entities.indices where Bool.random(using: &random) && entities.contains(where: { $0.parent == entities[place].id }) {
      entities[place].isAbstract = true
    }
  }

  private mutating func number() -> Int {
    next += 1
    return next
  }

  private mutating func name(_ letter: String, _ random: inout SeededGenerator) -> String {
    letter + String("qwertyuiop".randomElement(using: &random) ?? "q") + String(number())
  }

  // MARK: Changes

  private mutating func addEntity(_ random: inout SeededGenerator) {
    // Names in any order, so that the numbers of entities change.
    let letter = String("ABCDEFGHIJKLMNOPQRSTUVWXY".randomElement(using: &random) ?? "A")
    let parent = Int.random(in: 0..<3, using: &random) == 0 ? entities.randomElement(using: &random)?.id : nil
    let isUnique = !isPlain && Int.random(in: 0..<4, using: &random) == 0
    entities.append(Entity(id: number(), name: name(letter, &random), parent: parent, isUnique: isUnique))
  }

  private static let types: [(AttributeType, StoreValue)] = [
    (.integer16, .int16(5)), (.integer32, .int32(6)), (.integer64, .int64(7)), (.string, .string("z")), (.double, .double(2.5)),
    (.boolean, .bool(true)), (.date, .date(9)), (.binaryData, .data(Data([3]))), (.float, .float(1.5)),
    (.decimal, .decimal(Decimal(sign: .minus, exponent: -20, significand: 12_345))),
    (.uuid, .uuid(UUID(uuid: uuid_t(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16)))),
    (.uri, .uri("x:default")),
  ]

  private mutating func addAttribute(_ random: inout SeededGenerator) {
    let place = Int.random(in: entities.indices, using: &random)
    if !isPlain && Int.random(in: 0..<5, using: &random) == 0 {
      var composite = Attribute(id: number(), name: name("c", &random), type: .composite, isOptional: Bool.random(using: &random))
      for _ in 0..<Int.random(in: 1...3, using: &random) { composite.elements.append(element(of: composite, &random)) }
      if !composite.isOptional { Self.require(&composite.elements[0]) }
      entities[place].attributes.append(composite)
    } else {
      entities[place].attributes.append(attribute(&random))
    }
  }

  private mutating func attribute(_ random: inout SeededGenerator) -> Attribute {
    let types = isPlain ? Self.types[..<9] : Self.types[...], (type, value) = types.randomElement(using: &random) ?? Self.types[0]
    let isOptional = Bool.random(using: &random)
    var attribute = Attribute(
      id: number(), name: name("a", &random), type: type, isOptional: isOptional,
      defaultValue: isOptional && Bool.random(using: &random) ? nil : value)
    if isPlain { return attribute }
    attribute.isExternal = type == .binaryData && Bool.random(using: &random)
    attribute.isIndexed = Int.random(in: 0..<4, using: &random) == 0
    return attribute
  }

  /// An attribute in a composite, in the row and without an index. An optional composite with values can't lack those of required elements.
  private mutating func element(of composite: Attribute, _ random: inout SeededGenerator) -> Attribute {
    var element = attribute(&random)
    (element.isExternal, element.isIndexed) = (false, false)
    if composite.isOptional { element.isOptional = true }
    return element
  }

  /// Makes an attribute required. A required composite needs an element that all objects have.
  private static func require(_ attribute: inout Attribute) {
    attribute.isOptional = false
    if attribute.defaultValue == nil { attribute.defaultValue = types.first { [type = attribute.type] in $0.0 == type }?.1 }
  }

  private mutating func addPair(_ random: inout SeededGenerator) {
    guard let a = entities.randomElement(using: &random)?.id, let b = entities.randomElement(using: &random)?.id else { return }
    func end(_ entity: Int, _ name: String, _ random: inout SeededGenerator) -> End {
      let isToMany = Bool.random(using: &random)
      return End(entity: entity, name: name, isToMany: isToMany, isOrdered: isToMany && Bool.random(using: &random))
    }
    var ends = [end(a, name("r", &random), &random), end(b, name("s", &random), &random)]
    if Int.random(in: 0..<4, using: &random) == 0 { ends.removeLast() }
    // The other end of a relationship without an inverse is its destination.
    if ends.count == 1 { ends.append(End(entity: b, name: "", isToMany: !ends[0].isToMany)) }
    pairs.append(Pair(id: number(), ends: ends))
  }

  mutating func change(_ random: inout SeededGenerator) {
    switch Int.random(in: 0..<(isPlain ? 14 : 18), using: &random) {
    case 0: addEntity(&random)
    case 1: removeEntity(&random)
    case 2:
      let place = Int.random(in: entities.indices, using: &random)
      if entities[place].formerName == nil { entities[place].formerName = entities[place].name }
      entities[place].name = name(String("ABCDEFGHIJKLMNOPQRSTUVWXY".randomElement(using: &random) ?? "A"), &random)
    case 3: addAttribute(&random)
    case 4: changeAttribute(&random) { attributes, place, _ in attributes.remove(at: place) }
    case 5:
      let new = name("a", &random)
      changeAttribute(&random) { attributes, place, _ in
        if attributes[place].formerName == nil { attributes[place].formerName = attributes[place].name }
        attributes[place].name = new
      }
    case 6:
      changeAttribute(&random) { attributes, place, _ in
        if attributes[place].elements.isEmpty { return Self.require(&attributes[place]) }
        attributes[place].isOptional = false
        Self.require(&attributes[place].elements[0])
      }
    case 7:
      changeAttribute(&random) { attributes, place, _ in
        let wider: [AttributeType: (AttributeType, StoreValue)] = [
          .integer16: (.integer32, .int32(8)), .integer32: (.integer64, .int64(9)), .float: (.double, .double(3.5)),
        ]
        guard let (type, value) = wider[attributes[place].type] else { return }
        attributes[place].type = type
        if attributes[place].defaultValue != nil { attributes[place].defaultValue = value }
      }
    case 8: addPair(&random)
    case 9: if !pairs.isEmpty { pairs.remove(at: Int.random(in: pairs.indices, using: &random)) }
    case 10:
      let new = name("r", &random)
      changeEnd(&random) { end in
        if end.formerName == nil { end.formerName = end.name }
        end.name = new
      }
    case 11: changeSuperentity(&random)
    case 12: moveAttribute(&random)
    case 14: if !isPlain { entities[Int.random(in: entities.indices, using: &random)].isUnique.toggle() }
    case 15:
      changeAttribute(&random) { attributes, place, _ in if attributes[place].elements.isEmpty { attributes[place].isIndexed.toggle() } }
    case 16:
      // External files that are no longer allowed need a decision.
      changeAttribute(&random) { attributes, place, _ in if attributes[place].type == .binaryData { attributes[place].isExternal = true } }
    case 17: changeComposite(&random)
    default:
      changeEnd(&random) { end in
        if end.isToMany { end.isOrdered.toggle() } else { end.isToMany = true }
      }
    }
  }

  private mutating func changeSuperentity(_ random: inout SeededGenerator) {
    let place = Int.random(in: entities.indices, using: &random), id = entities[place].id
    let others = entities.map(\.id).filter { !isKind($0, of: id) }
    entities[place].parent = ([nil] + others).randomElement(using: &random) ?? nil
  }

  /// An attribute moves to the superentity or to a subentity.
  private mutating func moveAttribute(_ random: inout SeededGenerator) {
    guard let place = entities.indices.filter({ !entities[$0].attributes.isEmpty }).randomElement(using: &random) else { return }
    let neighbours = entities.indices.filter { entities[$0].id == entities[place].parent || entities[$0].parent == entities[place].id }
    guard let other = neighbours.randomElement(using: &random) else { return }
    entities[other].attributes.append(
      entities[place].attributes.remove(at: Int.random(in: entities[place].attributes.indices, using: &random)))
  }

  private mutating func changeAttribute(
    _ random: inout SeededGenerator, _ body: (inout [Attribute], Int, inout SeededGenerator) -> Void
  ) {
    let places = entities.indices.filter { !entities[$0].attributes.isEmpty }
    guard let entity = places.randomElement(using: &random) else { return }
    body(&entities[entity].attributes, Int.random(in: entities[entity].attributes.indices, using: &random), &random)
  }

  /// Adds, removes or renames an element of a composite.
  private mutating func changeComposite(_ random: inout SeededGenerator) {
    let name = name("a", &random)
    let places = entities.indices.flatMap { entity in
      entities[entity].attributes.indices.filter { !entities[entity].attributes[$0].elements.isEmpty }.map { (entity, $0) }
    }
    guard let (entity, place) = places.randomElement(using: &random) else { return }
    var elements = entities[entity].attributes[place].elements
    let new = self.element(of: entities[entity].attributes[place], &random), element = Int.random(in: elements.indices, using: &random)
    switch Int.random(in: 0..<3, using: &random) {
    case 0: elements.append(new)
    case 1: if elements.count > 1 && elements[element].isOptional { elements.remove(at: element) }
    default:
      if elements[element].formerName == nil { elements[element].formerName = elements[element].name }
      elements[element].name = name
    }
    entities[entity].attributes[place].elements = elements
  }

  private mutating func changeEnd(_ random: inout SeededGenerator, _ body: (inout End) -> Void) {
    // A to-many relationship without an inverse has single owners, so the absent end stays as it is.
    guard let pair = pairs.indices.randomElement(using: &random) else { return }
    let named = pairs[pair].ends.indices.filter { !pairs[pair].ends[$0].name.isEmpty }
    guard let end = named.randomElement(using: &random) else { return }
    if named.count == 1 && !pairs[pair].ends[end].isToMany {
      // A to-one relationship that becomes to-many would get single owners, which its objects needn't have.
      var changed = pairs[pair].ends[end]
      body(&changed)
      if changed.isToMany { return }
    }
    body(&pairs[pair].ends[end])
  }

  private mutating func removeEntity(_ random: inout SeededGenerator) {
    guard entities.count > 2,
      let gone = entities.filter({ one in !entities.contains { $0.parent == one.id } }).randomElement(using: &random)
    else { return }
    entities.removeAll { $0.id == gone.id }
    pairs.removeAll { pair in pair.ends.contains { $0.entity == gone.id } }
  }

  // MARK: The model

  func entity(_ id: Int) -> Entity? { entities.first { $0.id == id } }

  /// An entity and its superentities.
  func chain(_ id: Int) -> [Entity] {
    guard let entity = entity(id) else { return [] }
    return [entity] + (entity.parent.map { chain($0) } ?? [])
  }

  func isKind(_ id: Int, of other: Int) -> Bool { chain(id).contains { $0.id == other } }

  /// The ends that an entity has, with the number of the pair and the place in it.
  func ends(of id: Int) -> [(pair: Int, place: Int, end: End)] {
    let chain = chain(id).map(\.id)
    return pairs.flatMap { pair in
      pair.ends.enumerated().filter { chain.contains($1.entity) && !$1.name.isEmpty }.map { (pair.id, $0, $1) }
    }
  }

  /// Whether an entity differs between versions only in what version hashes don't show, such as elements of composites. Nothing in a file
  /// of another program shows it either.
  static func hidesChanges(_ versions: [ManagedObjectModel]) -> Bool {
    versions.contains { version in
      versions.contains { other in
        version.entityVersionHashesByName.contains { name, hash in
          other.entityVersionHashesByName[name] == hash && other.entityLayoutHashesByName[name] != version.entityLayoutHashesByName[name]
        }
      }
    }
  }

  /// What the objects of an entity have values of.
  func leaves(_ id: Int) -> [Attribute] { chain(id).flatMap(\.attributes).flatMap(\.leaves) }

  private static func description(_ attribute: Attribute) -> AttributeDescription {
    var one: AttributeDescription =
      attribute.elements.isEmpty
      ? AttributeDescription(
        attribute.name, attribute.type, isOptional: attribute.isOptional, default: attribute.defaultValue,
        allowsExternalBinaryDataStorage: attribute.isExternal)
      : .composite(attribute.name, "C\(attribute.id)", isOptional: attribute.isOptional)
    one.renamingIdentifier = attribute.formerName
    return one
  }

  func model() throws -> ManagedObjectModel {
    let composites = entities.flatMap(\.attributes).filter { !$0.elements.isEmpty }.map { attribute in
      CompositeDescription("C\(attribute.id)", attribute.elements.map(Self.description))
    }
    return try MigrationTests.model(
      entities.map { entity in
        var description = EntityDescription(
          entity.name, superentity: entity.parent.flatMap { self.entity($0)?.name }, isAbstract: entity.isAbstract,
          attributes: entity.attributes.map(Self.description))
        description.renamingIdentifier = entity.formerName
        if entity.isUnique { description.uniquenessConstraints = [["tag"]] }
        for attribute in entity.attributes where attribute.isIndexed {
          description.indexes.append(FetchIndexDescription("by \(attribute.id)", [attribute.name]))
        }
        for pair in pairs {
          for (place, end) in pair.ends.enumerated() where end.entity == entity.id && !end.name.isEmpty {
            let other = pair.ends[1 - place], destination = self.entity(other.entity)?.name ?? ""
            let inverse = other.name.isEmpty ? nil : other.name
            var one: RelationshipDescription =
              end.isToMany
              ? .toMany(end.name, to: destination, inverse: inverse, isOrdered: end.isOrdered)
              : .toOne(end.name, to: destination, inverse: inverse)
            one.renamingIdentifier = end.formerName
            description.relationships.append(one)
          }
        }
        return description
      }, composites: composites)
  }

  /// Whether families of entities come together, or objects that could be linked no longer can be.
  func needsDecision(since first: RandomModel) -> Bool {
    let kept = entities.compactMap { first.entity($0.id) }
    let families = Dictionary(grouping: kept) { chain($0.id).last?.id }
    let comesTogether = families.values.contains { family in Set(family.map { first.chain($0.id).last?.id }).count > 1 }
    let losesLinks = pairs.contains { pair in
      guard let former = first.pairs.first(where: { $0.id == pair.id }) else { return false }
      let kinds = former.ends.map { end in kept.filter { !$0.isAbstract && first.isKind($0.id, of: end.entity) } }
      if kinds.contains(where: \.isEmpty) { return false }
      return zip(kinds, pair.ends).contains { kinds, end in kinds.contains { !isKind($0.id, of: end.entity) } }
    }
    return comesTogether || losesLinks
  }

  /// Forgets the names of former versions. The next version's renaming identifiers are the names of this one then.
  mutating func forgetFormerNames() {
    for entity in entities.indices {
      entities[entity].formerName = nil
      for attribute in entities[entity].attributes.indices {
        entities[entity].attributes[attribute].formerName = nil
        for element in entities[entity].attributes[attribute].elements.indices {
          entities[entity].attributes[attribute].elements[element].formerName = nil
        }
      }
    }
    for pair in pairs.indices { for end in pairs[pair].ends.indices { pairs[pair].ends[end].formerName = nil } }
  }
}

/// Objects of a random model, and what they are after a migration.
struct RandomGraph {
  struct Object {
    var entity: Int
    var tag: String
    var values: [Int: StoreValue] = [:]
  }

  private(set) var objects: [Object] = []
  /// The links of each pair: the objects at the first end's entity and the second one's.
  private var links: [Int: [(Int, Int)]] = [:]
  /// The ends, each as the number of its pair and its place in it, that became ordered in a migration. Their order isn't known.
  private var unsettled: Set<[Int]> = []

  init(_ model: RandomModel, _ random: inout SeededGenerator) {
    for entity in model.entities where !entity.isAbstract {
      for _ in 0..<Int.random(in: 0...4, using: &random) {
        var object = Object(entity: entity.id, tag: "t\(objects.count + 100)")
        for attribute in model.leaves(entity.id) where Int.random(in: 0..<3, using: &random) > 0 {
          object.values[attribute.id] = Self.value(attribute.type, &random)
        }
        objects.append(object)
      }
    }
    for pair in model.pairs { links[pair.id] = Self.links(pair, model, objects, &random) }
  }

  /// The graph with fewer tags and values, so that objects are equal.
  func withEqualObjects(_ random: inout SeededGenerator) -> RandomGraph {
    var copy = self
    for place in copy.objects.indices {
      copy.objects[place].tag = Bool.random(using: &random) ? "t" : "u"
      copy.objects[place].values = [:]
    }
    return copy
  }

  static func value(_ type: AttributeType, _ random: inout SeededGenerator) -> StoreValue {
    value(type, Int.random(in: -50...50, using: &random))
  }

  /// A value that depends on a tag only.
  static func value(_ type: AttributeType, of tag: String, plus shift: Int) -> StoreValue {
    value(type, ((Int(tag.dropFirst()) ?? 0) + shift) % 101 - 50)
  }

  /// - Parameter number: From -50 to 50.
  private static func value(_ type: AttributeType, _ number: Int) -> StoreValue {
    switch type {
    case .integer16: .int16(Int16(number))
    case .integer32: .int32(Int32(number))
    case .integer64: .int64(Int64(number))
    case .double: .double(Double(number) / 4)
    case .float: .float(Float(number) / 4)
    case .boolean: .bool(number > 0)
    case .date: .date(Double(number))
    case .decimal: .decimal(Decimal(sign: number < 0 ? .minus : .plus, exponent: -20, significand: Decimal(abs(number))))
    case .uuid: .uuid(UUID(uuid: uuid_t(UInt8(abs(number)), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)))
    case .uri: .uri("x:\(number)")
    // Some are large enough for external files.
    case .binaryData: .data(number % 4 == 0 ? Data(repeating: UInt8(abs(number)), count: 150_000) : Data([UInt8(abs(number)), 0, 255]))
    default: .string("v\(number)")
    }
  }

  private static func links(
    _ pair: RandomModel.Pair, _ model: RandomModel, _ objects: [Object], _ random: inout SeededGenerator
  ) -> [(Int, Int)] {
    func kinds(_ end: RandomModel.End) -> [Int] {
      objects.indices.filter { model.chain(objects[$0].entity).map(\.id).contains(end.entity) }
    }
    var links: [(Int, Int)] = []
    let first = kinds(pair.ends[0]), second = kinds(pair.ends[1])
    for _ in 0..<8 {
      guard let a = first.randomElement(using: &random), let b = second.randomElement(using: &random) else { break }
      let isTaken = links.contains { ($0.0 == a && (!pair.ends[0].isToMany || $0.1 == b)) || ($0.1 == b && !pair.ends[1].isToMany) }
      if !isTaken { links.append((a, b)) }
    }
    return links
  }

  private func others(_ pair: Int, _ place: Int, _ object: Int) -> [Int] {
    (links[pair] ?? []).filter { (place == 0 ? $0.0 : $0.1) == object }.map { place == 0 ? $0.1 : $0.0 }
  }

  /// Inserts the objects in an order, which gives them other keys.
  func insert(into context: ManagedObjectContext, _ model: RandomModel, inOrder order: [Int]? = nil) throws {
    var inserted: [Int: ManagedObject] = [:]
    for place in order ?? Array(objects.indices) {
      let object = objects[place]
      let chain = model.chain(object.entity)
      let new = try context.add(chain[0].name, object.tag)
      for attribute in model.leaves(object.entity) {
        if let value = object.values[attribute.id] {
          try new.setValue(value, forKeyPath: attribute.name)
        } else if attribute.isOptional {
          try new.setValue(StoreValue.null, forKeyPath: attribute.name)
        }
      }
      inserted[place] = new
    }
    let made = try objects.indices.map { try #require(inserted[$0]) }
    for (place, object) in objects.enumerated() {
      for (pair, side, end) in model.ends(of: object.entity) {
        let others = others(pair, side, place).map { made[$0] }
        if end.isToMany {
          try made[place].setValue(others, forKey: end.name)
        } else {
          try made[place].setValue(others.first, forKey: end.name)
        }
      }
    }
  }

  // MARK: Migrations

  /// The graph after an inferred migration.
  func migrated(from first: RandomModel, to second: RandomModel) -> RandomGraph {
    var graph = filtered { second.entity($0.entity) != nil }
    for place in graph.objects.indices {
      let object = graph.objects[place], formerAttributes = first.leaves(object.entity)
      graph.objects[place].values = [:]
      for attribute in second.leaves(object.entity) {
        let former = formerAttributes.first { $0.id == attribute.id }
        // What a new object without a value has: the former default of a required attribute.
        var value =
          object.values[attribute.id]
          ?? (former.map { $0.isOptional ? .null : $0.defaultValue ?? .null } ?? attribute.defaultValue ?? .null)
        if value == .null && !attribute.isOptional { value = attribute.defaultValue ?? .null }
        graph.objects[place].values[attribute.id] = value
      }
    }
    graph.links = graph.links.filter { links in second.pairs.contains { $0.id == links.key } }
    graph.unsettled = []
    for pair in second.pairs {
      let former = first.pairs.first { $0.id == pair.id }
      for (side, end) in pair.ends.enumerated() where end.isOrdered {
        if former?.ends[side].isOrdered != true || unsettled.contains([pair.id, side]) { graph.unsettled.insert([pair.id, side]) }
      }
    }
    return graph
  }

  /// The graph without the objects that don't fulfil a condition, and without their links.
  private func filtered(_ isKept: (Object) -> Bool) -> RandomGraph {
    let kept = objects.indices.filter { isKept(objects[$0]) }
    var places: [Int: Int] = [:]
    for place in kept { places[place] = places.count }
    var graph = self
    graph.objects = kept.map { objects[$0] }
    graph.links = [:]
    for (pair, list) in links {
      graph.links[pair] = list.compactMap { link -> (Int, Int)? in
        guard let first = places[link.0], let second = places[link.1] else { return nil }
        return (first, second)
      }
    }
    return graph
  }

  /// The tags of the objects that relationships without an inverse reference.
  func destinationsWithoutInverse(_ model: RandomModel) -> Set<String> {
    var tags: Set<String> = []
    for pair in model.pairs where pair.ends[1].name.isEmpty { for link in links[pair.id] ?? [] { tags.insert(objects[link.1].tag) } }
    return tags
  }

  /// Deletes objects, and their links.
  mutating func delete(_ tags: Set<String>) { self = filtered { !tags.contains($0.tag) } }

  /// Inserts an object with default values and without links.
  mutating func insert(_ tag: String, of entity: Int, _ model: RandomModel) {
    var object = Object(entity: entity, tag: tag)
    for attribute in model.leaves(entity) { object.values[attribute.id] = attribute.defaultValue ?? .null }
    objects.append(object)
  }

  /// Sets an attribute of the objects that fulfil a condition to a value that depends on their tags.
  mutating func set(_ attribute: RandomModel.Attribute, plus shift: Int, where isMeant: (Object) -> Bool) {
    for place in objects.indices where isMeant(objects[place]) {
      objects[place].values[attribute.id] = Self.value(attribute.type, of: objects[place].tag, plus: shift)
    }
  }

  /// The names of the ordered relationships whose order isn't known.
  func unsettledNames(_ model: RandomModel) -> Set<String> {
    var names: Set<String> = []
    for pair in model.pairs {
      for (side, end) in pair.ends.enumerated() where unsettled.contains([pair.id, side]) { names.insert(end.name) }
    }
    return names
  }

  /// The contents of a store with the graph, after a migration.
  func lines(_ model: RandomModel) -> [String] {
    objects.enumerated().map { place, object in
      let chain = model.chain(object.entity)
      var parts = ["\(chain[0].name) \(object.tag):"]
      for attribute in model.leaves(object.entity).sorted(by: { $0.name < $1.name }) {
        parts.append("\(attribute.name)=\(Contents.text(object.values[attribute.id]))")
      }
      for (pair, side, end) in model.ends(of: object.entity).sorted(by: { $0.end.name < $1.end.name }) {
        let tags = others(pair, side, place).map { objects[$0].tag }, isSorted = !end.isOrdered || unsettled.contains([pair, side])
        parts.append(
          end.isToMany ? "\(end.name)=[\((isSorted ? tags.sorted() : tags).joined(separator: " "))]" : "\(end.name)=\(tags.first ?? "nil")")
      }
      return parts.joined(separator: " ")
    }.sorted()
  }
}
