import HoldfastFiles

/// What a commit changes in the log's index, or without a log in the database's header.
enum CommitMark: Equatable {
  case log(LogIndex.Header)
  case counter(UInt32)
  /// The state of the files that SQLite reads without locks. Each process that commits changes them, but not only commits do.
  case files(database: FileIdentity, log: FileIdentity?)

  /// Whether this is the mark after exactly one commit.
  func follows(_ former: CommitMark) -> Bool {
    switch (self, former) {
    case (.log(let header), .log(let former)): header.change == former.change &+ 1
    case (.counter(let counter), .counter(let former)): counter == former &+ 1
    default: false
    }
  }

  /// Whether there was no commit since a former mark.
  ///
  /// SQLite also changes the index when it begins the log again, without a commit: the log has another random number and no page. The
  /// number of commits alone isn't enough. SQLite counts from 0 again when it creates the index again, because a process ended while it
  /// changed it.
  func isSameCommit(as former: CommitMark) -> Bool {
    switch (self, former) {
    case (.log(let header), .log(let former)): header == former || header.change == former.change && header.beginsLogAgain(after: former)
    default: self == former
    }
  }
}
