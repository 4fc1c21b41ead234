import Foundation
import Holdfast
import HoldfastStore
import TestSupport
import Testing

/// Random requests with and without unsaved changes, compared with a short evaluator that works on objects. Prints its seed; HOLDFAST_SEED
/// repeats a run.
@Suite struct RandomFetchTests {
  @Test(arguments: TestStore.withAll) func aFetchFindsWhatTheObviousEvaluatorFinds(_ store: TestStore) throws {
    var random = SeededGenerator()
    let place = try store.makePlace()
    let context = try place.context()
    try fill(context, &random)
    try context.save()
    let fresh = try place.context()
    for number in 0..<TestTier.count(100, full: 400) {
      let context = number % 2 == 0 ? context : fresh
      if number == (TestTier.isFull ? 100 : 50) { try change(context, &random) }
      let all = try context.fetch(FetchRequest<Dog>())
      let expression = predicate(&random, depth: 2)
      var request = FetchRequest<Dog>(where: FetchPredicate(expression))
      let sorts = Int.random(in: 0..<3, using: &random) == 0 ? [] : sortTerms(&random)
      request.sortDescriptors = sorts.map { FetchSortDescriptor($0) }
      let matching = all.filter { Obvious.holds(expression, $0) }
      let comment = Comment(rawValue: "seed \(random.seed), request \(number) on \(store): \(expression), \(sorts)")
      #expect(try context.count(for: request) == matching.count, comment)
      let found = try context.fetch(request)
      #expect(Set(found.map { ObjectIdentifier($0) }) == Set(matching.map { ObjectIdentifier($0) }), comment)
      #expect(found.count == matching.count, comment)
      request.fetchOffset = Int.random(in: 0..<5, using: &random)
      let limit = Int.random(in: -1..<12, using: &random)
      request.fetchLimit = limit < 0 ? nil : limit
      // Without a sort and a window, any order is correct.
      if sorts.isEmpty && request.fetchOffset == 0 && request.fetchLimit == nil { continue }
      let ordered = matching.sorted { Obvious.precedes($0, $1, sorts) }
      let window = ordered.dropFirst(request.fetchOffset).prefix(request.fetchLimit ?? .max)
      #expect(try context.fetch(request).map(\.objectID) == window.map(\.objectID), comment)
      #expect(try context.fetchObjectIDs(request) == window.map(\.objectID), comment)
    }
  }

