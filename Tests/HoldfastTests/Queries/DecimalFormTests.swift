import Foundation
import Holdfast
import HoldfastSQLiteStore
import Testing

/// Decimals with zeros at the end of their fraction. `Decimal` keeps them after a normalization, and in `description`.
@Suite struct DecimalFormTests {
  private static func number(_ text: String) throws -> Decimal { try #require(Decimal(string: text)) }

  /// The number with the exponent of 0.0001.
  private static func padded(_ text: String) throws -> Decimal {
    var number = try Self.number(text), unit = try Self.number("0.0001")
    _ = NSDecimalNormalize(&number, &unit, .plain)
    try #require(number.exponent == -4)
    return number
  }

  @Test(arguments: TestStore.allCases)
  func `zeros at the end of a fraction don't change a decimal, also after the store is reopened`(_ store: TestStore) throws {
    let place = try store.makePlace(model: Ledger.model, classes: [])
    let numbers: [Decimal] = try [
      Self.number("1"), Self.padded("1"), Self.padded("-0.5"), Self.padded("2.5"), Self.number("2.5"),
    ]
    let context = try place.context()
    for number in numbers { try context.insert(entityNamed: "Entry").setValue(number, forKey: "m") }
    try context.save()
    for isReopened in [false, true] {
      if isReopened { try place.close() }
      let fresh = try place.context(), comment = Comment(rawValue: "\(store), \(isReopened ? "reopened" : "saved")")
      let request = DictionaryFetchRequest<ManagedObject>(
        entityName: "Entry", columns: ["m": .property("m"), "n": .count()], groupedBy: ["m"])
      let groups = try fresh.fetch(request)
      let expected = try ["-0.5", "1", "2.5"].map { StoreValue.decimal(try Self.number($0)) }
      #expect(groups.map { $0["m"] ?? .null } == expected, comment)
      #expect(groups.map { $0["n"] ?? .null } == [1, 2, 2].map { StoreValue.int64($0) }, comment)
      var texts: [String] = []
      for object in try fresh.fetch(FetchRequest<ManagedObject>(entityName: "Entry")) {
        if case .decimal(let number)? = try object.value(forKey: "m").storeValue { texts.append(number.description) }
      }
      #expect(texts.sorted() == ["-0.5", "1", "1", "2.5", "2.5"], comment)
    }
  }

  @Test(arguments: TestStore.allCases)
  func `a number is between decimals with zeros at the end of their fractions`(_ store: TestStore) throws {
    let place = try store.makePlace(model: Ledger.model, classes: [])
    let context = try place.context()
    for number in 0..<4 { try context.insert(entityNamed: "Entry").setValue(.int32(Int32(number)), forKey: "i32") }
    try context.save()
    let lower = StoreValue.decimal(try Self.padded("1")), upper = StoreValue.decimal(try Self.padded("2"))
    let predicate = FetchPredicate<ManagedObject>(.between(.property("i32"), lower, upper))
    #expect(try place.context().count(for: FetchRequest<ManagedObject>(entityName: "Entry", where: predicate)) == 2)
  }

  /// `Decimal` computes hashes from rounded numbers. With many digits, zeros at the end change how they are rounded.
  @Test(arguments: TestStore.allCases)
  func `a list of decimals contains those with zeros at the end of their fractions`(_ store: TestStore) throws {
    let place = try store.makePlace(model: Ledger.model, classes: [])
    let texts = (0..<20).map { "\(12_345_678_901_234_567_891 + 7_654_321_987 * UInt64($0)).5" }
    let context = try place.context()
    for text in texts { try context.insert(entityNamed: "Entry").setValue(Self.number(text), forKey: "m") }
    try context.save()
    let list = try texts.map { StoreValue.decimal(try Self.padded($0)) }
    let predicate = FetchPredicate<ManagedObject>(.membership(.property("m"), list))
    #expect(try place.context().count(for: FetchRequest<ManagedObject>(entityName: "Entry", where: predicate)) == texts.count)
  }

  @Test(arguments: TestStore.allCases)
  func `a unique decimal is the same with zeros at the end of its fraction`(_ store: TestStore) throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription("Coin", attributes: [AttributeDescription("worth", .decimal)], uniquenessConstraints: [["worth"]])
    ])
    let place = try store.makePlace(model: model, classes: [])
    let context = try place.context()
    try context.insert(entityNamed: "Coin").setValue(Decimal(2), forKey: "worth")
    try context.save()
    let other = try place.context()
    try other.insert(entityNamed: "Coin").setValue(Self.padded("2"), forKey: "worth")
    let error = #expect(throws: PersistenceError.self) { try other.save() }
    #expect(error?.code == .constraintConflict)
  }

  @Test func `a SQLite store saves zeros at the end of a fraction without storing exact decimals`() throws {
    let place = try TestStore.sqlite.makePlace(model: Ledger.model, classes: [])
    let path = place.folder.appendingPathComponent("Plain.sqlite").path
    let context = try ManagedObjectContext(
      coordinator: PersistentStoreCoordinator(model: Ledger.model, store: .sqlite(at: path)), classes: [])
    let entry = try context.insert(entityNamed: "Entry")
    try entry.setValue(Self.padded("1"), forKey: "m")
    try context.save()
    #expect(try entry.value(forKey: "m").storeValue == .decimal(1))
    try context.persistentStoreCoordinator.close()
  }

  @Test func `an encoded decimal with zeros at the end of its fraction can be decoded`() throws {
    let value = StoreValue.decimal(try Self.padded("1"))
    #expect(try JSONDecoder().decode([StoreValue].self, from: JSONEncoder().encode([value])) == [value])
  }
}
