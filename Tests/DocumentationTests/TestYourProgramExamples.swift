// swift-format-ignore-file
// The examples of *Test your program*, word for word, as tests.
#if Macros
import Holdfast
import HoldfastTesting
import Testing

@Suite struct TestYourProgramExamples {
@Entity final class Dog: ManagedObject {
  var name = ""
  @Relationship(deleteRule: .cascade, inverse: \Walk.dog) var walks: ToMany<Walk>
}
@Entity final class Walk: ManagedObject {
  var minutes = 0
  var dog: Dog?
}

func longestWalk(in context: ManagedObjectContext) throws -> Walk? {
  try context.fetchOne(Walk.self, sortedBy: [.descending(\.minutes)])
}

static let walks = """
  {
    "Dog": [{ "$name": "fido", "name": "Fido" }, { "$name": "rex", "name": "Rex" }],
    "Walk": [{ "minutes": 40, "dog": "fido" }, { "minutes": 90, "dog": "rex" }]
  }
  """

@Test func theLongestWalkIsFound() throws {
  let test = try TestContainer(for: Dog.self, Walk.self), context = test.newContext()
  try context.insertFixtures(Self.walks)
  #expect(try longestWalk(in: context)?.dog?.name == "Rex")
}

@Test func walksAreSaved() throws {
  let test = try TestContainer(for: Dog.self, Walk.self), context = test.newContext()
  try context.insertFixtures(Self.walks)
  try context.save()
  #expect(try test.newContext().fetch(Walk.self, sortedBy: \.minutes).map(\.minutes) == [40, 90])
}

@Test func aFullDiskLosesNothing() throws {
  let test = try TestContainer(for: Dog.self, Walk.self), context = test.newContext()
  context.insert(Dog.self) { $0.name = "Fido" }
  test.faults.fail(.commit, with: StoreError(.diskFull, operation: "save", reason: "A test said so."))
  #expect(throws: StoreError.self) { try context.save() }
  #expect(context.hasChanges)
  test.faults.clear()
  try context.save()
  #expect(try test.newContext().count(Dog.self) == 1)
}

@Test func namesOfAllDogsTakeThreeRequests() throws {
  let test = try TestContainer(for: Dog.self, Walk.self), context = test.newContext()
  try context.insertFixtures(Self.walks)
  try context.save()
  let saved = test.newContext()
  try expectRequests(atMost: 3, to: test.coordinator) {
    let walks = try saved.fetch(Walk.self)
    #expect(Set(walks.compactMap { $0.dog?.name }) == ["Fido", "Rex"])
  }
}
}
#endif
