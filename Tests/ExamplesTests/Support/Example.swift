import Foundation
import TestSupport

/// A program of `Sources/Examples`, run in its own process.
enum Example: String {
  case firstGraph = "FirstGraph"
  case dogWalk = "DogWalk"
  case warehouse = "Warehouse"
  case packages = "Packages"
  case bowTies = "BowTies"

  /// The result of a process.
  struct Outcome: Equatable {
    var output: String
    var errors = ""
    var status: Int32 = 0

    /// Whether it succeeded, printed this, and wrote no errors.
    static func success(_ lines: String...) -> Outcome { Outcome(output: lines.map { $0 + "\n" }.joined()) }

    var lines: [String] { output.split(separator: "\n").map(String.init) }
  }

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
  func start(_ arguments: [String], in folder: TemporaryFolder, input: String? = nil) throws -> Running {
    let running = try Running(folder, input)
    running.process.executableURL = program
    running.process.arguments = arguments
    running.process.currentDirectoryURL = URL(fileURLWithPath: folder.path)
    try running.process.run()
    return running
  }

  struct Running {
    let process = Process()
    private let output: URL
    private let errors: URL

    fileprivate init(_ folder: TemporaryFolder, _ input: String?) throws {
      let name = ".run-\(UUID().uuidString)"
      output = URL(fileURLWithPath: folder.file(name + ".out"))
      errors = URL(fileURLWithPath: folder.file(name + ".err"))
      for file in [output, errors] { try Data().write(to: file) }
      process.standardOutput = try FileHandle(forWritingTo: output)
      process.standardError = try FileHandle(forWritingTo: errors)
      process.standardInput = FileHandle.nullDevice
      if let input {
        let file = URL(fileURLWithPath: folder.file(name + ".in"))
        try Data(input.utf8).write(to: file)
        process.standardInput = try FileHandle(forReadingFrom: file)
      }
    }

    func finish() throws -> Outcome {
      process.waitUntilExit()
      return Outcome(
        output: try String(contentsOf: output, encoding: .utf8), errors: try String(contentsOf: errors, encoding: .utf8),
        status: process.terminationStatus)
    }
  }
}

/// The stores that the examples offer.
enum ExampleStore: String, CaseIterable {
  case memory, json, xml, binary, sqlite

  static let files: [ExampleStore] = [.json, .xml, .binary, .sqlite]

  /// The options that select it, in a folder.
  var options: [String] { ["--store", rawValue] + (self == .memory ? [] : ["--at", "store.\(rawValue)"]) }
}
