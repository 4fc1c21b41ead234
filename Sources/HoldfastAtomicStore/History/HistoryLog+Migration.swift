import HoldfastStore

extension HistoryLog {
  /// Adapts a history to another version of the model, so that tokens stay valid.
  ///
  /// Changes of removed entities are deleted, and so are the names of changed properties and the preserved values of entities whose properties
  /// differ. If entities are renamed, values are deleted, because they contain object IDs with the names of entities. So are those of an
  /// entity whose properties exchange their names. Preserved object IDs are deleted if entities are renamed or removed. A transaction that
  /// can't be decoded stays as it is.
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
        let target = mapping.mapping(of: index), exchangesNames = mapping.exchangesNames(target)
        var changes = changes
        changes.entity = destination.name
        if before.properties != after.properties || exchangesNames { changes.properties = nil }
        if !mapping.keepsTombstones(target, former, plan) { changes.removeTombstones() }
        if mapping.renamesEntities || exchangesNames { changes.removeValues() }
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
