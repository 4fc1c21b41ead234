import Foundation
import HoldfastSQLiteStore
import HoldfastStore
import TestSupport
import Testing

@testable import Holdfast

/// The folders in which migration plans work, beside their stores.
@Suite struct PlanFolderTests {
  /// The bug: such stores had one folder, so that plans of two stores excluded each other, and destroying one removed what an interrupted
  /// plan of another had done.
  @Test(arguments: ["n", "é", "犬"]) func storesWhoseLongNamesBeginAlikeHaveFoldersOfTheirOwn(_ character: String) throws {
    let folder = TemporaryFolder(), beginning = String(repeating: character, count: 210 / character.utf8.count)
    let stores = ["1", "2", "12345678"].map { StoreDescription.sqlite(at: folder.file(beginning + $0)) }
    let folders = try stores.map { try #require(try PlanFolder(beside: $0, creates: true)) }
    let names = Set(folders.map { String($0.path.split(separator: "/").last ?? "") })
    #expect(names.count == 3 && names.allSatisfy { $0.utf8.count <= 255 && $0.hasPrefix(".holdfast-") && $0.hasSuffix(".migration") })
    #expect(Set(folder.names) == names)
    #expect(throws: StoreError.self) { try PlanFolder(beside: stores[0], creates: true) }
    folders[0].remove()
    #expect(Set(folder.names).count == 2)
  }
}
