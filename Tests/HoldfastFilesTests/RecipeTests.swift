import Foundation
import HoldfastFiles
import HoldfastStore
import HoldfastStoreConformance
import TestSupport
import Testing

/// The order of a save's calls, on a simulated disk and traced on the real system: RB7, RC4 and RC6.
@Suite(.ownThreads) struct RecipeTests {
  // MARK: RB7, simulated

  /// The calls of one save. The temporary file is called `temporary`.
  private func calls(_ options: (SimulatedFileSystem) -> DurableFileOptions, hasFile: Bool, _ expectedByteCount: Int64? = nil) throws
    -> [String]
  {
    let disk = SimulatedFileSystem()
    if hasFile { disk.setContents(of: "store", [1]) }
    let file = try DurableFile(path: "/store", options: options(disk))
    _ = try file.contents()
    disk.startRecording()
    let replacement = try file.beginReplacing(expectedByteCount: expectedByteCount)
    try [UInt8](repeating: 7, count: 2_500_000).withUnsafeBytes { try replacement.write($0) }
    try replacement.commit()
    return disk.calls.map { call in
      #expect(call.error == nil || call.operation == .statusOfName && !hasFile)
      return "\(call.operation) \(call.name.hasSuffix(".tmp") ? "temporary" : call.name)"
    }
  }

  private static let locking = [
    "openLockFile .store.lock", "status .store.lock", "lock .store.lock", "statusOfName .store.lock", "statusOfName store",
  ]
  /// The new file stays open, so that its inode number isn't reused. The previous file is closed. The new one is known before the folder is
  /// synchronized, which takes long.
  private static func ending(hasFile: Bool) -> [String] {
    ["status temporary"] + (hasFile ? ["close store"] : []) + ["synchronize /", "unlock .store.lock", "close .store.lock"]
  }

  @Test func RB7_anExistingFileIsReplacedInThisOrderAndNoOther() throws {
    let expected =
      Self.locking + ["names /", "create temporary", "status temporary", "copyAttributes store", "setPermissions temporary"]
      + ["write temporary", "write temporary", "write temporary"]
      + ["synchronize temporary", "statusOfName store", "rename temporary"] + Self.ending(hasFile: true)
    #expect(try calls({ DurableFileOptions(fileSystem: $0) }, hasFile: true) == expected)
  }

  @Test func RB7_aNewFileIsMadeInThisOrderAndNoOther() throws {
    let expected =
      Self.locking + ["names /", "create temporary", "setPermissions temporary", "allocate temporary"]
      + ["write temporary", "write temporary", "write temporary", "setSize temporary"]
      + ["synchronize temporary", "statusOfName store", "rename temporary"] + Self.ending(hasFile: false)
    #expect(try calls({ DurableFileOptions(fileSystem: $0) }, hasFile: false, 3_000_000) == expected)
  }

  @Test func RB7_fastDurabilityLeavesOutTheFolderAndNothingElse() throws {
    let full = try calls({ DurableFileOptions(fileSystem: $0) }, hasFile: true)
    let normal = try calls({ DurableFileOptions(durability: .normal, fileSystem: $0) }, hasFile: true)
    #expect(normal == full.filter { $0 != "synchronize /" } && normal.count == full.count - 1)
  }

  // MARK: RB7, RC4 and RC6, on the real system

