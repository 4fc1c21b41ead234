import HoldfastStore

/// The errors of the XML format. None contains a value from the file, only names, keys and positions.
struct XMLErrors {
  var path: String

  private func error(_ code: StoreError.Code, _ reason: String, _ cause: (any Error)? = nil) -> StoreError {
    StoreError(code, operation: "open the store", path: path, reason: reason, cause: cause)
  }

  func notAStore(_ why: String = "It isn't an XML document with the root element \"database\".") -> StoreError {
    error(.notAStore, "The file isn't an XML store. \(why) Check the path.")
  }

  func newerFormat(_ what: String) -> StoreError {
    error(.newerFormat, "This version of Holdfast can't read the file: it has \(what). Open it with a newer version.")
  }

  func damaged(_ what: String, _ place: String, _ cause: (any Error)? = nil) -> StoreError {
    error(.damaged, "\(what)\(place) Restore the file from a backup, or repair it by hand and open it with allowsUnverified.", cause)
  }

  /// The file contains a name that isn't in the model: it isn't a store of this model.
  func unknown(_ what: String) -> StoreError {
    error(.incompatibleModel, "The file has \(what) that isn't in the model. Open it with the model that it was written with.")
  }

  /// No model can be derived from the file.
  func noModel(_ what: String, _ cause: (any Error)? = nil) -> StoreError {
    StoreError(
      .incompatibleModel, operation: "derive the store's model", path: path,
      reason: "The objects in the file don't show a consistent model. \(what) Open the store with the model that it was written with.",
      cause: cause)
  }

  func unverified() -> StoreError {
    error(
      .damaged,
      "The digest at the end of the file doesn't match its contents, or the digest or the metadata entry _HoldfastSeal is missing: "
        + "the file was damaged, or edited by hand or by another program. Restore it from a backup. If it was edited on purpose, open it "
        + "with allowsUnverified and save; the save writes a new digest.")
  }

  func limit(_ what: String, _ place: String = "") -> StoreError {
    error(.damaged, "\(what)\(place) If the file is intact, raise the limit in the store's options.")
  }
}
