import ExampleSupport

/// Keeps a Debian package index as an object graph, and answers questions on it.
@main enum PackagesCommand {
  static let usage = """
    A Debian package index as an object graph.

    Usage: Packages --store memory|json|xml|binary|sqlite [--at PATH] [--from FILE] [--explain] COMMAND

      import                               reads an index into the store, in place of the one that is there
      what-depends-on NAME [--transitive]  prints the packages that depend on one, or that depend on those as well, and so on
      largest [--by-section] [--limit N]   prints the packages, or sections, that take most space when installed, in KiB
      maintainers [--limit N]              prints who maintains most packages, and how many
      info NAME                            prints what is known of a package

    --from FILE names a file of control stanzas; this machine's own index unless said. Memory reads it anew for each question.
    --explain tells on standard error how many requests of each kind the store was sent.

    Import is one save: whoever reads the store meanwhile sees the former index, and so does everybody if it fails.
    Each alternative of a dependency counts: with a | b a package depends on a and on b. Who depends on a virtual package depends on
    every package that provides it. A package that depends on itself in a roundabout way is not printed.
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

  /// What a command asks, and the lines of the answer.
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
    default: throw UsageError("There is no command '\(command)'.")
    }
  }

  /// How many lines.
  private static func limit(_ arguments: inout Arguments) throws -> Int {
    guard let text = try arguments.option("--limit") else { return 10 }
    guard let limit = Int(text), limit >= 1 else {
      throw UsageError("A list of \(text) lines was asked for. Give at least 1 with --limit.")
    }
    return limit
  }

  /// Lines of a number and a text, the numbers in a column.
  private static func table(_ rows: [(Int64, String)]) -> [String] {
    let width = rows.map { "\($0.0)".count }.max() ?? 0
    return rows.map { number, text in String(repeating: " ", count: width - "\(number)".count) + "\(number)  \(text)" }
  }
}
