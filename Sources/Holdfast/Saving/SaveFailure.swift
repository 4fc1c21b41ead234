import HoldfastStore

/// Errors for changes that a store refused or didn't commit.
enum SaveFailure {
  /// The error of a save that left all stores unchanged.
  static func refusal(_ error: any Error, _ save: SaveOperation) -> any Error {
    guard let refusal = error as? StoreError else { return error }
    switch refusal.code {
    case .conflict: return conflict(refusal)
    case .constraintConflict: return constraint(refusal, save)
    default: return refusal
    }
  }

  static func conflict(_ error: StoreError) -> PersistenceError {
    let ids = error.conflicts.map(\.objectID)
    let subject = ids.isEmpty ? "Objects were" : ids.count == 1 ? "1 object was" : "\(ids.count) objects were"
    return PersistenceError(
      .conflict,
      reason: "\(subject) changed or deleted by another context or process since this context read them; nothing was saved. Resolve the "
        + "conflicts, to keep or discard your changes, and save again: resolveConflicts(of:using:). Or set a mergePolicy.",
      objectIDs: ids, cause: error)
  }

  /// - Parameters:
  ///   - uncertain: The store whose outcome is unknown; nil if none is.
  ///   - unconfirmed: The error of a store that has its changes; nil if there is none.
  static func incomplete(
    _ saved: [StoreChanges], without rest: [StoreChanges], uncertain: StoreChanges?, unconfirmed: StoreError?, _ cause: any Error
  ) -> PersistenceError {
    let objects = rest.flatMap { $0.inserted + $0.updated + $0.deleted }
    func titles(_ parts: [StoreChanges]) -> String { parts.map(\.store.title).joined(separator: ", ") }
    let unsaved = rest.filter { $0 !== uncertain }
    let doubt = unconfirmed.map { " A store that has its changes reported: \($0.reason)" } ?? ""
    return PersistenceError(
      .incompleteSave,
      reason: "The changes were saved in \(titles(saved))" + (unsaved.isEmpty ? "." : ", but not in \(titles(unsaved)).")
        + (uncertain.map { " It is unknown whether they were saved in \($0.store.title)." } ?? "")
        + " Objects with unsaved changes: \(objects.count). Save again." + doubt,
      objectIDs: objects.map(\.id), savedStoreIdentifiers: saved.map(\.store.identifier), cause: cause)
  }

  static func constraint(_ error: StoreError, _ save: SaveOperation) -> PersistenceError {
    var error = error
    save.useKnownIDs(in: &error.constraintConflicts)
    let ids = error.constraintConflicts.map(\.objectID)
    let names = Set(error.constraintConflicts.map { $0.constraint.joined(separator: ", ") }).sorted().joined(separator: "; ")
    let subject = ids.isEmpty ? "Objects have" : ids.count == 1 ? "1 object has" : "\(ids.count) objects have"
    return PersistenceError(
      .constraintConflict,
      reason: "\(subject) the same \(names.isEmpty ? "unique values" : names) as another. Change them, or resolve the conflicts, and save "
        + "again: resolveConflicts(of:using:).",
      objectIDs: ids, cause: error)
  }
}
