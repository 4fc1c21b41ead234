import Foundation
import TestSupport
import Testing

/// The blocks of the article *Write a store in an afternoon* are a package.
@Suite struct ArticlePackageTests {
  private static let article = "Sources/HoldfastAtomicStore/HoldfastAtomicStore.docc/WriteAStore.md"
  /// The folder in which the modules of the tests were built.
  private static let build = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()

  private func blocks() throws -> [String] {
    try Snippet.all(in: Repository.text(Self.article), of: Self.article).map { $0.lines.joined(separator: "\n") }
  }

  @Test func theFormatAndItsTestsCompileWordForWord() throws {
    let folder = TemporaryFolder(), blocks = try blocks()
    let tests = try #require(blocks.last)
    #expect(tests.hasPrefix("import CSVStore\n"))
    // The first block begins the type, and the others are its functions.
    try folder.write(blocks.dropLast().joined(separator: "\n\n") + "\n}\n", to: "CSVFormat.swift")
    try folder.write(tests, to: "CSVStoreTests.swift")
    func compile(_ arguments: String...) throws -> String {
      let outcome = try Program.run(
        "/usr/bin/env",
        [
          "swiftc", "-swift-version", "6", "-parse-as-library", "-I", Self.build.appending(path: "Modules").path, "-I", folder.path,
          "-Xcc", "-fmodule-map-file=\(Self.build.path)/CHoldfastPOSIX.build/module.modulemap",
        ] + arguments)
      return outcome.output + outcome.errors
    }
    let format = try compile(
      "-emit-module", "-module-name", "CSVStore", "-emit-module-path", folder.file("CSVStore.swiftmodule"), "-enable-upcoming-feature",
      "InternalImportsByDefault", folder.file("CSVFormat.swift"))
    #expect(!format.contains("error:"), "\(format)")
    let kit = try compile("-typecheck", "-module-name", "CSVStoreTests", folder.file("CSVStoreTests.swift"))
    #expect(!kit.contains("error:"), "\(kit)")
  }

  @Test(arguments: [
    (article, "CSVStore", 3), ("Sources/HoldfastRowStore/HoldfastRowStore.docc/WriteARowStore.md", "LogStore", 3),
  ])
  func theManifestNamesProductsOfThisPackage(article: String, target: String, productCount: Int) throws {
    let lines = try Repository.text(article).split(separator: "\n", omittingEmptySubsequences: false)
    let manifest = lines.drop { !$0.hasPrefix("    // swift-tools-version") }.prefix { $0.isEmpty || $0.hasPrefix("    ") }
    let folder = TemporaryFolder()
    try folder.write(manifest.map { String($0.dropFirst(4)) }.joined(separator: "\n"), to: "store/Package.swift")
    for path in ["Sources/\(target)", "Tests/\(target)Tests"] { try folder.write("", to: "store/\(path)/Empty.swift") }
    let dump = try Program.run(
      "/usr/bin/env", ["swift", "package", "--package-path", folder.file("store"), "dump-package"]
    ).output
    let products = try Repository.text("Package.swift").matches(of: #/\.library\(name: "(\w+)"/#).map { String($0.1) }
    let named = Set(manifest.joined().matches(of: #/\.product\(name: "(\w+)"/#).map { String($0.1) })
    #expect(dump.contains("\"\(target)\"") && named.count == productCount && named.isSubset(of: products), "\(dump)")
    // Otherwise the reader's package wouldn't compile.
    let code = try Snippet.all(in: Repository.text(article), of: article).flatMap(\.lines)
    let imported = Set(code.compactMap { $0.wholeMatch(of: #/(?:public )?import (\w+)/#).map { String($0.1) } })
    #expect(imported.subtracting([target, "Foundation", "FoundationEssentials", "Synchronization", "Testing"]).isSubset(of: named))
  }
}
