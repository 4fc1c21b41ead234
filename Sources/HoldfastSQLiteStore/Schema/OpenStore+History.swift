import HoldfastStore

extension OpenStore {
  /// Adds the tables of the history to a file that lacks them, and records the maximum number of changes in its metadata.
  ///
  /// - Parameter recordedMaximum: The maximum that the metadata contain; nil if they contain none.
  func createHistory(recordedMaximum: Int?) throws {
    let maximum = maximumHistoryChangeCount.map { max(1, $0) }
    let lease = try database.readers.lease(.request, to: "look for the history")
    let exist = try { () throws in
      defer { lease.end() }
      return try HistoryTables.exist(lease.connection)
    }()
    if exist {
      // If another process is writing at this moment, a later opening records it.
      if maximum != recordedMaximum { try? record(maximum) }
      return
    }
    try writing("create the tables of the history") { writer in
      try writer.begin(.immediate)
      if try !HistoryTables.exist(writer) {
        for sql in HistoryTables.creation(tombstoneCount: history.plan.tombstoneCount) { try writer.runScript(sql) }
        // The values of a history that another program has removed would become those of new changes.
        if try HistoryTables.hasValues(writer) { try writer.runScript("DELETE FROM \(HistoryTables.values)") }
      }
      // The metadata may have that of a history that another program has removed.
      try MetadataChange(store: self).record(maximumHistoryChangeCount: maximum, writer)
      try database.commit(writer)
    }
  }

  /// Records the maximum number of changes, without waiting for other processes.
  private func record(_ maximum: Int?) throws {
    try writing("record the maximum size of the history") { writer in
      try writer.withBusyTimeout(.zero) { () throws(StoreError) in try writer.begin(.immediate) }
      try MetadataChange(store: self).record(maximumHistoryChangeCount: maximum, writer)
      try database.commit(writer)
    }
  }
}
