import Foundation
import Holdfast
import Testing

/// NaN in doubles, floats and decimals, and sums at the limits of their types, in every order of rows.
@Suite struct NaNTests {
  /// The stores that can store NaN. With SQLite, saving one is an error.
  static let stores = TestStore.allCases.filter { $0 != .sqlite }

  /// Saving a date that isn't finite is refused.
  private static let names = ["r", "f", "m"]

  private static func value(_ name: String, _ number: Double) -> StoreValue {
    switch name {
    case "r": .double(number)
    case "f": .float(Float(number))
    default: .decimal(number.isNaN ? .nan : Decimal(number))
    }
  }

  private func context(_ store: TestStore, _ rows: [[String: StoreValue]]) throws -> ManagedObjectContext {
    let place = try store.makePlace(model: Ledger.model, classes: [])
    let context = try place.context()
    for (number, row) in rows.enumerated() {
      let entry = try context.insert(entityNamed: "Entry")
      try entry.setValue(.int32(Int32(number)), forKey: "i32")
      for (name, value) in row { try entry.setValue(.single(value), forKey: name) }
      try context.save()
    }
    return try place.context()
  }

  @Test(arguments: stores)
  func `NaN equals nothing, has no order and sorts after all numbers`(_ store: TestStore) throws {
    let numbers = [1, .nan, 2, -1, .nan]
    let context = try context(
      store, numbers.map { number in Dictionary(uniqueKeysWithValues: NaNTests.names.map { ($0, NaNTests.value($0, number)) }) } + [[:]])
    func count(_ expression: QueryExpression) throws -> Int {
      try context.count(for: FetchRequest<ManagedObject>(entityName: "Entry", where: FetchPredicate(expression)))
    }
    for name in NaNTests.names {
      let path = QueryExpression.property(PropertyPath(name)), comment = Comment(rawValue: "\(name) on \(store)")
      func compared(_ op: ComparisonOperator, _ number: Double) throws -> Int {
        try count(.comparison(path, op, .constant(NaNTests.value(name, number)), []))
      }
      for (op, expected) in [
        (ComparisonOperator.equalTo, 0), (.notEqualTo, 6), (.lessThan, 0), (.lessThanOrEqualTo, 0), (.greaterThan, 0),
        (.greaterThanOrEqualTo, 0),
      ] {
        #expect(try compared(op, .nan) == expected, comment)
      }
      #expect(try compared(.lessThan, 5) == 3, comment)
      #expect(try compared(.greaterThanOrEqualTo, -5) == 3, comment)
      #expect(try compared(.notEqualTo, 1) == 5, comment)
      #expect(try count(.comparison(path, .equalTo, path, [])) == 4, comment)
      #expect(try count(.comparison(path, .notEqualTo, path, [])) == 2, comment)
      #expect(try count(.between(path, NaNTests.value(name, -9), NaNTests.value(name, 9))) == 3, comment)
      #expect(try count(.between(path, NaNTests.value(name, -9), NaNTests.value(name, .nan))) == 0, comment)
      #expect(try count(.membership(path, [NaNTests.value(name, .nan)])) == 0, comment)
      #expect(try count(.membership(path, [.nan, 1, 2, 7, 8, 9].map { NaNTests.value(name, $0) })) == 2, comment)
      for isAscending in [true, false] {
        let term = FetchSortDescriptor<ManagedObject>(SortTerm(PropertyPath(name), isAscending: isAscending))
        let request = FetchRequest<ManagedObject>(entityName: "Entry", sortedBy: [term], limit: 9)
        let sorted = try context.fetch(request).map { try $0.value(forKey: "i32").storeValue }
        #expect(sorted == (isAscending ? [5, 3, 0, 2, 1, 4] : [1, 4, 2, 0, 3, 5]).map { .int32($0) }, comment)
      }
      let groups = try context.fetch(
        DictionaryFetchRequest<ManagedObject>(entityName: "Entry", columns: ["v": .property(name), "n": .count()], groupedBy: [name]))
      #expect(groups.map { $0["n"] } == [1, 1, 1, 1, 2].map { .int64($0) }, comment)
      #expect(groups.last?["v"]?.isNaN == true && groups.first?["v"] == .null, comment)
    }
  }

