internal import BenchmarkData
internal import BenchmarkRunner
internal import Holdfast
internal import HoldfastStore

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// Compares entire workloads on people of classes with macros and of classes with accessors written by hand, in this process.
public struct ClassCost {
  /// The stores, by name.
  public static let stores = ["memory", "sqlite"]
  /// The workloads.
  public static let workloads = ["W1", "W2", "W5"]

  private let folder: String
  private let people: PeopleDataset

  /// - Parameter folder: A folder for the files, which is created if necessary.
  public init(size: Int, folder: String) throws {
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    self.folder = folder
    people = PeopleDataset(count: size)
  }

  /// The processor times of each workload with macros as ratios to those with accessors by hand: the least of all rounds, in which the
  /// classes take turns. Nil if the program has no macros.
  public func ratios(_ store: String, rounds: Int) throws -> [Double]? {
    #if Macros
      var (handwritten, macros) = ([Double](repeating: .infinity, count: 3), [Double](repeating: .infinity, count: 3))
      for _ in 0..<rounds {
        handwritten = zip(handwritten, try run(PeopleGraph.self, store).map(\.cpuSeconds)).map { min($0, $1) }
        macros = zip(macros, try run(MacroPeopleGraph.self, store).map(\.cpuSeconds)).map { min($0, $1) }
      }
      return zip(macros, handwritten).map { $0 / $1 }
    #else
      return nil
    #endif
  }

  /// The numbers of allocations of each workload, with accessors by hand and with macros. Nil if the program has no macros, or where
  /// allocations can't be counted.
  ///
  /// Call it last: counting slows down the process. It runs everything once before it counts.
  public func allocations(_ store: String) throws -> [(handwritten: Int, macros: Int)]? {
    #if Macros
      OperationCounts.start()
      _ = try (run(PeopleGraph.self, store), run(MacroPeopleGraph.self, store))
      let handwritten = try run(PeopleGraph.self, store).compactMap(\.allocations)
      let macros = try run(MacroPeopleGraph.self, store).compactMap(\.allocations)
      return handwritten.count == 3 && macros.count == 3 ? zip(handwritten, macros).map { ($0, $1) } : nil
    #else
      return nil
    #endif
  }

  /// The checksums of the workloads: those of classes with accessors by hand, and those of classes with macros if the program has them.
  public func checks(_ store: String) throws -> [[UInt64]] {
    var checks = [try run(PeopleGraph.self, store).map(\.check)]
    #if Macros
      checks.append(try run(MacroPeopleGraph.self, store).map(\.check))
    #endif
    return checks
  }

  // MARK: Measuring

  /// What one workload took.
  private struct Measured {
    let cpuSeconds: Double
    let check: UInt64
    let allocations: Int?
  }

  /// Runs the workloads on a new store. All but the first use a new context, and a file is opened again for each.
  private func run<Graph: ComparedGraph>(_ graph: Graph.Type, _ store: String) throws -> [Measured] {
    let path = folder + "/people." + store, model = try Graph.model(), kind: StoreKind = store == "memory" ? .memory : .sqlite
    try StoreFiles(path).remove()
    defer { try? StoreFiles(path).remove() }
    var coordinator = try PersistentStoreCoordinator(model: model, store: kind.describe(path))
    func context() throws -> ManagedObjectContext {
      try ManagedObjectContext(coordinator: coordinator, classes: Graph.classes)
    }
    func reopened() throws -> Graph {
      if store != "memory" {
        try coordinator.close()
        coordinator = try PersistentStoreCoordinator(model: model, store: kind.describe(path))
      }
      return Graph(context: try context(), count: people.count)
    }
    let first = Graph(context: try context(), count: people.count)
    var measured = [
      try measure {
        let objects = first.make(people)
        try first.context.save()
        return withExtendedLifetime(objects) { UInt64(people.count) }
      }
    ]
    for workload in [{ try $0.readAll() }, { try $0.walk() }] as [(Graph) throws -> UInt64] {
      let graph = try reopened()
      measured.append(try measure { try workload(graph) })
    }
    try coordinator.close()
    return measured
  }

  private func measure(_ body: () throws -> UInt64) rethrows -> Measured {
    // Counts are taken inside of the marks, because reading the memory figures allocates.
    let mark = Mark.begin(), before = OperationCounts.now
    let check = try body(), allocations = (OperationCounts.now - before).allocations
    return Measured(cpuSeconds: mark.figure("", check: check).cpuSeconds, check: check, allocations: allocations)
  }
}

/// The operations on people that are compared between classes.
protocol ComparedGraph {
  static var classes: [ManagedObject.Type] { get }
  static func model() throws -> ManagedObjectModel
  var context: ManagedObjectContext { get }

  init(context: ManagedObjectContext, count: Int)

  /// Creates and relates every object of the input, without saving.
  func make(_ people: PeopleDataset) -> [ManagedObject]
  /// Reads every attribute of all persons.
  func readAll() throws -> UInt64
  /// Visits a thousand persons one by one, with employer and friends.
  func walk() throws -> UInt64
}

extension PeopleGraph: ComparedGraph {
  static var classes: [ManagedObject.Type] { PeopleModel.classes }
  static func model() throws -> ManagedObjectModel { try PeopleModel.make() }

  func make(_ people: PeopleDataset) -> [ManagedObject] {
    let objects = insert(people)
    return objects.companies + objects.persons
  }

  func readAll() throws -> UInt64 { read(try all()) }
}
