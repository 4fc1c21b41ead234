import Foundation
import Holdfast
import HoldfastCoreData
import HoldfastModelFile
import HoldfastStore
import TestSupport
import Testing

/// When migrations by mapping models check the rules of the new model.
@Suite struct MappingRulesTests {
  private typealias Property = MappingModelText.Property

  private let tag = Property("tag")
  private let old: ManagedObjectModel

  init() throws {
    old = try model(
      EntityDescription(
        "Dog", attributes: [.init("age", .integer64, isOptional: true)], relationships: [.toOne("owner", to: "Owner", inverse: "dogs")]),
      EntityDescription(
        "Owner", attributes: [.init("height", .integer64, isOptional: true)],
        relationships: [.toMany("dogs", to: "Dog", inverse: "owner")]))
  }

  /// A new version, in which each dog can have a badge, which its owner has as well.
  private func zoo(
    dog: [AttributeDescription] = [], owner: [AttributeDescription] = [], minimum: Int = 0, deleting rule: DeleteRule = .nullify
  ) throws -> ManagedObjectModel {
    try model(
      EntityDescription(
        "Dog", attributes: [.init("age", .integer64, isOptional: true)] + dog,
        relationships: [.toOne("owner", to: "Owner", inverse: "dogs"), .toOne("badge", to: "Badge", inverse: "dog")]),
      EntityDescription(
        "Owner", attributes: [.init("height", .integer64, isOptional: true, validation: .range(.int64(0), nil))] + owner,
        relationships: [
          .toMany("dogs", to: "Dog", inverse: "owner", isOptional: minimum == 0, minCount: minimum),
          .toMany("badges", to: "Badge", inverse: "owner", deleteRule: rule),
        ]),
      EntityDescription(
        "Badge", attributes: [.init("issuer", .objectID, isOptional: true)],
        relationships: [.toOne("dog", to: "Dog", inverse: "badge"), .toOne("owner", to: "Owner", inverse: "badges")]))
  }

  private let code = AttributeDescription("code", .string)

  /// Sets the required code.
  private let codes = MappingPolicy { stage in try stage.forEach { _, new in try new.setValue("code", forKey: "code") } }

  /// Dogs and owners keep their keys, and a badge is inserted for each dog. The policies have the names of their entities.
  private func text(dog: [Property] = [], _ policies: [String: MappingPolicy], insertsBadges: Bool = true) -> MappingModelText {
    func policy(_ entity: String) -> String? { policies[entity] == nil ? nil : entity }
    var text = MappingModelText()
    text.map(
      "Dog", to: "Dog", policy: policy("Dog"), attributes: [tag, Property("age")] + dog, relationships: [Property("owner")])
    text.map("Owner", to: "Owner", policy: policy("Owner"), attributes: [tag, Property("height")])
    if !insertsBadges { return text }
    text.map(
      "Dog", to: "Badge", name: "badges", policy: policy("Badge"), attributes: [tag],
      relationships: [Property("owner", path: "$source.owner", mapping: "OwnerToOwner")])
    return text
  }

  /// A store with one owner and some dogs.
  private func place(_ store: MigratedStore, dogs: [String] = ["a"], height: Int64 = 1) throws -> MigratedStore.Place {
    let place = MigratedStore.Place(store)
    try place.fill(old) { context in
      let owner = try context.add("Owner", "o", ["height": .int64(height)])
      for dog in dogs { try context.add("Dog", dog, ["age": 2]).setValue(owner, forKey: "owner") }
    }
    return place
  }

  private func migrate(
    _ place: MigratedStore.Place, to new: ManagedObjectModel, _ text: MappingModelText, _ policies: [String: MappingPolicy]
  ) throws {
    let folder = TemporaryFolder()
    var plan = MigrationPlan(from: old)
    try plan.add(new, mappingModelsAt: [try text.write(to: folder)], policies: policies)
    try PersistentStoreCoordinator.migratePersistentStore(place.description, with: plan)
  }

  /// Migrates a store with one owner, and returns its contents.
  private func migrated(
    _ place: MigratedStore.Place, to new: ManagedObjectModel, _ text: MappingModelText, _ policies: [String: MappingPolicy]
  ) throws -> [String] {
    try migrate(place, to: new, text, policies)
    return try place.contents(new)
  }

  // MARK: Objects that become complete later

