import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A store in a folder of its own beside another store, for the time of an operation.
///
/// The folder has everything that belongs to the store, such as its lock and external files, and is removed as a whole. Only the user can
/// enter it.
struct TemporaryStore {
  let description: StoreDescription
  let folder: String

  /// Creates the folder. The store is of the same type as the other one, and has its options.
  ///
  /// - Parameter hasSmallCaches: Whether the store is that of ``/HoldfastStore/StoreDescription/inFileWithSmallCaches``. Defaults to false.
  init(beside other: StoreDescription, to operation: String, hasSmallCaches: Bool = false) throws {
    guard let path = other.location?.path, let inFile = hasSmallCaches ? other.inFileWithSmallCaches : other.inFile,
      other.administration.supports(ReplacementRequest.self)
    else { throw Self.unsupported(other, operation) }
    let parts = path.namesInPath
    let name = ".holdfast-\(String(UInt64.random(in: .min ... .max), radix: 16)).copy"
    folder = (parts.dropLast() + [Substring(name)]).joined(separator: "/")
    description = inFile(folder + "/" + (parts.last ?? "store"))
    do {
      try FileManager.default.createDirectory(
        atPath: folder, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    } catch { throw Self.refused(other, operation, error) }
  }

  /// The error of creating the folder. It has the path of the other store, because there is nothing at the path of the folder.
  private static func refused(_ description: StoreDescription, _ operation: String, _ cause: any Error) -> StoreError {
    let code = (cause as? CocoaError)?.code, isMissing = code == .fileNoSuchFile || code == .fileReadNoSuchFile
    return StoreError(
      isMissing ? .notFound : cause.isOfFullDisk ? .diskFull : .notPermitted, operation: operation, path: description.location?.description,
      reason: isMissing
        ? "The folder of the store doesn't exist. Create it, or choose another path."
        : "The folder for a temporary copy can't be created beside the store. Check the permissions and the free space.",
      cause: cause, isRetryable: cause.isOfFullDisk)
  }

  static func unsupported(_ description: StoreDescription, _ operation: String) -> StoreError {
    StoreError(
      .unsupportedRequest, operation: operation, path: description.location?.description,
      reason: "A store of type \(description.type) isn't a file that can be replaced by a copy.")
  }

  func remove() { try? FileManager.default.removeItem(atPath: folder) }
}

extension String {
  /// The names in a path, and an empty one before a slash at its beginning. A slash separates them also if it is a part of a character.
  var namesInPath: [Substring] {
    utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).map { Substring($0) }
  }
}

extension Error {
  /// Whether Foundation couldn't write a file or create a folder because the disk is full.
  var isOfFullDisk: Bool { (self as? CocoaError)?.code == .fileWriteOutOfSpace }

  /// The error of a step that changes only a temporary copy.
  ///
  /// That the disk didn't confirm the step would mean to the caller that the store has its new contents.
  var ofTemporaryCopy: any Error {
    guard let error = self as? StoreError, error.code == .durabilityUnknown || error.code == .outcomeUnknown else { return self }
    return StoreError(
      .inputOutput, operation: error.operation, path: error.path,
      reason: "The disk didn't confirm a temporary copy. The store is unchanged. Check the disk, and try again.", cause: error)
  }

  /// The same error, with the path of a store where it or a cause has that of a copy of the store, which is removed.
  ///
  /// - Parameters:
  ///   - store: The store's location.
  ///   - folder: The folder of the copy.
  func located(at store: StoreLocation?, insteadOfIn folder: String) -> any Error {
    // The name of the folder is unique, and the error's path may have been resolved. A slash can be one character with its neighbour.
    let name = "/\(folder.namesInPath.last ?? "")/".utf8
    func path(_ path: String?) -> String? { path?.utf8.contains(name) == true ? store?.description : path }
    func cause(_ cause: (any Error)?) -> (any Error)? { cause?.located(at: store, insteadOfIn: folder) }
    switch self {
    case var error as StoreError:
      (error.path, error.cause) = (path(error.path), cause(error.cause))
      return error
    case var error as MigrationError:
      (error.path, error.cause) = (path(error.path), cause(error.cause))
      return error
    case var error as PersistenceError:
      error.cause = cause(error.cause)
      return error
    default: return self
    }
  }
}
