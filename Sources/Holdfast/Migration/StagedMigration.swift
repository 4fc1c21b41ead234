public import HoldfastStore

extension PersistentStoreCoordinator {
  /// Migrates a store that isn't open through the stages of a plan. Does nothing if the store doesn't exist, or has the last version.
  ///
  /// If no remaining stage has code, the store is migrated from version to version, as by ``migratePersistentStore(_:to:progress:)``. A plan
  /// whose remaining stages have code works on a copy beside the store, which finally takes its place.
  ///
  /// When the process ends in a plan with code, the store is as before, and the copy remains in a folder `.holdfast-….migration`. The next call
  /// continues behind the last stage that is complete, or in a resumable stage, if neither the store nor the names and versions of the stages
  /// have changed. So does the call after a cancellation, if the plan has a resumable stage. After any other error, nothing remains.
  /// ``discardInterruptedMigration(of:)`` removes the folder.
  ///
  /// A stage removes what its model has no place for, since the plan was written for it. A store of a version that the plan doesn't contain
  /// is only migrated if nothing is removed.
  ///
  /// - Parameters:
  ///   - description: The store.
  ///   - plan: The versions. The store has one of them, or a version from which the last one can be inferred.
  ///   - progress: Called from time to time, on the calling thread. Defaults to nothing.
  /// - Throws: ``/HoldfastStore/MigrationError``, ``/HoldfastStore/StoreError``, the errors of the plan's closures, and ``PersistenceError`` if
  ///   the objects of a stage can't be saved. The store is unchanged then, or has one of the versions if no stage has code. The code is `locked`
  ///   while another process or thread migrates the store, `readOnly` if the description is read-only, and `storeReplaced` if another
  ///   process changed the store while stages with code ran.
  public static func migratePersistentStore(
    _ description: StoreDescription, with plan: MigrationPlan, progress: @escaping @Sendable (MigrationProgress) -> Void = { _ in }
  ) throws {
    let found: PersistentStoreMetadata
    do { found = try recoveredMetadata(of: description) } catch let error as StoreError where error.code == .notFound { return }
    let progress = PlanProgress(to: progress)
    // A version that the plan doesn't contain may be a newer one, so nothing is removed.
    guard let stages = plan.stages(after: found) else {
      return try migrateAutomatically(description, to: plan.model, progress.options)
    }
    if stages.contains(where: { $0.body != nil }) { return try StagedMigration(description, plan, progress).run() }
    try migrateInPlace(description, plan, progress)
    // A process may have ended before it removed the folder of the last plan.
    try? PlanFolder(beside: description, creates: false)?.remove()
  }

  /// Migrates a store through stages without code, from version to version.
  private static func migrateInPlace(_ description: StoreDescription, _ plan: MigrationPlan, _ progress: PlanProgress) throws {
    var done = 0
    // Each time for the version that the store has now: another process may migrate it, too, and nothing may go backwards.
    while let stages = plan.stages(after: try recoveredMetadata(of: description)), let stage = stages.first, stage.body == nil {
      if done == 0 { try progress.begin(description) }
      let step = progress.step(done, of: done + stages.count)
      do { try migrate(description, by: try plan.mapping(of: stage), step.options) } catch var error as MigrationError {
        error.path = description.location?.description
        throw error
      }
      done += 1
    }
    if done > 0 { progress.report(1) }
  }

  /// Removes the copy with which an interrupted plan would be continued. Does nothing if there is none.
  ///
  /// - Throws: ``/HoldfastStore/StoreError`` with code `locked` while a plan is migrating the store, or `notPermitted` if the folder belongs to
  ///   another user.
  public static func discardInterruptedMigration(of description: StoreDescription) throws {
    try PlanFolder(beside: description, creates: false)?.remove()
  }
}

/// Migrates a copy of a store through stages with code, and puts it in the store's place.
struct StagedMigration {
  private let description: StoreDescription
  private let plan: MigrationPlan
  private let progress: PlanProgress

