// swift-format-ignore-file
// The examples of *The semantics profile*, word for word; `SnippetTests` compares them, `SemanticsTests` runs them.
import Holdfast

/// Saves, and where somebody else changed the same objects meanwhile, saves this context's changes over theirs.
func saveOverOthers(_ context: ManagedObjectContext) throws {
  for _ in 0..<3 {
    do {
      return try context.save()
    } catch let error as ContextError where error.code == .conflict {
      for id in error.objectIDs { try context.refresh(context.object(with: id), mergeChanges: true) }
    }
  }
  try context.save()
}

/// Says what a save was refused for: property and number of each failure, in their order.
func failures(of context: ManagedObjectContext) -> [String] {
  do {
    try context.save()
    return []
  } catch let error as ContextError {
    let failures = error.failures.isEmpty ? [error] : error.failures  // one failure is thrown as itself
    return failures.map { "\($0.property ?? "") \($0.coreDataCode)" }
  } catch {
    return ["\(error)"]
  }
}
