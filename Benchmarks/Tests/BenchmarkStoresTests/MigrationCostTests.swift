import BenchmarkStores
import Foundation
import Testing

/// The measurements of migrations do what they say.
@Suite struct MigrationCostTests {
  private func inFolder(_ body: (String) throws -> Void) throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("migration-cost-" + UUID().uuidString)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    try body(folder.path)
  }

  @Test("Each migration reaches all people", arguments: MigrationCost.stores)
  func migrations(_ store: String) throws {
    for step in MigrationCost.Step.allCases where step != .conversion && (store == "sqlite" || !step.isSQL) {
      try inFolder { folder in
        let cost = MigrationCost(store, at: folder + "/people")
        try cost.fill(300)
        let measured = try cost.measure(step)
        #expect(measured.peopleCount == 300, "\(step)")
        #expect(measured.seconds > 0)
      }
    }
  }

  @Test("Each conversion copies all people", arguments: MigrationCost.stores)
  func conversions(_ store: String) throws {
    try inFolder { folder in
      let cost = MigrationCost(store, at: folder + "/people")
      try cost.fill(300)
      for destination in MigrationCost.stores {
        #expect(try cost.measure(.conversion, to: (destination, folder + "/" + destination)).peopleCount == 300, "\(destination)")
      }
    }
  }
}
