import Foundation
import Holdfast
import HoldfastCommands
import HoldfastJSONStore
import HoldfastSQLiteStore
import HoldfastStore
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Commands that change or create a store are killed at random instants.
@Suite(.serialized) struct CommandKillTests {
  private static let isFull = ProcessInfo.processInfo.environment["HOLDFAST_TESTS"] == "full"
  private static let rounds = isFull ? 60 : 6
  private static let formerCount = 10
  private static let importedCount = isFull ? 2_000 : 500

  private func model() throws -> ManagedObjectModel {
    try ManagedObjectModel(entities: [EntityDescription("Number", attributes: [.init("value", .integer64)])])
  }

  private func fill(_ description: StoreDescription, _ count: Int) throws {
    let coordinator = try PersistentStoreCoordinator(model: model(), store: description)
    let context = try ManagedObjectContext(coordinator: coordinator, classes: [])
    for value in 0..<count { try context.insert(entityNamed: "Number").setValue(.int64(Int64(value)), forKey: "value") }
    try context.save()
    try coordinator.close()
  }

  private func objectCount(_ path: String) throws -> Int { try StoreSource(path: path).check().objectCount }

  private func start(_ arguments: [String], in fixture: Fixture) throws -> Process {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent().appendingPathComponent("holdfast")
    process.arguments = arguments
    process.currentDirectoryURL = fixture.folder
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    try process.run()
    return process
  }

  /// Runs a command, and kills it after a time; nil for never. Returns its duration in seconds, and whether it was killed.
  private func run(_ arguments: [String], in fixture: Fixture, killingAfter seconds: Double?) throws -> (duration: Double, isKilled: Bool) {
    let begin = ContinuousClock.now, process = try start(arguments, in: fixture)
    if let seconds {
      usleep(UInt32(seconds * 1e6))
      kill(process.processIdentifier, SIGKILL)
    }
    process.waitUntilExit()
    let isKilled = process.terminationReason == .uncaughtSignal
    if !isKilled { #expect(process.terminationStatus == 0, "\(arguments)") }
    return ((ContinuousClock.now - begin) / .seconds(1), isKilled)
  }

  @Test(arguments: Fixture.Kind.allCases) func anImportThatIsKilledAddsAllObjectsOrNone(kind: Fixture.Kind) throws {
    let fixture = try Fixture(), source = fixture.path("source.json")
    try fill(.json(at: source), Self.importedCount)
    try StoreSource(path: source).export(to: fixture.path("objects.json"))
    var (shortest, kills, done, round) = (Double.infinity, 0, 0, 0)
    // Further rounds follow until one was killed. All may end before, if the machine becomes faster with each of them.
    while round <= Self.rounds || kills == 0 {
      let path = fixture.path("store\(round)")
      try fill(kind.description(at: path), Self.formerCount)
      // The first round shows how long it takes. It may be much slower than the others, which then end before they are killed.
      let moment = round == 0 ? nil : Double.random(in: 0...shortest)
      let (duration, isKilled) = try run(["store", "import", path, "objects.json", "--yes"], in: fixture, killingAfter: moment)
      if !isKilled { shortest = min(shortest, duration) }
      kills += isKilled ? 1 : 0
      let count = try objectCount(path)
      #expect(count == Self.formerCount + Self.importedCount || (isKilled && count == Self.formerCount), "\(kind), \(count) objects")
      if count > Self.formerCount { done += 1 }
      // The copy that was made before is complete, if it exists.
      let backup = path + "-backup"
      if FileManager.default.fileExists(atPath: backup) {
        #expect(try objectCount(backup) == Self.formerCount)
      } else {
        #expect(count == Self.formerCount, "\(kind)")
      }
      // It can be imported afterwards.
      try StoreSource.importObjects(into: path, from: fixture.path("objects.json"))
      #expect(try objectCount(path) == count + Self.importedCount)
      round += 1
    }
    #expect(done > 0)
    print("\(kind): \(kills) imports were killed, \(done) were done")
  }

  /// A new store appears with all objects, or is empty.
  @Test(arguments: Fixture.Kind.allCases) func aConversionThatIsKilledLeavesNoStoreOrAllOfIt(kind: Fixture.Kind) throws {
    let fixture = try Fixture(), source = fixture.path(kind == .json ? "source.sqlite" : "source.json")
    try fill(kind == .json ? .sqlite(at: source) : .json(at: source), Self.importedCount)
    let ending = kind == .sqlite ? "sqlite" : kind == .json ? "json" : kind == .xml ? "xml" : "binary"
    var (shortest, kills, done, round) = (Double.infinity, 0, 0, 0)
    while round <= Self.rounds || kills == 0 {
      let name = "copy\(round).\(ending)", path = fixture.path(name)
      let moment = round == 0 ? nil : Double.random(in: 0...shortest)
      let (duration, isKilled) = try run(["store", "convert", source, path], in: fixture, killingAfter: moment)
      if !isKilled { shortest = min(shortest, duration) }
      kills += isKilled ? 1 : 0
      let isThere = FileManager.default.fileExists(atPath: path)
      #expect(isThere || isKilled)
      if isThere {
        done += 1
        #expect(try objectCount(path) == Self.importedCount, "\(kind)")
      }
      #expect(try objectCount(source) == Self.importedCount)
      round += 1
    }
    #expect(done > 0)
    print("\(kind): \(kills) conversions were killed, \(done) were done")
  }

  /// The bug: a killed export left a file or folder without all objects, and import accepted the folder.
  @Test(arguments: ExchangeFormat.allCases) func anExportAppearsWithAllObjects(format: ExchangeFormat) throws {
    let fixture = try Fixture(), source = fixture.path("source.json"), output = fixture.path("objects"), count = 5_000
    try fill(.json(at: source), count)
    try Data(try model().canonicalJSON()).write(to: URL(fileURLWithPath: fixture.path("model.json")))
    let process = try start(["store", "export", source, output, "--format", format.rawValue], in: fixture)
    while process.isRunning && !FileManager.default.fileExists(atPath: output) { usleep(100) }
    if process.isRunning { kill(process.processIdentifier, SIGKILL) }
    process.waitUntilExit()
    let copy = fixture.path("copy.json")
    #expect(try StoreSource.importObjects(into: copy, modelPath: fixture.path("model.json"), from: output) == count)
  }
}
