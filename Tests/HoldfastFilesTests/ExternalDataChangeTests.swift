import Foundation
import HoldfastFiles
import HoldfastStore
import TestSupport
import Testing

/// External files that are copied for an entire store, when the copy fails.
@Suite struct ExternalDataChangeTests {
  private let folder = TemporaryFolder()
  /// The files of the source.
  private let ids = [UUID(), UUID(), UUID()]
  private let files: ExternalDataFolder
  private let source: ExternalDataFolder

  init() throws {
    func made(_ name: String, in folder: TemporaryFolder) -> ExternalDataFolder {
      ExternalDataFolder(
        path: folder.file(name), name: name, storeUUID: UUID().uuidString, options: ExternalDataOptions(), permissions: 0o600)
    }
    (self.files, source) = (made("copy", in: folder), made("source", in: folder))
    for id in ids { try folder.write("a value", to: ".source_SUPPORT/_EXTERNAL_DATA/\(id)") }
    // The destination has one of them already.
    try folder.write("a value", to: ".copy_SUPPORT/_EXTERNAL_DATA/\(ids[0])")
  }

  private func names(_ ids: some Sequence<UUID>) -> [String] { ids.map(\.uuidString).sorted() }
  private var copied: [String] { TemporaryFolder.names(in: folder.file(".copy_SUPPORT/_EXTERNAL_DATA")) }
  private var notes: [String] { TemporaryFolder.names(in: folder.file(".copy_SUPPORT")).filter { $0.hasSuffix(".removal") } }

  private func copy(place: () throws -> Void) throws {
    try files.recording(Set(ids)) { change in
      try change.add(Set(ids), from: source, operation: "copy files")
      #expect(copied == names(ids) && notes.count == 1)
      try change.place(place)
    }
  }

  private func failure(_ code: StoreError.Code) -> StoreError { StoreError(code, operation: "copy files", reason: "The test throws it.") }

  @Test func aCopyThatSucceedsKeepsItsFiles() throws {
    try copy {}
    #expect(copied == names(ids) && notes.isEmpty)
  }

  @Test func aCopyThatFailsRemovesOnlyTheFilesThatItAdded() throws {
    let error = #expect(throws: StoreError.self) { try copy { throw failure(.cancelled) } }
    #expect(error?.code == .cancelled && copied == names(ids.prefix(1)) && notes.isEmpty)
  }

  @Test func aCopyThatCannotReadAFileRemovesTheOthers() throws {
    try FileManager.default.removeItem(atPath: folder.file(".source_SUPPORT/_EXTERNAL_DATA/\(ids[2])"))
    let error = #expect(throws: StoreError.self) { try copy {} }
    #expect(error?.code == .missingExternalData)
    #expect(copied == names(ids.prefix(1)) && notes.isEmpty)
  }

  /// The new store may be in place, so it may need its files. The next call decides.
  @Test func aCopyWhoseOutcomeTheDiskDidNotConfirmKeepsItsFiles() throws {
    #expect(throws: StoreError.self) { try copy { throw failure(.durabilityUnknown) } }
    #expect(copied == names(ids) && notes.count == 1)
    files.removeLeftFiles { Set(ids.prefix(2)) }
    #expect(copied == names(ids.prefix(2)) && notes.isEmpty)
  }

  @Test func anErrorAfterTheStoreIsInPlaceKeepsItsFiles() throws {
    let error = #expect(throws: StoreError.self) {
      try files.recording(Set(ids)) { change in
        try change.add(Set(ids), from: source, operation: "copy files")
        try change.place {}
        throw failure(.inputOutput)
      }
    }
    #expect(error?.code == .inputOutput && copied == names(ids) && notes.count == 1)
  }

  /// Another process that opens the former store meanwhile doesn't need them, and removes what interrupted copies left.
  @Test func filesOfAnInterruptedCopyStayWhileTheyAreCopiedAgain() throws {
    #expect(throws: StoreError.self) { try copy { throw failure(.durabilityUnknown) } }
    let other = ExternalDataFolder(
      path: folder.file("copy"), name: "copy", storeUUID: UUID().uuidString, options: ExternalDataOptions(), permissions: 0o600)
    try files.recording(Set(ids)) { change in
      try change.add(Set(ids), from: source, operation: "copy files")
      other.removeLeftFiles { [] }
      #expect(copied == names(ids))
      try change.place {}
    }
    #expect(notes.count == 1)
    other.removeLeftFiles { Set(ids.prefix(2)) }
    #expect(copied == names(ids.prefix(2)) && notes.isEmpty)
  }

  /// The bug: such a note was used, so files that a third process had copied again in the meantime were removed.
  @Test func aNoteThatAnotherProcessRemovesBeforeItIsLockedRemovesNoFiles() throws {
    #expect(throws: StoreError.self) { try copy { throw failure(.durabilityUnknown) } }
    let support = folder.file(".copy_SUPPORT")
    let late = ExternalDataFolder(
      path: folder.file("copy"), name: "copy", storeUUID: UUID().uuidString, options: ExternalDataOptions(), permissions: 0o600,
      fileSystem: LateLocks { name in try? FileManager.default.removeItem(atPath: support + "/" + name) })
    late.removeLeftFiles { [] }
    #expect(copied == names(ids) && notes.isEmpty)
  }

  /// A name may contain line feeds, which separate the lines of a note.
  @Test(arguments: ["copy\nof a store", "\ncopy", "copy\n", "\r\n", "copy\n\n5F0E3A9C-1111-4222-8333-0123456789AB"])
  func filesOfAnInterruptedCopyAreRemovedWhateverTheNameOfTheStoreIs(_ name: String) throws {
    func copies(at name: String) -> ExternalDataFolder {
      ExternalDataFolder(
        path: folder.file(name), name: "copy", storeUUID: UUID().uuidString, options: ExternalDataOptions(), permissions: 0o600)
    }
    #expect(throws: StoreError.self) {
      try copies(at: name).recording(Set(ids)) { change in
        try change.add(Set(ids), from: source, operation: "copy files")
        try change.place { throw failure(.durabilityUnknown) }
      }
    }
    #expect(copied == names(ids) && notes.count == 1)
    // A store whose name is a line of that name isn't the same one.
    copies(at: "copy").removeLeftFiles { [] }
    #expect(copied == names(ids) && notes.count == 1)
    copies(at: name).removeLeftFiles { Set(ids.prefix(2)) }
    #expect(copied == names(ids.prefix(2)) && notes.isEmpty)
  }
}

/// Calls a closure with a file's name before it locks the file.
private struct LateLocks: ForwardingFileSystem {
  let base: any StoreFileSystem = POSIXFileSystem()
  let isLocking: @Sendable (String) -> Void

  init(_ isLocking: @escaping @Sendable (String) -> Void) { self.isLocking = isLocking }

  func lock(_ file: StoreFileHandle, timeout: Duration) throws(FileSystemError) {
    isLocking(file.name)
    try base.lock(file, timeout: timeout)
  }
}
