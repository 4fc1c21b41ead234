import HoldfastStore
import Synchronization

/// The IDs of objects that were never saved.
///
/// Their keys count down from a number unique to the context, so that temporary IDs of two contexts are never equal.
struct TemporaryIDs {
  /// By entity index.
  private let prefixes: [ManagedObjectID]
  /// The key of the next new object. Keys descend.
  private(set) var nextKey: ObjectKey
  private static let contextCount = Atomic<Int64>(0)

  init(_ model: ManagedObjectModel) {
    let unsaved = StoreIdentity.intern(storeUUID: "", model: model)
    prefixes = model.entities.map { unsaved.prefix(for: $0) }
    nextKey = ObjectKey(-1 - TemporaryIDs.contextCount.add(1, ordering: .relaxed).oldValue << 32)
  }

  /// A key for a new object.
  mutating func makeKey() -> ObjectKey {
    defer { nextKey = nextKey.advanced(by: -1) }
    return nextKey
  }

  /// The ID of a new object.
  @inline(__always) func id(_ entity: EntityIndex, _ key: ObjectKey) -> ManagedObjectID { prefixes[entity].withKey(key) }
}
