import HoldfastStore

/// How the objects of a model's entities look in a file: worked out once for reading or writing one.
struct JSONModel {
  /// The entities by index.
  let entities: [JSONEntity]
  /// The to-many relationships whose targets stand in the file, each once however many entities inherit it.
  let written: [ManagedObjectModel.Relationship]

  init(_ model: ManagedObjectModel) {
    let written = model.entities.flatMap(\.ownRelationships).filter(JSONModel.isWritten)
    self.written = written
    entities = model.entities.map { JSONEntity($0, written) }
  }

  /// Whether targets stand in the file: where they are not said by the rows at the other end already, and where they have an
  /// order.
  static func isWritten(_ relationship: ManagedObjectModel.Relationship) -> Bool {
    relationship.isToMany && (relationship.isOrdered || JSONModel.namesLinks(relationship))
  }

  /// Whether the file says here, and not at the other end, what is linked.
  static func namesLinks(_ relationship: ManagedObjectModel.Relationship) -> Bool {
    relationship.isManyToMany && relationship.namesLinks
  }
}

/// The members that an object of an entity has in a file, in their order.
struct JSONEntity {
  struct Field {
    var name: String
    var kind: Kind
  }

  enum Kind {
    /// The object's key.
    case key
    /// Its version, when it is not 1.
    case version
    /// An attribute.
    case attribute(slot: Int, AttributeType)
    /// The key of a to-one relationship's target.
    case target(slot: Int)
    /// Keys of targets; the place is that of the relationship in ``JSONModel/written``.
    case targets(place: Int, isOrdered: Bool)
    /// The order keys of ordered relationships that are not the usual ones.
    case orders
  }

  let name: String
  let index: Int
  let isAbstract: Bool
  let fields: [Field]

  init(_ entity: ManagedObjectModel.Entity, _ written: [ManagedObjectModel.Relationship]) {
    (name, index, isAbstract) = (entity.name, entity.index, entity.isAbstract)
    var fields = [Field(name: "$key", kind: .key), Field(name: "$version", kind: .version)]
    for (slot, property) in entity.slots.enumerated() {
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
