public import HoldfastStore
import Synchronization

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// The external files of one save.
///
/// A store creates one at the beginning of `prepare`, saves ``request`` instead of the original request, and calls ``finish(_:)``
/// when the save has ended.
public final class ExternalDataSave: Sendable {
  /// The outcome of a save.
  public enum Outcome: Sendable, Hashable {
    /// The save is committed durably.
    case committed
    /// The store is unchanged.
    case aborted
    /// The outcome or its durability is unknown. No files are removed until the next opening for writing, which determines the
    /// outcome.
    case unknown
  }

  /// The save, with file names instead of large values.
  public let request: SaveRequest
  /// Whether the save writes or removes files. If so, its commit must be durable.
  public var touchesFiles: Bool { work.withLock { $0 != nil } }
  /// The work to do at the end; nil if there is none or it is done.
  private let work: Mutex<Work?>

  private struct Work {
    var folder: ExternalDataFolder
    var note: LockedNote
    var written: [UUID]
    var givenUp: [UUID]
  }

  /// Keeps a note locked.
  private final class LockedNote: @unchecked Sendable {  // because the note is only held, and released once
    let note: ExternalDataNote
    init(_ note: ExternalDataNote) { self.note = note }
  }

  /// Writes the values of a save that exceed the threshold, durably.
  ///
  /// - Parameters:
  ///   - request: The original save request.
  ///   - model: The store's model.
  ///   - folder: The folder for the files.
  ///   - storedIDs: Returns the current file names in some slots of a stored row, or nil for slots without one. Called for updated
  ///     and deleted rows.
  /// - Throws: ``/HoldfastStore/StoreError``: `diskFull`, `notPermitted`, `inputOutput`; `unstorableValue` if a value exceeds the
  ///   limit, or names a file other than the stored one; errors of the closure. After an error, no new file remains.
  public init(
    _ request: SaveRequest, model: ManagedObjectModel, folder: ExternalDataFolder,
    storedIDs: (_ entity: EntityIndex, _ key: ObjectKey, _ slots: [SlotIndex]) throws -> [UUID?]
  ) throws {
    var plan = ExternalDataPlan(request, model: model, options: folder.options)
    try plan.run(storedIDs)
    self.request = plan.request
    if plan.entries.isEmpty {
      work = Mutex(nil)
      return
    }
    do throws(FileSystemError) {
      guard let folders = try folder.folders(making: true) else {
        throw FileSystemError(.openDirectory, name: "", number: ErrorNumber.notFound)
      }
      let note = try ExternalDataNote(plan.entries, of: folder.storeUUID, folders, folder.fileSystem)
      do throws(FileSystemError) {
        for file in plan.files {
          try plan.withBytes(of: file) { bytes throws(FileSystemError) in try folder.write(bytes, as: file.id, folders) }
        }
        if !plan.files.isEmpty { try folder.fileSystem.synchronizeFolder(folders.data.handle) }
      } catch {
        try? folder.remove(plan.files.map(\.id), note: note.name)
        throw error
      }
      work = Mutex(Work(folder: folder, note: LockedNote(note), written: plan.files.map(\.id), givenUp: plan.givenUp))
    } catch {
      throw folder.unwritable(error)
    }
  }

  deinit { finish(.unknown) }

  /// Removes the replaced files after a commit, or the new files after an abort. Only the first call has an effect.
  public func finish(_ outcome: Outcome) {
    let found = work.withLock { work in
      defer { work = nil }
      return work
    }
    guard let found else { return }
    switch outcome {
    case .committed:
      if found.givenUp.isEmpty {
        try? found.folder.remove([], note: found.note.note.name)
      } else {
        found.folder.giveUp(found.givenUp, note: found.note.note.name)
      }
    case .aborted: try? found.folder.remove(found.written, note: found.note.note.name)
    case .unknown: break
    }
  }
}
