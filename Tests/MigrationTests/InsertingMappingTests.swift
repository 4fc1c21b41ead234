import Foundation
import Holdfast
import HoldfastCoreData
import HoldfastModelFile
import HoldfastPropertyList
import HoldfastStore
import TestSupport
import Testing

/// Mapping models that insert more objects than one save has. Each becomes complete in several saves: attributes, relationships, policy.
@Suite struct InsertingMappingTests {
  private typealias Property = MappingModelText.Property

  /// More than two saves of 5,000.
  private static let count = 10_400
  private static let ownerCount = 40

  private let old: ManagedObjectModel
  private let new: ManagedObjectModel

  init() throws {
    func zoo(_ badges: [RelationshipDescription], _ others: [EntityDescription]) throws -> ManagedObjectModel {
      try ManagedObjectModel(
        entities: [
          EntityDescription(
            "Dog", attributes: [.init("number", .integer64)], relationships: [.toOne("owner", to: "Owner", inverse: "dogs")]),
          EntityDescription(
            "Owner", attributes: [.init("number", .integer64)], relationships: [.toMany("dogs", to: "Dog", inverse: "owner")] + badges),
        ] + others)
    }
    old = try zoo([], [])
    new = try zoo(
      [.toMany("badges", to: "Badge", inverse: "owner", maxCount: Self.count / Self.ownerCount)],
      [
        EntityDescription(
          "Badge",
          attributes: [
            .init("code", .string), .init("number", .integer64, validation: .range(.int64(0), nil)),
            .init("note", .string, isOptional: true),
          ],
          relationships: [.toOne("owner", to: "Owner", inverse: "badges", isOptional: false)], uniquenessConstraints: [["code"]])
      ])
  }

  private func fill(_ place: MigratedStore.Place, _ count: Int = count, number: (Int) -> Int = { $0 }) throws {
    try place.fill(old) { context in
      let owners = try (0..<Self.ownerCount).map { number in
        let owner = try context.insert(entityNamed: "Owner")
        try owner.setValue(number, forKey: "number")
        return owner
      }
      for place in 0..<count {
        let dog = try context.insert(entityNamed: "Dog")
        try dog.setValue(number(place), forKey: "number")
        try dog.setValue(owners[place % owners.count], forKey: "owner")
      }
    }
  }

  /// Dogs and owners keep their keys, and each dog gets a badge.
  private func migrate(
    _ place: MigratedStore.Place, owner: String? = "$source.owner", number: String = "number",
    _ policy: @escaping @Sendable (EntityMappingStage) throws -> Void
  ) throws {
    var text = MappingModelText()
    text.map("Dog", to: "Dog", attributes: [Property("number")], relationships: [Property("owner")])
    text.map("Owner", to: "Owner", attributes: [Property("number")])
    text.map(
      "Dog", to: "Badge", name: "badges", policy: "Badges", attributes: [Property("number", path: "$source.\(number)")],
      relationships: owner.map { [Property("owner", path: $0, mapping: "OwnerToOwner")] } ?? [])
    let folder = TemporaryFolder()
    var plan = MigrationPlan(from: old)
    try plan.add(new, mappingModelsAt: [try text.write(to: folder)], policies: ["Badges": MappingPolicy(policy)])
    try PersistentStoreCoordinator.migratePersistentStore(place.description, with: plan)
  }

  private func number(_ object: ManagedObject) throws -> Int64? {
    if case .int64(let number)? = try object.value(forKey: "number").storeValue { number } else { nil }
  }

  private func ownerID(_ badge: ManagedObject) throws -> ManagedObjectID? {
    if case .objectID(let id)? = try badge.value(forKey: "owner").storeValue { id } else { nil }
  }

  private func setCode(_ old: FormerObject, _ new: ManagedObject) throws {
    if case .int64(let number) = old["number"] { try new.setValue("code \(number)", forKey: "code") }
  }

