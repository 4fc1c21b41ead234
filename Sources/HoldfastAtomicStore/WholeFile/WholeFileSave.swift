import HoldfastFiles
import HoldfastStore
import Synchronization

/// A save that lies beside the file, ready to take its place. Its rows are published when the file is in place, also when that was
/// not confirmed to be durable, since it is what everybody sees; else they are discarded.
final class WholeFileSave: PreparedSave {
  /// Guarded because a save may end on another thread than the one that prepared it.
  private let replacement: Mutex<FileReplacement>
  private let files: ExternalDataSave?
  /// Notes the bytes of the file that is in place; nil when the one before still is.
  private let note: @Sendable (FileBytes?) -> Void

  init(_ replacement: sending FileReplacement, _ files: ExternalDataSave?, _ note: @escaping @Sendable (FileBytes?) -> Void) {
    self.replacement = Mutex(replacement)
    self.files = files
    self.note = note
  }

  deinit { abort() }

  func commit() throws {
    do {
      defer { note(replacement.withLock { $0.committed }) }
      try replacement.withLock { try $0.commit() }
    } catch {
      files?.finish((error as? StoreError)?.code == .durabilityUnknown ? .unknown : .aborted)
      throw error
    }
    files?.finish(.committed)
  }

  func abort() {
    replacement.withLock { $0.abort() }
    files?.finish(.aborted)
  }
}
