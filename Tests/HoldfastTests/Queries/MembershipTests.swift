import Foundation
import Holdfast
import HoldfastStoreConformance
import TestSupport
import Testing

/// `IN` compared with a chain of comparisons, for every type, and for every length that uses another implementation.
@Suite struct MembershipTests {
  @Test(arguments: TestStore.allCases)
  func `a value is in a list if it equals an element, for all types and lengths`(_ store: TestStore) throws {
    var random = SeededGenerator()
    let place = try store.makePlace(model: Ledger.model, classes: [])
    let context = try place.context()
    var previous: ManagedObject?
    for number in 0..<80 {
      let entry = try context.insert(entityNamed: "Entry")
      for attribute in Ledger.attributes where number % 7 != 0 {
        let values = Ledger.values(attribute.type, nan: store != .sqlite)
        try entry.setValue(values.randomElement(using: &random) ?? .null, forKey: attribute.name)
      }
      if let previous, number % 5 != 0 { try entry.setValue(.objectID(previous.objectID), forKey: "up") }
      previous = entry
    }
    try context.save()
    let fresh = try place.context(), all = try fresh.fetch(FetchRequest<ManagedObject>(entityName: "Entry")).map(\.objectID)
    for attribute in Ledger.attributes {
      // Half of the lengths for each type, or all in the full tier.
      let counts = [0, 1, 4, 5, 6, 32, 33, 300], step = TestTier.step(2)
      for count in stride(from: Int.random(in: 0..<step, using: &random), to: counts.count, by: step).map({ counts[$0] }) {
        var list = (0..<count).map { _ in Ledger.constants(attribute.type).randomElement(using: &random) ?? .null }
        if count % 3 == 0 { list.append(.null) }
        let paths = [attribute.name, "up.\(attribute.name)", "up.up.\(attribute.name)"]
        for path in TestTier.isFull ? paths : [paths.randomElement(using: &random) ?? attribute.name] {
          let comment = Comment(rawValue: "seed \(random.seed): \(path) IN \(list) on \(store)")
          try expectSame(.property(PropertyPath(dotted: path)), list, fresh, comment)
        }
        let inner = QueryExpression.membership(.property(PropertyPath(attribute.name)), list)
        try expectSame(fresh, .any("down", inner), .any("down", compared(.property(PropertyPath(attribute.name)), list)), "ANY \(inner)")
      }
    }
    for count in [3, 7, 40] {
      let ids = all.shuffled(using: &random).prefix(count).map { StoreValue.objectID($0) }
      try expectSame(.object, ids, fresh, "SELF IN \(count)")
      try expectSame(.property("up"), ids + [.null], fresh, "up IN \(count)")
      try expectSame(.count("down"), (0..<count).map { .int64(Int64($0) * 2 + 1) }, fresh, "@count IN \(count)")
      let odd = QueryExpression.remainder(.property("i16"), 3)
      try expectSame(odd, (0..<count).map { .double(Double($0) / 2 - 1) } + [.null], fresh, "% IN \(count)")
    }
  }

  /// Lists of a hundred thousand values, of which 25 are those of an entry, by attribute.
  private static let lists: [(name: String, values: [StoreValue])] = [
    ("s", (0..<100_000).map { .string("entry \($0 * 2)") }), ("r", (0..<100_000).map { .double(Double($0) * 2) }),
  ]

  @Test(arguments: TestStore.allCases)
  func `a list of a hundred thousand values is one store request`(_ store: TestStore) throws {
    let place = try store.makePlace(model: Ledger.model, classes: [])
    let context = try place.context()
    for number in 0..<50 {
      let entry = try context.insert(entityNamed: "Entry")
      try entry.setValue(.string("entry \(number)"), forKey: "s")
      try entry.setValue(.double(Double(number)), forKey: "r")
    }
    try context.save()
    let (fresh, recording) = try place.recording()
    for (name, list) in Self.lists {
      recording.clear()
      let predicate = QueryExpression.membership(.property(PropertyPath(name)), list)
      #expect(try fresh.count(for: FetchRequest<ManagedObject>(entityName: "Entry", where: FetchPredicate(predicate))) == 25)
      #expect(try fresh.fetch(FetchRequest<ManagedObject>(entityName: "Entry", where: FetchPredicate(.not(predicate)))).count == 25)
      #expect(recording.requests.filter { if case .fetch = $0 { true } else { false } }.count == 2)
    }
  }

  /// The bug: with an empty list, the query found nothing instead.
  @Test(arguments: TestStore.allCases, [0, 1, 5])
  func `an operand that isn't a value of the entity is refused for every length of the list`(_ store: TestStore, _ count: Int) throws {
    let context = try store.makePlace(model: Ledger.model, classes: []).context()
    let list = (0..<count).map { StoreValue.int64(Int64($0)) }
    let operands: [QueryExpression] = [
      .property("unknown"), .property("up.unknown"), .property("down"), .count("up"), .remainder(.property("s"), 3),
    ]
    for operand in operands {
      let request = FetchRequest<ManagedObject>(entityName: "Entry", where: FetchPredicate(.membership(operand, list)))
      #expect(throws: QueryError.self, "\(operand)") { try context.count(for: request) }
    }
  }

  private func compared(_ operand: QueryExpression, _ list: [StoreValue]) -> QueryExpression {
    // Not a flat OR, which would become a list itself.
    list.map { QueryExpression.comparison(operand, .equalTo, .constant($0), []) }
      .reduce(.literal(false)) { $1 == .literal(true) ? $0 : .or([$0, .and([$1, .literal(true)])]) }
  }

  private func expectSame(_ operand: QueryExpression, _ list: [StoreValue], _ context: ManagedObjectContext, _ comment: Comment) throws {
    try expectSame(context, .membership(operand, list), compared(operand, list), comment)
  }

  private func expectSame(_ context: ManagedObjectContext, _ first: QueryExpression, _ second: QueryExpression, _ comment: Comment) throws {
    func ids(_ expression: QueryExpression) throws -> Set<ManagedObjectID> {
      Set(try context.fetch(FetchRequest<ManagedObject>(entityName: "Entry", where: FetchPredicate(expression))).map(\.objectID))
    }
    #expect(try ids(first) == ids(second), comment)
  }
}
