import HoldfastStore

extension SaveOperation {
  /// Calls the validation methods of the objects, before the changes are collected.
  ///
  /// The methods may read the graph. Changes that they make are saved, but the methods aren't called again to check them.
  ///
  /// - Throws: The error of a property that can't be read, or of a request that a method has sent.
  func callValidation() throws {
    if !context.bound.validatesObjects { return }
    for object in context.changes.objects where !context.bound.hooks(of: object).isDisjoint(with: .validate) {
      if object.isDeleted {
        if !object.isInserted { ownFailures += try OwnRules.failures(object) { try object.validateForDelete() } }
      } else if object.isInserted {
        ownFailures += try OwnRules.failures(object) { try object.validateForInsert() }
        ownFailures += try OwnRules.failuresOfProperties(object)
      } else if object.isUpdated {
        ownFailures += try OwnRules.failures(object) { try object.validateForUpdate() }
        ownFailures += try OwnRules.failuresOfProperties(object)
      }
    }
    try processPendingChanges()
  }
}

/// The validation methods of classes, which add to the rules of the model.
enum OwnRules {
  /// The failures that a validation method throws, as errors that name the object.
  ///
  /// - Throws: The error of a store. It means that the method couldn't validate the object, not that the object is invalid.
  static func failures(_ object: ManagedObject, _ property: String? = nil, _ body: () throws -> Void) throws -> [PersistenceError] {
    do {
      try body()
      return []
    } catch let error as StoreError {
      throw error
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
  ///
  /// - Throws: The error of a property that can't be read.
  static func failuresOfProperties(_ object: ManagedObject) throws -> [PersistenceError] {
    guard object.context.bound.hooks(of: object).contains(.validateProperties) else { return [] }
    let entity = object.entity
    var failures: [PersistenceError] = []
    for (slot, property) in zip(entity.slotIndexes, entity.slots) where !(property.allowsExternalData && object.readRow.isExternal(slot)) {
      failures += try check(object, property.name)
    }
    for relationship in entity.toManyRelationships where object.isInserted || object.hasTouched(relationship.toManyIndex) {
      failures += try check(object, relationship.name)
    }
    for relationship in entity.transientRelationships where !object.targets(relationship.toManyIndex).isEmpty {
      failures += try check(object, relationship.name)
    }
    for attribute in entity.transientAttributes
    where object.hasTransient(attribute.index) && (try? object.transientValue(attribute)) != nil {
      failures += try check(object, attribute.name)
    }
    return failures
  }

  private static func check(_ object: ManagedObject, _ name: String) throws -> [PersistenceError] {
    let value = try object.value(forKey: name)
    return try failures(object, name) { try object.validate(value, forKey: name) }
  }
}
