import HoldfastStore

extension MetadataRecord {
  /// The entities of a model that the file lacks, ascending, if the store is opened with a configuration without them.
  ///
  /// Core Data creates a store of a configuration with the hashes, numbers and tables of the configuration's entities only. Empty for a
  /// file that this framework created, for one that has something of such an entity, and for one in which another entity differs from the
  /// model's.
  ///
  /// - Throws: `incompatibleModel` if only other configurations are without these entities.
  func missingEntities(
    of model: ManagedObjectModel, openedWith configuration: String?, _ connection: SQLiteConnection
  ) throws(StoreError) -> [EntityIndex] {
    if isOwn || model.configurations.isEmpty { return [] }
    let missing = try missingEntities(of: model, connection)
    if missing.isEmpty || (try? checkCompatibility(with: model, without: missing, path: nil)) == nil { return [] }
    let names = missing.map { model.entities[$0].name }
    let fitting = model.configurations.filter { configuration in !configuration.entities.contains { names.contains($0) } }.map { $0.name }
    if fitting.isEmpty { return [] }
    if let configuration, fitting.contains(configuration) { return missing }
    throw StoreError(
      .incompatibleModel, operation: connection.operation, path: connection.path,
      reason: "The store lacks these entities of the model: \(names.joined(separator: ", ")). If it was created for a configuration, open "
        + "it with that one; these of the model fit: \(fitting.joined(separator: ", ")). If it was created with a former version of the "
        + "model, migrate it.")
  }

  /// The entities of a model without a version hash, row of `Z_PRIMARYKEY` or table in the file. Empty if it lacks all of them, or if
  /// another entity has one of them as its superentity or at the other end of a relationship.
  private func missingEntities(of model: ManagedObjectModel, _ connection: SQLiteConnection) throws(StoreError) -> [EntityIndex] {
    let hashes = versionHashes
    let missing = model.entityIndexes.filter { hashes[model.entities[$0].name] == nil }
    if missing.isEmpty || missing.count == model.entities.count { return [] }
    func isMissing(_ index: EntityIndex?) -> Bool { index.map { missing.contains($0) } ?? false }
    for entity in model.entities where !isMissing(entity.index) {
      let isCutOff = entity.relationships.contains { relationship in
        isMissing(relationship.destinationIndex) || isMissing(model.inverse(of: relationship)?.entityIndex)
      }
      if isCutOff || isMissing(entity.superentityIndex) { return [] }
    }
    // Numbers from 16,000 on are those of history and CloudKit.
    let names = try connection.prepare(
      "SELECT Z_NAME FROM Z_PRIMARYKEY WHERE Z_ENT < 16000 UNION SELECT name FROM sqlite_master WHERE type = 'table'")
    defer { names.reset() }
    while try names.step() {
      let name = names.string(0)
      if missing.contains(where: { name == model.entities[$0].name || name == SQLName.prefixed(model.entities[$0].name) }) { return [] }
    }
    return missing
  }
}
