import Holdfast
import Testing

@Suite struct ObjectIDComparisonTests {
  private static let model: ManagedObjectModel = {
    do {
      return try ManagedObjectModel(entities: [
        EntityDescription("Left"), EntityDescription("Right"),
        EntityDescription(
          "Note",
          attributes: [
            AttributeDescription("one", .objectID, isOptional: true), AttributeDescription("other", .objectID, isOptional: true),
          ]),
      ])
    } catch {
      preconditionFailure("\(error)")
    }
  }()

  @Test(arguments: TestStore.allCases)
  func `IDs of different entities differ, even if their keys are equal`(store: TestStore) throws {
    let place = try store.makePlace(model: Self.model, classes: [])
    let context = try place.context()
    let lefts = try (0..<20).map { _ in try context.insert(entityNamed: "Left") }
    let rights = try (0..<20).map { _ in try context.insert(entityNamed: "Right") }
    try context.save()
    // Not every store gives objects of different entities equal keys.
    let pairs = lefts.flatMap { left in rights.map { (left, $0) } }
    let (left, right) = pairs.first { $0.0.objectID.key == $0.1.objectID.key } ?? pairs[0]
    for (one, other) in [(left, right), (left, left), (right, right)] {
      let note = try context.insert(entityNamed: "Note")
      note["one"] = .objectID(one.objectID)
      note["other"] = .objectID(other.objectID)
    }
    try context.save()
    let fresh = try place.context()
    func count(_ expression: QueryExpression) throws -> Int {
      try fresh.count(for: FetchRequest<ManagedObject>(entityName: "Note", where: FetchPredicate(expression)))
    }
    let (one, other) = (QueryExpression.property("one"), QueryExpression.property("other"))
    #expect(try count(.comparison(one, .equalTo, other, [])) == 2)
    #expect(try count(.comparison(one, .notEqualTo, other, [])) == 1)
    #expect(try count(.comparison(one, .equalTo, .constant(.objectID(right.objectID)), [])) == 1)
  }

  /// A label for one object at most.
  private static let labels: ManagedObjectModel = {
    do {
      return try ManagedObjectModel(entities: [
        EntityDescription("Left"),
        EntityDescription(
          "Label", attributes: [AttributeDescription("one", .objectID, isOptional: true)], uniquenessConstraints: [["one"]]),
      ])
    } catch {
      preconditionFailure("\(error)")
    }
  }()

  /// Inserts an object of "Left" into each store, and an object with its ID into the same store. Returns the IDs.
  private func fill(_ pack: StorePack, _ entity: String) throws -> [StoreValue] {
    let context = try ManagedObjectContext(coordinator: pack.coordinator, classes: [])
    var lefts: [ManagedObject] = []
    for store in pack.stores {
      let left = try context.insert(entityNamed: "Left")
      try context.assign(left, to: store)
      lefts.append(left)
    }
    try context.save()
    for (store, left) in zip(pack.stores, lefts) {
      let holder = try context.insert(entityNamed: entity)
      holder["one"] = .objectID(left.objectID)
      try context.assign(holder, to: store)
    }
    try context.save()
    return lefts.map { .objectID($0.objectID) }
  }

  @Test(arguments: StorePair.allCases)
  func `an attribute that contains an ID equals that ID in each of several stores`(_ pair: StorePair) throws {
    let pack = try StorePack(pair.kinds, model: Self.model), ids = try fill(pack, "Note")
    func count(_ expression: QueryExpression) throws -> Int {
      let context = try ManagedObjectContext(coordinator: pack.coordinator, classes: [])
      return try context.count(for: FetchRequest<ManagedObject>(entityName: "Note", where: FetchPredicate(expression)))
    }
    let one = QueryExpression.property("one")
    for id in ids {
      #expect(try count(.comparison(one, .equalTo, .constant(id), [])) == 1)
      #expect(try count(.comparison(.constant(id), .equalTo, one, [])) == 1)
      #expect(try count(.comparison(one, .notEqualTo, .constant(id), [])) == 1)
    }
    #expect(try count(.membership(one, ids)) == 2)
    #expect(try count(.not(.membership(one, [.null] + ids))) == 0)
  }

