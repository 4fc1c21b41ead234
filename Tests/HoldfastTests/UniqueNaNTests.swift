import Foundation
import Holdfast
import Testing

/// NaN equals nothing, so several objects can have it in a unique attribute. SQLite stores refuse it.
@Suite struct UniqueNaNTests {
  private static func model(_ type: AttributeType) throws -> ManagedObjectModel {
    try ManagedObjectModel(entities: [
      EntityDescription(
        "Coin",
        attributes: [AttributeDescription("worth", type, isOptional: true), AttributeDescription("year", .integer16, isOptional: true)],
        uniquenessConstraints: [["worth"], ["worth", "year"]])
    ])
  }

  private static let stores = TestStore.allCases.filter { $0 != .sqlite }
  private static let values: [(AttributeType, StoreValue, StoreValue)] = [
    (.double, .double(.nan), .double(1)), (.float, .float(.nan), .float(1)), (.decimal, .decimal(.nan), .decimal(1)),
  ]

  private func insert(_ worth: StoreValue, into context: ManagedObjectContext) throws {
    let coin = try context.insert(entityNamed: "Coin")
    try coin.setValue(worth, forKey: "worth")
    try coin.setValue(.int16(1900), forKey: "year")
  }

  @Test(arguments: stores, values)
  func `several objects have NaN in a unique attribute`(_ store: TestStore, _ value: (AttributeType, StoreValue, StoreValue)) throws {
    let (type, nan, one) = value, place = try store.makePlace(model: Self.model(type), classes: [])
    let context = try place.context()
    for _ in 0..<2 { try insert(nan, into: context) }
    try context.save()
    // Also if a policy merges objects with equal values.
    let other = try place.context()
    other.mergePolicy = .mergeByPropertyObjectTrump
    try insert(nan, into: other)
    try other.save()
    try place.close()
    let reopened = try place.context(), coins = try reopened.fetch(FetchRequest<ManagedObject>(entityName: "Coin"))
    #expect(coins.count == 3)
    #expect(try coins.allSatisfy { try $0.value(forKey: "worth").storeValue?.isNaN == true })
    // A number that replaces a NaN is unique, and so is one that a NaN replaces.
    try coins[0].setValue(one, forKey: "worth")
    try reopened.save()
    try coins[1].setValue(one, forKey: "worth")
    #expect(throws: PersistenceError.self) { try reopened.save() }
    try coins[0].setValue(nan, forKey: "worth")
    try reopened.save()
    try place.close()
    let last = try place.context()
    try insert(one, into: last)
    #expect(throws: PersistenceError.self) { try last.save() }
    #expect(try place.context().count(for: FetchRequest<ManagedObject>(entityName: "Coin")) == 3)
  }
}
