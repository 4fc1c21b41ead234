import Foundation

/// What is at a path, found out without opening it: opening a pipe waits for somebody who writes into it.
enum FileKind {
  case file, folder
  /// A pipe, a socket or a device.
  case other

  /// Nil for nothing, and for what may not be looked at. Links are followed.
  init?(_ path: String) {
    let resolved = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
    switch (try? FileManager.default.attributesOfItem(atPath: resolved))?[.type] as? FileAttributeType {
    case nil: return nil
    case .typeRegular: self = .file
    case .typeDirectory: self = .folder
    default: self = .other
    }
  }

  /// The error for what is neither a file nor a folder.
  static func noFile(_ path: String) -> CommandError {
    CommandError(path: path, reason: "It is a pipe, a socket or a device. Give the path of a file.")
  }
}
