import HoldfastStore
import Synchronization

/// What a context does when a commit ends without a known outcome, and when the outcome is known; see ``UncertainSave``.
extension SaveOperation {
  /// Keeps the changes that were sent to a store.
  func keepUncertain(_ part: StoreChanges) {
    // Rows that were read ahead may be outdated.
    coordinator.saveCount.add(1, ordering: .releasing)
    let changes = part.savedChanges
    part.clearDiscardedTargets()
    // Relationships don't reference objects of other stores.
    usePermanentKeys(of: part, in: part.inserted + part.updated, savedKey)
    context.saving.keep(UncertainSave(part, SaveOutcomeRequest(id: origin.id), changes))
  }

  /// Gives the new objects of a store their permanent keys, everywhere in the context. They stay new.
  ///
  /// - Parameters:
  ///   - referrers: The objects that may have relationships to them.
  ///   - translation: The new key of a relationship's destination; nil for one that isn't saved.
  func usePermanentKeys(
    of part: StoreChanges, in referrers: ContiguousArray<ManagedObject>, _ translation: (ObjectKey) -> ObjectKey?
  ) {
    if part.inserted.isEmpty { return }
    func keyFromNowOn(_ temporary: ObjectKey) -> ObjectKey? {
      let key = permanent(temporary)
      return key >= 0 && stores.store(ofKey: key) === part.store ? key : nil
    }
    replaceTemporaryIDs(in: context.changes.objects, keyFromNowOn)
    if context.graph.hasTransientLinks {
      for object in context.changes.objects { object.translateTransientLinks { keyFromNowOn($0) ?? $0 } }
    }
    for object in referrers { translateKeys(in: object, translation) }
    for object in part.inserted {
      context.rekey(object, to: permanent(object.objectKey))
      if let row = object.row { PrivateRow(existing: row).setKey(object.objectKey) }
    }
  }

  private func translateKeys(in object: ManagedObject, _ translation: (ObjectKey) -> ObjectKey?) {
    if object.flags.contains(.hasPrivateRow), let row = object.row {
      for slot in StoreChanges.targetSlots(object.entity.layout) where row.isPresent(slot) && row.integer(slot) < 0 {
        let key = permanent(row.key(slot))
        if key >= 0 { PrivateRow(existing: row).set(slot, cell: UInt64(bitPattern: key.rawValue)) }
      }
    }
    guard let states = object.toMany else { return }
    for index in 0..<object.plan.toManyCount { states[index].translate(translation) }
  }

  // MARK: Completing

  /// Completes a save that took effect. Changes since it was sent remain changes.
  func complete(_ uncertain: UncertainSave, _ receipt: SaveReceipt) {
    let part = uncertain.part
    completed = uncertain
    (parts, inserted, updated, deleted) = ([part], part.inserted, part.updated, part.deleted)
    part.isCommitted = true
    // The context forgets discarded objects, which are still in lists that hide them.
    let new = context.changes.objects.filter { $0.isInserted && $0.objectKey < 0 }
    discardsNew = new.contains { $0.isDeleted }
    newSince = Set(new.lazy.filter { !$0.isDeleted }.map(\.objectKey))
    do { try part.adopt(receipt) } catch { noteUnconfirmed(error, part.store) }
    // Other contexts may have read rows since, before the save took effect, or changed them again.
    coordinator.rowCache.removeAll()
    coordinator.saveCount.add(1, ordering: .releasing)
    context.leaveGeneration()
    context.awakening.hold()
    let known = context.children?.knownChanges(among: part.inserted + part.updated) ?? []
    noteSaveForChildren()
    for object in part.inserted + part.updated { settleLinks(object, uncertain.links[ObjectIdentifier(object)]) }
    let rows = rowsChangedSince(uncertain)
    noteChangedSince(uncertain, rows)
    publishRows()
    for (object, row) in rows {
      object.row = row.pointer
      object.flags.insert(.hasPrivateRow)
    }
    for object in part.inserted where uncertain.changedSince.contains(ObjectIdentifier(object)) {
      object.flags.remove(.inserted)
      if !object.isDeleted { object.flags.insert(.updated) }
    }
    settle()
    context.children?.noteRemaining(of: known)
    announce(uncertain)
    callDidSave()
  }

  /// Accepts the changes of relationships that were sent as saved.
  ///
  /// If only the group knows the targets, they are copied to the object first, because the group's answer is now outdated.
  private func settleLinks(_ object: ManagedObject, _ sent: [ToManyState.Sent]?) {
    guard let states = object.toMany else { return }
    for index in 0..<object.plan.toManyCount {
      if states[index].base == .unfired, object.group?.answer(index) != nil { _ = object.targets(index) }
      states[index].settle(sent?[index] ?? ToManyState.Sent())
    }
  }

  /// The saved rows with the values that were set since, for objects that have such values.
  private func rowsChangedSince(_ uncertain: UncertainSave) -> [(ManagedObject, PrivateRow)] {
    var found: [(ManagedObject, PrivateRow)] = []
    for ((batch, objects), sent) in zip(uncertain.part.published, uncertain.rows) {
      for (index, object) in objects.enumerated() where !object.isDeleted {
        let slots = object.slotsChanged(since: sent.pointer(index))
        guard !slots.isEmpty, let own = object.row else { continue }
        let layout = object.entity.layout, saved = batch.pointer(index)
        var row = PrivateRow(copying: saved, layout, room: 64, committed: saved, in: context.pool)
        for slot in slots { row.copy(slot, of: own, layout, in: context.pool) }
        found.append((object, row))
      }
    }
    return found
  }

  /// Finds the objects with changes that weren't sent.
  private func noteChangedSince(_ uncertain: UncertainSave, _ rows: [(ManagedObject, PrivateRow)]) {
    let part = uncertain.part
    let published = Set(part.published.lazy.flatMap(\.objects).map { ObjectIdentifier($0) })
    var settled = Set((part.inserted + part.updated + part.deleted).lazy.map { ObjectIdentifier($0) })
    settled.subtract(rows.lazy.map { ObjectIdentifier($0.0) })
    settled.subtract(context.changes.refusedValues.lazy.map(\.object))
    for object in part.inserted + part.updated {
      let isPublished = published.contains(ObjectIdentifier(object))
      let hasUnsentValues = isPublished ? false : object.committedRow.map { !object.slotsChanged(since: $0).isEmpty } ?? false
      if object.isDeleted || hasUnsentValues || object.hasChangedLinks { settled.remove(ObjectIdentifier(object)) }
    }
    uncertain.changedSince = Set(context.changes.objects.lazy.map { ObjectIdentifier($0) }).subtracting(settled)
  }

  private func announce(_ uncertain: UncertainSave) {
    let others = uncertain.part.others
    var changes = uncertain.changes
    changes.inserted += others.inserted
    changes.updated += others.updated
    changes.deleted += others.deleted
    changes.mayIncludeOthers = changes.mayIncludeOthers || others.mayIncludeOthers
    if !others.isEmpty { changes.announcer.value = nil }
    committedChanges.append(changes)
    mergeLater(others, of: uncertain.part.store)
    coordinator.saveListeners.announce(changes, except: context.merging.inbox)
  }
}

extension ManagedObject {
  /// Whether changes of to-many relationships are recorded.
  fileprivate final var hasChangedLinks: Bool {
    guard let toMany else { return false }
    return (0..<plan.toManyCount).contains { toMany[$0].isReordered }
  }
}
