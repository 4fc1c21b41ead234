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
  /// What the keys in snapshots have become, possibly by several steps. A key that wasn't replaced is its own value.
  private var followed: [ObjectKey: ObjectKey] = [:]
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

  /// Remembers what the key of a new object becomes, because a snapshot has it.
  mutating func follow(_ key: ObjectKey) { if followed[key] == nil { followed[key] = key } }

  /// Notes that an object has another key, or is represented by the object with another key.
  mutating func replace(_ key: ObjectKey, by newKey: ObjectKey) {
    if followed.isEmpty || followed[key] == nil { return }
    followed[key] = newKey
    followed[newKey] = newKey
  }

  /// The present key for a key in a snapshot.
  func present(_ key: ObjectKey) -> ObjectKey {
    var key = key
    while let next = followed[key], next != key { key = next }
    return key
  }

  /// The ID of a new object.
  @inline(__always) func id(_ entity: EntityIndex, _ key: ObjectKey) -> ManagedObjectID { prefixes[entity].withKey(key) }
}
