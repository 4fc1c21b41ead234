import Foundation
import Holdfast
import HoldfastStore
import HoldfastStoreConformance
import SQLiteTestSupport
import Synchronization
import TestSupport
import Testing

/// Links whose ends change their entities.
@Suite struct LinkMigrationTests {
  private typealias Relationship = RelationshipDescription

  /// Changes of links, most of which a first version of migrations got wrong: the former model, objects, the new model, and the contents, or
  /// the path of the problem that is reported.
  struct Change: CustomTestStringConvertible, Sendable {
    var testDescription: String
    var old: [EntityDescription]
    var new: [EntityDescription]
    var lines: [String] = []
    var problem: String?
    var fill: @Sendable (ManagedObjectContext) throws -> Void
  }

  private static let animals = [
    EntityDescription("Animal", isAbstract: true),
    EntityDescription("Cat", superentity: "Animal", attributes: [.init("lives", .integer64, default: 9)]),
    EntityDescription(
      "Dog", superentity: "Animal", attributes: [.init("a", .integer64, default: 1), .init("b", .integer64, default: 2)],
      relationships: [.toOne("walk", to: "Walk", inverse: "dog")]),
    EntityDescription("Walk", relationships: [.toOne("dog", to: "Dog", inverse: "walk")]),
  ]

