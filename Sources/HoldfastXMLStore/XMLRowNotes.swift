import HoldfastAtomicStore
import HoldfastStore

/// Object versions other than 1 and order keys other than the default ones, which Core Data's layout doesn't support.
///
/// Numbers have 7 bits per byte, low bits first, with the highest bit set in all bytes except the last. Signed numbers have their
/// sign in the lowest bit. Keys and order keys are stored as signed differences from the previous one. On disk: do not change.
///
/// 1. The number of objects with a version other than 1. For each one, its key and its version.
/// 2. The number of ordered relationships with order keys other than the default ones. For each one, its index among the model's ordered
///   relationships, and the number of objects with such order keys. For each of these objects, its key, the number of destinations,
///   and their order keys in order.
struct XMLRowNotes {
  /// Objects with consecutive keys and the same version, other than 1.
  private struct Run {
    var first: ObjectKey
    var last: ObjectKey
    var version: RowVersion
  }

  /// The versions, ascending by key. A plan changes most objects once, so a list of objects would take far more memory.
  private var versions: [Run] = []
  /// The order keys, by the relationship's index and the object's key.
  private var orders: [Int: [ObjectKey: [Int64]]] = [:]
  /// The index of the run in which the next object probably is.
  private var next = 0

  init() {}

  // MARK: Reading

  /// Nil if the bytes aren't valid notes.
  init?(_ bytes: [UInt8]) {
    var reader = NumberReader(bytes)
    guard let count = reader.count() else { return nil }
    var key: ObjectKey = 0
    for _ in 0..<count {
      guard let step = reader.signed(), let version = reader.unsigned(), version >= 1, version <= UInt64(Int64.max) else { return nil }
      key = ObjectKey(key.rawValue &+ step)
      add(key, RowVersion(Int64(version)))
    }
    guard let relationships = reader.count() else { return nil }
    for _ in 0..<relationships where !readOrders(&reader) { return nil }
    if !reader.isAtEnd { return nil }
    versions.sort { $0.first < $1.first }
    for place in versions.indices.dropFirst() where versions[place - 1].last >= versions[place].first { return nil }
  }

  private mutating func add(_ key: ObjectKey, _ version: RowVersion) {
    if let run = versions.last, run.version == version, run.last < key, run.last.rawValue + 1 == key.rawValue {
      versions[versions.count - 1].last = key
    } else {
      versions.append(Run(first: key, last: key, version: version))
    }
  }

  private mutating func readOrders(_ reader: inout NumberReader) -> Bool {
    // An index isn't a number of items, so the notes may have fewer bytes.
    guard let place = reader.unsigned().flatMap({ Int(exactly: $0) }), let sources = reader.count(), orders[place] == nil else {
      return false
    }
    orders[place] = [:]
    var source: ObjectKey = 0
    for _ in 0..<sources {
      guard let step = reader.signed(), let count = reader.count() else { return false }
      source = ObjectKey(source.rawValue &+ step)
      var (keys, key): ([Int64], Int64) = ([], 0)
      keys.reserveCapacity(count)
      for _ in 0..<count {
        guard let step = reader.signed() else { return false }
        key &+= step
        keys.append(key)
      }
      if orders[place]?.updateValue(keys, forKey: source) != nil { return false }
    }
    return true
  }

  /// The version of an object. Fast if objects are queried by ascending key.
  mutating func version(of key: ObjectKey) -> RowVersion {
    if versions.isEmpty { return 1 }
    if next >= versions.count || versions[next].last < key || (next > 0 && versions[next - 1].last >= key) { next = place(of: key) }
    guard next < versions.count, versions[next].first <= key else { return 1 }
    defer { if versions[next].last == key { next += 1 } }
    return versions[next].version
  }

  /// The index of the first run that ends at `key` or behind it.
  private func place(of key: ObjectKey) -> Int {
    var (low, high) = (0, versions.count)
    while low < high {
      let middle = (low + high) / 2
      if versions[middle].last < key { low = middle + 1 } else { high = middle }
    }
    return low
  }

