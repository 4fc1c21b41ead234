import HoldfastFiles
import HoldfastStore
import Synchronization

/// A save that is written to a temporary file and can replace the store's file.
///
/// Its rows are published once the file is in place, even if the disk didn't confirm durability, because other processes already see the
/// file. Otherwise the rows are discarded.
final class WholeFileSave: PreparedSave {
  /// Guarded because a save can end on another thread than the one that prepared it. Nil after the end, so that a finished save that is
  /// still referenced doesn't keep the file open.
  private let replacement: Mutex<FileReplacement?>
  private let files: ExternalDataSave?
  private let receipt: SaveReceipt
  /// Throws if another process has saved the file since, whose save would be lost.
  private let check: @Sendable () throws -> Void
  /// Records the bytes of the current file; nil if the previous file is still in place.
  private let note: @Sendable (FileBytes?) -> Void

  init(
    _ replacement: sending FileReplacement, _ files: ExternalDataSave?, _ receipt: SaveReceipt,
    _ check: @escaping @Sendable () throws -> Void, _ note: @escaping @Sendable (FileBytes?) -> Void
  ) {
    self.replacement = Mutex(replacement)
    self.files = files
    self.receipt = receipt
    self.check = check
    self.note = note
  }

  deinit { abort() }

  func commit() throws -> SaveReceipt {
    do {
      try replacement.withLock { replacement in
        guard let ending = replacement else { preconditionFailure("A save can't be committed after commit() or abort().") }
        defer {
          note(ending.committed)
          replacement = nil
        }
        try check()
        try ending.commit()
      }
    } catch {
      files?.finish((error as? StoreError)?.code == .durabilityUnknown ? .unknown : .aborted)
      throw error
    }
    files?.finish(.committed)
    return receipt
  }

  func abort() {
    replacement.withLock { replacement in
      replacement?.abort()
      replacement = nil
    }
    files?.finish(.aborted)
  }
}
