/// Which commits of a file a store knows of. It notices those of other processes by comparing marks.
struct KnownCommits {
  /// The mark of the last commit whose rows the coordinator knows of; nil if unknown.
  private var rows: CommitMark?
  /// The mark of the last commit that was reported to the program, or that is this store's own; nil if unknown.
  private var reported: CommitMark?
  /// Whether the next report says that there may have been commits, because the last mark can't be compared any more.
  private var isReportDue = false
  /// The mark of the last commit whose schema the store knows of; nil if unknown.
  var schema: CommitMark?
  /// The mark when the last writing transaction began; nil if it couldn't be read.
  var atBegin: CommitMark?
  /// Whether the writer is committing, so that the mark may be that of its commit.
  var isCommitting = false

  /// The file's commit counter when the last writing transaction began; nil if the file had a log.
  var counterAtBegin: UInt32? {
    if case .counter(let counter)? = atBegin { counter } else { nil }
  }

  /// Notes a commit of this store. Returns false if another process may have committed since the transaction began: that must still be
  /// noticed.
  mutating func noteOwn(_ mark: CommitMark) -> Bool {
    guard let atBegin, mark.follows(atBegin) else { return false }
    if rows == atBegin { rows = mark }
    // The log may have begun again before the transaction, or in it before a look.
    if let known = reported, atBegin.isSameCommit(as: known) || known.isSameCommit(as: atBegin) { reported = mark }
    if schema == atBegin { schema = mark }
    return true
  }

  /// Notes a commit that changed neither rows nor the schema.
  mutating func noteConversion(from before: CommitMark, to after: CommitMark) {
    if rows == before { rows = after }
    if reported == before { reported = after }
    if schema == before { schema = after }
  }

  /// Notes that no connection is open. The index of a new log can look like the former one.
  mutating func noteClosing() {
    (rows, schema) = (nil, nil)
    if case .log? = reported { (reported, isReportDue) = (nil, true) }
  }

  /// Whether another process may have committed since the last call.
  mutating func haveOthersCommitted(_ mark: CommitMark?) -> Bool {
    defer { rows = mark }
    return mark != rows
  }

  /// Whether another process has committed since the last call, or may have committed while no connection was open. The first call returns
  /// false.
  mutating func haveOthersCommittedSinceReport(_ mark: CommitMark) -> Bool {
    defer { (reported, isReportDue) = (mark, false) }
    return reported.map { !mark.isSameCommit(as: $0) } ?? isReportDue
  }

  /// Whether another process may have changed the schema since it was read, or since the last call. Call it in a writing transaction.
  mutating func mayHaveOtherSchema() -> Bool {
    defer { schema = atBegin }
    return schema == nil || schema != atBegin
  }
}
