import Foundation
import Holdfast
import HoldfastStore
import TestSupport

/// A random dictionary request: the objects that a query matches, in groups with equal values, and values computed from each group.
struct RandomGrouping: CustomStringConvertible {
  let query: RandomQuery
  /// The properties by which the result is grouped. Their columns are named `0` and `1`.
  let groupBy: [String]
  /// The other columns, with the type of the attribute.
  let computed: [String: (column: DictionaryFetchColumn, type: AttributeType)]

  /// - Parameter avoided: Names of to-one relationships by which the result isn't grouped.
  init(_ query: RandomQuery, avoiding avoided: Set<String>, seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    self.query = query
    let slots = query.entity.slots.filter { !avoided.contains($0.name) && $0.columnType != .attribute(.transformable) }
    var groupBy: [String] = []
    for _ in 0..<Int.random(in: 0...2, using: &random) {
      if let name = slots.randomElement(using: &random)?.name, !groupBy.contains(name) { groupBy.append(name) }
    }
    self.groupBy = groupBy
    var computed: [String: (column: DictionaryFetchColumn, type: AttributeType)] = ["all": (column: .count(), type: .integer64)]
    let attributes = query.entity.attributes.filter { $0.type != .transformable }
    for number in 0..<Int.random(in: 0...3, using: &random) {
      guard let attribute = attributes.randomElement(using: &random) else { continue }
      let name = attribute.name
      var columns: [DictionaryFetchColumn] = [.count(name), .minimum(name), .maximum(name)]
      if RandomGrouping.numbers.contains(attribute.type) { columns += [.sum(name), .average(name)] }
      computed["c\(number)"] = columns.randomElement(using: &random).map { (column: $0, type: attribute.type) }
    }
    self.computed = computed
  }

  private static let numbers: Set<AttributeType> = [.integer16, .integer32, .integer64, .double, .float, .decimal]

  var request: DictionaryFetchRequest<ManagedObject> {
    var columns = computed.mapValues { $0.column }
    for (place, name) in groupBy.enumerated() { columns["\(place)"] = .property(name) }
    var request = DictionaryFetchRequest<ManagedObject>(
      entityName: query.entity.name, where: query.predicate.map { FetchPredicate($0) }, columns: columns, groupedBy: groupBy)
    request.includesSubentities = query.includesSubentities
    return request
  }

  var description: String { "\(computed.mapValues { $0.column }) grouped by \(groupBy) of \(query)" }
}

extension PlainGraph {
  /// The result that a dictionary request must have.
  ///
  /// - Parameters:
  ///   - ranks: The positions of things in the order of their IDs, by tag.
  ///   - ids: The IDs of things, by tag.
  func groups(_ grouping: RandomGrouping, ranks: [Int: Int64], ids: [Int: ManagedObjectID]) -> [[String: StoreValue]] {
    func identify(_ tag: Int) -> StoreValue { ids[tag].map { .objectID($0) } ?? .null }
    let paths = grouping.groupBy.map { PropertyPath(dotted: $0) }, all = matches(grouping.query)
    var groups = Dictionary(grouping: all) { tag in paths.map { value(at: $0, tag, identify) } }
    if paths.isEmpty { groups = [[]: all] }
    let terms = paths.map { SortTerm($0) }
    let ordered = groups.sorted { a, b in
      guard let x = a.value.first, let y = b.value.first else { return false }
      return precedes(x, y, terms, ranks)
    }
    return ordered.map { values, tags in
      var row = grouping.computed.mapValues { computed(by: $0.column, $0.type, tags) }
      for (place, value) in values.enumerated() { row["\(place)"] = value }
      return row
    }
  }

  private func computed(by column: DictionaryFetchColumn, _ type: AttributeType, _ tags: [Int]) -> StoreValue {
    func values(_ name: String) -> [StoreValue] {
      tags.map { value(at: PropertyPath(dotted: name), $0) { .int64(Int64($0)) } }.filter { $0 != .null }
    }
    func first(_ name: String, _ op: ComparisonOperator) -> StoreValue {
      values(name).reduce(.null) { $0 == .null || ValueComparison.holds($1, op, $0) ? $1 : $0 }
    }
    return switch column {
    case .count(nil): .int64(Int64(tags.count))
    case .count(let name?): .int64(Int64(values(name).count))
    case .minimum(let name): first(name, .lessThan)
    case .maximum(let name): first(name, .greaterThan)
    case .sum(let name): sum(values(name), type)
    case .average(let name): average(values(name), type)
    case .property: .null
    }
  }

  private func sum(_ values: [StoreValue], _ type: AttributeType) -> StoreValue {
    switch type {
    case .decimal: .decimal(values.reduce(0) { $0 + decimal($1) })
    case .double, .float: .double(values.reduce(0) { $0 + real($1) })
    default: .int64(values.reduce(0) { $0 + ($1.integer ?? 0) })
    }
  }

  private func average(_ values: [StoreValue], _ type: AttributeType) -> StoreValue {
    if values.isEmpty { return .null }
    return switch sum(values, type) {
    case .decimal(let sum): .decimal(sum / Decimal(values.count))
    case .double(let sum): .double(sum / Double(values.count))
    case .int64(let sum): .double(Double(sum) / Double(values.count))
    default: .null
    }
  }

  private func decimal(_ value: StoreValue) -> Decimal { if case .decimal(let number) = value { number } else { 0 } }

  private func real(_ value: StoreValue) -> Double {
    switch value {
    case .double(let number): number
    case .float(let number): Double(number)
    default: 0
    }
  }
}
