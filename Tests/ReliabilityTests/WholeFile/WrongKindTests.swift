import Foundation
import Holdfast
import HoldfastAtomicStore
import HoldfastFiles
import HoldfastSQLiteStore
import HoldfastStoreConformance
import TestSupport
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Files at the path of a whole-file store that aren't stores, or are stores of another kind.
@Suite struct WrongKindTests {
  private let folder: TemporaryFolder
  private var path: String { folder.file("harbour") }

  init() throws { folder = TemporaryFolder() }

  private func expectRefusal(_ codes: StoreError.Code..., by store: FileStore, _ comment: String = "") throws {
    try ReliabilityTests.expectRefusal(codes, by: store.description(at: path), of: path, in: folder, comment)
    let readOnly = store.description(at: path, file: DurableFileOptions(isReadOnly: true))
    try ReliabilityTests.expectRefusal(codes, by: readOnly, of: path, in: folder, comment + " read-only")
  }

  @Test(arguments: FileStore.wholeFile)
  func RE3_filesOfFortyOtherTypesAreRefusedAndUnchanged(store: FileStore) throws {
    #expect(OtherKinds.all.count >= 40)
    for (name, bytes) in OtherKinds.all {
      try TemporaryFolder.write(bytes, to: path)
      let disk = ReadCountingFileSystem()
      _ = try? store.description(at: path, file: DurableFileOptions(fileSystem: disk)).makeStore().open(model: Harbour.model)
      // Each byte is read at most once, plus the lock file's record.
      #expect(disk.byteCount <= bytes.count + 64, "\(name)")
      try expectRefusal(.notAStore, by: store, name)
      // Accepting unverified files doesn't accept other file types.
      try ReliabilityTests.expectRefusal([.notAStore], by: store.unverified(at: path), of: path, in: folder, name + " unverified")
    }
  }

  /// Each kind of store refuses the files of all other kinds, also if it accepts unverified files.
  @Test(arguments: FileStore.all, FileStore.all)
  func RE3_theFileOfAnotherStoreIsRefused(store: FileStore, other: FileStore) throws {
    if store == other { return }
    try Harbour.makeFile(other.description(at: path))
    // Only the main file matters here.
    for name in try FileManager.default.contentsOfDirectory(atPath: folder.path) where name != "harbour" {
      try FileManager.default.removeItem(atPath: folder.file(name))
    }
    var openings = [store.description(at: path), store.description(at: path, ExternalDataOptions(), isReadOnly: true)]
    if FileStore.wholeFile.contains(store) { openings.append(store.unverified(at: path)) }
    for opening in openings {
      let error = try ReliabilityTests.expectRefusal([.notAStore], by: opening, of: path, in: folder, "\(other)")
      #expect(error?.reason.contains(store.refusal) == true, "\(other): \(String(describing: error))")
    }
    // The other store is unchanged.
    let context = try Harbour.context(other.description(at: path))
    #expect(try Voyage.check(context) == (12, nil))
    try context.persistentStoreCoordinator.close()
  }

  @Test(arguments: FileStore.wholeFile)
  func RE3_anEmptyFileIsRefused(store: FileStore) throws {
    try TemporaryFolder.write([], to: path)
    try expectRefusal(.notAStore, by: store)
  }

  @Test(arguments: FileStore.wholeFile)
  func RE3_aFolderIsRefused(store: FileStore) throws {
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    try expectRefusal(.notAStore, by: store)
  }

  @Test(arguments: FileStore.wholeFile)
  func RE3_aPipeIsRefusedAndNotWaitedFor(store: FileStore) throws {
    #expect(mkfifo(path, 0o600) == 0)
    try expectRefusal(.notAStore, by: store)
  }

  @Test(arguments: FileStore.wholeFile)
  func RE3_aDeviceIsRefusedAndNotReadFrom(store: FileStore) throws {
    let disk = ReadCountingFileSystem()
    let file = DurableFileOptions(fileSystem: disk)
    for device in ["/dev/null", "/dev/zero", "/dev/tty"] {
      try? FileManager.default.removeItem(atPath: path)
      try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: device)
      // The error names the destination of the link.
      try ReliabilityTests.expectRefusal([.notAStore], by: store.description(at: path, file: file), of: device, in: folder, device)
      try ReliabilityTests.expectRefusal([.notAStore], by: store.description(at: device, file: file), of: device, in: folder, device)
    }
    #expect(disk.byteCount == 0)
  }

  @Test(arguments: FileStore.wholeFile)
  func RE3_circularAndDanglingLinksAreRefused(store: FileStore) throws {
    try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: "other")
    try FileManager.default.createSymbolicLink(atPath: folder.file("other"), withDestinationPath: "harbour")
    try expectRefusal(.notAStore, by: store)
    try FileManager.default.removeItem(atPath: folder.file("other"))
    try expectRefusal(.notFound, by: store)
  }

  @Test(arguments: FileStore.wholeFile)
  func RE3_aHugeEmptyFileIsRefusedBeforeItIsRead(store: FileStore) throws {
    try TemporaryFolder.write([0x7B], to: path)
    #expect(truncate(path, 1 << 40) == 0)
    // The bytes are too many to compare.
    let disk = ReadCountingFileSystem()
    let error = try #require(throws: StoreError.self) {
      let description = store.description(at: path, file: DurableFileOptions(fileSystem: disk))
      try PersistentStoreCoordinator(model: Harbour.model, store: description).close()
    }
    #expect(error.code == .tooLarge && error.path == path && error.operation == "open the store", "\(error)")
    #expect(disk.byteCount == 0)
    #expect(folder.openDescriptors == 0)
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["harbour"])
  }
}

