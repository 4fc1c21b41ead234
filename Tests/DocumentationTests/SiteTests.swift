import Foundation
import Testing

/// The site contains what the package offers.
@Suite struct SiteTests {
  /// The library products of the manifest.
  private static let products: [String] = {
    let manifest = (try? Repository.text("Package.swift")) ?? ""
    return manifest.components(separatedBy: ".library(name: \"").dropFirst().compactMap { $0.components(separatedBy: "\"").first }
  }()

  @Test func everyProductIsAModuleOfTheSite() throws {
    let script = try Repository.text("Scripts/build-documentation")
    let list = try #require(script.components(separatedBy: "\nmodules=(").dropFirst().first?.components(separatedBy: ")").first)
    #expect(Self.products.count >= 7)
    #expect(list.split(separator: " ").map(String.init).sorted() == Self.products.sorted())
  }

  @Test(arguments: products) func everyModuleHasAFirstPage(_ module: String) throws {
    let page = try Repository.text("Sources/\(module)/\(module).docc/\(module).md")
    #expect(page.hasPrefix("# ``\(module)``\n"))
  }
}
