import BenchmarkStores
import Foundation
import Holdfast
import HoldfastBinaryStore
import HoldfastJSONStore
import HoldfastSQLiteStore
import HoldfastStore
import HoldfastXMLStore
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

  /// The bug: only the number of people was compared, so a migration could lose every link.
  @Test("People without their company aren't counted where links are migrated or copied", arguments: MigrationCost.stores)
  func lostLinks(_ store: String) throws {
    try inFolder { folder in
      let path = folder + "/people", cost = MigrationCost(store, at: path)
      try cost.fill(300)
      let description: StoreDescription =
        switch store {
        case "json": .json(at: path)
        case "xml": .xml(at: path)
        case "binary": .binary(at: path)
        default: .sqlite(at: path)
        }
      let model = try #require(try PersistentStoreCoordinator.cachedModel(for: description))
      let coordinator = try PersistentStoreCoordinator(model: model, store: description)
      let context = try ManagedObjectContext(coordinator: coordinator, classes: [])
      for person in try context.fetch(FetchRequest<ManagedObject>(entityName: "Person")).prefix(10) {
        try person.setValue(nil as ManagedObject?, forKey: "company")
      }
      try context.save()
      try coordinator.close()
      #expect(try cost.measure(.conversion, to: (store, folder + "/copy")).peopleCount == 290)
      #expect(try cost.measure(.linkMigration).peopleCount == 290)
    }
  }
}
