#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// Where a store's file is: a path as text, or the URL of a file.
public protocol StorePath {
  /// The path.
  var filePath: String { get }
}

extension String: StorePath {
  /// The text itself.
  public var filePath: String { self }
}

extension URL: StorePath {
  /// The path of a file. Traps if the URL isn't one of a file.
  public var filePath: String {
    precondition(isFileURL, "A store was given a URL that isn't one of a file: \(self).")
    return path(percentEncoded: false)
  }
}
