import HoldfastStore

extension StoreChanges {
  /// Replaces the rows that are about to be published by those that the store saved instead.
  ///
  /// - Throws: ``/HoldfastStore/StoreError`` with code ``/HoldfastStore/StoreError/Code/damaged`` when a row isn't that of a saved object.
  ///   The save took effect nevertheless.
  func adopt(_ receipt: SaveReceipt) throws {
    others = receipt.others
    if receipt.rows.isEmpty { return }
    hasOtherRows = true
    do { try replacePublished(by: receipt.rows) } catch {
      others.mayIncludeOthers = true
      throw error
    }
  }

  private func replacePublished(by batches: [RowBatch]) throws {
    var saved: [EntityIndex: [ObjectKey: RowView]] = [:]
    for batch in batches {
      let batch = try store.withCoordinatorKeys(batch)
      guard let entity = coordinator.entityIndex(of: batch) else {
        throw store.invalidReceipt("It contains rows whose layout or ID prefix isn't that of an entity in the model.")
      }
      for index in 0..<batch.count { saved[entity, default: [:]][batch.pointer(index).key] = batch[index] }
    }
    for (place, (batch, objects)) in published.enumerated() {
      guard let entity = objects.first?.flags.entityIndex, let rows = saved[entity],
        (0..<batch.count).contains(where: { rows[batch.pointer($0).key] != nil })
      else { continue }
      let builder = RowBatchBuilder(layout: batch.layout, idPrefix: batch.idPrefix)
      for index in 0..<batch.count {
        let row = batch.pointer(index)
        if let found = saved[entity]?.removeValue(forKey: row.key) {
          let object = objects[objects.startIndex + index]
          withExtendedLifetime(found) {
            noteVersion(of: object, row, found.pointer)
            if !row.hasSameValues(as: found.pointer, object.entity.layout) { changedByStore.append(object) }
            builder.append(found.pointer)
          }
        } else {
          builder.append(row)
        }
      }
      published[place].batch = builder.seal()
    }
    guard saved.values.allSatisfy(\.isEmpty) else { throw store.invalidReceipt("It contains rows of objects that weren't saved.") }
  }

  private func noteVersion(of object: ManagedObject, _ requested: RowPointer, _ saved: RowPointer) {
    if requested.version == saved.version { return }
    let derived = context.graph.derivedSlots(object.flags.entityIndex)
    if requested.hasSameValues(as: saved, object.entity.layout, butFor: derived) {
      chosenVersions[ObjectIdentifier(object)] = saved.version
    }
  }
}

extension PersistentStore {
  /// A batch of a receipt with the coordinator's keys.
  func withCoordinatorKeys(_ batch: RowBatch) throws -> RowBatch {
    if isSole { return batch }
    guard let moved = batch.moved(by: Int(StackKey.first(at: place).rawValue), from: StackKey.storeKeys, movesRowKeys: true) else {
      throw invalidReceipt("It contains a key outside 0..<2^56, which is ambiguous among several stores.")
    }
    return moved
  }

  func invalidReceipt(_ problem: String) -> StoreError {
    StoreError(
      .damaged, operation: "read the receipt of a save", path: locationDescription,
      reason: "The save took effect, but the store's receipt is invalid (rule S15). \(problem) Refresh the objects.")
  }
}
