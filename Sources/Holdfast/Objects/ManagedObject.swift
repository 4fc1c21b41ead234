/// An object of the graph: a view on one row until somebody writes to it.
///
/// Objects belong to a context and never leave its isolation: the class is not `Sendable`, so the compiler refuses
/// code that would let one travel. What travels is ``objectID``.
///
/// An object is a *fault* while its row has not been read; the first access reads it, together with the rows of the
/// objects that came with it (see ``ManagedObjectContext/batchesFaults``). A clean getter is one test and one load.
///
/// Subclass it for typed access, with slots that are checked when the class is bound to its entity:
///
/// ```swift
/// final class Dog: ManagedObject {
///   enum Slot { static let age = 0, name = 1 }
///   override class var entityName: String { "Dog" }
///   var age: Int { get { self[Slot.age] } set { self[Slot.age] = newValue } }
///   var name: String { get { self[Slot.name] } set { self[Slot.name] = newValue } }
///   override class var properties: [PropertyBinding] {
///     [.attribute("age", \Dog.age, slot: Slot.age), .attribute("name", \Dog.name, slot: Slot.name)]
///   }
/// }
/// ```
///
/// A `deinit` of a subclass must not look at the object's properties or relationships: the context still knows the object
/// then and could hand it out once more.
///
/// States, which ``isFault``, ``isInserted``, ``isUpdated`` and ``isDeleted`` tell:
///
/// ```text
///  (insert) ──▶ inserted ──save──▶ clean ◀──fire── fault ◀── object(with:), relationship
///                  │                │ ▲
///               delete           set│ │save, rollback
///                  ▼                ▼ │
///              (no object)       updated ──delete──▶ deleted ──save──▶ (no object)
/// ```
open class ManagedObject {
  /// The context that the object belongs to.
  public final let managedObjectContext: ManagedObjectContext
  /// The current row, sealed or private; nil while the object is a fault.
  @usableFromInline @exclusivity(unchecked) final var row: UnsafeRawPointer?
  /// Beside the row, because each getter looks at both: further on they would mostly be in another line of the processor's cache.
  @usableFromInline @exclusivity(unchecked) final var flags: ObjectFlags
  /// The place in the identity map's dense array.
  @exclusivity(unchecked) final var mapIndex: UInt32 = .max
  /// Keeps the sealed row alive and knows the siblings: a ``RowGroup`` once there is a row, a ``FaultSiblings``
  /// before that; nil for new objects and for faults without siblings.
  @exclusivity(unchecked) final var owner: AnyObject?
  /// What is known of each to-many relationship beyond the group's answer, by to-many index, behind that the values of transient
  /// attributes, and in front the links of transient relationships; nil for nothing.
  @exclusivity(unchecked) final var toMany: UnsafeMutablePointer<ToManyState>?
  /// The key in the store, or the temporary one, which is negative. With the entity and the context it makes the ID.
  @exclusivity(unchecked) final var objectKey: Int64
  /// The place in the owner: row of the group, or target of the siblings.
  @exclusivity(unchecked) final var position: UInt32 = 0

  /// The context makes objects; use ``ManagedObjectContext/insert(_:)``.
  public required init(_ seed: ManagedObjectSeed) {
    managedObjectContext = seed.context
    objectKey = seed.key
    flags = seed.flags
  }

  deinit {
    if mapIndex != .max { managedObjectContext.unregister(self) }
    if flags.contains(.hasPrivateRow), let row { PrivateRow(existing: row).destroy() }
    if let toMany { destroyToMany(toMany) }
  }

  /// The name of the entity that the class stands for: the name of the class, without module and enclosing types, unless the
  /// class says otherwise. Empty for what stands for any entity: `ManagedObject` itself, and classes that say so.
  open class var entityName: String { self == ManagedObject.self ? "" : String(describing: self) }

  /// The properties of the class with slots, types and key paths; checked against the model when the class is bound.
  open class var properties: [PropertyBinding] { [] }

