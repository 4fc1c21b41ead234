import Foundation
import Holdfast
import HoldfastStore
import TestSupport
import Testing

/// What a migration would do, before it does it.
@Suite struct PreviewTests {
  @Test(arguments: MigratedStore.allCases) func aPreviewCountsObjectsAndLosses(_ store: MigratedStore) throws {
    let place = MigratedStore.Place(store)
    let old = try model(
      EntityDescription(
        "Dog", attributes: [.init("colour", .string, isOptional: true), .init("unused", .string, isOptional: true)],
        relationships: [.toMany("walks", to: "Walk", inverse: "dog"), .toOne("mouse", to: "Mouse", inverse: nil)]),
      EntityDescription("Mouse"), EntityDescription("Puppy", superentity: "Dog"),
      EntityDescription("Walk", relationships: [.toOne("dog", to: "Dog", inverse: "walks")]), EntityDescription("Zebra"))
    let new = try model(
      EntityDescription("Ant"), EntityDescription("Hound").renamed(from: "Dog"), EntityDescription("Puppy", superentity: "Hound"),
      EntityDescription("Walk"), EntityDescription("Zebra"))
    try place.fill(old) { context in
      let a = try context.add("Dog", "a", ["colour": "red"]), p = try context.add("Puppy", "p", ["colour": "blue"])
      try context.add("Dog", "b").setValue(try context.add("Mouse", "m"), forKey: "mouse")
      for number in 1...3 { try context.add("Walk", "\(number)").setValue(number == 3 ? p : a, forKey: "dog") }
      try context.add("Zebra", "z")
    }
    let before = try place.folder.snapshot()
    let preview = try #require(try PersistentStoreCoordinator.previewMigration(of: place.description.migrating(from: [old]), to: new))
    if store != .sqlite && store != .coreData { #expect(try place.folder.snapshot() == before) }
    #expect(
      preview.description == """
        Ant: new
        Hound, formerly Dog: 2 objects
        Puppy: 1 object
        Walk: 3 objects
        Zebra: 1 object, unchanged
        Lost: Dog.colour of 1 object
        Lost: Dog.mouse of 1 object
        Lost: Dog.walks of 1 object
        Lost: Puppy.colour of 1 object
        Lost: Puppy.walks of 1 object
        Lost: Mouse, 1 object
        Lost: Walk.dog of 3 objects
        """)
    #expect(preview.objectCount == 7 && preview.changedObjectCount == 6)
    #expect(try place.contents(new, from: [old]).count == preview.objectCount)
    #expect(try PersistentStoreCoordinator.previewMigration(of: place.description, to: new) == nil)
  }

  @Test(arguments: MigratedStore.allCases) func aPreviewOfARefusedMigrationThrows(_ store: MigratedStore) throws {
    let place = MigratedStore.Place(store), old = try model(EntityDescription("Dog"))
    let new = try model(EntityDescription("Dog", attributes: [.init("age", .integer16)]))
    try place.fill(old) { try $0.add("Dog", "a") }
    let error = #expect(throws: MigrationError.self) {
      try PersistentStoreCoordinator.previewMigration(of: place.description.migrating(from: [old]), to: new)
    }
    #expect(error?.code == .inferredMappingModel)
  }
}
