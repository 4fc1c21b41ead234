import Foundation
import Testing

@testable import BenchmarkRunner

/// The published schema describes the results that a comparison writes.
@Suite struct ResultsSchemaTests {
  private let schema: [String: Any]

  init() throws {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    let data = try Data(contentsOf: root.appendingPathComponent("results.schema.json"))
    schema = try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
  }

  private func faults(_ change: (inout [String: Any]) -> Void = { _ in }) throws -> [String] {
    let outcome = try ComparisonTests().compare(rounds: 2, sizes: [150, 2000])
    change(&outcome.report)
    return SchemaCheck(schema).faults(outcome.report, schema, "results")
  }

  @Test("The results of a comparison conform to the schema")
  func fits() throws { #expect(try faults() == []) }

  @Test("Other results don't", arguments: ["schema", "date", "summaries", "samples", "growth", "agreement"])
  func doesNot(_ key: String) throws {
    #expect(try !faults { $0[key] = nil }.isEmpty)
    #expect(try !faults { $0[key] = ["x"] }.isEmpty)
    #expect(try !faults { $0["other"] = 1 }.isEmpty)
  }
}
