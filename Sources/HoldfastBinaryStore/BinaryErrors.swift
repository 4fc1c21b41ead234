import HoldfastStore

/// Errors of the binary format, each built in one place. None holds a value of the file: names, keys and places only.
struct BinaryErrors: Sendable {
  var path: String
  var operation = "open the store"

  /// The same for what is read when the store is open.
  var whileOpen: BinaryErrors { BinaryErrors(path: path, operation: "read the store") }

  private func error(_ code: StoreError.Code, _ reason: String, _ cause: (any Error)? = nil) -> StoreError {
    StoreError(code, operation: operation, path: path, reason: reason, cause: cause)
  }

  func notAStore() -> StoreError {
    error(.notAStore, "The file is no binary store: it does not begin with the eight bytes that say so. Check the path.")
  }

  func newerFormat(_ what: String) -> StoreError {
    error(.newerFormat, "The file has \(what), which this version does not know. Open it with a newer version of the library.")
  }

  func damaged(_ what: String, _ cause: (any Error)? = nil) -> StoreError {
    error(.damaged, "\(what) Take the file from a backup.", cause)
  }

  func tooLarge(_ reason: String) -> StoreError { error(.tooLarge, reason) }

  /// The digest of a part does not match it.
  func unverified(_ part: String) -> StoreError {
    error(
      .damaged,
      "The digest of \(part) does not match it: the file was damaged. Take it from a backup; what else of it is right can be read with "
        + "allowsUnverified.")
  }
}
