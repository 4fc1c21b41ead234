import HoldfastStore

extension CompiledModelReader {
  /// The keys that are read, and keys that are noted only if they have an unusual value.
  private static let knownKeys: Set<String> = [
    "NSEntity", "NSPredicate", "NSResultType", "NSFetchLimit", "NSBatchSize", "NSFetchRequestFlags", "NSHasFetchRequestFlags",
    "NSSortDescriptors", "NSValuesToFetch", "NSValuesToGroupBy", "NSHavingPredicate", "NSFetchOffset",
    "NSRelationshipKeyPathsForPrefetching", "NSAllocationType",
  ]
  /// The flags of every known request with default settings.
  private static let usualFlags = 30

  /// A fetch request. Settings that a declaration can't have are noted.
  mutating func fetchRequest(_ part: ArchivedPart, _ name: String, entity: String? = nil) throws(ModelFileError) -> FetchRequestDescription
  {
    let named = try part.part("NSEntity")?.text("NSEntityName")
    guard let asked = entity ?? named else { throw part.failure("The entity is missing.") }
    var request = FetchRequestDescription(name, entity: asked)
    if let predicate = try part.part("NSPredicate") { request.predicateFormat = try predicateFormat(predicate) }
    guard let resultType = FetchRequestDescription.ResultType(rawValue: try part.integer("NSResultType") ?? 0) else {
      throw part.failure("The result type isn't supported.", .unsupported)
    }
    request.resultType = resultType
    request.fetchLimit = try part.integer("NSFetchLimit") ?? 0
    request.fetchBatchSize = try part.integer("NSBatchSize") ?? 0
    if try part.flag("NSHasFetchRequestFlags"), let flags = try part.integer("NSFetchRequestFlags"), flags != Self.usualFlags {
      note(part, "The flags \(flags) are unknown. The default flags are used.")
    }
    if try part.integer("NSFetchOffset") ?? 0 != 0 { note(part, "The offset was omitted.") }
    for (key, what) in [
      ("NSSortDescriptors", "order"), ("NSValuesToFetch", "list of properties"), ("NSValuesToGroupBy", "grouping"),
      ("NSRelationshipKeyPathsForPrefetching", "list of relationships to prefetch"),
    ] where try !part.list(key).isEmpty {
      note(part, "The \(what) was omitted.")
    }
    if try part.part("NSHavingPredicate") != nil { note(part, "The condition on groups was omitted.") }
    try noteKeys(of: part, besides: Self.knownKeys)
    return request
  }

  /// The text of a predicate. If a predicate can't be written as text, returns one that matches nothing. Matching all objects would be
  /// wrong.
  private mutating func predicateFormat(_ part: ArchivedPart) throws(ModelFileError) -> String {
    do throws(ModelFileError) { return try expressions.predicate(part).text } catch {
      guard error.code == .unsupported else { throw error }
      note(part, "The predicate was omitted, so the request finds nothing. \(error.reason)")
      return "FALSEPREDICATE"
    }
  }
}
