public import HoldfastStore

/// A recording of a ``StoreRecorder``, which can be replayed with another store.
///
/// ```swift
/// let report = try StoreRecording(path: recordingPath).replay(on: .sqlite(at: copy))
/// print(report)
/// ```
///
/// A replay sends the recorded requests to the other store and compares the answers:
///
/// - The same rows, in the same order if it is defined, with the same values and versions.
/// - The same destinations, counts, groups, external data, and conflicts.
/// - The same error codes.
///
/// The other store reserves other keys. The replay translates the keys in requests and answers. It sends the requests one after the other,
/// each at the point at which the recorded request ended. It opens and closes the store, and uses the same read views. The framework
/// divides each fetch by the other store's own capabilities, as it does for a context. This work is included in the cost.
///
/// Limits:
///
/// - The other store must be empty. If the recording doesn't begin with the contents of the recorded store
///   (``StoreRecorder/init(path:answers:includesContents:)``), it must be a copy of that store as it was then.
/// - A recording contains the requests that the framework sent to the recorded store. Record the store with the most capabilities, such as
///   SQLite: a store with few capabilities receives fetches of all rows only.
/// - The answer to a request that ran beside a commit depends on which was first. Such a difference is counted as uncertain. Differences of
///   sorted rows are also uncertain if the keys have another order in the other store.
/// - Requests that failed because of their environment, such as a full disk, aren't sent. Neither are commits that didn't take effect.
///   After a commit with an unknown outcome, differences can follow.
/// - If the recorded store has external files, values that may be in a file are compared only if the recorded program read the file.
/// - Rows that a store delivers together with destinations aren't recorded or compared. SQLite delivers such rows, and a context then
///   doesn't request them by key.
/// - If the other store finds a request for destinations too large, that is a difference, although the framework would divide the request.
/// - The report contains only the durations of the stores. It doesn't include the time of the sinks, which process the rows.
public struct StoreRecording: Sendable, Hashable {
  /// The path of the file.
  public var path: String

  /// Creates a recording. The file is read by ``replay(on:differences:showsValues:)``.
  public init(path: String) { self.path = path }

  /// Sends the recorded requests to another store, and compares its answers with the recorded ones.
  ///
  /// - Parameters:
  ///   - description: The other store. The replay opens it with the recorded model, and saves in it.
  ///   - limit: The maximum number of ``ReplayReport/differences``. Defaults to 20.
  ///   - showsValues: Whether the differences contain values, which are user data. Defaults to false.
  /// - Throws: ``ReplayError`` if a line of the recording is damaged or incomplete, or the other store can't be opened. The error contains
  ///   the report on the lines before it. ``/HoldfastStore/StoreError`` if the file can't be opened. Errors of other requests are
  ///   differences.
  public func replay(on description: StoreDescription, differences limit: Int = 20, showsValues: Bool = false) throws -> ReplayReport {
    let reader = try RecordingReader(path: path)
    let replay = Replay(description, limit: limit, showsValues: showsValues)
    do {
      while let line = try reader.next() { try replay.perform(line, reader) }
      try replay.finish()
    } catch let error as StoreError {
      try? replay.finish()
      throw ReplayError(line: reader.number, cause: error, report: replay.report)
    }
    return replay.report
  }
}

/// Why a replay ended before the end of the recording.
public struct ReplayError: Error, Sendable, CustomStringConvertible {
  /// The number of the line at which the replay ended, from 1.
  public let line: Int
  /// What is wrong with the line, or why the store couldn't be opened.
  public let cause: StoreError
  /// The report on the lines before that line.
  public let report: ReplayReport

  /// The cause in one line.
  public var description: String { cause.description }
}
