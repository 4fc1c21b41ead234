import BenchmarkRunner
import Testing

@Suite struct MeasuringProcessTests {
  struct Broken: Error, CustomStringConvertible {
    let description = "the disk is full"
  }

  static let stores = [
    StoreUnderTest(
      "memory",
      workloads: [
        Workload("READ", .people, .needsNoFile) {
          var figure = Mark.begin().figure("W1", check: UInt64($0.size))
          figure.requests = 3
          $0.report(figure)
        },
        Workload("W9", .people, .needsNoFile) { _ in throw Broken() },
        Workload("load", .packages, .needsNoFile) { _ = try $0.packages() },
      ])
  ]

  /// Runs a workload and returns the status and the error output.
  func run(_ store: String, _ input: MeasurementInput = .people, _ workload: String) -> (status: Int32, text: String) {
    var text = ""
    let process = MeasuringProcess(stores: Self.stores) { text += $0 }
    let status = process.run(store: store, input: input, workload: workload, WorkloadContext(path: "-", size: 5) { _ in })
    return (status, text)
  }

  @Test("An existing workload is run and its figures are passed on")
  func figures() {
    let context = WorkloadContext(path: "-", size: 5) { figure in
      #expect(figure.workload == "W1")
      #expect(figure.check == 5)
      #expect(figure.requests == 3)
    }
    #expect(MeasuringProcess(stores: Self.stores).run(store: "memory", input: .people, workload: "READ", context) == 0)
  }

  @Test("An unknown store exits with 64 and lists the known ones")
  func noStore() {
    let result = run("floppy", .people, "W1")
    #expect(result.status == 64)
    #expect(result.text == "The store floppy doesn't exist. Stores: memory.")
  }

  @Test("An unknown workload exits with 64 and lists the known ones")
  func noWorkload() {
    let result = run("memory", .people, "W1")
    #expect(result.status == 64)
    #expect(result.text == "The store memory has no workload W1 on people. Workloads: READ, W9.")
    #expect(run("memory", .packages, "READ").status == 64)
  }

  @Test("A failing workload exits with 1 and prints the reason")
  func failure() {
    let result = run("memory", .people, "W9")
    #expect(result.status == 1)
    #expect(result.text == "memory failed in W9 on people: the disk is full")
  }

  @Test("A package workload without packages prints what to pass")
  func noPackages() {
    #expect(run("memory", .packages, "load").text.contains("Pass --packages and --plan"))
  }
}