  static let changes = [
    Change(
      testDescription: "a relationship moves to the superentity", old: animals,
      new: [
        EntityDescription("Animal", isAbstract: true, relationships: [.toOne("walk", to: "Walk", inverse: "animal")]),
        EntityDescription("Cat", superentity: "Animal", attributes: [.init("lives", .integer64, default: 9)]),
        EntityDescription(
          "Dog", superentity: "Animal", attributes: [.init("a", .integer64, default: 1), .init("b", .integer64, default: 2)]),
        EntityDescription("Walk", relationships: [Relationship.toOne("animal", to: "Animal", inverse: "walk").renamed(from: "dog")]),
      ], lines: ["Cat c: lives=9 walk=nil", "Dog d: a=1 b=2 walk=w", "Walk w: animal=d"]
    ) { context in
      try context.add("Cat", "c")
      try context.add("Dog", "d").setValue(try context.add("Walk", "w"), forKey: "walk")
    },
    Change(
      testDescription: "the destination is removed, and another entity has objects with the same keys",
      old: [
        EntityDescription("Ball"), EntityDescription("Owner", relationships: [.toOne("fav", to: "Toy", inverse: nil)]),
        EntityDescription("Toy"),
      ], new: [EntityDescription("Ball"), EntityDescription("Owner", relationships: [.toOne("fav", to: "Ball", inverse: nil)])],
      lines: ["Ball b: ", "Owner o: fav=nil"].map { $0.trimmingCharacters(in: .whitespaces) }
    ) { context in
      try context.add("Ball", "b")
      try context.add("Owner", "o").setValue(try context.add("Toy", "t"), forKey: "fav")
    },
    Change(
      testDescription: "many destinations are removed, and another entity has objects with the same keys",
      old: [
        EntityDescription("Ball"),
        EntityDescription(
          "Owner", relationships: [.toMany("toys", to: "Toy", inverse: "owners"), .toMany("seen", to: "Toy", inverse: nil)]),
        EntityDescription("Toy", relationships: [.toMany("owners", to: "Owner", inverse: "toys")]),
      ],
      new: [
        EntityDescription("Ball", relationships: [.toMany("owners", to: "Owner", inverse: "toys")]),
        EntityDescription(
          "Owner", relationships: [.toMany("toys", to: "Ball", inverse: "owners"), .toMany("seen", to: "Ball", inverse: nil)]),
      ], lines: ["Ball b: owners=[]", "Owner o: seen=[] toys=[]"]
    ) { context in
      try context.add("Ball", "b")
      let toy = try context.add("Toy", "t"), owner = try context.add("Owner", "o")
      try owner.setValue([toy], forKey: "toys")
      try owner.setValue([toy], forKey: "seen")
    },
    Change(
      testDescription: "a pair's inverse is only found in a subentity",
      old: [
        EntityDescription("Dog", relationships: [.toOne("owner", to: "Owner", inverse: "dog")]),
        EntityDescription("Owner", relationships: [.toOne("dog", to: "Dog", inverse: "owner")]),
      ],
      new: [
        EntityDescription("Animal", isAbstract: true, relationships: [.toOne("owner", to: "Owner", inverse: "animal")]),
        EntityDescription("Dog", superentity: "Animal"),
        EntityDescription("Owner", relationships: [.toOne("animal", to: "Animal", inverse: "owner")]),
      ], lines: ["Dog d: owner=o", "Owner o: animal=d"]
    ) { context in try context.add("Dog", "d").setValue(try context.add("Owner", "o"), forKey: "owner") },
    Change(
      testDescription: "many-to-many links are found from a subentity",
      old: [
        EntityDescription("Dog", relationships: [.toMany("owners", to: "Owner", inverse: "dogs")]),
        EntityDescription("Owner", relationships: [.toMany("dogs", to: "Dog", inverse: "owners", isOrdered: true)]),
      ],
      new: [
        EntityDescription("Animal", isAbstract: true, relationships: [.toMany("owners", to: "Owner", inverse: "animals")]),
        EntityDescription("Dog", superentity: "Animal"),
        EntityDescription("Owner", relationships: [.toMany("animals", to: "Animal", inverse: "owners", isOrdered: true)]),
      ], lines: ["Dog d: owners=[o]", "Dog e: owners=[o]", "Owner o: animals=[e d]"]
    ) { context in
      let d = try context.add("Dog", "d"), e = try context.add("Dog", "e")
      try context.add("Owner", "o").setValue([e, d], forKey: "dogs")
    },
    Change(
      testDescription: "two relationships become one",
      old: [
        EntityDescription("Animal", isAbstract: true),
        EntityDescription("Cat", superentity: "Animal", relationships: [.toMany("toys", to: "Toy", inverse: nil)]),
        EntityDescription("Dog", superentity: "Animal", relationships: [.toMany("toys", to: "Toy", inverse: nil)]),
        EntityDescription("Toy"),
      ],
      new: [
        EntityDescription("Animal", isAbstract: true, relationships: [.toMany("toys", to: "Toy", inverse: nil)]),
        EntityDescription("Cat", superentity: "Animal"), EntityDescription("Dog", superentity: "Animal"), EntityDescription("Toy"),
      ], problem: "Animal.toys"
    ) { context in try context.add("Cat", "c").setValue([try context.add("Toy", "t")], forKey: "toys") },
    Change(
      testDescription: "a relationship is divided by its destinations",
      old: [
        EntityDescription("Animal", isAbstract: true, relationships: [.toOne("owner", to: "Owner", inverse: "animals")]),
        EntityDescription("Cat", superentity: "Animal"), EntityDescription("Dog", superentity: "Animal"),
        EntityDescription("Owner", relationships: [.toMany("animals", to: "Animal", inverse: "owner")]),
      ],
      new: [
        EntityDescription("Cat", relationships: [.toOne("owner", to: "Owner", inverse: "cats")]),
        EntityDescription("Dog", relationships: [.toOne("owner", to: "Owner", inverse: "dogs")]),
        EntityDescription(
          "Owner", relationships: [.toMany("cats", to: "Cat", inverse: "owner"), .toMany("dogs", to: "Dog", inverse: "owner")]),
      ], lines: ["Cat c: owner=o", "Dog d: owner=o", "Owner o: cats=[c] dogs=[d]"]
    ) { context in
      let owner = try context.add("Owner", "o")
      for entity in ["Cat", "Dog"] { try context.add(entity, String(entity.lowercased().prefix(1))).setValue(owner, forKey: "owner") }
    },
    Change(
      testDescription: "the second destination is removed",
      old: [
        EntityDescription("Animal", isAbstract: true, relationships: [.toMany("owners", to: "Owner", inverse: "pets")]),
        EntityDescription("Cat", superentity: "Animal"), EntityDescription("Dog", superentity: "Animal"),
        EntityDescription("Owner", relationships: [.toMany("pets", to: "Animal", inverse: "owners")]),
      ],
      new: [
        EntityDescription("Animal", isAbstract: true, relationships: [.toMany("owners", to: "Owner", inverse: "pet")]),
        EntityDescription("Dog", superentity: "Animal"),
        EntityDescription("Owner", relationships: [Relationship.toOne("pet", to: "Animal", inverse: "owners").renamed(from: "pets")]),
      ], lines: ["Dog d: owners=[o]", "Owner o: pet=d"]
    ) { context in
      try context.add("Owner", "o").setValue([try context.add("Dog", "d"), try context.add("Cat", "c")], forKey: "pets")
    },
    Change(
      testDescription: "a relationship that is its own inverse moves to the superentity, and its entity gets another number",
      old: [EntityDescription("Dog", relationships: [.toMany("friends", to: "Dog", inverse: "friends")])],
      new: [
        EntityDescription("Aardvark"),
        EntityDescription("Animal", isAbstract: true, relationships: [.toMany("friends", to: "Animal", inverse: "friends")]),
        EntityDescription("Dog", superentity: "Animal"),
      ], lines: ["Dog a: friends=[b c]", "Dog b: friends=[a]", "Dog c: friends=[a]"]
    ) { context in
      let others = try ["b", "c"].map { try context.add("Dog", $0) }
      try context.add("Dog", "a").setValue(others, forKey: "friends")
    },
    Change(
      testDescription: "a relationship that is its own inverse becomes to-one",
      old: [EntityDescription("Dog", relationships: [.toMany("friends", to: "Dog", inverse: "friends")])],
      new: [EntityDescription("Dog", relationships: [Relationship.toOne("friend", to: "Dog", inverse: "friend").renamed(from: "friends")])],
      lines: ["Dog a: friend=b", "Dog b: friend=a", "Dog c: friend=nil"]
    ) { context in
      try context.add("Dog", "c")
      try context.add("Dog", "a").setValue([try context.add("Dog", "b")], forKey: "friends")
    },
    Change(
      testDescription: "a to-one relationship that is its own inverse becomes a pair of others",
      old: [EntityDescription("Dog", relationships: [.toOne("friend", to: "Dog", inverse: "friend")])],
      new: [
        EntityDescription(
          "Dog", relationships: [.toMany("friend", to: "Dog", inverse: "others"), .toMany("others", to: "Dog", inverse: "friend")])
      ], lines: ["Dog a: friend=[b] others=[b]", "Dog b: friend=[a] others=[a]"]
    ) { context in try context.add("Dog", "a").setValue(try context.add("Dog", "b"), forKey: "friend") },
  ]

