import HoldfastStore

/// Maps keys and versions between the two stores of a replay, because another store reserves other keys and may choose other versions.
///
/// If a recording includes the contents of its store, it contains the reservation of every object's key. Other keys belong to no object,
/// such as those of dangling references. In a recording without contents, keys that weren't reserved are the same in both stores.
final class ReplayedNames {
  private var replayedKeys: [RecordedObject: ObjectKey] = [:]
  private var recordedKeys: [RecordedObject: ObjectKey] = [:]
  /// The versions of rows whose versions differ between the stores, by recorded object.
  private var versions: [RecordedObject: [(recorded: RowVersion, replayed: RowVersion)]] = [:]
  /// The largest keys of each root entity.
  private var largest: [EntityIndex: (recorded: ObjectKey, replayed: ObjectKey)] = [:]
  /// Whether rows sorted by key have the same order in both stores.
  private(set) var keepsOrder = true

  /// Whether the recording contains the reservation of every object's key.
  var areComplete = false
  /// The number of keys in the recording that belong to no object.
  private var danglingCount: Int64 = 0

  func add(root: EntityIndex, recorded: ObjectKey, replayed: ObjectKey) {
    replayedKeys[RecordedObject(root: root, key: recorded)] = replayed
    recordedKeys[RecordedObject(root: root, key: replayed)] = recorded
    if let last = largest[root], (recorded > last.recorded) != (replayed > last.replayed) { keepsOrder = false }
    let last = largest[root] ?? (recorded, replayed)
    largest[root] = (max(last.recorded, recorded), max(last.replayed, replayed))
  }

  func replayedKey(_ key: ObjectKey, _ root: EntityIndex) -> ObjectKey {
    let object = RecordedObject(root: root, key: key)
    if let known = replayedKeys[object] { return known }
    if !areComplete { return key }
    // Far above the keys of objects, and below the maximum key in a coordinator with several stores.
    let replayed = ObjectKey(1 << 55 + danglingCount)
    danglingCount += 1
    replayedKeys[object] = replayed
    recordedKeys[RecordedObject(root: root, key: replayed)] = key
    return replayed
  }

  /// The recorded key of an object. If the object is unknown, a negative number, which no recorded object has.
  func recordedKey(_ key: ObjectKey, _ root: EntityIndex) -> ObjectKey {
    recordedKeys[RecordedObject(root: root, key: key)] ?? (areComplete ? ObjectKey(-1 - key.rawValue) : key)
  }

  // MARK: Versions

  func add(_ object: RecordedObject, recorded: RowVersion, replayed: RowVersion) {
    if recorded != replayed || versions[object] != nil { versions[object, default: []].append((recorded, replayed)) }
  }

  func replayedVersion(_ version: RowVersion, _ object: RecordedObject) -> RowVersion {
    versions[object]?.last { $0.recorded == version }?.replayed ?? version
  }

  func recordedVersion(_ version: RowVersion, _ object: RecordedObject) -> RowVersion {
    versions[object]?.last { $0.replayed == version }?.recorded ?? version
  }
}