  /// Whether at least one object has order keys other than the default ones.
  var hasOrderKeys: Bool { !orders.isEmpty }

  /// The order keys of an object's destinations, or nil if they are the default ones. `place` is the relationship's index.
  func orderKeys(_ place: Int, of source: ObjectKey) -> [Int64]? { orders[place]?[source] }

  // MARK: Writing

  /// The notes of a store; empty if there is nothing to note.
  static func bytes(of image: StoreImage) -> [UInt8] {
    var versions = NumberWriter(), count = 0, last: Int64 = 0
    for entity in image.model.entities where !entity.isAbstract {
      image.generation.forEachRow(of: entity.index) { row in
        if row.version == 1 { return }
        versions.put(signed: row.key.rawValue &- last)
        versions.put(UInt64(row.version.rawValue))
        last = row.key.rawValue
        count += 1
      }
    }
    let orders = image.model.orderedRelationships.enumerated().compactMap { place, relationship in
      bytes(of: image, place, relationship)
    }
    if count == 0 && orders.isEmpty { return [] }
    var start = NumberWriter()
    start.put(UInt64(count))
    // In place, because there may be a million of them.
    versions.bytes.insert(contentsOf: start.bytes, at: 0)
    versions.put(UInt64(orders.count))
    for order in orders { versions.bytes += order }
    return versions.bytes
  }

  private static func bytes(of image: StoreImage, _ place: Int, _ relationship: ManagedObjectModel.Relationship) -> [UInt8]? {
    let links = WrittenLinks(image.generation, relationship)
    var lists = NumberWriter(), count = 0, last: Int64 = 0
    for entity in image.model.entities[relationship.entityIndex].familyIndexes where !image.model.entities[entity].isAbstract {
      image.generation.forEachRow(of: entity) { row in
        let targets = links.ordered(of: row.key)
        if targets.indices.allSatisfy({ targets[$0].order == UsualOrder.key($0) }) { return }
        lists.put(signed: row.key.rawValue &- last)
        lists.put(UInt64(targets.count))
        var before: Int64 = 0
        for target in targets {
          lists.put(signed: target.order &- before)
          before = target.order
        }
        last = row.key.rawValue
        count += 1
      }
    }
    if count == 0 { return nil }
    var all = NumberWriter()
    all.put(UInt64(place))
    all.put(UInt64(count))
    return all.bytes + lists.bytes
  }
}

/// Writes variable-length integers, 7 bits per byte.
private struct NumberWriter {
  var bytes: [UInt8] = []

  mutating func put(_ value: UInt64) {
    var rest = value
    while rest >= 0x80 {
      bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    bytes.append(UInt8(truncatingIfNeeded: rest))
  }

  mutating func put(signed value: Int64) { put(UInt64(bitPattern: value << 1 ^ value >> 63)) }
}

/// Reads variable-length integers, 7 bits per byte. The methods return nil if the next bytes aren't such an integer.
private struct NumberReader {
  private let bytes: [UInt8]
  private var place = 0

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  var isAtEnd: Bool { place == bytes.count }

  mutating func unsigned() -> UInt64? {
    var (value, shift): (UInt64, UInt64) = (0, 0)
    while place < bytes.count, shift < 64 {
      let byte = bytes[place]
      place += 1
      value |= UInt64(byte & 0x7F) << shift
      if byte < 0x80 { return shift == 63 && byte > 1 ? nil : value }
      shift += 7
    }
    return nil
  }

  mutating func signed() -> Int64? { unsigned().map { Int64(bitPattern: $0 >> 1) ^ -Int64($0 & 1) } }

  /// A number of items that follow. Each takes at least one byte, so the number can't exceed the number of bytes.
  mutating func count() -> Int? { unsigned().flatMap { $0 <= UInt64(bytes.count) ? Int($0) : nil } }
}
