import HoldfastFiles
import HoldfastStore
import Synchronization

extension OpenedFile {
  /// Takes the lock, and loads the file and reports its changes if another process has saved it.
  ///
  /// - Parameter request: The options of the request, whose deadline limits the wait for the lock. Defaults to none.
  func begin(_ request: RequestOptions = .none) throws -> FileReplacement {
    let (replacement, change) = try beginWithoutReport(request)
    report(change)
    return replacement
  }

  /// Returns the changes for ``report(_:)`` as well; nil if there are none.
  private func beginWithoutReport(_ request: RequestOptions = .none) throws -> (FileReplacement, StoreChange?) {
    let replacement = try file.beginReplacing(request: request)
    do {
      switch replacement.foundChange {
      case .none: return (replacement, nil)
      case .removed: throw replaced("The file was removed or renamed. Put it back, or close the store and open another one.")
      case .replaced: return (replacement, try goOn(with: replacement))
      }
    } catch {
      replacement.abort()
      throw error
    }
  }

  private func goOn(with replacement: FileReplacement) throws -> StoreChange {
    // takeOver makes this the known version, so that it is loaded only once.
    let loaded = try replacement.takeOver { reader in
      let loaded = try load(reader)
      try check(loaded)
      return try countingEdits(in: loaded)
    }
    guard let loaded else { throw replaced("The file was removed or renamed. Put it back, or close the store and open another one.") }
    return goOn(with: loaded)
  }

  private func load(_ reader: FileReader) throws -> LoadedStore {
    do { return try format.load(reader, tables.schema.model, path, options) } catch let error as StoreError
      where error.code == .incompatibleModel
    {
      // The store is open, so it can't be migrated, and its own model isn't the file's any more.
      throw StoreError(
        .incompatibleModel, operation: "save", path: path,
        reason: "Another program migrated the file, or replaced it with a file of another version of the model. Close the store, "
          + "and open the file with that version of the model.", cause: error)
    }
  }

  /// The loaded version. If it was edited by hand, or is older than the known one, each row that differs has a version that contexts can't
  /// have read.
  ///
  /// An edited file may have a valid digest: another process can have loaded the edit and saved, or this one has counted an earlier edit.
  /// Saves after an older version use the numbers of the versions that it lacks again, for other values.
  private func countingEdits(in loaded: LoadedStore) throws -> LoadedStore {
    let isOlder = written.withLock { !Lineage(loaded.header.lineage).descends(from: $0.lineage) }
    guard options.allowsUnverified || isOlder, spilled == nil else { return loaded }
    // An older version is rare enough to read all rows for it that contexts may have read.
    guard let known = isOlder ? (try? tables.source.generation()) : tables.generation else { return loaded }
    var loaded = loaded
    loaded.generation = try loaded.generation.countingEdits(since: known, isOlder: isOlder)
    return loaded
  }

  /// Returns the changes for ``report(_:)``.
  private func goOn(with loaded: LoadedStore) -> StoreChange {
    let change = change(to: loaded)
    tables.goOn(with: loaded.generation, nextKeys: loaded.nextKeys, token: options.token(of: loaded.header))
    written.withLock { written in
      written.generation = max(written.generation, loaded.header.generation)
      written.hasGoneOn = true
      written.mayHaveEarlierKeys = true
    }
    note(loaded.header, loaded.history)
    remember(.none)
    return change
  }

  func report(_ change: StoreChange?) {
    if let change, !change.isEmpty { host.objectsChanged(change) }
  }

  /// Throws if neither the loaded version nor the known one descends from the other.
  private func check(_ loaded: LoadedStore) throws {
    let (uuid, known, deferredCount) = written.withLock { ($0.storeUUID, $0.lineage, $0.deferredCount) }
    if deferredCount > 0 {
      throw replaced(
        "Another program changed the file while this store had \(deferredCount) changes in memory, which are lost. Close the store, open the "
          + "current file, and make them again.")
    }
    if loaded.header.storeUUID != uuid {
      throw replaced("Another program replaced the file with a different store. Close the store and open the current file.")
    }
    let found = Lineage(loaded.header.lineage)
    if found.descends(from: known) { return }
    guard known.descends(from: found) else {
      throw replaced(
        "Another program replaced the file with a version that doesn't contain this store's last save: it was made from an older copy, "
          + "written by a program that doesn't record saves, or saved by \(Lineage.most) other open stores since. "
          + "Close the store and open the current file.")
    }
    // Saves of this session that the older version doesn't contain must not count as contained in later ones.
    written.withLock { $0.session = Lineage.newSession() }
  }

  private func replaced(_ reason: String) -> StoreError {
    StoreError(.storeReplaced, operation: "save", path: path, reason: reason)
  }

  // MARK: Reports

  /// Begins to load and report each version that another process saves.
  func reportOthers() throws {
    // If the file can't be loaded now, a later look or the next save finds the version.
    let options = RequestOptions(cancellation: cancellation)
    let watch = try FileWatch(
      path: file.path, find: { [weak self] in (try? self?.loadCurrentVersion(options)) ?? nil },
      report: { [weak self] in self?.report($0) })
    self.watch.withLock { $0 = watch }
  }

  /// Loads the current version if another process has saved the file. Does nothing if the file is missing.
  ///
  /// Other processes can save meanwhile: the lock is taken only to adopt what was read, unless that fails twice.
  ///
  /// - Parameter request: The options of the request, whose deadline and cancellation limit the wait for the lock. Defaults to none.
  /// - Returns: The changes for ``report(_:)``; nil if there are none.
  func loadCurrentVersion(_ request: RequestOptions = .none) throws -> StoreChange? {
    if tables.isReadOnly { return try loading.withLock { _ in try loadReadOnly() } }
    for _ in 0..<2 {
      guard try file.change() == .replaced, let (loaded, version) = try file.peek(load) else { return nil }
      let replacement = try file.beginReplacing(operation: "load the store", request: request)
      defer { replacement.abort() }
      if replacement.foundChange == .none { return nil }
      var change: StoreChange?
      let isCurrent = try replacement.takeOver(version) {
        try check(loaded)
        change = goOn(with: try countingEdits(in: loaded))
      }
      if isCurrent { return change }
    }
    // Others save more often than the file can be loaded, so they wait.
    guard try file.change() == .replaced else { return nil }
    let (replacement, change) = try beginWithoutReport(request)
    replacement.abort()
    return change
  }

  /// Loads and reports the current version before a save, if another process has saved the file.
  ///
  /// - Parameter request: The options of the save, whose deadline limits the wait for the lock.
  func loadOtherSaves(_ request: RequestOptions) throws {
    do { report(try loadCurrentVersion(request)) } catch var error as StoreError {
      error.operation = "save"
      throw error
    }
  }

  /// Nothing else replaces the tables of a read-only store.
  private func loadReadOnly() throws -> StoreChange? {
    guard try file.change() == .replaced, let (loaded, version) = try file.peek(load) else { return nil }
    try check(loaded)
    let change = goOn(with: try countingEdits(in: loaded))
    file.takeOver(version)
    return change
  }

  // MARK: Differences

  /// The greatest number of changes that are reported with their IDs.
  private static let limit = 10_000

  /// The difference between the tables and a loaded version, if all rows of both are in memory and the version is a later one.
  private func change(to loaded: LoadedStore) -> StoreChange {
    let known = written.withLock { $0.lineage }
    guard spilled == nil, let old = tables.generation, Lineage(loaded.header.lineage).descends(from: known),
      let change = loaded.generation.change(since: old, atMost: OpenedFile.limit)
    else { return StoreChange(mayIncludeOthers: true) }
    return change
  }
}
