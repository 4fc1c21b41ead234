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

  /// The context hasn't read the dogs, so their rows still reference Ann until the save.
  @Test(arguments: TestStore.withChild)
  func `objects whose destination is being deleted are sorted like those without one`(_ store: TestStore) throws {
    let place = try store.makePlace(), setup = try place.context()
    let ann = setup.person("Ann"), bob = setup.person("Bob")
    for (name, owner) in [("Fido", ann), ("Rex", bob), ("Stray", nil)] as [(String, Person?)] {
      let shot = setup.insert(Vaccination.self)
      shot.kind = name
      shot.dog = setup.dog(name, owner: owner)
    }
    try setup.save()
    for entity in ["Dog", "Vaccination"] {
      let context = try place.context()
      let (owner, name) = entity == "Dog" ? ("owner", "name") : ("dog.owner", "kind")
      func names(ascending: Bool, limit: Int? = nil) throws -> [String] {
        let terms = [SortTerm(PropertyPath(dotted: owner), isAscending: ascending), SortTerm(PropertyPath(dotted: name))]
        let request = FetchRequest<ManagedObject>(entityName: entity, sortedBy: terms.map { FetchSortDescriptor($0) }, limit: limit)
        return try context.fetchObjectIDs(request).map { try "\(context.object(with: $0).value(forKey: name).storeValue ?? .null)" }
      }
      let expected = ["Fido", "Stray", "Rex"].map { "\(StoreValue.string($0))" }
      context.delete(try #require(try context.one(Person.self) { $0.name == "Ann" }))
      #expect(try names(ascending: true, limit: 2) == Array(expected.prefix(2)), "\(store), \(entity)")
      #expect(try names(ascending: true) == expected, "\(store), \(entity)")
      #expect(try names(ascending: false) == [expected[2], expected[0], expected[1]], "\(store), \(entity)")
      context.rollback()
      #expect(try names(ascending: true) == [expected[1], expected[0], expected[2]], "\(store), \(entity)")
    }
  }
}