  /// Called once, when the object is made as a new one, with its defaults: the place for defaults that are computed.
  open func awakeFromInsert() {}

  /// Called when the object has got its row from the store: the first time after it was made, and again each time that it had
  /// been a fault. Objects whose rows came along with that of another are called too, each once; all are called before
  /// anybody who asked for one of them sees it. The place for values that are worked out from others.
  ///
  /// As in Core Data (`NSManagedObject.awakeFromFetch()`), attributes that it sets by their ordinary setters are not recorded as
  /// changes: the object shows them until it becomes a fault or its changes are taken back, and they are saved only when something else
  /// makes the object a changed one, together with that. Queries of the store do not see them. Relationships that it sets, and
  /// attributes of other objects, are ordinary changes; in Core Data they would leave the other end behind. Not called for new
  /// objects, nor for rows that cannot be read. Reading a property that is not in the model does not give a fault its row. Classes that do not override it cost nothing.
  open func awakeFromFetch() {}

  /// Called before the object gives its row up: when it is refreshed without merging, when its context is reset, and when its
  /// insertion is rolled back. Not for faults, nor when an object is deallocated or its deletion was saved. Its values can be
  /// read still; it must not change objects.
  open func willTurnIntoFault() {}

  /// Called after the object has given its row up, where ``willTurnIntoFault()`` was called before. The place to drop what was made in
  /// ``awakeFromFetch()``. It must not read the object, which would fulfil it again.
  open func didTurnIntoFault() {}

  /// Called for every call that deletes the object, by the program or by a cascade, before delete rules are applied.
  open func prepareForDeletion() {}

  /// Called before a save for every object that is to be inserted, updated or deleted; ``isDeleted`` tells the last. May change
  /// objects; those are saved too.
  open func willSave() {}

  /// Called after a save for every object that was saved, deleted ones included. ``isDeleted`` is false again by then, as in Core
  /// Data, which lets it become false at any time after the deletion was saved.
  open func didSave() {}

  /// The class's own rules for one property, beyond the model's: throws when the value is not right.
  ///
  /// Called by saves for each property of a new or changed object (to-many relationships only when they are known, no value that lies
  /// in a file already, transient values that ``/HoldfastStore/StoreValue`` can say), and by
  /// ``validateValue(_:forKey:)`` before a value is set. Must not change objects. Any error may be thrown; ``ContextError/invalid(_:property:)``
  /// makes one with a sentence for people. Classes that do not override it cost nothing.
  ///
  /// ```swift
  /// final class Tie: ManagedObject {
  ///   override func validate(_ value: PropertyValue, forKey key: String) throws {
  ///     if key == "rating", value == .double(3.5) { throw ContextError.invalid("Nobody rates a tie 3.5.") }
  ///   }
  /// }
  /// ```
  open func validate(_ value: PropertyValue, forKey key: String) throws {}

  /// Checks what several properties of a new object say together, before it is saved: throws when they do not agree. The model's
  /// rules and those for single properties are checked besides, whether it throws or not, and all failures are reported together.
  open func validateForInsert() throws {}

  /// Checks what several properties of a changed object say together, before it is saved; see ``validateForInsert()``.
  open func validateForUpdate() throws {}

  /// Checks whether the object may be deleted, before the deletion is saved; the model's deny rules are checked besides.
  open func validateForDelete() throws {}

  // MARK: State

  /// The object's ID: temporary until the first save.
  public final var objectID: ManagedObjectID { id }

  final var id: ManagedObjectID { managedObjectContext.objectID(Int(flags.entityIndex), objectKey) }

  /// The entity.
  public final var entity: ManagedObjectModel.Entity { managedObjectContext.entities[Int(flags.entityIndex)] }

  /// Whether the row has not been read yet.
  public final var isFault: Bool { row == nil }

  /// Whether the object was never saved.
  public final var isInserted: Bool { flags.contains(.inserted) }

