import Foundation
import HoldfastStore
import TestSupport

@testable import HoldfastSQLiteStore

/// A small graph with every type, and random rows, predicates and sorts for it. Values are drawn from a small set that includes edge cases,
/// so that comparisons often hold.
struct RandomGraph {
  static let entities: [EntityDescription] = [
    EntityDescription(
      "Item",
      attributes: [
        AttributeDescription("b", .boolean, isOptional: true), AttributeDescription("i16", .integer16, isOptional: true),
        AttributeDescription("i64", .integer64, isOptional: true), AttributeDescription("r", .double, isOptional: true),
        AttributeDescription("f", .float, isOptional: true), AttributeDescription("s", .string, isOptional: true),
        AttributeDescription("s2", .string, isOptional: true), AttributeDescription("d", .date, isOptional: true),
        AttributeDescription("u", .uuid, isOptional: true), AttributeDescription("x", .binaryData, isOptional: true),
        AttributeDescription("l", .uri, isOptional: true), AttributeDescription("o", .objectID, isOptional: true),
      ],
      relationships: [
        .toOne("owner", to: "Owner", inverse: "items"), .toMany("near", to: "Item", inverse: "far"),
        .toMany("far", to: "Item", inverse: "near"),
      ],
      indexes: [
        FetchIndexDescription("s", ["s"]), FetchIndexDescription("i64", ["i64"]), FetchIndexDescription("r", ["r"]),
        FetchIndexDescription("b2", ["b", "s2"]),
      ]),
    EntityDescription(
      "Owner",
      attributes: [AttributeDescription("age", .integer32, isOptional: true), AttributeDescription("name", .string, isOptional: true)],
      relationships: [
        .toMany("items", to: "Item", inverse: "owner"), .toOne("boss", to: "Owner", inverse: "staff"),
        .toMany("staff", to: "Owner", inverse: "boss"),
      ]),
  ]

  var random: SeededGenerator
  let identity: StoreIdentity
  let model: ManagedObjectModel
  static let itemCount: Int64 = 60
  static let ownerCount: Int64 = 8

  private static let texts = [
    "", "a", "A", "ab", "aB", "abc", "b", "é", "e\u{301}", "É", "ß", "ss", "日本", "日", "a\u{0}b", "a\u{0}", "\u{0}", "\u{7F}", "\u{10FFFF}",
    "z", "straße", "%", "a_b", "'", ids[0],
  ]
  /// IDs of objects in another store.
  private static let ids = [
    "x-coredata://6BA7B810-9DAD-11D1-80B4-00C04FD430C8/Dog/p4", "x-coredata://6BA7B810-9DAD-11D1-80B4-00C04FD430C8/Dog/p12",
    "x-coredata://6BA7B810-9DAD-11D1-80B4-00C04FD430C8/dog/p4",
  ]
  private static let integers: [Int64] = [0, 1, -1, 2, 3, 7, 32_767, -32_768, 100]
  private static let large: [Int64] = [.max, .min, 1 << 53, 1 << 53 + 1, -(1 << 53) - 1, .max - 1]
  private static let reals: [Double] = [
    0, -0.0, 1, 0.5, 2.5, -1, 3, 1e300, -1e300, .infinity, -.infinity, .leastNonzeroMagnitude, 9_007_199_254_740_992, 0x1p63, 0.1,
  ]

  mutating func pick<T>(_ list: [T]) -> T { list[Int(random.next() % UInt64(list.count))] }
  mutating func chance(_ percent: UInt64) -> Bool { random.next() % 100 < percent }

