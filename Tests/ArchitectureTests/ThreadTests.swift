import Foundation
import TestSupport
import Testing

@Suite struct ThreadTests {
  /// The names and bytes of the tests' files, without this one.
  private static func sources() throws -> [(name: String, bytes: [UInt8])] {
    let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    let files = try #require(FileManager.default.enumerator(at: tests, includingPropertiesForKeys: nil)).compactMap { $0 as? URL }
    let sources = files.filter { $0.pathExtension == "swift" && $0.lastPathComponent != "ThreadTests.swift" }
    #expect(sources.count > 100)
    return sources.map { (name: $0.lastPathComponent, bytes: TestFile.read($0.path)) }
  }

  /// Blocks of the global queue share the threads of Swift's tasks. Blocks that waited there have stopped the whole run, so tests use
  /// `startThread` and `onThread`.
  @Test func noTestRunsBlocksOnTheThreadsOfTasks() throws {
    let calls = ["DispatchQueue.global(", "DispatchQueue.concurrentPerform"]
    let found = try Self.sources().filter { source in calls.contains { TestBytes.contain(source.bytes, $0) } }
    #expect(found.map(\.name).filter { $0 != "Threads.swift" } == [])
  }

  /// Each test of a serialized suite waits behind all tests that haven't begun, unless the suite has threads of its own.
  @Test func serializedSuitesHaveThreadsOfTheirOwn() throws {
    let serialized = try Self.sources().filter { TestBytes.contain($0.bytes, "@Suite(.serialized") }
    #expect(serialized.count > 10)
    #expect(serialized.filter { TestBytes.contain($0.bytes, "@Suite(.serialized)") }.map(\.name) == [])
  }

  /// While an ended process waits for the task of its exit test, which waits behind all other tests, a thread of Swift Testing uses a
  /// processor: it asks in a loop whether a process has ended.
  @Test func exitTestsHaveThreadsOfTheirOwn() throws {
    let withExits = try Self.sources().filter { TestBytes.contain($0.bytes, "(processExitsWith:") }
    #expect(withExits.count > 40)
    #expect(withExits.filter { !TestBytes.contain($0.bytes, ".ownThreads") }.map(\.name) == [])
  }
}
