import TestSupport
import Testing

@testable import Holdfast

/// Conflicts of entities with several uniqueness constraints. Each result is the one of saving the new objects one after the other.
@Suite struct SeveralConstraintsTests {
  typealias Policy = MergePolicyTests.Policy

  private struct Tag: Hashable {
    var code: Int16
    var name: String
    var note: String?
  }

  private static let model: ManagedObjectModel = {
    let tag = EntityDescription(
      "Tag",
      attributes: [
        AttributeDescription("code", .integer16), AttributeDescription("name", .string),
        AttributeDescription("note", .string, isOptional: true),
      ], uniquenessConstraints: [["code"], ["name"]])
    do { return try ManagedObjectModel(entities: [tag]) } catch { fatalError("\(error)") }
  }()

  private func makePlace(_ store: TestStore) throws -> TestStore.Place { try store.makePlace(model: Self.model, classes: []) }

  @discardableResult
  private func insert(_ code: Int16, _ name: String, _ note: String?, _ context: ManagedObjectContext) throws -> ManagedObject {
    let tag = try context.insert(entityNamed: "Tag")
    try setValues(tag, code, name)
    if let note { try tag.setValue(.string(note), forKey: "note") }
    return tag
  }

  private func setValues(_ tag: ManagedObject, _ code: Int16, _ name: String) throws {
    try tag.setValue(.int16(code), forKey: "code")
    try tag.setValue(.string(name), forKey: "name")
  }

  private func tags(_ context: ManagedObjectContext) throws -> Set<Tag> {
    let tags = try context.fetch(FetchRequest<ManagedObject>(entityName: "Tag")).map { object in
      guard case .int16(let code) = try value("code", of: object), case .string(let name) = try value("name", of: object) else {
        throw TestFailure.wrongValue
      }
      guard case .string(let note) = try value("note", of: object) else { return Tag(code: code, name: name, note: nil) }
      return Tag(code: code, name: name, note: note)
    }
    #expect(Set(tags).count == tags.count)
    return Set(tags)
  }

  private func value(_ name: String, of object: ManagedObject) throws -> StoreValue {
    guard case .single(let value) = try object.value(forKey: name) else { throw TestFailure.wrongValue }
    return value
  }

  private enum TestFailure: Error { case wrongValue }

  /// The bug: on stores that report further conflicts of a row which they refuse, the second object became the stored one, with which it
  /// shares no value. Its values were lost.
  @Test(arguments: TestStore.allCases, [Policy.storeTrump, .rollback])
  func anObjectDoesNotFollowAnotherOneByAnotherConstraint(_ store: TestStore, _ policy: Policy) throws {
    let place = try makePlace(store), (context, setup) = try place.twoContexts(policy.policy)
    try insert(1, "one", nil, setup)
    try setup.save()
    try insert(1, "two", "a", context)
    let second = try insert(2, "two", "b", context)
    try context.save()
    #expect(!second.isInaccessible && !context.hasChanges)
    try place.close()
    #expect(try tags(place.context()) == [Tag(code: 1, name: "one", note: nil), Tag(code: 2, name: "two", note: "b")])
  }

  /// Each object takes a value to the stored one that makes the next object a duplicate of it, too.
  @Test(arguments: TestStore.allCases) func aChainOverTwoConstraintsEndsInOneObject(_ store: TestStore) throws {
    let place = try makePlace(store), (context, setup) = try place.twoContexts(.mergeByPropertyObjectTrump)
    try insert(1, "one", nil, setup)
    try setup.save()
    for (code, name) in [(1, "two"), (2, "two"), (2, "three")] as [(Int16, String)] { try insert(code, name, name, context) }
    try context.save()
    try place.close()
    #expect(try tags(place.context()) == [Tag(code: 2, name: "three", note: "three")])
  }

  /// The stored object loses the name that the second new object has.
  @Test(arguments: TestStore.allCases) func anObjectIsNotADuplicateOfAValueThatAnotherOneReplaces(_ store: TestStore) throws {
    let place = try makePlace(store), (context, setup) = try place.twoContexts(.mergeByPropertyObjectTrump)
    try insert(1, "one", nil, setup)
    try setup.save()
    try insert(1, "two", "a", context)
    try insert(2, "one", "b", context)
    try context.save()
    try place.close()
    #expect(try tags(place.context()) == [Tag(code: 1, name: "two", note: "a"), Tag(code: 2, name: "one", note: "b")])
  }

