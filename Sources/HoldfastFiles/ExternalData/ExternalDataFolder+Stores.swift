public import HoldfastStore

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

// External data of entire stores, which are copied or removed while they aren't open.

extension ExternalDataFolder {
  /// Copies files from another store's folder, durably. Files that already exist with the same contents are kept.
  ///
  /// - Throws: ``/HoldfastStore/StoreError``: the errors of ``read(_:operation:)`` in the other folder, `diskFull`, `notPermitted`,
  ///   `inputOutput`. Files that were copied remain; ``ExternalDataChange`` removes them.
  func add(_ ids: Set<UUID>, from other: ExternalDataFolder, operation: String) throws(StoreError) {
    if ids.isEmpty { return }
    for id in ids {
      let contents = try other.read(id, operation: operation)
      do throws(FileSystemError) { try add(contents, as: id) } catch { throw failure(error, operation: operation) }
    }
    do throws(FileSystemError) {
      if let folders = try folders(making: false) { try fileSystem.synchronizeFolder(folders.data.handle) }
    } catch {
      throw failure(error, operation: operation)
    }
  }

  private func add(_ contents: Data, as id: UUID) throws(FileSystemError) {
    guard let folders = try folders(making: true) else { return }
    if isPresent(id, contents) {
      // An earlier copy may have been interrupted before its contents were durable.
      let file = KeptFile(try fileSystem.openForReading(id.uuidString, in: folders.data.handle), of: fileSystem)
      return try fileSystem.synchronize(file.handle)
    }
    try unlink(id.uuidString, in: folders.data.handle)
    try write(contents.bytes, as: id, folders)
  }

  /// Whether a file has these contents. It may be missing, or incomplete because an earlier copy was interrupted.
  private func isPresent(_ id: UUID, _ contents: Data) -> Bool { (try? read(id, operation: "compare a file")) == contents }

  /// Whether there is an item with a file's name.
  func contains(_ id: UUID) -> Bool {
    do throws(FileSystemError) {
      guard let folders = try folders(making: false) else { return false }
      _ = try fileSystem.status(of: id.uuidString, in: folders.data.handle)
      return true
    } catch {
      return error.number != ErrorNumber.notFound
    }
  }

  /// Returns the files that exist in the folder. Their contents aren't checked.
  public func present(_ ids: Set<UUID>) -> Set<UUID> {
    guard !ids.isEmpty, (try? folders(making: false)) != nil else { return [] }
    return ids.filter { contains($0) }
  }

  /// Removes files of a store that no longer exists or no longer names them. Files that don't exist are ignored.
  ///
  /// - Throws: ``/HoldfastStore/StoreError``: `notPermitted`, `inputOutput`.
  public func remove(_ ids: Set<UUID>, operation: String) throws(StoreError) {
    do throws(FileSystemError) {
      guard !ids.isEmpty, let folders = try folders(making: false) else { return }
      for id in ids { try unlink(id.uuidString, in: folders.data.handle) }
      try fileSystem.synchronizeFolder(folders.data.handle)
    } catch {
      throw failure(error, operation: operation)
    }
  }
}
