import HoldfastStore

/// An object of the graph. It represents one row of a store.
///
/// Objects belong to a context and stay in its isolation. The class isn't `Sendable`, so sending an object elsewhere is a compile-time
/// error. Send its ``objectID`` instead.
///
/// An object is a *fault* until its row is read. The first access reads the row, together with the rows of its siblings (see
/// ``ManagedObjectContext/firesFaultsInBatches``). After that, a getter of a number is two tests and one load.
///
/// Subclass it for typed access. The slots are checked when the class is bound to its entity:
///
/// ```swift
/// final class Dog: ManagedObject {
///   enum Slot { static let age: SlotIndex = 0, name: SlotIndex = 1 }
///   override class var entityName: String { "Dog" }
///   var age: Int { get { self[Slot.age] } set { self[Slot.age] = newValue } }
///   var name: String { get { self[Slot.name] } set { self[Slot.name] = newValue } }
///   override class var properties: [PropertyBinding] {
///     [.attribute("age", \Dog.age, slot: Slot.age), .attribute("name", \Dog.name, slot: Slot.name)]
///   }
/// }
/// ```
///
/// A `deinit` of a subclass must not use the object's properties or relationships: the context still has the object registered and could
/// return it again.
///
/// The states, as reported by ``isFault``, ``isInserted``, ``isUpdated`` and ``isDeleted``:
///
/// ```text
///  (insert) ──▶ inserted ──save──▶ clean ◀──fire── fault ◀── object(with:), relationship
///                  │                │ ▲
///               delete           set│ │save, rollback
///                  ▼                ▼ │
///              (no object)       updated ──delete──▶ deleted ──save──▶ (no object)
/// ```
///
/// The class is explicitly nonisolated, so its subclasses are nonisolated also in modules whose default isolation is the main actor.
open nonisolated class ManagedObject {
  /// The core of the context that the object belongs to.
  @usableFromInline final let context: ContextCore
  /// The current row, sealed or private; nil while the object is a fault.
  @usableFromInline @exclusivity(unchecked) final var row: RowPointer?
  /// Stored next to the row, because each getter reads both from the same cache line.
  @usableFromInline @exclusivity(unchecked) final var flags: ObjectFlags
  /// The position in the identity map's dense array.
  @exclusivity(unchecked) final var mapIndex: UInt32 = .max
  /// Keeps the sealed row alive and finds the siblings.
  ///
  /// A ``RowGroup`` if the object has a row, otherwise a ``FaultSiblings``. Nil for new objects and for faults without siblings.
  @exclusivity(unchecked) final var owner: AnyObject?
  /// The state of each to-many relationship beyond the group's answer; nil if there is none.
  @exclusivity(unchecked) final var toMany: ToManyStates?
  /// The key in the store, or a negative temporary key. The ID consists of the context's stores, the entity and this key.
  @exclusivity(unchecked) final var objectKey: ObjectKey
  /// The position in the owner: a row of the group, or a destination of the siblings.
  @exclusivity(unchecked) final var position: UInt32 = 0

  /// The context makes objects; use ``ManagedObjectContext/insert(_:)-(Object.Type)``.
  ///
  /// An override must not use the object's properties or relationships, which it doesn't have yet. It traps if it does. Use them in
  /// ``awakeFromInsert()`` or ``awakeFromFetch()``.
  public required init(_ seed: ManagedObjectSeed) {
    context = seed.context
    objectKey = seed.key
    flags = seed.flags
  }

  deinit {
    if flags.contains(.inList) && context.isReleased { context.noteLoss(of: self) }
    if mapIndex != .max { context.registry.remove(self) }
    if flags.contains(.hasPrivateRow), let row { PrivateRow(existing: row).destroy(in: context.pool) }
    if let toMany { destroy(toMany) }
  }

  /// The name of the class's entity. Defaults to the class name without module and enclosing types.
  ///
  /// Empty for classes that can represent any entity, such as `ManagedObject` itself.
  open class var entityName: String { self == ManagedObject.self ? "" : String(describing: self) }

  /// The entity that the class declares; nil for a class whose entity is declared in a model.
  open class var declaration: EntityDeclaration? { nil }

  /// The properties of the class with slots, types and key paths; checked against the model when the class is bound.
  ///
  /// Defaults to those of the ``declaration``.
  open class var properties: [PropertyBinding] { declaration?.bindings ?? [] }

  /// Called when the object is inserted, before ``awakeFromInsert()``, to set default values that are computed, such as the current date.
  ///
  /// The macro `@Entity` overrides it in a class whose properties have initial values that aren't literals. An override calls `super` first.
  open func setComputedDefaults() {}

  /// Called once, when the object is inserted with its default values. Override it to compute further defaults.
  open func awakeFromInsert() {}

  /// Called when the object has received its row from the store: after it was created, and each time after it was a fault.
  ///
  /// Objects whose rows were prefetched are called too, each once. All of them are called before the caller receives any. Override it to
  /// compute values from others.
  ///
  /// As in Core Data (`NSManagedObject.awakeFromFetch()`), attributes that it sets by their ordinary setters aren't recorded as changes.
  /// The object has these values until it becomes a fault or its changes are reverted. They are saved only together with another change of
  /// the object, and queries of the store don't use them.
  ///
  /// Setting relationships, or attributes of other objects, makes ordinary changes. (In Core Data the other end would become inconsistent.)
  /// Not called for new objects or unreadable rows. Reading a property that isn't in the model doesn't fire a fault. Classes that don't
  /// override the method have no cost.
  open func awakeFromFetch() {}

  /// Called before the object discards its row:
  ///
  /// - in a refresh, unless its changes are merged, and when its changes are discarded
  /// - in a merge of what others have saved
  /// - in a save that resolves a conflict of the object, or deletes an object that it references
  /// - in a reset of its context
  /// - in the rollback of its insertion or of a save with an unknown outcome
  /// - when its store was removed, unless it has unsaved changes
  ///
  /// Not called for faults, nor when an object is deallocated or its deletion was saved. Its values can still be read. It must not change
  /// objects.
  open func willTurnIntoFault() {}

  /// Called after the object has discarded its row, if ``willTurnIntoFault()`` was called before.
  ///
  /// Override it to release what ``awakeFromFetch()`` created. It must not read the object, which would fire the fault again.
  open func didTurnIntoFault() {}

  /// Called for each deletion of the object, by the program or by a cascade, before delete rules are applied.
  ///
  /// In a cascade, it can't save the context: ``ManagedObjectContext/save()`` throws ``PersistenceError/Code/saveInProgress``. A fetch can
  /// return objects that the rest of the cascade deletes.
  open func prepareForDeletion() {}

  /// Called before a save for every object to insert, update or delete. It may change objects; those changes are saved too.
  ///
  /// ``isDeleted`` is true if the object will be deleted. If another object changes or deletes this one after its call, it is called again
  /// in the same save. What it changes about itself doesn't cause another call (in Core Data it does). A save in which objects keep
  /// changing each other throws ``PersistenceError/Code/endlessSave``. Of what handlers of ``ManagedObjectContext/onChange(_:)`` change, only
  /// deletions cause another call.
  open func willSave() {}

  /// Called after a save for every saved object, including deleted ones, for which ``isDeleted`` is false again.
  ///
  /// In Core Data, `isDeleted` may become false at any time after the deletion was saved.
  open func didSave() {}

  /// The class's own rules for one property, in addition to the model's. Throws if the value isn't valid.
  ///
  /// Saves call it for each property of a new or changed object, except for:
  ///
  /// - to-many relationships that were neither read nor changed,
  /// - values that are already stored in external files,
  /// - transient properties without a value or object, and transient values that ``/HoldfastStore/StoreValue`` can't represent.
  ///
  /// For a composite attribute, they call it for each element.
  ///
  /// ``validateValue(_:forKey:)`` calls it before a value is set. It must not change objects. It may throw any error;
  /// ``PersistenceError/invalid(_:property:)`` creates one with a message for users. A save throws a ``/HoldfastStore/StoreError``, such as
  /// that of a fetch, without the failures of other objects. Classes that don't override it have no cost.
  ///
  /// ```swift
  /// final class Tie: ManagedObject {
  ///   override func validate(_ value: PropertyValue, forKey key: String) throws {
  ///     if key == "rating", value == .double(3.5) { throw PersistenceError.invalid("Nobody rates a tie 3.5.") }
  ///   }
  /// }
  /// ```
  open func validate(_ value: PropertyValue, forKey key: String) throws {}

  /// Validates several properties of a new object together before it is saved; throws if they are inconsistent.
  ///
  /// The model's rules and those of single properties are checked in any case, and all failures are reported together.
  open func validateForInsert() throws {}

  /// Validates several properties of a changed object together before it is saved; see ``validateForInsert()``.
  open func validateForUpdate() throws {}

  /// Validates a deletion before it is saved. The model's deny rules are checked as well.
  open func validateForDelete() throws {}

  // MARK: State

  /// The context that the object belongs to.
  ///
  /// If the program has released it, a new one with the changes of all objects that the program kept; see *Objects*. Keep that one, too, as
  /// long as you need it: `let context = dog.managedObjectContext`. Making it takes time proportional to the number of objects in memory.
  public final var managedObjectContext: ManagedObjectContext { context.program }

  /// The object's ID: temporary until the first save that took effect or whose outcome is unknown, or until
  /// ``ManagedObjectContext/obtainPermanentIDs(for:)``.
  public final var objectID: ManagedObjectID { id }

  final var id: ManagedObjectID { context.objectID(flags.entityIndex, objectKey) }

  /// The entity.
  public final var entity: ManagedObjectModel.Entity { context.entities[flags.entityIndex] }

  /// Whether the row has not been read yet.
  public final var isFault: Bool { row == nil }

  /// Whether the object was never saved.
  public final var isInserted: Bool { flags.contains(.inserted) }

  /// Whether values or relationships were set since the last read or save.
  public final var isUpdated: Bool { flags.contains(.updated) }

  /// Whether the next save deletes the object.
  public final var isDeleted: Bool { flags.contains(.deleted) }

  /// Whether the object is inserted, updated or deleted.
  public final var hasChanges: Bool { !flags.isDisjoint(with: [.inserted, .updated, .deleted]) }

  /// Whether the row couldn't be read: another context or process deleted it, or the store failed.
  ///
  /// All values are nil then. ``ManagedObjectContext/faultError`` has the error, and ``FaultErrorPolicy`` determines what happens. After a
  /// store error the object is still a fault, and the next access tries again.
  ///
  /// Also true for an object that has left the graph: its deletion was saved, its context was reset, or its insertion was rolled back.
  /// Changing it then is a programming error and traps. If others removed it (a merge found that it was deleted, or a save merged it with an
  /// object that has the same unique values), changing it makes the next save throw ``PersistenceError/Code/lostChanges``.
  public final var isInaccessible: Bool { !flags.isDisjoint(with: [.inaccessible, .detached]) }

  /// The row, read if the object is a fault.
  @inlinable @inline(__always) final var readRow: RowPointer {
    if let row { return row }
    return fireFault()
  }

  /// The row for reading a property, which a log of requests names if the object is a fault.
  @inlinable @inline(__always) final func row(for slot: SlotIndex) -> RowPointer {
    if let row { return row }
    return fireFault(for: slot)
  }

  @usableFromInline final func fireFault() -> RowPointer { context.fireFault(self) }

  @usableFromInline final func fireFault(for slot: SlotIndex) -> RowPointer { context.fireFault(self, slot) }

  private func destroy(_ states: ToManyStates) {
    if plan.transientLinkCount > 0 { giveUpTransientLinks(states) }
    states.deallocate(plan, in: context.pool)
  }
}

