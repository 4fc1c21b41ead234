import HoldfastStore
import Synchronization

/// The IDs of objects that were never saved.
///
/// A context takes blocks of keys, so that temporary IDs of two contexts are never equal. It takes the first one with the first new object,
/// because a server creates contexts for years, and most of them insert few objects or none.
struct TemporaryIDs {
  /// The number of keys in a block. A process has 2^47 blocks.
  static let blockSize: Int64 = 1 << 16
  /// By entity index.
  private let prefixes: [ManagedObjectID]
  /// The key after that of the last new object; 0 before the first one. Keys descend, also from one block to the next.
  private(set) var nextKey: ObjectKey = 0
  /// The number of unused keys in the context's block.
  private var keysLeft: Int64 = 0
  /// A key and the root entity of its object. Saved objects of different root entities can have the same key.
  private struct Place: Hashable {
    let root: EntityIndex
    let key: ObjectKey
  }

  /// What the keys in snapshots have become, possibly by several steps. A key that wasn't replaced is its own value.
  private var followed: [Place: ObjectKey] = [:]
  /// The number of blocks that were taken.
  private static let takenCount = Atomic<Int64>(0)

  init(_ model: ManagedObjectModel) {
    let unsaved = StoreIdentity.intern(storeUUID: "", model: model)
    prefixes = model.entities.map { unsaved.prefix(for: $0) }
  }

  /// A key for a new object.
  mutating func makeKey() -> ObjectKey {
    if keysLeft == 0 { takeBlock() }
    keysLeft -= 1
    defer { nextKey = nextKey.advanced(by: -1) }
    return nextKey
  }

  private mutating func takeBlock() {
    let taken = TemporaryIDs.takenCount.add(1, ordering: .relaxed).oldValue
    nextKey = ObjectKey(-1 - taken * TemporaryIDs.blockSize)
    keysLeft = TemporaryIDs.blockSize
  }

  /// Remembers what the key of a new object becomes, because a snapshot has it.
  mutating func follow(_ key: ObjectKey, root: EntityIndex) {
    let place = Place(root: root, key: key)
    if followed[place] == nil { followed[place] = key }
  }

  /// Notes that an object has another key, or is represented by the object with another key.
  mutating func replace(_ key: ObjectKey, by newKey: ObjectKey, root: EntityIndex) {
    if followed.isEmpty || followed[Place(root: root, key: key)] == nil { return }
    followed[Place(root: root, key: key)] = newKey
    followed[Place(root: root, key: newKey)] = newKey
  }

  /// Whether what any key becomes is remembered.
  var areFollowed: Bool { !followed.isEmpty }

  /// The present key for a key in a snapshot.
  func present(_ key: ObjectKey, root: EntityIndex) -> ObjectKey {
    var key = key
    while let next = followed[Place(root: root, key: key)], next != key { key = next }
    return key
  }

  /// The ID of a new object.
  @inline(__always) func id(_ entity: EntityIndex, _ key: ObjectKey) -> ManagedObjectID { prefixes[entity].withKey(key) }
}
