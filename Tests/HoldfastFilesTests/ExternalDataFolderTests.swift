import Foundation
import HoldfastFiles
import HoldfastStore
import HoldfastStoreConformance
import TestSupport
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// The durability of external files and their folders, on a simulated disk.
@Suite struct ExternalDataFolderTests {
  private let disk = SimulatedFileSystem()
  private let storeUUID = UUID().uuidString
  private let model: ManagedObjectModel

  init() throws {
    let image = AttributeDescription("image", .binaryData, isOptional: true, allowsExternalBinaryDataStorage: true)
    model = try ManagedObjectModel(entities: [EntityDescription("Photo", attributes: [image])])
  }

  private func folder(_ name: String, on disk: SimulatedFileSystem) -> ExternalDataFolder {
    ExternalDataFolder(
      path: "/" + name, name: name, storeUUID: storeUUID, options: ExternalDataOptions(threshold: 8), permissions: 0o600, fileSystem: disk)
  }

  /// Writes the files of a save, and returns the name of the only one.
  private func write(_ value: Data, to folder: ExternalDataFolder) throws -> UUID {
    let identity = StoreIdentity.intern(storeUUID: storeUUID, model: model)
    let builder = RowBatchBuilder(entity: model.entities[0], identity: identity)
    try builder.append(key: 1, version: 1, values: [.data(value)])
    var changes = SaveRequest.EntityChanges(entity: 0), request = SaveRequest()
    changes.inserted = [builder.seal()]
    request.entities = [changes]
    let save = try ExternalDataSave(request, model: model, folder: folder) { _, _, slots in slots.map { _ in nil } }
    save.finish(.committed)
    guard case .externalData(let id) = save.request.entities[0].inserted[0][0][0] else {
      throw StoreError(.general, operation: "write a value", reason: "The value isn't in a file.")
    }
    return id
  }

  /// Deletes the row whose value is in a file.
  private func delete(_ id: UUID, from folder: ExternalDataFolder) throws {
    var changes = SaveRequest.EntityChanges(entity: 0), request = SaveRequest()
    changes.deleted = SaveRequest.KeyedRows(keys: [1], expectedVersions: [1])
    request.entities = [changes]
    try ExternalDataSave(request, model: model, folder: folder) { _, _, slots in slots.map { _ in id } }.finish(.committed)
  }

  /// The bug: each save that failed in this way left an empty note.
  @Test func aNoteThatCannotBeLockedIsRemoved() throws {
    let files = folder("store", on: disk)
    _ = try write(Data(repeating: 7, count: 10), to: files)
    let names = disk.names
    disk.inject(FileFault(.lock, .error(ENOLCK)))
    #expect(throws: StoreError.self) { _ = try write(Data(repeating: 7, count: 20), to: files) }
    #expect(disk.names == names)
  }

  @Test(arguments: [false, true]) func aPinKeepsTheFilesThatLaterSavesGaveUp(endsLaterPinFirst: Bool) throws {
    let files = folder("store", on: disk)
    let ids = try [10, 20, 30].map { try write(Data(repeating: 7, count: $0), to: files) }
    func kept() -> [Bool] { ids.map { (try? files.read($0, operation: "read a value")) != nil } }
    try delete(ids[0], from: files)
    #expect(kept() == [false, true, true])
    let first = files.pin()
    try delete(ids[1], from: files)
    let second = files.pin()
    try delete(ids[2], from: files)
    #expect(kept() == [false, true, true])
    (endsLaterPinFirst ? second : first).end()
    #expect(kept() == [false, endsLaterPinFirst, true])
    (endsLaterPinFirst ? first : second).end()
    #expect(kept() == [false, false, false])
    files.close()
  }

  /// The bug: while a pin kept the files that saves had replaced, each end of another pin looked at all of these saves.
  @Test func aReadTakesNoLongerWhileAPinKeepsTheFilesOfManySaves() throws {
    func time(_ count: Int) throws -> Duration {
      let files = folder("store \(count)", on: SimulatedFileSystem()), former = UUID()
      let pin = files.pin()
      for _ in 0..<count { try delete(former, from: files) }
      let time = processorTime { for _ in 0..<1_000 { files.pin().end() } }
      pin.end()
      files.close()
      return time
    }
    // 128 times as many saves, and as many pins.
    try expectCost(below: 16, times: { try time(16) }) { try time(2_048) }
  }

