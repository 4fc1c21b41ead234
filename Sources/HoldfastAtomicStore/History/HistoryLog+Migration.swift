import HoldfastStore

extension HistoryLog {
  /// Adapts a history to another version of the model, so that tokens stay valid.
  ///
  /// Changes of removed entities are deleted, and so are the names of changed properties and the preserved values of entities whose properties
  /// differ. If entities are renamed, values are deleted, because they contain object IDs with the names of entities. A transaction that can't
  /// be decoded stays as it is.
  func migrated(_ mapping: MappingModel) -> HistoryLog {
    let former = HistoryPlan(mapping.source), plan = HistoryPlan(mapping.destination)
    return mapped { text in
      guard var transaction = try? KeptTransaction(text) else { return Array(text) }
      transaction.changes = transaction.changes.compactMap { changes in
        guard let source = mapping.source.entity(named: changes.entity), let index = mapping.destination(of: source.index) else {
          return nil
        }
        let destination = mapping.destination.entities[index]
        let (before, after) = (former.entities[source.index.rawValue], plan.entities[index.rawValue])
        var changes = changes
        changes.entity = destination.name
        if before.properties != after.properties { changes.properties = nil }
        if before.preservedNames(source) != after.preservedNames(destination) { changes.removeTombstones() }
        if mapping.renamesEntities { changes.removeValues() }
        return changes
      }
      return (try? transaction.text()) ?? Array(text)
    }
  }
}

extension KeptTransaction.Changes {
  fileprivate mutating func removeTombstones() {
    for place in (values ?? []).indices { values?[place].tombstone = nil }
  }

  fileprivate mutating func removeValues() {
    values = values?.map { KeptTransaction.Values(tombstone: $0.tombstone) }
  }
}