  @Test(arguments: StorePair.allCases)
  func `an object is found by a unique attribute that contains an ID in each of several stores`(_ pair: StorePair) throws {
    let pack = try StorePack(pair.kinds, model: Self.labels), ids = try fill(pack, "Label")
    for id in ids {
      let context = try ManagedObjectContext(coordinator: pack.coordinator, classes: [])
      let isIt = FetchPredicate<ManagedObject>(.comparison(.property("one"), .equalTo, .constant(id), []))
      let found = try context.fetch(FetchRequest<ManagedObject>(entityName: "Label", where: isIt))
      #expect(try found.map { try $0.value(forKey: "one").storeValue } == [id])
    }
  }

  @Test(arguments: TestStore.allCases)
  func `a condition on an ID can be compared with a Boolean value`(store: TestStore) throws {
    let place = try store.makePlace(model: Ledger.model, classes: [])
    let context = try place.context()
    let top = try context.insert(entityNamed: "Entry")
    try context.save()
    for _ in 0..<3 { try context.insert(entityNamed: "Entry").setValue(.objectID(top.objectID), forKey: "up") }
    try context.save()
    let fresh = try place.context(), id = StoreValue.objectID(top.objectID)
    func count(_ condition: QueryExpression, is value: Bool) throws -> Int {
      let predicate = FetchPredicate<ManagedObject>(.comparison(condition, .equalTo, .constant(.bool(value)), []))
      return try fresh.count(for: FetchRequest<ManagedObject>(entityName: "Entry", where: predicate))
    }
    let isBelow = QueryExpression.comparison(.property("up"), .equalTo, .constant(id), [])
    #expect(try count(isBelow, is: true) == 3)
    #expect(try count(isBelow, is: false) == 1)
    #expect(try count(.membership(.object, [id]), is: true) == 1)
    #expect(try count(.membership(.object, [id]), is: false) == 3)
  }

