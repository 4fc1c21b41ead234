import Foundation
import TestSupport
import Testing

/// Compares the numbers of the reliability battery in the tests with the table in `Tests/ReliabilityTests/README.md`.
@Suite struct BatteryPageTests {
  private static let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()

  @Test func thePageListsEachNumberOfTheBatteryWithItsSuites() throws {
    let checks = suitesInTests(), rows = try suitesOnPage()
    #expect(checks["RE1"] != nil, "No numbers were found in the tests.")
    #expect(Set(rows.keys) == Set(checks.keys))
    for (number, suites) in checks {
      if let listed = rows[number] { #expect(listed == suites, "The row of \(number) lists other suites than the tests.") }
    }
  }

  /// The suites with functions of each number. A suite has the name of its file.
  private func suitesInTests() -> [String: Set<String>] {
    var suites: [String: Set<String>] = [:]
    let files = FileManager.default.enumerator(at: Self.tests, includingPropertiesForKeys: nil)
    for file in (files?.allObjects ?? []).compactMap({ $0 as? URL }) where file.pathExtension == "swift" {
      // A search of all files with a regular expression takes long.
      let bytes = TestFile.read(file.path), keyword = Array("func ".utf8)
      for place in TestBytes.places(of: keyword + [UInt8(ascii: "R")], in: bytes) {
        let name = String(decoding: bytes[(place + keyword.count)...].prefix(12), as: UTF8.self)
        guard let match = name.prefixMatch(of: /(R[A-Z][0-9]+)_/) else { continue }
        suites[String(match.output.1), default: []].insert(file.deletingPathExtension().lastPathComponent)
      }
    }
    return suites
  }

  /// The suites in the row of each number.
  private func suitesOnPage() throws -> [String: Set<String>] {
    let page = try String(contentsOf: Self.tests.appendingPathComponent("ReliabilityTests/README.md"), encoding: .utf8)
    var suites: [String: Set<String>] = [:]
    for line in page.split(separator: "\n") {
      let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
      guard cells.count == 4, let number = cells.first, number.wholeMatch(of: /R[A-Z][0-9]+/) != nil else { continue }
      if suites[number] != nil { Issue.record("\(number) has two rows.") }
      suites[number] = Set(cells[3].matches(of: /`([A-Za-z0-9]+)`/).map { String($0.output.1) })
    }
    return suites
  }
}
