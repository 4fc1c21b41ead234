import Holdfast
import HoldfastStore

/// The meaning of queries, implemented on dictionaries as simply as possible.
extension PlainGraph {
  /// The to-one relationships whose rows may reference deleted things.
  var relationshipsToDeleted: Set<String> { Set(dangling.map { $0[1] } + held.keys.map { $0[1] }) }

  /// The things that a query must find, in its order and window.
  ///
  /// - Parameter ranks: The positions of things in the order of their IDs, by tag.
  func answer(_ query: RandomQuery, ranks: [Int: Int64]) -> [Int] {
    let ordered = matches(query).sorted { precedes($0, $1, query.sorts, ranks) }
    return Array(ordered.dropFirst(query.offset).prefix(query.limit ?? .max))
  }

  /// The things that match the predicate of a query.
  func matches(_ query: RandomQuery) -> [Int] {
    kind(query.entity.index).filter { tag in
      (query.includesSubentities || things[tag]?.entity == query.entity.index)
        && query.predicate.map { holds($0, tag, query.ids) } ?? true
    }
  }

  private func holds(_ expression: QueryExpression, _ tag: Int, _ ids: [Int: ManagedObjectID]) -> Bool {
    switch expression {
    case .literal(let value): value
    case .and(let parts): parts.allSatisfy { holds($0, tag, ids) }
    case .or(let parts): parts.contains { holds($0, tag, ids) }
    case .not(let part): !holds(part, tag, ids)
    case .comparison(let left, let op, let right, let folding):
      ValueComparison.holds(value(left, tag, ids), op, value(right, tag, ids), folding)
    case .between(let part, let lower, let upper):
      ValueComparison.holds(value(part, tag, ids), .greaterThanOrEqualTo, lower)
        && ValueComparison.holds(value(part, tag, ids), .lessThanOrEqualTo, upper)
    case .membership(let part, let list):
      list.contains { ValueComparison.holds(value(part, tag, ids), .equalTo, $0) }
    case .any(let path, let part): objects(path, tag).contains { holds(part, $0, ids) }
    case .all(let path, let part): objects(path, tag).allSatisfy { holds(part, $0, ids) }
    case .property: value(expression, tag, ids) == .bool(true)
    case .constant, .object, .count, .remainder: false
    }
  }

  private func value(_ expression: QueryExpression, _ tag: Int, _ ids: [Int: ManagedObjectID]) -> StoreValue {
    // An object that the query doesn't mention differs from all that it mentions.
    func identify(_ tag: Int) -> StoreValue { ids[tag].map { .objectID($0) } ?? .int64(Int64(tag)) }
    return switch expression {
    case .constant(let value): value
    case .object: identify(tag)
    case .property(let path): value(at: path, tag, identify)
    case .count(let path): .int64(Int64(objects(path, tag).count))
    case .remainder(let part, let divisor): value(part, tag, ids).integer.map { .int64($0 % divisor) } ?? .null
    default: .bool(holds(expression, tag, ids))
    }
  }

  /// The value at the end of a path; nil if a relationship of the path has no destination.
  ///
  /// - Parameter identify: Returns a value that represents the destination of a to-one relationship at the end.
  func value(at path: PropertyPath, _ start: Int, _ identify: (Int) -> StoreValue) -> StoreValue {
    var tag = start, names = path.names[...]
    while let name = names.first, let thing = things[tag] {
      guard let relationship = model.entities[thing.entity].relationship(named: name) else {
        return name == "tag" ? .int64(Int64(tag)) : thing.values[names.joined(separator: ".")] ?? .null
      }
      guard let target = targets(tag, relationship).first else { return .null }
      names = names.dropFirst()
      if names.isEmpty { return identify(target) }
      tag = target
    }
    return .null
  }

  /// The destinations of the to-many relationship at the end of a path.
  private func objects(_ path: PropertyPath, _ start: Int) -> [Int] {
    var tags = [start]
    for name in path.names {
      tags = tags.flatMap { tag in
        things[tag].flatMap { model.entities[$0.entity].relationship(named: name) }.map { targets(tag, $0) } ?? []
      }
    }
    return tags
  }

  /// Whether a thing sorts before another.
  func precedes(_ a: Int, _ b: Int, _ terms: [SortTerm], _ ranks: [Int: Int64]) -> Bool {
    func rank(_ tag: Int) -> StoreValue { .int64(ranks[tag] ?? 0) }
    for term in terms {
      let x = value(at: term.path, a, rank), y = value(at: term.path, b, rank)
      if ValueComparison.holds(x, .equalTo, y, term.folding) { continue }
      let isFirst = x == .null || (y != .null && ValueComparison.holds(x, .lessThan, y, term.folding))
      return isFirst == term.isAscending
    }
    return ranks[a] ?? 0 < ranks[b] ?? 0
  }
}
