/// What a context does when a property can't be read because of an error.
///
/// The getter of a property can't throw. When the store is busy, closed or damaged, or an I/O error occurs, the getter returns a
/// *placeholder*: 0, `false`, `""`, `nil` or an empty relationship. The policy prevents placeholders from being mistaken for stored values
/// and saved. In ``ManagedObjectContext/reading(_:)`` it applies only to an error after which the closure changed an object.
///
/// A deleted row isn't an error: the object's properties are nil, ``ManagedObject/isInaccessible`` is true, and saves continue to work.
@nonexhaustive public enum FaultErrorPolicy: Sendable, Hashable {
  /// Saves throw ``PersistenceError/Code/unreadValues`` until the errors are acknowledged.
  ///
  /// ``ManagedObjectContext/acknowledgeFaultErrors()``, ``ManagedObjectContext/reset()``, ``ManagedObjectContext/rollback()`` and a refresh
  /// of the objects acknowledge them.
  case failSave
  /// The process traps, with the error as its message.
  case trap
  /// The context only sets ``ManagedObjectContext/faultError``. A program that ignores it may save placeholders.
  case placeholder
}
