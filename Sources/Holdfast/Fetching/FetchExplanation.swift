public import HoldfastStore

/// How a fetch would be executed: which work each store does, and which the framework does on the store's rows.
///
/// As text, for example:
///
/// ```text
/// /data/dogs.sqlite
///   store: Dog where age > 3, sorted by name, at most 10
///   framework: nothing
///     SELECT …
///       SEARCH t0 USING INDEX Z_Dog_age (ZAGE>?)
///       USE TEMP B-TREE FOR ORDER BY
/// ```
///
/// The text contains the predicate's values, so don't log it if they are confidential. ``Part/explanation`` doesn't contain them.
public struct FetchExplanation: Sendable, Hashable {
  /// The part of one store.
  public struct Part: Sendable, Hashable {
    /// The store's location without credentials; its type and UUID if it has no location.
    public let store: String
    /// The name of the fetched entity.
    public let entity: String
    /// The plan that the store executes.
    public let plan: FetchPlan
    /// The condition that the framework tests on each row that the store delivers; nil for none.
    public let predicate: QueryExpression?
    /// Whether the framework sorts the rows.
    public let isSortedByFramework: Bool
    /// Whether the framework applies offset and limit.
    public let isLimitedByFramework: Bool
    /// The store's own explanation, such as the SQL statement and the indexes it uses; nil if the store doesn't explain fetches.
    public let explanation: String?
  }

  /// The parts of the stores that may have matching objects. Their results are sorted and limited together if there are several.
  public let stores: [Part]
  /// Whether unsaved changes of the context can change the result. Then the context tests the changed objects, and sorts and limits all.
  public let includesPendingChanges: Bool
}

extension FetchExplanation: CustomStringConvertible {
  /// The explanation as lines of text.
  public var description: String {
    let changes = includesPendingChanges ? ["context: includes unsaved changes, sorts and limits"] : []
    let merge = stores.count > 1 ? ["framework: sorts and limits the rows of \(stores.count) stores"] : []
    return (stores.map(\.description) + merge + changes).joined(separator: "\n")
  }
}

extension FetchExplanation.Part: CustomStringConvertible {
  /// The part as lines of text.
  public var description: String {
    let own = explanation.map { $0.split(separator: "\n").map { "    \($0)" } } ?? []
    return ([store, "  store: \(planText)", "  framework: \(frameworkText)"] + own).joined(separator: "\n")
  }

  private var planText: String {
    var text = entity
    if let predicate = plan.predicate { text += " where \(predicate)" }
    if !plan.sorts.isEmpty { text += ", sorted by \(plan.sorts.map(\.phrase).joined(separator: ", "))" }
    if plan.offset > 0 { text += ", after the first \(plan.offset)" }
    if let limit = plan.limit { text += limit == .max ? ", in key order" : ", at most \(limit)" }
    return text
  }

  private var frameworkText: String {
    var work: [String] = []
    if let predicate { work.append("tests \(predicate)") }
    if isSortedByFramework { work.append("sorts") }
    if isLimitedByFramework { work.append("limits") }
    return work.isEmpty ? "nothing" : work.joined(separator: ", ")
  }
}

extension SortTerm {
  fileprivate var phrase: String { isAscending ? "\(path)" : "\(path) descending" }
}
