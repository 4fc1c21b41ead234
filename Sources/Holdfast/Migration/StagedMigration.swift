public import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension PersistentStoreCoordinator {
  /// Migrates a store that isn't open through the stages of a plan. Does nothing if the store doesn't exist, or has the last version.
  ///
  /// If no remaining stage has code, the store is migrated from version to version, as by ``migratePersistentStore(_:to:)``. A plan whose
  /// remaining stages have code works on a copy beside the store, which finally takes its place. When it is interrupted, the store is as before;
  /// a folder `.holdfast-….copy` may remain.
  ///
  /// A stage removes what its model has no place for, since the plan was written for it. A store of a version that the plan doesn't contain
  /// is only migrated if nothing is removed.
  ///
  /// - Parameters:
  ///   - description: The store.
  ///   - plan: The versions. The store has one of them, or a version from which the last one can be inferred.
  ///   - progress: Called from time to time in stages with code, on the calling thread.
  /// - Throws: ``/HoldfastStore/MigrationError``, ``/HoldfastStore/StoreError``, the errors of the plan's closures, and ``PersistenceError`` if
  ///   the objects of a stage can't be saved. The store is unchanged then, or has one of the versions if no stage has code.
  public static func migratePersistentStore(
    _ description: StoreDescription, with plan: MigrationPlan, progress: @escaping @Sendable (MigrationProgress) -> Void = { _ in }
  ) throws {
    let found: PersistentStoreMetadata
    do { found = try recoveredMetadata(of: description) } catch let error as StoreError where error.code == .notFound { return }
    // A version that the plan doesn't contain may be a newer one, so nothing is removed.
    guard let stages = plan.stages(after: found) else { return try migrateAutomatically(description, to: plan.model) }
    guard stages.contains(where: { $0.body != nil }) else {
      for stage in stages {
        try migratePersistentStore(description.migrating(from: [plan.versions[stage.source]]), to: plan.versions[stage.destination])
      }
      return
    }
    try StagedMigration(description, plan, progress).run(stages)
  }
}

/// Migrates a copy of a store through stages with code, and puts it in the store's place.
struct StagedMigration {
  private let description: StoreDescription
  private let plan: MigrationPlan
  private let progress: @Sendable (MigrationProgress) -> Void

  init(_ description: StoreDescription, _ plan: MigrationPlan, _ progress: @escaping @Sendable (MigrationProgress) -> Void) {
    (self.description, self.plan, self.progress) = (description, plan, progress)
  }

  func run(_ stages: [MigrationPlan.Stage]) throws {
    guard let location = description.location, !description.isReadOnly else {
      throw StoreError(
        .readOnly, operation: MigrationRequest.operation, path: description.location?.description,
        reason: "The store description is read-only, or has no location. Describe a store in a file, for writing.")
    }
    let temporary = try TemporaryStore(beside: description, to: MigrationRequest.operation), work = temporary.description
    defer { temporary.remove() }
    // Before the copy, so that no change is missed.
    let state = FileState(location.path)
    try PersistentStoreCoordinator.perform(ReplacementRequest(source: location), work)
    do { for stage in stages { try run(stage, work) } } catch var error as MigrationError {
      // Not that of a copy.
      error.path = location.description
      throw error
    }
    guard FileState(location.path) == state else {
      throw StoreError(
        .storeReplaced, operation: MigrationRequest.operation, path: location.description,
        reason: "Another process changed the store while the plan ran. Nothing was changed. Try again.", isRetryable: true)
    }
    try PersistentStoreCoordinator.perform(ReplacementRequest(source: work.location ?? location), description)
  }

