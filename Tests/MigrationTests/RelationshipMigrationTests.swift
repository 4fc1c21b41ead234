import Foundation
import Holdfast
import HoldfastStore
import SQLiteTestSupport
import TestSupport
import Testing

/// Relationships and superentities of a new version of the model.
@Suite struct RelationshipMigrationTests {
  private typealias Relationship = RelationshipDescription

  /// Dogs and walks with a pair of relationships.
  private func pair(_ walks: RelationshipDescription?, _ dog: RelationshipDescription?) throws -> ManagedObjectModel {
    try model(
      EntityDescription("Dog", relationships: [walks].compactMap { $0 }), EntityDescription("Walk", relationships: [dog].compactMap { $0 }))
  }

  private let walks = Relationship.toMany("walks", to: "Walk", inverse: "dog")
  private let dog = Relationship.toOne("dog", to: "Dog", inverse: "walks")
  private let orderedWalks = Relationship.toMany("walks", to: "Walk", inverse: "dog", isOrdered: true)

  private func fillPair(_ place: MigratedStore.Place, _ model: ManagedObjectModel) throws {
    try place.fill(model) { context in
      let a = try context.add("Dog", "a"), b = try context.add("Dog", "b")
      try context.add("Dog", "c")
      let walks = try (1...4).map { try context.add("Walk", "\($0)") }
      try a.setValue([walks[2], walks[0]], forKey: "walks")
      try b.setValue([walks[1]], forKey: "walks")
    }
  }

  private let pairLines = ["Dog a: walks=[1 3]", "Dog b: walks=[2]", "Dog c: walks=[]"]
  private let walkLines = ["Walk 1: dog=a", "Walk 2: dog=b", "Walk 3: dog=a", "Walk 4: dog=nil"]