  @Test(arguments: TestStore.withChild)
  func `an ordered comparison with an ID is refused`(store: TestStore) throws {
    let place = try store.makePlace(model: Ledger.model, classes: [])
    let context = try place.context()
    let entries = try (0..<3).map { _ in try context.insert(entityNamed: "Entry") }
    for (entry, next) in zip(entries, entries.dropFirst()) { try entry.setValue(.objectID(next.objectID), forKey: "up") }
    try context.save()
    let ids = entries.map { StoreValue.objectID($0.objectID) }, fresh = try place.context()
    func expectRefusal(_ expression: QueryExpression, _ location: SourceLocation = #_sourceLocation) {
      #expect(throws: QueryError.self, "\(expression)", sourceLocation: location) {
        try fresh.fetch(FetchRequest<ManagedObject>(entityName: "Entry", where: FetchPredicate(expression)))
      }
    }
    for path in ["up", "up.up", "o"].map({ QueryExpression.property(PropertyPath(dotted: $0)) }) + [.object] {
      for op in [ComparisonOperator.lessThan, .lessThanOrEqualTo, .greaterThan, .greaterThanOrEqualTo] {
        expectRefusal(.comparison(path, op, .constant(ids[1]), []))
        expectRefusal(.comparison(.constant(ids[1]), op, path, []))
      }
      expectRefusal(.between(path, ids[0], ids[2]))
      expectRefusal(.any("down", .between(path, ids[0], ids[2])))
    }
  }

  @Test(arguments: TestStore.allCases)
  func `an attribute with an ID differs from its URI as text and from its key`(store: TestStore) throws {
    let place = try store.makePlace(model: Ledger.model, classes: [])
    let context = try place.context()
    let top = try context.insert(entityNamed: "Entry")
    try context.save()
    let entry = try context.insert(entityNamed: "Entry"), id = top.objectID
    try entry.setValue(.objectID(id), forKey: "o")
    try entry.setValue(.string(id.uriRepresentation), forKey: "s")
    try entry.setValue(.uri(id.uriRepresentation), forKey: "l")
    try entry.setValue(.int64(id.key.rawValue), forKey: "i64")
    try context.save()
    let fresh = try place.context()
    func count(_ op: ComparisonOperator, _ name: String, _ folding: TextFolding) throws -> Int {
      let predicate = FetchPredicate<ManagedObject>(.comparison(.property("o"), op, .property(PropertyPath(name)), folding))
      return try fresh.count(for: FetchRequest<ManagedObject>(entityName: "Entry", where: predicate))
    }
    for name in ["s", "l", "i64"] {
      for folding in [[], .caseInsensitive] as [TextFolding] {
        // The other object has no values, and nil equals nil.
        #expect(try count(.equalTo, name, folding) == 1, "\(name)")
        #expect(try count(.notEqualTo, name, folding) == 1, "\(name)")
        for op in ComparisonOperator.allCases where op != .equalTo && op != .notEqualTo {
          #expect(try count(op, name, folding) == 0, "\(op) \(name)")
        }
      }
    }
  }

  private static let pets: ManagedObjectModel = {
    do {
      return try ManagedObjectModel(entities: [
        EntityDescription("Animal"), EntityDescription("Dog", superentity: "Animal"),
        EntityDescription(
          "Note",
          attributes: [
            AttributeDescription("one", .objectID, isOptional: true), AttributeDescription("other", .objectID, isOptional: true),
          ]),
        EntityDescription(
          "Label", attributes: [AttributeDescription("one", .objectID, isOptional: true)], uniquenessConstraints: [["one"]]),
      ])
    } catch {
      preconditionFailure("\(error)")
    }
  }()

  /// An object that wasn't read has the entity of the relationship that references it.
  @Test(arguments: TestStore.allCases)
  func `an ID in an attribute equals the same ID with the name of a superentity`(store: TestStore) throws {
    let place = try store.makePlace(model: Self.pets, classes: [])
    let context = try place.context()
    let dog = try context.insert(entityNamed: "Dog"), stranger = try context.insert(entityNamed: "Dog")
    try context.save()
    let (id, other) = (dog.objectID, stranger.objectID)
    let unread = try #require(ManagedObjectID(uriRepresentation: id.uriRepresentation.replacing("/Dog/", with: "/Animal/")))
    #expect(unread == id && unread.uriRepresentation != id.uriRepresentation)
    for (first, second) in [(id, unread), (unread, other), (other, id)] {
      let note = try context.insert(entityNamed: "Note")
      note["one"] = .objectID(first)
      note["other"] = .objectID(second)
    }
    func count(_ expression: QueryExpression, _ context: ManagedObjectContext) throws -> Int {
      try context.count(for: FetchRequest<ManagedObject>(entityName: "Note", where: FetchPredicate(expression)))
    }
    func expectCounts(_ context: ManagedObjectContext) throws {
      let one = QueryExpression.property("one"), second = QueryExpression.property("other")
      for wanted in [id, unread] {
        let constant = QueryExpression.constant(.objectID(wanted))
        #expect(try count(.comparison(one, .equalTo, constant, []), context) == 2)
        #expect(try count(.comparison(constant, .equalTo, one, []), context) == 2)
        #expect(try count(.comparison(one, .notEqualTo, constant, []), context) == 1)
        #expect(try count(.membership(one, [.null, .objectID(wanted)]), context) == 2)
        #expect(try count(.not(.membership(one, [.objectID(wanted)])), context) == 1)
      }
      #expect(try count(.comparison(one, .equalTo, second, []), context) == 1)
      #expect(try count(.comparison(one, .notEqualTo, second, []), context) == 2)
    }
    try expectCounts(context)
    try context.save()
    try expectCounts(place.context())
  }

  @Test(arguments: TestStore.allCases)
  func `a uniqueness constraint compares IDs by their URIs`(store: TestStore) throws {
    let place = try store.makePlace(model: Self.pets, classes: [])
    let context = try place.context()
    let dog = try context.insert(entityNamed: "Dog")
    try context.save()
    let uri = dog.objectID.uriRepresentation
    let unread = try #require(ManagedObjectID(uriRepresentation: uri.replacing("/Dog/", with: "/Animal/")))
    try context.insert(entityNamed: "Label").setValue(.objectID(dog.objectID), forKey: "one")
    try context.save()
    try context.insert(entityNamed: "Label").setValue(.objectID(unread), forKey: "one")
    try context.save()
    for id in [dog.objectID, unread] {
      let other = try place.context()
      try other.insert(entityNamed: "Label").setValue(.objectID(id), forKey: "one")
      let error = try #require(throws: PersistenceError.self) { try other.save() }
      #expect(error.code == .constraintConflict)
    }
  }

  /// The bug: all stores but SQLite looked up the URI in the index of the constraint, and found nothing.
  @Test(arguments: TestStore.allCases)
  func `an object is found by a unique attribute if the wanted ID names a superentity`(store: TestStore) throws {
    let place = try store.makePlace(model: Self.pets, classes: [])
    let context = try place.context()
    let dog = try context.insert(entityNamed: "Dog")
    try context.save()
    let id = dog.objectID
    let unread = try #require(ManagedObjectID(uriRepresentation: id.uriRepresentation.replacing("/Dog/", with: "/Animal/")))
    let label = try context.insert(entityNamed: "Label")
    label["one"] = .objectID(id)
    try context.save()
    for wanted in [id, unread] {
      let isIt = FetchPredicate<ManagedObject>(.comparison(.property("one"), .equalTo, .constant(.objectID(wanted)), []))
      let request = FetchRequest<ManagedObject>(entityName: "Label", where: isIt), other = try place.context()
      #expect(try other.fetch(request).map(\.objectID) == [label.objectID] && other.count(for: request) == 1)
    }
  }

  @Test(arguments: TestStore.allCases)
  func `groups of equal IDs with different names are sorted by their URIs`(store: TestStore) throws {
    let place = try store.makePlace(model: Self.pets, classes: [])
    let context = try place.context()
    let dog = try context.insert(entityNamed: "Dog")
    try context.save()
    let id = dog.objectID
    let unread = try #require(ManagedObjectID(uriRepresentation: id.uriRepresentation.replacing("/Dog/", with: "/Animal/")))
    for ids in [[id, unread], [unread, id]] {
      for id in ids {
        try context.insert(entityNamed: "Note").setValue(.objectID(id), forKey: "one")
        try context.save()
      }
      let request = DictionaryFetchRequest<ManagedObject>(entityName: "Note", columns: ["id": .property("one")], groupedBy: ["one"])
      let uris = try place.context().fetch(request).map { group -> String in
        if case .objectID(let id)? = group["id"] { id.uriRepresentation } else { "" }
      }
      #expect(uris == [unread.uriRepresentation, id.uriRepresentation])
      for note in try context.fetch(FetchRequest<ManagedObject>(entityName: "Note")) { context.delete(note) }
      try context.save()
    }
  }

  @Test(arguments: TestStore.withChild)
  func `an object can only be compared with another of the same family, for equality`(store: TestStore) throws {
    let place = try store.makePlace(model: Self.family, classes: [])
    let context = try place.context()
    let cats = try (0..<3).map { _ in try context.insert(entityNamed: "Cat") }
    for (cat, other) in zip(cats, [cats[0], cats[2], cats[2]]) {
      try cat.setValue(.objectID(other.objectID), forKey: "friend")
      try cat.setValue(.objectID(cats[2].objectID), forKey: "rival")
    }
    try context.save()
    let fresh = try place.context()
    func count(_ left: QueryExpression, _ op: ComparisonOperator, _ right: QueryExpression) throws -> Int {
      let predicate = FetchPredicate<ManagedObject>(.comparison(left, op, right, []))
      return try fresh.count(for: FetchRequest<ManagedObject>(entityName: "Cat", where: predicate))
    }
    let friend = QueryExpression.property("friend"), rival = QueryExpression.property("rival")
    #expect(try count(friend, .equalTo, .object) == 2)
    #expect(try count(.object, .notEqualTo, friend) == 1)
    #expect(try count(friend, .equalTo, rival) == 2)
    #expect(try count(friend, .notEqualTo, .property(PropertyPath(dotted: "friend.rival"))) == 1)
    // The key of a food can equal that of a cat, or a number.
    let others: [QueryExpression] = [.property("food"), .property("lives"), .property("name"), .property("code"), .count("friends")]
    for (object, other) in [friend, .object].flatMap({ object in others.map { (object, $0) } }) {
      for op in ComparisonOperator.allCases {
        #expect(throws: QueryError.self, "\(object) \(op) \(other)") { try count(object, op, other) }
        #expect(throws: QueryError.self, "\(other) \(op) \(object)") { try count(other, op, object) }
      }
    }
    for op in ComparisonOperator.allCases where op != .equalTo && op != .notEqualTo {
      #expect(throws: QueryError.self, "\(op)") { try count(friend, op, rival) }
      #expect(throws: QueryError.self, "\(op)") { try count(friend, op, .object) }
    }
  }

  private static let family: ManagedObjectModel = {
    do {
      return try ManagedObjectModel(entities: [
        EntityDescription("Animal", isAbstract: true), EntityDescription("Food"),
        EntityDescription(
          "Cat", superentity: "Animal",
          attributes: [
            AttributeDescription("lives", .integer64, isOptional: true), AttributeDescription("name", .string, isOptional: true),
            AttributeDescription("code", .objectID, isOptional: true),
          ],
          relationships: [
            .toOne("food", to: "Food", inverse: nil), .toOne("rival", to: "Animal", inverse: nil),
            .toOne("friend", to: "Cat", inverse: "friends"), .toMany("friends", to: "Cat", inverse: "friend"),
          ]),
      ])
    } catch {
      preconditionFailure("\(error)")
    }
  }()

  @Test(arguments: TestStore.allCases)
  func `groups of an attribute with IDs are sorted by their URIs, nil first`(store: TestStore) throws {
    let place = try store.makePlace(model: Ledger.model, classes: [])
    let context = try place.context()
    func id(_ key: Int, in store: String) throws -> ManagedObjectID {
      try #require(ManagedObjectID(uriRepresentation: "x-coredata://\(store)/Entry/p\(key)"))
    }
    let own = try context.insert(entityNamed: "Entry")
    try context.save()
    let first = "6BA7B810-9DAD-11D1-80B4-00C04FD430C8", second = "7BA7B810-9DAD-11D1-80B4-00C04FD430C8"
    var ids = try [id(4, in: second), id(4, in: first), id(12, in: first), id(1, in: first), id(12, in: second)] + [own.objectID]
    // Also in the reverse order, because groups are found in the order of the rows.
    for _ in 0..<2 {
      for id in ids {
        try context.insert(entityNamed: "Entry").setValue(.objectID(id), forKey: "o")
        try context.save()
      }
      let request = DictionaryFetchRequest<ManagedObject>(
        entityName: "Entry", columns: ["id": .property("o"), "n": .count()], groupedBy: ["o"])
      let groups = try place.context().fetch(request).map { $0["id"] ?? .null }
      let sorted = ids.sorted { $0.uriRepresentation.utf8.lexicographicallyPrecedes($1.uriRepresentation.utf8) }
      let expected: [StoreValue] = [.null] + sorted.map { .objectID($0) }
      #expect(groups == expected, "\(store)")
      for object in try context.fetch(FetchRequest<ManagedObject>(entityName: "Entry")) where object != own { context.delete(object) }
      try context.save()
      ids.reverse()
    }
  }
}
