import HoldfastStore

/// The keys and versions of a replay, because another store reserves other keys and may choose other versions.
///
/// The keys in a recording with the contents of its store were all reserved. Others belong to no object, such as those in dangling references.
/// In a recording without contents, keys that weren't reserved are the same in both stores.
final class ReplayedNames {
  private var replayedKeys: [RecordedObject: ObjectKey] = [:]
  private var recordedKeys: [RecordedObject: ObjectKey] = [:]
  /// The versions of rows whose versions differ, by recorded object.
  private var versions: [RecordedObject: [(recorded: RowVersion, replayed: RowVersion)]] = [:]
  /// The largest keys of each root entity.
  private var largest: [EntityIndex: (recorded: ObjectKey, replayed: ObjectKey)] = [:]
  /// Whether the keys of both stores have the same order, and thus rows that are sorted by key.
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
    // Far above the keys of objects, and below the maximum of a coordinator with several stores.
    let replayed = ObjectKey(1 << 55 + danglingCount)
    danglingCount += 1
    replayedKeys[object] = replayed
    recordedKeys[RecordedObject(root: root, key: replayed)] = key
    return replayed
  }

  /// The recorded key of an object; a negative number, which no recorded object has, if it's unknown.
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