  @Test(arguments: TestStore.withChild) func aQueryThatMeansNothingIsRefused(_ store: TestStore) throws {
    let context = try store.makePlace().context()
    func expectRefusal(_ expression: QueryExpression, _ location: SourceLocation = #_sourceLocation) {
      #expect(throws: QueryError.self, sourceLocation: location) {
        try context.fetch(FetchRequest<Dog>(where: FetchPredicate(expression)))
      }
    }
    expectRefusal(compare("tail", .equalTo, .int16(1)))
    expectRefusal(compare("age", .equalTo, .string("three")))
    expectRefusal(compare("name", .lessThan, .int16(3)))
    expectRefusal(compare("age", .beginsWith, .string("3")))
    expectRefusal(compare("owner", .equalTo, .int64(3)))
    expectRefusal(compare("friends", .equalTo, .int64(3)))
    expectRefusal(compare("friends.name", .equalTo, .string("Ann")))
    expectRefusal(.any("owner", .literal(true)))
    expectRefusal(.property("name"))
    expectRefusal(.comparison(.remainder(.property("name"), 3), .equalTo, .constant(.int64(1)), []))
    expectRefusal(.comparison(.remainder(.property("age"), 0), .equalTo, .constant(.int64(1)), []))
    #expect(throws: QueryError.self) { try context.fetch(FetchRequest<Dog>(sortedBy: [FetchSortDescriptor(SortTerm("tail"))])) }
    #expect(throws: PersistenceError.self) {
      try context.fetch(DictionaryFetchRequest<Dog>(columns: ["x": .sum("name")]))
    }
    #expect(throws: PersistenceError.self) { try context.insert(entityNamed: "Cat") }
  }

  private let names = ["", "A", "Ann", "anna", "Anton", "Zoë", "zoe", "ÅSA", "b", "Bello", "bell%", "x_y", "Straße", "STRASSE", "日本", "🐕"]

  private func fill(_ context: ManagedObjectContext, _ random: inout SeededGenerator) throws {
    let people = (0..<6).map { context.person("p\($0)", city: $0 == 0 ? nil : names[$0]) }
    var dogs: [Dog] = []
    for number in 0..<60 {
      let dog = context.dog(names.randomElement(using: &random) ?? "", age: Int.random(in: -2...6, using: &random))
      dog.owner = Int.random(in: 0..<4, using: &random) == 0 ? nil : people.randomElement(using: &random)
      dog.chip = Bool.random(using: &random) ? Int64(number) : nil
      dog.weight = [nil, 0, -0.0, 1.5, 2, .infinity, -3].randomElement(using: &random) ?? nil
      dog.isGood = Bool.random(using: &random)
      dog.born = Bool.random(using: &random) ? Date(timeIntervalSinceReferenceDate: Double(Int.random(in: -3...3, using: &random))) : nil
      dog.notes = Bool.random(using: &random) ? names.randomElement(using: &random) : nil
      dogs.append(dog)
    }
    for _ in 0..<80 {
      if let a = dogs.randomElement(using: &random), let b = dogs.randomElement(using: &random) { a.friends.insert(b) }
    }
  }

  private func change(_ context: ManagedObjectContext, _ random: inout SeededGenerator) throws {
    let dogs = try context.fetch(FetchRequest<Dog>(sortedBy: [.ascending(\.chip)]))
    for dog in dogs.prefix(12) {
      dog.age = Int.random(in: -2...6, using: &random)
      dog.name = names.randomElement(using: &random) ?? ""
    }
    context.delete(dogs[15])
    context.delete(dogs[20])
    dogs[30].owner?.city = "moved"
    dogs[31].friends.insert(dogs[32])
    dogs[33].friends.removeAll()
    let fresh = context.dog("Ann", age: 3)
    fresh.friends.insert(dogs[1])
    context.dog("Anton", age: 4, owner: dogs[40].owner)
    dogs[41].owner = nil
  }

  private func predicate(_ random: inout SeededGenerator, depth: Int) -> QueryExpression {
    let path = ["", "owner."].randomElement(using: &random) ?? ""
    switch Int.random(in: 0..<(depth > 0 ? 16 : 11), using: &random) {
    case 0: return compare("age", order(&random), .int16(Int16.random(in: -2...6, using: &random)))
    case 1: return compare("age", order(&random), .double([0.5, 3, 2.9, -1.5].randomElement(using: &random) ?? 0))
    case 2: return compare("weight", order(&random), .double([0, 1.5, 2, .infinity].randomElement(using: &random) ?? 0))
    case 3:
      return compare(
        "chip", [.equalTo, .notEqualTo].randomElement(using: &random) ?? .equalTo, Bool.random(using: &random) ? .null : .int64(7))
    case 4, 5:
      let op: ComparisonOperator =
        [.beginsWith, .endsWith, .contains, .equalTo, .notEqualTo, .lessThan, .greaterThan].randomElement(using: &random) ?? .equalTo
      let folding: TextFolding =
        [[], .caseInsensitive, .diacriticInsensitive, [.caseInsensitive, .diacriticInsensitive]].randomElement(using: &random) ?? []
      let property = path.isEmpty ? ["name", "notes"].randomElement(using: &random) ?? "name" : "owner.city"
      return .comparison(
        .property(PropertyPath(dotted: property)), op, .constant(.string(names.randomElement(using: &random) ?? "")), folding)
    case 6: return compare("born", order(&random), .date(Double(Int.random(in: -3...3, using: &random))))
    case 7: return .membership(.property("age"), (0..<Int.random(in: 0..<7, using: &random)).map { .int16(Int16($0)) })
    case 8: return .between(.property("age"), .int16(0), .int16(Int16.random(in: 0...4, using: &random)))
    case 9: return Bool.random(using: &random) ? .property("isGood") : compare("isGood", .equalTo, .bool(false))
    case 10 where Bool.random(using: &random):
      let number: QueryExpression =
        [.property("age"), .property("chip"), .count("friends")].randomElement(using: &random) ?? .property("age")
      let divided = QueryExpression.remainder(number, Int64.random(in: 1...4, using: &random))
      return .comparison(divided, order(&random), .constant(.int64(Int64.random(in: -2...2, using: &random))), [])
    case 10: return compare("owner", [.equalTo, .notEqualTo].randomElement(using: &random) ?? .equalTo, .null)
    case 11: return .and((0..<2).map { _ in predicate(&random, depth: depth - 1) })
    case 12: return .or((0..<2).map { _ in predicate(&random, depth: depth - 1) })
    case 13: return .not(predicate(&random, depth: depth - 1))
    case 14:
      let inner = predicate(&random, depth: 0)
      return Bool.random(using: &random) ? .any("friends", inner) : .all("friends", inner)
    default: return .comparison(.count("friends"), order(&random), .constant(.int64(Int64.random(in: 0...3, using: &random))), [])
    }
  }

  private func compare(_ path: PropertyPath, _ op: ComparisonOperator, _ value: StoreValue) -> QueryExpression {
    .comparison(.property(path), op, .constant(value), [])
  }

  private func order(_ random: inout SeededGenerator) -> ComparisonOperator {
    [.lessThan, .lessThanOrEqualTo, .greaterThan, .greaterThanOrEqualTo, .equalTo, .notEqualTo].randomElement(using: &random) ?? .equalTo
  }

  private func sortTerms(_ random: inout SeededGenerator) -> [SortTerm] {
    let paths: [PropertyPath] = ["age", "name", "weight", "chip", "owner.city", "owner.name", "born", "isGood", "notes"]
    return (0..<Int.random(in: 1...2, using: &random)).map { _ in
      SortTerm(paths.randomElement(using: &random) ?? "age", isAscending: Bool.random(using: &random))
    }
  }
}