  /// The bug: objects that inserted ones referenced were checked before their own policies had set what is required.
  @Test(arguments: MigratedStore.allCases) func policiesMayCompleteObjectsThatInsertedOnesReference(_ store: MigratedStore) throws {
    let badges = MappingPolicy { stage in
      // The link is in the rows of both.
      try stage.forEach { old, new in try new.setValue(stage.objects(for: [old], mappedBy: "DogToDog").first, forKey: "dog") }
    }
    let policies = ["Dog": codes, "Owner": codes, "Badge": badges]
    #expect(
      try migrated(place(store), to: zoo(dog: [code], owner: [code]), text(policies), policies) == [
        "Badge a: issuer=nil dog=a owner=o", "Dog a: age=2 code=code badge=a owner=o", "Owner o: code=code height=1 badges=[a] dogs=[a]",
      ])
  }

  /// The bug: values of expressions were saved, and checked, before the policy had set what is required.
  @Test(arguments: MigratedStore.allCases) func policiesMayCompleteObjectsWithValuesOfExpressions(_ store: MigratedStore) throws {
    let double = TestExpression.function("multiply:by:", [.path(.source, "age"), .number(2)]).archive
    let new = try zoo(dog: [code, .init("double", .integer64, isOptional: true)]), policies = ["Dog": codes]
    let text = text(dog: [Property("double", expression: double)], policies, insertsBadges: false)
    #expect(
      try migrated(place(store), to: new, text, policies) == [
        "Dog a: age=2 code=code double=4 badge=nil owner=o", "Owner o: height=1 badges=[] dogs=[a]",
      ])
  }

  // MARK: Existing values

  /// The bug: owners were checked completely as soon as an inserted object referenced them. The height and the number of dogs don't fit the
  /// new model, and no mapping changes them.
  @Test(arguments: MigratedStore.allCases) func whatOnlyALinkLeadsToMayHaveFormerValues(_ store: MigratedStore) throws {
    #expect(
      try migrated(place(store, height: -1), to: zoo(minimum: 2), text([:]), [:]) == [
        "Badge a: issuer=nil dog=nil owner=o", "Dog a: age=2 badge=nil owner=o", "Owner o: height=-1 badges=[a] dogs=[a]",
      ])
  }

  // MARK: Deleted objects

  /// The bug: mappings linked objects with others that a policy had deleted before.
  @Test(arguments: MigratedStore.allCases) func objectsThatAPolicyDeletedGetNoLinks(_ store: MigratedStore) throws {
    let policies = [
      "Badge": MappingPolicy { stage in
        try stage.forEach { old, _ in
          let owner = try #require(try old.object("owner"))
          stage.context.delete(try #require(try stage.objects(for: [owner], mappedBy: "OwnerToOwner").first))
          #expect(try stage.objects(for: [owner]).isEmpty)
          try stage.context.save()
          #expect(try stage.objects(for: [owner], mappedBy: "OwnerToOwner").isEmpty)
        }
      }
    ]
    var text = MappingModelText()
    // Code sets the owner after the policy.
    text.map(
      "Dog", to: "Dog", attributes: [tag, Property("age")],
      relationships: [Property("owner", path: "$source.owner", mapping: "OwnerToOwner")])
    text.map("Owner", to: "Owner", attributes: [tag])
    text.map("Dog", to: "Badge", name: "badges", policy: "Badge", attributes: [tag])
    let place = try place(store)
    #expect(
      try migrated(place, to: zoo(), text, policies) == [
        "Badge a: issuer=nil dog=nil owner=nil", "Dog a: age=2 badge=nil owner=nil",
      ])
  }

  // MARK: What is refused

  /// Migrates, and returns the error. The store must be unchanged.
  private func error(
    _ place: MigratedStore.Place, to new: ManagedObjectModel, _ policies: [String: MappingPolicy]
  ) throws -> PersistenceError? {
    // Opening it moves the log into the file.
    if place.store == .coreData { try place.change(old) { _ in } }
    let before = try place.folder.snapshot()
    let error = #expect(throws: PersistenceError.self) { try migrate(place, to: new, text(policies), policies) }
    #expect(try place.folder.snapshot() == before)
    return error
  }

  @Test(arguments: MigratedStore.allCases) func valuesOfObjectsThatKeepTheirKeysAreChecked(_ store: MigratedStore) throws {
    let policies = ["Owner": MappingPolicy { stage in try stage.forEach { _, new in try new.setValue(-5, forKey: "height") } }]
    let error = try error(place(store), to: zoo(), policies)
    #expect(error?.code == .numberTooSmall && error?.property == "height", "\(error as Any)")
  }

  /// The bug: saves of objects that become complete later didn't check whether objects may be deleted.
  @Test(arguments: MigratedStore.allCases) func policiesOfInsertedObjectsCannotDeleteWhatHasDestinations(_ store: MigratedStore) throws {
    let policies = [
      "Badge": MappingPolicy { stage in
        try stage.forEach { old, _ in
          let owner = try #require(try old.object("owner"))
          stage.context.delete(try #require(try stage.objects(for: [owner], mappedBy: "OwnerToOwner").first))
        }
      }
    ]
    let error = try error(place(store), to: zoo(deleting: .deny), policies)
    #expect(error?.code == .deniedDelete && error?.property == "badges", "\(error as Any)")
  }

  @Test(arguments: MigratedStore.allCases) func objectsThatLoseDestinationsAreCounted(_ store: MigratedStore) throws {
    let policies = [
      "Badge": MappingPolicy { stage in
        try stage.forEach { old, _ in
          if old["tag"] == "a" { stage.context.delete(try #require(try stage.objects(for: [old], mappedBy: "DogToDog").first)) }
        }
      }
    ]
    let error = try error(place(store, dogs: ["a", "b"]), to: zoo(minimum: 2), policies)
    #expect(error?.code == .tooFewObjects && error?.property == "dogs", "\(error as Any)")
  }

  /// The bug: the temporary ID of an object that was never saved became the value of an attribute.
  @Test(arguments: MigratedStore.allCases) func idsOfObjectsThatAreNotSavedAreRefused(_ store: MigratedStore) throws {
    let policies = [
      "Badge": MappingPolicy { stage in
        try stage.forEach { _, new in
          let issuer = try stage.context.insert(entityNamed: "Badge")
          try new.setValue(issuer.objectID, forKey: "issuer")
          stage.context.delete(issuer)
        }
      }
    ]
    let error = try error(place(store), to: zoo(), policies)
    #expect(error?.code == .unsavedObjectID && error?.property == "issuer", "\(error as Any)")
  }
}
