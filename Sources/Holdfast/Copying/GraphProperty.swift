import HoldfastStore

/// A stored property of an entity, as comparisons of graphs see it.
enum GraphProperty {
  /// An attribute, or an element of a composite attribute.
  case attribute(ManagedObjectModel.Attribute)
  /// A relationship with at most one destination.
  case toOne(ManagedObjectModel.Relationship)
  /// A relationship with any number of destinations.
  case toMany(ManagedObjectModel.Relationship)

  var name: String {
    switch self {
    case .attribute(let attribute): attribute.name
    case .toOne(let relationship), .toMany(let relationship): relationship.name
    }
  }

  /// Whether the value is computed from other properties, so that it doesn't help to find the object in another store.
  var isDerived: Bool { if case .attribute(let attribute) = self { attribute.derivation != nil } else { false } }

  /// Whether the links can't be read completely from their destinations: those without an inverse, and their order.
  var isOneWay: Bool {
    switch self {
    case .attribute(let attribute): attribute.type == .objectID
    case .toOne(let relationship), .toMany(let relationship): !relationship.hasInverse || relationship.isOrdered
    }
  }

  /// The value of a property in a form that can be compared with another store's.
  enum Content {
    /// No value, or no destination that exists.
    case none
    /// A number or truth value. Bit patterns of floating-point numbers, with one for both zeros.
    case number(UInt64)
    /// Text, bytes, and what rows keep in the same way.
    case bytes([UInt8])
    /// Destinations by their ranks in a root entity's family.
    case objects(EntityIndex, [Int], isOrdered: Bool)
  }
}

extension ManagedObjectModel.Entity {
  /// The stored properties: those of the slots, then to-many relationships.
  var graphProperties: [GraphProperty] {
    slots.map { slot in
      switch slot {
      case .attribute(let attribute): .attribute(attribute)
      case .toOne(let relationship): .toOne(relationship)
      }
    } + toManyRelationships.map { .toMany($0) }
  }
}
