/// Creates entities from checked declarations, which are in entity order.
struct ModelFreezer {
  private let declarations: [EntityDescription]
  private let indexByName: [String: Int]
  /// The names of all entities, one array for the layouts of all of them.
  private let names: [String]
  private let shapes: [Shape]
  /// The rank of each entity in the order that names links.
  private let namingRanks: [Int]

  /// The declarations of an entity, sorted, and the number of inherited ones.
  private struct Shape {
    var superIndex: Int?
    var attributes: StoredAttributes
    /// The index after the last subentity's.
    var familyEnd: Int
    var slots: [String]
    var relationships: [RelationshipDescription]
    var transientRelationships: [RelationshipDescription]
    var inheritedSlots = 0
    var inheritedRelationships = 0
    var inheritedTransientRelationships = 0
    var inheritedToMany = 0

    var toMany: [String] { relationships.filter(\.isToMany).map(\.name) }
  }

  init(_ declarations: [EntityDescription], _ composites: [CompositeDescription]) {
    self.declarations = declarations
    indexByName = Dictionary(uniqueKeysWithValues: declarations.enumerated().map { ($1.name, $0) })
    names = declarations.map(\.name)
    shapes = ModelFreezer.shapes(declarations, composites, indexByName)
    namingRanks = ModelOrder.namingRanks(declarations)
  }

  /// Declarations in the order of Core Data's entity numbers: roots by name, each entity followed by its subentities.
  static func ordered(_ declarations: [EntityDescription]) -> [EntityDescription] {
    let sorted = declarations.sorted { ModelOrder.precedes($0.name, $1.name) }
    var ordered: [EntityDescription] = []
    ordered.reserveCapacity(sorted.count)
    // The first subentity of each entity, and the next sibling of each. A dictionary of arrays would be another type. Creating it takes a
    // process that opens a small file longer than everything else here.
    var first: [String: Int] = [:], firstRoot: Int?
    var next = [Int?](repeating: nil, count: sorted.count)
    for index in sorted.indices.reversed() {
      if let parent = sorted[index].superentity {
        next[index] = first[parent]
        first[parent] = index
      } else {
        next[index] = firstRoot
        firstRoot = index
      }
    }
    func append(from start: Int?) {
      var current = start
      while let index = current {
        ordered.append(sorted[index])
        if ordered.count < sorted.count { append(from: first[sorted[index].name]) }
        current = next[index]
      }
    }
    append(from: firstRoot)
    return ordered
  }

  func entities() -> [ManagedObjectModel.Entity] {
    var frozen: [ManagedObjectModel.Entity] = []
    let relationships = declarations.indices.map(frozenRelationships)
    var toThemselves = [[ManagedObjectModel.Relationship]](repeating: [], count: declarations.count)
    for relationship in relationships.joined() where relationship.hasTargetsToItself {
      toThemselves[relationship.destinationIndex].append(relationship)
    }
    for index in declarations.indices { frozen.append(entity(index, frozen, relationships[index], toThemselves[index])) }
    return frozen
  }

  private static func shapes(
    _ declarations: [EntityDescription], _ composites: [CompositeDescription], _ indexByName: [String: Int]
  ) -> [Shape] {
    var byName: [String: CompositeDescription] = [:]
    for composite in composites { byName[composite.name] = composite }
    var shapes: [Shape] = []
    for (index, declaration) in declarations.enumerated() {
      let attributes = StoredAttributes(declaration.attributes, byName)
      let relationships = declaration.relationships.sorted { ModelOrder.bytewise($0.name, $1.name) }
      let stored = relationships.filter { !$0.isTransient }
      let slots = attributes.leaves.map(\.name) + stored.filter { !$0.isToMany }.map(\.name)
      var shape = Shape(
        superIndex: declaration.superentity.flatMap { indexByName[$0] }, attributes: attributes, familyEnd: index + 1,
        slots: slots.sorted(by: ModelOrder.bytewise),
        relationships: stored, transientRelationships: relationships.filter(\.isTransient))
      if let above = shape.superIndex.map({ shapes[$0] }) {
        shape.inheritedSlots = above.inheritedSlots + above.slots.count
        shape.inheritedRelationships = above.inheritedRelationships + above.relationships.count
        shape.inheritedTransientRelationships = above.inheritedTransientRelationships + above.transientRelationships.count
        shape.inheritedToMany = above.inheritedToMany + above.toMany.count
      }
      shapes.append(shape)
    }
    for index in shapes.indices.reversed() {
      if let above = shapes[index].superIndex { shapes[above].familyEnd = max(shapes[above].familyEnd, shapes[index].familyEnd) }
    }
    return shapes
  }

