public import HoldfastFiles
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

/// A file system in memory that can lose power at every instant, fail at every call, and tells what was asked of it.
///
/// It has one folder, `/`, and what is made in it. Every value is a disk of its own.
///
/// - **Power loss**: ``startRecording()``, do what is to be tried, then ``forEachCrashState(seed:sampleSize:_:)`` opens every state
///   in which a power loss may have left the disk.
/// - **Faults**: ``inject(_:)`` makes calls fail or do less than was asked for.
/// - **What was asked**: ``count(of:)``, and ``calls`` while recording.
///
/// Contents are durable only once their file was synchronized, names once the folder was. A file whose synchronization
/// failed behaves as on most real systems: what it was to make durable is taken for durable and may be lost all the same.
/// Permissions and owners are always durable. There are no symbolic links and no attributes besides mode and owner, and
/// no checks of permissions.
public final class SimulatedFileSystem: StoreFileSystem {
  /// One call, as ``calls`` lists it.
  public struct Call: Sendable, Hashable {
    /// Which call.
    public var operation: StoreFileOperation
    /// The name that it was made for, or under which its file was opened.
    public var name: String
    /// The `errno` number when it failed.
    public var error: Int32?

    /// Makes a call.
    public init(operation: StoreFileOperation, name: String, error: Int32? = nil) {
      self.operation = operation
      self.name = name
      self.error = error
    }
  }

  /// Distinguishes this disk from all others in the process.
  public let nameSpace: String
  /// Guards everything: stores call from any thread.
  private let state: Mutex<State>

  struct State: Sendable {
    var disk: SimulatedDisk
    var open: [Int32: OpenFile] = [:]
    var nextHandle: Int32 = 3
    /// The opening that holds a file's lock, by file.
    var locks: [UInt64: Int32] = [:]
    var plan = FaultPlan()
    /// nil while nothing is recorded.
    var recording: CrashRecording?
    var calls: [Call] = []
  }

  enum OpenFile: Sendable, Equatable {
    /// With what the names of its files begin: nothing, or the folder's path and a slash.
    case folder(String)
    case file(UInt64)
  }

  private static let numbers = Atomic<Int>(0)

  /// Makes an empty disk.
  public convenience init() { self.init(SimulatedDisk()) }

  init(_ disk: SimulatedDisk) {
    nameSpace = "simulated disk \(Self.numbers.add(1, ordering: .relaxed).newValue)"
    state = Mutex(State(disk: disk))
  }

  // MARK: What tests do

  /// Makes a call go wrong, counting from now.
  public func inject(_ fault: FileFault) { state.withLock { $0.plan.add(fault) } }

  /// Lets all calls do what they should again.
  public func clearFaults() {
    state.withLock {
      $0.plan.clear()
      $0.plan.shortening = nil
    }
  }

  /// Lets every reading and writing deal with as many bytes as chance says: between one and half of what was asked for.
  public func shortenAllTransfers(seed: UInt64) { state.withLock { $0.plan.shortening = DiskRandom(seed: seed) } }

  /// How often a call was made since the disk was made.
  public func count(of operation: StoreFileOperation) -> Int { state.withLock { $0.plan.counts[operation] ?? 0 } }

  /// The calls since ``startRecording()``.
  public var calls: [Call] { state.withLock { $0.calls } }

  /// How many files and folders are open.
  public var openCount: Int { state.withLock { $0.open.count } }

  /// The names in the folder, sorted; those in folders in it with their paths.
  public var names: [String] { state.withLock { $0.disk.entries.keys.sorted() } }

  /// The bytes of a file; nil when there is none.
  public func contents(of name: String) -> [UInt8]? {
    state.withLock { state in state.disk.entries[name].flatMap { state.disk.files[$0]?.bytes } }
  }

  /// Puts a new file under a name as another program would, durably, without a call that is counted or can fail; nil
  /// removes the name.
  public func setContents(of name: String, _ bytes: [UInt8]?) {
    state.withLock { state in
      guard let bytes else { return state.disk.apply(.unlink(name: name)) }
      let file = state.disk.newNumber()
      state.disk.apply(.create(name: name, file: file))
      state.disk.apply(.write(file: file, offset: 0, bytes: bytes))
    }
  }

  /// Takes the disk as it is for durable, and records every change and call from now on.
  public func startRecording() {
    state.withLock {
      $0.calls = []
      $0.recording = CrashRecording(base: $0.disk)
    }
  }

  /// Notes a moment in the recording, for example that a save has returned: crash states after it carry the number.
  public func mark(_ number: Int) { state.withLock { $0.recording?.events.append(.mark(number)) } }

