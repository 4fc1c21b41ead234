import Holdfast
import HoldfastSQLiteStore
import TestSupport
import Testing

/// Expects opening a store to fail with a typed error that names the file and the reason, to leave the folder unchanged, and to close all
/// descriptors.
@discardableResult
func expectRefusal(
  _ codes: StoreError.Code..., of path: String, in folder: TemporaryFolder, model: ManagedObjectModel = Harbour.model,
  options: SQLiteStoreOptions = SQLiteStoreOptions(), sourceLocation: SourceLocation = #_sourceLocation
) throws -> StoreError? {
  try expectRefusal(
    codes, by: .sqlite(at: path, options: options), of: path, in: folder, model: model, sourceLocation: sourceLocation)
}

/// The same for any store.
@discardableResult
func expectRefusal(
  _ codes: [StoreError.Code], by store: StoreDescription, of path: String, in folder: TemporaryFolder,
  model: ManagedObjectModel = Harbour.model, _ comment: String = "", sourceLocation: SourceLocation = #_sourceLocation
) throws -> StoreError? {
  let before = try folder.snapshot()
  var refusal: StoreError?
  do {
    let coordinator = try PersistentStoreCoordinator(model: model, store: store.migrating(automatically: false))
    try coordinator.close()
    Issue.record("The store was opened. \(comment)", sourceLocation: sourceLocation)
  } catch let error as StoreError {
    refusal = error
    #expect(codes.contains(error.code), "\(error) \(comment)", sourceLocation: sourceLocation)
    #expect(error.path == path, "\(error) \(comment)", sourceLocation: sourceLocation)
    #expect(error.operation == "open the store", "\(error) \(comment)", sourceLocation: sourceLocation)
    #expect(error.reason.count > 20 && error.reason.hasSuffix("."), "\(error) \(comment)", sourceLocation: sourceLocation)
    #expect("\(error)".contains(path), sourceLocation: sourceLocation)
  }
  #expect(folder.openDescriptors == 0, "\(comment)", sourceLocation: sourceLocation)
  #expect(
    try folder.snapshot() == before, "The refused file or its folder was changed. \(comment)", sourceLocation: sourceLocation)
  return refusal
}