  mutating func value(_ column: ColumnType) -> StoreValue {
    if chance(15) { return .null }
    switch column {
    case .toOne(let destination):
      let entity = model.entities[destination]
      let count = entity.name == "Item" ? RandomGraph.itemCount : RandomGraph.ownerCount
      return .objectID(identity.objectID(entity: entity, key: ObjectKey(Int64(random.next() % UInt64(count + 2)) + 1)))
    case .attribute(let type):
      switch type {
      case .boolean: return .bool(chance(50))
      case .integer16: return .int16(Int16(pick(RandomGraph.integers)))
      case .integer32: return .int32(Int32(pick(RandomGraph.integers)))
      case .integer64: return .int64(chance(50) ? pick(RandomGraph.integers) : pick(RandomGraph.large))
      case .double: return .double(pick(RandomGraph.reals))
      case .float: return .float(Float(pick(RandomGraph.reals)))
      case .date: return .date(pick(RandomGraph.reals))
      case .string: return .string(pick(RandomGraph.texts))
      case .uri: return .uri(pick(RandomGraph.texts))
      case .uuid: return .uuid(UUID(uuid: (pick([0, 1, 65, 97]), 0, 255, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, UInt8(random.next() % 2))))
      case .objectID: return ManagedObjectID(uriRepresentation: pick(RandomGraph.ids)).map { .objectID($0) } ?? .null
      case .composite, .undefined: return .null
      case .binaryData, .transformable: return .data(Data(pick([[], [0], [0, 1], [255], [65], [66], [97]])))
      case .decimal: return .decimal(Decimal(string: pick(["0", "1", "2.5", "-1", "0.1", "9007199254740993", "2.4999999999999999999"]))!)
      }
    }
  }

  // MARK: Predicates

  private mutating func path(_ entity: ManagedObjectModel.Entity, text: Bool = false) -> (PropertyPath, ColumnType) {
    var names: [String] = []
    var entity = entity
    while chance(25), let hop = entity.relationships.first(where: { !$0.isToMany }), names.count < 3 {
      names.append(hop.name)
      entity = model.destination(of: hop)
    }
    let slots = entity.slots.filter { !text || $0.columnType == .attribute(.string) || $0.columnType == .attribute(.uri) }
    let slot = pick(Array(slots))
    return (PropertyPath(dotted: (names + [slot.name]).joined(separator: ".")), slot.columnType)
  }

  /// A constant that can be compared with a column: often of its own type, sometimes of a compatible one.
  private mutating func constant(_ column: ColumnType) -> StoreValue {
    guard case .attribute(let type) = column else { return value(column) }
    switch type {
    case .string, .uri: return chance(50) ? value(.attribute(.string)) : value(.attribute(.uri))
    case .uuid, .binaryData, .objectID: return value(column)
    default:
      if chance(3) { return .double(.nan) }
      let others: [AttributeType] =
        type == .date ? [.date, .date, .integer64, .double, .decimal] : [type, type, .integer64, .double, .float, .decimal, .boolean]
      return value(.attribute(pick(others)))
    }
  }

  /// Whether values are IDs, which have no order in comparisons with constants.
  private func hasIDs(_ column: ColumnType) -> Bool { column.cellKind == .key || column == .attribute(.objectID) }

  private mutating func toMany(_ entity: ManagedObjectModel.Entity) -> (PropertyPath, ManagedObjectModel.Entity) {
    var names: [String] = []
    var entity = entity
    if chance(30), let hop = entity.relationships.first(where: { !$0.isToMany }) {
      names.append(hop.name)
      entity = model.destination(of: hop)
    }
    let relationship = pick(entity.toManyRelationships)
    return (PropertyPath(dotted: (names + [relationship.name]).joined(separator: ".")), model.destination(of: relationship))
  }

  private mutating func folding() -> TextFolding {
    chance(70) ? [] : pick([.caseInsensitive, .diacriticInsensitive, [.caseInsensitive, .diacriticInsensitive]])
  }

