import HoldfastFiles
public import HoldfastStore
import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#else
  import Darwin
#endif

/// Writes the requests of stores to a file. ``StoreRecording`` replays this recording.
///
/// ```swift
/// let recorder = try StoreRecorder(path: recordingPath)
/// let recorded = description.recorded(by: recorder)
/// ```
///
/// The file has a line of JSON when a request begins, and another one when it ends. Each line is written at once, so a recording contains
/// everything until a crash, even the request that crashed. The file isn't synchronized: it survives the process, not a power failure.
///
/// > Important: A recording contains user data, because a replay needs it: the values of all saves, the constants of all predicates, and
/// > the user metadata. Protect it like the store. Only its owner can read the file. ``/HoldfastStore/TracingStore`` reports
/// > requests without user data.
///
/// A recording contains the model, the objects that the store has at the beginning, the requests, and how they ended: rows, destinations,
/// keys, counts, error codes and durations. It doesn't contain:
///
/// - Objects that a store had before, except those of the first store; see ``init(path:answers:includesContents:)``.
/// - Reports of changes by other processes (``/HoldfastStore/StoreHost``), and the deadlines and labels of requests.
/// - The contents of optional requests other than ``/HoldfastStore/ExternalDataRequest``. A replay skips such requests, and its report
///   counts them by name.
///
/// Several threads can use the stores. If the file can't be written, recording ends, and the stores continue to work; see ``failure``. A
/// forked process writes nothing to the recording of its parent.
public final class StoreRecorder: Sendable {
  /// What a recording contains of the rows and destinations in answers.
  @nonexhaustive public enum Answers: Sendable, Hashable, Codable {
    /// All values. A replay then reports which object and property differs. While a request runs, all rows of its answer are in memory.
    case values
    /// Digests. The recording is much smaller, and a replay only reports which request has another answer.
    ///
    /// A digest isn't encrypted: it confirms a guess of the values. Counts and aggregates are recorded as values.
    case digests
  }

  /// What the recording contains of the rows and destinations in answers.
  public let answers: Answers
  /// Whether the recording begins with the objects of the first store.
  public let includesContents: Bool
  private let path: String
  private let file: StoreFileHandle
  private let fileSystem = POSIXFileSystem()
  /// The process that records. A forked child shares the file with it, and has a copy of the position.
  private let processID = getpid()
  /// Guards the position in the file, because several threads call stores.
  private let state: Mutex<State>

  private struct State {
    var byteCount: Int64 = 0
    var lineCount = 0
    var storeCount = 0
    /// Whether all objects of the next store that is opened are recorded.
    var recordsContents: Bool
    var failure: StoreError?
  }

  /// Creates a recording.
  ///
  /// - Parameters:
  ///   - path: The path of the file, which must not exist.
  ///   - answers: What the recording contains of rows and destinations. Defaults to ``Answers/values``.
  ///   - includesContents: Whether the recording begins with the objects that the first store has when it is opened. Opening it then reads
  ///     all objects, which must fit in memory. Defaults to true.
  /// - Throws: ``/HoldfastStore/StoreError`` if the file exists or can't be created.
  public init(path: String, answers: Answers = .values, includesContents: Bool = true) throws {
    self.path = path
    self.answers = answers
    self.includesContents = includesContents
    state = Mutex(State(recordsContents: includesContents))
    do {
      let files = fileSystem, place = try files.resolve(path), folder = try files.openDirectory(place.folder)
      defer { try? files.close(folder) }
      file = try files.create(place.name, in: folder)
    } catch {
      throw StoreError(error, operation: "create the recording", path: path)
    }
  }

  deinit { try? fileSystem.close(file) }

  /// Why recording ended; nil while it continues.
  public var failure: StoreError? { inherited ?? state.withLock { $0.failure } }

  /// The error in a forked child; nil in the process that records. Doesn't use the lock, which a thread of the parent may have held.
  private var inherited: StoreError? {
    if processID == getpid() { return nil }
    return StoreError(
      .failed, operation: "record a request", path: path,
      reason: "The process was forked after the recording began. Create a recorder after the fork.")
  }

  /// The number of lines written.
  public var lineCount: Int { state.withLock { $0.lineCount } }

  /// Whether the store that was just opened has to record its objects. Returns true only once.
  func beginsContents() -> Bool {
    state.withLock { state in
      defer { state.recordsContents = false }
      return state.recordsContents
    }
  }

  /// Ends the recording because of an error.
  func end(_ error: any Error) {
    let failure = failure(error)
    state.withLock { $0.failure = $0.failure ?? failure }
  }

  /// Returns the number of a new store.
  func addStore() -> Int {
    state.withLock { state in
      state.storeCount += 1
      return state.storeCount
    }
  }

  /// Writes a line, and returns its number, from 1. After a failure, writes nothing.
  @discardableResult func write(_ line: RecordingLine) -> Int {
    if failure != nil { return 0 }
    let bytes = Result { try line.encoded() + [UInt8(ascii: "\n")] }
    return state.withLock { state in
      let number = state.lineCount + 1
      if state.failure != nil { return number }
      do {
        let bytes = try bytes.get()
        try fileSystem.writeAll(bytes, to: file, at: state.byteCount)
        state.byteCount += Int64(bytes.count)
        state.lineCount = number
      } catch {
        // Removes a line that is only partly written. Otherwise, the line numbers that identify views and saves would be wrong.
        try? fileSystem.setSize(state.byteCount, of: file)
        state.failure = failure(error)
      }
      return number
    }
  }

  private func failure(_ error: any Error) -> StoreError {
    if let error = error as? FileSystemError { return StoreError(error, operation: "record a request", path: path) }
    return StoreError(
      .general, operation: "record a request", path: path, reason: "Reading the store or encoding a request failed.",
      cause: error.withoutCodedValues)
  }
}
