import Holdfast
import Testing

/// Comparisons of remainders and counts whose result is the same for all objects.
@Suite struct RemainderTests {
  private func context(_ store: TestStore) throws -> ManagedObjectContext {
    let place = try store.makePlace(), context = try place.context()
    for number in 0..<6 {
      let dog = context.dog("\(number)", age: number)
      dog.chip = number % 2 == 0 ? Int64(number) : nil
    }
    try context.save()
    return try place.context()
  }

  @Test(arguments: TestStore.withChild)
  func `no remainder is in an empty list`(_ store: TestStore) throws {
    let context = try context(store), none: [Int] = []
    #expect(try context.count(Dog.self) { ($0.age % 3).isIn(none) } == 0)
    #expect(try context.count(Dog.self) { !($0.age % 3).isIn(none) } == 6)
    #expect(try context.fetch(Dog.self, sortedBy: [.ascending(\.age)]) { ($0.age % 3).isIn(none) || $0.age > 3 }.map(\.age) == [4, 5])
    #expect(try context.fetch(Dog.self, sortedBy: [.ascending(\.age)]) { $0.age > 3 && !($0.age % 3).isIn(none) }.map(\.age) == [4, 5])
  }

  @Test(arguments: TestStore.withChild)
  func `a remainder or a count that can't be compared with the other side differs from it and has no order`(_ store: TestStore) throws {
    let context = try context(store)
    func count(_ expression: QueryExpression) throws -> Int {
      try context.count(for: FetchRequest<Dog>(where: FetchPredicate(expression)))
    }
    let operands: [QueryExpression] = [
      .remainder(.property("age"), 3), .remainder(.property("chip"), 3), .remainder(.count("friends"), 3), .count("friends"),
    ]
    for operand in operands {
      let comment = Comment(rawValue: "\(operand) on \(store)")
      for other in [StoreValue.double(.nan), .string("1")] {
        #expect(try count(.comparison(operand, .equalTo, .constant(other), [])) == 0, comment)
        #expect(try count(.comparison(operand, .notEqualTo, .constant(other), [])) == 6, comment)
        #expect(try count(.comparison(operand, .lessThan, .constant(other), [])) == 0, comment)
        #expect(try count(.membership(operand, [other])) == 0, comment)
        #expect(try count(.between(operand, other, other)) == 0, comment)
      }
      #expect(try count(.comparison(operand, .lessThanOrEqualTo, .constant(.null), [])) == 0, comment)
      #expect(try count(.between(operand, .null, .null)) == 0, comment)
      #expect(try count(.comparison(operand, .lessThan, .property("name"), [])) == 0, comment)
      #expect(try count(.comparison(.property("name"), .contains, operand, [])) == 0, comment)
      #expect(try count(.comparison(operand, .beginsWith, .constant(.int64(0)), [])) == 0, comment)
      #expect(try count(.comparison(.constant(.string("0")), .beginsWith, operand, [])) == 0, comment)
    }
  }

  /// The bug: some comparisons cut the number to the width of the attribute, here to -25,536, and others didn't.
  @Test(arguments: TestStore.withChild)
  func `every comparison uses an unsaved number that is too large for its attribute`(_ store: TestStore) throws {
    let context = try context(store)
    let dog = try #require(try context.one(Dog.self) { $0.name == "5" })
    dog.age = 40_000
    func names(_ expression: QueryExpression) throws -> [String] {
      try context.fetch(FetchRequest<Dog>(where: FetchPredicate(expression))).map(\.name)
    }
    let age = QueryExpression.property("age"), remainder = QueryExpression.remainder(age, 33_000)
    let isLarge: [QueryExpression] = [
      .comparison(age, .greaterThan, .constant(.int64(30_000)), []), .comparison(age, .greaterThan, .constant(.double(30_000.5)), []),
      .between(age, .double(39_999.5), .double(40_000.5)), .comparison(remainder, .greaterThan, .constant(.int64(6_000)), []),
    ]
    for expression in isLarge { #expect(try names(expression) == ["5"], "\(expression) on \(store)") }
    let isNegative: [QueryExpression] = [
      .comparison(age, .lessThan, .constant(.double(-0.5)), []), .comparison(age, .lessThan, .count("friends"), []),
      .comparison(remainder, .lessThan, .constant(.int64(0)), []),
    ]
    for expression in isNegative { #expect(try names(expression).isEmpty, "\(expression) on \(store)") }
  }

  /// The bug: extremes and groups had the number cut to the width of the attribute.
  @Test(arguments: TestStore.withChild)
  func `aggregates in a child use a number of its parent that is too large for its attribute`(_ store: TestStore) throws {
    let parent = try context(store)
    let dog = try #require(try parent.one(Dog.self) { $0.name == "5" })
    dog.age = 40_000
    let children = [ManagedObjectContext(parent: parent), ManagedObjectContext(parent: ManagedObjectContext(parent: parent))]
    for child in children {
      let (minimum, maximum, sum) = try child.aggregate(Dog.self) { ($0.minimum(\.age), $0.maximum(\.age), $0.sum(\.age)) }
      #expect(minimum == 0 && maximum == 40_000 && sum == 40_010, "on \(store)")
      #expect(try child.aggregate(Dog.self, by: \.age) { $0.count() }.map(\.key) == [0, 1, 2, 3, 4, 40_000], "on \(store)")
      let request = DictionaryFetchRequest<Dog>(columns: ["age": .property("age"), "count": .count()], groupedBy: ["age"])
      #expect(try child.fetch(request).last == ["age": .int64(40_000), "count": .int64(1)], "on \(store)")
      let byBoth = DictionaryFetchRequest<Dog>(columns: ["age": .property("age")], groupedBy: ["age", "name"])
      #expect(try child.fetch(byBoth).compactMap { $0["age"]?.integer } == [0, 1, 2, 3, 4, 40_000], "on \(store)")
    }
  }
}
