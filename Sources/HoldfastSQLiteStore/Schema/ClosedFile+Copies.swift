import HoldfastFiles
import HoldfastStore

// Copies of files, which are made beside them and then renamed.
extension ClosedFile {
  /// Calls a closure with an unused path beside a file, at which it creates a copy. If it throws, removes the copy.
  func withCopy<Result>(beside file: String, _ operation: String, _ body: (_ copy: String) throws -> Result) throws -> Result {
    let copy = Self.unusedPath(beside: file)
    do { return try body(copy) } catch {
      try? OperatingSystem.remove([copy, copy + "-journal"], operation)
      throw error.located(at: file, insteadOfCopy: copy)
    }
  }

  /// A path for a temporary copy in the folder of a file: `.holdfast-DIGEST.0123456789abcdef.tmp`, with a digest of the file's name.
  static func unusedPath(beside file: String) -> String {
    let place = ResolvedFilePath(splitting: file), number = UInt64.random(in: .min ... .max)
    return ResolvedFilePath(folder: place.folder, name: copyPrefix(place.name) + String(number, radix: 16) + copySuffix).path
  }

  private static let copySuffix = ".tmp"

  private static func copyPrefix(_ name: String) -> String {
    var digest = ContentDigest()
    digest.update(name.utf8)
    return ".holdfast-\(String(digest.value, radix: 16))."
  }

  /// Removes the copies that killed processes left of a file, or for it. Errors are ignored, because copies don't prevent anything.
  ///
  /// The caller holds a lock of the file that excludes all others that copy or replace it. Where there is no file, none can be locked. So if
  /// a store is created and destroyed there while another process makes a copy for the path, that process fails, and can try again.
  static func removeLeftCopies(of file: String, _ operation: String) {
    let place = ResolvedFilePath(splitting: file), prefix = copyPrefix(place.name)
    let suffixes = [copySuffix] + CompanionFiles.suffixes.map { copySuffix + $0 }
    let left = OperatingSystem.names(inFolder: place.folder).filter { name in
      name.hasPrefix(prefix) && suffixes.contains { name.hasSuffix($0) }
    }
    if left.isEmpty { return }
    try? OperatingSystem.remove(left.map { ResolvedFilePath(folder: place.folder, name: $0).path }, operation)
  }
}

extension Error {
  /// The same error, with the path of a store's file where it or a cause has that of a copy of the file, which is removed.
  fileprivate func located(at path: String, insteadOfCopy copy: String) -> any Error {
    // The name of the copy is unique, and the error's path may have been resolved. A slash can be one character with its neighbour.
    let name = "/\(ResolvedFilePath(splitting: copy).name)".utf8
    func place(_ found: String?) -> String? { found?.utf8.contains(name) == true ? path : found }
    func cause(_ cause: (any Error)?) -> (any Error)? { cause?.located(at: path, insteadOfCopy: copy) }
    switch self {
    case var error as StoreError:
      (error.path, error.cause) = (place(error.path), cause(error.cause))
      return error
    case var error as MigrationError:
      (error.path, error.cause) = (place(error.path), cause(error.cause))
      return error
    default: return self
    }
  }
}
