import HoldfastStore

/// Errors of the JSON format, each built in one place. None holds a value of the file: names, keys and places only.
struct JSONErrors {
  var path: String

  private func error(_ code: StoreError.Code, _ reason: String) -> StoreError {
    StoreError(code, operation: "open the store", path: path, reason: reason)
  }

  func notAStore() -> StoreError {
    error(.notAStore, "The file is no JSON store: it does not begin with the member \"format\" that says so. Check the path.")
  }

  func newerFormat(_ what: String) -> StoreError {
    error(.newerFormat, "The file has \(what), which this version does not know. Open it with a newer version of the library.")
  }

  func damaged(_ what: String, _ place: String) -> StoreError {
    error(.damaged, "\(what) \(place) Take the file from a backup, or mend it by hand and open it with allowsUnverified.")
  }

  func unverified() -> StoreError {
    error(
      .damaged,
      "The digest at the file's end does not match what the file says: it was damaged, or changed by hand. Take it from a backup; or, if it "
        + "was changed on purpose, open it with allowsUnverified, and the next save gives it a new digest.")
  }

  func limit(_ what: String, _ place: String) -> StoreError {
    error(.damaged, "\(what) \(place) If the file is right, raise the limit in the store's options.")
  }
}
