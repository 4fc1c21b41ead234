import Foundation

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Watches the calls of a forked process with strace, and kills it at one of them.
///
/// Only for a process of its own whose other threads do nothing, because a fork has no other threads. See ``apart(_:)``.
package enum Tracer {
  /// One call of the operating system: its name, and the how manieth of that name it is.
  package struct Call: Hashable {
    package var name: String
    package var nth: Int
  }

  /// What the watched process did.
  package struct Run {
    /// The calls as strace wrote them, without the number of the process.
    package var lines: [String]
    /// How the process ended, as `waitpid` tells.
    package var status: Int32

    package var isKilled: Bool { status & 0x7F == SIGKILL }
    package var isSuccess: Bool { status == 0 }

    /// All calls in their order.
    package var calls: [Call] {
      var counts: [String: Int] = [:]
      return lines.compactMap { line in
        guard let end = line.firstIndex(of: "("), line[..<end].allSatisfy({ $0.isLetter || $0.isNumber || $0 == "_" }) else { return nil }
        let name = String(line[..<end])
        counts[name, default: 0] += 1
        return Call(name: name, nth: counts[name, default: 0])
      }
    }

    /// The paths that were opened; one in a folder that was opened before is only its name.
    package var opened: [String] {
      lines.filter { $0.hasPrefix("open") }.compactMap { line in
        let parts = line.split(separator: "\"", omittingEmptySubsequences: false)
        return parts.count > 1 ? String(parts[1]) : nil
      }
    }
  }

  package static let program = "/usr/bin/strace"
  package static let skipped = "Skipped: strace is not installed, or may not watch."

  /// Forks, watches what `body` does in the child, and waits for its end.
  ///
  /// - Parameters:
  ///   - notes: where the calls are written; removed when they were read.
  ///   - fatal: the call that is not made any more: the process is killed instead.
  ///   - faults: what strace makes of other calls, as its option `inject` says it.
  ///   - prepare: what the child does before it is watched, and gives to `body`.
  /// - Returns: nil when strace is not there or may not watch.
  package static func run<Prepared>(
    notes: String, killingAt fatal: Call? = nil, faults: [String] = [], prepare: () throws -> Prepared, _ body: (Prepared) throws -> Void
  ) throws -> Run? {
    guard FileManager.default.isExecutableFile(atPath: program) else { return nil }
    defer { unlink(notes) }
    // Neither waiting makes calls that are watched: they would be counted with the others.
    let (ready, go, messages) = (try Flag(), try Flag(), Pipes())
    let child = System.fork()
    if child == 0 {
      do {
        let prepared = try prepare()
        ready.raise()
        go.wait()
        try body(prepared)
        _exit(0)
      } catch {
        print("A process that is watched failed: \(error)")
        fflush(nil)
        _exit(2)
      }
    }
    var status: Int32 = 0, hasEnded = false
    ready.wait {
      hasEnded = waitpid(child, &status, WNOHANG) != 0
      return hasEnded
    }
    // It has printed why, unless a signal ended it.
    if hasEnded { throw FailureApart(description: "The process that was to be watched ended with \(status).") }
    let kills = fatal.map { ["\($0.name):signal=SIGKILL:when=\($0.nth)"] } ?? []
    let inject = (kills + faults).flatMap { ["-e", "inject=" + $0] }
    let tracer = spawn(
      ["strace", "-f", "-p", "\(child)", "-o", notes, "-y", "-s", "4096", "-e", "trace=%file,%desc,%network"] + inject, messages)
    // It says that it is attached before anything is watched; when it may not watch, it says so and ends.
    let isAttached = tracer > 0 && messages.text().contains("attached")
    if isAttached { go.raise() } else { kill(child, SIGKILL) }
    waitpid(child, &status, 0)
    if tracer > 0 {
      var end: Int32 = 0
      waitpid(tracer, &end, 0)
    }
    messages.close()
    guard isAttached else { return nil }
    let text = String(decoding: try Data(contentsOf: URL(fileURLWithPath: notes)), as: UTF8.self)
    // Each line begins with the number of the thread.
    let lines = text.split(separator: "\n").compactMap { $0.split(separator: " ", maxSplits: 1).last.map { String($0.drop { $0 == " " }) } }
    return Run(lines: lines, status: status)
  }

  /// Starts strace without threads of this process: what is forked next must find none.
  private static func spawn(_ arguments: [String], _ messages: Pipes) -> pid_t {
    var child: pid_t = 0
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, messages.writing, 2)
    let words = arguments.map { strdup($0) } + [nil]
    defer { for word in words { free(word) } }
    return posix_spawn(&child, program, &actions, nil, words, environ) == 0 ? child : -1
  }
}

/// A word between a process and its fork.
private struct Flag {
  private struct NoMemory: Error {}
  private let page: UnsafeMutablePointer<UInt8>

  init() throws {
    let memory = mmap(nil, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)
    guard let memory, memory != MAP_FAILED else { throw NoMemory() }
    page = memory.bindMemory(to: UInt8.self, capacity: 1)
  }

  func raise() { page.pointee = 1 }

  func wait(or isInVain: () -> Bool = { false }) {
    while page.pointee == 0 && !isInVain() { usleep(200) }
    munmap(page, 4096)
  }
}

/// What strace says of itself.
private struct Pipes {
  let reading: Int32
  let writing: Int32

  init() {
    var both: [Int32] = [0, 0]
    precondition(pipe(&both) == 0)
    (reading, writing) = (both[0], both[1])
  }

  func text() -> String {
    var bytes = [UInt8](repeating: 0, count: 4096)
    let count = read(reading, &bytes, bytes.count)
    return String(decoding: bytes.prefix(max(count, 0)), as: UTF8.self)
  }

  func close() {
    #if canImport(Glibc)
      Glibc.close(reading)
      Glibc.close(writing)
    #else
      Darwin.close(reading)
      Darwin.close(writing)
    #endif
  }
}
