import HoldfastStore

extension CompiledModelReader {
  /// What is kept of a request, and what says nothing while it has its usual value.
  private static let knownKeys: Set<String> = [
    "NSEntity", "NSPredicate", "NSResultType", "NSFetchLimit", "NSBatchSize", "NSFetchRequestFlags", "NSHasFetchRequestFlags",
    "NSSortDescriptors", "NSValuesToFetch", "NSValuesToGroupBy", "NSHavingPredicate", "NSFetchOffset",
    "NSRelationshipKeyPathsForPrefetching", "NSAllocationType",
  ]
  /// The flags of every request that was seen: all switches as they are unless somebody sets them.
  private static let usualFlags = 30

  /// A fetch request. What it is made of beyond a declaration's settings is noted.
  mutating func fetchRequest(_ part: ArchivedPart, _ name: String, entity: String? = nil) throws(ModelFileError) -> FetchRequestDescription
  {
    let named = try part.part("NSEntity")?.text("NSEntityName")
    guard let asked = entity ?? named else { throw part.failure("It does not say which entity it asks.") }
    var request = FetchRequestDescription(name, entity: asked)
    if let predicate = try part.part("NSPredicate") { request.predicateFormat = try predicateFormat(predicate) }
    guard let resultType = FetchRequestDescription.ResultType(rawValue: try part.integer("NSResultType") ?? 0) else {
      throw part.failure("The kind of its results is not known.", .unsupported)
    }
    request.resultType = resultType
    request.fetchLimit = try part.integer("NSFetchLimit") ?? 0
    request.fetchBatchSize = try part.integer("NSBatchSize") ?? 0
    if try part.flag("NSHasFetchRequestFlags"), let flags = try part.integer("NSFetchRequestFlags"), flags != Self.usualFlags {
      note(part, "Its switches \(flags) are not the usual ones and not known; the usual ones are taken.")
    }
    if try part.integer("NSFetchOffset") ?? 0 != 0 { note(part, "Its offset is not kept.") }
    for (key, what) in [
      ("NSSortDescriptors", "order"), ("NSValuesToFetch", "list of values"), ("NSValuesToGroupBy", "grouping"),
      ("NSRelationshipKeyPathsForPrefetching", "list of relationships to fetch along"),
    ] where try !part.list(key).isEmpty {
      note(part, "Its \(what) is not kept.")
    }
    if try part.part("NSHavingPredicate") != nil { note(part, "Its condition on groups is not kept.") }
    try noteKeys(of: part, besides: Self.knownKeys)
    return request
  }

  /// The text of a predicate. Of one that cannot be written nobody would want all objects, so it is one that finds none.
  private mutating func predicateFormat(_ part: ArchivedPart) throws(ModelFileError) -> String {
    do throws(ModelFileError) { return try expressions.predicate(part).text } catch {
      guard error.code == .unsupported else { throw error }
      note(part, "Its predicate is not kept, and it finds nothing. \(error.reason)")
      return "FALSEPREDICATE"
    }
  }
}
