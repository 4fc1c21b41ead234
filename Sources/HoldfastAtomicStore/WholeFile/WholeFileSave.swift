import HoldfastFiles
import HoldfastStore
import Synchronization

/// A save that is written to a temporary file and can replace the store's file.
///
/// Its rows are published if the file is in place, even if the disk didn't confirm durability, because other processes already see
/// it. Otherwise they are discarded.
final class WholeFileSave: PreparedSave {
  /// Guarded because a save can end on another thread than the one that prepared it.
  private let replacement: Mutex<FileReplacement>
  private let files: ExternalDataSave?
  private let receipt: SaveReceipt
  /// Records the bytes of the current file; nil if the previous file is still in place.
  private let note: @Sendable (FileBytes?) -> Void

  init(
    _ replacement: sending FileReplacement, _ files: ExternalDataSave?, _ receipt: SaveReceipt,
    _ note: @escaping @Sendable (FileBytes?) -> Void
  ) {
    self.replacement = Mutex(replacement)
    self.files = files
    self.receipt = receipt
    self.note = note
  }

  deinit { abort() }

  func commit() throws -> SaveReceipt {
    do {
      defer { note(replacement.withLock { $0.committed }) }
      try replacement.withLock { try $0.commit() }
    } catch {
      files?.finish((error as? StoreError)?.code == .durabilityUnknown ? .unknown : .aborted)
      throw error
    }
    files?.finish(.committed)
    return receipt
  }

  func abort() {
    replacement.withLock { $0.abort() }
    files?.finish(.aborted)
  }
}
