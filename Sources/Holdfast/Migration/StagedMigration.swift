import HoldfastStore

extension PersistentStoreCoordinator {
  /// Migrates a store that isn't open through the stages of a plan. Does nothing if the store doesn't exist, or has the last version.
  ///
  /// If no remaining stage has code, the store is migrated as by ``migratePersistentStore(_:to:)``: to the last version directly if that mapping
  /// can be inferred, and otherwise from version to version. A plan whose remaining stages have code works on a copy beside the store, which
  /// finally takes its place. When it is interrupted, the store is as before; a folder `.holdfast-….copy` may remain.
  ///
  /// - Parameters:
  ///   - description: The store.
  ///   - plan: The versions. The store has one of them, or a version from which the last one can be inferred.
  ///   - progress: Called from time to time in stages with code, on the calling thread.
  /// - Throws: ``/HoldfastStore/MigrationError``, ``/HoldfastStore/StoreError``, and the errors of the plan's closures. The store is unchanged
  ///   then, or has one of the versions if no stage has code.
  public static func migratePersistentStore(
    _ description: StoreDescription, with plan: MigrationPlan, progress: @escaping @Sendable (MigrationProgress) -> Void = { _ in }
  ) throws {
    let found: PersistentStoreMetadata
    do { found = try metadata(for: description) } catch let error as StoreError where error.code == .notFound { return }
    guard let (model, stages) = plan.stages(after: found) else { return try migratePersistentStore(description, to: plan.model) }
    guard stages.contains(where: { $0.body != nil }) else {
      if (try? MappingModel.inferred(from: model, to: plan.model)) != nil {
        return try migratePersistentStore(description.migrating(from: [model] + description.formerModels), to: plan.model)
      }
      var former = model
      for stage in stages {
        try migratePersistentStore(description.migrating(from: [former]), to: stage.model)
        former = stage.model
      }
      return
    }
    try StagedMigration(description, progress).run(model, stages)
  }
}

/// Migrates a copy of a store through stages with code, and puts it in the store's place.
struct StagedMigration {
  private let description: StoreDescription
  private let progress: @Sendable (MigrationProgress) -> Void

  init(_ description: StoreDescription, _ progress: @escaping @Sendable (MigrationProgress) -> Void) {
    (self.description, self.progress) = (description, progress)
  }

  func run(_ first: ManagedObjectModel, _ stages: ArraySlice<MigrationPlan.Stage>) throws {
    guard let location = description.location, !description.isReadOnly else {
      throw StoreError(
        .readOnly, operation: MigrationRequest.operation, path: description.location?.description,
        reason: "The store description is read-only, or has no location.")
    }
    let temporary = try TemporaryStore(beside: description, to: MigrationRequest.operation), work = temporary.description
    defer { temporary.remove() }
    try PersistentStoreCoordinator.perform(ReplacementRequest(source: location), work)
    var model = first
    for stage in stages {
      if let body = stage.body {
        try run(body, stage.name ?? "", from: model, to: stage.model, work)
      } else {
        try PersistentStoreCoordinator.migratePersistentStore(work.migrating(from: [model]), to: stage.model)
      }
      model = stage.model
    }
    try PersistentStoreCoordinator.perform(ReplacementRequest(source: work.location ?? location), description)
  }

  private func run(
    _ body: (MigrationStage) throws -> Void, _ name: String, from old: ManagedObjectModel, to new: ManagedObjectModel,
    _ work: StoreDescription
  ) throws {
    let mapping = try MappingModel.partial(from: old, to: new).mapping.withoutUncertainLinks
    let temporary = try TemporaryStore(beside: work, to: MigrationRequest.operation), former = temporary.description
    defer { temporary.remove() }
    guard let place = work.location else { return }
    try PersistentStoreCoordinator.perform(ReplacementRequest(source: place), former)
    try PersistentStoreCoordinator.perform(MigrationRequest(mapping), work)
    try StoreCopier.reading(former, old) { reader, _ in
      let coordinator = try PersistentStoreCoordinator(model: new, store: work.migrating(automatically: false))
      defer { try? coordinator.close() }
      let context = try ManagedObjectContext(coordinator: coordinator, classes: [])
      let stage = MigrationStage(name, reader, mapping, context, coordinator.persistentStores[0].identity, progress)
      try body(stage)
      try context.save()
      try checkRequired(mapping, context, name)
    }
  }

  /// Checks that required attributes that couldn't be inferred have values now.
  private func checkRequired(_ mapping: MappingModel, _ context: ManagedObjectContext, _ name: String) throws {
    var problems: [MigrationError.Problem] = []
    for entity in mapping.entityMappings where entity.source != nil {
      let target = mapping.destination.entities[entity.destination]
      for attribute in target.attributes where !attribute.isOptional && attribute.derivation == nil {
        let value = entity.values[attribute.slot.rawValue]
        if value.source != nil || value.fallback != .null { continue }
        let isMissing = FetchPredicate<ManagedObject>(.comparison(.property(PropertyPath(attribute.name)), .equalTo, .constant(.null), []))
        let count = try context.count(for: FetchRequest<ManagedObject>(entityName: target.name, where: isMissing))
        if count == 0 { continue }
        problems.append(
          MigrationError.Problem(
            "\(target.name).\(attribute.name)", "It is required, and \(count) objects have no value after the stage \(name)."))
      }
    }
    if problems.isEmpty { return }
    throw MigrationError(
      .constraintViolation, path: description.location?.description,
      reason: "A stage left required attributes without values. Nothing was changed.",
      problems: problems)
  }
}
