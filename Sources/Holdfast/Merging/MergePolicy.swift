public import HoldfastStore

/// How a context resolves conflicts when it saves.
///
/// A conflict arises when another context or process changed or deleted an object after this context read it, or when two objects have the
/// same values of a uniqueness constraint. With a policy other than ``error``, the save resolves all conflicts and continues.
///
/// ```swift
/// context.mergePolicy = .mergeByPropertyObjectTrump
/// ```
///
/// The policies have the names and rules of Core Data's. *Conflicts and merging* describes each of them, and what is merged.
public struct MergePolicy: Sendable {
  enum Rule: Sendable {
    case always(MergeResolution)
    case custom(@Sendable (MergeConflict) throws -> MergeResolution)
  }

  let rule: Rule

  private init(_ rule: Rule) { self.rule = rule }

  /// The save fails with ``PersistenceError/Code/conflict`` (133020) or ``PersistenceError/Code/constraintConflict`` (133021). The default.
  public static let error = MergePolicy(.always(.error))
  /// Merges property by property. Where both sides changed a property, the stored value is kept.
  public static let mergeByPropertyStoreTrump = MergePolicy(.always(.mergeByPropertyStoreTrump))
  /// Merges property by property. Where both sides changed a property, this context's value is saved.
  public static let mergeByPropertyObjectTrump = MergePolicy(.always(.mergeByPropertyObjectTrump))
  /// Saves all attributes and to-one relationships of the object as they are in this context, changed or not.
  public static let overwrite = MergePolicy(.always(.overwrite))
  /// Discards this context's changes of the objects in conflict. Other objects are saved.
  public static let rollback = MergePolicy(.always(.rollback))

  /// A policy that decides for each conflict.
  ///
  /// ```swift
  /// let policy = MergePolicy.custom { conflict in
  ///   conflict.kind == .deletedInStore ? .rollback : .mergeByPropertyObjectTrump
  /// }
  /// ```
  ///
  /// - Parameter resolve: Decides what to do. Each attempt to save calls it once for each object in conflict, before any of them is changed.
  ///   It isn't called if both sides deleted the object, or if this context changed only links that other objects' rows contain. If it
  ///   throws, the save throws the conflict with this error as its cause, and no object changes. When saved changes are merged, such an
  ///   object isn't merged, and its next save is the conflict. It can't save the context, merge further changes, roll it back or reset it.
  public static func custom(_ resolve: @escaping @Sendable (MergeConflict) throws -> MergeResolution) -> MergePolicy {
    MergePolicy(.custom(resolve))
  }

  /// The resolution if it is the same for every conflict.
  var fixed: MergeResolution? { if case .always(let resolution) = rule { resolution } else { nil } }
}

/// What happens to one object in conflict.
public enum MergeResolution: Sendable, Hashable {
  /// The save fails; see ``MergePolicy/error``.
  case error
  /// See ``MergePolicy/mergeByPropertyStoreTrump``.
  case mergeByPropertyStoreTrump
  /// See ``MergePolicy/mergeByPropertyObjectTrump``.
  case mergeByPropertyObjectTrump
  /// See ``MergePolicy/overwrite``.
  case overwrite
  /// See ``MergePolicy/rollback``.
  case rollback
  /// Merges as ``mergeByPropertyObjectTrump``, then sets attributes and to-one relationships to the given values.
  ///
  /// Values are set as by ``ManagedObject/setValue(_:forKey:)-(StoreValue,_)``. An attribute takes a value of its type, and a transformable
  /// attribute takes bytes, which aren't decoded. A composite attribute takes null, and its elements are set by name (`"home.city"`). A
  /// to-one relationship takes the object's ID or null, and isn't set to an object that was deleted. If a value can't be set, the save throws
  /// the conflict with the reason as its cause, and no object changes.
  ///
  /// An object that this context deletes is kept.
  case values([String: StoreValue])

  /// Whether this context's object stays if the other side deleted it, or is deleted if the other side changed it.
  var prefersObject: Bool {
    switch self {
    case .mergeByPropertyObjectTrump, .overwrite, .values: true
    case .error, .mergeByPropertyStoreTrump, .rollback: false
    }
  }
}

/// A conflict about one object, for a custom ``MergePolicy``.
public struct MergeConflict: Sendable, Hashable {
  /// What is in conflict.
  public enum Kind: Sendable, Hashable {
    /// Both sides changed the object.
    case update
    /// This context changed the object, and the other side deleted it.
    case deletedInStore
    /// This context deletes the object, and the other side changed it.
    case deletedInContext
    /// The object has the same values of a uniqueness constraint as another object. The array contains the constraint's properties.
    case uniqueness([String])
  }

  /// The object in this context. For a uniqueness conflict, the new object with its temporary ID, or the changed one.
  public var objectID: ManagedObjectID
  /// The name of the object's entity.
  public var entityName: String
  /// What is in conflict.
  public var kind: Kind
  /// The values that this context had read; nil for a new object. (Core Data: `cachedSnapshot`.)
  ///
  /// The three dictionaries contain the attributes and to-one relationships by name, without derived attributes and values in external files.
  /// A relationship is the ID of its destination, and a missing value is null. The elements of a composite attribute are separate values,
  /// with names such as `home.city`. The ID of an object that the context doesn't have may name a superentity: find such an object by
  /// ``ManagedObjectContext/existingObject(with:)``.
  public var base: [String: StoreValue]?
  /// The values in this context; nil if it deletes the object. (Core Data: `objectSnapshot`.)
  public var ours: [String: StoreValue]?
  /// The values that are stored now; nil if the object was deleted. (Core Data: `persistedSnapshot`.)
  ///
  /// For a uniqueness conflict, the values of the other object.
  public var theirs: [String: StoreValue]?
  /// The other object in a uniqueness conflict; nil otherwise.
  public var existingObjectID: ManagedObjectID?
}
