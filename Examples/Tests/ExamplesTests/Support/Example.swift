import Foundation

/// A program of this package, run in its own process.
enum Example: String {
  case firstGraph = "FirstGraph"
  case dogWalk = "DogWalk"
  case warehouse = "Warehouse"
  case packages = "Packages"
  case bowTies = "BowTies"
  case moody = "Moody"

  typealias Outcome = Program.Outcome

  /// The built programs are beside the test bundle.
  private var program: URL { URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent().appendingPathComponent(rawValue) }

  /// Runs the program in a folder and waits for it. Its output goes to files, which can't fill up like pipes.
  ///
  /// - Parameter input: the contents of its standard input.
  func run(_ arguments: [String], in folder: TemporaryFolder, input: String? = nil) throws -> Outcome {
    try start(arguments, in: folder, input: input).finish()
  }

  func run(_ arguments: String..., in folder: TemporaryFolder) throws -> Outcome { try run(arguments, in: folder) }

  /// Starts it. Several processes may run at the same time.
  func start(_ arguments: [String], in folder: TemporaryFolder, input: String? = nil) throws -> Program {
    try Program(program, arguments, in: folder, input: input)
  }
}

extension Program.Outcome {
  /// Whether it succeeded, printed this, and wrote no errors.
  static func success(_ lines: String...) -> Self { Self(output: lines.map { $0 + "\n" }.joined()) }

  var lines: [String] { output.split(separator: "\n").map(String.init) }
}

/// The stores that the examples offer.
enum ExampleStore: String, CaseIterable {
  case memory, json, xml, binary, sqlite

  static let files: [ExampleStore] = [.json, .xml, .binary, .sqlite]

  /// The options that select it, in a folder.
  var options: [String] { ["--store", rawValue] + (self == .memory ? [] : ["--at", "store.\(rawValue)"]) }
}
