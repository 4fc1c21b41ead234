import HoldfastStore

/// What a commit changes in the log's index, or without a log in the database's header.
enum CommitMark: Equatable {
  case log(LogIndex.Header)
  case counter(UInt32)

  /// Whether this is the mark after exactly one commit.
  func follows(_ former: CommitMark) -> Bool {
    switch (self, former) {
    case (.log(let header), .log(let former)): header.change == former.change &+ 1
    case (.counter(let counter), .counter(let former)): counter == former &+ 1
    default: false
    }
  }
}

extension OpenStore {
  /// Whether another process may have committed since the last call.
  func haveOthersSaved() -> Bool {
    guard let files = database.files else { return true }
    // If all connections are in use, a further one is opened, or a request waits for one.
    return database.readers.withIdle { files.haveOthersCommitted($0) }
      ?? (try? database.readers.withConnection(to: "notice saves of other processes") { files.haveOthersCommitted($0) }) ?? true
  }
}