  /// Expects that each power loss after the first mark leaves a value.
  private func expectValue(_ value: Data, of id: UUID, in name: String) {
    var count = 0
    disk.forEachCrashState { state in
      if state.lastMark != 1 { return }
      count += 1
      let found = try? folder(name, on: state.fileSystem).read(id, operation: "read a value")
      #expect(found == value, "\(state)")
    }
    #expect(count > 0)
  }

  /// The first attempt makes the folder of the store's external data, and the disk doesn't confirm that.
  @Test(arguments: [1, 2, 3, 4, 5, 6]) func aValueThatIsWrittenAgainAfterAnErrorSurvivesAPowerLoss(failing nth: Int) throws {
    let value = Data(repeating: 7, count: 20), files = folder("store", on: disk)
    disk.startRecording()
    disk.inject(FileFault(.synchronize, nth: nth, .error(EIO)))
    #expect(throws: StoreError.self) { try write(value, to: files) }
    let id = try write(value, to: files)
    disk.mark(1)
    expectValue(value, of: id, in: "store")
  }

  /// The bug: saves of large values, copies of them and their removal failed, and each opening found the same notes again.
  @Test(arguments: [EINVAL, ENOTSUP]) func foldersThatCannotBeSynchronizedKeepValuesAsDurablyAsTheyCan(_ number: Int32) throws {
    let value = Data(repeating: 7, count: 20), system = UnsynchronizedFolders(base: disk, number: number)
    func made(_ name: String) -> ExternalDataFolder {
      ExternalDataFolder(
        path: "/" + name, name: name, storeUUID: storeUUID, options: ExternalDataOptions(threshold: 8), permissions: 0o600,
        fileSystem: system)
    }
    let files = made("store"), copy = made("copy")
    let id = try write(value, to: files)
    #expect(try files.read(id, operation: "read a value") == value)
    try copy.recording([id]) { change in
      try change.add([id], from: files, operation: "copy files")
      try change.place {}
    }
    #expect(try copy.read(id, operation: "read a value") == value)
    try files.remove([id], operation: "remove files")
    #expect(throws: StoreError.self) { try files.read(id, operation: "read a value") }
    files.close()
    copy.close()
    // No note remains.
    let root = try disk.openDirectory("/")
    for name in [".store_SUPPORT", ".copy_SUPPORT"] {
      let support = try disk.openDirectory(name, in: root)
      #expect(try disk.names(in: support).allSatisfy { !$0.hasPrefix(".holdfast-") })
      try disk.close(support)
    }
    try disk.close(root)
  }

  /// The process that copied the file before was killed when its contents weren't durable yet.
  @Test func aFileThatAnInterruptedCopyLeftSurvivesAPowerLossWhenItIsUsedAgain() throws {
    let value = Data(repeating: 7, count: 20), source = folder("source", on: disk), copy = folder("copy", on: disk)
    let id = try write(value, to: source)
    _ = try write(value, to: copy)
    disk.startRecording()
    let root = try disk.openDirectory("/"), support = try disk.openDirectory(".copy_SUPPORT", in: root)
    let data = try disk.openDirectory("_EXTERNAL_DATA", in: support), file = try disk.create(id.uuidString, in: data)
    try disk.writeAll(Array(value), to: file, at: 0)
    try disk.synchronize(data)
    for handle in [file, data, support, root] { try disk.close(handle) }
    try copy.recording([id]) { change in
      try change.add([id], from: source, operation: "copy files")
      try change.place {}
    }
    disk.mark(1)
    expectValue(value, of: id, in: "copy")
  }
}

/// A file system that can't synchronize folders.
private struct UnsynchronizedFolders: ForwardingFileSystem {
  let base: any StoreFileSystem
  let number: Int32

  func synchronize(_ file: StoreFileHandle) throws(FileSystemError) {
    if try base.status(of: file).kind == .directory { throw FileSystemError(.synchronize, name: file.name, number: number) }
    try base.synchronize(file)
  }
}
