import ArgumentParser
import Logging

/// Tells what happens in a warehouse.
@main struct WarehouseCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "Warehouse", abstract: "Wires a stack by hand, puts goods into a warehouse, and tells what it did.",
    discussion: "A file keeps the warehouse. The next run clears it away first.")

  @OptionGroup var place: StoreOptions

  func run() throws {
    for line in try Story(place.description).lines() { print(line) }
  }

  /// What fails is told by one sentence, so what the stores log about it stays unsaid.
  static func main() {
    LoggingSystem.bootstrap { _ in SwiftLogNoOpLogHandler() }
    main(nil)
  }
}
