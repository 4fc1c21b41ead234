public import HoldfastStore
import Synchronization

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// The files of one save: written before it, and kept or removed after it.
///
/// A store makes one at the beginning of `prepare`, prepares ``request`` in place of what it was given, and calls ``finish(_:)``
/// when the save has ended.
public final class ExternalDataSave: Sendable {
  /// How a save ended.
  public enum Outcome: Sendable, Hashable {
    /// Its rows are there, durably.
    case committed
    /// The store is as it was.
    case aborted
    /// Nobody knows, or not durably. Nothing is removed; the next opening for writing finds out.
    case unknown
  }

  /// The save with names in place of large values.
  public let request: SaveRequest
  /// Whether files were written or are to be removed; such a save has to be durable when it has been committed.
  public var touchesFiles: Bool { work.withLock { $0 != nil } }
  /// What is to be done at the end; nil when it is done, or there is nothing.
  private let work: Mutex<Work?>

  private struct Work {
    var folder: ExternalDataFolder
    var note: LockedNote
    var written: [UUID]
    var givenUp: [UUID]
  }

  /// Keeps a note locked. `@unchecked Sendable` because it is only held, and let go once.
  private final class LockedNote: @unchecked Sendable {  // because nobody reads it
    let note: ExternalDataNote
    init(_ note: ExternalDataNote) { self.note = note }
  }

  /// Writes the values of a save that are larger than the threshold, durably.
  ///
  /// - Parameters:
  ///   - request: the save as the stack made it.
  ///   - model: the store's model.
  ///   - folder: where the files go.
  ///   - storedIDs: the names that a row of the store has now in some slots, in their order; nil for none. Asked for rows that are
  ///     updated or deleted.
  /// - Throws: ``/HoldfastStore/StoreError``: `diskFull`, `notPermitted`, `inputOutput`, `unstorableValue` for a value that is
  ///   larger than the options allow and for a name that is not the one of the same place in the store; what the closure throws. No
  ///   file is left then.
  public init(
    _ request: SaveRequest, model: ManagedObjectModel, folder: ExternalDataFolder,
    storedIDs: (_ entity: Int, _ key: Int64, _ slots: [Int]) throws -> [UUID?]
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
        if !plan.files.isEmpty { try folder.fileSystem.synchronize(folders.data.handle) }
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

  /// Keeps what was written and removes what was given up, or the other way round. Only the first call does anything.
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
