import Foundation
import HoldfastAtomicStore
import HoldfastEncryption
import HoldfastFiles
import HoldfastStore
import TestSupport
import Testing

@testable import Holdfast

/// Whole-file stores in encrypted files, through the stack.
@Suite struct EncryptedStoreTests {
  private static let title = "A title that no file may contain"

  private func description(_ gallery: GalleryFolder, key: UInt8 = 1, formerKeys: [UInt8] = [], path: String? = nil) -> StoreDescription {
    let fileSystem = EncryptedFileSystem(ScramblingCipher(key: key, formerKeys: formerKeys))
    let options = WholeFileOptions(file: DurableFileOptions(backupCount: 2, fileSystem: fileSystem), externalData: Gallery.small)
    return gallery.kind.description(at: path ?? gallery.path, options)
  }

  /// Saves a photo whose image is in its row, and one whose image has a file; then changes the first.
  private func fill(_ gallery: GalleryFolder) throws {
    let context = try Gallery.context(description(gallery))
    let photo = Gallery.insert(1, Gallery.bytes(1, 900), context)
    photo.title = Self.title
    Gallery.insert(2, Gallery.bytes(2, 30_000), context)
    try context.save()
    photo.revision = 7
    try context.save()
    try context.persistentStoreCoordinator.close()
  }

  private func check(_ store: StoreDescription) throws {
    let context = try Gallery.context(store)
    let photos = try Gallery.photos(context)
    #expect(photos.map(\.image) == [Gallery.bytes(1, 900), Gallery.bytes(2, 30_000)])
    #expect(photos.map(\.title) == [Self.title, nil] && photos[0].revision == 7)
    try context.persistentStoreCoordinator.close()
  }

