import ExampleSupport

/// Runs the warehouse example.
@main enum WarehouseCommand {
  static let usage = """
    Creates a stack by hand, stores goods in a warehouse, and prints each step.

    Usage: Warehouse [--store memory|json|xml|binary|sqlite] [--at PATH]

    The default store is memory, which needs no PATH. A file keeps the warehouse until the next run deletes it.
    """

  static func main() {
    Command.run(usage: usage) { arguments in
      let place = try StoreOptions(&arguments, usual: .memory)
      try arguments.finish()
      for line in try Story(place.description()).lines() { print(line) }
    }
  }
}
