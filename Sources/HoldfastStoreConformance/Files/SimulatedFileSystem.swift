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

/// A file system in memory that simulates power losses and faults, and records calls.
///
/// It has one root folder, `/`, and the files and folders created in it. Each instance is a separate disk.
///
/// - **Power loss**: call ``startRecording()``, perform the operations to test, then call
///   ``forEachCrashState(seed:sampleSize:_:)``. It opens every state in which a power loss can leave the disk.
/// - **Faults**: ``inject(_:)`` makes calls fail or transfer fewer bytes.
/// - **Calls**: ``count(of:)`` returns the number of calls, and ``calls`` lists them while recording.
///
/// Contents are durable only after their file was synchronized, and names only after the folder was. A failed synchronization
/// behaves as on most real systems: later calls assume that the contents are durable, although they can still be lost. Permissions
/// and owners are always durable. There are no symbolic links, no attributes other than mode and owner, and no permission checks.
public final class SimulatedFileSystem: StoreFileSystem {
  /// A call, as listed in ``calls``.
  public struct Call: Sendable, Hashable {
    /// The operation.
    public var operation: StoreFileOperation
    /// The name passed to the call, or the name of its open file.
    public var name: String
    /// The `errno` value if the call failed.
    public var error: Int32?

    /// Creates a call.
    public init(operation: StoreFileOperation, name: String, error: Int32? = nil) {
      self.operation = operation
      self.name = name
      self.error = error
    }
  }

  /// Distinguishes this disk from all others in the process.
  public let nameSpace: String
  /// Guards all state, because stores call from any thread.
  private let state: Mutex<State>

  struct State: Sendable {
    var disk: SimulatedDisk
    var open: [Int32: OpenFile] = [:]
    var nextHandle: Int32 = 3
    /// For each locked file, the handle that holds the lock.
    var locks: [UInt64: Int32] = [:]
    var plan = FaultPlan()
    /// Nil while not recording.
    var recording: CrashRecording?
    var calls: [Call] = []
  }

  enum OpenFile: Sendable, Equatable {
    /// A folder, with the prefix of its files' names: empty, or the folder's path and a slash.
    case folder(String)
    case file(UInt64)
  }

  private static let numbers = Atomic<Int>(0)

  /// Creates an empty disk.
  public convenience init() { self.init(SimulatedDisk()) }

  init(_ disk: SimulatedDisk) {
    nameSpace = "simulated disk \(Self.numbers.add(1, ordering: .relaxed).newValue)"
    state = Mutex(State(disk: disk))
  }

  // MARK: Controlling the disk

  /// Makes a call fail, counting from now.
  public func inject(_ fault: FileFault) { state.withLock { $0.plan.add(fault) } }

  /// Removes all faults.
  public func clearFaults() {
    state.withLock {
      $0.plan.clear()
      $0.plan.shortening = nil
    }
  }

  /// Makes every read and write transfer a random number of bytes, between one and half of those requested.
  public func shortenAllTransfers(seed: UInt64) { state.withLock { $0.plan.shortening = DiskRandom(seed: seed) } }

  /// Returns the number of calls of an operation since the disk was created.
  public func count(of operation: StoreFileOperation) -> Int { state.withLock { $0.plan.counts[operation] ?? 0 } }

  /// The calls since ``startRecording()``.
  public var calls: [Call] { state.withLock { $0.calls } }

  /// The number of open files and folders.
  public var openCount: Int { state.withLock { $0.open.count } }

  /// The names in the root folder, sorted. Names in subfolders are listed with their paths.
  public var names: [String] { state.withLock { $0.disk.entries.keys.sorted() } }

  /// Returns the contents of a file, or nil if it doesn't exist.
  public func contents(of name: String) -> [UInt8]? {
    state.withLock { state in state.disk.entries[name].flatMap { state.disk.files[$0]?.bytes } }
  }

  /// Replaces a file durably, as another program would; nil removes it.
  ///
  /// The change isn't counted as a call, and can't fail. Every later crash state contains it.
  public func setContents(of name: String, _ bytes: [UInt8]?) {
    state.withLock { state in
      guard let bytes else { return state.changeDurably([.unlink(name: name)]) }
      let file = state.disk.newNumber()
      state.changeDurably([.create(name: name, file: file), .write(file: file, offset: 0, bytes: bytes)])
    }
  }

  /// Makes the current state durable, and records every change and call from now on.
  public func startRecording() {
    state.withLock {
      $0.calls = []
      $0.recording = CrashRecording(base: $0.disk)
    }
  }

  /// Adds a mark to the recording, for example after a save returned. Later crash states contain its number.
  public func mark(_ number: Int) { state.withLock { $0.recording?.events.append(.mark(number)) } }

  /// Opens every state in which a power loss since ``startRecording()`` can leave the disk.
  ///
  /// For every prefix of the recorded changes, the states are all combinations of the outcomes of changes that weren't durable. A
  /// change is lost or kept. A write can also leave the first half of its bytes, followed by nothing, zeros or garbage, or only
  /// zeros. If there are more than 16,384 states, or more than `sampleSize`, a random sample of `sampleSize` states is used.
  ///
  /// - Parameters:
  ///   - seed: Reproduces the sample and the garbage of an earlier run. Defaults to a random seed, which the summary contains.
  ///   - sampleSize: The size of a random sample.
  ///   - body: Called with each state. Each state has a disk of its own, which can be written to.
  /// - Returns: The number of states, whether they were all, and the seed.
  @discardableResult
  public func forEachCrashState(seed: UInt64? = nil, sampleSize: Int = 20_000, _ body: (CrashState) throws -> Void) rethrows
    -> CrashSummary
  {
    guard let recording = state.withLock({ $0.recording }) else { preconditionFailure("Call startRecording() first.") }
    return try CrashEnumerator(recording, seed: seed ?? UInt64.random(in: .min ... .max), sampleSize: sampleSize).run(body)
  }

  // MARK: Support for calls

  /// Performs a call: counts it, applies a fault, and records it.
  ///
  /// - Parameter synchronized: The file that the call makes durable; nil for other calls.
  func perform<Result>(
    _ operation: StoreFileOperation, _ name: String, synchronizing synchronized: StoreFileHandle? = nil,
    _ body: (inout State, FileFault.Effect?) -> Swift.Result<Result, ErrorCode>
  ) throws(FileSystemError) -> Result {
    let result = state.withLock { state in
      let effect = state.plan.enter(operation)
      let result: Swift.Result<Result, ErrorCode>
      if case .error(let number) = effect {
        if let synchronized { state.noteFailedSynchronization(of: synchronized) }
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

  /// An `errno` value to throw.
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

  /// Makes changes that are durable together.
  fileprivate mutating func changeDurably(_ changes: [DiskChange]) {
    for change in changes { disk.apply(change) }
    recording?.events.append(.durableChanges(changes))
  }

  /// The file behind an open handle.
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

  /// The file at a path.
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

  /// Records that a failed synchronization doesn't make a file's contents durable. The file may have another name than when it was opened.
  fileprivate mutating func noteFailedSynchronization(of handle: StoreFileHandle) {
    if case .file(let file)? = open[handle.number] { recording?.events.append(.failedToSynchronize(file)) }
  }

  /// Deletes a file without names and open handles. Does nothing while recording, because a crash can restore the file.
  mutating func discardIfUnused(_ file: UInt64?) {
    guard let file, recording == nil else { return }
    guard !disk.entries.values.contains(file), !open.values.contains(.file(file)) else { return }
    disk.files[file] = nil
  }
}