  @Test(arguments: changes, MigratedStore.allCases) func linksAreThoseOfTheFormerObjects(_ change: Change, _ store: MigratedStore) throws {
    let place = MigratedStore.Place(store), old = try model(change.old), new = try model(change.new)
    try place.fill(old, change.fill)
    guard let problem = change.problem else {
      #expect(try place.contents(new, from: [old]) == change.lines)
      return
    }
    let error = #expect(throws: MigrationError.self) { try place.contents(new, from: [old]) }
    #expect(error?.problems.contains { $0.path == problem } == true, "\(error?.problems ?? [])")
  }

  @Test(arguments: MigratedStore.allCases) func anIdentifierWinsOverAnEqualName(_ store: MigratedStore) throws {
    let place = MigratedStore.Place(store), text = { AttributeDescription($0, .string, isOptional: true) }
    let old = try model(EntityDescription("Dog", attributes: [text("a")]))
    let new = try model(
      EntityDescription("Dog", attributes: [text("z")]),
      EntityDescription("Hound", attributes: [text("a"), text("b").renamed(from: "a")]).renamed(from: "Dog"))
    try place.fill(old) { try $0.add("Dog", "x", ["a": "red"]) }
    #expect(try place.contents(new, from: [old]) == ["Hound x: a=nil b=red"])
  }

