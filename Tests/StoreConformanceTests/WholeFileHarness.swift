import Foundation
import HoldfastAtomicStore
import HoldfastStore
import HoldfastStoreConformance
import TestSupport

/// Stores that keep all data in one file.
struct WholeFileHarness: StoreHarness {
  /// Describes a store at a path.
  let describe: @Sendable (_ path: String, _ isReadOnly: Bool, _ options: WholeFileOptions) -> StoreDescription
  /// Whether the stores accept files whose digest doesn't match.
  var allowsUnverified = false

  var capabilities: StoreCapabilities { describe("unused", false, WholeFileOptions()).makeStore().capabilities }

  func makePlace() throws -> StorePlace {
    let folder = FileManager.default.temporaryDirectory.appending(path: "holdfast-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    return place(in: folder)
  }

  private func place(in folder: URL) -> StorePlace {
    let file = folder.appending(path: "store")
    var options = WholeFileOptions(), cramped = WholeFileOptions()
    options.allowsUnverified = allowsUnverified
    cramped.file.fileSystem = POSIXFileSystem().withRoom(256 << 10)
    return StorePlace(
      describe(file.path, false, options), readOnly: describe(file.path, true, options),
      damage: { try Data("This is no store.".utf8).write(to: file) },
      cramped: describe(file.path, false, cramped), copy: { try place(in: copy(folder)) },
      file: DamageableFile(
        // Usually a random distance, so that several runs damage other bytes. A failure names the byte.
        step: TestTier.step(.random(in: 12...24)), read: { try [UInt8](Data(contentsOf: file)) },
        write: { bytes in
          try Data(bytes).write(to: file)
          // It contains the next keys, too.
          try? FileManager.default.removeItem(at: folder.appending(path: ".store.lock"))
        }),
      externalFiles: { try Self.externalFiles(in: folder) },
      onFileSystem: { [describe] fileSystem in
        var options = WholeFileOptions()
        (options.file.fileSystem, options.file.lockTimeout) = (fileSystem, .zero)
        return describe("/store", false, options)
      },
      discard: { try? FileManager.default.removeItem(at: folder) })
  }

  /// The files in the folders `.NAME_SUPPORT/_EXTERNAL_DATA`.
  static func externalFiles(in folder: URL) throws -> [DamageableFile] {
    let support = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil).filter {
      $0.lastPathComponent.hasSuffix("_SUPPORT")
    }
    return try support.flatMap { support in
      let files = support.appending(path: "_EXTERNAL_DATA")
      return try FileManager.default.contentsOfDirectory(at: files, includingPropertiesForKeys: nil).map { file in
        DamageableFile(
          read: { try [UInt8](Data(contentsOf: file)) }, write: { try Data($0).write(to: file) },
          remove: { try FileManager.default.removeItem(at: file) })
      }
    }
  }

  private func copy(_ folder: URL) throws -> URL {
    let copy = FileManager.default.temporaryDirectory.appending(path: "holdfast-\(UUID().uuidString)")
    try FileManager.default.copyItem(at: folder, to: copy)
    return copy
  }
}