  @Test(arguments: stores)
  func `minimum and maximum skip NaN, and sums with NaN are NaN, in any order of the rows`(_ store: TestStore) throws {
    for numbers in [[Double.nan, 1, 2], [1, .nan, 2], [2, 1, .nan], [.nan, 2, .nan, 1]] {
      let context = try context(
        store, numbers.map { number in Dictionary(uniqueKeysWithValues: NaNTests.names.map { ($0, NaNTests.value($0, number)) }) })
      for name in NaNTests.names {
        let comment = Comment(rawValue: "\(name) of \(numbers) on \(store)")
        let columns: [String: DictionaryFetchColumn] = [
          "min": .minimum(name), "max": .maximum(name), "n": .count(name), "sum": .sum(name), "avg": .average(name),
        ]
        let found = try context.fetch(DictionaryFetchRequest<ManagedObject>(entityName: "Entry", columns: columns))[0]
        #expect(found["min"] == NaNTests.value(name, 1) && found["max"] == NaNTests.value(name, 2), comment)
        #expect(found["n"] == .int64(Int64(numbers.count)), comment)
        #expect(found["sum"]?.isNaN == true && found["avg"]?.isNaN == true, comment)
        let onlyNaN = FetchPredicate<ManagedObject>(
          .and([.comparison(.property(PropertyPath(name)), .notEqualTo, .property(PropertyPath(name)), [])]))
        let rest = try context.fetch(
          DictionaryFetchRequest<ManagedObject>(
            entityName: "Entry", where: onlyNaN, columns: ["min": .minimum(name), "max": .maximum(name)]))[0]
        #expect(rest["min"]?.isNaN == true && rest["max"]?.isNaN == true, comment)
      }
    }
  }

  @Test func `a SQLite store refuses to save NaN`() throws {
    for name in NaNTests.names {
      let context = try TestStore.sqlite.makePlace(model: Ledger.model, classes: []).context()
      try context.insert(entityNamed: "Entry").setValue(.single(NaNTests.value(name, .nan)), forKey: name)
      let error = #expect(throws: StoreError.self) { try context.save() }
      #expect(error?.code == .unstorableValue)
    }
  }

  @Test(arguments: TestStore.allCases)
  func `a sum of integers fails only if the result doesn't fit`(_ store: TestStore) throws {
    for (numbers, sum) in [
      ([Int64.max, 1, -5], Int64.max - 4), ([-5, .max, 1], .max - 4), ([1, .max, -5], .max - 4), ([.min, .min, .max, .max, 2], 0),
      ([.max, .max], nil), ([.min, -1], nil), ([.max, .max, .min, .min, 1], -1),
    ] as [([Int64], Int64?)] {
      let context = try context(store, numbers.map { ["i64": .int64($0), "b": .bool(true)] })
      for groupBy in [[], ["b"], ["s"]] {
        let comment = Comment(rawValue: "\(numbers) by \(groupBy) on \(store)")
        func fetch(_ columns: [String: DictionaryFetchColumn]) throws -> [String: StoreValue] {
          try context.fetch(DictionaryFetchRequest<ManagedObject>(entityName: "Entry", columns: columns, groupedBy: groupBy))[0]
        }
        if let sum {
          #expect(try fetch(["v": .sum("i64")])["v"] == .int64(sum), comment)
        } else {
          let error = #expect(throws: StoreError.self, comment) { try fetch(["v": .sum("i64")]) }
          #expect(error?.code == .unstorableValue, comment)
        }
        let exact = numbers.reduce(Int128(0)) { $0 + Int128($1) }
        #expect(try fetch(["v": .average("i64")])["v"] == .double(Double(exact) / Double(numbers.count)), comment)
      }
    }
  }
}
