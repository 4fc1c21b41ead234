import HoldfastStore

/// Copies a closed store to a place of its own, and from there to the destination.
struct StoreCopier {
  static let operation = "copy the store"

  private let source: StoreDescription
  private let destination: StoreDescription
  private let model: ManagedObjectModel?
  private let options: RequestOptions

  /// - Parameter options: The options of the entire copy, which is cancelled between batches.
  init(_ source: StoreDescription, _ destination: StoreDescription, _ model: ManagedObjectModel?, _ options: RequestOptions) {
    (self.source, self.destination, self.model, self.options) = (source, destination, model, options)
  }

  /// Copies the store.
  ///
  /// - Parameter state: The state that the destination's file must have when the copy takes its place. Defaults to nil: any.
  func run(expecting state: StoreFileState? = nil) throws -> StoreCopy {
    try options.check(Self.operation)
    // Only the end of the copy would find it out, or its beginning, as a missing file.
    if destination.isReadOnly {
      throw StoreError(
        .readOnly, operation: Self.operation, path: destination.location?.description,
        reason: "The description of the destination is read-only. Describe it for writing.")
    }
    let temporary = try TemporaryStore(beside: destination, to: Self.operation), place = temporary.description
    defer { temporary.remove() }
    do {
      let copy: StoreCopy
      do {
        copy = try Self.openingExisting(source, model) { store, model, metadata in
          let reader = try GraphReader(store, model, metadata.identity, path: source.location?.description)
          return try self.copy(reader, metadata.userInfo, to: place)
        }
      } catch { throw error.ofTemporaryCopy }
      try options.check(Self.operation)
      let replacement = ReplacementRequest(source: place.location ?? .named(destination.type), expecting: state)
      try PersistentStoreCoordinator.perform(replacement, destination, .cancelledWithTask)
      options.report(1)
      return copy
    } catch { throw error.located(at: destination.location, insteadOfIn: temporary.folder) }
  }

  private func copy(_ reader: GraphReader, _ userInfo: [String: StoreValue], to place: StoreDescription) throws -> StoreCopy {
    // Both stores are read, the source twice. The rest is for writing.
    observe(reader, 0...0.25)
    let digest = try GraphDigest(reader)
    return try Self.opening(place, reader.model) { store, metadata in
      let identity = metadata.identity
      var copy = GraphCopy(reader, to: store, identity)
      observe(reader, 0.25...0.5)
      try PersistentStore.wrapping(Self.operation, destination.location?.description) {
        try copy.run()
        if !userInfo.isEmpty { try store.setMetadata(userInfo.mapValues { copy.translated($0) }) }
      }
      let written = try GraphReader(store, reader.model, identity, path: place.location?.description)
      observe(written, 0.7...0.95)
      let found = try GraphDigest(written)
      guard found == digest else {
        throw StoreError(
          .damaged, operation: Self.operation, path: destination.location?.description,
          reason:
            "The copy has other contents than the source: \(found.objectCount) instead of \(digest.objectCount) objects, or other values. "
            + "The destination wasn't changed. Try again; if it fails again, report it as a mistake of Holdfast.")
      }
      return StoreCopy(digest, reader, identity, copy.keys)
    }
  }

  /// Reports the progress of reading all objects.
  private func observe(_ reader: GraphReader, _ shares: ClosedRange<Double>) {
    if !options.reportsProgress { return }
    let total = Double(max(reader.passCount, 1))
    var done = 0
    reader.observer = { [options] count in
      done += count
      options.report(shares.lowerBound + min(Double(done) / total, 1) * (shares.upperBound - shares.lowerBound))
    }
  }

  // MARK: Opening

  /// Opens and closes a store that exists. That completes interrupted saves, moves a log into the file and adds missing indexes, so opening and
  /// closing it again changes nothing in the file.
  static func settle(_ description: StoreDescription, _ model: ManagedObjectModel?) throws {
    try openingExisting(description, model) { _, _, _ in }
  }

  /// Opens a store that exists, reads one state of it, and closes it afterwards.
  static func reading<Result>(
    _ description: StoreDescription, _ model: ManagedObjectModel?, _ body: (GraphReader, StoreMetadata) throws -> Result
  ) throws -> Result {
    try openingExisting(description, model) { store, model, metadata in
      try body(try GraphReader(store, model, metadata.identity, path: description.location?.description), metadata)
    }
  }

  /// Opens a store that exists, verifies it as far as it can, reads one state of it, and closes it afterwards.
  static func verifying<Result>(
    _ description: StoreDescription, _ model: ManagedObjectModel?, _ body: (GraphReader) throws -> Result
  ) throws -> Result {
    try openingExisting(description, model) { store, model, metadata in
      // First, because it names what is damaged, and reading may only fail because of it.
      if store.answers.supports(VerificationRequest.self) {
        try PersistentStore.wrapping(VerificationRequest.operation, description.location?.description) {
          try store.answers.perform(VerificationRequest())
        }
      }
      return try body(try GraphReader(store, model, metadata.identity, path: description.location?.description))
    }
  }

  private static func openingExisting<Result>(
    _ description: StoreDescription, _ model: ManagedObjectModel?,
    _ body: (any IncrementalStore, ManagedObjectModel, StoreMetadata) throws -> Result
  ) throws -> Result {
    // Opening some stores would create them.
    var found: PersistentStoreMetadata?
    do { found = try PersistentStoreCoordinator.metadata(for: description) } catch let error as StoreError
      where error.code == .unsupportedRequest
    {}
    let stored = try model ?? PersistentStoreCoordinator.cachedModel(for: description)
    guard let model = stored else {
      throw MigrationError.missingSourceModel(
        found, among: [], path: description.location?.description,
        reason: "The store doesn't contain its model. Pass the model with which it was created.")
    }
    return try opening(description, model) { store, metadata in try body(store, model, metadata) }
  }

  private static func opening<Result>(
    _ description: StoreDescription, _ model: ManagedObjectModel, _ body: (any IncrementalStore, StoreMetadata) throws -> Result
  ) throws -> Result {
    let store = description.makeStore(), path = description.location?.description
    let host = StoreHost(configuration: description.configuration) { _ in }
    let metadata = try PersistentStore.wrapping("open the store", path) { try store.open(model: model, host: host) }
    do {
      let result = try body(store, metadata)
      try PersistentStore.wrapping("close the store", path) { try store.close() }
      return result
    } catch {
      try? store.close()
      throw error
    }
  }
}
