import ArgumentParser
import Logging

/// Keeps a Debian package index as an object graph, and answers questions on it.
@main struct PackagesCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "Packages", abstract: "A Debian package index as an object graph.",
    subcommands: [Import.self, WhatDependsOn.self, Largest.self, Maintainers.self, Info.self])

  /// What fails is told by one sentence, so what the stores log about it stays unsaid.
  static func main() {
    LoggingSystem.bootstrap { _ in SwiftLogNoOpLogHandler() }
    main(nil)
  }
}

extension PackagesCommand {
  struct Import: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Reads an index into the store, in place of the one that is there.",
      discussion: "In one save: whoever reads the store meanwhile sees the former index, and so does everybody if the import fails.")
    @OptionGroup var place: StoreOptions

    func run() throws {
      let stack = try Stack(place.description(isReadOnly: false))
      let summary = try stack.importIndex(place.source)
      print(summary)
      if place.explain { stack.explain() }
    }
  }

  struct WhatDependsOn: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Prints the packages that depend on one.",
      discussion: """
        Each alternative of a dependency counts: with a | b a package depends on a and on b. Who depends on a virtual package depends \
        on every package that provides it. A package that depends on itself in a roundabout way is not printed.
        """)
    @OptionGroup var place: StoreOptions
    @Argument(help: "The package, which may be a virtual one.") var name: String
    @Flag(help: "Those as well that depend on them, and so on.") var transitive = false

    func run() throws {
      try place.ask { try $0.packages(thatDependOn: name, transitively: transitive).map(\.name) }
    }
  }

  struct Largest: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Prints the packages that take most space when installed, in KiB.")
    @OptionGroup var place: StoreOptions
    @OptionGroup var top: Top
    @Flag(help: "The sections instead, each with the space of all its packages.") var bySection = false

    func run() throws {
      try place.ask { table(bySection ? try $0.largestSections(top.limit) : try $0.largestPackages(top.limit)) }
    }
  }

  struct Maintainers: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Prints who maintains most packages, and how many.")
    @OptionGroup var place: StoreOptions
    @OptionGroup var top: Top

    func run() throws {
      try place.ask { table(try $0.busiestMaintainers(top.limit)) }
    }
  }

  struct Info: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Prints what is known of a package.")
    @OptionGroup var place: StoreOptions
    @Argument(help: "The package, which may be a virtual one.") var name: String

    func run() throws {
      try place.ask { try $0.info(name) }
    }
  }
}

/// How many lines.
struct Top: ParsableArguments {
  @Option(help: "How many lines.") var limit = 10

  func validate() throws {
    if limit < 1 { throw ValidationError("A list of \(limit) lines was asked for. Give at least 1 with --limit.") }
  }
}

/// Lines of a number and a text, the numbers in a column.
func table(_ rows: [(Int64, String)]) -> [String] {
  let width = rows.map { "\($0.0)".count }.max() ?? 0
  return rows.map { number, text in String(repeating: " ", count: width - "\(number)".count) + "\(number)  \(text)" }
}
