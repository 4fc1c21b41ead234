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

  /// The readable versions of one bundle in the order of their names, and the name of the current one.
  ///
  /// - Throws: `ModelFileError` if none can be read.
  static func ordered(at path: String) throws -> (versions: [(name: String, model: ManagedObjectModel)], current: String) {
    var versions: [(name: String, model: ManagedObjectModel)] = [], failure: (any Error)?
    func read(_ names: [String], _ model: (String) throws -> ManagedObjectModel) throws {
      for name in names.sorted(by: precedes) {
        do { versions.append((name, try model(name))) } catch { failure = error }
      }
      if versions.isEmpty, let failure { throw failure }
    }
    let bundle = try Bundle(path)
    try read(bundle.names, bundle.model)
    return (versions, bundle.currentName)
  }

  /// A folder with versions, compiled or not.
  private struct Bundle {
    let names: [String]
    let currentName: String
    let model: (String) throws -> ManagedObjectModel

    init(_ path: String) throws {
      if path.hasSuffix(".momd") || path.hasSuffix(".momd/") {
        let bundle = try CompiledModelBundle(contentsOf: path)
        (names, currentName, model) = (bundle.versionNames, bundle.currentVersionName, { try bundle.version($0).model })
      } else {
        let bundle = try ModelBundle(contentsOf: path)
        (names, currentName, model) = (bundle.versionNames, bundle.currentVersionName, { try bundle.model(version: $0) })
      }
    }
  }

  /// Whether a name comes before another one. Numbers in names are compared as numbers.
  private static func precedes(_ a: String, _ b: String) -> Bool {
    func parts(_ name: String) -> [(text: String, number: Int)] {
      name.matches(of: /([0-9]{1,9})|([^0-9]+)/).map { (String($0.output.2 ?? ""), $0.output.1.flatMap { Int($0) } ?? -1) }
    }
    for (a, b) in zip(parts(a), parts(b)) where a != b { return (a.number, a.text) < (b.number, b.text) }
    return (parts(a).count, a) < (parts(b).count, b)
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
    } else {
      let bundle = try Bundle(path)
      continues = read(bundle.names, bundle.model)
    }
    if isEmpty, let failure { throw failure }
    return continues
  }
}
