import HoldfastStore

extension ManagedObject {
  /// A hash of the values and the changed links, without derived values, and without links that only the rows of other objects contain.
  final var unsavedState: Int { state(of: row, isSaved: false) }

  /// ``unsavedState`` after the latest read or save.
  final var savedState: Int { state(of: committedRow ?? row, isSaved: true) }

  private func state(of row: RowPointer?, isSaved: Bool) -> Int {
    var hasher = Hasher()
    if let row {
      let kinds = entity.layout.kinds, derived = context.graph.derivedSlots(flags.entityIndex)
      for slot in entity.layout.slots where row.isPresent(slot) && !derived.contains(slot) {
        hasher.combine(slot.rawValue)
        if kinds[slot] == .bytes { hasher.combine(bytes: row.bytes(slot)) } else { hasher.combine(row.integer(slot)) }
      }
    }
    if let toMany, !isSaved {
      for index in 0..<plan.toManyCount where containsLinks(index) {
        let state = toMany[index], isOrdered = plan.toMany[index].isOrdered
        if state.base == .new {
          if state.contents.isEmpty { continue }
          hasher.combine(index)
          if isOrdered { hasher.combine(state.keys) } else { hasher.combine(Set(state.keys)) }
        } else if state.isReordered {
          hasher.combine(index)
          hasher.combine(Set(state.removed))
          if isOrdered { hasher.combine(state.addedInOrder) } else { hasher.combine(Set(state.added)) }
          // Without moves, the order follows from that of the store, which may be read later.
          if state.isMoved { hasher.combine(state.order?.keys) }
        }
      }
    }
    return hasher.finalize()
  }
}
