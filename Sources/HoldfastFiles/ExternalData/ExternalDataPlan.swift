import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Determines which values of a save are stored in files, and which files it gives up. Writes nothing.
struct ExternalDataPlan {
  /// The save, with file names instead of large values.
  private(set) var request: SaveRequest
  private(set) var files: [File] = []
  private(set) var givenUp: [UUID] = []
  /// Every name that the save writes or gives up, with its place.
  private(set) var entries: [ExternalDataNote.Entry] = []
  private let model: ManagedObjectModel
  private let options: ExternalDataOptions

  /// A value to store in a file, and the row that contains its bytes.
  struct File {
    var id: UUID
    var batch: RowBatch
    var row: Int
    var slot: SlotIndex
  }

  init(_ request: SaveRequest, model: ManagedObjectModel, options: ExternalDataOptions) {
    self.request = request
    self.model = model
    self.options = options
  }

  mutating func run(_ storedIDs: (EntityIndex, ObjectKey, [SlotIndex]) throws -> [UUID?]) throws {
    for index in request.entities.indices where model.entityIndexes.contains(request.entities[index].entity) {
      let entity = model.entities[request.entities[index].entity]
      let slots = entity.externalSlots
      if slots.isEmpty { continue }
      for place in request.entities[index].inserted.indices {
        let batch = request.entities[index].inserted[place]
        request.entities[index].inserted[place] = try replacing(batch, entity, slots, isChanged: { _, _ in true }) { row in
          slots.map { _ in nil }
        }
      }
      for place in request.entities[index].updated.indices {
        let updated = request.entities[index].updated[place]
        request.entities[index].updated[place].rows = try replacing(updated.rows, entity, slots, isChanged: updated.isChanged) { row in
          try storedIDs(entity.index, updated.rows.pointer(row).key, slots)
        }
      }
      let derivedSlots = entity.derivedAttributes.filter(\.allowsExternalBinaryDataStorage).map(\.slot)
      for place in request.entities[index].derived.indices where !derivedSlots.isEmpty {
        let derived = request.entities[index].derived[place]
        request.entities[index].derived[place].rows = try replacing(derived.rows, entity, derivedSlots, isChanged: derived.isSet) { row in
          try storedIDs(entity.index, derived.rows.pointer(row).key, derivedSlots)
        }
      }
      for key in request.entities[index].deleted.keys {
        for (slot, id) in zip(slots, try storedIDs(entity.index, key, slots)) { giveUp(id, entity, slot, key) }
      }
    }
  }

  func withBytes(of file: File, _ body: (RawSpan) throws(FileSystemError) -> Void) throws(FileSystemError) {
    try body(file.batch.pointer(file.row).bytes(file.slot).bytes)
    // Keep the batch alive while the pointer is in use.
    withExtendedLifetime(file.batch) {}
  }

  // MARK: Rows

  /// What to do with the value in a slot.
  private enum Replacement {
    case keep
    case name(UUID)
  }

  /// Returns a batch in which large values and unchanged external values are replaced with file names.
  private mutating func replacing(
    _ batch: RowBatch, _ entity: ManagedObjectModel.Entity, _ slots: [SlotIndex], isChanged: (Int, SlotIndex) -> Bool,
    stored: (Int) throws -> [UUID?]
  ) throws -> RowBatch {
    var found: [Int: [Replacement]] = [:]
    for index in 0..<batch.count {
      let ids = try stored(index)
      var replacements: [Replacement] = []
      for (place, slot) in slots.enumerated() {
        replacements.append(try replacement(batch, index, slot, stored: ids[place], isChanged: isChanged(index, slot), entity))
      }
      if replacements.contains(where: { if case .name = $0 { true } else { false } }) { found[index] = replacements }
    }
    return found.isEmpty ? batch : copy(batch, slots, found)
  }

  private mutating func replacement(
    _ batch: RowBatch, _ index: Int, _ slot: SlotIndex, stored: UUID?, isChanged: Bool, _ entity: ManagedObjectModel.Entity
  ) throws -> Replacement {
    let row = batch.pointer(index)
    if !isChanged { return stored.map { .name($0) } ?? .keep }
    if let id = row.externalID(slot) {
      // Reverted to the stored value.
      if id == stored { return .keep }
      throw StoreError(
        .unstorableValue, operation: "save rows of \(entity.name)",
        reason:
          "\(entity.name).\(entity.slots[slot].name) of the object with key \(row.key) names another value's file. Set the bytes.")
    }
    giveUp(stored, entity, slot, row.key)
    let bytes = row.bytes(slot)
    guard row.isPresent(slot), bytes.count > options.threshold else { return .keep }
    guard Int64(bytes.count) <= options.maximumByteCount else {
      throw StoreError(
        .unstorableValue, operation: "save rows of \(entity.name)",
        reason: "\(entity.name).\(entity.slots[slot].name) of the object with key \(row.key) has \(bytes.count) bytes; "
          + "the limit is \(options.maximumByteCount). Allow more with ExternalDataOptions.maximumByteCount, or set a smaller value.")
    }
    let id = ExternalDataName.make(for: bytes)
    files.append(File(id: id, batch: batch, row: index, slot: slot))
    entries.append(ExternalDataNote.Entry(id: id, place: place(entity, slot, row.key)))
    return .name(id)
  }

  private mutating func giveUp(_ id: UUID?, _ entity: ManagedObjectModel.Entity, _ slot: SlotIndex, _ key: ObjectKey) {
    guard let id else { return }
    givenUp.append(id)
    entries.append(ExternalDataNote.Entry(id: id, place: place(entity, slot, key)))
  }

  private func place(_ entity: ManagedObjectModel.Entity, _ slot: SlotIndex, _ key: ObjectKey) -> ExternalDataPlace {
    ExternalDataPlace(entity: entity.name, attribute: entity.slots[slot].name, key: key)
  }

  private func copy(_ batch: RowBatch, _ slots: [SlotIndex], _ found: [Int: [Replacement]]) -> RowBatch {
    let builder = RowBatchBuilder(layout: batch.layout, idPrefix: batch.idPrefix)
    let kinds = batch.layout.kinds
    for index in 0..<batch.count {
      let row = batch.pointer(index)
      guard let replacements = found[index] else {
        builder.append(row)
        continue
      }
      builder.beginRow(key: row.key, version: row.version)
      for slot in batch.layout.slots {
        if let place = slots.firstIndex(of: slot), case .name(let id) = replacements[place] {
          builder.append(external: id)
        } else if !row.isPresent(slot) {
          builder.appendNull()
        } else if kinds[slot] == .bytes {
          builder.append(bytesOf: row, slot)
        } else {
          builder.append(cellOf: row, slot)
        }
      }
      builder.endRow()
    }
    return builder.seal()
  }
}
