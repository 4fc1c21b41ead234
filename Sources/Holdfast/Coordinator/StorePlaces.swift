import HoldfastStore
import Synchronization

/// What the stack has to know of each store that a coordinator ever had, to make IDs of keys and keys of IDs: an
/// append-only list that is read without a lock, since objects ask it one by one.
final class StorePlaces: @unchecked Sendable {  // because an entry is written once, before the count that shows it
  struct Place {
    let storeNumber: UInt32
    /// What the IDs of each entity's objects begin with, by entity index.
    let prefixes: [ManagedObjectID]
    /// Whether all rows lie in memory as the stack sees them.
    let hasResidentRows: Bool
  }

  private let model: ManagedObjectModel
  private let entries: UnsafeMutablePointer<Place>
  private let size = Atomic<Int>(0)

  init(_ model: ManagedObjectModel) {
    self.model = model
    entries = .allocate(capacity: StackKey.placeCount)
  }

  deinit {
    entries.deinitialize(count: count)
    entries.deallocate()
  }

  /// How many places were given out.
  @inline(__always) var count: Int { size.load(ordering: .acquiring) }

  /// Adds a place. Only the coordinator does, under its lock.
  func append(_ place: Place) {
    let count = count
    (entries + count).initialize(to: place)
    size.store(count + 1, ordering: .releasing)
  }

  /// The place of a key; 0 as long as there is no other, whatever the key.
  @inline(__always) private func place(_ key: Int64, _ count: Int) -> Int {
    if count <= 1 { return 0 }
    let place = StackKey.place(key)
    return place >= 0 && place < count ? place : 0
  }

  /// The ID of a saved object.
  func objectID(_ entity: Int, _ key: Int64) -> ManagedObjectID {
    let count = count
    precondition(count > 0, "An ID of a saved object was made before the coordinator had a store.")
    return entries[place(key, count)].prefixes[entity].withKey(count == 1 ? key : StackKey.inStore(key))
  }

  /// Whether the row of a key lies in memory anyway.
  @inline(__always) func hasResidentRow(_ key: Int64) -> Bool {
    let count = count
    return count > 0 && entries[place(key, count)].hasResidentRows
  }

  /// The place of the store with a number, the one that was given out last; nil for a store that was never here.
  func place(ofStore number: UInt32) -> Int? {
    var place = count - 1
    while place >= 0 {
      if entries[place].storeNumber == number { return place }
      place -= 1
    }
    return nil
  }

  /// The key by which the stack knows the object of a permanent ID; nil when the ID is of another store.
  func key(of id: ManagedObjectID) -> Int64? {
    guard let place = place(ofStore: id.storeNumber) else { return nil }
    if count == 1 { return id.key }
    return StackKey.storeKeys.contains(id.key) ? StackKey.first(at: place) + id.key : nil
  }

  /// What the IDs of an entity's objects in the store of a permanent ID begin with.
  func prefix(_ entity: Int, ofStore number: UInt32) -> ManagedObjectID? { place(ofStore: number).map { entries[$0].prefixes[entity] } }

  /// The entity of a batch's rows; nil when the batch has not the layout and the ID prefix of any.
  func entityIndex(of batch: RowBatch) -> Int? {
    guard let prefix = batch.idPrefix, let place = place(ofStore: prefix.storeNumber) else { return nil }
    let prefixes = entries[place].prefixes
    for index in prefixes.indices where prefixes[index].entityNumber == prefix.entityNumber {
      return batch.layout == model.entities[index].layout ? index : nil
    }
    return nil
  }

  /// Whether the rows of a batch lie in memory anyway.
  func hasResidentRows(_ batch: RowBatch) -> Bool {
    guard let prefix = batch.idPrefix, let place = place(ofStore: prefix.storeNumber) else { return false }
    return entries[place].hasResidentRows
  }
}
