public import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension PersistentStoreCoordinator {
  /// What a migration to a model would do to a store. Opens the store read-only, so it changes no file.
  ///
  /// Counts the store's objects with one request for each entity, and one for each removed property. Reads some thousand objects to estimate the
  /// time.
  ///
  /// - Parameters:
  ///   - description: A store that isn't open.
  ///   - model: The new model.
  /// - Returns: Nil if the store has that version of the model.
  /// - Throws: The errors of ``migratePersistentStore(_:to:progress:)``: for example, those of models that can't be mapped.
  public static func previewMigration(of description: StoreDescription, to model: ManagedObjectModel) throws -> MigrationPreview? {
    guard let mapping = try inferredMapping(for: description, to: model) else { return nil }
    return try MigrationPreview(of: description, mapping)
  }

  /// What a plan would do to a store, stage by stage. Runs the plan on a copy beside the store, including its code, and removes the copy.
  ///
  /// So it finds objects that violate rules of the new versions, and takes at least as long as the migration. The store's files don't change.
  ///
  /// - Parameters:
  ///   - description: A store that isn't open.
  ///   - plan: The versions.
  ///   - progress: Called from time to time, on the calling thread. Defaults to nothing.
  /// - Returns: A preview for each remaining stage. Empty if the store has the last version.
  /// - Throws: The errors of ``migratePersistentStore(_:with:progress:)``.
  public static func previewMigration(
    of description: StoreDescription, with plan: MigrationPlan, progress: @escaping @Sendable (MigrationProgress) -> Void = { _ in }
  ) throws -> [MigrationPreview] {
    let found: PersistentStoreMetadata
    do { found = try metadata(for: description) } catch let error as StoreError where error.code == .notFound { return [] }
    guard let stages = plan.stages(after: found) else { return try previewMigration(of: description, to: plan.model).map { [$0] } ?? [] }
    guard !stages.isEmpty, let location = description.location else { return [] }
    let temporary = try TemporaryStore(beside: description, to: MigrationRequest.operation, hasSmallCaches: true)
    let copy = temporary.description
    defer { temporary.remove() }
    let progress = PlanProgress(to: progress), stepCount = stages.count + 1
    try progress.begin(description)
    do {
      try perform(ReplacementRequest(source: location), copy, progress.step(0, of: stepCount).options)
      let isWhole = description.makeStore().capabilities.residentRows
      return try stages.enumerated().map { try preview($1, plan, copy, isWhole, progress.step($0 + 1, of: stepCount)) }
    } catch var error as MigrationError {
      error.path = location.description
      throw error.located(at: location, insteadOfIn: temporary.folder)
    } catch { throw error.ofTemporaryCopy.located(at: location, insteadOfIn: temporary.folder) }
  }

  /// Runs a stage on a copy.
  ///
  /// - Parameter isWhole: Whether opening the store reads all rows.
  private static func preview(
    _ stage: MigrationPlan.Stage, _ plan: MigrationPlan, _ copy: StoreDescription, _ isWhole: Bool, _ progress: PlanProgress
  ) throws -> MigrationPreview {
    let preview = try MigrationPreview(of: copy, try plan.mapping(of: stage), stage: stage.body == nil ? nil : stage.name)
    let former = copy.byteCount
    let duration = try ContinuousClock().measure { try StagedMigration(copy, plan, progress).run([stage]) }
    guard stage.body != nil else { return preview.measured(duration, preview.estimatedByteCount) }
    // There are two copies of the former store. One of them is migrated, and then copied to the store's place. The rows of both whole files are
    // in temporary files, and the former rows of changed objects remain there.
    let migrated = max(preview.estimatedByteCount ?? 0, copy.byteCount)
    return preview.measured(duration, 2 * former + (isWhole ? 4 : 1) * migrated)
  }
}

extension StoreDescription {
  /// The size of the store's file.
  fileprivate var byteCount: Int64 {
    let attributes = try? FileManager.default.attributesOfItem(atPath: location?.path ?? "")
    // The type of the number depends on the platform.
    return attributes?[.size].flatMap { Int64("\($0)") } ?? 0
  }
}