  private func entity(
    _ index: Int, _ frozen: [ManagedObjectModel.Entity], _ relationships: [ManagedObjectModel.Relationship],
    _ linksWithoutInverse: [ManagedObjectModel.Relationship]
  ) -> ManagedObjectModel.Entity {
    let (declaration, shape) = (declarations[index], shapes[index])
    var attributes: [String: StoredAttributes.Leaf] = [:]
    for leaf in shape.attributes.leaves { attributes[leaf.name] = leaf }
    var toOne: [String: ManagedObjectModel.Relationship] = [:]
    for relationship in relationships where !relationship.isToMany { toOne[relationship.name] = relationship }
    let slots = shape.slots.enumerated().compactMap { place, name -> ManagedObjectModel.Slot? in
      if let attribute = attributes.removeValue(forKey: name) {
        return .attribute(
          ManagedObjectModel.Attribute(
            name: name, attribute.declaration, isOptional: attribute.isOptional || attribute.declaration.isDerived,
            defaultValue: attribute.defaultValue,
            slot: SlotIndex(shape.inheritedSlots + place)))
      }
      return toOne.removeValue(forKey: name).map { .toOne($0) }
    }
    return ManagedObjectModel.Entity(
      declaration: declaration, index: EntityIndex(index), namingRank: namingRanks[index], superentity: shape.superIndex.map { frozen[$0] },
      family: EntityIndex(index)..<EntityIndex(shape.familyEnd),
      isAbstract: (index..<shape.familyEnd).map { declarations[$0].isAbstract }, entityNames: names, slots: slots,
      composites: composites(shape),
      transients: transients(declaration, inherited: shape.superIndex.map { frozen[$0].transientAttributes.count } ?? 0),
      relationships: relationships, transientRelationships: frozenTransientRelationships(of: index),
      linksWithoutInverse: linksWithoutInverse)
  }

  private func composites(_ shape: Shape) -> [ManagedObjectModel.CompositeAttribute] {
    shape.attributes.groups.map { group in
      // Element names begin with the composite attribute's name, so they are contiguous in byte order.
      let first = shape.slots.firstIndex { ModelCheck.isElement($0, of: group.name) } ?? 0
      let count = shape.slots.count { ModelCheck.isElement($0, of: group.name) }
      let start = SlotIndex(shape.inheritedSlots + first)
      return ManagedObjectModel.CompositeAttribute(
        name: group.name, declaration: group.declaration, isOptional: group.isOptional, slots: start..<start.advanced(by: count))
    }
  }

  private func transients(_ declaration: EntityDescription, inherited: Int) -> [ManagedObjectModel.TransientAttribute] {
    declaration.attributes.filter(\.isTransient).sorted { ModelOrder.bytewise($0.name, $1.name) }.enumerated().map {
      ManagedObjectModel.TransientAttribute(
        name: $1.name, type: $1.type, isOptional: $1.isOptional, defaultValue: $1.defaultValue, index: inherited + $0, declaration: $1)
    }
  }

  /// The relationships that an entity declares itself.
  private func frozenRelationships(of index: Int) -> [ManagedObjectModel.Relationship] {
    let shape = shapes[index], toMany = shape.toMany
    return shape.relationships.enumerated().map { offset, declared in
      let place = shape.inheritedRelationships + offset
      let destination = indexByName[declared.destination] ?? index
      let other = shapes[destination]
      let found = declared.inverse.flatMap { name in other.relationships.firstIndex { $0.name == name } }
      let inverse = found.map { other.inheritedRelationships + $0 }
      return ManagedObjectModel.Relationship(
        name: declared.name, entityIndex: EntityIndex(index), index: RelationshipIndex(place), destinationIndex: EntityIndex(destination),
        inverseIndex: RelationshipIndex(inverse ?? -1),
        isTransient: false, isToMany: declared.isToMany, inverseIsToMany: found.map { other.relationships[$0].isToMany } ?? true,
        isOptional: declared.isOptional,
        deleteRule: declared.deleteRule, minCount: declared.minCount, maxCount: declared.maxCount,
        isOrdered: declared.isToMany && declared.isOrdered,
        slot: declared.isToMany ? -1 : SlotIndex(shape.inheritedSlots + (shape.slots.firstIndex(of: declared.name) ?? 0)),
        toManyIndex: declared.isToMany ? shape.inheritedToMany + (toMany.firstIndex(of: declared.name) ?? 0) : -1,
        namesLinks: inverse.map { (namingRanks[index], place) <= (namingRanks[destination], $0) } ?? true)
    }
  }

  /// The transient relationships that an entity declares itself. They are numbered separately, so stores don't see them.
  private func frozenTransientRelationships(of index: Int) -> [ManagedObjectModel.Relationship] {
    let shape = shapes[index]
    return shape.transientRelationships.enumerated().map { offset, declared in
      let place = shape.inheritedTransientRelationships + offset
      let destination = indexByName[declared.destination] ?? index
      let other = shapes[destination]
      let found = declared.inverse.flatMap { name in other.transientRelationships.firstIndex { $0.name == name } }
      return ManagedObjectModel.Relationship(
        name: declared.name, entityIndex: EntityIndex(index), index: RelationshipIndex(place), destinationIndex: EntityIndex(destination),
        inverseIndex: RelationshipIndex(found.map { other.inheritedTransientRelationships + $0 } ?? -1), isTransient: true,
        isToMany: declared.isToMany,
        inverseIsToMany: found.map { other.transientRelationships[$0].isToMany } ?? true, isOptional: declared.isOptional,
        deleteRule: declared.deleteRule, minCount: declared.minCount, maxCount: declared.maxCount,
        isOrdered: declared.isToMany && declared.isOrdered, slot: -1,
        toManyIndex: -1 - place, namesLinks: false)
    }
  }
}
