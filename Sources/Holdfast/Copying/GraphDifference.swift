public import HoldfastStore

/// How the objects of two stores differ: which exist in only one of them, and which have other values or links.
///
/// ```swift
/// let difference = try PersistentStoreCoordinator.difference(between: .sqlite(at: backup), and: .sqlite(at: path))
/// if !difference.isEmpty { print(difference) }
/// ```
///
/// Its description is a text for people. It contains no values:
///
/// ```text
/// Dog: 1200 objects in both stores, 1 changed; 2 only in the first store
/// Walk: 35000 objects in both stores
/// Changed: Dog/p17: age, owner
/// Only in the first store: Dog/p5
/// Only in the first store: Dog/p9
/// ```
///
/// It doesn't compare the metadata of the stores, or the versions of rows.
public struct GraphDifference: Sendable, Hashable {
  /// How the object of the second store is found that an object of the first one is compared with.
  ///
  /// Partners always have the same entity.
  @nonexhaustive public enum Matching: Sendable, Hashable {
    /// By ID: the same root entity and key. For copies with the same keys, backups, and earlier states of a store.
    case objectIDs
    /// By the values of unique keys: the uniqueness constraints of the model, in their order.
    ///
    /// An object that has a complete key is compared only with the object that has the same key. Objects whose entities have no constraint,
    /// that have nil in each key, or that share a key with another object of their store, are matched by structure. A to-one relationship
    /// in a key counts once its destination is matched.
    ///
    /// The names are those of attributes and to-one relationships that are a unique key, by entity: `["Mood": ["remoteID"]]`. They replace
    /// the constraints of the entity, and apply to its subentities as well. The model needn't declare them as unique.
    case uniqueKeys([String: [String]] = [:])
    /// By values and links, whatever the keys are. For stores of different types, and stores that were filled separately.
    ///
    /// Objects with equal values are distinguished by what they are linked to, directly and indirectly. Then objects without an equal one
    /// are matched if they differ in one property, or in at most half of those that have values. Which ones are matched if several are
    /// similar isn't defined.
    ///
    /// **Guarantee.** If no difference is reported, the graphs are equal up to the keys. If the graphs are equal, no difference is
    /// reported, except perhaps for highly symmetric graphs: objects that can't be distinguished in this way are matched in key order,
    /// together with what is linked to them. Links that are more than 64 steps away may not be used to distinguish objects.
    case structure
  }

  /// The objects of one entity, without subentities.
  public struct Entity: Sendable, Hashable {
    /// The entity's name.
    public let name: String
    /// The number of objects that both stores have, changed or not.
    public let pairCount: Int
    /// The number of objects that both stores have, and that differ.
    public let changedCount: Int
    /// The number of objects that only the first store has.
    public let onlyInFirstCount: Int
    /// The number of objects that only the second store has.
    public let onlyInSecondCount: Int

    /// The number of differences: changed objects, and objects in only one store.
    public var differenceCount: Int { changedCount + onlyInFirstCount + onlyInSecondCount }
  }

  /// An object that differs, or that only one store has.
  public struct Object: Sendable, Hashable {
    /// What differs.
    public enum Kind: Sendable, Hashable, CaseIterable {
      /// Both stores have the object, with other values or links.
      case changed
      /// Only the first store has the object.
      case onlyInFirst
      /// Only the second store has the object.
      case onlyInSecond
    }

    /// The name of its entity.
    public let entityName: String
    /// The ID in the first store; nil if only the second one has the object.
    public let first: ManagedObjectID?
    /// The ID in the second store; nil if only the first one has the object.
    public let second: ManagedObjectID?
    /// The properties that differ: attributes and to-one relationships, then to-many relationships. Empty if only one store has the object.
    public let properties: [Property]

    /// What differs.
    public var kind: Kind { first == nil ? .onlyInSecond : second == nil ? .onlyInFirst : .changed }
  }

  /// A property that differs.
  public struct Property: Sendable, Hashable {
    /// The name. For an element of a composite attribute, the path: `home.latitude`.
    public let name: String
    /// The value in the first store: `null` for none, and an ID for a to-one relationship.
    ///
    /// Nil unless values were requested, and for a to-many relationship. A value in an external file is
    /// ``/HoldfastStore/StoreValue/externalData(_:)``.
    public let first: StoreValue?
    /// The value in the second store, in the same form as ``first``.
    public let second: StoreValue?
  }

  /// The numbers of each entity's objects, in the order of the model, without entities that have none.
  public let entities: [Entity]
  /// The objects that differ, by entity: changed ones, those only in the first store, and those only in the second one, each by key.
  ///
  /// Not more than the maximum number that was requested; ``differenceCount`` counts all of them.
  public let objects: [Object]

  /// Whether the stores have the same objects, with the same values and links.
  public var isEmpty: Bool { differenceCount == 0 }
  /// The number of differences: changed objects, and objects in only one store. Exact, also if ``objects`` doesn't contain all of them.
  public var differenceCount: Int { entities.reduce(0) { $0 + $1.differenceCount } }
}
