import Foundation
import Holdfast
import HoldfastMemoryStore
import Testing

@testable import BowTies
@testable import GeneratedBowTies

/// The class that the build plugin generates opens what the program wrote.
@Suite struct GeneratedBowTiesTests {
  @Test func theGeneratedClassReadsAndChangesTheProgramsTies() throws {
    let contents = MemoryStoreContents()
    // It is closed when it is released.
    do { #expect(try Wardrobe(.memory(contents: contents)).ties().count == 4) }
    let container = try PersistentContainer(for: GeneratedBowTies.BowTie.self, store: .memory(contents: contents))
    let context = container.newContext()
    let tie = try #require(try context.fetchOne(GeneratedBowTies.BowTie.self) { $0.searchKey == "B" })
    #expect(tie.name == "Harbour" && tie.isFavorite && tie.timesWorn == 12 && tie.rating == 5)
    #expect(tie.url == URL(string: "https://example.org/ties/harbour") && tie.id.uuidString == "6F9619FF-8B86-4011-B42D-00C04FC964F4")
    let worn = try #require(tie.lastWorn)
    #expect(tie.isInFashion(at: worn.addingTimeInterval(3600)) && !tie.isInFashion(at: worn.addingTimeInterval(31 * 86_400)))
    #expect(try CodableTransformer<BowTies.Color>().value(from: #require(tie.tintColor)).description == "#1e468c")
    tie.rating = 6
    #expect(throws: PersistenceError.self) { try context.save() }
  }
}
