/// Turns checked declarations, already in entity order, into frozen entities.
struct ModelFreezer {
  let declarations: [EntityDescription]
  let indexByName: [String: Int]

  init(_ declarations: [EntityDescription]) {
    self.declarations = declarations
    indexByName = Dictionary(uniqueKeysWithValues: declarations.enumerated().map { ($1.name, $0) })
  }

  func entities() -> [ManagedObjectModel.Entity] {
    declarations.indices.map(entity)
  }

  private func entity(_ index: Int) -> ManagedObjectModel.Entity {
    let declaration = declarations[index]
    let relationships = frozenRelationships(of: index)
    var attributes = Dictionary(uniqueKeysWithValues: declaration.attributes.map { ($0.name, $0) })
    var toOne = Dictionary(uniqueKeysWithValues: relationships.filter { !$0.isToMany }.map { ($0.name, $0) })
    let slots = slotNames(declaration).enumerated().compactMap { slot, name -> ManagedObjectModel.Slot? in
      if let attribute = attributes.removeValue(forKey: name) { return .attribute(frozen(attribute, slot: slot)) }
      return toOne.removeValue(forKey: name).map { .toOne($0) }
    }
    return ManagedObjectModel.Entity(
      name: declaration.name, index: index, slots: slots, relationships: relationships, declaration: declaration,
      versionHash: ModelVersionHash.hash(of: declaration))
  }

  private func frozen(_ attribute: AttributeDescription, slot: Int) -> ManagedObjectModel.Attribute {
    ManagedObjectModel.Attribute(
      name: attribute.name, type: attribute.type, isOptional: attribute.isOptional, defaultValue: attribute.defaultValue, slot: slot)
  }

  private func slotNames(_ declaration: EntityDescription) -> [String] {
    let names = declaration.attributes.map(\.name) + declaration.relationships.filter { !$0.isToMany }.map(\.name)
    return names.sorted(by: ModelOrder.bytewise)
  }

  private func sortedRelationships(_ index: Int) -> [RelationshipDescription] {
    declarations[index].relationships.sorted { ModelOrder.bytewise($0.name, $1.name) }
  }

  private func frozenRelationships(of index: Int) -> [ManagedObjectModel.Relationship] {
    let slots = slotNames(declarations[index])
    var toManyCount = 0
    return sortedRelationships(index).enumerated().map { place, declared in
      let destination = indexByName[declared.destination] ?? index
      let others = sortedRelationships(destination)
      let inverse = others.firstIndex { $0.name == declared.inverse } ?? 0
      defer { if declared.isToMany { toManyCount += 1 } }
      return ManagedObjectModel.Relationship(
        name: declared.name, entityIndex: index, index: place, destinationIndex: destination, inverseIndex: inverse,
        isToMany: declared.isToMany, inverseIsToMany: others[inverse].isToMany, isOptional: declared.isOptional,
        deleteRule: declared.deleteRule, minCount: declared.minCount, maxCount: declared.maxCount,
        slot: declared.isToMany ? -1 : slots.firstIndex(of: declared.name) ?? -1,
        toManyIndex: declared.isToMany ? toManyCount : -1, namesLinks: (index, place) <= (destination, inverse))
    }
  }
}
