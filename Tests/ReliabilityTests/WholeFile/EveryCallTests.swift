import Foundation
import Holdfast
import TestSupport
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// The system calls of stores, traced by strace, and processes that are killed at each of them.
@Suite(.ownThreads) struct EveryCallTests {
  private let folder: TemporaryFolder

  init() throws { folder = TemporaryFolder() }

  /// A process is killed at each system call of opening a store, saving twice and closing it, in turn.
  @Test(arguments: FileStore.all, EveryCall.Start.allCases)
  func RA2_aProcessThatIsKilledAtAnyCallLosesNoAcknowledgedSaveAndTearsNone(store: FileStore, start: EveryCall.Start) async throws {
    let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
      [folder = folder.path as String, store = store as FileStore, start = start as EveryCall.Start] in
      try EveryCall(store: store, folder: folder, start: start).run()
    }
    report(child)
  }

  /// A save makes the expected writing calls, in order, and no others.
  @Test(arguments: FileStore.wholeFile)
  func RB7_aSaveMakesTheExpectedSystemCallsAndNoOthers(store: FileStore) async throws {
    let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
      [folder = folder.path as String, store = store as FileStore] in
      try GoldenTrace(store: store, folder: folder).run()
    }
    report(child)
  }
}

/// Runs in a separate process.
struct EveryCall {
  /// Whether a file exists when the traced process begins.
  enum Start: String, CaseIterable, Codable, Sendable {
    case noFile
    case file
  }

  let store: FileStore
  let folder: String
  let start: Start
  /// The file when a traced process begins, with those beside it.
  private let original = TemporaryFolder()
  private var path: String { folder + "/harbour" }
  private var saves: Int { start == .file ? 12 : 0 }

  func run() throws {
    if start == .file { try apart { try Harbour.makeFile(store.description(at: original.file("harbour")), saves: saves) } }
    guard let whole = try watched(killingAt: nil) else { return print(Tracer.skipped) }
    demand(whole.isSuccess && acknowledged() == 2, "The process could not save: \(whole.status)")
    var (kills, ends) = (0, 0)
    // About twelve calls, from a random start, or all of them.
    let step = TestTier.step(calls: whole.calls.count, kills: 12), first = Int.random(in: 0..<step)
    for place in whole.calls.indices where place % step == first {
      var isKilled = false
      // Some processes end, because the number of calls of the system's libraries differs between runs, so others are tried, and the calls
      // that follow: the thread sanitizer's own calls differ the most.
      for attempt in 0..<10 where !isKilled {
        let call = whole.calls[min(place + max(attempt - 4, 0), whole.calls.count - 1)]
        guard let run = try watched(killingAt: call) else { complain("strace doesn't trace any more.") }
        demand(run.isKilled || run.isSuccess, "\(call): the process ended with \(run.status)")
        isKilled = run.isKilled
        try apart { try survey(call, isKilled: isKilled) }
      }
      if isKilled { kills += 1 } else { ends += 1 }
    }
    demand(kills >= 40 / step && ends * 10 <= kills, "\(kills) kills, \(ends) processes that ended")
    print("REPORT RA2, \(store), \(start), from call \(first), each \(step): killed at \(kills) calls of \(whole.calls.count)")
  }

  /// Opens a store, saves twice and closes it in a traced process.
  private func watched(killingAt call: Tracer.Call?) throws -> Tracer.Run? {
    for name in try FileManager.default.contentsOfDirectory(atPath: folder) { unlink(folder + "/" + name) }
    for name in original.names { try FileManager.default.copyItem(atPath: original.file(name), toPath: folder + "/" + name) }
    return try Tracer.run(notes: folder + ".trace", killingAt: call) {
      open(folder + "/acks", O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0o600)
    } _: { acks in
      let context = try Harbour.context(store.description(at: path))
      for _ in 0..<2 {
        try Voyage.saveNext(context)
        var byte: UInt8 = 1
        demand(write(acks, &byte, 1) == 1, "No acknowledgement was written.")
      }
      try context.persistentStoreCoordinator.close()
    }
  }

  private func acknowledged() -> Int { (try? TemporaryFolder.read(folder + "/acks").count) ?? 0 }

  private func survey(_ call: Tracer.Call, isKilled: Bool) throws {
    let acks = acknowledged()
    let context = try Harbour.context(store.description(at: path))
    let found = try Voyage.check(context)
    let fault = Nursery.fault(acks, saves, found)
    demand(fault == nil, "\(call): \(fault ?? "")")
    demand(isKilled || acks == 2, "\(call)")
    // The next save succeeds, and removes temporary files.
    let next = try Voyage.saveNext(context)
    let after = try Voyage.check(context)
    demand(next == found.saves + 1 && after == (next, nil), "\(call): \(after)")
    try context.persistentStoreCoordinator.close()
    let names = try FileManager.default.contentsOfDirectory(atPath: folder).sorted()
    // SQLite's logs are deleted when the store closes, and its locks are in the store's file.
    let files = !FileStore.wholeFile.contains(store) ? ["acks", "harbour"] : [".harbour.lock", "acks", "harbour"]
    demand(names == files, "\(call): \(names)")
  }
}

