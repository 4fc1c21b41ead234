import HoldfastStore

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

// Files that remain when a process ends while it removes, replaces or migrates an entire store.

extension ExternalDataFolder {
  /// Calls a closure that removes a store's file, or replaces it with a copy of another store, and adds or removes external files.
  ///
  /// The names of these files are recorded until the closure returns. If it throws before the store's file is in place, the files that it
  /// has added are removed. If it throws later, or the process ends meanwhile, ``removeLeftFiles(_:)`` removes those that the store at the
  /// path doesn't name. If the disk is full, the closure is called without a record.
  ///
  /// - Parameters:
  ///   - ids: The files that the closure adds or removes.
  ///   - body: Changes the file and its external files.
  public func recording<Result>(_ ids: Set<UUID>, _ body: (ExternalDataChange) throws -> Result) throws -> Result {
    let note = ids.isEmpty ? nil : try? RemovalNote(ids, ofStoreNamed: storeName, storeUUID, folders(making: true), fileSystem)
    // The lock ends when nothing is left to do.
    defer { withExtendedLifetime(note) {} }
    let change = ExternalDataChange(self, note: note?.name)
    do {
      let result = try body(change)
      if let note, let folders = try? folders(making: false) { try? unlink(note.name, in: folders.support.handle) }
      return result
    } catch {
      if let added = change.added {
        if let note { try? remove(Array(added), note: note.name) } else { try? remove(added, operation: "remove added files") }
      }
      throw error
    }
  }

  /// Calls a closure after which the store at the path no longer names some files, and removes them.
  ///
  /// If they can't be removed, or the process ends meanwhile, ``removeLeftFiles(_:)`` removes them.
  ///
  /// - Parameters:
  ///   - ids: The files.
  ///   - operation: The current operation as a verb phrase, for error messages.
  ///   - body: Changes the store. If it throws an error other than `durabilityUnknown` or `outcomeUnknown`, it has changed nothing.
  /// - Throws: Errors of the closure.
  public func removing(_ ids: Set<UUID>, operation: String, after body: () throws -> Void) throws {
    var isDone = false
    do {
      try recording(ids) { change in
        do { try change.place(body) } catch let error as StoreError where error.code == .outcomeUnknown {
          change.cannotBeUndone()
          throw error
        }
        isDone = true
        try remove(ids, operation: operation)
      }
    } catch { if !isDone { throw error } }
  }

  /// Removes the files that interrupted calls of ``recording(_:_:)`` left for a store at this path, whatever its UUID was.
  ///
  /// - Parameter named: Returns all files that the store at the path names now. Called only if there are such files, and at most once. If it
  ///   throws, they remain.
  public func removeLeftFiles(_ named: () throws -> Set<UUID>) {
    guard let folders = try? folders(making: false), let names = try? fileSystem.names(in: folders.support.handle) else { return }
    var used: Set<UUID>?
    for name in names where RemovalNote.isOne(name) {
      // A note that was interrupted while it was written names no files.
      guard let note = RemovalNote(reading: name, folders, fileSystem), note.ids.isEmpty || note.storeName == storeName else { continue }
      guard let current = try? used ?? named() else { return }
      used = current
      try? remove(Array(note.ids.subtracting(current)), note: name)
      // Keep the lock until the files are removed, so that the next process to lock the note finds none.
      withExtendedLifetime(note) {}
    }
  }

  /// The notes of interrupted calls of ``recording(_:_:)`` for a store at this path, locked. While they are, no process removes the files
  /// that they name.
  ///
  /// - Parameter own: The name of the running call's note, or nil.
  func leftNotes(except own: String?) throws(FileSystemError) -> [RemovalNote] {
    guard let folders = try folders(making: false), let names = try? fileSystem.names(in: folders.support.handle) else { return [] }
    var notes: [RemovalNote] = []
    for name in names where RemovalNote.isOne(name) && name != own {
      // A running change of another store in the folder can take long.
      guard let note = RemovalNote(reading: name, folders, fileSystem, locks: false), note.storeName == storeName else { continue }
      try note.lock()
      notes.append(note)
    }
    return notes
  }
}

/// The record of the external files of a store that is being removed, replaced or migrated:
/// `.holdfast-STOREUUID.0123456789abcdef.removal` in the support folder.
///
/// On disk: do not change. The first line is the name of the store's file, and each other one the uppercase UUID of an external file. A line
/// feed in the name is written as `/`, which no file name contains.
struct RemovalNote {
  let storeName: String
  let ids: Set<UUID>
  private let file: NoteFile

  var name: String { file.name }

  private static let suffix = ".removal"

  static func isOne(_ name: String) -> Bool { NoteFile.isOne(name, suffix: suffix) }

  /// Writes a locked note and makes it and its name durable. Nil without a folder.
  init?(
    _ ids: Set<UUID>, ofStoreNamed storeName: String, _ storeUUID: String, _ folders: ExternalDataFolder.OpenFolders?,
    _ fileSystem: any StoreFileSystem
  ) throws(FileSystemError) {
    guard let folders else { return nil }
    (self.storeName, self.ids) = (storeName, ids)
    let name = Self.replacing(UInt8(ascii: "\n"), with: UInt8(ascii: "/"), in: storeName.utf8)
    let text = ([name] + ids.map(\.uuidString)).map { $0 + "\n" }.joined()
    file = try NoteFile(text, of: storeUUID, suffix: Self.suffix, folders, fileSystem)
  }

  /// Reads a note whose writer has ended; nil if it is in use or unreadable.
  ///
  /// - Parameter locks: Whether to lock the note. If not, its writer may use it. Defaults to true.
  init?(reading name: String, _ folders: ExternalDataFolder.OpenFolders, _ fileSystem: any StoreFileSystem, locks: Bool = true) {
    guard let file = NoteFile(reading: name, folders, fileSystem, locks: locks) else { return nil }
    self.file = file
    storeName = Self.replacing(UInt8(ascii: "/"), with: UInt8(ascii: "\n"), in: file.lines.first ?? [])
    ids = Set(file.lines.dropFirst().compactMap { UUID(uuidString: String(decoding: $0, as: UTF8.self)) })
  }

  private static func replacing(_ byte: UInt8, with other: UInt8, in text: some Collection<UInt8>) -> String {
    String(decoding: text.map { $0 == byte ? other : $0 }, as: UTF8.self)
  }

  /// Locks a note that was read without that. Waits for a process that removes the files.
  func lock() throws(FileSystemError) { try file.lock() }
}
