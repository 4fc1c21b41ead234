public import HoldfastStore

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// The external files of an entire store that is being copied, replaced or removed.
///
/// ``ExternalDataFolder/recording(_:_:)`` passes it to its closure. If the closure throws before ``place(_:)`` has put the store's file in
/// place, the files that were added are removed.
public final class ExternalDataChange {
  private let folder: ExternalDataFolder
  /// The files that were added; nil if they can't be removed anymore.
  private(set) var added: Set<UUID>? = []
  /// The name of this change's note; nil if it has none.
  private let note: String?
  /// The locked notes of interrupted changes; nil if none was looked for.
  private var leftNotes: [RemovalNote]?

  init(_ folder: ExternalDataFolder, note: String?) { (self.folder, self.note) = (folder, note) }

  /// Copies files from another store's folder, durably. Files that already exist with the same contents are kept.
  ///
  /// - Throws: ``/HoldfastStore/StoreError``: the errors of ``ExternalDataFolder/read(_:operation:)`` in the other folder, `diskFull`,
  ///   `notPermitted`, `inputOutput`; `locked` if another process removes files that an interrupted change left, and takes long.
  public func add(_ ids: Set<UUID>, from other: ExternalDataFolder, operation: String) throws(StoreError) {
    if ids.isEmpty { return }
    try lockLeftNotes(operation)
    // Before they are written, because an incomplete file is removed as well. Files that exist may be those of another store.
    added?.formUnion(ids.filter { !folder.contains($0) })
    try folder.add(ids, from: other, operation: operation)
  }

  /// An interrupted change may have left files that this one uses again. A process that opens the former store meanwhile would remove them.
  private func lockLeftNotes(_ operation: String) throws(StoreError) {
    if leftNotes != nil { return }
    do throws(FileSystemError) { leftNotes = try folder.leftNotes(except: note) } catch {
      throw folder.failure(error, operation: operation)
    }
  }

  /// Calls a closure that puts the store's file in place, or removes it.
  ///
  /// - Parameter body: If it throws an error other than `durabilityUnknown`, it has changed nothing.
  public func place(_ body: () throws -> Void) throws {
    do { try body() } catch {
      if (error as? StoreError)?.code == .durabilityUnknown { cannotBeUndone() }
      throw error
    }
    cannotBeUndone()
  }

  /// Keeps the files that were added and the record of their names, even if the closure throws.
  public func cannotBeUndone() { added = nil }
}