  init(_ description: StoreDescription, _ plan: MigrationPlan, _ progress: PlanProgress) {
    (self.description, self.plan, self.progress) = (description, plan, progress)
  }

  /// - Parameter selected: The stages; nil for those that the store still needs.
  func run(_ selected: [MigrationPlan.Stage]? = nil) throws {
    guard let location = description.location, !description.isReadOnly else {
      throw StoreError(
        .readOnly, operation: MigrationRequest.operation, path: description.location?.description,
        reason: "The store description is read-only, or has no location. Describe a store in a file, for writing.")
    }
    guard let folder = try PlanFolder(beside: description, creates: true) else { return }
    let stages: [MigrationPlan.Stage]
    do {
      // Another process may have migrated the store before it released the folder.
      stages = try selected ?? plan.stages(after: PersistentStoreCoordinator.recoveredMetadata(of: description)) ?? []
    } catch {
      // What an interrupted run has done remains for the next attempt.
      if folder.record == nil { folder.remove() }
      throw error
    }
    if stages.isEmpty { return folder.remove() }
    do { try run(stages, location, in: folder) } catch {
      if !(stages.contains(where: \.isResumable) && error.isCancellation) { folder.remove() }
      throw error.located(at: location, insteadOfIn: folder.path)
    }
    folder.remove()
  }

  private func run(_ stages: [MigrationPlan.Stage], _ location: StoreLocation, in folder: PlanFolder) throws {
    // Before the copy, so that no change is missed.
    let state = StoreFileState(ofFileAt: folder.storePath)
    // The copies at the beginning and the end are steps, too.
    let stepCount = stages.count + 2
    try progress.begin(description)
    let number: Int
    do { number = try runInFolder(stages, location, state, stepCount, folder) } catch { throw error.ofTemporaryCopy }
    let replacement = ReplacementRequest(source: folder.store(number).location ?? location, expecting: state)
    let last = progress.step(stepCount - 1, of: stepCount)
    do { try PersistentStoreCoordinator.perform(replacement, description, last.options) } catch let error as StoreError
      where error.code == .storeReplaced
    {
      throw StoreError(
        .storeReplaced, operation: MigrationRequest.operation, path: location.description,
        reason: "Another process changed the store while the plan ran. Nothing was changed. Try again.", cause: error, isRetryable: true)
    }
  }

  /// Runs the stages that aren't done, on copies in the folder.
  ///
  /// - Returns: The number of the copy after the last stage.
  private func runInFolder(
    _ stages: [MigrationPlan.Stage], _ location: StoreLocation, _ state: StoreFileState, _ stepCount: Int, _ folder: PlanFolder
  ) throws -> Int {
    let keys = stages.map { plan.key($0) }
    var record = PlanFolder.Record(source: state)
    // A stage creates at most one store, and a damaged record may name any.
    if let found = folder.record, (0...stages.count).contains(found.store), folder.exists(found), found.source == state,
      keys.starts(with: found.stages), let count = try doneCount(stages, atLeast: found.stages.count, folder.store(found.store))
    {
      record.store = found.store
      record.stages = Array(keys.prefix(count))
    } else {
      folder.clear()
      let copy = ReplacementRequest(source: location), step = progress.step(0, of: stepCount)
      try PersistentStoreCoordinator.perform(copy, try folder.newStore(0), step.options)
      try folder.write(record)
    }
    do {
      for (stage, key) in zip(stages, keys).dropFirst(record.stages.count) {
        let step = progress.step(record.stages.count + 1, of: stepCount, stage: stage.name ?? "")
        record.store = try run(stage, key, record.store, step, in: folder)
        step.report(1)
        record.stages.append(key)
        try folder.write(record)
      }
    } catch var error as MigrationError {
      // Not that of a copy.
      error.path = location.description
      throw error
    }
    return record.store
  }

