package import Foundation
package import Holdfast
import HoldfastAtomicStore
package import HoldfastStore
import HoldfastStoreConformance

/// What tests need to know about a format to open its files.
package protocol WholeFileFormat {
  associatedtype Options
  /// The file name, with its extension.
  static var fileName: String { get }
  static var defaultOptions: Options { get }
  /// The default options, but files whose digest doesn't match are opened.
  static var unverifiedOptions: Options { get }
  /// The model of the tests.
  static var model: ManagedObjectModel { get }
  static func description(at path: String, isReadOnly: Bool, options: Options) -> StoreDescription
}

/// The file of a whole-file store in a folder of its own. Deleting the object deletes both.
package final class WholeFileFixture<Format: WholeFileFormat> {
  package let temporaryFolder = TemporaryFolder()
  package let path: String

  package init() throws { path = temporaryFolder.file(Format.fileName) }

  package var folder: URL { temporaryFolder.url }
  /// The names in the folder, sorted.
  package var names: [String] { temporaryFolder.names }

  package func bytes() throws -> [UInt8] { try TemporaryFolder.read(path) }
  package func text() throws -> String { String(decoding: try bytes(), as: UTF8.self) }
  package func write(_ bytes: [UInt8]) throws { try TemporaryFolder.write(bytes, to: path) }
  package func write(_ text: String) throws { try write(Array(text.utf8)) }

  package static var unverified: Format.Options { Format.unverifiedOptions }

  /// A context on the file, with its own coordinator.
  package func context(
    _ model: ManagedObjectModel = Format.model, options: Format.Options = Format.defaultOptions, isReadOnly: Bool = false
  ) throws -> ManagedObjectContext {
    let description = Format.description(at: path, isReadOnly: isReadOnly, options: options)
    return try ManagedObjectContext(coordinator: PersistentStoreCoordinator(model: model, store: description))
  }

  /// Opens the file, reads all of it, and closes it.
  package func open(_ model: ManagedObjectModel = Format.model, options: Format.Options = Format.defaultOptions) throws {
    let store = Format.description(at: path, isReadOnly: false, options: options).makeStore()
    do {
      _ = try store.open(model: model)
      try (store as? WholeFileStore)?.verify()
    } catch {
      try? store.close()
      throw error
    }
    try store.close()
  }

  /// The error that opening throws; nil if the file opens.
  package func refusal(_ model: ManagedObjectModel = Format.model, options: Format.Options = Format.defaultOptions) -> StoreError? {
    do {
      try open(model, options: options)
      return nil
    } catch let error as StoreError {
      return error
    } catch {
      return StoreError(.general, operation: "open", reason: "Not a store error: \(error)")
    }
  }
}