/// The values for an object's initializer. Only a context creates one.
public struct ManagedObjectSeed {
  let context: ContextCore
  let key: ObjectKey
  let flags: ObjectFlags
}

/// The states of an object and the index of its entity, in 32 bits.
@usableFromInline struct ObjectFlags: OptionSet, Sendable {
  @usableFromInline var rawValue: UInt32
  static let inserted = ObjectFlags(rawValue: 1)
  static let updated = ObjectFlags(rawValue: 2)
  static let deleted = ObjectFlags(rawValue: 4)
  /// ``ManagedObject/row`` is a ``PrivateRow``.
  static let hasPrivateRow = ObjectFlags(rawValue: 8)
  static let inaccessible = ObjectFlags(rawValue: 16)
  /// ``ManagedObject/owner`` is a ``RowGroup``.
  static let ownedByGroup = ObjectFlags(rawValue: 32)
  /// The object is in the context's list of changed objects, or was when the context was released.
  static let inList = ObjectFlags(rawValue: 64)
  /// The object is in the list, and further changes needn't be recorded. Setters test this.
  ///
  /// Either there are no change handlers, or the object is in their next notification.
  static let listed = ObjectFlags(rawValue: 64 | 2048)
  /// The bit of ``listed`` that isn't in ``inList``.
  static let noted = ObjectFlags(rawValue: 2048)
  /// Change handlers received the insertion.
  static let toldInserted = ObjectFlags(rawValue: 4096)
  /// Change handlers received the deletion.
  static let toldDeleted = ObjectFlags(rawValue: 8192)
  /// The delete rules have been applied.
  static let propagated = ObjectFlags(rawValue: 128)
  /// The object has left the graph: the context was reset, or the object's insertion was rolled back or deletion saved.
  ///
  /// Together with ``inaccessible``, it left the graph because of what others did, which the program can't know.
  static let detached = ObjectFlags(rawValue: 256)
  /// The object belongs to an ``AccessorProbe``, which records what its accessors name.
  static let probe = ObjectFlags(rawValue: 512)
  /// ``ManagedObject/prepareForDeletion()`` is running.
  static let preparingDeletion = ObjectFlags(rawValue: 1024)
  /// ``ManagedObject/awakeFromFetch()`` is running.
  static let awakening = ObjectFlags(rawValue: 16384)

  /// Whether a child context has inserted the object, so that children know it.
  static let insertedByChild = ObjectFlags(rawValue: 32_768)

  @usableFromInline init(rawValue: UInt32) { self.rawValue = rawValue }
  init(entityIndex: EntityIndex) { rawValue = UInt32(truncatingIfNeeded: entityIndex.rawValue) << 16 }
  @inline(__always) var entityIndex: EntityIndex { EntityIndex(Int(rawValue >> 16)) }
}

extension ManagedObject: Hashable {
  /// Objects are equal if they are identical. A context has one object per row.
  public static func == (a: ManagedObject, b: ManagedObject) -> Bool { a === b }

  /// Hashes the identity.
  public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

extension ManagedObject: CustomStringConvertible {
  /// The entity, the ID and the state; never values.
  public var description: String {
    let state =
      isInaccessible
      ? "inaccessible" : isDeleted ? "deleted" : isInserted ? "inserted" : isUpdated ? "updated" : isFault ? "fault" : "clean"
    return "<\(entity.name) \(id.uriRepresentation) \(state)>"
  }
}