  private func run(_ stage: MigrationPlan.Stage, _ work: StoreDescription) throws {
    let old = plan.versions[stage.source], new = plan.versions[stage.destination], name = stage.name ?? ""
    guard let body = stage.body else {
      return try PersistentStoreCoordinator.migratePersistentStore(work.migrating(from: [old]), to: new)
    }
    var mapping = try MappingModel.partial(from: old, to: new, by: stage.rules).mapping
    let temporary = try TemporaryStore(beside: work, to: MigrationRequest.operation), former = temporary.description
    defer { temporary.remove() }
    guard let place = work.location else { return }
    try PersistentStoreCoordinator.perform(ReplacementRequest(source: place), former)
    do { try PersistentStoreCoordinator.perform(MigrationRequest(mapping), work) } catch let error as MigrationError
      where error.code == .constraintViolation
    {
      // The code chooses which links remain.
      mapping = mapping.withoutUncertainLinks
      try PersistentStoreCoordinator.perform(MigrationRequest(mapping), work)
    }
    try StoreCopier.reading(former, old) { [mapping] reader, _ in
      let coordinator = try PersistentStoreCoordinator(model: new, store: work.migrating(automatically: false))
      defer { try? coordinator.close() }
      let context = try ManagedObjectContext(coordinator: coordinator, classes: [])
      let stage = MigrationStage(name, reader, mapping, context, coordinator.persistentStores[0].identity, progress)
      try body(stage)
      if let unread = reader.unread { throw unread }
      try context.save()
      try checkRequired(mapping, context, name)
    }
  }

  /// Checks that required properties that couldn't be inferred have values now.
  private func checkRequired(_ mapping: MappingModel, _ context: ManagedObjectContext, _ name: String) throws {
    var problems: [MigrationError.Problem] = []
    func check(_ entity: ManagedObjectModel.Entity, _ property: String, _ what: String) throws {
      let isMissing = FetchPredicate<ManagedObject>(.comparison(.property(PropertyPath(property)), .equalTo, .constant(.null), []))
      var request = FetchRequest<ManagedObject>(entityName: entity.name, where: isMissing)
      request.includesSubentities = false
      let count = try context.count(for: request)
      if count == 0 { return }
      let objects = count == 1 ? "1 object has" : "\(count) objects have"
      problems.append(
        MigrationError.Problem("\(entity.name).\(property)", "\(what), and \(objects) no value after the stage \(name). Set it there."))
    }
    for entity in mapping.entityMappings where entity.source != nil {
      let target = mapping.destination.entities[entity.destination]
      for attribute in target.attributes where isUncertain(attribute, entity, mapping) {
        try check(target, attribute.name, attribute.derivation == nil ? "It is required" : "It is derived from changed objects only")
      }
      for relationship in target.relationships where !relationship.isOptional && !relationship.isToMany {
        try check(target, relationship.name, "It is required")
      }
    }
    if problems.isEmpty { return }
    throw MigrationError(
      .constraintViolation, path: description.location?.description,
      reason: "A stage left required properties without values. Nothing was changed.",
      problems: problems)
  }

  /// Whether an attribute must have a value, and existing objects may have none.
  private func isUncertain(_ attribute: ManagedObjectModel.Attribute, _ entity: EntityMapping, _ mapping: MappingModel) -> Bool {
    let value = entity.values[attribute.slot.rawValue]
    switch attribute.derivation {
    case .count?, .sum?: return value.source == nil
    case nil where !attribute.isOptional:
      let former = entity.source.flatMap { index in value.source.map { mapping.source.entities[index].slots[$0] } }
      return value.fallback == .null && former?.isOptional != false
    default: return false
    }
  }
}

/// What shows that a file was changed: its number, size and time, and those of its log. Equal for files that can't be examined.
private struct FileState: Equatable {
  private var values: [String] = []

  init(_ path: String?) {
    guard let path else { return }
    for name in [path, path + "-wal"] {
      guard let found = try? FileManager.default.attributesOfItem(atPath: name) else { continue }
      let time = (found[.modificationDate] as? Date)?.timeIntervalSinceReferenceDate ?? 0
      values.append("\(name) \(found[.systemFileNumber] ?? 0) \(found[.size] ?? 0) \(time)")
    }
  }
}
