import ExampleSupport

/// Tells what happens in a warehouse.
@main enum WarehouseCommand {
  static let usage = """
    Wires a stack by hand, puts goods into a warehouse, and tells what it did.

    Usage: Warehouse [--store memory|json|xml|binary|sqlite] [--at PATH]

    Memory unless said otherwise, and it needs no PATH. A file keeps the warehouse. The next run clears it away first.
    """

  static func main() {
    Command.run(usage: usage) { arguments in
      let place = try StoreOptions(&arguments, usual: .memory)
      try arguments.finish()
      for line in try Story(place.description()).lines() { print(line) }
    }
  }
}