  @Test func RB7_theOperatingSystemSeesTheSameOrder() async throws {
    let folder = TemporaryFolder()
    await #expect(processExitsWith: .success) { [path = folder.path as String] in
      try traced(path, []) { file in try file.replace([UInt8](repeating: 2, count: 1_500_000)) }
    }
    guard let trace = try Trace(folder.path) else { return }
    #expect(
      trace.writing == [
        "openat .store.lock", "flock", "openat temporary", "fchmod", "pwrite64", "pwrite64", "fsync", "renameat", "fsync", "flock",
      ])
    #expect(trace.lines.count { $0.contains("O_RDWR|O_CREAT|O_EXCL|O_NOFOLLOW|O_CLOEXEC, 0600)") } == 1)
  }

  /// strace makes every second one of these calls fail with `EINTR`, which a local disk never does by itself.
  @Test func RC4_interruptedCallsAreRepeatedOnTheRealSystem() async throws {
    let folder = TemporaryFolder()
    await #expect(processExitsWith: .success) { [path = folder.path as String] in
      let calls = ["openat", "pread64", "pwrite64", "fstat", "newfstatat", "fchmod", "renameat", "ftruncate", "flock"]
      try traced(path, calls.map { "\($0):error=EINTR:when=1+2" }) { file in
        for round in UInt8(0)..<20 {
          try file.replace([UInt8](repeating: round, count: 3000))
          let contents = try file.contents()
          precondition(contents == [UInt8](repeating: round, count: 3000))
        }
      }
    }
    guard let trace = try Trace(folder.path) else { return }
    #expect(trace.lines.count { $0.contains("EINTR") } > 100)
    #expect(folder.names == [".store.lock", "store"])
  }

  @Test func RC6_aFileIsNotSynchronizedAgainOnTheRealSystem() async throws {
    let folder = TemporaryFolder()
    await #expect(processExitsWith: .success) { [path = folder.path as String] in
      try traced(path, ["fsync:error=EIO:when=1"]) { file in
        let error = storeError { try file.replace([2]) }
        let between = try file.contents()
        precondition(error?.code == .inputOutput && between == [1] && TemporaryFolder.names(in: path).count == 2)
        try file.replace([3])
      }
    }
    guard let trace = try Trace(folder.path) else { return }
    // The failed file is removed, and the next synchronization is of another file.
    let calls = trace.writing.filter { ["fsync", "unlinkat", "openat temporary", "renameat"].contains($0) }
    #expect(calls == ["openat temporary", "fsync", "unlinkat", "openat temporary", "fsync", "renameat", "fsync"])
    #expect(TestFile.read(folder.file()) == [3])
  }

  // MARK: RC4

  #if os(Linux)
    /// In a separate process, so that no other test receives the signals.
    @Test func RC4_aThousandSignalsASecondDisturbNoSave() async {
      let result = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
        let folder = TemporaryFolder()
        let store = try TestStore(folder.file())
        let storm = SignalStorm()
        // Until there were enough saves and enough signals, however long that takes.
        while storm.count < 200 || store.generation < 200 {
          try store.save(byteCount: 5000)
          try store.reload()
          try store.file.withLock { try $0.write([1]) }
        }
        storm.stop()
        precondition(folder.names == [".store.lock", "store"])
        print("RC4: \(store.generation) saves, \(storm.count) signals")
      }
      let lines = String(decoding: result?.standardOutputContent ?? [], as: UTF8.self).split(separator: "\n")
      for line in lines where line.hasPrefix("RC4") { print(line) }
    }
  #endif
}

/// Creates a file in a folder, and runs a closure in a forked process while strace traces that process and makes some of its calls fail.
///
/// The process has no other threads, whose calls would be traced and fail, too. The trace is written beside the folder, for ``Trace``.
private func traced(_ folder: String, _ faults: [String], _ body: (DurableFile) throws -> Void) throws {
  let run = try Tracer.run(notes: folder + ".strace", faults: faults) {
    let file = try DurableFile(path: folder + "/store")
    try file.replace([1])
    return file
  } _: { file in
    try body(file)
  }
  guard let run else { return }
  demand(run.isSuccess, "The process ended with \(run.status): \(run.lines.suffix(5))")
  TestFile.write(Array(run.lines.joined(separator: "\n").utf8), to: folder + ".trace")
}

/// The system calls of another process, traced by strace.
private struct Trace {
  let lines: [String]
  /// The calls that change, synchronize or lock something, in order.
  let writing: [String]

  /// Reads and removes the trace beside a folder. Prints a message and returns nil if there is no trace.
  init?(_ folder: String) throws {
    let path = folder + ".trace"
    guard FileManager.default.fileExists(atPath: path) else {
      print(Tracer.skipped)
      return nil
    }
    defer { TestFile.delete(path) }
    lines = String(decoding: TestFile.read(path), as: UTF8.self).split(separator: "\n").map(String.init)
    writing = lines.compactMap(Self.writingCall)
  }

  private static func writingCall(_ line: String) -> String? {
    guard let end = line.firstIndex(of: "(") else { return nil }
    let name = String(line[..<end])
    switch name {
    case "openat" where line.contains("O_CREAT"): return line.contains(".tmp\"") ? "openat temporary" : "openat .store.lock"
    case "renameat2": return "renameat"
    case "pwrite64", "fchmod", "fchown", "fsync", "fdatasync", "renameat", "rename", "linkat", "unlinkat", "unlink", "flock", "ftruncate",
      "fallocate", "mkdirat", "fsetxattr":
      return name
    default: return nil
    }
  }
}
