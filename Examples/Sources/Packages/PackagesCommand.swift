import ExampleSupport

/// Keeps a Debian package index as an object graph, and answers questions about it.
@main enum PackagesCommand {
  static let usage = """
    A Debian package index as an object graph.

    Usage: Packages --store memory|json|xml|binary|sqlite [--at PATH] [--from FILE] [--explain] COMMAND

      import                               imports an index into the store, replacing the previous one
      what-depends-on NAME [--transitive]  prints the packages that depend on NAME, with --transitive also indirectly
      largest [--by-section] [--limit N]   prints the largest packages or sections, with their installed size in KiB
      maintainers [--limit N]              prints the maintainers with the most packages, and the number of packages
      info NAME                            prints the fields of a package

    --from FILE names a file of control stanzas; the default is this machine's index. A memory store imports it for each question.
    --explain prints the number of requests of each kind to the store, on standard error.

    An import is one save. Other readers see the previous index until it succeeds.
    All alternatives of a dependency count: with a | b, a package depends on a and on b. A package that depends on a virtual package
    depends on every package that provides it. A package that depends on itself through a cycle is not printed.
    """

  static func main() {
    Command.run(usage: usage) { arguments in
      let place = try IndexOptions(&arguments)
      let command = try arguments.word("A command")
      if command == "import" {
        try arguments.finish()
        return try place.importIndex()
      }
      let question = try question(command, &arguments)
      try arguments.finish()
      try place.ask(question)
    }
  }

  /// Returns a closure that answers a command's question with lines of text.
  private static func question(_ command: String, _ arguments: inout Arguments) throws -> (PackageGraph) throws -> [String] {
    switch command {
    case "what-depends-on":
      let (transitive, name) = (arguments.flag("--transitive"), try arguments.word("NAME"))
      return { try $0.packages(thatDependOn: name, transitively: transitive).map(\.name) }
    case "largest":
      let (bySection, limit) = (arguments.flag("--by-section"), try limit(&arguments))
      return { table(bySection ? try $0.largestSections(limit) : try $0.largestPackages(limit)) }
    case "maintainers":
      let limit = try limit(&arguments)
      return { table(try $0.busiestMaintainers(limit)) }
    case "info":
      let name = try arguments.word("NAME")
      return { try $0.info(name) }
    default: throw UsageError("Unknown command '\(command)'.")
    }
  }

  /// The maximum number of lines. Defaults to 10.
  private static func limit(_ arguments: inout Arguments) throws -> Int {
    guard let text = try arguments.option("--limit") else { return 10 }
    guard let limit = Int(text), limit >= 1 else {
      throw UsageError("The limit '\(text)' isn't a number of lines. Give at least 1 with --limit.")
    }
    return limit
  }

  /// Formats rows of a number and a text, with the numbers right-aligned.
  private static func table(_ rows: [(Int, String)]) -> [String] {
    let width = rows.map { "\($0.0)".count }.max() ?? 0
    return rows.map { number, text in String(repeating: " ", count: width - "\(number)".count) + "\(number)  \(text)" }
  }
}
