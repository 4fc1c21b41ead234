import ArgumentParser
import BenchmarkStores

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Measures what several contexts and histories cost.
struct Contexts: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Measure what child contexts, histories, merging and pinning cost.",
    discussion: """
      Prints, for each store: the time of W1 through a child context as a ratio to W1 in one context; the times of reading all objects, \
      and of fetching a thousand by a unique value, through a child as ratios to those in one context; the times of W1, W6 and W7 with a \
      history as ratios to those without; the bytes that the histories of W1 and W6 add to the store's files; the times of merging a \
      save of 10,000 objects, and the same number of IDs that another coordinator has sent, into a context with 100 of them; the time of \
      pinning a context to the current generation; the times of reading in a pinned context as ratios to those in one that isn't pinned, \
      also if one percent of the objects were changed since; and the time of W6 beside a pinned context as a ratio to that without. All \
      times are medians of wall times.
      """)

  @Option(help: "The number of people.") var size = 100_000
  @Option(help: "The number of rounds.") var rounds = 5
  @Option(help: "The stores, separated by commas. Defaults to all of them.") var stores = ContextCost.stores.joined(separator: ",")

  private var names: [String] { stores.split(separator: ",").map(String.init) }

  func validate() throws {
    guard size > 0, rounds > 0 else { throw ValidationError("The size and the number of rounds must be greater than 0.") }
    for name in names where !ContextCost.stores.contains(name) { throw ValidationError("The store \(name) doesn't exist.") }
  }

  func run() throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("holdfast-contexts-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: folder) }
    let cost = try ContextCost(size: size, folder: folder.path)
    for store in names {
      print("\(store): through a child \(text(try cost.child(store, rounds: rounds)))", terminator: "")
      let child = try cost.childReading(store, rounds: rounds)
      print("; reading through a child: all \(text(child.all)), by a unique value \(text(child.one))", terminator: "")
      if store != "memory" {
        let ratios = try cost.history(store, rounds: rounds)
        print("; with a history W1 \(text(ratios[0])), W6 \(text(ratios[1])), W7 \(text(ratios[2]))", terminator: "")
        for (name, size) in [("W1", try cost.historySize(store)), ("W6", try cost.historySizeOfUpdates(store))] {
          let share = text(Double(size.bytes) / Double(size.changes))
          print("; history of \(name) \(size.bytes) bytes, \(share) for each change", terminator: "")
        }
      }
      let following = try cost.following(store, rounds: rounds)
      print("; merging \(text(following.merge)) ms, IDs of another coordinator \(text(following.foreignMerge)) ms", terminator: "")
      print("; pinning \(text(following.pin)) µs", terminator: "")
      for isOlder in [false, true] {
        let reading = try cost.reading(store, rounds: rounds, isOlder: isOlder)
        let title = isOlder ? "reading an older generation" : "reading the current generation"
        print("; \(title): all \(text(reading.all)), by a unique value \(text(reading.one))", terminator: "")
      }
      print("; W6 beside a generation \(text(try cost.savingBesideGeneration(store, rounds: rounds)))", terminator: "")
      print()
    }
  }

  private func text(_ value: Double) -> String { "\((value * 100).rounded() / 100)" }
}
