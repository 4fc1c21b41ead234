import Foundation
import Holdfast
import HoldfastStore
import TestSupport

/// A random query on a plain graph: a condition on attributes and relationships, a sort order and a window.
///
/// Most constants are values of the graph, so that conditions often hold.
struct RandomQuery: CustomStringConvertible {
  let entity: ManagedObjectModel.Entity
  let includesSubentities: Bool
  let predicate: QueryExpression?
  let sorts: [SortTerm]
  let offset: Int
  let limit: Int?
  /// The IDs in the predicate, by tag.
  let ids: [Int: ManagedObjectID]

  /// - Parameters:
  ///   - avoided: Names of to-one relationships that the query doesn't compare, nor sort by.
  ///   - identify: Returns the ID of the object with a tag.
  init(
    _ graph: PlainGraph, avoiding avoided: Set<String>, seed: UInt64, identify: @escaping (Int) throws -> ManagedObjectID
  ) throws {
    var builder = QueryBuilder(graph: graph, avoided: avoided, identify: identify, random: SeededGenerator(seed: seed))
    entity = builder.pick(graph.model.entities)
    includesSubentities = !builder.chance(25)
    predicate = try builder.chance(10) ? nil : builder.condition(entity, depth: 3)
    sorts = builder.sorts(entity)
    offset = builder.chance(50) ? 0 : builder.number(0...4)
    limit = builder.chance(50) ? nil : builder.number(0...8)
    ids = builder.ids
  }

  /// Whether the order of the result is defined.
  var isOrdered: Bool { !sorts.isEmpty || offset > 0 || limit != nil }

  var description: String {
    let order = sorts.map { "\($0.path) \($0.isAscending ? "up" : "down") \($0.folding.rawValue)" }.joined(separator: ", ")
    return "\(entity.name)\(includesSubentities ? "" : " alone") where \(predicate.map { "\($0)" } ?? "all") by [\(order)] "
      + "from \(offset), \(limit.map { "\($0)" } ?? "no limit")"
  }
}

/// Builds the parts of a query.
private struct QueryBuilder {
  typealias Entity = ManagedObjectModel.Entity
  let graph: PlainGraph
  let avoided: Set<String>
  let identify: (Int) throws -> ManagedObjectID
  var random: SeededGenerator
  var ids: [Int: ManagedObjectID] = [:]