  /// The number of stages that a store of the folder has passed; nil if it isn't one of these stages.
  ///
  /// It may have passed more than the recorded ones, but only such without code, which change the store in place.
  private func doneCount(_ stages: [MigrationPlan.Stage], atLeast count: Int, _ store: StoreDescription) throws -> Int? {
    guard let found = try readableMetadata(of: store) else { return nil }
    return (count...stages.count).first { number in
      let version = number == 0 ? stages[0].source : stages[number - 1].destination
      return found.isCompatible(with: plan.versions[version]) && stages[count..<number].allSatisfy { $0.body == nil }
    }
  }

  /// Returns the number of the store after the stage.
  private func run(
    _ stage: MigrationPlan.Stage, _ key: String, _ number: Int, _ progress: PlanProgress, in folder: PlanFolder
  ) throws -> Int {
    let old = plan.versions[stage.source], new = plan.versions[stage.destination], former = folder.store(number)
    guard let body = stage.body else {
      // In place: the store has either version.
      try PersistentStoreCoordinator.migrate(former, by: try plan.mapping(of: stage), progress.options)
      return number
    }
    let strict = try plan.mapping(of: stage)
    let relaxed = try strict.destinationWithoutNewConstraints(incomplete: stage.incompleteEntities), model = relaxed ?? new
    let mapping = relaxed == nil ? strict : try MappingModel.partial(from: old, to: model, by: stage.rules).mapping
    var work = folder.store(number + 1)
    if try !stage.isResumable || !isBegun(key, work, model) {
      work = try folder.newStore(number + 1)
      try migrate(former, mapping, to: work, progress.part(0...0.5))
    }
    // Before the other store, whose keys are in memory from then on.
    let coordinator = try PersistentStoreCoordinator(model: model, migrating: work)
    do {
      let context = try ManagedObjectContext(coordinator: coordinator, classes: []), store = coordinator.persistentStores[0]
      let journal = stage.isResumable ? try StageJournal(store, context, of: key) : nil
      if journal?.done != .end {
        try StoreCopier.reading(former, old) { reader, _ in
          // Both stores have the same identity, and the code reads object IDs of the new one.
          store.identity.restoreRoots(of: model)
          try body(MigrationStage(reader, mapping, context, store.identity, journal, progress.part(0.5...1)))
          if let unread = reader.unread { throw unread }
        }
      }
      if let journal { try journal.saveRest() } else { try context.save() }
      try checkRequired(mapping, stage, context)
      try journal?.remove()
    } catch {
      // What is saved remains for the next attempt.
      try? coordinator.close()
      throw error
    }
    // A whole file is written only now.
    try coordinator.close()
    if relaxed != nil { try checkConstraints(work, from: model, to: new, stage) }
    return number + 1
  }

  /// Adds the constraints that the code didn't have to keep.
  private func checkConstraints(
    _ work: StoreDescription, from relaxed: ManagedObjectModel, to model: ManagedObjectModel, _ stage: MigrationPlan.Stage
  ) throws {
    // The journal of a resumable stage is removed, so a cancellation would make it begin again. The next step is cancelled instead.
    let options = stage.isResumable ? RequestOptions.none : .cancelledWithTask, name = stage.name ?? ""
    let mapping = try MappingModel.inferred(from: relaxed, to: model)
    do { try PersistentStoreCoordinator.migrate(work, by: mapping, options) } catch var error as MigrationError
      where error.code == .constraintViolation
    {
      error.reason = "After the stage \(name), objects don't fit the new model. Nothing was changed. Change or merge them in its code."
      throw error
    }
  }

  /// Whether an interrupted run has begun to change a store.
  private func isBegun(_ key: String, _ work: StoreDescription, _ model: ManagedObjectModel) throws -> Bool {
    guard let found = try readableMetadata(of: work) else { return false }
    return StageJournal.isIn(found.userInfo, of: key) && found.isCompatible(with: model)
  }

  /// The metadata of a store in the folder; nil if an interruption left no usable store.
  private func readableMetadata(of work: StoreDescription) throws -> PersistentStoreMetadata? {
    do { return try PersistentStoreCoordinator.recoveredMetadata(of: work) } catch let error as StoreError
      where [.notFound, .damaged, .notAStore].contains(error.code)
    { return nil }
  }

