import Foundation

/// A program that runs in a process of its own. Its input and output are files, which can't fill up like pipes.
struct Program {
  struct Outcome: Equatable {
    var output: String
    var errors = ""
    /// The exit status, or the number of the signal that ended the program, negated.
    var status: Int32 = 0
  }

  private let process = Process()
  private let folder = TemporaryFolder()

  /// Starts a program in a folder.
  ///
  /// - Parameter input: The standard input; nil for none.
  init(_ program: URL, _ arguments: [String], in folder: TemporaryFolder, input: String? = nil) throws {
    for name in ["in", "out", "err"] { try self.folder.write(name == "in" ? input ?? "" : "", to: name) }
    process.executableURL = program
    process.arguments = arguments
    process.currentDirectoryURL = URL(fileURLWithPath: folder.path, isDirectory: true)
    process.standardInput = try FileHandle(forReadingFrom: URL(fileURLWithPath: self.folder.file("in")))
    process.standardOutput = try FileHandle(forWritingTo: URL(fileURLWithPath: self.folder.file("out")))
    process.standardError = try FileHandle(forWritingTo: URL(fileURLWithPath: self.folder.file("err")))
    try process.run()
  }

  /// Waits for the end.
  func finish() throws -> Outcome {
    process.waitUntilExit()
    let status = process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus
    return Outcome(output: try folder.text("out"), errors: try folder.text("err"), status: status)
  }
}
