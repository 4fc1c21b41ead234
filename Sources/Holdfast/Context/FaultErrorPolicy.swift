/// What a context does when a property can't be read because of an error.
///
/// The getter of a property can't throw. When the store is busy, closed or damaged, or an I/O error occurs, the getter returns a
/// *placeholder*: 0, `false`, `""`, `nil` or an empty relationship. The policy decides what follows, so that no placeholder is taken for a
/// value of the store and saved.
///
/// An object whose row was deleted is not an error: its properties are nil, ``ManagedObject/isInaccessible`` is true, and saves go on.
public enum FaultErrorPolicy: Sendable, Hashable {
  /// Saves are refused with ``ContextError/Code/unreadValues`` until the errors are acknowledged: by
  /// ``ManagedObjectContext/acknowledgeFaultErrors()``, ``ManagedObjectContext/reset()``, ``ManagedObjectContext/rollback()`` or a refresh of
  /// the objects.
  case failSave
  /// The process ends with the error as its message.
  case trap
  /// Nothing follows; ``ManagedObjectContext/faultError`` has the error. A program that ignores it may save placeholders.
  case placeholder
}