  private func migrate(
    _ former: StoreDescription, _ mapping: MappingModel, to work: StoreDescription, _ progress: PlanProgress
  ) throws {
    guard let place = former.location else { return }
    let rest = progress.part(0.5...1)
    try PersistentStoreCoordinator.perform(ReplacementRequest(source: place), work, progress.part(0...0.5).options)
    var mapping = mapping
    while true {
      do { return try PersistentStoreCoordinator.migrate(work, by: mapping, rest.options) } catch let error as MigrationError
        where error.code == .constraintViolation
      {
        // The code chooses which links of these relationships remain. The error of a custom store may not name them.
        let named = mapping.withoutUncertainLinks(of: Set(error.problems.map(\.path)))
        let reduced = named == mapping ? mapping.withoutUncertainLinks(of: nil) : named
        if reduced == mapping { throw error }
        mapping = reduced
      }
    }
  }

  /// Checks that required properties that couldn't be inferred have values now.
  private func checkRequired(_ mapping: MappingModel, _ stage: MigrationPlan.Stage, _ context: ManagedObjectContext) throws {
    let name = stage.name ?? ""
    let undecided = try MappingModel.partial(from: mapping.source, to: mapping.destination, by: stage.rules).problems.map(\.path)
    var problems: [MigrationError.Problem] = []
    func check(_ entity: ManagedObjectModel.Entity, _ property: String, _ what: String, where isMissing: QueryExpression? = nil) throws {
      var request = FetchRequest<ManagedObject>(entityName: entity.name, where: FetchPredicate(isMissing ?? Self.isNull(property)))
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
      for composite in target.composites {
        let path = "\(target.name).\(composite.name)"
        guard undecided.contains(where: { $0 == path || $0.hasPrefix(path + ".") }) else { continue }
        for (property, isMissing) in Self.requirements(of: composite, target) {
          try check(target, property, "It is required", where: isMissing)
        }
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

  private static func isNull(_ attribute: String) -> QueryExpression {
    .comparison(.property(PropertyPath(attribute)), .equalTo, .constant(.null), [])
  }

  /// What a save requires of a composite attribute, besides elements that every object needs.
  ///
  /// - Returns: The composite attribute or an element, and the condition that an object lacks it.
  private static func requirements(
    of composite: ManagedObjectModel.CompositeAttribute, _ entity: ManagedObjectModel.Entity
  ) -> [(property: String, isMissing: QueryExpression)] {
    func isEmpty(_ composite: ManagedObjectModel.CompositeAttribute) -> QueryExpression {
      .and(entity.attributes.filter { composite.slots.contains($0.slot) }.map { isNull($0.name) })
    }
    let elements = entity.attributes.filter { composite.slots.contains($0.slot) }, prefix = composite.name.utf8.count + 1
    if elements.isEmpty { return [] }
    var found: [(property: String, isMissing: QueryExpression)] = []
    if composite.isOptional {
      for element in elements where !element.declaration.isOptional && !element.name.utf8.dropFirst(prefix).contains(UInt8(ascii: ".")) {
        found.append((element.name, .and([isNull(element.name), .not(isEmpty(composite))])))
      }
    }
    if !composite.declaration.isOptional && elements.allSatisfy(\.isOptional) {
      var conditions = [isEmpty(composite)]
      // Without a value of the composite attribute that contains it, it isn't required either.
      if let outer = entity.composites.last(where: { composite.name.hasPrefix($0.name + ".") }) { conditions.append(.not(isEmpty(outer))) }
      found.append((composite.name, .and(conditions)))
    }
    return found
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

extension Error {
  /// Whether the task was cancelled.
  fileprivate var isCancellation: Bool {
    switch self {
    case let error as MigrationError: error.code == .cancelled
    case let error as StoreError: error.code == .cancelled
    default: self is CancellationError
    }
  }
}
