import HoldfastStore

/// The errors of the JSON format. None contains a value from the file, only names, keys and offsets.
struct JSONErrors {
  var path: String

  private func error(_ code: StoreError.Code, _ reason: String) -> StoreError {
    StoreError(code, operation: "open the store", path: path, reason: reason)
  }

  func notAStore() -> StoreError {
    error(.notAStore, "The file isn't a JSON store: it doesn't begin with the member \"format\". Check the path.")
  }

  func newerFormat(_ what: String) -> StoreError {
    error(.newerFormat, "This version of Holdfast can't read the file: it has \(what). Open it with a newer version.")
  }

  func damaged(_ what: String, _ place: String) -> StoreError {
    error(.damaged, "\(what) \(place) Restore the file from a backup, or repair it by hand and open it with allowsUnverified.")
  }

  func unverified() -> StoreError {
    error(
      .damaged,
      "The digest at the end of the file doesn't match its contents: the file was damaged or edited. Restore it from a backup. "
        + "If it was edited on purpose, open it with allowsUnverified and save; the save writes a new digest.")
  }

  func limit(_ what: String, _ place: String) -> StoreError {
    error(.damaged, "\(what)\(place) If the file is intact, raise the limit in the store's options.")
  }
}
