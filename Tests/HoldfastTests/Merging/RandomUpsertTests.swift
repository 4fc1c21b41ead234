import TestSupport
import Testing

@testable import Holdfast

/// Random new objects with the unique values of saved objects and of each other, compared with a model of dictionaries. Prints its seed;
/// HOLDFAST_SEED repeats a run.
@Suite struct RandomUpsertTests {
  typealias Policy = MergePolicyTests.Policy

  @Test(arguments: TestStore.allCases, Policy.allCases)
  func RD9_newObjectsWithTakenValuesGiveWhatTheModelGives(_ store: TestStore, _ policy: Policy) throws {
    var random = SeededGenerator()
    for round in 0..<TestTier.count(6, full: 1500) {
      try run(store.makePlace(), policy, "seed \(random.seed), round \(round) on \(store), \(policy)", &random)
    }
  }

  private func run(_ place: TestStore.Place, _ policy: Policy, _ title: String, _ random: inout SeededGenerator) throws {
    let comment = Comment(rawValue: title)
    try MergeRound.fill(place, &random)
    let ours = try place.context(), theirs = try place.context()
    // The others aren't in the context when it is saved.
    let known = try ours.fetch(FetchRequest<Dog>(sortedBy: [.ascending(\.chip)])).filter { _ in Bool.random(using: &random) }
    // The context doesn't link or change those, so only the new objects that become them need their rows.
    let outdated = try change(theirs, &random), unchanged = known.filter { !outdated.contains($0.chip ?? -1) }
    for chip in 10..<14 where Bool.random(using: &random) {
      let owner = try owner(theirs, &random)
      theirs.dog("Theirs \(chip)", age: chip, owner: owner).chip = Int64(chip)
    }
    try theirs.save()
    var expected = try KennelState(place.context())
    for dog in unchanged where Int.random(in: 0..<3, using: &random) == 0 {
      dog.age = 50
      if let chip = dog.chip { expected.dogs[chip]?.age = 50 }
    }
    try insert(ours, unchanged, policy, &expected, &random)
    ours.mergePolicy = policy.policy
    try ours.save()
    withExtendedLifetime(known) {}
    #expect(!ours.hasChanges, comment)
    try ours.refreshAllObjects()
    #expect(try KennelState(ours) == expected, comment)
    try place.close()
    #expect(try KennelState(place.context()) == expected, comment)
  }

  /// Changes some of the saved dogs. Returns their chips.
  private func change(_ context: ManagedObjectContext, _ random: inout SeededGenerator) throws -> Set<Int64> {
    var chips: Set<Int64> = []
    for dog in try context.fetch(FetchRequest<Dog>(sortedBy: [.ascending(\.chip)])) where Int.random(in: 0..<3, using: &random) == 0 {
      (dog.name, dog.age) = ("Changed", 40)
      dog.owner = try owner(context, &random)
      if let chip = dog.chip { chips.insert(chip) }
    }
    return chips
  }

  private func owner(_ context: ManagedObjectContext, _ random: inout SeededGenerator) throws -> Person? {
    let people = try context.fetch(FetchRequest<Person>(sortedBy: [.ascending(\.name)]))
    return Bool.random(using: &random) ? people.randomElement(using: &random) : nil
  }

  /// Inserts dogs, whose chips others probably have.
  private func insert(
    _ context: ManagedObjectContext, _ known: [Dog], _ policy: Policy, _ expected: inout KennelState, _ random: inout SeededGenerator
  ) throws {
    var friends = known
    for number in 0..<Int.random(in: 1...6, using: &random) {
      let chip = Int64([0, 1, 2, 3, 10, 11, 12, 13, 20, 21].randomElement(using: &random) ?? 0)
      let owner = try owner(context, &random)
      let dog = context.dog("New \(number)", age: Bool.random(using: &random) ? 1 : 30 + number, owner: owner)
      dog.chip = chip
      // A later object then has a smaller key than earlier ones.
      if Int.random(in: 0..<4, using: &random) == 0 { try context.obtainPermanentIDs(for: [dog]) }
      for friend in friends where Int.random(in: 0..<4, using: &random) == 0 {
        dog.friends.insert(friend)
        expected.links.insert(KennelState.Link(from: chip, to: friend.chip ?? -1))
      }
      friends.append(dog)
      let values = KennelState.Values(name: dog.name, age: dog.age, owner: dog.owner?.name)
      expected.dogs[chip] = expected.dogs[chip].map { merged(values, into: $0, policy) } ?? values
    }
  }

  // MARK: Model

  /// The values of a new object and another one with the same unique values. An age of 1 is the model's default value.
  private func merged(_ new: KennelState.Values, into other: KennelState.Values, _ policy: Policy) -> KennelState.Values {
    switch policy {
    case .overwrite: new
    case .objectTrump:
      KennelState.Values(name: new.name, age: new.age == 1 ? other.age : new.age, owner: new.owner ?? other.owner)
    case .storeTrump, .rollback: KennelState.Values(name: other.name, age: other.age, owner: other.owner ?? new.owner)
    }
  }
}