/// Runs in a separate process.
struct GoldenTrace {
  let store: FileStore
  let folder: String
  private var path: String { folder + "/harbour" }

  func run() throws {
    try apart { try Harbour.makeFile(store.description(at: path)) }
    let run = try Tracer.run(notes: folder + ".trace") {
      let context = try Harbour.context(store.description(at: path))
      _ = try Voyage.changeNext(context)
      return context
    } _: { (context: ManagedObjectContext) in
      try context.save()
    }
    guard let run else { return print(Tracer.skipped) }
    demand(run.isSuccess, "\(run.status)")
    let writing = run.lines.compactMap(Self.writing)
    // Files written in one piece and in several have the same order of calls.
    let pieces = writing.count { $0 == "pwrite64 temporary" }
    let order = writing.indices.filter { $0 == 0 || writing[$0] != "pwrite64 temporary" || writing[$0 - 1] != writing[$0] }.map {
      writing[$0]
    }
    let expected = [
      // Keys of new objects are reserved in the lock file first.
      "openat .harbour.lock", "flock .harbour.lock LOCK_EX|LOCK_NB", "pwrite64 .harbour.lock", "flock .harbour.lock LOCK_UN",
      // The data are synchronized before the rename, and the rename before the save returns.
      "openat .harbour.lock", "flock .harbour.lock LOCK_EX|LOCK_NB", "openat temporary", "fchmod temporary", "pwrite64 temporary",
      "fsync temporary", "renameat temporary to harbour", "fsync folder", "flock .harbour.lock LOCK_UN",
    ]
    demand(order == expected, "\(writing)")
    demand(run.lines.filter { $0.hasPrefix("fsync") }.allSatisfy { $0.contains("= 0") }, "\(run.lines)")
    let created = run.lines.count { $0.contains("O_RDWR|O_CREAT|O_EXCL|O_NOFOLLOW|O_CLOEXEC, 0600)") }
    demand(created == 1, "\(created) files were created")
    print("REPORT RB7, \(store): \(writing.count) writing calls, \(pieces) pieces")
  }

  /// A call that changes, synchronizes or locks something; nil for any other.
  private static func writing(_ line: String) -> String? {
    guard let end = line.firstIndex(of: "(") else { return nil }
    let call = String(line[..<end])
    switch call {
    case "openat", "open", "openat2", "creat":
      let isWriting = ["O_CREAT", "O_WRONLY", "O_RDWR", "O_TRUNC", "O_TMPFILE", "creat"].contains { line.contains($0) }
      return isWriting ? "openat " + name(line, 0) : nil
    case "renameat", "renameat2", "rename": return "renameat \(name(line, 0)) to \(name(line, 1))"
    case "flock":
      return "flock \(file(line)) "
        + (line.contains("LOCK_UN") ? "LOCK_UN" : line.contains("LOCK_EX|LOCK_NB") ? "LOCK_EX|LOCK_NB" : "other")
    case _ where others.contains(call): return "\(call) \(file(line))"
    default: return nil
    }
  }

  private static let others: Set = [
    "pwrite64", "write", "writev", "pwritev", "pwritev2", "fchmod", "fchmodat", "chmod", "fchown", "fchownat", "chown", "fsync",
    "fdatasync",
    "sync_file_range", "linkat", "link", "symlinkat", "symlink", "unlinkat", "unlink", "rmdir", "ftruncate", "truncate", "fallocate",
    "mkdirat", "mkdir", "fsetxattr", "setxattr", "fremovexattr", "utimensat", "copy_file_range", "sendfile",
  ]

  /// A name among the arguments of a call, without its random part.
  private static func name(_ line: String, _ place: Int) -> String {
    let parts = line.split(separator: "\"", omittingEmptySubsequences: false)
    return usual(parts.count > 2 * place + 1 ? String(parts[2 * place + 1]) : "?")
  }

  /// The file whose descriptor is a call's first argument.
  private static func file(_ line: String) -> String {
    guard let start = line.firstIndex(of: "<"), let end = line.firstIndex(of: ">"), start < end else { return "?" }
    return usual((String(line[line.index(after: start)..<end]) as NSString).lastPathComponent)
  }

  private static func usual(_ name: String) -> String {
    name.hasSuffix(".tmp") ? "temporary" : name.hasPrefix("holdfast-") ? "folder" : name
  }
}
