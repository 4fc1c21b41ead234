import Foundation
import Holdfast
import HoldfastStore
import TestSupport
import Testing

/// Derived values after plans with code, which change what the values depend on.
///
/// Saves add differences to counts and sums, so a number that is wrong after a migration stays wrong.
@Suite struct DerivedMigrationTests {
  private typealias Relationship = RelationshipDescription

  private func owners(cats: Bool, noted: Bool) throws -> ManagedObjectModel {
    let notes: [AttributeDescription] = noted ? [.init("note", .string, isOptional: true)] : []
    return try model(
      [
        EntityDescription(
          "Animal", isAbstract: true, attributes: [.init("weight", .integer64, default: 2)],
          relationships: [.toOne("owner", to: "Owner", inverse: "animals")]),
        EntityDescription("Dog", superentity: "Animal"),
        EntityDescription(
          "Owner",
          attributes: [.derived("count", .integer64, "animals.@count"), .derived("load", .integer64, "animals.weight.@sum")] + notes,
          relationships: [.toMany("animals", to: "Animal", inverse: "owner")]),
      ] + (cats ? [EntityDescription("Cat", superentity: "Animal")] : []))
  }

  /// The bug: the numbers contained the removed objects for ever.
  @Test(arguments: MigratedStore.allCases) func numbersOfOtherObjectsThanBeforeAreComputedAgain(_ store: MigratedStore) throws {
    let place = MigratedStore.Place(store), old = try owners(cats: true, noted: false), new = try owners(cats: false, noted: true)
    try place.fill(old) { context in
      let owner = try context.add("Owner", "o")
      for (entity, tag) in [("Cat", "a"), ("Cat", "b"), ("Dog", "c")] { try context.add(entity, tag).setValue(owner, forKey: "owner") }
    }
    func plan(_ notes: Bool) -> MigrationPlan {
      var plan = MigrationPlan(from: old)
      plan.add(new, named: "dogs") { stage in
        try stage.forEach("Owner") { _, owner in if notes { try owner.setValue("x", forKey: "note") } }
      }
      return plan
    }
    // Only saves of an object compute its values.
    let error = #expect(throws: MigrationError.self) {
      try PersistentStoreCoordinator.migratePersistentStore(place.description, with: plan(false))
    }
    #expect(error?.code == .constraintViolation && error?.problems.map(\.path) == ["Owner.count", "Owner.load"])
    try PersistentStoreCoordinator.migratePersistentStore(place.description, with: plan(true))
    #expect(try place.contents(new) == ["Dog c: weight=2 owner=o", "Owner o: count=1 load=2 note=x animals=[c]"])
    try place.change(new) { context in
      try context.add("Dog", "d").setValue(try context.tagged("Owner", "o"), forKey: "owner")
    }
    #expect(try place.contents(new).last == "Owner o: count=2 load=4 note=x animals=[c d]")
  }

  /// If the links are too many for a relationship, a plan begins without all of them. The bug: the numbers of the former links remained.
  @Test(arguments: MigratedStore.allCases) func numbersBeginAtZeroWithoutLinks(_ store: MigratedStore) throws {
    func pets(_ owner: RelationshipDescription) throws -> ManagedObjectModel {
      try model(
        EntityDescription(
          "Owner",
          attributes: [.derived("count", .integer32, "pets.@count"), .derived("load", .decimal, "pets.weight.@sum")],
          relationships: [.toMany("pets", to: "Pet", inverse: owner.name)]),
        EntityDescription("Pet", attributes: [.init("weight", .integer64, default: 2)], relationships: [owner]))
    }
    let place = MigratedStore.Place(store), old = try pets(.toMany("owners", to: "Owner", inverse: "pets"))
    let new = try pets(Relationship.toOne("owner", to: "Owner", inverse: "pets").renamed(from: "owners"))
    try place.fill(old) { context in
      let (o, p, q) = (try context.add("Owner", "o"), try context.add("Owner", "p"), try context.add("Owner", "q"))
      try context.add("Pet", "a").setValue([o, p, q], forKey: "owners")
      try context.add("Pet", "b").setValue([o], forKey: "owners")
      try context.add("Pet", "c").setValue([o, q], forKey: "owners")
    }
    var plan = MigrationPlan(from: old)
    plan.add(new, named: "first owners") { stage in
      try stage.forEach("Pet") { old, pet in
        let first = try old.objects("owners").min { "\($0["tag"])" < "\($1["tag"])" }
        try pet.setValue(try first.flatMap { try stage.object(for: $0) }, forKey: "owner")
      }
    }
    try PersistentStoreCoordinator.migratePersistentStore(place.description, with: plan)
    #expect(
      try place.contents(new) == [
        "Owner o: count=3 load=6 pets=[a b c]", "Owner p: count=0 load=0 pets=[]", "Owner q: count=0 load=0 pets=[]",
        "Pet a: weight=2 owner=o", "Pet b: weight=2 owner=o", "Pet c: weight=2 owner=o",
      ])
  }

  /// Values that are copied through such a relationship begin without a value.
  @Test(arguments: MigratedStore.allCases) func copiesBeginWithoutAValueWithoutLinks(_ store: MigratedStore) throws {
    func pets(_ inverse: String?) throws -> ManagedObjectModel {
      try model(
        EntityDescription("Owner", relationships: inverse.map { [Relationship.toOne($0, to: "Pet", inverse: "owner")] } ?? []),
        EntityDescription(
          "Pet", attributes: [.derived("ownerTag", .string, "owner.tag")],
          relationships: [.toOne("owner", to: "Owner", inverse: inverse)]))
    }
    let place = MigratedStore.Place(store), old = try pets(nil), new = try pets("pet")
    try place.fill(old) { context in
      let owner = try context.add("Owner", "o")
      for tag in ["a", "b"] { try context.add("Pet", tag).setValue(owner, forKey: "owner") }
    }
    var plan = MigrationPlan(from: old)
    plan.add(new, named: "one pet") { stage in
      try stage.forEach("Pet") { old, pet in
        if old["tag"] == "b", let owner = try old.object("owner") { try pet.setValue(try stage.object(for: owner), forKey: "owner") }
      }
    }
    try PersistentStoreCoordinator.migratePersistentStore(place.description, with: plan)
    #expect(try place.contents(new) == ["Owner o: pet=b", "Pet a: ownerTag=nil owner=nil", "Pet b: ownerTag=o owner=o"])
  }
}
