/// Compares the properties that a class lists with the model, and reports every difference.
enum ClassBinding {
  static func differences(
    _ type: ManagedObject.Type, _ entity: ManagedObjectModel.Entity, _ model: ManagedObjectModel,
    _ transformers: AttributeTransformerRegistry
  ) -> [String] {
    type.properties.flatMap { binding in
      differences(binding, entity, model, transformers).map { "\(type).\(binding.name): \($0)" }
    }
  }

  private static func differences(
    _ binding: PropertyBinding, _ entity: ManagedObjectModel.Entity, _ model: ManagedObjectModel,
    _ transformers: AttributeTransformerRegistry
  ) -> [String] {
    switch (binding.kind, entity.property(named: binding.name)) {
    case (_, nil): return ["\(entity.name) has no property of this name."]
    case (.attribute(let types, _), .attribute(let attribute)?):
      if !types.contains(attribute.type) { return ["The model's type is \(attribute.type.rawValue), which the Swift type can't hold."] }
      return slotDifferences(binding.slot, attribute.slot.rawValue)
    case (.transformable(let type), .attribute(let attribute)?) where attribute.type == .transformable:
      return differences(type, attribute, transformers) + slotDifferences(binding.slot, attribute.slot.rawValue)
    case (.composite(let leaves), .composite(let composite)?):
      return differences(leaves(), composite, entity) + slotDifferences(binding.slot, composite.slots.lowerBound.rawValue)
    case (.transient(let type), .transient(let attribute)?):
      return differences(type, attribute) + slotDifferences(binding.slot, attribute.index)
    case (.relationship(let bound), .relationship(let relationship)?) where !bound.isTransient && bound.isToMany == relationship.isToMany:
      let slot = relationship.isToMany ? relationship.toManyIndex : relationship.slot.rawValue
      return differences(bound, relationship, model) ?? slotDifferences(binding.slot, slot)
    case (.relationship(let bound), .transientRelationship(let relationship)?)
    where bound.isTransient && bound.isToMany == relationship.isToMany:
      return differences(bound, relationship, model) ?? slotDifferences(binding.slot, relationship.index.rawValue)
    case (_, .transientRelationship?): return ["The model declares a transient relationship."]
    default: return ["The model declares another kind of property."]
    }
  }

  /// A difference in order or destination between relationships that both are to-one or both to-many; nil if there is none.
  private static func differences(
    _ bound: PropertyBinding.Relationship, _ relationship: ManagedObjectModel.Relationship, _ model: ManagedObjectModel
  ) -> [String]? {
    if bound.isOrdered && !relationship.isOrdered { return ["The relationship isn't ordered in the model."] }
    let type = bound.destination, destination = model.destination(of: relationship)
    if type.entityName.isEmpty || model.entity(named: type.entityName).map(destination.isKind) == true { return nil }
    return ["Its destination is \(destination.name), not \(type.entityName)."]
  }

  /// Differences between the declared destination classes of relationships and the classes bound to their entities.
  static func destinationDifferences(
    _ type: ManagedObject.Type, _ classes: [ManagedObject.Type], _ model: ManagedObjectModel
  ) -> [String] {
    type.properties.compactMap { binding in
      guard case .relationship(let relationship) = binding.kind else { return nil }
      let said = relationship.destination
      guard let entity = model.entity(named: said.entityName), said != ManagedObject.self else { return nil }
      return isKind(classes[entity.index], of: said) ? nil : "\(type).\(binding.name): \(said) isn't among the classes that were passed."
    }
  }

  /// Whether a class is another or one of its subclasses.
  static func isKind(_ type: ManagedObject.Type, of other: ManagedObject.Type) -> Bool {
    var current: (any AnyObject.Type)? = type
    while let next = current {
      if next == other { return true }
      current = _getSuperclass(next)
    }
    return false
  }

  private static func slotDifferences(_ said: Int, _ right: Int) -> [String] {
    said == right ? [] : ["Its slot is \(right), not \(said)."]
  }
}
