import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The folder `.holdfast-NAME.migration` beside a store, in which a plan works. It outlasts the process, so that the plan can be continued.
///
/// ```text
/// .holdfast-Dogs.sqlite.migration
///   plan.json        what is done
///   0/Dogs.sqlite    the store after the stages that are done
///   1/Dogs.sqlite    the store that the next stage with code changes
/// ```
struct PlanFolder {
  /// What is done.
  struct Record: Codable {
    /// The state of the store that was copied.
    var source: StoreFileState
    /// The stages that are done, in order.
    var stages: [String] = []
    /// The number of the store after these stages.
    var store = 0
  }

  private let lock: FolderLock
  /// The store's path without symbolic links, so that everybody finds the same folder, and sees the file's changes.
  let storePath: String
  private let inFile: @Sendable (String) -> StoreDescription
  /// The name of the store's file.
  private let name: String
  /// The path of the folder.
  var path: String { lock.path }

  /// Locks the folder beside a store, and creates it if necessary.
  ///
  /// - Returns: Nil if it doesn't exist and isn't created.
  /// - Throws: ``/HoldfastStore/StoreError`` with code `locked` while a plan is working there.
  init?(beside description: StoreDescription, creates: Bool) throws {
    guard let path = description.location?.path.map({ URL(fileURLWithPath: $0).resolvingSymlinksInPath().path }),
      // The rows of all stores in the folder are read and written once.
      let inFile = description.inFileWithSmallCaches,
      description.administration.supports(ReplacementRequest.self)
    else {
      if creates { throw TemporaryStore.unsupported(description, MigrationRequest.operation) }
      return nil
    }
    storePath = path
    let parts = path.namesInPath
    (self.inFile, name) = (inFile, String(parts.last ?? "store"))
    let folder = ".holdfast-\(Self.shortened(name)).migration"
    guard
      let lock = try FolderLock(
        (parts.dropLast() + [Substring(folder)]).joined(separator: "/"), creates: creates, to: MigrationRequest.operation)
    else { return nil }
    self.lock = lock
  }

  /// The name of a store's file, or its beginning with a digest of the whole: a name has at most 255 bytes.
  private static func shortened(_ name: String) -> String {
    if name.utf8.count <= 200 { return name }
    var digest = ContentDigest(), beginning = name.prefix(200)
    digest.update(name.utf8)
    while beginning.utf8.count > 200 { beginning.removeLast() }
    return "\(beginning)~\(String(digest.value, radix: 16))"
  }

  /// What was recorded last; nil if nothing is done.
  var record: Record? {
    (try? Data(contentsOf: URL(fileURLWithPath: path + "/plan.json"))).flatMap { try? JSONDecoder().decode(Record.self, from: $0) }
  }

  /// Records what is done, and removes other stores.
  ///
  /// The store of that state is durable before. After a power loss, an earlier record may be there.
  func write(_ record: Record) throws {
    do { try JSONEncoder().encode(record).write(to: URL(fileURLWithPath: path + "/plan.json"), options: .atomic) } catch {
      throw failure("What is done can't be recorded.", error)
    }
    removeStores { $0 != record.store }
  }

  /// Whether the store of a record is there, which isn't certain after a power loss.
  func exists(_ record: Record) -> Bool { FileManager.default.fileExists(atPath: "\(path)/\(record.store)/\(name)") }

  /// A store by its number.
  func store(_ number: Int) -> StoreDescription { inFile("\(path)/\(number)/\(name)") }

  /// A store by its number, in an empty folder.
  func newStore(_ number: Int) throws -> StoreDescription {
    removeStores { $0 == number }
    do {
      try FileManager.default.createDirectory(
        atPath: "\(path)/\(number)", withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    } catch { throw failure("The folder for a copy can't be created.", error) }
    return store(number)
  }

  private func failure(_ reason: String, _ cause: any Error) -> StoreError {
    StoreError(
      cause.isOfFullDisk ? .diskFull : .notPermitted, operation: MigrationRequest.operation, path: path,
      reason: reason + " Check the free space and the permissions.", cause: cause, isRetryable: cause.isOfFullDisk)
  }

  /// Removes what is done, and keeps the folder.
  func clear() {
    try? FileManager.default.removeItem(atPath: path + "/plan.json")
    removeStores { _ in true }
  }

  /// Removes the folder, beginning with the record: what remains if the process ends meanwhile isn't used without it. A process that has
  /// just opened the folder notices that it was removed.
  func remove() {
    clear()
    try? FileManager.default.removeItem(atPath: path)
  }

  private func removeStores(where isRemoved: (Int) -> Bool) {
    for name in (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? [] {
      if let number = Int(name), isRemoved(number) { try? FileManager.default.removeItem(atPath: "\(path)/\(name)") }
    }
  }
}
