import Foundation
import HoldfastFiles
import HoldfastJSONStore
import HoldfastSQLiteStore
import TestSupport
import Testing

@testable import Holdfast

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// External files that are missing, damaged or not regular files, and rows with invalid file names.
@Suite struct HostileFilesTests {
  /// A change of the file of a 4,000-byte value, and the error of reading the value.
  enum Harm: String, CaseIterable, Codable {
    case removed, flippedByte, truncated, lengthened, emptied, zeros, link, danglingLink, folder, pipe, huge, otherValue, noFolder,
      linkedFolder

    var code: StoreError.Code {
      switch self {
      case .removed, .noFolder: .missingExternalData
      case .huge: .tooLarge
      default: .damaged
      }
    }
  }

  @Test(arguments: FileStore.all, Harm.allCases)
  func RX15_readingAChangedFileIsAnError(kind: FileStore, harm: Harm) throws {
    let gallery = try GalleryFolder(kind)
    let names = try gallery.make([Gallery.bytes(1, 4000), Gallery.bytes(2, 10), Gallery.bytes(3, 4000)])
    let name = try #require(names[0])
    // A file outside the folder, so that following a link is detected.
    let secret = gallery.folder.file("secret")
    try TemporaryFolder.write(Array("secret".utf8), to: secret)
    try apply(harm, gallery.data + "/" + name, gallery, other: try #require(names[2]))
    let context = try gallery.open(ExternalDataOptions(threshold: 1000, maximumByteCount: 1 << 20))
    let photos = try Gallery.photos(context)
    #expect(photos.map(\.number) == [0, 1, 2] && photos[1].image == Gallery.bytes(2, 10))
    let error = #expect(throws: StoreError.self) { try photos[0].value(forKey: "image") }
    #expect(error?.code == harm.code, "\(String(describing: error))")
    let text = error.map { "\($0)" } ?? ""
    for part in ["Photo.image", "key 1 ", name, gallery.path] { #expect(text.contains(part), "\(part) in \(text)") }
    #expect(!text.contains("secret"))
    // A getter can't throw, so the error is in `faultError`.
    context.acknowledgeFaultErrors()
    #expect(photos[0].image == nil && (context.faultError as? StoreError)?.code == harm.code)
    // The object can be changed and saved, and its value can be replaced.
    photos[0].title = "Renamed"
    #expect(throws: PersistenceError.self) { try context.save() }
    context.acknowledgeFaultErrors()
    try context.save()
    if harm != .noFolder && harm != .linkedFolder { #expect(photos[2].image == Gallery.bytes(3, 4000)) }
    if harm != .linkedFolder {
      photos[0].image = Gallery.bytes(7, 5000)
      try context.save()
      #expect(photos[0].image == Gallery.bytes(7, 5000))
    }
    try context.persistentStoreCoordinator.close()
    #expect(try TemporaryFolder.read(secret) == Array("secret".utf8))
    #expect(gallery.folder.openDescriptors == 0)
  }

  private func apply(_ harm: Harm, _ path: String, _ gallery: GalleryFolder, other: String) throws {
    var bytes = try TemporaryFolder.read(path)
    if harm != .noFolder && harm != .linkedFolder { unlink(path) }
    switch harm {
    case .removed: break
    case .flippedByte:
      bytes[1234] ^= 1
      try TemporaryFolder.write(bytes, to: path)
    case .truncated: try TemporaryFolder.write(Array(bytes.dropLast()), to: path)
    case .lengthened: try TemporaryFolder.write(bytes + [0], to: path)
    case .emptied: try TemporaryFolder.write([], to: path)
    case .zeros: try TemporaryFolder.write([UInt8](repeating: 0, count: bytes.count), to: path)
    case .link: #expect(symlink(gallery.data + "/" + other, path) == 0)
    case .danglingLink: #expect(symlink("/nowhere/at/all", path) == 0)
    case .folder: #expect(mkdir(path, 0o700) == 0)
    case .pipe: #expect(mkfifo(path, 0o600) == 0)
    case .huge:
      try TemporaryFolder.write([1], to: path)
      #expect(truncate(path, 1 << 40) == 0)
    case .otherValue: try FileManager.default.copyItem(atPath: gallery.data + "/" + other, toPath: path)
    case .noFolder: try FileManager.default.removeItem(atPath: gallery.data)
    case .linkedFolder:
      let elsewhere = gallery.folder.file("elsewhere")
      try FileManager.default.moveItem(atPath: gallery.support, toPath: elsewhere)
      #expect(symlink(elsewhere, gallery.support) == 0)
    }
  }

  /// The digest covers every byte of a file.
  @Test func RE1_everyFlippedByteOfAFileIsDetected() throws {
    let gallery = try GalleryFolder(.json)
    let name = try #require(try gallery.make([Gallery.bytes(1, 1500)])[0])
    let path = gallery.data + "/" + name
    let bytes = try TemporaryFolder.read(path)
    let context = try gallery.open()
    let photo = try #require(try Gallery.photos(context).first)
    for place in bytes.indices {
      var flipped = bytes
      flipped[place] ^= UInt8(1 << (place % 8))
      try TemporaryFolder.write(flipped, to: path)
      #expect(throws: StoreError.self, "byte \(place)") { try photo.value(forKey: "image") }
    }
    for length in stride(from: 0, to: bytes.count, by: 7) {
      try TemporaryFolder.write(Array(bytes[..<length]), to: path)
      #expect(throws: StoreError.self, "cut at \(length)") { try photo.value(forKey: "image") }
    }
    try TemporaryFolder.write(bytes, to: path)
    #expect(photo.image == Gallery.bytes(1, 1500))
    try context.persistentStoreCoordinator.close()
  }

  /// Column contents that aren't valid file names.
  @Test(arguments: [
    "x'02'", "x'0200'", "x'03AA'", "x'41'", "x'02' || CAST('../../../../../../../../etc/passwd01' AS BLOB) || x'00'",
    "x'02' || CAST('/etc/passwd/////////////////////////' AS BLOB) || x'00'",
    "x'02' || CAST(lower('01234567-89AB-8DEF-8123-456789ABCDEF') AS BLOB) || x'00'",
    "x'02' || CAST('01234567-89AB-8DEF-8123-456789ABCDEF' AS BLOB)",
    "x'02' || CAST('01234567-89AB-8DEF-8123-456789ABCDEF' AS BLOB) || x'01'",
    "x'02' || CAST('0123456789AB8DEF8123456789ABCDEF....' AS BLOB) || x'00'", "x'02' || zeroblob(100000)",
    "x'02' || CAST('01234567-89AB-8DEF-8123-456789ABCDE/' AS BLOB) || x'00'",
  ])
  func RX15_aColumnThatNamesNoFileIsRefusedWithItsRow(column: String) throws {
    let gallery = try GalleryFolder(.sqlite(.wal))
    _ = try gallery.make([Gallery.bytes(1, 10)])
    try BareDatabase.change(gallery.path, "UPDATE ZPHOTO SET ZIMAGE = CAST(\(column) AS BLOB)")
    let context = try gallery.open()
    let error = #expect(throws: StoreError.self) { try Gallery.photos(context) }
    #expect(error?.code == .wrongType && "\(error.map { "\($0)" } ?? "")".contains("ZPHOTO.ZIMAGE"))
    try context.persistentStoreCoordinator.close()
  }

  @Test(arguments: [
    "external:", "external:../../../../../../../../etc/passwd01", "external:/etc/passwd", "external:01234567-89ab-8def-8123-456789abcdef",
    "external:01234567-89AB-8DEF-8123-456789ABCDEF ", "EXTERNAL:01234567-89AB-8DEF-8123-456789ABCDEF",
    "external:01234567-89AB-8DEF-8123-456789ABCDE/",
  ])
  func RX15_aTextThatNamesNoFileIsRefusedWithItsStore(text: String) throws {
    let gallery = try GalleryFolder(.json)
    let name = try #require(try gallery.make([Gallery.bytes(1, 4000)])[0])
    let file = String(decoding: try TemporaryFolder.read(gallery.path), as: UTF8.self)
    #expect(file.contains("\"external:\(name)\"") && file.contains("\"version\":2,"))
    try TemporaryFolder.write(Array(file.replacingOccurrences(of: "external:\(name)", with: text).utf8), to: gallery.path)
    var options = JSONStoreOptions(wholeFile: WholeFileOptions(externalData: Gallery.small))
    options.wholeFile.allowsUnverified = true
    let error = #expect(throws: StoreError.self) {
      _ = try PersistentStoreCoordinator(model: Gallery.model, store: .json(at: gallery.path, options: options))
    }
    #expect(error?.code == .damaged)
  }

  /// For attributes without external storage, the same bytes are a value, not a file name.
  @Test func attributesWithoutExternalStorageNeverContainFileNames() throws {
    let folder = TemporaryFolder()
    let column = [2] + Array("01234567-89AB-8DEF-8123-456789ABCDEF".utf8) + [0]
    let context = try Harbour.context(.sqlite(at: folder.file()))
    let ship = context.insert(Ship.self)
    ship.name = "Ship"
    ship.plan = Data(column)
    try context.save()
    let fresh = try ManagedObjectContext(coordinator: context.persistentStoreCoordinator, classes: Harbour.classes)
    #expect(try fresh.fetch(FetchRequest<Ship>()).map(\.plan) == [Data(column)])
    try context.persistentStoreCoordinator.close()
    #expect(try BareDatabase(folder.file()).rows("SELECT hex(ZPLAN) FROM ZSHIP") == [column.map { String(format: "%02X", $0) }.joined()])
  }

  /// Files with names that Core Data chose are read, and values are written with its prefix bytes.
  @Test func filesOfCoreDataAreReadAndItsMarksAreWritten() throws {
    let gallery = try GalleryFolder(.sqlite(.wal))
    let names = try gallery.make([Gallery.bytes(1, 10), Gallery.bytes(2, 4000), nil, Data()])
    let name = try #require(names[1])
    let columns = try BareDatabase(gallery.path).rows("SELECT hex(ZIMAGE) FROM ZPHOTO ORDER BY ZNUMBER")
    func hex(_ bytes: [UInt8]) -> String { bytes.map { String(format: "%02X", $0) }.joined() }
    #expect(columns == [hex([1] + Gallery.bytes(1, 10)), hex([2] + Array(name.utf8) + [0]), "", "01"])
    let theirs = UUID().uuidString
    try FileManager.default.moveItem(atPath: gallery.data + "/" + name, toPath: gallery.data + "/" + theirs)
    try BareDatabase.change(gallery.path, "UPDATE ZPHOTO SET ZIMAGE = CAST(x'02' || '\(theirs)' || x'00' AS BLOB) WHERE ZNUMBER = 1")
    try BareDatabase.change(gallery.path, "UPDATE ZPHOTO SET ZIMAGE = 'text' WHERE ZNUMBER = 2")
    let context = try gallery.open()
    let photos = try Gallery.photos(context)
    #expect(photos.map(\.image) == [Gallery.bytes(1, 10), Gallery.bytes(2, 4000), Data("text".utf8), Data()])
    context.delete(photos[1])
    try context.save()
    #expect(gallery.files.isEmpty)
    try context.persistentStoreCoordinator.close()
  }

  /// Only notes in this store's format are used, and only the file names in them.
  @Test(arguments: FileStore.all)
  func RX15_notesOfSavesReferenceOnlyTheStoresFiles(kind: FileStore) throws {
    let gallery = try GalleryFolder(kind)
    let name = try #require(try gallery.make([Gallery.bytes(1, 4000)])[0])
    let context = try gallery.open()
    let uuid = context.persistentStoreCoordinator.metadataIdentifierForTests
    try context.persistentStoreCoordinator.close()
    let secret = gallery.folder.file("secret")
    try TemporaryFolder.write([1], to: secret)
    let orphan = "01234567-89AB-4DEF-8123-456789ABCDEF", unknown = "11234567-89AB-4DEF-8123-456789ABCDEF"
    for file in [orphan, unknown] { try TemporaryFolder.write([1], to: gallery.data + "/" + file) }
    let lines = [
      "../../secret\t1\tPhoto\timage", "\(secret)\t1\tPhoto\timage", "\(name)\t1\tPhoto\timage", "\(name.lowercased())\t1\tPhoto\timage",
      "\(orphan)\t99999999999999999999\tPhoto\timage", "\(orphan)\t-5\tPhoto\timage", "\u{0}\t\t\t", String(repeating: "x", count: 100_000),
      orphan,
    ]
    let note = gallery.support + "/.holdfast-\(uuid).0123456789abcdef.save"
    try TemporaryFolder.write(Array((lines.joined(separator: "\n") + "\n" + unknown + "\t1\tPho").utf8), to: note)
    let other = gallery.support + "/.holdfast-\(UUID().uuidString).0123456789abcdef.save"
    try TemporaryFolder.write(Array("\(name)\t77\tPhoto\timage\n".utf8), to: other)
    #expect(symlink(secret, gallery.support + "/.holdfast-\(uuid).1123456789abcdef.save") == 0)
    #expect(mkfifo(gallery.support + "/.holdfast-\(uuid).2123456789abcdef.save", 0o600) == 0)
    let again = try gallery.open()
    #expect(try Gallery.photos(again).map(\.image) == [Gallery.bytes(1, 4000)])
    try again.persistentStoreCoordinator.close()
    #expect(TemporaryFolder.exists(secret) && !TemporaryFolder.exists(note) && TemporaryFolder.exists(other))
    #expect(gallery.files == [name, unknown].sorted(), "Only the file that a note named and no row has is removed.")
  }

  /// A note about an attribute that isn't in the model is left for a program whose model has it.
  @Test(arguments: FileStore.all)
  func notesAboutUnknownAttributesAreLeft(kind: FileStore) throws {
    let gallery = try GalleryFolder(kind)
    _ = try gallery.make([Gallery.bytes(1, 4000)])
    let context = try gallery.open()
    let uuid = context.persistentStoreCoordinator.metadataIdentifierForTests
    try context.persistentStoreCoordinator.close()
    let orphan = "01234567-89AB-4DEF-8123-456789ABCDEF"
    try TemporaryFolder.write([1], to: gallery.data + "/" + orphan)
    try TemporaryFolder.write(
      Array("\(orphan)\t1\tFilm\timage\n".utf8), to: gallery.support + "/.holdfast-\(uuid).0123456789abcdef.save")
    let again = try gallery.open()
    try again.persistentStoreCoordinator.close()
    #expect(gallery.files.contains(orphan) && gallery.notes.count == 1)
  }
}

extension PersistentStoreCoordinator {
  /// The UUID of the only store.
  fileprivate var metadataIdentifierForTests: String { persistentStores[0].identifier }
}
