import Foundation
import Holdfast
import TestSupport
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// The calls of stores as the operating system saw them, and processes that are killed at each of them.
@Suite(.serialized) struct EveryCallTests {
  private let folder: TemporaryFolder

  init() throws { folder = TemporaryFolder() }

  /// A process is killed instead of each call that opening, saving twice and closing make, one after the other.
  @Test(arguments: FileStore.all, EveryCall.Start.allCases)
  func A2_aProcessThatIsKilledAtAnyCallLosesNoAcknowledgedSaveAndTearsNone(store: FileStore, start: EveryCall.Start) async throws {
    let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
      [folder = folder.path as String, store = store as FileStore, start = start as EveryCall.Start] in
      try EveryCall(store: store, folder: folder, start: start).run()
    }
    report(child)
  }

  /// The order in which a save writes, and that it writes nothing else.
  @Test(arguments: FileStore.wholeFile)
  func B7_theOperatingSystemSeesTheRecipeOfASaveAndNothingElse(store: FileStore) async throws {
    let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
      [folder = folder.path as String, store = store as FileStore] in
      try GoldenTrace(store: store, folder: folder).run()
    }
    report(child)
  }
}

/// Runs in a process of its own.
struct EveryCall {
  /// What is there when the watched process begins.
  enum Start: String, CaseIterable, Codable, Sendable {
    case noFile
    case file
  }

  let store: FileStore
  let folder: String
  let start: Start
  private var path: String { folder + "/harbour" }
  private var saves: Int { start == .file ? 12 : 0 }

  func run() throws {
    guard let whole = try watched(killingAt: nil) else { return print(Tracer.skipped) }
    demand(whole.isSuccess && acknowledged() == 2, "The process could not save: \(whole.status)")
    var (kills, ends) = (0, 0)
    // A third of the calls, another one in each run, or all.
    let step = TestTier.count(3, full: 1), first = Int.random(in: 0..<step)
    for (place, call) in whole.calls.enumerated() where place % step == first {
      guard let run = try watched(killingAt: call) else { complain("strace does not watch any more.") }
      demand(run.isKilled || run.isSuccess, "\(call): the process ended with \(run.status)")
      if run.isKilled { kills += 1 } else { ends += 1 }
      try survey(call, isKilled: run.isKilled)
    }
    // A number of calls that is another in each run is that of what the libraries of the system look up.
    demand(kills >= 40 / step && ends * 10 <= kills, "\(kills) kills, \(ends) processes came to their end")
    print("REPORT A2, \(store), \(start), from call \(first), each \(step): killed at \(kills) calls of \(whole.calls.count)")
  }

  /// Opens, saves twice and closes in a process that is watched.
  private func watched(killingAt call: Tracer.Call?) throws -> Tracer.Run? {
    for name in try FileManager.default.contentsOfDirectory(atPath: folder) { unlink(folder + "/" + name) }
    if start == .file { try Harbour.makeFile(store.description(at: path), saves: saves) }
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
    // It goes on, and takes away what was left.
    let next = try Voyage.saveNext(context)
    let after = try Voyage.check(context)
    demand(next == found.saves + 1 && after == (next, nil), "\(call): \(after)")
    try context.persistentStoreCoordinator.close()
    let names = try FileManager.default.contentsOfDirectory(atPath: folder).sorted()
    // SQLite has its logs and locks in files that go when it closes, and in the store's own file.
    let files = !FileStore.wholeFile.contains(store) ? ["acks", "harbour"] : [".harbour.lock", "acks", "harbour"]
    demand(names == files, "\(call): \(names)")
  }
}

/// Runs in a process of its own.
struct GoldenTrace {
  let store: FileStore
  let folder: String
  private var path: String { folder + "/harbour" }

  func run() throws {
    try Harbour.makeFile(store.description(at: path))
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
    // A file of one piece and one of several are written alike.
    let pieces = writing.count { $0 == "pwrite64 temporary" }
    let order = writing.indices.filter { $0 == 0 || writing[$0] != "pwrite64 temporary" || writing[$0 - 1] != writing[$0] }.map {
      writing[$0]
    }
    let expected = [
      // Keys of new objects are first allocated in the lock file.
      "openat .harbour.lock", "flock .harbour.lock LOCK_EX|LOCK_NB", "pwrite64 .harbour.lock", "flock .harbour.lock LOCK_UN",
      // The data go to the disk before the name, and the name before the save returns.
      "openat .harbour.lock", "flock .harbour.lock LOCK_EX|LOCK_NB", "openat temporary", "fchmod temporary", "pwrite64 temporary",
      "fsync temporary", "renameat temporary to harbour", "fsync folder", "flock .harbour.lock LOCK_UN",
    ]
    demand(order == expected, "\(writing)")
    demand(run.lines.filter { $0.hasPrefix("fsync") }.allSatisfy { $0.contains("= 0") }, "\(run.lines)")
    let created = run.lines.count { $0.contains("O_RDWR|O_CREAT|O_EXCL|O_NOFOLLOW|O_CLOEXEC, 0600)") }
    demand(created == 1, "\(created) files were made")
    print("REPORT B7, \(store): \(writing.count) calls that write, \(pieces) pieces")
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

  /// A name among the arguments of a call, without what is chance in it.
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
    name.hasSuffix(".tmp") ? "temporary" : name.hasPrefix("holdfast-bad-") ? "folder" : name
  }
}
