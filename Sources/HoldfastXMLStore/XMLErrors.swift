import HoldfastStore

/// Errors of the XML format, each built in one place. None holds a value of the file: names, keys and places only.
struct XMLErrors {
  var path: String

  private func error(_ code: StoreError.Code, _ reason: String, _ cause: (any Error)? = nil) -> StoreError {
    StoreError(code, operation: "open the store", path: path, reason: reason, cause: cause)
  }

  func notAStore(_ why: String = "It is not XML whose outermost element is \"database\".") -> StoreError {
    error(.notAStore, "The file is no XML store. \(why) Check the path.")
  }

  func newerFormat(_ what: String) -> StoreError {
    error(.newerFormat, "The file has \(what), which this version does not know. Open it with a newer version of the library.")
  }

  func damaged(_ what: String, _ place: String, _ cause: (any Error)? = nil) -> StoreError {
    error(.damaged, "\(what) \(place) Take the file from a backup, or mend it by hand and open it with allowsUnverified.", cause)
  }

  /// What a file says that the model does not: the file fits no model, or another one.
  func unknown(_ what: String) -> StoreError {
    error(.incompatibleModel, "The file has \(what), which the model has not. Open it with the model that it was made with.")
  }

  func unverified() -> StoreError {
    error(
      .damaged,
      "The digest at the file's end does not match what the file says, or one of the digest and the mark in the metadata is missing: it was "
        + "damaged, or changed by hand or by another program. Take it from a backup; or, if it was changed on purpose, open it with "
        + "allowsUnverified, and the next save gives it a new digest.")
  }

  func limit(_ what: String, _ place: String = "") -> StoreError {
    error(.damaged, "\(what) \(place) If the file is right, raise the limit in the store's options.")
  }
}