/// The meaning of a query, implemented on objects as simply as possible.
enum Obvious {
  static func holds(_ expression: QueryExpression, _ object: ManagedObject) -> Bool {
    switch expression {
    case .literal(let value): value
    case .and(let parts): parts.allSatisfy { holds($0, object) }
    case .or(let parts): parts.contains { holds($0, object) }
    case .not(let part): !holds(part, object)
    case .comparison(let left, let op, let right, let folding):
      ValueComparison.holds(value(left, object), op, value(right, object), folding)
    case .between(let part, let lower, let upper):
      ValueComparison.holds(value(part, object), .greaterThanOrEqualTo, lower)
        && ValueComparison.holds(value(part, object), .lessThanOrEqualTo, upper)
    case .membership(let part, let list): list.contains { ValueComparison.holds(value(part, object), .equalTo, $0) }
    case .any(let path, let part): targets(path, object).contains { holds(part, $0) }
    case .all(let path, let part): targets(path, object).allSatisfy { holds(part, $0) }
    case .property: value(expression, object) == .bool(true)
    case .constant, .object, .count, .remainder: false
    }
  }

  private static func targets(_ path: PropertyPath, _ object: ManagedObject) -> [ManagedObject] {
    (try? object.toMany(forKey: path.first)).map { Array($0) } ?? []
  }

  static func value(_ expression: QueryExpression, _ object: ManagedObject) -> StoreValue {
    switch expression {
    case .constant(let value): return value
    case .count(let path): return .int64(Int64(targets(path, object).count))
    case .remainder(let part, let divisor): return value(part, object).integer.map { .int64($0 % divisor) } ?? .null
    case .property(let path):
      var object = object
      var names = path.names
      while names.count > 1 {
        guard case .objectID(let id) = (try? object.value(forKey: names.removeFirst()))?.storeValue,
          let next = try? object.managedObjectContext.object(with: id)
        else { return .null }
        object = next
      }
      return (try? object.value(forKey: names[0]))?.storeValue ?? .null
    default: return .bool(holds(expression, object))
    }
  }

  static func precedes(_ a: ManagedObject, _ b: ManagedObject, _ terms: [SortTerm]) -> Bool {
    for term in terms {
      let x = value(.property(term.path), a), y = value(.property(term.path), b)
      if ValueComparison.holds(x, .equalTo, y) { continue }
      let first = x == .null || (y != .null && ValueComparison.holds(x, .lessThan, y))
      return first == term.isAscending
    }
    let (x, y) = (a.objectID.key, b.objectID.key)
    return (x < 0) == (y < 0) ? (x < 0 ? x > y : x < y) : y < 0
  }
}
