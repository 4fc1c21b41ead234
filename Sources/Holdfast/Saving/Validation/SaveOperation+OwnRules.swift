import HoldfastStore

extension SaveOperation {
  /// Calls the validation methods of the objects, before the changes are collected.
  ///
  /// The methods may read the graph. Changes that they make are saved, but the methods aren't called again to check them.
  func callValidation() throws {
    if !context.bound.validatesObjects { return }
    for object in context.changes.objects where !context.bound.hooks(of: object).isDisjoint(with: .validate) {
      if object.isDeleted {
        if !object.isInserted { ownFailures += OwnRules.failures(object) { try object.validateForDelete() } }
      } else if object.isInserted {
        ownFailures += OwnRules.failures(object) { try object.validateForInsert() } + OwnRules.failuresOfProperties(object)
      } else if object.isUpdated {
        ownFailures += OwnRules.failures(object) { try object.validateForUpdate() } + OwnRules.failuresOfProperties(object)
      }
    }
    try processPendingChanges()
  }
}

/// The validation methods of classes, which add to the rules of the model.
enum OwnRules {
  /// The failures that a validation method throws, as errors that name the object.
  static func failures(_ object: ManagedObject, _ property: String? = nil, _ body: () throws -> Void) -> [PersistenceError] {
    do {
      try body()
      return []
    } catch let error as PersistenceError {
      if !error.failures.isEmpty { return error.failures.map { placed($0, object, property) } }
      return [placed(error, object, property)]
    } catch {
      return [
        PersistenceError(
          .validation, objectID: object.id, property: property, reason: "A validation method rejected the object.", cause: error)
      ]
    }
  }

  private static func placed(_ error: PersistenceError, _ object: ManagedObject, _ property: String?) -> PersistenceError {
    var error = error
    error.objectID = error.objectID ?? object.id
    error.property = error.property ?? property
    return error
  }

  /// Validates each property, if the class validates properties.
  ///
  /// To-many relationships are validated only if they were changed or read. Values in external files were validated when they were saved,
  /// and aren't read again.
  static func failuresOfProperties(_ object: ManagedObject) -> [PersistenceError] {
    guard object.context.bound.hooks(of: object).contains(.validateProperties) else { return [] }
    let entity = object.entity
    return zip(entity.slotIndexes, entity.slots).flatMap { slot, property in
      property.allowsExternalData && object.readRow.isExternal(slot) ? [] : check(object, property.name)
    }
      + entity.toManyRelationships.flatMap { relationship in
        object.isInserted || object.hasTouched(relationship.toManyIndex) ? check(object, relationship.name) : []
      }
      + entity.transientRelationships.flatMap { relationship in
        object.targets(relationship.toManyIndex).isEmpty ? [] : check(object, relationship.name)
      }
      + entity.transientAttributes.flatMap { attribute in
        object.hasTransient(attribute.index) && (try? object.transientValue(attribute)) != nil ? check(object, attribute.name) : []
      }
  }

  private static func check(_ object: ManagedObject, _ name: String) -> [PersistenceError] {
    failures(object, name) { try object.validate(object.value(forKey: name), forKey: name) }
  }
}
