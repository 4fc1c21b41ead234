// swift-format-ignore-file
// The examples of *The semantics profile*, word for word; `SnippetTests` compares them, `SemanticsTests` runs them.
import Holdfast

/// Saves. On a conflict, merges this context's changes into the rows as they are now, and saves again.
func saveOverOthers(_ context: ManagedObjectContext) throws {
  for _ in 0..<3 {
    do {
      return try context.save()
    } catch let error as PersistenceError where error.code == .conflict {
      for id in error.objectIDs { try context.refresh(context.object(with: id), mergeChanges: true) }
    }
  }
  try context.save()
}

/// Saves, and returns the property and number of each failure, in the order in which they are reported.
func failures(of context: ManagedObjectContext) -> [String] {
  do {
    try context.save()
    return []
  } catch let error as PersistenceError {
    let failures = error.failures.isEmpty ? [error] : error.failures  // a single failure is thrown directly
    return failures.map { "\($0.property ?? "") \($0.coreDataCode)" }
  } catch {
    return ["\(error)"]
  }
}
