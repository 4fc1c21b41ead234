import Holdfast
import HoldfastModelFile
import HoldfastStore

/// Carries out the parts of entity mappings that code does, in one stage of a migration.
final class MappingModelRun {
  let stage: MigrationStage
  private let plan: MappingModelPlan
  /// The objects that mappings inserted, by the mapping's name.
  private var inserted: [String: MappedKeys] = [:]

  init(_ plan: MappingModelPlan, _ stage: MigrationStage) { (self.plan, self.stage) = (plan, stage) }

  /// The objects of direct mappings exist before. All objects become complete step by step: policies may set what is required at the end,
  /// also of objects that inserted ones reference.
  func run() throws { try stage.completingObjects { try runSteps() } }

  private func runSteps() throws {
    let inserting = plan.steps.filter(\.isInserting)
    if !inserting.isEmpty { try insert(inserting) }
    for step in plan.steps where step.isDirect && !(step.attributes.isEmpty && step.relationships.isEmpty) {
      try forEachPair(of: step.mapping) { old, new in
        guard let new else { return }
        try setAttributes(of: new, old, step)
        try setRelationships(of: new, old, step)
      }
    }
    for step in plan.steps where !step.relationships.isEmpty && !(step.isInserting && step.policy?.body != nil) {
      try forEachPair(of: step.mapping) { old, new in if let new { try checkRelationships(of: new, old, step) } }
    }
    for step in plan.steps where !step.isInserting { try step.policy?.body?(EntityMappingStage(step.mapping, self)) }
  }

  /// Inserts objects with attributes, then sets relationships, also with objects of other mappings, and calls the policies.
  private func insert(_ steps: [MappingModelPlan.Step]) throws {
    for step in steps { try insert(step) }
    for step in steps where !step.relationships.isEmpty {
      try forEachPair(of: step.mapping) { old, new in if let new { try setRelationships(of: new, old, step) } }
    }
    for step in steps { try step.policy?.body?(EntityMappingStage(step.mapping, self)) }
  }

  // MARK: Objects

  /// Calls a closure with each old object of a mapping, and the object that it became; nil if that was deleted.
  func forEachPair(of mapping: MappingModelFile.EntityMapping, _ body: (FormerObject, ManagedObject?) throws -> Void) throws {
    guard let step = plan.steps.first(where: { $0.mapping.name == mapping.name }), let source = step.source,
      let destination = step.destination
    else { return }
    try stage.forEachBatch(of: [source.index]) { _, batch in
      let keys = batch.map { key(of: $0, step) }, found = try stage.objects(keys.compactMap { $0 }, of: destination)
      for (old, key) in zip(batch, keys) { try body(old, key.flatMap { found[$0] }) }
    }
  }

  /// What old objects became by a mapping, or by all mappings to an entity. Leaves out those that policies deleted.
  func objects(
    for old: [FormerObject], mappedBy name: String?, as entity: ManagedObjectModel.Entity? = nil
  ) throws -> [ManagedObject] {
    let steps = plan.steps.filter { step in
      guard let destination = step.destination else { return false }
      return name.map { $0 == step.mapping.name } ?? entity.map { destination.isKind(of: $0) } ?? true
    }
    return try old.flatMap { object in
      try steps.filter { $0.source?.name == object.entityName }.compactMap { step in
        // A link to a deleted object would remain.
        guard let destination = step.destination, let key = key(of: object, step), !stage.hasDeleted(key, of: destination) else {
          return nil
        }
        return try stage.object(destination, key)
      }
    }
  }

  /// The key of what an old object became by a mapping; nil if the mapping inserted nothing for it.
  private func key(of old: FormerObject, _ step: MappingModelPlan.Step) -> ObjectKey? {
    step.isDirect ? old.key : inserted[step.mapping.name]?[old.key]
  }

  // MARK: Steps

  private func insert(_ step: MappingModelPlan.Step) throws {
    guard let source = step.source, let destination = step.destination else { return }
    let condition = try step.filter.map { try RowPredicate($0.query, entity: source, model: plan.former) }
    var keys = MappedKeys()
    try stage.forEachBatch(of: [source.index]) { _, batch in
      let found = try condition.map { try stage.objects(batch, fulfilling: $0) } ?? batch
      let chosen = try found.filter { old in try step.filter?.patterns.allSatisfy { try $0.holds(old) } ?? true }
      let new = try chosen.map { old in
        let object = try stage.context.insert(entityNamed: destination.name)
        try setAttributes(of: object, old, step)
        return object
      }
      try stage.context.obtainPermanentIDs(for: new)
      for (old, object) in zip(chosen, new) { keys.append(old.key, object.objectID.key) }
    }
    inserted[step.mapping.name] = keys
  }

  private func setAttributes(of new: ManagedObject, _ old: FormerObject, _ step: MappingModelPlan.Step) throws {
    for (name, expression) in step.attributes {
      try describing(step, name) { try new.setValue(try expression.value(old), forKey: name) }
    }
  }

  private func setRelationships(of new: ManagedObject, _ old: FormerObject, _ step: MappingModelPlan.Step) throws {
    for (relationship, expression) in step.relationships {
      try describing(step, relationship.name) {
        let destination = stage.context.persistentStoreCoordinator.model.destination(of: relationship)
        let objects = try expression.objects(old, self, as: destination)
        if relationship.isToMany { return try new.setValue(objects, forKey: relationship.name) }
        if objects.count > 1 { throw MappingProblem("The relationship is to-one, and an object would get \(objects.count) destinations.") }
        try new.setValue(objects.first, forKey: relationship.name)
      }
    }
  }

  /// Checks that an object still has the links that its mapping sets. A destination may belong to one object only, and the mappings of both ends
  /// of a relationship may contradict each other.
  private func checkRelationships(of new: ManagedObject, _ old: FormerObject, _ step: MappingModelPlan.Step) throws {
    for (relationship, expression) in step.relationships {
      try describing(step, relationship.name) {
        let destination = stage.context.persistentStoreCoordinator.model.destination(of: relationship)
        let expected = try expression.objects(old, self, as: destination).map(\.objectID), value = try new.value(forKey: relationship.name)
        let found: [ManagedObjectID] = if case .objectID(let id)? = value.storeValue { [id] } else { value.objects?.map(\.objectID) ?? [] }
        if relationship.isOrdered ? found == expected : Set(found) == Set(expected) { return }
        throw MappingProblem("Objects would share a destination that can belong to one only, or the inverse has other links.")
      }
    }
  }

  /// Names the mapping and the property in errors.
  private func describing(_ step: MappingModelPlan.Step, _ name: String, _ body: () throws -> Void) throws {
    do { try body() } catch let error where error is MappingProblem || error is PersistenceError {
      let reason = (error as? MappingProblem)?.reason ?? "The value of an object doesn't fit."
      throw MigrationError(
        .invalidMappingModel,
        reason: "A mapping couldn't be applied to an object. Nothing was changed. Change the expression, or set the property in a policy.",
        problems: [MigrationError.Problem("\(step.destination?.name ?? "").\(name)", reason)], cause: error is MappingProblem ? nil : error)
    }
  }
}
