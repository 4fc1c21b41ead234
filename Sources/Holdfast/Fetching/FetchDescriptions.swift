import HoldfastStore

// Requests as text, for debugging.

extension FetchPredicate: CustomStringConvertible {
  /// The condition as text, with its values, such as `minutes > 30 AND dog.name == "Fido"`.
  public var description: String { expression.description }
}

extension FetchSortDescriptor: CustomStringConvertible {
  /// The path and the direction, such as `dog.name descending`.
  public var description: String { term.text }
}

extension FetchRequest: CustomStringConvertible {
  /// The entity, the condition with its values, the sort order and the limits, such as `Walk where minutes > 30 sorted by minutes ascending limit 10`.
  public var description: String {
    var parts = [entityName]
    if let expression { parts.append("where \(expression)") }
    if !sorts.isEmpty { parts.append("sorted by " + sorts.map(\.text).joined(separator: ", ")) }
    if fetchOffset > 0 { parts.append("offset \(fetchOffset)") }
    if let fetchLimit { parts.append("limit \(fetchLimit)") }
    return parts.joined(separator: " ")
  }
}

extension SortTerm {
  fileprivate var text: String { path.names.joined(separator: ".") + (isAscending ? " ascending" : " descending") }
}
