import Foundation
import TestSupport
import Testing

/// Rules for platforms on which no test runs.
@Suite struct PlatformTests {
  private static let libraries: Set = ["Glibc", "Musl", "Android", "Darwin"]

  private static let root = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

  /// The paths and bytes of the library's, the command's and the examples' Swift files.
  private static func sources() throws -> [(path: String, bytes: [UInt8])] {
    let files = try ["Sources", "Tools/Sources", "Examples/Sources"].flatMap { folder in
      try #require(FileManager.default.enumerator(at: root.appendingPathComponent(folder), includingPropertiesForKeys: nil))
        .compactMap { $0 as? URL }
    }
    let sources = files.filter { $0.pathExtension == "swift" }
    #expect(sources.count > 500)
    return sources.map { ($0.path, TestFile.read($0.path)) }
  }

  @Test func aFileThatImportsTheCLibraryOfOnePlatformImportsThatOfEveryPlatform() throws {
    var count = 0
    for (path, bytes) in try Self.sources() where Self.libraries.contains(where: { TestBytes.contain(bytes, "import \($0)\n") }) {
      let missing = Self.libraries.filter { !TestBytes.contain(bytes, "import \($0)\n") }
      #expect(missing == [], "\(path)")
      count += 1
    }
    #expect(count > 30)
  }

  /// A thread is a number with glibc, but a pointer on Darwin and with Musl, which isn't `Sendable`.
  @Test func onlyThreadIDUsesTheSystemsThreads() throws {
    let users = try Self.sources().filter { TestBytes.contain($0.bytes, "pthread_self") || TestBytes.contain($0.bytes, "pthread_t") }
    #expect(users.map { URL(fileURLWithPath: $0.path).lastPathComponent } == ["ThreadID.swift"])
  }

  /// Android's C library doesn't have it.
  @Test func noFileCallsGetdtablesize() throws {
    #expect(try Self.sources().filter { TestBytes.contain($0.bytes, "getdtablesize(") }.map(\.path) == [])
  }

  /// The spans of an `Array` need macOS 26. Those of a `ContiguousArray`, which the two files use, don't.
  @Test func noFileUsesTheSpanOfAnArray() throws {
    let uses = [".span\n", ".span.", ".span)", ".span,", ".mutableSpan"]
    let users = try Self.sources().filter { source in uses.contains { TestBytes.contain(source.bytes, $0) } }
    #expect(users.map { URL(fileURLWithPath: $0.path).lastPathComponent }.sorted() == ["BinaryWriter.swift", "LinkDigest.swift"])
    #expect(users.allSatisfy { TestBytes.contain($0.bytes, "ContiguousArray") })
  }

  /// The headers of the oldest SQLite that the store accepts, 3.31, don't have them. Those of RHEL 9 are of 3.34.
  @Test(arguments: ["SQLITE_OPEN_SUPER_JOURNAL", "SQLITE_OPEN_EXRESCODE"])
  func aConstantThatOlderHeadersLackIsDefined(name: String) throws {
    #expect(try Self.sources().contains { TestBytes.contain($0.bytes, name) })
    let shim = TestFile.read(Self.root.appendingPathComponent("Sources/CHoldfastSQLite/shim.h").path)
    #expect(TestBytes.contain(shim, "#ifndef \(name)\n#define \(name) "))
  }
}
