import HoldfastFiles
import HoldfastStore
import Synchronization
import TestSupport
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Several processes that save one file, and processes that are killed: RD1 and RA1, for files.
@Suite(.ownThreads) struct FileProcessTests {
  private let folder = TemporaryFolder()

  /// Saves `count` times; each save adds one to the generation. The file is read only after a save reported a change, so an undetected
  /// change becomes a lost update.
  private static func increment(_ path: String, count: Int) throws {
    let store = try TestStore(path, DurableFileOptions(lockTimeout: .seconds(3600)))
    var done = 0
    while done < count {
      do {
        try store.save(byteCount: 40)
        done += 1
      } catch let error as StoreError where error.code == .storeReplaced {
        try store.reload()
      }
    }
  }

  @Test func RD1_noUpdateOfSeveralProcessesIsLost() async throws {
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<4 {
        group.addTask { [path = folder.file()] in
          await #expect(processExitsWith: .success) { [path = path as String] in try Self.increment(path, count: 50) }
        }
      }
    }
    #expect(try TestStore(folder.file()).generation == 200)
    #expect(folder.names == [".store.lock", "store"])
  }

  /// Each child prints the generation after each save, until it is killed.
  @Test func RA1_aKilledProcessLosesNoSaveThatHadReturned() async throws {
    for round in 0..<20 {
      let before = try { try TestStore(folder.file()).generation }()
      let result = await #expect(processExitsWith: .signal(SIGKILL), observing: [\.standardOutputContent]) {
        [path = folder.file() as String, microseconds = UInt32(1000 + round * 1500) as UInt32] in
        let store = try TestStore(path)
        Killer.start(after: microseconds)
        while true {
          try store.save(byteCount: 3_000)
          print("saved \(store.generation) ")
          fflush(nil)
        }
      }
      let said = String(decoding: result?.standardOutputContent ?? [], as: UTF8.self).split(separator: "\n")
      let confirmed =
        said.compactMap { $0.hasPrefix("saved ") && $0.hasSuffix(" ") ? UInt64($0.dropFirst(6).dropLast()) : nil }.max() ?? before
      let store = try TestStore(folder.file())
      #expect((confirmed...confirmed + 1).contains(store.generation), "\(said.suffix(3))")
      try store.save()
      #expect(folder.names == [".store.lock", "store"])
    }
  }

  @Test func aReplacementCanBePassedToAnotherThread() async throws {
    let file = try DurableFile(path: folder.file())
    let prepared = Prepared(try file.beginReplacing())
    try prepared.replacement.withLock { replacement in
      try [UInt8](repeating: 1, count: 3).withUnsafeBytes { try replacement.write($0) }
      try replacement.finish()
    }
    await Task.detached { #expect(throws: Never.self) { try prepared.replacement.withLock { try $0.commit() } } }.value
    #expect(TestFile.read(folder.file()) == [1, 1, 1])
  }

  /// A stand-in for a store's prepared save.
  private final class Prepared: Sendable {
    let replacement: Mutex<FileReplacement>
    init(_ replacement: sending FileReplacement) { self.replacement = Mutex(replacement) }
  }
}

private enum Killer {
  /// Kills this process after a delay.
  static func start(after microseconds: UInt32) {
    var thread = pthread_t()
    let time = UnsafeMutablePointer<UInt32>.allocate(capacity: 1)
    time.initialize(to: microseconds)
    pthread_create(
      &thread, nil,
      { argument in
        usleep(argument!.load(as: UInt32.self))
        kill(getpid(), SIGKILL)
        return nil
      }, time)
  }
}
