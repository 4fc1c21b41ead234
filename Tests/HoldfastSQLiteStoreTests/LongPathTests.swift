import Foundation
import HoldfastFiles
import HoldfastStore
import TestSupport
import Testing

@testable import HoldfastSQLiteStore

/// Paths longer than 512 bytes, the limit of SQLite's own file system layer.
@Suite(.enabled(if: FileManager.default.fileExists(atPath: "/proc/self/fd"))) struct LongPathTests {
  private let folder: TemporaryFolder

  init() throws { folder = TemporaryFolder() }

  /// A path of the given length below the scratch folder. Its folders are created.
  private func path(bytes: Int, nameBytes: Int = 20) throws -> String {
    var parent = folder.url.resolvingSymlinksInPath().path
    let parentBytes = bytes - nameBytes - 1
    while parent.utf8.count < parentBytes {
      let room = parentBytes - parent.utf8.count - 1
      try #require(room > 0)
      // Folder names must not be empty.
      parent += "/" + String(repeating: "d", count: room <= 200 ? room : min(200, room - 2))
    }
    try FileManager.default.createDirectory(atPath: parent, withIntermediateDirectories: true)
    return parent + "/" + String(repeating: "f", count: nameBytes)
  }

  private static let model = Result { try TestModels.peopleModel() }

  private func store(_ path: String, _ options: SQLiteStoreOptions = SQLiteStoreOptions()) throws -> StoreUnderTest {
    try StoreUnderTest(folder, try Self.model.get(), path: path, options: options)
  }

  private func files(beside path: String) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: ResolvedFilePath(splitting: path).folder).sorted()
  }

  @Test(arguments: [503, 504, 505, 512, 513, 600, 1024, 4080, 4095], SQLiteStoreOptions.JournalMode.allCases)
  func `a store is created, saved, closed and read at a path of any length that the system allows`(
    bytes: Int, mode: SQLiteStoreOptions.JournalMode
  ) throws {
    let path = try path(bytes: bytes)
    try #require(path.utf8.count == bytes)
    let name = ResolvedFilePath(splitting: path).name
    let options = SQLiteStoreOptions(journalMode: mode, checkpointPages: 2)
    let first = try store(path, options)
    for number in 0..<5 { try first.insert("Person", [["id": .int64(Int64(number))]]) }
    #expect(try files(beside: path) == (mode == .wal ? [name, name + "-shm", name + "-wal"] : [name]))
    #expect(try thrown { _ = try self.store(path) }.code == .alreadyOpen)
    try first.store.close()
    #expect(try files(beside: path) == [name])
    let again = try store(path, SQLiteStoreOptions(isReadOnly: true))
    #expect(try again.all("Person").count == 5)
    try again.store.close()
    #expect(try files(beside: path) == [name])
  }

  @Test func `the longest name with room for the companion files is allowed, and a longer one refused without creating a file`() throws {
    for bytes in [480, 2000] {
      let longest = try path(bytes: bytes, nameBytes: 247)
      let tested = try store(longest)
      try tested.insert("Person", [["id": .int64(1)]])
      try tested.store.close()
      for nameBytes in [248, 251, 255, 256] {
        let tooLong = try path(bytes: bytes + nameBytes - 247, nameBytes: nameBytes)
        let error = try thrown { _ = try self.store(tooLong) }
        #expect(error.code == .invalidPath && error.path == tooLong && error.reason.contains("255"))
      }
      #expect(try files(beside: longest) == [String(repeating: "f", count: 247)])
    }
  }

  @Test func `a path longer than the system's limit is refused, and the error names the limit`() throws {
    let path = try path(bytes: 4095) + "x"
    let error = try thrown { _ = try self.store(path) }
    #expect(error.code == .invalidPath && error.reason.contains("4,095"))
    #expect(try files(beside: path) == [])
  }

  @Test func `without the list of descriptors, a long path is refused with SQLite's limit`() throws {
    let path = try path(bytes: 505)
    let error = storeError { () throws(StoreError) in try SQLiteFileName(path: path, descriptors: "/nonexistent") }
    #expect(error?.code == .invalidPath && error?.path == path)
    #expect(error?.reason.contains("505 bytes") == true && error?.reason.contains("504 bytes") == true)
    #expect(try files(beside: path) == [])
  }

  @Test func `the length of a path counts after resolving links, however short the link is`() throws {
    let path = try path(bytes: 900), link = folder.file("link")
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: ResolvedFilePath(splitting: path).folder)
    let tested = try store(link + "/" + ResolvedFilePath(splitting: path).name)
    try tested.insert("Person", [["id": .int64(1)]])
    #expect(try thrown { _ = try self.store(path) }.code == .alreadyOpen)
    try tested.store.close()
    #expect(try store(path).all("Person").count == 1)
  }

  @Test func `a store's description can read a closed file at a long path`() throws {
    let path = try path(bytes: 700)
    try store(path).store.close()
    let description = StoreDescription.sqlite(at: path)
    let administration = description.administration
    try administration.perform(MetadataChangeRequest(userInfo: ["key": .string("value")]))
    #expect(try administration.perform(MetadataRequest()).userInfo == ["key": .string("value")])
    #expect(try administration.perform(StoredModelRequest())?.entities.count == 2)
    #expect(try SQLiteStore.coreDataModelCache(at: path) == nil)
  }

  @Test func `errors and SQLite's log messages contain the path`() throws {
    let path = try path(bytes: 600)
    try Data((0..<5000).map { UInt8(truncatingIfNeeded: $0) }).write(to: URL(fileURLWithPath: path))
    let error = try thrown { _ = try self.store(path) }
    #expect(error.code == .notAStore && error.path == path && !"\(error)".contains("/proc/"))
    let name = try SQLiteFileName(path: path)
    #expect(name.text != path && name.text.utf8.count < 60)
    #expect(SQLiteFileName.spelledOut("(2) open(\(name.text)-wal) - No such file") == "(2) open(\(path)-wal) - No such file")
    #expect(SQLiteFileName.spelledOut("open(/proc/self/fd/99999/x) - \(name.text)") == "open(/proc/self/fd/99999/x) - \(path)")
  }

  @Test func `closing the store closes the descriptor of its folder`() throws {
    let path = try path(bytes: 600)
    func openFolders() throws -> Int {
      try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").filter {
        (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/" + $0)) == ResolvedFilePath(splitting: path).folder
      }.count
    }
    let tested = try store(path)
    try tested.insert("Person", [["id": .int64(1)]])
    #expect(try tested.all("Person").count == 1)
    #expect(try openFolders() == 1)
    try tested.store.close()
    #expect(try openFolders() == 0)
  }

  @Test func `external values are stored beside a store with a long path`() throws {
    let path = try path(bytes: 900)
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Photo", attributes: [AttributeDescription("bytes", .binaryData, isOptional: true, allowsExternalBinaryDataStorage: true)])
    ])
    let bytes = Data(repeating: 7, count: 200_000)
    let tested = try StoreUnderTest(folder, model, path: path)
    try tested.insert("Photo", [["bytes": .data(bytes)]])
    try tested.store.close()
    #expect(try files(beside: path).count == 2)
    let again = try StoreUnderTest(folder, model, path: path)
    #expect(try again.all("Photo").count == 1)
    try again.store.close()

    // The name of the folder beside the store, `.NAME_SUPPORT`, would be one byte too long.
    let widest = try StoreUnderTest(folder, model, path: try self.path(bytes: 900, nameBytes: 247))
    #expect(try thrown { try widest.insert("Photo", [["bytes": .data(bytes)]]) }.code == .invalidPath)
    #expect(try widest.all("Photo").isEmpty)
    try widest.insert("Photo", [["bytes": .data(Data([1]))]])
  }
}
