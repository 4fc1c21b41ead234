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

  /// Whether there was no commit between the marks. SQLite also changes the index when it begins the log again, without a commit.
  func isSameCommit(as former: CommitMark) -> Bool {
    switch (self, former) {
    case (.log(let header), .log(let former)): header.change == former.change
    default: self == former
    }
  }
}
