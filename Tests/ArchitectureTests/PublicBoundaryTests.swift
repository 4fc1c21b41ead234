import Foundation
import TestSupport
import Testing

/// Stores, wrappers and file systems use nothing that those of another package can't use.
@Suite struct PublicBoundaryTests {
  /// The folder in which the modules of the tests were built.
  private static let build = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
  private static let sources = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().appending(path: "Sources")

  /// The errors of a module's sources when they are compiled as part of another package.
  ///
  /// In another package, switches need a default case, because enumerations may get new cases. These errors aren't about declarations.
  private func errors(_ module: String) throws -> [String] {
    let folder = Self.sources.appending(path: module)
    let files = try #require(FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)).compactMap { $0 as? URL }
    let swift = files.map(\.path).filter { $0.hasSuffix(".swift") }
    #expect(!swift.isEmpty)
    let maps =
      ["CHoldfastSQLite", "CHoldfastYajl", "CHoldfastLibXML2", "CHoldfastZlib"].map {
        Self.sources.appending(path: "\($0)/module.modulemap").path
      }
      + [Self.build.appending(path: "CHoldfastPOSIX.build/module.modulemap").path]
    let outcome = try Program.run(
      "/usr/bin/env",
      [
        "swiftc", "-typecheck", "-whole-module-optimization", "-swift-version", "6", "-parse-as-library", "-module-name",
        folder.lastPathComponent, "-package-name",
        "another",
        "-enable-upcoming-feature", "ExistentialAny", "-enable-upcoming-feature", "InternalImportsByDefault", "-enable-upcoming-feature",
        "MemberImportVisibility", "-I", Self.build.appending(path: "Modules").path, "-Xcc", "-I/usr/include/libxml2",
      ] + maps.flatMap { ["-Xcc", "-fmodule-map-file=\($0)"] } + swift)
    return (outcome.output + outcome.errors).split(separator: "\n").map(String.init).filter {
      $0.contains(": error: ") && !$0.contains("may have additional unknown values")
    }
  }

  @Test(arguments: [
    "HoldfastRowStore", "HoldfastMemoryStore", "HoldfastJSONStore", "HoldfastXMLStore", "HoldfastBinaryStore", "HoldfastSQLiteStore",
    "HoldfastAtomicStore", "HoldfastStoreWrappers", "HoldfastEncryption", "Examples/CSVStore", "Examples/LogStore",
  ])
  func aStoreUsesOnlyPublicDeclarations(_ module: String) throws { #expect(try errors(module) == []) }

  @Test func aDeclarationOfThePackageIsFound() throws {
    // It runs recorded requests through a coordinator, which isn't something that a store does.
    #expect(try errors("HoldfastStoreRecording") != [])
  }
}
