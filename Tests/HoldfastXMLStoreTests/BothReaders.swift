import HoldfastXMLStore
import Testing

/// Runs each test twice: once as it is, and once with libxml2 for all objects.
struct BothReaders: SuiteTrait, TestTrait, TestScoping {
  var isRecursive: Bool { true }

  func provideScope(for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void) async throws {
    try await function()
    if testCase != nil { try await WrittenObjects.$areRead.withValue(false) { try await function() } }
  }
}

extension Trait where Self == BothReaders {
  static var bothReaders: Self { BothReaders() }
}
