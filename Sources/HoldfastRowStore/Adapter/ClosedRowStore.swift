/// A row store that isn't open. It answers the requests of ``/HoldfastStore/StoreDescription/administration``.
struct ClosedRowStore<Store: RowStore>: Sendable {
  let type: String
  let location: StoreLocation?
  let isReadOnly: Bool
  let makeStore: @Sendable () -> Store

  var answers: StoreAnswers {
    AnswerTable<ClosedRowStore>()
      .answering(MetadataRequest.self) { store, _, _ in try store.metadata() }
      .answering(MetadataChangeRequest.self) { store, request, _ in try store.setMetadata(request.userInfo) }
      .answering(StoredModelRequest.self) { store, _, _ in
        try store.opened { try RowStoreSettings.model($1, store.location) }
      }
      .bound(to: self)
  }

  private func metadata() throws -> PersistentStoreMetadata {
    let settings = try opened { try existing($1, MetadataRequest.operation) }
    return PersistentStoreMetadata(
      storeUUID: settings.storeUUID, type: type, entityVersionHashes: settings.versionHashes, entityLayoutHashes: settings.layoutHashes,
      userInfo: settings.metadata)
  }

  private func setMetadata(_ metadata: [String: StoreValue]) throws {
    if isReadOnly { throw RowStoreError.readOnly(MetadataChangeRequest.operation, location) }
    try opened { store, texts in
      var settings = try existing(texts, MetadataChangeRequest.operation), changes = RowChanges()
      settings.metadata = metadata
      let text = try settings.metadataText()
      changes.settings[text.name] = text.value
      try store.apply(changes)
    }
  }

  private func existing(_ texts: [String: String], _ operation: String) throws -> RowStoreSettings {
    if let settings = try RowStoreSettings(texts, location) { return settings }
    throw StoreError(
      .notFound, operation: operation, path: location?.description, reason: "There is no store. Open it in a coordinator to create it.")
  }

  /// Opens the data for one request.
  private func opened<Result>(_ body: (Store, [String: String]) throws -> Result) throws -> Result {
    let store = makeStore(), texts = try store.open()
    do {
      let result = try body(store, texts)
      try store.close()
      return result
    } catch {
      try? store.close()
      throw error
    }
  }
}