  /// Whether values or relationships were set since the object was read or saved.
  public final var isUpdated: Bool { flags.contains(.updated) }

  /// Whether the object is going to be deleted by the next save.
  public final var isDeleted: Bool { flags.contains(.deleted) }

  /// Whether the object is inserted, updated or deleted.
  public final var hasChanges: Bool { !flags.isDisjoint(with: [.inserted, .updated, .deleted]) }

  /// Whether the row could not be read: another context or process deleted it, or the store failed. All values are nil then;
  /// ``ManagedObjectContext/faultError`` has the reason, and ``FaultErrorPolicy`` says what follows. After an error of the store the object is
  /// still a fault, and the next access tries again.
  ///
  /// True as well for an object that has left the graph: its deletion was saved, its context was reset, or its insertion was rolled back.
  public final var isInaccessible: Bool { !flags.isDisjoint(with: [.inaccessible, .detached]) }

  /// The row, read when the object is a fault.
  @inlinable @inline(__always) final var readRow: RowPointer {
    if let row { return RowPointer(row) }
    return fireFault()
  }

  @usableFromInline final func fireFault() -> RowPointer { managedObjectContext.fireFault(self) }

  private func destroyToMany(_ states: UnsafeMutablePointer<ToManyState>) {
    let (count, transientCount, linkCount) = (plan.toManyCount, plan.transientCount, plan.transientLinkCount)
    if linkCount > 0 { giveUpTransientLinks(states) }
    for index in 0..<count { states[index].destroy() }
    if transientCount > 0 { ToManyState.transientValues(behind: states, count).deinitialize(count: transientCount) }
    (states - linkCount).deallocate()
  }
}

/// What the context hands to an object's initialiser. Nobody else makes one.
public struct ManagedObjectSeed {
  let context: ManagedObjectContext
  let key: Int64
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
  /// The object stands in the context's list of changed objects.
  static let inList = ObjectFlags(rawValue: 64)
  /// The same, and nobody has to hear of further changes: nobody listens, or it stands among those to be told already. What
  /// the setters test.
  static let listed = ObjectFlags(rawValue: 64 | 2048)
  /// What ``listed`` has beyond ``inList``.
  static let noted = ObjectFlags(rawValue: 2048)
  /// Those who listen to changes were told of the insertion.
  static let toldInserted = ObjectFlags(rawValue: 4096)
  /// Those who listen to changes were told of the deletion.
  static let toldDeleted = ObjectFlags(rawValue: 8192)
  /// The delete rules have been applied.
  static let propagated = ObjectFlags(rawValue: 128)
  /// The context was reset or the object rolled back: it belongs to the graph no more.
  static let detached = ObjectFlags(rawValue: 256)
  /// The object belongs to an ``AccessorProbe``, which records what its accessors name.
  static let probe = ObjectFlags(rawValue: 512)
  /// ``ManagedObject/prepareForDeletion()`` is running.
  static let preparingDeletion = ObjectFlags(rawValue: 1024)
  /// ``ManagedObject/awakeFromFetch()`` is running.
  static let awakening = ObjectFlags(rawValue: 16384)

  @usableFromInline init(rawValue: UInt32) { self.rawValue = rawValue }
  init(entityIndex: Int) { rawValue = UInt32(truncatingIfNeeded: entityIndex) << 16 }
  var entityIndex: UInt32 { rawValue >> 16 }
}

extension ManagedObject: Hashable {
  /// Objects are equal when they are the same object: within a context there is one per row.
  public static func == (a: ManagedObject, b: ManagedObject) -> Bool { a === b }

  /// Hashes the identity.
  public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

extension ManagedObject: CustomStringConvertible {
  /// Entity, ID and state, never values.
  public var description: String {
    let state =
      isInaccessible
      ? "inaccessible" : isDeleted ? "deleted" : isInserted ? "inserted" : isUpdated ? "updated" : isFault ? "fault" : "clean"
    return "<\(entity.name) \(id.uriRepresentation) \(state)>"
  }
}
