// swift-format-ignore-file
// The examples of *The semantics profile*, word for word; `SnippetTests` compares them, `SemanticsTests` runs them.
import Holdfast

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
