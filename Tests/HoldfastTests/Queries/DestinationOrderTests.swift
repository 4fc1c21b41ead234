import Holdfast
import Testing

/// Sorts by a to-one relationship.
@Suite struct DestinationOrderTests {
  @Test(arguments: TestStore.withChild)
  func `objects sorted by a relationship have the same order before and after new destinations are saved`(_ store: TestStore) throws {
    let place = try store.makePlace(), context = try place.context()
    let ann = context.person("Ann")
    context.dog("Fido", owner: ann)
    try context.save()
    let bob = context.person("Bob"), cid = context.person("Cid")
    context.dog("Rex", owner: cid)
    context.dog("Bello", owner: bob)
    context.dog("Stray")
    func names(ascending: Bool, limit: Int? = nil) throws -> [String] {
      let order = FetchSortDescriptor<Dog>(SortTerm("owner", isAscending: ascending))
      return try context.fetch(FetchRequest<Dog>(sortedBy: [order], limit: limit)).map(\.name)
    }
    for isSaved in [false, true] {
      if isSaved { try context.save() }
      let comment = Comment(rawValue: "\(store), \(isSaved ? "saved" : "unsaved")")
      #expect(try names(ascending: true) == ["Stray", "Fido", "Bello", "Rex"], comment)
      #expect(try names(ascending: false) == ["Rex", "Bello", "Fido", "Stray"], comment)
      #expect(try names(ascending: true, limit: 3) == ["Stray", "Fido", "Bello"], comment)
    }
  }
}
