import Foundation
import Testing

@testable import BenchmarkRunner

/// The schema that is published says what is written.
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

  @Test("What a comparison writes fits the schema")
  func fits() throws { #expect(try faults() == []) }

  @Test("What it does not write does not", arguments: ["schema", "date", "summaries", "samples", "growth", "agreement"])
  func doesNot(_ key: String) throws {
    #expect(try !faults { $0[key] = nil }.isEmpty)
    #expect(try !faults { $0[key] = ["x"] }.isEmpty)
    #expect(try !faults { $0["other"] = 1 }.isEmpty)
  }
}
