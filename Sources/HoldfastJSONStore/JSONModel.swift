import HoldfastStore

/// The layout of a model's objects in a file, computed once per read or write.
struct JSONModel {
  /// The entities by index.
  let entities: [JSONEntity]
  /// The to-many relationships whose destinations are in the file. An inherited relationship appears once.
  let written: [ManagedObjectModel.Relationship]

  init(_ model: ManagedObjectModel) {
    let written = model.entities.flatMap(\.ownRelationships).filter(JSONModel.isWritten)
    self.written = written
    entities = model.entities.map { JSONEntity($0, written) }
  }

  /// Whether the file contains a relationship's destinations. It does if the relationship is ordered, or if the rows at the other end don't
  /// contain the links.
  static func isWritten(_ relationship: ManagedObjectModel.Relationship) -> Bool {
    relationship.isToMany && (relationship.isOrdered || relationship.storesLinks)
  }
}

/// The members of an entity's objects in a file, in their order.
struct JSONEntity {
  struct Field {
    var name: String
    var kind: Kind
  }

  enum Kind {
    /// The object's key.
    case key
    /// The object's version, if it isn't 1.
    case version
    /// An attribute.
    case attribute(slot: SlotIndex, AttributeType)
    /// The key of a to-one relationship's destination.
    case target(slot: SlotIndex)
    /// Keys of destinations. `place` is the relationship's index in ``JSONModel/written``.
    case targets(place: Int, isOrdered: Bool)
    /// The order keys of ordered relationships, if they aren't the default ones.
    case orders
  }

  let name: String
  let index: EntityIndex
  let isAbstract: Bool
  let fields: [Field]

  init(_ entity: ManagedObjectModel.Entity, _ written: [ManagedObjectModel.Relationship]) {
    (name, index, isAbstract) = (entity.name, entity.index, entity.isAbstract)
    var fields = [Field(name: "$key", kind: .key), Field(name: "$version", kind: .version)]
    for (slot, property) in zip(entity.slotIndexes, entity.slots) {
      switch property {
      case .attribute(let attribute): fields.append(Field(name: attribute.name, kind: .attribute(slot: slot, attribute.type)))
      case .toOne(let relationship): fields.append(Field(name: relationship.name, kind: .target(slot: slot)))
      }
    }
    for relationship in entity.toManyRelationships {
      guard let place = written.firstIndex(of: relationship) else { continue }
      fields.append(Field(name: relationship.name, kind: .targets(place: place, isOrdered: relationship.isOrdered)))
    }
    fields.append(Field(name: "$order", kind: .orders))
    self.fields = fields
  }
}