  mutating func predicate(_ entity: ManagedObjectModel.Entity, depth: Int = 3) -> QueryExpression {
    let orders: [ComparisonOperator] = [.lessThan, .lessThanOrEqualTo, .greaterThan, .greaterThanOrEqualTo, .equalTo, .notEqualTo]
    switch random.next() % (depth > 0 ? 14 : 9) {
    case 0, 1:
      let (path, column) = path(entity)
      let ops: [ComparisonOperator] = hasIDs(column) ? [.equalTo, .notEqualTo] : orders
      let (left, right) = (QueryExpression.property(path), QueryExpression.constant(constant(column)))
      let op = pick(ops), folding = folding()
      return chance(20) ? .comparison(right, op, left, folding) : .comparison(left, op, right, folding)
    case 2:
      let (path, _) = path(entity, text: true)
      return .comparison(.property(path), pick([.beginsWith, .endsWith, .contains]), .constant(value(.attribute(.string))), folding())
    case 3:
      let (path, column) = path(entity)
      if hasIDs(column) { return .membership(.property(path), (0..<random.next() % 7).map { _ in value(column) }) }
      return chance(50)
        ? .between(.property(path), constant(column), constant(column))
        : .membership(.property(path), (0..<random.next() % 9).map { _ in constant(column) })
    case 4:
      let (left, column) = path(entity), isKey = column.cellKind == .key
      var right = path(entity)
      // Relationships can only be compared with those to objects of the same family. There is one root entity in queries.
      while (right.1.cellKind == .key) != isKey { right = path(entity) }
      return .comparison(.property(left), pick(isKey ? [.equalTo, .notEqualTo] : orders), .property(right.0), folding())
    case 5:
      let (left, _) = path(entity, text: true), (right, _) = path(entity, text: true)
      return .comparison(.property(left), pick(ComparisonOperator.allCases), .property(right), folding())
    case 6:
      let (path, _) = toMany(entity)
      return chance(70)
        ? .comparison(.count(path), pick(orders), .constant(constant(.attribute(.integer64))), [])
        : .membership(.count(path), [.int64(0), .int32(2), .null, .double(1)])
    case 7:
      let id = value(.toOne(destination: entity.index))
      if case .objectID = id, chance(60) { return .comparison(.object, pick([.equalTo, .notEqualTo]), .constant(id), []) }
      if entity.name == "Item", chance(50) { return .property("b") }
      let (path, _) = path(entity, text: true)
      return .comparison(.constant(value(.attribute(.string))), pick([.beginsWith, .endsWith, .contains]), .property(path), folding())
    case 8: return .literal(chance(50))
    case 9, 10: return .and((0..<random.next() % 4).map { _ in predicate(entity, depth: depth - 1) })
    case 11: return .or((0..<random.next() % 4).map { _ in predicate(entity, depth: depth - 1) })
    case 12: return .not(predicate(entity, depth: depth - 1))
    default:
      let (path, target) = toMany(entity)
      let part = predicate(target, depth: depth - 1)
      return chance(50) ? .any(path, part) : .all(path, part)
    }
  }

  mutating func sorts(_ entity: ManagedObjectModel.Entity) -> [SortTerm] {
    (0..<random.next() % 4).map { _ in
      let (path, _) = path(entity)
      return SortTerm(path, isAscending: chance(50), folding: folding())
    }
  }
}

/// Provides rows and targets for the reference evaluator from a store's answers.
final class CollectedRows: EvaluationSource {
  private let model: ManagedObjectModel
  private var rows: [[ObjectKey: RowView]]
  /// The targets of each to-many relationship, by source.
  private var links: [ManagedObjectModel.Relationship: [ObjectKey: [ObjectKey]]] = [:]

  init(_ tested: StoreUnderTest) throws {
    model = tested.model
    rows = try tested.model.entities.map { entity in
      Dictionary(uniqueKeysWithValues: try tested.all(entity.name).map { ($0.key, $0) })
    }
    for entity in model.entities {
      for relationship in entity.toManyRelationships {
        let sources = rows[entity.index].keys.sorted()
        for (source, targets) in zip(sources, try tested.targets(entity.name, relationship.name, sources)) {
          links[relationship, default: [:]][source] = targets
        }
      }
    }
  }

  func row(entity: EntityIndex, key: ObjectKey) -> RowPointer? { rows[entity][key]?.pointer }

  func targets(of row: RowPointer, _ relationship: ManagedObjectModel.Relationship) -> [ObjectKey] {
    links[relationship]?[row.key] ?? []
  }

  func all(_ entity: EntityIndex) -> [RowView] { rows[entity].values.sorted { $0.key < $1.key } }
}
