import Foundation
import Holdfast
import HoldfastMemoryStore
import Testing

@Suite struct DerivedTests {
  @Test func theExamplesOfTheArticleRun() throws {
    let coordinator = try PersistentStoreCoordinator(model: dogsAndWalks(), store: .memory())
    let context = try ManagedObjectContext(coordinator: coordinator)
    let dog = try context.insert(entityNamed: "Dog")
    try dog.setValue(.string("Lüdde"), forKey: "name")
    #expect(try dog.value(forKey: "searchName") == .null)
    #expect(try addWalk(of: 20, to: dog, in: context) == .int64(1))
    #expect(try addWalk(of: 30, to: dog, in: context) == .int64(2))
    #expect(try dog.value(forKey: "searchName") == .string("ludde") && dog.value(forKey: "minutes") == .int64(50))
    let walks = try context.fetch(FetchRequest<ManagedObject>(entityName: "Walk"))
    #expect(try walks.allSatisfy { try $0.value(forKey: "dogName") == .string("Lüdde") })
    #expect(numberThatDoesNotFit(in: context) == nil)
  }

  @Test func aSumBeyondItsTypeIsNamed() throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Dog", attributes: [.derived("walkCount", .integer64, "walks.@count"), .derived("minutes", .integer16, "walks.minutes.@sum")],
        relationships: [.toMany("walks", to: "Walk", inverse: "dog")]),
      EntityDescription(
        "Walk", attributes: [AttributeDescription("minutes", .integer32)], relationships: [.toOne("dog", to: "Dog", inverse: "walks")]),
    ])
    let context = try ManagedObjectContext(coordinator: PersistentStoreCoordinator(model: model, store: .memory()))
    let dog = try context.insert(entityNamed: "Dog"), walk = try context.insert(entityNamed: "Walk")
    try walk.setValue(.int64(40_000), forKey: "minutes")
    try dog.toMany(forKey: "walks").insert(walk)
    #expect(numberThatDoesNotFit(in: context) == "minutes")
    try walk.setValue(.int64(40), forKey: "minutes")
    #expect(numberThatDoesNotFit(in: context) == nil)
  }
}
