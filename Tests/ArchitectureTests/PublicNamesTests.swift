import Foundation
import TestSupport
import Testing

/// What `import Holdfast` brings into a program, counted in the symbol graphs that the compiler makes of the built modules.
@Suite struct PublicNamesTests {
  /// The parts of a symbol graph that count.
  private struct Graph: Decodable {
    struct Symbol: Decodable { let pathComponents: [String] }
    let symbols: [Symbol]
  }

  /// The modules with names that Holdfast exports, and Holdfast itself.
  private static let modules = ["Holdfast", "HoldfastPropertyList", "HoldfastStore"]

  /// The names that Holdfast exports from other modules.
  private static func exportedNames() throws -> [Substring] {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    let exports = try String(contentsOf: root.appendingPathComponent("Sources/Holdfast/Exports.swift"), encoding: .utf8)
    return exports.split(separator: "\n").filter { $0.hasPrefix("@_exported") }.compactMap { $0.split(separator: ".").last }
  }

  /// The paths of the public symbols of a module, and of its extensions of other modules' types.
  private static func symbols(of module: String, _ target: String, in folder: TemporaryFolder) throws -> [[String]] {
    let built = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent().appendingPathComponent("Modules").path
    let outcome = try Program.run(
      "/usr/bin/env",
      [
        "swift", "symbolgraph-extract", "-module-name", module, "-target", target, "-I", built, "-output-dir", folder.path,
        "-minimum-access-level", "public", "-skip-synthesized-members",
      ])
    let files = folder.names.filter { $0 == "\(module).symbols.json" || $0.hasPrefix("\(module)@") }
    try #require(outcome.status == 0 && !files.isEmpty, "\(outcome.errors)")
    return try files.flatMap { name in
      try JSONDecoder().decode(Graph.self, from: Data(TemporaryFolder.read(folder.file(name)))).symbols.map(\.pathComponents)
    }
  }

  private static func target() throws -> String {
    struct Info: Decodable {
      struct Target: Decodable { let unversionedTriple: String }
      let target: Target
    }
    let outcome = try Program.run("/usr/bin/env", ["swiftc", "-print-target-info"])
    return try JSONDecoder().decode(Info.self, from: Data(outcome.output.utf8)).target.unversionedTriple
  }

  /// Rows, plans and the evaluator come with `import HoldfastStore`: before an export is added, consider that.
  @Test func importingHoldfastBringsTheNamesThatApplicationsUse() throws {
    let folder = TemporaryFolder(), target = try Self.target(), exported = Set(try Self.exportedNames().map(String.init))
    var (names, count, all): (Set<String>, Int, Int) = ([], 0, 0)
    for module in Self.modules {
      let symbols = try Self.symbols(of: module, target, in: folder)
      let visible = module == "Holdfast" ? symbols : symbols.filter { exported.contains($0[0]) }
      names.formUnion(visible.filter { $0.count == 1 }.map { $0[0] })
      count += visible.count
      all += symbols.count
    }
    #expect(exported.count > 30 && exported.isSubset(of: names), "\(exported.subtracting(names).sorted())")
    #expect(names.count <= 120, "\(names.count) names: \(names.sorted().joined(separator: ", "))")
    // With the members of types, a third less than all of the modules.
    #expect(count <= 1_620 && count * 3 < all * 2, "\(count) of \(all) symbols")
  }
}
