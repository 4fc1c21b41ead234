import ArgumentParser
import BenchmarkStores

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Measures typed properties and entire workloads of classes with macros, with accessors by hand, and of a Swift class.
struct Properties: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Measure typed properties of a Swift class, and of managed objects by hand and with macros.",
    discussion: """
      Prints the figures of the section "Properties" of the article on costs. First, the nanoseconds of processor time for one access: the \
      least of all rounds, each over an array of 1,000 objects in memory; the allocations per access; and the time for reading an `Int` \
      without the array. Second, the processor times of W1, W2 and W5 of classes with macros as ratios to those of classes by hand, the \
      least of all rounds, and the numbers of allocations. A program that was compiled without macros prints neither column of macros nor \
      ratios; `make properties` compiles it with macros.
      """)

  @Option(help: "The number of rounds.") var rounds = 9
  @Option(help: "The number of accesses to each of the 1,000 objects in a round.") var passes = 1000
  @Option(help: "The number of rounds of the workloads.") var workloadRounds = 12
  @Option(help: "The number of people in the workloads.") var size = 10_000

  func validate() throws {
    guard rounds > 0, passes > 0, workloadRounds > 0, size > 0 else {
      throw ValidationError("The size and the numbers of rounds and accesses must be greater than 0.")
    }
  }

  func run() throws {
    if !PropertyCost.hasMacros { print("This program was compiled without macros. `make properties` compiles it with them.\n") }
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("holdfast-properties-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: folder) }
    let properties = try PropertyCost(), classes = try ClassCost(size: size, folder: folder.path)
    let parameter = properties.readOfParameter(rounds: rounds, passes: passes)
    let accesses = properties.accesses(rounds: rounds, passes: passes)
    let ratios = try ClassCost.stores.map { try classes.ratios($0, rounds: workloadRounds) }
    // Counting allocations slows down everything, so it comes last.
    printAccesses(accesses, properties.allocations(passes: min(passes, 100)))
    print("Reading an `Int` in a function that receives the object: \(time(parameter)) ns\n")
    try printRatios(ratios, classes)
  }

  private func printAccesses(_ accesses: [PropertyCost.Access], _ allocations: [Double?]) {
    print("| | Swift class | accessors written by hand | macros | allocations |\n|-|-|-|-|-|")
    for (access, count) in zip(accesses, allocations) {
      let cells = [
        access.title, time(access.plain), time(access.handwritten), access.macros.map(time) ?? "–",
        count.map { text($0, places: 2) } ?? "–",
      ]
      print("| \(cells.joined(separator: " | ")) |")
    }
    print()
  }

  private func printRatios(_ ratios: [[Double]?], _ classes: ClassCost) throws {
    guard PropertyCost.hasMacros else { return }
    print("| | \(ClassCost.stores.joined(separator: " | ")) |\n|-|-|-|")
    for (place, workload) in ClassCost.workloads.enumerated() {
      let cells = ratios.map { $0.map { text($0[place], places: 2) } ?? "–" }
      print("| \(workload) | \(cells.joined(separator: " | ")) |")
    }
    for store in ClassCost.stores {
      guard let counts = try classes.allocations(store) else { continue }
      let texts = zip(ClassCost.workloads, counts).map { "\($0) \($1.handwritten) and \($1.macros)" }
      print("\nAllocations on \(store), by hand and with macros: \(texts.joined(separator: "; "))")
    }
  }

  /// Nanoseconds, to two digits or more.
  private func time(_ nanoseconds: Double) -> String { text(nanoseconds, places: nanoseconds < 20 ? 1 : 0) }

  private func text(_ value: Double, places: Int) -> String {
    let scale = [1.0, 10, 100][places], rounded = (value * scale).rounded() / scale
    return rounded == rounded.rounded() && (places == 0 || rounded == 0) ? "\(Int(rounded))" : "\(rounded)"
  }
}
