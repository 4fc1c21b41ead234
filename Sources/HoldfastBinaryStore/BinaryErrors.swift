import HoldfastStore

/// The errors of the binary format. None contains a value from the file, only names, keys and offsets.
struct BinaryErrors: Sendable {
  var path: String
  var operation = "open the store"

  /// The errors for reading after the store was opened.
  var whileOpen: BinaryErrors { BinaryErrors(path: path, operation: "read the store") }

  private func error(_ code: StoreError.Code, _ reason: String, _ cause: (any Error)? = nil) -> StoreError {
    StoreError(code, operation: operation, path: path, reason: reason, cause: cause)
  }

  func notAStore() -> StoreError {
    error(.notAStore, "The file isn't a binary store: it doesn't begin with the format's eight-byte mark. Check the path.")
  }

  func newerFormat(_ what: String) -> StoreError {
    error(.newerFormat, "This version of Holdfast can't read the file: it has \(what). Open it with a newer version.")
  }

  func damaged(_ what: String, _ cause: (any Error)? = nil) -> StoreError {
    error(.damaged, "\(what) Restore the file from a backup.", cause)
  }

  func tooLarge(_ reason: String) -> StoreError { error(.tooLarge, reason) }

  /// The error for a section or another range whose digest doesn't match.
  func unverified(_ part: String) -> StoreError {
    error(
      .damaged,
      "The digest of \(part) doesn't match: the file is damaged. Restore it from a backup. To read the undamaged data, open the file "
        + "with allowsUnverified.")
  }
}
