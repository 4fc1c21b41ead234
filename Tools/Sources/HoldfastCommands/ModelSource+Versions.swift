import HoldfastStore

/// Selects versions for commands. A version that can't be read is an error; it is never replaced by another version or omitted.
extension ModelSource {
  /// The version with a name. Defaults to the current version.
  func version(_ name: String?) throws(CommandError) -> Version {
    if let found = versions.first(where: { $0.name == name ?? currentName }) { return found }
    guard let name else { throw unreadableError("The current version, \(currentName), can't be read.", [currentName]) }
    if unreadable.contains(where: { $0.name == name }) { throw unreadableError("The version \(name) can't be read.", [name]) }
    throw CommandError(path: path, reason: "The version \(name) doesn't exist. The versions are \(readableNames).")
  }

  /// The version that a store was created with.
  ///
  /// - Parameters:
  ///   - store: The metadata of the store.
  ///   - storePath: The path of the store, for the error.
  ///   - configuration: The configuration that the store was created for. Defaults to none.
  /// - Throws: ``CommandError`` with the entities that differ from the most similar version, if there is none.
  func version(
    of store: PersistentStoreMetadata, at storePath: String, configuration: String? = nil
  ) throws(CommandError) -> Version {
    let compared = versions.map { (version: $0, entities: store.differingEntities(from: $0.model, configuration: configuration)) }
    guard let similar = compared.min(by: { $0.entities.count < $1.entities.count }) else {
      throw unreadableError("None of the versions can be read.", unreadable.map(\.name))
    }
    if similar.entities.isEmpty { return similar.version }
    let names = unreadable.map(\.name).joined(separator: ", ")
    throw CommandError(
      path: path,
      reason: "None of the model's versions matches the store \(storePath). These entities differ from the most similar version, "
        + "\(similar.version.name): \(similar.entities.joined(separator: ", "))."
        + (names.isEmpty ? "" : " These versions can't be read: \(names).") + " Give the model with which the store was created."
        + store.configurationAdvice(versions.map(\.model)))
  }

  /// All versions.
  func allVersions() throws(CommandError) -> [Version] {
    let names = unreadable.map(\.name)
    if names.isEmpty { return versions }
    let what = names.count == 1 ? "The version \(names[0])" : "The versions \(names.joined(separator: ", "))"
    throw unreadableError(
      "\(what) can't be read, and the output would lack \(names.count == 1 ? "it" : "them"). Nothing was written.", names)
  }

  private var readableNames: String { versions.map(\.name).joined(separator: ", ") }

  /// The error for unreadable versions, with the reason for each.
  private func unreadableError(_ reason: String, _ names: [String]) -> CommandError {
    let found = unreadable.filter { names.contains($0.name) }
    let reasons = found.count > 1 ? found.map { " \($0.name): \($0.error)" }.joined() : ""
    return CommandError(
      path: path, reason: "\(reason) Choose a readable version with --version: \(readableNames).\(reasons)",
      cause: found.count == 1 ? found[0].error : nil)
  }
}