  @Test(arguments: MigratedStore.allCases) func objectIDsInAttributesGetTheNewNames(_ store: MigratedStore) throws {
    let place = MigratedStore.Place(store), reference = AttributeDescription("r", .objectID, isOptional: true)
    let old = try model(EntityDescription("A", attributes: [reference]), EntityDescription("B"), EntityDescription("C"))
    let new = try model(
      EntityDescription("A").renamed(from: "B"), EntityDescription("B", attributes: [reference]).renamed(from: "A"), EntityDescription("D"))
    try place.fill(old) { context in
      let a = try ["A", "B", "C"].map { try context.add($0, "to \($0)") }
      try context.save()
      for (number, target) in a.enumerated() {
        try context.add("A", "\(number)").setValue(StoreValue.objectID(target.objectID), forKey: "r")
      }
      try context.add("A", "3").setValue(
        try #require(ManagedObjectID(uriRepresentation: "x-coredata://ABC/A/p1").map { StoreValue.objectID($0) }), forKey: "r")
    }
    try place.change(new, from: [old]) { context in
      func value(_ tag: String) throws -> StoreValue? { try context.tagged("B", tag).value(forKey: "r").storeValue }
      #expect(try value("0") == .objectID(try context.tagged("B", "to A").objectID))
      #expect(try value("1") == .objectID(try context.tagged("A", "to B").objectID))
      #expect(try value("2") == .null)
      guard case .objectID(let other)? = try value("3") else {
        Issue.record("The ID of another store is lost.")
        return
      }
      #expect(other.uriRepresentation == "x-coredata://ABC/A/p1")
    }
  }

  /// The bug: JSON, XML and binary stores removed the IDs, and SQLite stores kept them, so that no object was found by them.
  @Test(arguments: MigratedStore.allCases) func objectIDsThatNameASuperentityAreThoseOfTheSameObjects(_ store: MigratedStore) throws {
    let place = MigratedStore.Place(store), note = EntityDescription("Note", attributes: [.init("r", .objectID, isOptional: true)])
    let old = try model(
      note, EntityDescription("Animal", isAbstract: true), EntityDescription("Cat", superentity: "Animal"),
      EntityDescription("Dog", superentity: "Animal"), EntityDescription("Mouse", superentity: "Animal"))
    let new = try model(note, EntityDescription("Cat"), EntityDescription("Hound").renamed(from: "Dog"))
    try place.fill(old) { context in
      let animals = try ["Cat", "Dog", "Mouse"].map { try context.add($0, "to \($0)") }
      try context.save()
      for animal in animals {
        let uri = animal.objectID.uriRepresentation.replacing("/\(animal.entity.name)/", with: "/Animal/")
        let id = try #require(ManagedObjectID(uriRepresentation: uri))
        try context.add("Note", try Contents.tag(animal)).setValue(StoreValue.objectID(id), forKey: "r")
      }
    }
    try place.change(new, from: [old]) { context in
      let values = try ["to Cat", "to Dog", "to Mouse"].map { try context.tagged("Note", $0).value(forKey: "r").storeValue }
      let (cat, dog) = (try context.tagged("Cat", "to Cat").objectID, try context.tagged("Hound", "to Dog").objectID)
      #expect(values == [.objectID(cat), .objectID(dog), .null])
    }
  }

  @Test func aConstraintBesideAFetchIndexOfTheSameColumnsIsCreatedAndRemoved() throws {
    for store in [MigratedStore.sqlite, .coreData] {
      func dogs(_ constraints: [[String]]) throws -> ManagedObjectModel {
        try model(
          EntityDescription(
            "Dog", attributes: [.init("chip", .string, isOptional: true)], uniquenessConstraints: constraints,
            indexes: [FetchIndexDescription("byChip", ["chip"])]))
      }
      let place = MigratedStore.Place(store), old = try dogs([]), new = try dogs([["chip"]])
      try place.fill(old) { try $0.add("Dog", "a", ["chip": "1"]) }
      #expect(try place.contents(new, from: [old]).count == 1)
      #expect(throws: PersistenceError.self) { try place.change(new) { try $0.add("Dog", "b", ["chip": "1"]) } }
      #expect(try place.contents(old, from: [new]).count == 1)
      try place.change(old) { try $0.add("Dog", "b", ["chip": "1"]) }
    }
  }

  /// Core Data's index of such a constraint has no condition.
  @Test func aConstraintOfASubentityWithAnInheritedPropertyIsRemoved() throws {
    for (store, index) in [(MigratedStore.sqlite, ""), (.coreData, ""), (.coreData, "ON ZANIMAL (ZCHIP COLLATE BINARY ASC)")] {
      func animals(_ constraints: [[String]]) throws -> ManagedObjectModel {
        try model(
          EntityDescription("Animal", isAbstract: true, attributes: [.init("chip", .string, isOptional: true)]),
          EntityDescription("Cat", superentity: "Animal"),
          EntityDescription("Dog", superentity: "Animal", uniquenessConstraints: constraints))
      }
      let place = MigratedStore.Place(store), old = try animals([["chip"]]), new = try animals([])
      try place.fill(old) { try $0.add("Dog", "a", ["chip": "1"]) }
      if !index.isEmpty {
        _ = try SQL.rows(place.path, "DROP INDEX Z_Dog_UNIQUE_chip")
        _ = try SQL.rows(place.path, "CREATE UNIQUE INDEX Z_Dog_UNIQUE_chip \(index)")
      }
      try place.change(new, from: [old]) { try $0.add("Dog", "b", ["chip": "1"]) }
      #expect(try place.contents(new) == ["Dog a: chip=1", "Dog b: chip=1"])
      #expect(try SQL.rows(place.path, "SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE UNIQUE %'").isEmpty)
    }
  }

  /// The bug: of two equal indexes, one remained.
  @Test func equalConstraintsOfAnAbstractEntityAndItsOnlySubentityAreRemoved() throws {
    func animals(_ constraints: [[String]]) throws -> ManagedObjectModel {
      try model(
        EntityDescription("Animal", isAbstract: true, attributes: [.init("chip", .string, isOptional: true)]),
        EntityDescription("Cat", superentity: "Animal"),
        EntityDescription("Hound", superentity: "Animal", isAbstract: true, uniquenessConstraints: constraints),
        EntityDescription("Dog", superentity: "Hound", uniquenessConstraints: constraints))
    }
    let place = MigratedStore.Place(.sqlite), old = try animals([["chip"]]), new = try animals([])
    try place.fill(old) { try $0.add("Dog", "a", ["chip": "1"]) }
    try place.change(new, from: [old]) { try $0.add("Dog", "b", ["chip": "1"]) }
    #expect(try place.contents(new) == ["Dog a: chip=1", "Dog b: chip=1"])
    #expect(try SQL.rows(place.path, "SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE UNIQUE %'").isEmpty)
  }

  @Test func aDerivedAttributeOfAChangedPropertyIsRefused() throws {
    func dogs(_ cats: Bool, _ name: AttributeDescription) throws -> ManagedObjectModel {
      try model(
        [
          EntityDescription("Animal", isAbstract: true, relationships: [.toOne("owner", to: "Owner", inverse: "animals")]),
          EntityDescription("Dog", superentity: "Animal"),
          EntityDescription(
            "Owner", attributes: [name, .derived("count", .integer64, "animals.@count"), .derived("shout", .string, "uppercase:(name)")],
            relationships: [.toMany("animals", to: "Animal", inverse: "owner")]),
        ] + (cats ? [EntityDescription("Cat", superentity: "Animal")] : []))
    }
    let name = AttributeDescription("name", .string, isOptional: true), old = try dogs(true, name)
    let error = #expect(throws: MigrationError.self) {
      try MappingModel.inferred(from: old, to: try dogs(false, AttributeDescription("name", .string, default: "?")))
    }
    #expect(error?.problems.map(\.path) == ["Owner.count", "Owner.shout"], "\(error?.problems ?? [])")
    var more = old.declarations
    more.append(EntityDescription("Ant"))
    #expect(throws: Never.self) { try MappingModel.inferred(from: old, to: try ManagedObjectModel(entities: more)) }
  }

