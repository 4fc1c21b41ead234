/// The objects that receive their rows and haven't been awakened yet.
///
/// An operation holds awakening while it has pointers to rows, or while it has changed only one end of a relationship.
struct Awakening {
  /// The objects to awaken, starting at index ``next``. The array keeps them alive.
  private var waiting: ContiguousArray<ManagedObject> = []
  private var next = 0
  /// The number of running operations during which no object may be awakened.
  private var holds = 0

  /// Adds an object that is about to receive its row.
  mutating func append(_ object: ManagedObject) { waiting.append(object) }

  /// Begins an operation during which no object may be awakened.
  mutating func hold() { holds += 1 }

  /// Ends such an operation.
  mutating func release() { holds = max(0, holds - 1) }

  /// Ends all such operations.
  mutating func releaseAll() { holds = 0 }

  /// Removes and returns the next object to awaken, in the order in which objects were added. Nil if none may be awakened now.
  mutating func takeNext() -> ManagedObject? {
    if waiting.isEmpty || holds > 0 { return nil }
    if next < waiting.count {
      defer { next += 1 }
      return waiting[next]
    }
    next = 0
    // Releasing the last object may call this again.
    waiting = []
    return nil
  }
}
