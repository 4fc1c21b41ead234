import HoldfastStore
import ServiceAPI

/// Translates a fetch to a query of the service.
///
/// Only what the capabilities declare arrives. Anything else is declined with `unsupportedRequest`: the framework then evaluates it.
struct QueryTranslation {
  private let model: ManagedObjectModel
  private let plan: FetchPlan
  private var entity: ManagedObjectModel.Entity { model.entities[plan.entity] }

  init(_ model: ManagedObjectModel, _ plan: FetchPlan) { (self.model, self.plan) = (model, plan) }

  func query() throws -> Query {
    var query = Query(
      Selection(table: model.table(of: entity), types: Set(plan.concreteEntities.map { model.entities[$0].name })))
    query.filter = try plan.predicate.map(filter)
    query.sorts = try plan.sorts.map(sort)
    (query.offset, query.limit) = (plan.offset, plan.limit)
    switch plan.output {
    case .rows: query.answer = .rows
    case .keys: query.answer = .keys
    case .count: query.answer = .count
    default: throw unsupported
    }
    return query
  }

  private var unsupported: StoreError {
    StoreError(.unsupportedRequest, operation: "fetch rows", reason: "The service can't evaluate a part of the request.")
  }

  private func sort(_ term: SortTerm) throws -> Sort {
    let (field, column) = try field(term.path)
    guard term.folding.isEmpty, case .attribute = column else { throw unsupported }
    return Sort(field: field, isAscending: term.isAscending)
  }

  // MARK: Conditions

  private func filter(_ expression: QueryExpression) throws -> Filter {
    switch expression {
    case .literal(let holds): return holds ? .and(filters: []) : .or(filters: [])
    case .property(let path): return .compare(left: .field(name: try field(path).name), is: .equal, right: .constant(value: .boolean(true)))
    case .comparison(let left, let comparison, let right, let folding):
      guard folding.isEmpty else { throw unsupported }
      return .compare(left: try operand(left), is: try translate(comparison), right: try operand(right))
    case .between(let value, let lower, let upper):
      return .and(filters: [
        .compare(left: try operand(value), is: .greaterOrEqual, right: .constant(value: try constant(lower))),
        .compare(left: try operand(value), is: .lessOrEqual, right: .constant(value: try constant(upper))),
      ])
    case .membership(let value, let list):
      let left = try operand(value)
      return .or(filters: try list.map { .compare(left: left, is: .equal, right: .constant(value: try constant($0))) })
    case .and(let parts): return .and(filters: try parts.map(filter))
    case .or(let parts): return .or(filters: try parts.map(filter))
    case .not(let part): return .not(filter: try filter(part))
    default: throw unsupported
    }
  }

  private func operand(_ expression: QueryExpression) throws -> Filter.Operand {
    switch expression {
    case .object: .key
    case .property(let path): .field(name: try field(path).name)
    case .constant(let value): .constant(value: try constant(value))
    default: throw unsupported
    }
  }

  private func translate(_ comparison: ComparisonOperator) throws -> Filter.Comparison {
    switch comparison {
    case .lessThan: .less
    case .lessThanOrEqualTo: .lessOrEqual
    case .greaterThan: .greater
    case .greaterThanOrEqualTo: .greaterOrEqual
    case .equalTo: .equal
    case .notEqualTo: .notEqual
    case .beginsWith: .beginsWith
    case .endsWith: .endsWith
    case .contains: .contains
    @unknown default: throw unsupported
    }
  }

  /// The field of a property of the entity itself. Paths through relationships are declined.
  private func field(_ path: PropertyPath) throws -> (name: String, column: ColumnType) {
    guard let resolved = try? ResolvedPath(path, from: entity, in: model), resolved.hops.isEmpty, let slot = resolved.slot else {
      throw unsupported
    }
    if case .attribute(let type) = entity.slots[slot].columnType, !HTTPStore.comparedTypes.contains(type) { throw unsupported }
    return (entity.slots[slot].name, entity.slots[slot].columnType)
  }

  private func constant(_ value: StoreValue) throws -> FieldValue {
    switch value {
    case .decimal, .data, .externalData: throw unsupported
    // It is compared with a reference or the object itself.
    case .objectID(let id): .integer(id.key.rawValue)
    default: FieldValue(value)
    }
  }
}