  @Test(arguments: FileStore.wholeFile) func noFileContainsNamesTextOrValues(kind: FileStore) throws {
    let gallery = try GalleryFolder(kind)
    try fill(gallery)
    let names = gallery.folder.namesOfAllLevels.filter { !$0.hasSuffix("_SUPPORT") && !$0.hasSuffix("_EXTERNAL_DATA") }
    #expect(gallery.files.count == 1 && Set(names).isSuperset(of: ["gallery.store", "gallery.store~1"]))
    #expect(names.contains { $0.hasSuffix(gallery.files[0]) })
    let secrets =
      [Self.title, "Photo", "revision"].map { Array($0.utf8) }
      + [Array(Gallery.bytes(1, 900)[100..<120]), Array(Gallery.bytes(2, 30_000)[20_000..<20_020])]
    for name in names {
      let bytes = TestFile.read(gallery.folder.file(name))
      for secret in secrets { #expect(bytes.firstRange(of: secret) == nil, "\(name)") }
    }
    try check(description(gallery))
    let backup = try Gallery.context(description(gallery, path: gallery.path + "~1"))
    #expect(try Gallery.photos(backup).map(\.title) == [Self.title, nil])
    try backup.persistentStoreCoordinator.close()
  }

  @Test(arguments: FileStore.wholeFile) func aStoreOpensWithItsKeyOnly(kind: FileStore) throws {
    let gallery = try GalleryFolder(kind)
    try fill(gallery)
    let error = storeError { try Gallery.context(description(gallery, key: 2)) }
    #expect(error?.code == .notPermitted && error?.reason.contains("01010101") == true && error?.path == gallery.path)
    #expect(storeError { try PersistentStoreCoordinator.metadata(for: description(gallery, key: 2)) }?.code == .notPermitted)
    #expect(try PersistentStoreCoordinator.metadata(for: description(gallery)).type == kind.description(at: "", WholeFileOptions()).type)
    // An encrypted file isn't a store without its key, and an unencrypted store can't be opened with one.
    #expect(storeError { try Gallery.context(kind.description(at: gallery.path, WholeFileOptions())) }?.code == .notAStore)
    let plain = try GalleryFolder(kind)
    _ = try plain.make([nil])
    #expect(storeError { try Gallery.context(description(plain)) }?.code == .notAStore)
    try check(description(gallery))
  }

  @Test(arguments: FileStore.wholeFile) func aNewKeyReplacesAnOldOneWithTheNextSaveAndACopyReplacesItEverywhere(kind: FileStore) throws {
    let gallery = try GalleryFolder(kind)
    try fill(gallery)
    try check(description(gallery, key: 2, formerKeys: [1]))
    let context = try Gallery.context(description(gallery, key: 2, formerKeys: [1]))
    try Gallery.photos(context)[0].title = "Other"
    try context.save()
    try Gallery.photos(context)[0].title = Self.title
    try context.save()
    try context.persistentStoreCoordinator.close()

    // The external value still has the old key.
    let other = try Gallery.context(description(gallery, key: 2))
    let photo = try Gallery.photos(other)[1]
    #expect(photo.image == nil && (other.faultError as? StoreError)?.code == .notPermitted)
    try other.persistentStoreCoordinator.close()

    let copy = gallery.folder.file("copy.store")
    try PersistentStoreCoordinator.replacePersistentStore(
      description(gallery, key: 2, formerKeys: [1], path: copy), withCopyOf: description(gallery, key: 2, formerKeys: [1]))
    try check(description(gallery, key: 2, path: copy))
  }

  @Test(arguments: FileStore.wholeFile) func aDamagedFileIsReportedWithItsNameAndWhatToDo(kind: FileStore) throws {
    let gallery = try GalleryFolder(kind)
    try fill(gallery)
    var bytes = TestFile.read(gallery.path)
    bytes[bytes.count / 2] ^= 1
    TestFile.write(bytes, to: gallery.path)
    let error = storeError {
      let context = try Gallery.context(description(gallery))
      for photo in try Gallery.photos(context) {
        _ = photo.title
        if let error = context.faultError { throw error }
      }
    }
    #expect(error?.code == .damaged && error?.path == gallery.path && error?.reason.contains("Restore the file from a backup") == true)
  }

  /// The bug: the repair ended with the error of the damaged chunk.
  @Test(arguments: FileStore.wholeFile) func aRepairRecoversWhatCanBeDecrypted(kind: FileStore) throws {
    let gallery = try GalleryFolder(kind), repaired = gallery.folder.file("repaired.store")
    let context = try Gallery.context(description(gallery))
    for number in 1...300 as ClosedRange<Int64> { Gallery.insert(number, Gallery.bytes(number, 900), context) }
    try context.save()
    try context.persistentStoreCoordinator.close()
    var bytes = TestFile.read(gallery.path)
    bytes[bytes.count / 2] ^= 1
    TestFile.write(bytes, to: gallery.path)
    let report = try PersistentStoreCoordinator.repairPersistentStore(description(gallery), to: description(gallery, path: repaired))
    let found = try Gallery.context(description(gallery, path: repaired)), photos = try Gallery.photos(found)
    #expect((150..<300).contains(photos.count) && report.objectCount == photos.count && !report.isComplete, "\(report)")
    for photo in photos { #expect(photo.image == Gallery.bytes(photo.number, 900)) }
    try found.persistentStoreCoordinator.close()
    // Without the header, nothing can be decrypted.
    bytes[20] ^= 1
    TestFile.write(bytes, to: gallery.path)
    let second = description(gallery, path: gallery.folder.file("second.store"))
    let error = storeError { try PersistentStoreCoordinator.repairPersistentStore(description(gallery), to: second) }
    #expect(error?.code == .damaged && error?.reason.contains("header of the encrypted file") == true)
    #expect(!gallery.folder.exists("second.store"))
  }
}

private func storeError<Result>(_ body: () throws -> Result) -> StoreError? {
  do {
    _ = try body()
    return nil
  } catch { return error as? StoreError }
}
