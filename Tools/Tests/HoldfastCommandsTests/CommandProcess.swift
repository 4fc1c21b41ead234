import Foundation

/// What the command did as its user runs it, in its own process.
struct CommandProcess {
  let output: String
  let errors: String
  let status: Int32

  /// The built program is beside the test bundle.
  private static var program: URL {
    URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent().appendingPathComponent("holdfast")
  }

  /// The program that runs another one on a terminal.
  static let terminal = "/usr/bin/script"

  /// Runs the command without a terminal, in a fixture's folder.
  ///
  /// - Parameter path: Where the command writes its errors. Defaults to nil, which keeps them in ``errors``.
  init(_ arguments: [String], in fixture: Fixture, errorsTo path: String? = nil) throws {
    try self.init(Self.program, arguments, in: fixture, input: FileHandle.nullDevice, errorsTo: path)
  }

  /// Runs the command without some of its standard files, in a fixture's folder.
  ///
  /// - Parameters:
  ///   - files: What closes them in a shell, for example `>&-`.
  ///   - fileLimit: The maximum number of open files. Defaults to that of this process.
  init(_ arguments: [String], in fixture: Fixture, closing files: String, fileLimit: Int? = nil) throws {
    let words = ([Self.program.path] + arguments).map { "'\($0)'" }, limit = fileLimit.map { "ulimit -n \($0); " } ?? ""
    let command = "exec \(files); \(limit)exec \(words.joined(separator: " "))"
    try self.init(URL(fileURLWithPath: "/bin/sh"), ["-c", command], in: fixture, input: FileHandle.nullDevice)
  }

  /// Runs the command on a terminal, on which its user types a line. Its errors are part of the output.
  ///
  /// - Parameter file: The file that gets what the command writes to standard output; nil for the terminal.
  init(_ arguments: [String], in fixture: Fixture, typing line: String, outputTo file: String? = nil) throws {
    let words = ([Self.program.path] + arguments).map { "'\($0)'" } + (file.map { [">", "'\($0)'"] } ?? []), keyboard = Pipe()
    let command = words.joined(separator: " ")
    keyboard.fileHandleForWriting.write(Data((line + "\n").utf8))
    try keyboard.fileHandleForWriting.close()
    try self.init(URL(fileURLWithPath: Self.terminal), ["-qec", command, "/dev/null"], in: fixture, input: keyboard)
  }

  private init(_ program: URL, _ arguments: [String], in fixture: Fixture, input: Any, errorsTo path: String? = nil) throws {
    let process = Process()
    process.executableURL = program
    process.arguments = arguments
    process.currentDirectoryURL = fixture.folder
    let files = [fixture.folder.appendingPathComponent(".out"), fixture.folder.appendingPathComponent(".err")]
    for file in files { try Data().write(to: file) }
    process.standardOutput = try FileHandle(forWritingTo: files[0])
    process.standardError = try FileHandle(forWritingTo: path.map { URL(fileURLWithPath: $0) } ?? files[1])
    process.standardInput = input
    try process.run()
    process.waitUntilExit()
    output = try String(contentsOf: files[0], encoding: .utf8)
    errors = try String(contentsOf: files[1], encoding: .utf8)
    status = process.terminationStatus
  }
}