  /// Opens every state in which a power loss since ``startRecording()`` may have left the disk.
  ///
  /// The states are: for every prefix of the recorded changes, every combination of what may be left of each change that
  /// was not durable by then (nothing, all of it, and for written bytes half of them, followed by nothing, zeros or
  /// garbage, or zeros alone). When there are more than 16,384 states, or more than `sampleSize`, so many of them are drawn by chance.
  ///
  /// - Parameters:
  ///   - seed: Repeats the draw and the garbage of an earlier run. By chance unless given; print what is returned.
  ///   - sampleSize: How many states are drawn when that is done.
  ///   - body: Is given each state. The disk is its own, so it may be written to.
  /// - Returns: How many states there were, whether those were all, and the seed.
  @discardableResult
  public func forEachCrashState(seed: UInt64? = nil, sampleSize: Int = 20_000, _ body: (CrashState) throws -> Void) rethrows
    -> CrashSummary
  {
    guard let recording = state.withLock({ $0.recording }) else { preconditionFailure("Call startRecording() first.") }
    return try CrashEnumerator(recording, seed: seed ?? UInt64.random(in: .min ... .max), sampleSize: sampleSize).run(body)
  }

  // MARK: Helpers of the calls

  /// Carries a call out: counts it, fails it if the plan says so, and keeps a record.
  func perform<Result>(
    _ operation: StoreFileOperation, _ name: String,
    _ body: (inout State, FileFault.Effect?) -> Swift.Result<Result, ErrorCode>
  ) throws(FileSystemError) -> Result {
    let result = state.withLock { state in
      let effect = state.plan.enter(operation)
      let result: Swift.Result<Result, ErrorCode>
      if case .error(let number) = effect {
        state.noteFailure(of: operation, name)
        result = .failure(ErrorCode(number))
      } else {
        result = body(&state, effect)
      }
      if state.recording != nil { state.calls.append(Call(operation: operation, name: name, error: result.number)) }
      return result
    }
    switch result {
    case .success(let value): return value
    case .failure(let code): throw FileSystemError(operation, name: name, number: code.number)
    }
  }

  func letGo(_ handle: StoreFileHandle) {
    state.withLock { state in
      guard case .file(let file) = state.open.removeValue(forKey: handle.number) else { return }
      if state.locks[file] == handle.number { state.locks[file] = nil }
      state.discardIfUnused(file)
    }
  }

  /// An `errno` number that is thrown.
  struct ErrorCode: Error {
    var number: Int32
    init(_ number: Int32) { self.number = number }
  }
}

extension Result where Failure == SimulatedFileSystem.ErrorCode {
  fileprivate var number: Int32? {
    if case .failure(let code) = self { code.number } else { nil }
  }
}

extension SimulatedFileSystem.State {
  mutating func change(_ change: DiskChange) {
    disk.apply(change)
    recording?.events.append(.change(change))
  }

  /// The file that is open under a handle.
  func file(_ handle: StoreFileHandle) -> Result<UInt64, SimulatedFileSystem.ErrorCode> {
    switch open[handle.number] {
    case .file(let file): .success(file)
    case .folder: .failure(.init(EISDIR))
    case nil: .failure(.init(EBADF))
    }
  }

  /// The path of a name in an open folder.
  func path(_ name: String, _ directory: StoreFileHandle) -> String {
    if case .folder(let prefix)? = open[directory.number] { prefix + name } else { name }
  }

  /// The file that has a path.
  func file(named name: String) -> Result<UInt64, SimulatedFileSystem.ErrorCode> {
    disk.entries[name].map { .success($0) } ?? .failure(.init(ENOENT))
  }

  mutating func opened(_ file: SimulatedFileSystem.OpenFile, _ name: String) -> StoreFileHandle {
    defer { nextHandle += 1 }
    open[nextHandle] = file
    return StoreFileHandle(nextHandle, name: name)
  }

  func status(_ number: UInt64) -> Result<StoreFileStatus, SimulatedFileSystem.ErrorCode> {
    guard let file = disk.files[number] else { return .failure(.init(EBADF)) }
    let identity = FileIdentity(device: 1, inode: number, size: Int64(file.bytes.count), modified: file.modified, changed: file.changed)
    return .success(
      StoreFileStatus(
        kind: file.isFolder ? .directory : .regular, identity: identity, permissions: file.permissions, owner: file.owner,
        group: file.group))
  }

  /// A synchronization that fails loses what it was called for.
  fileprivate mutating func noteFailure(of operation: StoreFileOperation, _ name: String) {
    guard operation == .synchronize, recording != nil else { return }
    if let file = disk.entries.first(where: { $0.key == name || $0.key.hasSuffix("/" + name) })?.value {
      recording?.events.append(.failedToSynchronize(file))
    }
  }

  /// Forgets a file that no name and no opening leads to. Not while recording: a crash may bring it back.
  mutating func discardIfUnused(_ file: UInt64?) {
    guard let file, recording == nil else { return }
    guard !disk.entries.values.contains(file), !open.values.contains(.file(file)) else { return }
    disk.files[file] = nil
  }
}
