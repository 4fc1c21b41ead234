import Foundation

/// The kind of item at a path, determined without opening it, because opening a pipe would block until another process writes to
/// it.
enum FileKind {
  case file, folder
  /// A pipe, a socket or a device, or a symbolic link without a target.
  case other

  /// Creates a kind; nil if nothing is at the path, or its attributes can't be read. Follows symbolic links.
  init?(_ path: String) {
    let resolved = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
    switch (try? FileManager.default.attributesOfItem(atPath: resolved))?[.type] as? FileAttributeType {
    case nil: return nil
    case .typeRegular: self = .file
    case .typeDirectory: self = .folder
    default: self = .other
    }
  }

  /// The error for an item that is neither a file nor a folder.
  static func noFile(_ path: String) -> CommandError {
    let exists = FileManager.default.fileExists(atPath: path)
    return CommandError(
      path: path, reason: "It is a \(exists ? "pipe, a socket or a device" : "symbolic link without a target"). Give the path of a file.")
  }
}
