import BenchmarkData
import BenchmarkRunner
import BenchmarkStores
import Testing

/// Every workload on the real stores returns the expected answer for its input.
@Suite struct StoreWorkloadTests {
  @Test("The workloads on people return the checksums of the floors", arguments: [150, 1000])
  func people(_ count: Int) throws {
    let people = PeopleDataset(count: count)
    let expected = PeoplePhase.allCases.reduce(into: [String: UInt64]()) { expected, phase in
      for name in [phase.rawValue] + phase.variants { expected[name] = people.expected(phase) }
    }
    .merging(SavePhase.phases(of: count).map { ($0.rawValue, people.expected($0)) }) { first, _ in first }
    for store in StoreBench.all {
      let figures = try StoreBench().run(store, .people, people: count)
      #expect(Set(figures.map(\.workload)).isSuperset(of: PeoplePhase.allCases.map(\.rawValue)), "\(store.name)")
      for figure in figures { #expect(figure.check == expected[figure.workload], "\(store.name) \(figure.workload)") }
    }
  }

  @Test("The workloads on packages return the checksums of the input")
  func packages() throws {
    let bench = try StoreBench(packages: StoreBench.archive)
    let index = try bench.packages()
    for store in StoreBench.all {
      let figures = try bench.run(store, .packages)
      #expect(figures.map(\.workload) == PackagePhase.allCases.map(\.rawValue), "\(store.name)")
      for figure in figures {
        let phase = try #require(PackagePhase(rawValue: figure.workload))
        #expect(figure.check == index.expected(phase, PackagePlan(index: index)), "\(store.name) \(figure.workload)")
      }
    }
  }

  @Test("The workload on lists returns the same orders as an array", arguments: [2, 500])
  func lists(_ count: Int) throws {
    let plan = ListPlan(count: count)
    for store in StoreBench.all {
      let figures = try StoreBench().run(store, .lists, people: count)
      #expect(figures.map(\.workload) == ListPhase.allCases.map(\.rawValue), "\(store.name)")
      for (figure, phase) in zip(figures, ListPhase.allCases) { #expect(figure.check == plan.expected(phase), "\(store.name) \(phase)") }
    }
  }

  /// The counts include other tests in this process, so these are minimums. Thresholds check the exact counts of a store.
  @Test("Allocations and synchronisations are counted")
  func operations() throws {
    for store in StoreBench.all {
      let counted = try StoreBench().run(store, .people, people: 200, isCounting: true)
      #if os(Linux)
        let save = try #require(counted.first { $0.workload == "S10" }?.synchronizations)
        #expect(save >= ["json": 2, "xml": 2, "binary": 2, "sqlite": 1][store.name] ?? 0, "\(store.name)")
      #endif
      #if canImport(Glibc)
        #expect(try #require(counted.first { $0.workload == "W2" }?.allocations) > 200, "\(store.name)")
      #endif
    }
  }

  @Test("Requests and statements are reported if they are counted, and only then")
  func counts() throws {
    for store in StoreBench.all {
      let timed = try StoreBench().run(store, .people, people: 1000)
      #expect(timed.allSatisfy { $0.requests == nil && $0.statements == nil })
      let counted = try StoreBench().run(store, .people, people: 1000, isCounting: true)
      #expect(counted.allSatisfy { ($0.statements != nil) == (store.name == "sqlite") })
      // All rows arrive with one request, and the rows contain what the employers' keys need. A store with resident rows has had one
      // request for a person before.
      #expect(counted.first { $0.workload == "W2" }?.requests == (["json", "xml", "binary"].contains(store.name) ? 2 : 1), "\(store.name)")
      #expect(counted.first { $0.workload == "W8" }?.requests == 2, "\(store.name)")
      // Only the second opening counts, which costs as many requests and statements as the first.
      guard store.name == "sqlite" else { continue }
      let (first, again) = (counted.first { $0.workload == "W3" }, counted.first { $0.workload == "W3again" })
      #expect(again?.requests == 1 && again?.requests == first?.requests && again?.statements == first?.statements)
    }
  }
}
