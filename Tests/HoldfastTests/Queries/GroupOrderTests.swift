import Holdfast
import Testing

/// The order of groups whose values aren't among the columns of the result.
@Suite struct GroupOrderTests {
  @Test(arguments: TestStore.allCases)
  func `groups are sorted by their values, also if no column has these`(_ store: TestStore) throws {
    let place = try store.makePlace(model: Ledger.model, classes: [])
    let context = try place.context()
    let texts: [String?] = ["b", "a", "b", nil, "c", "a", "a", "c", "c", "c"]
    for text in texts {
      let entry = try context.insert(entityNamed: "Entry")
      if let text { try entry.setValue(.string(text), forKey: "s") }
      try entry.setValue(.bool(text == "c"), forKey: "b")
      try context.save()
    }
    let fresh = try place.context()
    func counts(_ columns: [String: DictionaryFetchColumn], by names: [String]) throws -> [StoreValue] {
      let request = DictionaryFetchRequest<ManagedObject>(entityName: "Entry", columns: columns, groupedBy: names)
      let groups = try fresh.fetch(request)
      #expect(groups.allSatisfy { Set($0.keys) == Set(columns.keys) }, "\(store)")
      return groups.map { $0["n"] ?? .null }
    }
    let byText = [1, 3, 2, 4].map { StoreValue.int64($0) }
    #expect(try counts(["n": .count()], by: ["s"]) == byText, "\(store)")
    #expect(try counts(["n": .count(), "v": .property("b")], by: ["b", "s"]) == byText, "\(store)")
    #expect(try counts(["n": .count()], by: ["s", "b"]) == byText, "\(store)")
  }

  @Test(arguments: TestStore.allCases)
  func `groups are sorted by their destinations, also if no column has these`(_ store: TestStore) throws {
    let place = try store.makePlace()
    let context = try place.context()
    let ann = context.person("Ann"), bob = context.person("Bob")
    try context.save()
    for (number, owner) in [bob, ann, bob, nil, bob, ann].enumerated() {
      context.dog("d\(number)", owner: owner)
      try context.save()
    }
    let request = DictionaryFetchRequest<Dog>(columns: ["n": .count()], groupedBy: ["owner"])
    #expect(try place.context().fetch(request) == [1, 2, 3].map { ["n": StoreValue.int64($0)] }, "\(store)")
  }
}
