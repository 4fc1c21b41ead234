import HoldfastStore
import HoldfastStoreConformance
import TestSupport

// The examples call the kit with its default time limit, which a busy machine could exceed. In these tests, they call the following methods
// instead, which have no limit: the compiler prefers a method without default values.

extension StoreConformanceCase {
  func run(on harness: any StoreHarness) async throws { try await run(on: harness, timeLimit: nil) }
}

extension StoreConformance {
  static func undeclaredAbilities(of harness: any StoreHarness) async -> [String] {
    await undeclaredAbilities(of: harness, timeLimit: nil)
  }
}

// The stores of the examples pass all cases in suites of their own. So the examples run a random case of each rule in the everyday tests:
// this method hides that of the kit.

extension StoreConformance {
  static func cases(for capabilities: StoreCapabilities) -> [StoreConformanceCase] { share(for: capabilities) }
}
