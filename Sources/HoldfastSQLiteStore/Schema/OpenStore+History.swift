import HoldfastStore

extension OpenStore {
  /// Adds the tables of the history to a file that lacks them.
  func createHistory() throws {
    let lease = try database.readers.lease(.request, to: "look for the history")
    let exist = try { () throws in
      defer { lease.end() }
      return try HistoryTables.exist(lease.connection)
    }()
    if exist { return }
    try writing("create the tables of the history") { writer in
      try writer.begin(.immediate)
      if try !HistoryTables.exist(writer) {
        for sql in HistoryTables.creation(tombstoneCount: history.plan.tombstoneCount) { try writer.runScript(sql) }
      }
      try writer.commit()
    }
  }
}
