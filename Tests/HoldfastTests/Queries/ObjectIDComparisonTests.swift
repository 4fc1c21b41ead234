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
}
