import Foundation
import Testing

@Suite struct ThreadTests {
  /// Blocks of the global queue share the threads of Swift's tasks. Blocks that waited there have stopped the whole run, so tests use
  /// `startThread` and `onThread`.
  @Test func noTestRunsBlocksOnTheThreadsOfTasks() throws {
    let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    let files = try #require(FileManager.default.enumerator(at: tests, includingPropertiesForKeys: nil)).compactMap { $0 as? URL }
    let sources = files.filter { $0.pathExtension == "swift" }
    let found = try sources.filter { try String(contentsOf: $0, encoding: .utf8).contains(/DispatchQueue\.(global\(|concurrentPerform)/) }
    #expect(sources.count > 100)
    #expect(found.map(\.lastPathComponent).filter { $0 != "ThreadTests.swift" && $0 != "Threads.swift" } == [])
  }
}
