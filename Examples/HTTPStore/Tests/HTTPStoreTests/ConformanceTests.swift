import Foundation
import HTTPService
import HTTPStore
import HoldfastStore
import HoldfastStoreConformance
import Testing

/// Stores of the same service.
struct HTTPHarness: StoreHarness {
  let service: TestService

  var capabilities: StoreCapabilities { HTTPHarness.capabilities }

  static var capabilities: StoreCapabilities { StoreDescription.http(at: "http://localhost/unused").makeStore().capabilities }

  func makePlace() -> StorePlace {
    let url = service.url("store-\(UUID().uuidString)")
    return StorePlace(.http(at: url), readOnly: .http(at: url, isReadOnly: true))
  }
}

@Suite struct ConformanceTests {
  /// One service for all cases, because each has a store of its own.
  private static let service = Task { try await TestService.start() }

  @Test(arguments: StoreConformance.cases(for: HTTPHarness.capabilities))
  func contract(_ rule: StoreConformanceCase) async throws {
    try await rule.run(on: HTTPHarness(service: Self.service.value), timeLimit: nil)
  }

  @Test func everyAbilityIsDeclared() async throws {
    let harness = try await HTTPHarness(service: Self.service.value)
    #expect(await StoreConformance.undeclaredAbilities(of: harness, timeLimit: nil) == [])
  }
}