  /// Core Data's compiled models write expressions in another way than Xcode's files and Swift. The bug: the migration was refused.
  @Test(arguments: MigratedStore.allCases) func theExpressionOfADerivedAttributeMayBeWrittenInAnotherWay(_ store: MigratedStore) throws {
    func owners(_ count: String, _ load: String, _ more: [AttributeDescription] = []) throws -> ManagedObjectModel {
      let derived: [AttributeDescription] = [.derived("count", .integer64, count), .derived("load", .integer64, load)]
      return try model(
        EntityDescription(
          "Animal", attributes: [AttributeDescription("weight", .integer64, default: 2)],
          relationships: [.toOne("owner", to: "Owner", inverse: "animals")]),
        EntityDescription("Owner", attributes: derived + more, relationships: [.toMany("animals", to: "Animal", inverse: "owner")]))
    }
    let old = try owners("count:(animals)", "sum:(animals.weight)")
    let new = try owners("animals.@count", "animals.weight.@sum", [AttributeDescription("age", .integer64, default: 3)])
    let place = MigratedStore.Place(store)
    try place.fill(old) { context in
      let owner = try context.add("Owner", "o")
      for tag in ["a", "b"] { try context.add("Animal", tag).setValue(owner, forKey: "owner") }
    }
    #expect(
      try place.contents(new, from: [old]) == [
        "Animal a: weight=2 owner=o", "Animal b: weight=2 owner=o", "Owner o: age=3 count=2 load=4 animals=[a b]",
      ])
    let other = try owners("animals.@count", "animals.@count")
    let error = #expect(throws: MigrationError.self) { try MappingModel.inferred(from: old, to: other) }
    #expect(error?.problems.map(\.path) == ["Owner.load"])
  }

  /// Two threads open a store of the former model at the same time, again and again.
  @Test(arguments: MigratedStore.allCases) func atLeastOneOfTwoOpeningsMigratesAndTheOtherSucceedsOrIsRefused(_ store: MigratedStore)
    async throws
  {
    let old = try model(EntityDescription("Ape"), EntityDescription("Cat"), EntityDescription("Dog"))
    let new = try model(EntityDescription("Cat"), EntityDescription("Dog"), EntityDescription("Yak").renamed(from: "Ape"))
    for _ in 0..<TestTier.count(4, full: 40) {
      let place = MigratedStore.Place(store)
      try place.fill(old) { context in for entity in ["Ape", "Cat", "Dog"] { try context.add(entity, entity) } }
      let description = place.description.migrating(from: [old])
      let successes = await withTaskGroup(of: Bool.self) { group -> Int in
        for _ in 0..<2 {
          group.addTask {
            do {
              try PersistentStoreCoordinator(model: new, store: description).close()
              return true
            } catch let error as StoreError {
              #expect(error.code == .alreadyOpen || error.code == .locked, "\(error)")
            } catch { Issue.record("\(error)") }
            return false
          }
        }
        var successes = 0
        for await hasSucceeded in group where hasSucceeded { successes += 1 }
        return successes
      }
      #expect(successes > 0)
      #expect(try place.contents(new) == ["Cat Cat:", "Dog Dog:", "Yak Ape:"])
    }
  }

  /// Each opening could refuse a step of the migration of the thread that has the store open.
  @Test(arguments: MigratedStore.allCases) func anOpeningThatIsRefusedDuringItsMigrationEndsAtOnce(_ store: MigratedStore) throws {
    let old = try model(EntityDescription("Dog")), new = try model(EntityDescription("Hound").renamed(from: "Dog"))
    let place = MigratedStore.Place(store), openings = Mutex(0)
    try place.fill(old) { try $0.add("Dog", "a") }
    let other = try PersistentStoreCoordinator(model: old, store: place.description)
    let description = place.description.migrating(from: [old]).wrapped { base in
      openings.withLock { $0 += 1 }
      let store = FaultInjectingStore(base)
      store.fail(.open, with: StoreError(.incompatibleModel, operation: "open the store", reason: "The test says so."))
      return store
    }
    let error = try #require(throws: StoreError.self) { try PersistentStoreCoordinator(model: new, store: description) }
    #expect(error.code == .alreadyOpen)
    #expect(openings.withLock { $0 } == 1)
    try other.close()
    #expect(try place.contents(new, from: [old]) == ["Hound a:"])
  }
}
