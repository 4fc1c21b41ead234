import Holdfast
import HoldfastStore
import TestSupport
import Testing

#if canImport(Glibc)
  import Glibc

  /// Folders whose names a string can't represent. Other systems don't have them.
  @Suite(.ownThreads) struct FolderNameTests {
    /// The bug: the path was repaired, and the error named a folder that doesn't exist.
    @Test(arguments: FileStore.all) func aFolderWhoseNameIsNotUTF8IsRefusedWithTheReason(_ kind: FileStore) async throws {
      let folder = TemporaryFolder()
      await #expect(processExitsWith: .success) { [kind = kind as FileStore, path = folder.path as String] in
        let name = Array(path.utf8CString.dropLast()) + [UInt8(ascii: "/"), 0xFF, 0].map { CChar(truncatingIfNeeded: $0) }
        precondition(mkdir(name, 0o700) == 0 && symlink(name, path + "/link") == 0 && chdir(name) == 0)
        for file in ["store", path + "/link/store"] {
          do {
            _ = try PersistentStoreCoordinator(model: Harbour.model, store: kind.description(at: file))
            preconditionFailure("The store was opened.")
          } catch let error as StoreError {
            precondition(error.code == .invalidPath && error.path == file && error.reason.contains("UTF-8"), "\(error)")
          }
        }
        // The folder is empty.
        precondition(chdir("/") == 0 && rmdir(name) == 0 && unlink(path + "/link") == 0)
      }
      #expect(folder.names.isEmpty)
    }
  }
#endif