  @Test(arguments: MigratedStore.allCases) func objectsBecomeCompleteInSeveralSaves(_ store: MigratedStore) throws {
    let place = MigratedStore.Place(store)
    try fill(place)
    try migrate(place) { stage in
      // A code is required and unique, and an owner is required.
      try stage.forEach { old, new in
        guard case .int64(let number) = old["number"] else { return }
        if number % 10 == 3 { return stage.context.delete(new) }
        try setCode(old, new)
      }
      try stage.forEach { old, new in
        #expect(old["number"] != .int64(13))
        let found = try stage.objects(for: [old], mappedBy: "badges")
        #expect(found.map(\.objectID) == [new.objectID])
        try new.setValue("noted", forKey: "note")
      }
    }
    try place.change(new) { context in
      let badges = try context.fetch(FetchRequest<ManagedObject>(entityName: "Badge"))
      #expect(badges.count == Self.count * 9 / 10)
      for badge in badges {
        let number = try #require(try number(badge)), owner = try context.object(with: try #require(try ownerID(badge)))
        #expect(try badge.value(forKey: "code").storeValue == .string("code \(number)"))
        #expect(try badge.value(forKey: "note").storeValue == .string("noted"))
        #expect(try self.number(owner) == number % Int64(Self.ownerCount))
      }
      #expect(try context.count(for: FetchRequest<ManagedObject>(entityName: "Dog")) == Self.count)
      let owners = try context.fetch(FetchRequest<ManagedObject>(entityName: "Owner"))
      let counts = try owners.map { try $0.value(forKey: "badges").objects?.count ?? 0 }
      #expect(counts.reduce(0, +) == badges.count)
    }
  }

  /// Migrates, and returns the error. The store must be unchanged.
  private func error(
    _ store: MigratedStore, _ count: Int = 60, number: (Int) -> Int = { $0 }, owner: String? = "$source.owner",
    _ policy: @escaping @Sendable (EntityMappingStage) throws -> Void
  ) throws -> (any Error)? {
    let place = MigratedStore.Place(store)
    try fill(place, count, number: number)
    // Opening it moves the log into the file.
    if store == .coreData { try place.change(old) { _ in } }
    let before = try place.folder.snapshot()
    let error = #expect(throws: (any Error).self) { try migrate(place, owner: owner, policy) }
    #expect(try place.folder.snapshot() == before)
    return error
  }

  @Test(arguments: MigratedStore.allCases) func objectsThatRemainIncompleteAreRefused(_ store: MigratedStore) throws {
    let noCode = try error(store) { _ in } as? PersistenceError
    #expect(noCode?.failures.count == 60 && noCode?.failures.allSatisfy { $0.property == "code" } == true, "\(noCode as Any)")
    let noOwner = try error(store, owner: nil) { try $0.forEach(setCode) } as? PersistenceError
    #expect(noOwner?.failures.allSatisfy { $0.property == "owner" && $0.code == .missingMandatoryValue } == true, "\(noOwner as Any)")
    let negative = try error(store, number: { $0 == 7 ? -7 : $0 }) { try $0.forEach(setCode) } as? PersistenceError
    #expect(negative?.property == "number" && negative?.code == .numberTooSmall, "\(negative as Any)")
  }

  @Test(arguments: MigratedStore.allCases) func valuesThatAreNotUniqueInTheEndAreRefused(_ store: MigratedStore) throws {
    let error = try error(store) { try $0.forEach { _, new in try new.setValue("same", forKey: "code") } } as? MigrationError
    #expect(error?.code == .constraintViolation, "\(error as Any)")
  }

  /// Values may be equal until the policy has set all of them.
  @Test(arguments: MigratedStore.allCases) func valuesMayBeEqualBeforeThePolicyEnds(_ store: MigratedStore) throws {
    let place = MigratedStore.Place(store)
    try fill(place, 60)
    try migrate(place) { stage in
      try stage.forEach { _, new in try new.setValue("same", forKey: "code") }
      try stage.context.save()
      try stage.forEach(setCode)
    }
    try place.change(new) { context in
      let count = try context.count(for: FetchRequest<ManagedObject>(entityName: "Badge"))
      #expect(count == 60)
    }
  }

  @Test(arguments: MigratedStore.allCases) func objectsThatInsertedOnesChangeAreChecked(_ store: MigratedStore) throws {
    let limit = Self.count / Self.ownerCount
    let error = try error(store, number: { $0 }) { stage in
      try stage.forEach(setCode)
      let owner = try #require(try stage.context.fetch(FetchRequest<ManagedObject>(entityName: "Owner")).first)
      for number in 0...limit {
        let badge = try stage.context.insert(entityNamed: "Badge")
        try badge.setValue("more \(number)", forKey: "code")
        try badge.setValue(number, forKey: "number")
        try badge.setValue(owner, forKey: "owner")
      }
    }
    let failure = error as? PersistenceError
    #expect(failure?.code == .tooManyObjects && failure?.property == "badges", "\(error as Any)")
  }

  @Test(arguments: MigratedStore.allCases) func objectsThatAPolicyInsertsAreChecked(_ store: MigratedStore) throws {
    let error = try error(store) { stage in
      try stage.forEach(setCode)
      try stage.context.insert(entityNamed: "Badge").setValue(1, forKey: "number")
      try stage.context.save()
    }
    let failures = (error as? PersistenceError)?.failures.map(\.property)
    #expect(failures == ["code", "owner"], "\(error as Any)")
  }
}
