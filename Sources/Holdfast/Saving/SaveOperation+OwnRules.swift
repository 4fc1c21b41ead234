import HoldfastStore

extension SaveOperation {
  /// Asks the objects for their own rules, before anything is decided: what is called may read the graph, and what it changes is
  /// saved, though not checked by it again.
  func callValidation() throws {
    if !context.validatesObjects { return }
    for object in context.changed where !context.hooks[Int(object.flags.entityIndex)].isDisjoint(with: .validate) {
      if object.isDeleted {
        if !object.isInserted { ownFailures += OwnRules.failures(object) { try object.validateForDelete() } }
      } else if object.isInserted {
        ownFailures += OwnRules.failures(object) { try object.validateForInsert() } + OwnRules.failuresOfProperties(object)
      } else if object.isUpdated {
        ownFailures += OwnRules.failures(object) { try object.validateForUpdate() } + OwnRules.failuresOfProperties(object)
      }
    }
    try context.processPendingChanges()
  }
}

/// What classes say of their objects beyond the model.
enum OwnRules {
  /// The failures that a callback throws, as errors that name the object.
  static func failures(_ object: ManagedObject, _ property: String? = nil, _ body: () throws -> Void) -> [ContextError] {
    do {
      try body()
      return []
    } catch let error as ContextError {
      if !error.failures.isEmpty { return error.failures.map { placed($0, object, property) } }
      return [placed(error, object, property)]
    } catch {
      return [
        ContextError(.validation, objectID: object.id, property: property, reason: "A rule of its class refuses the object.", cause: error)
      ]
    }
  }

  private static func placed(_ error: ContextError, _ object: ManagedObject, _ property: String?) -> ContextError {
    var error = error
    error.objectID = error.objectID ?? object.id
    error.property = error.property ?? property
    return error
  }

  /// Asks for each property of a class that has rules for properties; to-many relationships only where they are known. A value that
  /// lies in a file was right when it was saved, and is not read for this.
  static func failuresOfProperties(_ object: ManagedObject) -> [ContextError] {
    guard object.managedObjectContext.hooks[Int(object.flags.entityIndex)].contains(.validateProperties) else { return [] }
    let entity = object.entity
    return entity.slots.enumerated().flatMap { slot, property in
      property.allowsExternalData && object.readRow.isExternal(slot) ? [] : check(object, property.name)
    }
      + entity.toManyRelationships.flatMap { relationship in
        object.isInserted || (object.toMany?[relationship.toManyIndex].base ?? .untouched) != .untouched
          ? check(object, relationship.name) : []
      }
      + entity.transientRelationships.flatMap { relationship in
        object.targets(relationship.toManyIndex).isEmpty ? [] : check(object, relationship.name)
      }
      + entity.transientAttributes.flatMap { attribute in
        object.hasTransient(attribute.index) && (try? object.transientValue(attribute)) != nil ? check(object, attribute.name) : []
      }
  }

  private static func check(_ object: ManagedObject, _ name: String) -> [ContextError] {
    failures(object, name) { try object.validate(object.value(forKey: name), forKey: name) }
  }
}
