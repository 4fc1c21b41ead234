import Foundation
import TestSupport

/// The compiler and the formatter of the toolchain.
enum SwiftTools {
  /// The compiler's messages about generated code.
  static func compile(_ text: String, isolation: String = "nonisolated") throws -> String {
    try compile(files: ["Classes.swift": text], isolation: isolation)
  }

  /// The compiler's messages about the files of a module: their texts by name.
  static func compile(files: [String: String], isolation: String = "nonisolated") throws -> String {
    let folder = TemporaryFolder(), names = files.keys.sorted()
    for (name, text) in files { try folder.write(text, to: name) }
    let build = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
    return try Program.run(
      "/usr/bin/env",
      [
        "swiftc", "-typecheck", "-warnings-as-errors", "-swift-version", "6", "-default-isolation", isolation, "-parse-as-library",
        "-enable-upcoming-feature",
        "ExistentialAny",
        "-enable-upcoming-feature", "InternalImportsByDefault", "-I", build.appendingPathComponent("Modules").path,
      ] + names.map(folder.file)
    ).errors
  }

  /// The texts as `swift format` writes them with its default configuration.
  static func format(_ texts: [String]) throws -> [String] {
    let folder = TemporaryFolder()
    for (number, text) in texts.enumerated() { try folder.write(text, to: "\(number).swift") }
    let outcome = try Program.run(
      "/usr/bin/env", ["swift", "format", "--in-place", "--recursive", "--configuration", #"{"version": 1}"#, folder.path])
    guard outcome.status == 0 else { throw Failure(messages: outcome.errors) }
    return try texts.indices.map { try folder.text("\($0).swift") }
  }

  struct Failure: Error { let messages: String }
}
