import ArgumentParser
import BenchmarkRunner
import BenchmarkStores

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Measures migrations, conversions, and opening Core Data's files.
struct Migrations: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Measure migrations beside bare SQL, conversions between all stores, and opening Core Data's files.",
    discussion: """
      Prints the tables of the section "Migration and copies" of the article on costs. Each step runs in a process of its own. Times are wall \
      times, the least of all rounds. Memory is the peak of the process, the largest of all rounds; a process that does nothing has some \
      megabytes.
      """)

  @Option(help: "The number of people in migrations.") var size = 1_000_000
  @Option(help: "The number of people in conversions.") var conversionSize = 100_000
  @Option(help: "The number of people in plans with code.") var planSize = 100_000
  @Option(help: "The number of rounds.") var rounds = 3
  @Option(help: "A SQLite file of Core Data. A copy of it is opened. May be repeated.", completion: .file()) var coreData: [String] = []
  @Option(help: "The model, or the folder of models, of Core Data's files without a model cache.", completion: .file()) var models: String?
  @Option(help: "The number of times that a file of Core Data is opened.") var openings = 200

  func validate() throws {
    guard size > 0, conversionSize > 0, planSize > 0, rounds > 0, openings > 0 else {
      throw ValidationError("The sizes and the numbers of rounds and openings must be greater than 0.")
    }
  }

  func run() throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("holdfast-migrations-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    try printSQLite(folder.path)
    try printStores(folder.path)
    try printConversions(folder.path)
    if !coreData.isEmpty { try printOpenings(folder.path) }
  }

  // MARK: Steps

  private struct Measured {
    var seconds = Double.infinity
    var megabytes = 0.0

    /// The megabytes, if the system reports them.
    var memory: String { megabytes > 0 ? "\(Int(megabytes.rounded()))" : "–" }
  }

  /// Runs a step on copies of a store.
  private func measure(
    _ step: MigrationCost.Step, _ store: String, of original: String, _ count: Int, to destination: String? = nil
  ) throws -> Measured {
    var measured = Measured()
    let path = original + ".work", copy = original + ".copy"
    defer { for file in [path, copy] { try? StoreFiles(file).remove() } }
    for _ in 0..<rounds {
      try StoreFiles(original).copy(to: StoreFiles(path))
      try StoreFiles(copy).remove()
      let arguments = ["migration-step", step.rawValue, store, path] + (destination.map { [$0, copy] } ?? [])
      let result = try ChildProcess(ChildProcess.ownPath(), arguments, timeout: 3_600).run()
      let numbers = result.output.split(whereSeparator: \.isWhitespace).compactMap { Double($0) }
      guard result.status == 0, numbers.count == 3 else {
        throw ValidationError("The step \(step.rawValue) failed on \(store) with status \(result.status).")
      }
      guard Int(numbers[2]) == count else {
        throw ValidationError("After the step \(step.rawValue), \(store) has \(Int(numbers[2])) of \(count) people as they should be.")
      }
      measured = Measured(seconds: min(measured.seconds, numbers[0]), megabytes: max(measured.megabytes, numbers[1]))
    }
    return measured
  }

  private func filled(_ store: String, _ count: Int, _ folder: String) throws -> String {
    let path = folder + "/people\(count).\(store)"
    if !StoreFiles(path).exists { try MigrationCost(store, at: path).fill(count) }
    return path
  }

  // MARK: Tables

  private func printSQLite(_ folder: String) throws {
    let path = try filled("sqlite", size, folder)
    print("\(size) people, SQLite:\n\n| | seconds | peak memory in MB |\n|---|---|---|")
    let rows: [(MigrationCost.Step, String)] = [
      (.copyInSQL, "a new attribute with a default value in bare SQL: a new table, one `INSERT … SELECT`, the index"),
      (.migration, "Holdfast"), (.updateInSQL, "`ALTER TABLE ADD COLUMN` and `UPDATE` in bare SQL"),
      (.columnInSQL, "a new attribute without a value in bare SQL"), (.optionalAttribute, "Holdfast"),
    ]
    for (step, title) in rows { print("| \(title) | \(text(try measure(step, "sqlite", of: path, size))) |") }
  }

  private func printStores(_ folder: String) throws {
    print("\nSeconds, and peak memory in MB; \(size) people, and \(planSize) for plans:\n")
    print("| | \(MigrationCost.stores.joined(separator: " | ")) |\n|---|\(MigrationCost.stores.map { _ in "---|" }.joined())")
    let rows: [(MigrationCost.Step, String, Int)] = [
      (.migration, "a new attribute with a default value", size), (.linkMigration, "a relationship that becomes to-many", size),
      (.plan, "a plan with code", planSize),
    ]
    for (step, title, count) in rows {
      let cells = try MigrationCost.stores.map { store in
        text(try measure(step, store, of: filled(store, count, folder), count), separator: "; ")
      }
      print("| \(title) | \(cells.joined(separator: " | ")) |")
    }
  }

  private func printConversions(_ folder: String) throws {
    print("\nConversions of \(conversionSize) people: objects per second, and peak memory in MB\n")
    print("| from, to | \(MigrationCost.stores.joined(separator: " | ")) |\n|---|\(MigrationCost.stores.map { _ in "---|" }.joined())")
    for store in MigrationCost.stores {
      let path = try filled(store, conversionSize, folder)
      let cells = try MigrationCost.stores.map { destination in
        let measured = try measure(.conversion, store, of: path, conversionSize, to: destination)
        return "\(Int((Double(conversionSize) / measured.seconds / 1e3).rounded())),000; \(measured.memory)"
      }
      print("| \(store) | \(cells.joined(separator: " | ")) |")
    }
  }

  private func printOpenings(_ folder: String) throws {
    print("\nOpening and closing a store of Core Data, in milliseconds, the least of \(openings) times:\n")
    print("| entities | plain SQLite | with the model | with the model from the store's own cache |\n|---|---|---|---|")
    for (place, file) in coreData.enumerated() {
      let copy = folder + "/CoreData\(place).sqlite"
      try StoreFiles(file).copy(to: StoreFiles(copy))
      let opening = try CoreDataOpening(copy, modelsAt: models), times = try opening.milliseconds(rounds: openings)
      let cells = [times.plain, times.withModel].map { text($0) } + [times.withCache.map { text($0) } ?? "–"]
      print("| \(opening.entityCount) | \(cells.joined(separator: " | ")) |")
    }
  }

  private func text(_ measured: Measured, separator: String = " | ") -> String {
    text(measured.seconds) + separator + measured.memory
  }

  /// Two digits or more.
  private func text(_ value: Double) -> String {
    let scale = value < 0.1 ? 10_000.0 : value < 10 ? 100 : 10
    return "\((value * scale).rounded() / scale)"
  }
}

/// The measuring process of one step.
struct MigrationStep: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "migration-step", abstract: "Run one step of the measurement of migrations.", shouldDisplay: false)

  @Argument var step: String
  @Argument var store: String
  @Argument var path: String
  @Argument var destinationStore: String?
  @Argument var destination: String?

  func validate() throws {
    guard MigrationCost.Step(rawValue: step) != nil, MigrationCost.stores.contains(store) else {
      throw ValidationError("The step \(step) or the store \(store) doesn't exist.")
    }
  }

  func run() throws {
    guard let step = MigrationCost.Step(rawValue: step) else { return }
    let place = destinationStore.flatMap { store in destination.map { (store: store, path: $0) } }
    let cost = try MigrationCost(store, at: path).measure(step, to: place)
    print("\(cost.seconds) \(cost.peakMegabytes) \(cost.peopleCount)")
  }
}
