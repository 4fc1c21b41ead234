import HoldfastModelFile
import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// All versions of models in a file, a bundle, or a folder.
struct ModelVersions {
  private let path: String

  init(_ path: String) { self.path = path }

  /// Calls a closure with each readable version until it returns false.
  ///
  /// - Throws: `ModelFileError` if the path is that of a model, and none of its versions can be read.
  func forEach(_ body: (ManagedObjectModel) -> Bool) throws {
    guard let models = paths() else {
      _ = try visit(path, body)
      return
    }
    for model in models {
      // Other models of the folder may be readable.
      if (try? visit(model, body)) == false { return }
    }
  }

  private static let extensions = ["momd", "xcdatamodeld", "mom", "xcdatamodel"]

  /// The models in a folder; nil for a model.
  private func paths() -> [String]? {
    if Self.extensions.contains(where: isOfType) { return nil }
    guard let names = try? FileManager.default.subpathsOfDirectory(atPath: path) else { return nil }
    return names.sorted().filter { name in
      // A version inside a bundle is read with the bundle.
      let parents = name.split(separator: "/").dropLast()
      return Self.extensions.contains { name.hasSuffix("." + $0) }
        && !parents.contains { $0.hasSuffix(".momd") || $0.hasSuffix(".xcdatamodeld") }
    }.map { path + "/" + $0 }
  }

  private func isOfType(_ name: String) -> Bool { path.hasSuffix("." + name) || path.hasSuffix("." + name + "/") }

  /// Returns whether to continue.
  private func visit(_ path: String, _ body: (ManagedObjectModel) -> Bool) throws -> Bool {
    var failure: (any Error)?, isEmpty = true
    func read(_ names: [String], _ version: (String) throws -> ManagedObjectModel) -> Bool {
      for name in names {
        do {
          let model = try version(name)
          isEmpty = false
          if !body(model) { return false }
        } catch { failure = error }
      }
      return true
    }
    let continues: Bool
    if path.hasSuffix(".mom") {
      continues = body(try CompiledModel(contentsOf: path).model)
      isEmpty = false
    } else if path.hasSuffix(".momd") || path.hasSuffix(".momd/") {
      let bundle = try CompiledModelBundle(contentsOf: path)
      continues = read(bundle.versionNames) { try bundle.version($0).model }
    } else {
      let bundle = try ModelBundle(contentsOf: path)
      continues = read(bundle.versionNames) { try bundle.model(version: $0) }
    }
    if isEmpty, let failure { throw failure }
    return continues
  }
}
