import ArgumentParser
import Holdfast
import HoldfastJSONStore
import HoldfastMemoryStore
import HoldfastSQLiteStore

/// Where the graph is kept. This is all that a program has to know of its store.
struct StoreOptions: ParsableArguments {
  enum Kind: String, CaseIterable, ExpressibleByArgument {
    case memory, json, sqlite
  }

  @Option(help: "What keeps the graph; memory forgets it when the program ends.") var store: Kind
  @Option(help: ArgumentHelp("The file, which is made when there is none; memory needs none.", valueName: "path")) var at: String?

  func validate() throws {
    if store != .memory && (at ?? "").isEmpty {
      throw ValidationError("A \(store.rawValue) store lies in a file. Say in which one with --at PATH.")
    }
  }

  /// What the stack makes its store of.
  var description: StoreDescription {
    switch store {
    case .memory: .memory()
    case .json: .json(at: at ?? "")
    case .sqlite: .sqlite(at: at ?? "")
    }
  }
}
