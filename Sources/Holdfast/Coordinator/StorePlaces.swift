import HoldfastStore
import Synchronization

/// Translates between keys and object IDs, for every store that a coordinator ever had.
///
/// An append-only list, read without a lock, because each object reads it.
final class StorePlaces: @unchecked Sendable {  // because an entry is written once, before the count that shows it
  struct Place {
    let storeNumber: UInt32
    /// The ID prefix of each entity's objects, by entity index.
    let prefixes: [ManagedObjectID]
    /// Whether the store keeps all rows in memory, with the coordinator's keys.
    let hasResidentRows: Bool

    /// The index of the entity with a number in the store's IDs; nil if the model doesn't have it.
    fileprivate func entityIndex(_ number: UInt16) -> Int? {
      // Usually the numbers of a model's entities are consecutive. They aren't if another model has been opened with the store before.
      let likely = Int(number) - Int(prefixes.first?.entityNumber ?? 0)
      if likely >= 0, likely < prefixes.count, prefixes[likely].entityNumber == number { return likely }
      return prefixes.firstIndex { $0.entityNumber == number }
    }
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

  /// The number of places in use.
  @inline(__always) var count: Int { size.load(ordering: .acquiring) }

  /// Adds a place. Only the coordinator calls it, under its lock.
  func append(_ place: Place) {
    let count = count
    (entries + count).initialize(to: place)
    size.store(count + 1, ordering: .releasing)
  }

  /// The place of a key; 0 for every key while there is only one place.
  @inline(__always) private func place(_ key: ObjectKey, _ count: Int) -> Int {
    if count <= 1 { return 0 }
    let place = StackKey.place(key)
    return place >= 0 && place < count ? place : 0
  }

  /// The ID of a saved object.
  func objectID(_ entity: EntityIndex, _ key: ObjectKey) -> ManagedObjectID {
    let count = count
    precondition(count > 0, "The ID of a saved object was requested before the coordinator had a store.")
    return entries[place(key, count)].prefixes[entity].withKey(count == 1 ? key : StackKey.inStore(key))
  }

  /// Whether the store keeps the row of a key in memory.
  @inline(__always) func hasResidentRow(_ key: ObjectKey) -> Bool {
    let count = count
    return count > 0 && entries[place(key, count)].hasResidentRows
  }

  /// The latest place of the store with a number; nil for a store that the coordinator never had.
  func place(ofStore number: UInt32) -> Int? {
    var place = count - 1
    while place >= 0 {
      if entries[place].storeNumber == number { return place }
      place -= 1
    }
    return nil
  }

  /// The coordinator's key of the object with a permanent ID; nil for an unknown store or a key that is out of range.
  func key(of id: ManagedObjectID) -> ObjectKey? {
    guard let place = place(ofStore: id.storeNumber) else { return nil }
    if count == 1 { return id.key }
    return StackKey.storeKeys.contains(id.key) ? StackKey.first(at: place).advanced(by: Int(id.key.rawValue)) : nil
  }

  /// The prefix of the IDs of an entity's objects in the store with a number.
  func prefix(_ entity: EntityIndex, ofStore number: UInt32) -> ManagedObjectID? {
    place(ofStore: number).map { entries[$0].prefixes[entity] }
  }

  /// The entity of a batch's rows; nil when its layout and ID prefix match no entity.
  func entityIndex(of batch: RowBatch) -> EntityIndex? {
    guard let prefix = batch.idPrefix, let place = place(ofStore: prefix.storeNumber) else { return nil }
    guard let index = entries[place].entityIndex(prefix.entityNumber) else { return nil }
    return batch.layout == model.entities[index].layout ? EntityIndex(index) : nil
  }

  /// Whether the store keeps the rows of a batch in memory.
  func hasResidentRows(_ batch: RowBatch) -> Bool {
    guard let prefix = batch.idPrefix, let place = place(ofStore: prefix.storeNumber) else { return false }
    return entries[place].hasResidentRows
  }
}