extension FileStore {
  /// The part of the error's reason that names the expected format.
  fileprivate var refusal: String {
    switch self {
    case .sqlite: "isn't a SQLite database"
    case .json: "isn't a JSON store"
    case .xml: "isn't an XML store"
    case .binary: "isn't a binary store"
    }
  }
}

/// The first bytes of files of many types.
private enum OtherKinds {
  static let all: [(String, [UInt8])] = binary + text + json

  private static let binary: [(String, [UInt8])] = [
    ("PNG", [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0, 0, 0, 13, 0x49, 0x48, 0x44, 0x52]),
    ("JPEG", [0xFF, 0xD8, 0xFF, 0xE0, 0, 0x10, 0x4A, 0x46, 0x49, 0x46, 0]), ("GIF", Array("GIF89a".utf8) + [1, 0, 1, 0]),
    ("BMP", Array("BM".utf8) + [0x3E, 0, 0, 0, 0, 0]), ("TIFF", [0x49, 0x49, 0x2A, 0, 8, 0, 0, 0]),
    ("WebP", Array("RIFF".utf8) + [4, 0, 0, 0] + Array("WEBPVP8 ".utf8)), ("zip", [0x50, 0x4B, 3, 4, 20, 0, 0, 0]),
    ("gzip", [0x1F, 0x8B, 8, 0, 0, 0, 0, 0]), ("bzip2", Array("BZh91AY&SY".utf8)), ("xz", [0xFD, 0x37, 0x7A, 0x58, 0x5A, 0]),
    ("zstd", [0x28, 0xB5, 0x2F, 0xFD]), ("7z", [0x37, 0x7A, 0xBC, 0xAF, 0x27, 0x1C]),
    ("tar", Array(repeating: 0x61, count: 100) + Array("0000644\0".utf8) + Array(repeating: 0, count: 149) + Array("ustar".utf8)),
    ("ELF", [0x7F, 0x45, 0x4C, 0x46, 2, 1, 1, 0]), ("Mach-O", [0xCF, 0xFA, 0xED, 0xFE]), ("DOS program", Array("MZ".utf8) + [0x90, 0]),
    ("WebAssembly", [0, 0x61, 0x73, 0x6D, 1, 0, 0, 0]), ("class", [0xCA, 0xFE, 0xBA, 0xBE, 0, 0, 0, 52]),
    ("SQLite", Array("SQLite format 3\0".utf8) + Array(repeating: 0, count: 4080)), ("binary property list", Array("bplist00".utf8) + [8]),
    ("Ogg", Array("OggS".utf8) + [0, 2]), ("MP3", Array("ID3".utf8) + [3, 0, 0]), ("MP4", [0, 0, 0, 24] + Array("ftypmp42".utf8)),
    ("PDF", Array("%PDF-1.7\n".utf8)), ("zeros", Array(repeating: 0, count: 70_000)), ("ones", Array(repeating: 0xFF, count: 70_000)),
    ("CBOR", [0xA1, 0x61, 0x61, 0x01]), ("MessagePack", [0x81, 0xA1, 0x61, 0x01]),
    ("UTF-16 JSON", Array("{\"format\":\"holdfast-json\"}".utf8).flatMap { [$0, 0] }),
    ("UTF-16 JSON with a mark", [0xFF, 0xFE] + Array("{\"format\":\"holdfast-json\"}".utf8).flatMap { [$0, 0] }),
    ("UTF-32 JSON", Array("{}".utf8).flatMap { [$0, 0, 0, 0] }), ("Latin-1", [0x67, 0x72, 0xFC, 0xDF, 0x65]),
  ]

  private static let text: [(String, [UInt8])] = [
    ("diary", "Dear diary,\ntoday the sea was calm.\n"), ("a line's end", "\n"), ("a blank", " "), ("a mark alone", "\u{FEFF}"),
    ("XML", "<?xml version=\"1.0\"?><database/>"), ("XML property list", "<?xml version=\"1.0\"?><!DOCTYPE plist><plist/>"),
    ("HTML", "<!DOCTYPE html><html></html>"), ("YAML", "---\nformat: holdfast-json\n"), ("TOML", "[format]\nname = \"holdfast-json\"\n"),
    ("CSV", "format,version\nholdfast-json,1\n"), ("shell", "#!/bin/sh\nexit 0\n"), ("SQL", "CREATE TABLE a (b);\n"),
    ("source", "struct Ship {}\n"), ("JSON lines", "{}\n{}\n"), ("JSON5", "{format: 'holdfast-json'}"),
  ].map { ($0, Array($1.utf8)) }

  private static let json: [(String, [UInt8])] = [
    "{}", "[]", "null", "true", "7", "\"holdfast-json\"", "{\"name\":\"package\",\"version\":\"1.0.0\"}",
    "{\"format\":\"geojson\",\"version\":1}", "{\"format\":7,\"version\":1}", "{\"type\":\"FeatureCollection\",\"features\":[]}",
    "[{\"format\":\"holdfast-json\"}]", "{\"version\":1,\"format\":\"holdfast-json\"}",
  ].map { ("JSON \($0)", Array($0.utf8)) }
}