  mutating func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &random) }
  mutating func chance(_ percent: Int) -> Bool { number(0...99) < percent }
  mutating func pick<Element>(_ list: [Element]) -> Element { list[number(0...list.count - 1)] }

  private mutating func id(_ tag: Int) throws -> ManagedObjectID {
    let id = try identify(tag)
    ids[tag] = id
    return id
  }

  // MARK: Paths

  /// Follows a random to-one relationship, if there is one.
  private mutating func follow(_ entity: inout Entity, _ names: inout [String]) {
    let hops = entity.relationships.filter { !$0.isToMany }
    if hops.isEmpty { return }
    let hop = pick(hops)
    names.append(hop.name)
    entity = graph.model.destination(of: hop)
  }

  /// A path to an attribute or to-one relationship, often through others.
  private mutating func path(
    _ start: Entity, where isWanted: (ColumnType) -> Bool = { _ in true }
  ) -> (path: PropertyPath, column: ColumnType)? {
    var entity = start, names: [String] = []
    for _ in 0..<3 where chance(25) { follow(&entity, &names) }
    let slots = entity.slots.filter { isWanted($0.columnType) && !avoided.contains($0.name) }
    if slots.isEmpty { return nil }
    let slot = pick(slots)
    return (PropertyPath(dotted: (names + [slot.name]).joined(separator: ".")), slot.columnType)
  }

  private mutating func toMany(_ start: Entity) -> (path: PropertyPath, destination: Entity)? {
    var entity = start, names: [String] = []
    if chance(30) { follow(&entity, &names) }
    if entity.toManyRelationships.isEmpty { return nil }
    let relationship = pick(entity.toManyRelationships)
    return (PropertyPath(dotted: (names + [relationship.name]).joined(separator: ".")), graph.model.destination(of: relationship))
  }

  private func isComparable(_ column: ColumnType) -> Bool { column != .attribute(.transformable) }
  private func hasIDs(_ column: ColumnType) -> Bool { column.cellKind == .key || column == .attribute(.objectID) }
  private func isText(_ column: ColumnType) -> Bool { column == .attribute(.string) || column == .attribute(.uri) }

  // MARK: Conditions

  private mutating func equality() -> ComparisonOperator { chance(60) ? .equalTo : .notEqualTo }
  private mutating func order() -> ComparisonOperator {
    pick([.lessThan, .lessThanOrEqualTo, .greaterThan, .greaterThanOrEqualTo, .equalTo, .notEqualTo])
  }
  private mutating func folding() -> TextFolding {
    chance(60) ? [] : pick([.caseInsensitive, .diacriticInsensitive, [.caseInsensitive, .diacriticInsensitive]])
  }

  /// A constant that can be compared with the values at a path.
  private mutating func constant(_ path: PropertyPath, _ column: ColumnType, _ entity: Entity) throws -> StoreValue {
    if chance(10) { return .null }
    switch column {
    case .toOne(let destination):
      let all = graph.kind(destination)
      return try all.isEmpty ? .null : .objectID(id(pick(all)))
    case .attribute(let type):
      let all = graph.kind(entity.index)
      if !isComparable(column) { return .null }
      if !all.isEmpty && chance(70) {
        let value = graph.value(at: path, pick(all)) { .int64(Int64($0)) }
        if value != .null { return value }
      }
      return RandomValue.make(type, number(0...59))
    }
  }

  mutating func condition(_ entity: Entity, depth: Int) throws -> QueryExpression {
    switch number(0...(depth > 0 ? 17 : 11)) {
    case 0...3: return try comparison(entity)
    case 4:
      guard let (path, column) = self.path(entity, where: { $0 != .attribute(.transformable) }) else { return .literal(true) }
      return .membership(.property(path), try (0..<number(0...5)).map { _ in try constant(path, column, entity) })
    case 5:
      let noOrder: [ColumnType] = [.attribute(.transformable), .attribute(.objectID)]
      guard let (path, column) = self.path(entity, where: { $0.cellKind != .key && !noOrder.contains($0) }) else { return .literal(false) }
      return .between(.property(path), try constant(path, column, entity), try constant(path, column, entity))
    case 6:
      guard let (left, column) = self.path(entity, where: { $0 != .attribute(.transformable) }),
        let (right, _) = self.path(entity, where: { $0 == column })
      else { return .literal(true) }
      return .comparison(.property(left), hasIDs(column) ? equality() : order(), .property(right), isText(column) ? self.folding() : [])
    case 7, 8:
      guard let (path, _) = self.toMany(entity) else { return try comparison(entity) }
      let count: QueryExpression = chance(60) ? .count(path) : .remainder(.count(path), Int64(number(1...3)))
      return .comparison(count, order(), .constant(.int64(Int64(number(0...3)))), [])
    case 9:
      let tag = QueryExpression.remainder(.property("tag"), Int64(number(2...5)))
      return .comparison(tag, order(), .constant(.int64(Int64(number(0...3)))), [])
    case 10:
      let all = graph.things.keys.sorted()
      if all.isEmpty { return .literal(false) }
      if chance(50) { return .comparison(.object, equality(), .constant(.objectID(try id(pick(all)))), []) }
      return .membership(.object, try (0..<number(0...4)).map { _ in .objectID(try id(pick(all))) })
    case 11:
      guard let (path, _) = self.path(entity, where: { $0 == .attribute(.boolean) }) else { return .literal(chance(50)) }
      return .property(path)
    case 12: return .and(try (0..<number(0...3)).map { _ in try condition(entity, depth: depth - 1) })
    case 13: return .or(try (0..<number(0...3)).map { _ in try condition(entity, depth: depth - 1) })
    case 14: return .not(try condition(entity, depth: depth - 1))
    default:
      guard let (path, destination) = self.toMany(entity) else { return try comparison(entity) }
      let part = try condition(destination, depth: depth - 1)
      return chance(50) ? .any(path, part) : .all(path, part)
    }
  }

  private mutating func comparison(_ entity: Entity) throws -> QueryExpression {
    guard let (path, column) = self.path(entity) else { return .literal(true) }
    let value = QueryExpression.constant(try constant(path, column, entity))
    let isLeft = chance(20)
    if isText(column) && chance(40) {
      return .comparison(.property(path), pick([.beginsWith, .endsWith, .contains]), value, folding())
    }
    let comparison = hasIDs(column) || !isComparable(column) ? equality() : order()
    let folding: TextFolding = isText(column) ? self.folding() : []
    return isLeft
      ? .comparison(value, comparison, .property(path), folding) : .comparison(.property(path), comparison, value, folding)
  }

  // MARK: Order

  mutating func sorts(_ entity: Entity) -> [SortTerm] {
    var terms: [SortTerm] = []
    for _ in 0..<number(0...3) {
      guard let (path, column) = self.path(entity) else { continue }
      terms.append(SortTerm(path, isAscending: chance(50), folding: isText(column) ? self.folding() : []))
    }
    return terms
  }
}
