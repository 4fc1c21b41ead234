import BenchmarkData
import BenchmarkStores
import Foundation
import Testing

@testable import BenchmarkRunner

/// A comparison of real stores, one of which changes what it saves.
@Suite struct WrongStoreTests {
  let folder = NSTemporaryDirectory() + "wrong-store-" + UUID().uuidString

  /// Compares stores with some people and a small archive, each workload in this process.
  func compare(_ stores: [StoreUnderTest], people: Int = 150) throws -> (status: Int32, complaints: String) {
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    try StoreBench.archive.write(toFile: folder + "/input", atomically: true, encoding: .utf8)
    var options = ComparisonOptions()
    options.sizes = [people]
    options.inputs = [.people, .packages]
    options.packages = .file(folder + "/input")
    options.rounds = 1
    options.outputFolder = folder + "/out"
    var complaints = ""
    var comparison = Comparison(
      options, stores: stores,
      launch: { step, path, files in
        let figures = try StoreBench.run(step.workload, path, files, people, step.isCounting)
        return ChildProcess.Result(status: 0, output: figures.map { $0.line + "\n" }.joined(), seconds: 1)
      }, print: { _ in }, complain: { complaints += $0 })
    return (comparison.run(), complaints)
  }

  /// The bug: with fewer than 20 people, the saves report no figures, which failed the comparison.
  @Test("Real stores agree, also with too few people for the saves", arguments: [1, 19, 150])
  func agreement(_ people: Int) throws {
    let outcome = try compare(StoreBench.all, people: people)
    #expect(outcome.status == 0, "\(outcome.complaints)")
  }

  @Test("One person with a wrong age in one store fails the comparison, which names the store")
  func wrongAge() throws {
    let sqlite = StoreKind.sqlite.wrapping { AlteringStore($0) }
    let outcome = try compare([.resident(.memory), .persistent(sqlite)])
    #expect(outcome.status == 1)
    #expect(outcome.complaints.contains("The stores disagree in W2 on 150 people: sqlite returned"))
    #expect(!outcome.complaints.contains("memory returned"))
  }

  /// The bug: the checksums of changes are those of the objects in memory, so a store that saves no changes was found by nothing.
  @Test("One changed person with a wrong age in a store fails the comparison", arguments: ["memory", "json", "sqlite"])
  func wrongChange(_ name: String) throws {
    func wrong(_ kind: StoreKind) -> StoreKind { kind.wrapping { AlteringStore($0, altersUpdates: true) } }
    let stores: [StoreUnderTest] =
      switch name {
      case "memory": [.resident(wrong(.memory)), .persistent(.sqlite)]
      case "json": [.resident(.memory), .wholeFile(wrong(.json))]
      default: [.resident(.memory), .persistent(wrong(.sqlite))]
      }
    let outcome = try compare(stores)
    #expect(outcome.status == 1)
    // W6 and the saves of few objects.
    for workload in name == "sqlite" ? ["W6", "SAVES"] : ["READ", "SAVES"] {
      #expect(outcome.complaints.contains("\(name), 150 people, \(workload), round 1: In the store, the ages of "), "\(outcome.complaints)")
    }
  }

  @Test("The same without files")
  func wrongAgeInMemory() throws {
    let memory = StoreKind.memory.wrapping { AlteringStore($0) }
    let outcome = try compare([.resident(memory), .persistent(.sqlite)])
    #expect(outcome.status == 1)
    #expect(outcome.complaints.contains("The stores disagree in W2 on 150 people: memory returned"))
    #expect(!outcome.complaints.contains("sqlite returned"))
  }
}
