#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension ModelCode {
  /// Writes the files into a folder, and creates the folder if it is missing.
  ///
  /// A file that already has the right text isn't touched. A class's own file is only written if it doesn't exist, and a file that wasn't
  /// generated is never replaced.
  ///
  /// - Returns: The names of the files that were written.
  /// - Throws: ``ModelCodeError`` with the path that couldn't be read or written.
  public func write(to folder: String) throws(ModelCodeError) -> [String] {
    let outdated = try outdatedFiles(in: folder)
    for file in files where outdated.contains(file.name) {
      guard let text = try ModelCode.text(at: "\(folder)/\(file.name)"), !text.hasPrefix(SwiftText.heading) else { continue }
      throw ModelCodeError(
        path: "\(folder)/\(file.name)", reason: "The file wasn't generated, so it isn't replaced. Move it or choose another folder.",
        cause: nil)
    }
    try ModelCode.attempt(folder, "The folder can't be created.") {
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    }
    for file in files where outdated.contains(file.name) { try ModelCode.write(file.text, to: "\(folder)/\(file.name)") }
    return outdated
  }

  /// Writes all code into one file, unless it already has the right text.
  ///
  /// - Throws: ``ModelCodeError`` if the file can't be read or written.
  public func writeSingleFile(to path: String) throws(ModelCodeError) {
    if try ModelCode.text(at: path) != singleFile.text { try ModelCode.write(singleFile.text, to: path) }
  }

  /// The names of the files that ``write(to:)`` would write into a folder.
  ///
  /// - Throws: ``ModelCodeError`` if a file can't be read.
  public func outdatedFiles(in folder: String) throws(ModelCodeError) -> [String] {
    var outdated: [String] = []
    for file in files {
      let text = try ModelCode.text(at: "\(folder)/\(file.name)")
      if file.isKept ? text == nil : text != file.text { outdated.append(file.name) }
    }
    return outdated
  }

  /// The names of generated files in a folder that are of no entity of the model, for example of one that was removed.
  ///
  /// - Throws: ``ModelCodeError`` if the folder can't be read.
  public func orphanedFiles(in folder: String) throws(ModelCodeError) -> [String] {
    guard FileManager.default.fileExists(atPath: folder) else { return [] }
    let names = try ModelCode.attempt(folder, "The folder can't be read.") { try FileManager.default.contentsOfDirectory(atPath: folder) }
    let known = Set(files.map(\.name))
    var orphans: [String] = []
    for name in names.sorted() where name.hasSuffix(".swift") && !known.contains(name) {
      if try ModelCode.text(at: "\(folder)/\(name)")?.hasPrefix(SwiftText.heading) == true { orphans.append(name) }
    }
    return orphans
  }

  private static func text(at path: String) throws(ModelCodeError) -> String? {
    guard FileManager.default.fileExists(atPath: path) else { return nil }
    let data = try attempt(path, "The file can't be read.") { try Data(contentsOf: URL(fileURLWithPath: path)) }
    // A file in another encoding differs from what is generated.
    return String(decoding: data, as: UTF8.self)
  }

  private static func write(_ text: String, to path: String) throws(ModelCodeError) {
    try attempt(path, "The file can't be written. Check that its folder exists and can be written.") {
      try Data(text.utf8).write(to: URL(fileURLWithPath: path), options: .atomic)
    }
  }

  private static func attempt<Result>(_ path: String, _ reason: String, _ body: () throws -> Result) throws(ModelCodeError) -> Result {
    do { return try body() } catch { throw ModelCodeError(path: path, reason: reason, cause: error) }
  }
}

/// Generated code couldn't be read or written: the path, why, and what to do.
public struct ModelCodeError: Error, Sendable, CustomStringConvertible {
  /// The file or folder.
  public let path: String
  /// Why and what to do, in sentences.
  public let reason: String
  /// The error of the file system, if there is one.
  public let cause: (any Error)?

  /// One line with the path, the reason and the cause.
  public var description: String { "\(path): \(reason)" + (cause.map { " Cause: \($0)" } ?? "") }
}
