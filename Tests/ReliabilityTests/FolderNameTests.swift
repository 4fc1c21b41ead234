import Foundation
import HoldfastStore
import TestSupport
import Testing

@testable import Holdfast

#if canImport(Glibc)
  import Glibc

  /// Names that a string can't represent, or represents in an unusual way. Other systems don't have all of them.
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

    /// The bug: two SQLite stores with such names couldn't be open at the same time.
    @Test(arguments: FileStore.all) func namesThatDifferOnlyInTheirNormalizationAreThoseOfTwoStores(_ kind: FileStore) throws {
      let folder = TemporaryFolder()
      let contexts = try ["\u{E9}", "e\u{301}"].map { try Gallery.context(kind.description(at: folder.file($0), Gallery.small)) }
      for (number, context) in contexts.enumerated() {
        Gallery.insert(Int64(number), Gallery.bytes(1, 4000), context)
        try context.save()
      }
      for (number, context) in contexts.enumerated() {
        #expect(try Gallery.photos(context).map(\.number) == [Int64(number)])
        try context.persistentStoreCoordinator.close()
      }
    }

    /// The bug: in a string, a slash can be one character with the letter after or before it, so it wasn't found in the path.
    @Test(arguments: FileStore.all, ["\u{301}.store", "store\u{600}", "\u{600}/store"])
    func aLetterThatJoinsItsNeighbourIsPartOfAName(_ kind: FileStore, name: String) throws {
      let folder = TemporaryFolder(), image = Gallery.bytes(1, 4000)
      TestFile.makeFolder(folder.file("\u{600}"))
      let store = kind.description(at: folder.file(name), Gallery.small)
      var context = try Gallery.context(store)
      Gallery.insert(1, image, context)
      try context.save()
      try context.persistentStoreCoordinator.close()
      context = try Gallery.context(store)
      #expect(try Gallery.photos(context).map(\.image) == [image])
      try context.persistentStoreCoordinator.close()
    }

    /// The bug: the error named the copy, which is removed.
    @Test(arguments: ["/a/\u{301}.store", "/\u{600}/store"]) func anErrorOfACopyNamesTheStore(path: String) {
      let folder = (path.namesInPath.dropLast() + [".holdfast-1.copy"]).joined(separator: "/")
      let copy = folder + "/" + (path.namesInPath.last ?? "")
      let error = StoreError(.damaged, operation: "read", path: copy, reason: "").located(at: .file(path), insteadOfIn: folder)
      #expect((error as? StoreError)?.path?.utf8.elementsEqual(path.utf8) == true)
    }
  }
#endif