  /// The changed object gets a code that is taken, and the name of the new object.
  @Test(arguments: TestStore.allCases, [Policy.storeTrump, .rollback])
  func aNewObjectBecomesAChangedOneOnlyIfThatKeepsTheValue(_ store: TestStore, _ policy: Policy) throws {
    let place = try makePlace(store), context = try place.context()
    try insert(1, "one", nil, context)
    let changed = try insert(2, "two", nil, context)
    try context.save()
    context.mergePolicy = policy.policy
    try setValues(changed, 1, "three")
    let new = try insert(3, "three", "new", context)
    try context.save()
    #expect(new.isInaccessible == (policy == .storeTrump) && !context.hasChanges)
    try place.close()
    let rest =
      policy == .storeTrump
      ? [Tag(code: 2, name: "three", note: nil)] : [Tag(code: 2, name: "two", note: nil), Tag(code: 3, name: "three", note: "new")]
    #expect(try tags(place.context()) == Set([Tag(code: 1, name: "one", note: nil)] + rest))
  }

  /// The bug: on stores that report further conflicts of a row which they refuse, the third object was rolled back, too.
  @Test(arguments: TestStore.allCases, [Policy.storeTrump, .rollback])
  func aChangedObjectGetsAValueThatARevertedOneDoesNotGet(_ store: TestStore, _ policy: Policy) throws {
    let place = try makePlace(store), context = try place.context()
    try insert(1, "one", nil, context)
    let first = try insert(2, "two", nil, context), second = try insert(3, "three", nil, context)
    let third = try insert(4, "four", nil, context)
    try context.save()
    context.mergePolicy = policy.policy
    try setValues(third, 4, "new")
    try setValues(second, 1, "new")
    try setValues(first, 1, "two")
    try context.save()
    #expect(!context.hasChanges)
    try place.close()
    // The second object keeps its new name only if no more than its code is reverted.
    let names = policy == .storeTrump ? ["new", "four"] : ["three", "new"]
    #expect(
      try tags(place.context()) == [
        Tag(code: 1, name: "one", note: nil), Tag(code: 2, name: "two", note: nil), Tag(code: 3, name: names[0], note: nil),
        Tag(code: 4, name: names[1], note: nil),
      ])
  }

  /// The first constraint that the entity declares decides which object a new one becomes.
  @Test(arguments: TestStore.allCases) func theFirstConstraintDecides(_ store: TestStore) throws {
    let place = try makePlace(store), (context, setup) = try place.twoContexts(.mergeByPropertyStoreTrump)
    try insert(1, "one", nil, setup)
    let stored = try insert(2, "two", nil, setup)
    try setup.save()
    let new = try insert(2, "one", "new", context)
    try context.save()
    #expect(new.objectID == stored.objectID)
    #expect(try tags(context) == [Tag(code: 1, name: "one", note: nil), Tag(code: 2, name: "two", note: nil)])
  }

  /// The third object waits for the second one, which becomes the first one by its name. The fourth one may not overtake it.
  @Test(arguments: TestStore.allCases) func aLaterObjectIsMergedAfterOneThatHasToWait(_ store: TestStore) throws {
    let place = try makePlace(store), context = try place.context()
    context.mergePolicy = .mergeByPropertyObjectTrump
    for (code, note) in [(1, "a"), (2, "b"), (2, "c"), (5, "d")] as [(Int16, String)] { try insert(code, "one", note, context) }
    try context.save()
    try place.close()
    #expect(try tags(place.context()) == [Tag(code: 5, name: "one", note: "d")])
  }

  /// The changed object gets its code back before the new one is saved, which has that code and the name of another one.
  @Test(arguments: TestStore.allCases) func aNewObjectBecomesAChangedOneThatGetsTheValueBack(_ store: TestStore) throws {
    let place = try makePlace(store), context = try place.context()
    try insert(1, "one", nil, context)
    let changed = try insert(2, "two", nil, context)
    try insert(3, "three", nil, context)
    try context.save()
    context.mergePolicy = .custom { $0.base == nil ? .mergeByPropertyObjectTrump : .mergeByPropertyStoreTrump }
    try setValues(changed, 1, "two")
    let new = try insert(2, "three", "new", context)
    try context.save()
    #expect(new.isInaccessible && !context.hasChanges)
    try place.close()
    // It then gets the name of the third one, which the policy reverts.
    #expect(
      try tags(place.context()) == [
        Tag(code: 1, name: "one", note: nil), Tag(code: 2, name: "two", note: "new"), Tag(code: 3, name: "three", note: nil),
      ])
  }

  /// The first changed object gets its code back, for which the second one has to give it up again. The new one then becomes the first one.
  @Test(arguments: TestStore.allCases) func aNewObjectWaitsUntilAllChangedOnesAreReverted(_ store: TestStore) throws {
    let place = try makePlace(store), context = try place.context()
    try insert(1, "one", nil, context)
    let first = try insert(2, "two", nil, context), second = try insert(3, "three", nil, context)
    try context.save()
    context.mergePolicy = .custom { $0.base == nil ? .mergeByPropertyObjectTrump : .mergeByPropertyStoreTrump }
    try setValues(first, 1, "two")
    try setValues(second, 2, "three")
    let new = try insert(2, "new", "new", context)
    try context.save()
    #expect(new.isInaccessible && !context.hasChanges)
    try place.close()
    #expect(
      try tags(place.context()) == [
        Tag(code: 1, name: "one", note: nil), Tag(code: 2, name: "new", note: "new"), Tag(code: 3, name: "three", note: nil),
      ])
  }

  /// Each object has a value of the one before it, by the two constraints in turn.
  @Test(arguments: TestStore.allCases) func moreThanAHundredObjectsCanDependOnEachOther(_ store: TestStore) throws {
    let place = try makePlace(store), context = try place.context(), count = 120
    context.mergePolicy = .mergeByPropertyObjectTrump
    for number in 0..<count { try insert(Int16((number + 1) / 2 + 1), "name \(number / 2)", "note \(number)", context) }
    try context.save()
    try place.close()
    #expect(try tags(place.context()) == [Tag(code: Int16(count / 2 + 1), name: "name \((count - 1) / 2)", note: "note \(count - 1)")])
  }

  /// Stored objects keep their values, so a new object is lost if it has a value of an object that is there before it.
  @Test(arguments: TestStore.allCases, [Policy.storeTrump, .rollback])
  func randomNewObjectsGiveWhatOneSaveForEachGives(_ store: TestStore, _ policy: Policy) throws {
    var random = SeededGenerator()
    for round in 0..<TestTier.count(10, full: 1000) {
      let comment = Comment(rawValue: "seed \(random.seed), round \(round) on \(store), \(policy)")
      let place = try makePlace(store), (context, setup) = try place.twoContexts(policy.policy)
      var expected: Set<Tag> = []
      func add(_ note: String, to context: ManagedObjectContext) throws -> ManagedObject? {
        let (code, number) = (Int16.random(in: 0..<6, using: &random), Int.random(in: 0..<6, using: &random))
        let tag = Tag(code: code, name: "name \(number)", note: note)
        let isTaken = expected.contains { $0.code == tag.code || $0.name == tag.name }
        if isTaken && context === setup { return nil }
        if !isTaken { expected.insert(tag) }
        return try insert(tag.code, tag.name, note, context)
      }
      for number in 0..<3 { _ = try add("stored \(number)", to: setup) }
      try setup.save()
      for number in 0..<8 {
        guard let object = try add("new \(number)", to: context) else { continue }
        // A later object then has a smaller key than earlier ones.
        if Int.random(in: 0..<4, using: &random) == 0 { try context.obtainPermanentIDs(for: [object]) }
      }
      try context.save()
      #expect(!context.hasChanges, comment)
      try place.close()
      #expect(try tags(place.context()) == expected, comment)
    }
  }

  /// Each object replaces the values of the one that it becomes. Two saved objects never become one, so the test leaves out objects that
  /// would give a saved object the value of another one.
  @Test(arguments: TestStore.allCases, [Policy.objectTrump, .overwrite])
  func randomNewObjectsThatReplaceValuesGiveWhatOneSaveForEachGives(_ store: TestStore, _ policy: Policy) throws {
    var random = SeededGenerator()
    for round in 0..<TestTier.count(10, full: 1000) {
      let comment = Comment(rawValue: "seed \(random.seed), round \(round) on \(store), \(policy)")
      let place = try makePlace(store), (context, setup) = try place.twoContexts(policy.policy)
      var expected: [Tag] = []
      func randomTag(_ note: String) -> Tag {
        Tag(code: Int16.random(in: 1...4, using: &random), name: "name \(Int.random(in: 1...4, using: &random))", note: note)
      }
      for number in 0..<2 {
        let tag = randomTag("stored \(number)")
        if expected.contains(where: { $0.code == tag.code || $0.name == tag.name }) { continue }
        expected.append(tag)
        try insert(tag.code, tag.name, tag.note, setup)
      }
      try setup.save()
      for number in 0..<8 {
        let tag = randomTag("new \(number)")
        let other = expected.firstIndex { $0.code == tag.code } ?? expected.firstIndex { $0.name == tag.name }
        let isRefused = expected.indices.contains { $0 != other && (expected[$0].code == tag.code || expected[$0].name == tag.name) }
        if isRefused { continue }
        if let other { expected[other] = tag } else { expected.append(tag) }
        try insert(tag.code, tag.name, tag.note, context)
      }
      try context.save()
      #expect(!context.hasChanges, comment)
      try place.close()
      #expect(try tags(place.context()) == Set(expected), comment)
    }
  }
}