  @Test(arguments: MigratedStore.allCases) func relationshipsAndTheirEntitiesAreRenamed(_ store: MigratedStore) throws {
    let place = MigratedStore.Place(store), old = try pair(walks, dog)
    let new = try model(
      EntityDescription("Hound", relationships: [.toMany("trips", to: "Trip", inverse: "hound").renamed(from: "walks")]).renamed(
        from: "Dog"),
      EntityDescription("Trip", relationships: [.toOne("hound", to: "Hound", inverse: "trips").renamed(from: "dog")]).renamed(from: "Walk"))
    try fillPair(place, old)
    #expect(
      try place.contents(new, from: [old]) == [
        "Hound a: trips=[1 3]", "Hound b: trips=[2]", "Hound c: trips=[]", "Trip 1: hound=a", "Trip 2: hound=b", "Trip 3: hound=a",
        "Trip 4: hound=nil",
      ])
  }

  @Test(arguments: MigratedStore.allCases) func aRelationshipGetsAnOrder(_ store: MigratedStore) throws {
    let place = MigratedStore.Place(store), old = try pair(walks, dog), new = try pair(orderedWalks, dog)
    try fillPair(place, old)
    #expect(try place.contents(new, from: [old]) == pairLines + walkLines)
    try place.change(new) { context in
      let a = try context.tagged("Dog", "a")
      try a.setValue([try context.tagged("Walk", "3"), try context.tagged("Walk", "4"), try context.tagged("Walk", "1")], forKey: "walks")
    }
    #expect(try place.contents(new).first == "Dog a: walks=[3 4 1]")
  }

  @Test(arguments: MigratedStore.allCases) func anOrderIsKeptWhenOtherThingsChangeAndLostWithTheSetting(_ store: MigratedStore) throws {
    let place = MigratedStore.Place(store), old = try pair(orderedWalks, dog)
    let renamed = try model(
      EntityDescription("Ant"),
      EntityDescription(
        "Dog", attributes: [.init("age", .integer64, default: 1)],
        relationships: [.toMany("trips", to: "Walk", inverse: "dog", isOrdered: true).renamed(from: "walks")]),
      EntityDescription("Walk", relationships: [.toOne("dog", to: "Dog", inverse: "trips")]))
    try fillPair(place, old)
    #expect(try place.contents(renamed, from: [old]).first == "Dog a: age=1 trips=[3 1]")
    let unordered = try pair(Relationship.toMany("walks", to: "Walk", inverse: "dog").renamed(from: "trips"), dog)
    #expect(try place.contents(unordered, from: [renamed]) == pairLines + walkLines)
  }

  @Test(arguments: MigratedStore.allCases) func aToOneRelationshipBecomesToMany(_ store: MigratedStore) throws {
    let place = MigratedStore.Place(store), old = try pair(walks, dog)
    let new = try pair(
      .toMany("walks", to: "Walk", inverse: "dogs"), Relationship.toMany("dogs", to: "Dog", inverse: "walks").renamed(from: "dog"))
    try fillPair(place, old)
    let lines = pairLines + ["Walk 1: dogs=[a]", "Walk 2: dogs=[b]", "Walk 3: dogs=[a]", "Walk 4: dogs=[]"]
    #expect(try place.contents(new, from: [old]) == lines)
    // And back, as long as no walk has two dogs.
    #expect(try place.contents(try pair(walks, dog.renamed(from: "dogs")), from: [new]) == pairLines + walkLines)
  }

  @Test(arguments: MigratedStore.allCases) func severalDestinationsForAToOneRelationshipAreRefusedAndNothingIsChanged(
    _ store: MigratedStore
  ) throws {
    let place = MigratedStore.Place(store)
    let old = try pair(.toMany("walks", to: "Walk", inverse: "dogs"), .toMany("dogs", to: "Dog", inverse: "walks"))
    try place.fill(old) { context in
      let walk = try context.add("Walk", "w")
      try walk.setValue([try context.add("Dog", "a"), try context.add("Dog", "b")], forKey: "dogs")
    }
    let before = try place.folder.snapshot()
    let error = #expect(throws: MigrationError.self) { try place.contents(try pair(walks, dog.renamed(from: "dogs")), from: [old]) }
    #expect(error?.code == .constraintViolation && error?.coreDataCode == 134111 && error?.problems.first?.path == "Walk.dog")
    #expect(error?.path == place.path)
    // A SQLite file may have another journal mode.
    if store == .json || store == .xml || store == .binary { #expect(try place.folder.snapshot() == before) }
    #expect(try place.contents(old) == ["Dog a: walks=[w]", "Dog b: walks=[w]", "Walk w: dogs=[a b]"])
  }

  @Test(arguments: MigratedStore.allCases) func manyToManyLinksKeepTheirOrdersWhenTheyAreRenamed(_ store: MigratedStore) throws {
    let place = MigratedStore.Place(store)
    let old = try pair(.toMany("walks", to: "Walk", inverse: "dogs", isOrdered: true), .toMany("dogs", to: "Dog", inverse: "walks"))
    try place.fill(old) { context in
      let a = try context.add("Dog", "a"), b = try context.add("Dog", "b"), walks = try (1...3).map { try context.add("Walk", "\($0)") }
      try a.setValue([walks[2], walks[0], walks[1]], forKey: "walks")
      try b.setValue([walks[1], walks[0]], forKey: "walks")
    }
    let new = try model(
      EntityDescription("Bee"),
      EntityDescription(
        "Cur", relationships: [Relationship.toMany("trips", to: "Walk", inverse: "curs", isOrdered: true).renamed(from: "walks")]
      )
      .renamed(from: "Dog"),
      EntityDescription("Walk", relationships: [Relationship.toMany("curs", to: "Cur", inverse: "trips").renamed(from: "dogs")]))
    let lines = ["Cur a: trips=[3 1 2]", "Cur b: trips=[2 1]", "Walk 1: curs=[a b]", "Walk 2: curs=[a b]", "Walk 3: curs=[a]"]
    #expect(try place.contents(new, from: [old]) == lines)
    // Now both ends have an order.
    let both = try model(
      EntityDescription("Cur", relationships: [.toMany("trips", to: "Walk", inverse: "curs", isOrdered: true)]),
      EntityDescription("Walk", relationships: [.toMany("curs", to: "Cur", inverse: "trips", isOrdered: true)]))
    #expect(try place.contents(both, from: [new]) == lines)
    try place.change(both) { context in
      try context.tagged("Walk", "1").setValue([try context.tagged("Cur", "b"), try context.tagged("Cur", "a")], forKey: "curs")
    }
    #expect(try place.contents(both)[2] == "Walk 1: curs=[b a]")
  }

  /// The bug: a missing order key became the key of the object, so that the object came first.
  @Test(arguments: [MigratedStore.sqlite, .coreData]) func objectsWithoutAnOrderKeyStayLast(_ store: MigratedStore) throws {
    let place = MigratedStore.Place(store)
    let old = try pair(.toMany("walks", to: "Walk", inverse: "dogs", isOrdered: true), .toMany("dogs", to: "Dog", inverse: "walks"))
    try place.fill(old) { context in
      let walks = try (1...3).map { try context.add("Walk", "\($0)") }
      try context.add("Dog", "a").setValue([walks[2], walks[0], walks[1]], forKey: "walks")
    }
    // Another program has added the first walk.
    let orders = try SQL.rows(
      place.path,
      "SELECT m.name, c.name FROM sqlite_master AS m, pragma_table_info(m.name) AS c WHERE m.type = 'table' AND c.name LIKE 'Z_FOK_%'")
    let (table, order) = (try #require(orders.first?.first), try #require(orders.first?.last))
    try #require(orders.count == 1)
    try SQL.run(
      place.path, "UPDATE \(table) SET \(order) = NULL WHERE Z_\(order.dropFirst(6)) IN (SELECT Z_PK FROM ZWALK WHERE ZTAG = '1')")
    #expect(try place.contents(old).first == "Dog a: walks=[3 2 1]")
    let new = try model(
      EntityDescription(
        "Dog", relationships: [Relationship.toMany("trips", to: "Walk", inverse: "dogs", isOrdered: true).renamed(from: "walks")]),
      EntityDescription("Walk", relationships: [.toMany("dogs", to: "Dog", inverse: "trips", isOrdered: true)]))
    #expect(
      try place.contents(new, from: [old]) == ["Dog a: trips=[3 2 1]", "Walk 1: dogs=[a]", "Walk 2: dogs=[a]", "Walk 3: dogs=[a]"])
  }

  @Test(arguments: MigratedStore.allCases) func aRelationshipGetsAndLosesAnInverse(_ store: MigratedStore) throws {
    let place = MigratedStore.Place(store), old = try pair(nil, .toOne("dog", to: "Dog", inverse: nil)), new = try pair(walks, dog)
    try place.fill(old) { context in
      let a = try context.add("Dog", "a"), b = try context.add("Dog", "b")
      try context.add("Dog", "c")
      for (place, dog) in [a, b, a].enumerated() { try context.add("Walk", "\(place + 1)").setValue(dog, forKey: "dog") }
      try context.add("Walk", "4")
    }
    #expect(try place.contents(new, from: [old]) == pairLines + walkLines)
    // Only the to-many side stays.
    let toMany = try pair(.toMany("walks", to: "Walk", inverse: nil), nil)
    #expect(try place.contents(toMany, from: [new]) == pairLines + (1...4).map { "Walk \($0):" })
    #expect(try place.contents(new, from: [toMany]) == pairLines + walkLines)
    #expect(try place.contents(old, from: [new]) == ["Dog a:", "Dog b:", "Dog c:"] + walkLines)
  }

  @Test(arguments: MigratedStore.allCases) func oneToOneRelationshipsStayPairs(_ store: MigratedStore) throws {
    let place = MigratedStore.Place(store)
    let old = try pair(.toOne("walk", to: "Walk", inverse: "dog"), .toOne("dog", to: "Dog", inverse: "walk"))
    let oneWay = try pair(.toOne("walk", to: "Walk", inverse: nil), nil)
    try place.fill(old) { context in
      try context.add("Dog", "a").setValue(try context.add("Walk", "w"), forKey: "walk")
      try context.add("Dog", "b")
    }
    #expect(try place.contents(oneWay, from: [old]) == ["Dog a: walk=w", "Dog b: walk=nil", "Walk w:"])
    #expect(try place.contents(old, from: [oneWay]) == ["Dog a: walk=w", "Dog b: walk=nil", "Walk w: dog=a"])
    #expect(try place.contents(oneWay, from: [old]).count == 3)
    try place.change(oneWay) { context in try context.tagged("Dog", "b").setValue(try context.tagged("Walk", "w"), forKey: "walk") }
    let error = #expect(throws: MigrationError.self) { try place.contents(old, from: [oneWay]) }
    #expect(error?.code == .constraintViolation)
    #expect(try place.contents(oneWay) == ["Dog a: walk=w", "Dog b: walk=w", "Walk w:"])
  }

  @Test(arguments: MigratedStore.allCases) func linksToRemovedEntitiesAreRemoved(_ store: MigratedStore) throws {
    let place = MigratedStore.Place(store)
    func animals(_ cats: Bool) throws -> ManagedObjectModel {
      try model(
        [
          EntityDescription("Animal", isAbstract: true, relationships: [.toOne("owner", to: "Owner", inverse: "animals")]),
          EntityDescription("Dog", superentity: "Animal"),
          EntityDescription(
            "Owner",
            relationships: [
              .toMany("animals", to: "Animal", inverse: "owner"), .toOne("favourite", to: "Animal", inverse: nil),
              .toMany("seen", to: "Animal", inverse: nil), .toMany("liked", to: "Animal", inverse: "likedBy", isOrdered: true),
            ]),
        ].map { entity in
          var entity = entity
          if entity.name == "Animal" { entity.relationships.append(.toMany("likedBy", to: "Owner", inverse: "liked")) }
          return entity
        } + (cats ? [EntityDescription("Cat", superentity: "Animal")] : []))
    }
    let old = try animals(true), new = try animals(false)
    try place.fill(old) { context in
      let o = try context.add("Owner", "o"), cat = try context.add("Cat", "c"), dog = try context.add("Dog", "d")
      try o.setValue([cat, dog], forKey: "animals")
      try o.setValue(cat, forKey: "favourite")
      try o.setValue([cat, dog], forKey: "seen")
      try o.setValue([dog, cat], forKey: "liked")
      try context.add("Owner", "p").setValue(dog, forKey: "favourite")
    }
    #expect(
      try place.contents(new, from: [old]) == [
        "Dog d: likedBy=[o] owner=o", "Owner o: animals=[d] favourite=nil liked=[d] seen=[d]",
        "Owner p: animals=[] favourite=d liked=[] seen=[]",
      ])
  }

  @Test(arguments: MigratedStore.allCases) func entitiesGetAndLoseASuperentity(_ store: MigratedStore) throws {
    let place = MigratedStore.Place(store)
    let flat = try model(
      EntityDescription("Dog", attributes: [.init("name", .string, isOptional: true)], relationships: [dog2Owner("dogs")]),
      EntityDescription("Owner", relationships: [.toMany("dogs", to: "Dog", inverse: "owner")]))
    let deep = try model(
      EntityDescription(
        "Animal", isAbstract: true, attributes: [.init("name", .string, isOptional: true)],
        relationships: [.toOne("owner", to: "Owner", inverse: "animals")]),
      EntityDescription("Cat", superentity: "Animal"), EntityDescription("Dog", superentity: "Animal"),
      EntityDescription("Owner", relationships: [Relationship.toMany("animals", to: "Animal", inverse: "owner").renamed(from: "dogs")]))
    try place.fill(flat) { context in
      let o = try context.add("Owner", "o")
      try context.add("Dog", "d", ["name": "Rex"]).setValue(o, forKey: "owner")
    }
    #expect(try place.contents(deep, from: [flat]) == ["Dog d: name=Rex owner=o", "Owner o: animals=[d]"])
    try place.change(deep) { context in
      try context.add("Cat", "c", ["name": "Tom"]).setValue(try context.tagged("Owner", "o"), forKey: "owner")
    }
    #expect(try place.contents(deep) == ["Cat c: name=Tom owner=o", "Dog d: name=Rex owner=o", "Owner o: animals=[c d]"])
    // Back: the cats have no place any more.
    let back = try model(
      EntityDescription("Dog", attributes: [.init("name", .string, isOptional: true)], relationships: [dog2Owner("dogs")]),
      EntityDescription("Owner", relationships: [Relationship.toMany("dogs", to: "Dog", inverse: "owner").renamed(from: "animals")]))
    #expect(try place.contents(back, from: [deep]) == ["Dog d: name=Rex owner=o", "Owner o: dogs=[d]"])
  }

  /// As the error of an entity that becomes abstract says.
  @Test(arguments: MigratedStore.allCases) func anEntityBecomesAbstractIfAnotherOneIsRenamedFromIt(_ store: MigratedStore) throws {
    let place = MigratedStore.Place(store), name = AttributeDescription("name", .string, isOptional: true)
    let owner = EntityDescription("Owner", relationships: [.toMany("dogs", to: "Dog", inverse: "owner")])
    let puppy = EntityDescription("Puppy", superentity: "Dog")
    let old = try model(EntityDescription("Dog", attributes: [name], relationships: [dog2Owner("dogs")]), puppy, owner)
    func new(_ hound: EntityDescription) throws -> ManagedObjectModel {
      let dog = EntityDescription("Dog", isAbstract: true, attributes: [name], relationships: [dog2Owner("dogs")])
      return try model(dog, hound, puppy, owner)
    }
    try place.fill(old) { context in
      let o = try context.add("Owner", "o")
      try context.add("Dog", "d", ["name": "Rex"]).setValue(o, forKey: "owner")
      try context.add("Puppy", "p").setValue(o, forKey: "owner")
    }
    let hound = EntityDescription("Hound", superentity: "Dog")
    let error = #expect(throws: MigrationError.self) { try MappingModel.inferred(from: old, to: new(hound)) }
    #expect(error?.problems.first?.reason.hasSuffix("Give the entity that they become the renaming identifier Dog.") == true)
    let lines = ["Hound d: name=Rex owner=o", "Owner o: dogs=[d p]", "Puppy p: name=nil owner=o"]
    #expect(try place.contents(new(hound.renamed(from: "Dog")), from: [old]) == lines)
  }

  private func dog2Owner(_ inverse: String) -> RelationshipDescription { .toOne("owner", to: "Owner", inverse: inverse) }

  @Test(arguments: MigratedStore.allCases) func aPropertyMovesBetweenEntitiesOfAFamily(_ store: MigratedStore) throws {
    let place = MigratedStore.Place(store), name = AttributeDescription("name", .string, isOptional: true)
    let peers = Relationship.toMany("peers", to: "Animal", inverse: "peers")
    func family(_ animal: [AttributeDescription], _ dog: [AttributeDescription], _ cat: [AttributeDescription]) throws -> ManagedObjectModel
    {
      try model(
        EntityDescription("Animal", attributes: animal, relationships: [peers]),
        EntityDescription("Dog", superentity: "Animal", attributes: dog), EntityDescription("Cat", superentity: "Animal", attributes: cat))
    }
    let below = try family([], [name], [name]), above = try family([name], [], []), only = try family([], [name], [])
    try place.fill(below) { context in
      let a = try context.add("Animal", "a"), c = try context.add("Cat", "c", ["name": "Tom"]),
        d = try context.add("Dog", "d", ["name": "Rex"])
      try a.setValue([c, d], forKey: "peers")
    }
    let peersLines = (a: "peers=[c d]", c: "peers=[a]", d: "peers=[a]")
    #expect(
      try place.contents(above, from: [below]) == [
        "Animal a: name=nil \(peersLines.a)", "Cat c: name=Tom \(peersLines.c)", "Dog d: name=Rex \(peersLines.d)",
      ])
    #expect(
      try place.contents(only, from: [above]) == ["Animal a: \(peersLines.a)", "Cat c: \(peersLines.c)", "Dog d: name=Rex \(peersLines.d)"])
    #expect(
      try place.contents(above, from: [only]) == [
        "Animal a: name=nil \(peersLines.a)", "Cat c: name=nil \(peersLines.c)", "Dog d: name=Rex \(peersLines.d)",
      ])
  }
}
