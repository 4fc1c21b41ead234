import Holdfast
import Testing

/// The order in which an entity declares its uniqueness constraints isn't part of the model's version, so a store opens with any order.
@Suite struct ConstraintOrderTests {
  private static func model(_ constraints: [[String]]) throws -> ManagedObjectModel {
    try ManagedObjectModel(entities: [
      EntityDescription(
        "Coin",
        attributes: [
          AttributeDescription("code", .string), AttributeDescription("name", .string), AttributeDescription("year", .integer64),
        ], uniquenessConstraints: constraints)
    ])
  }

  private func insert(_ code: String, _ name: String, _ year: Int64, into context: ManagedObjectContext) throws {
    let coin = try context.insert(entityNamed: "Coin")
    try coin.setValue(.string(code), forKey: "code")
    try coin.setValue(.string(name), forKey: "name")
    try coin.setValue(.int64(year), forKey: "year")
  }

  /// The codes of the coins with a unique value, which memory stores look up in an index.
  private func codes(_ context: ManagedObjectContext, _ name: PropertyPath, _ value: StoreValue) throws -> [PropertyValue] {
    let isEqual = FetchPredicate<ManagedObject>(.comparison(.property(name), .equalTo, .constant(value), []))
    return try context.fetch(FetchRequest<ManagedObject>(entityName: "Coin", where: isEqual)).map { try $0.value(forKey: "code") }
  }

  /// The bug: a memory store that was opened again used the index of one constraint for another one. It found no rows by their unique
  /// values, and accepted equal ones.
  @Test(arguments: TestStore.allCases)
  func `values stay unique if a store is opened with its constraints in another order`(_ store: TestStore) throws {
    let orders = [
      [["code"], ["name", "year"], ["year"]], [["year"], ["code"], ["name", "year"]], [["name", "year"], ["year"], ["code"]],
    ]
    let place = try store.makePlace(model: Self.model(orders[0]), classes: []), first = try place.context()
    for number in 0..<20 { try insert("code \(number)", "name \(number)", Int64(number), into: first) }
    try first.save()
    try place.close()
    for (round, order) in orders.enumerated() {
      let coordinator = try PersistentStoreCoordinator(model: Self.model(order), store: place.description)
      let context = try ManagedObjectContext(coordinator: coordinator)
      // An equal code, and an equal year.
      for (code, year) in [("code 3", 100), ("new", 4)] as [(String, Int64)] {
        try insert(code, "other", year, into: context)
        #expect(throws: PersistenceError.self, "\(order)") { try context.save() }
        context.rollback()
      }
      // A changed row releases its former values, in all indexes.
      let year = FetchPredicate<ManagedObject>(.comparison(.property("year"), .equalTo, .constant(.int64(Int64(round))), []))
      let coin = try #require(context.fetch(FetchRequest<ManagedObject>(entityName: "Coin", where: year)).first, "\(order)")
      try coin.setValue(.string("changed \(round)"), forKey: "code")
      try coin.setValue(.int64(Int64(1000 + round)), forKey: "year")
      try context.save()
      try insert("code \(round)", "name \(round)", Int64(round), into: context)
      try context.save()
      #expect(try codes(context, "year", .int64(Int64(round))) == [.single(.string("code \(round)"))])
      #expect(try codes(context, "code", .string("changed \(round)")) == [.single(.string("changed \(round)"))])
      try coordinator.close()
    }
    let last = try place.context()
    #expect(try last.count(for: FetchRequest<ManagedObject>(entityName: "Coin")) == 23)
    try place.close()
  }
}
