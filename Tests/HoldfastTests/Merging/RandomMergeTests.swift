import Foundation
import HoldfastStore
import HoldfastStoreConformance
import TestSupport
import Testing

@testable import Holdfast

/// Random changes in two contexts, whose conflicts are resolved under each policy, compared with a model of dictionaries. Prints its seed;
/// HOLDFAST_SEED repeats a run.
@Suite struct RandomMergeTests {
  typealias Policy = MergePolicyTests.Policy

  @Test(arguments: TestStore.withChild, Policy.allCases)
  func RD9_aSaveWithConflictsGivesWhatTheModelGives(_ store: TestStore, _ policy: Policy) throws {
    var random = SeededGenerator()
    for round in 0..<TestTier.count(6, full: 1500) {
      try MergeRound(store, policy, "seed \(random.seed), round \(round) on \(store), \(policy)").run(&random)
    }
  }

  @Test(arguments: TestStore.withChild, Policy.allCases)
  func RD9_mergingTheOtherSavesBeforeSavingGivesTheSame(_ store: TestStore, _ policy: Policy) throws {
    var random = SeededGenerator()
    for round in 0..<TestTier.count(6, full: 1500) {
      let title = "seed \(random.seed), round \(round) with merging on \(store), \(policy)"
      try MergeRound(store, policy, title, mergesBeforeSaving: true).run(&random)
    }
  }

  /// A closure that makes the decision of a policy about each object.
  @Test(arguments: TestStore.withChild, Policy.allCases)
  func RD9_aClosureGivesWhatThePolicyThatItChoosesGives(_ store: TestStore, _ policy: Policy) throws {
    var random = SeededGenerator()
    for round in 0..<TestTier.count(4, full: 800) {
      let title = "seed \(random.seed), round \(round) with a closure on \(store), \(policy)"
      try MergeRound(store, policy, title, form: .closure).run(&random)
    }
  }

  /// The save is refused and changes nothing. Then the program resolves its conflicts by a policy.
  @Test(arguments: TestStore.withChild, Policy.allCases)
  func RD9_resolvingTheConflictsOfARefusedSaveGivesTheSame(_ store: TestStore, _ policy: Policy) throws {
    var random = SeededGenerator()
    for round in 0..<TestTier.count(4, full: 800) {
      let title = "seed \(random.seed), round \(round) with refused saves on \(store), \(policy)"
      try MergeRound(store, policy, title, form: .refusal).run(&random)
    }
  }

  /// Each process keeps its store open. Every round ends with the same state in both.
  @Test(.ownThreads, arguments: [TestStore.json, .xml, .binary, .sqlite], Policy.allCases)
  func RD9_twoProcessesGetWhatTheModelGives(_ store: TestStore, _ policy: Policy) async throws {
    await #expect(processExitsWith: .success) { [store = store.rawValue as String, policy = policy.rawValue as String] in
      let store = try #require(TestStore(rawValue: store)), policy = try #require(Policy(rawValue: policy))
      let place = try store.makePlace(), other = OtherProcess(place), parties: [any MergeParty] = [other, ContextParty(place)]
      var random = SeededGenerator()
      for round in 0..<TestTier.count(3, full: 300) {
        let title = "seed \(random.seed), round \(round) of two processes on \(store), \(policy)"
        do {
          try MergeRound.fill(place, &random)
          // A process reads a whole file again when it saves.
          func readFile() throws { if store != .sqlite { for party in parties { try party.saveAnything() } } }
          try readFile()
          let expected = try MergeRound(place, policy, title).run(against: other, &random, readFile)
          try readFile()
          #expect(try other.read() == expected, Comment(rawValue: title))
        } catch {
          Issue.record("\(title): \(error)")
          break
        }
      }
      try other.end()
      try place.close()
    }
  }

  /// Without unsaved changes of its own, a context that merges has the same state as one that reads everything again.
  @Test(arguments: TestStore.withChild) func RD9_aContextThatMergesSeesWhatOthersSave(_ store: TestStore) throws {
    var random = SeededGenerator()
    for round in 0..<TestTier.count(2, full: 100) {
      let place = try store.makePlace()
      try MergeRound.fill(place, &random)
      let contexts = [try place.context(), try place.context()]
      for context in contexts { context.automaticallyMergesChanges = true }
      // The objects stay in the contexts.
      var held = try contexts.map { try ($0.fetch(FetchRequest<Dog>()), $0.fetch(FetchRequest<Person>())) }
      for step in 0..<12 {
        for context in contexts { _ = try KennelState(context) }
        let writer = contexts.randomElement(using: &random) ?? contexts[0]
        try MergeRound.change(writer, &random)
        if Bool.random(using: &random) { writer.dog("New", age: step).chip = Int64(100 + step) }
        try writer.save()
        let expected = try KennelState(place.context())
        let comment = Comment(rawValue: "seed \(random.seed), round \(round), step \(step) on \(store)")
        for context in contexts { #expect(try KennelState(context) == expected, comment) }
        held = try contexts.map { try ($0.fetch(FetchRequest<Dog>()), $0.fetch(FetchRequest<Person>())) }
      }
      withExtendedLifetime(held) {}
    }
  }
}

/// One round: both contexts read everything, both change something, one saves, then the other.
struct MergeRound {
  /// How the second context resolves its conflicts.
  enum Form {
    /// By its policy.
    case policy
    /// By a closure that returns the same for all objects.
    case closure
    /// Its saves are refused, and it resolves their conflicts by the policy.
    case refusal
  }

  let place: TestStore.Place
  let policy: MergePolicyTests.Policy
  let form: Form
  let comment: Comment
  /// Whether the second context merges the changes of the first one before it saves.
  let mergesBeforeSaving: Bool

  init(
    _ store: TestStore, _ policy: MergePolicyTests.Policy, _ title: String, form: Form = .policy, mergesBeforeSaving: Bool = false
  ) throws {
    self.init(try store.makePlace(), policy, title, form: form, mergesBeforeSaving: mergesBeforeSaving)
  }

  init(
    _ place: TestStore.Place, _ policy: MergePolicyTests.Policy, _ title: String, form: Form = .policy, mergesBeforeSaving: Bool = false
  ) {
    self.place = place
    self.policy = policy
    self.form = form
    self.mergesBeforeSaving = mergesBeforeSaving
    comment = Comment(rawValue: title)
  }

  /// Saves three people, and new dogs until there are six.
  static func fill(_ place: TestStore.Place, _ random: inout SeededGenerator) throws {
    let setup = try place.context()
    var people = try setup.fetch(FetchRequest<Person>())
    if people.isEmpty { people = ["Ann", "Bob", "Cleo"].map { setup.person($0) } }
    let known = try setup.fetch(FetchRequest<Dog>(sortedBy: [.ascending(\.chip)])), chips = Set(known.compactMap(\.chip))
    let dogs = (0..<6).filter { !chips.contains(Int64($0)) }.map { chip in
      let dog = setup.dog("Dog \(chip)", age: chip, owner: Bool.random(using: &random) ? people.randomElement(using: &random) : nil)
      dog.chip = Int64(chip)
      return dog
    }
    for dog in dogs { for friend in dogs where Int.random(in: 0..<4, using: &random) == 0 { dog.friends.insert(friend) } }
    try setup.save()
  }

  func run(_ random: inout SeededGenerator) throws {
    try Self.fill(place, &random)
    let expected = try run(against: ContextParty(place), &random)
    try place.close()
    #expect(try KennelState(place.context()) == expected, comment)
  }

  /// Both parties read and change objects, then the other one saves, then a context of this one.
  ///
  /// - Parameter readFile: Called after both saves. A save without changes reads nothing.
  /// - Returns: The expected state.
  func run(against other: any MergeParty, _ random: inout SeededGenerator, _ readFile: () throws -> Void = {}) throws -> KennelState {
    let base = try other.read(), ours = try place.context()
    ours.automaticallyMergesChanges = mergesBeforeSaving
    ours.mergePolicy = mergePolicy
    #expect(try KennelState(ours) == base, comment)
    let versions = try other.versions()
    let theirState = try other.change(seed: random.next(), people: true)
    try Self.change(ours, people: policy != .rollback, &random)
    let ourState = try KennelState(ours)
    try other.save()
    var conflicting = Set(try other.versions().filter { versions[$0.key] != $0.value }.keys)
    conflicting.formUnion(base.dogs.keys.filter { theirState.dogs[$0] == nil })
    if mergesBeforeSaving {
      try ours.processPendingChanges()
      #expect(ours.core.merging.inbox?.isEmpty == true, comment)
      // Both ends of each link agree, unless an object stays that was deleted.
      if !policy.prefersOurs { do { _ = try KennelState(ours) } catch { Issue.record("After merging: \(error) \(comment)") } }
      // Only the insertion of deleted objects is left to the save.
      if !policy.prefersOurs { ours.mergePolicy = .error }
    }
    try save(ours, over: theirState)
    try readFile()
    let expected = merged(base, theirState, ourState, conflicting)
    #expect(!ours.hasChanges, comment)
    for dog in try ours.fetch(FetchRequest<Dog>()) {
      guard let chip = dog.chip, conflicting.contains(chip), ourState.changed(since: base).contains(chip) else { continue }
      #expect(KennelState.Values(name: dog.name, age: dog.age, owner: dog.owner?.name) == expected.dogs[chip], comment)
      #expect(Set(dog.friends.compactMap(\.chip)) == Set(expected.links.filter { $0.from == chip }.map(\.to)), comment)
    }
    try ours.refreshAllObjects()
    let states = "base \(base)\ntheirs \(theirState)\nours \(ourState)\nin conflict \(conflicting)\nexpected \(expected)"
    #expect(try KennelState(ours) == expected, "\(comment)\n\(states)")
    return expected
  }

  private var mergePolicy: MergePolicy {
    switch form {
    case .policy: return policy.policy
    case .closure:
      let resolution = policy.resolution
      return .custom { _ in resolution }
    case .refusal: return .error
    }
  }

  /// Saves. A refused save changes nothing, and its conflicts are resolved.
  private func save(_ ours: ManagedObjectContext, over theirState: KennelState) throws {
    if form != .refusal { return try ours.save() }
    for _ in 0..<10 {
      do { return try ours.save() } catch let error as PersistenceError where error.code == .conflict {
        #expect(try !error.objectIDs.isEmpty && ours.hasChanges && KennelState(place.context()) == theirState, comment)
        try ours.resolveConflicts(of: error, using: policy.policy)
      }
    }
    Issue.record("A save whose conflicts were resolved ten times has others. \(comment)")
  }

  /// Makes random changes. A deleted dog isn't changed before.
  ///
  /// - Parameter changesPeople: Whether owners get changes of their own. A rollback of these discards links to dogs as well.
  static func change(_ context: ManagedObjectContext, people changesPeople: Bool = true, _ random: inout SeededGenerator) throws {
    var dogs = try context.fetch(FetchRequest<Dog>(sortedBy: [.ascending(\.chip)]))
    let people = try context.fetch(FetchRequest<Person>(sortedBy: [.ascending(\.name)]))
    if dogs.count > 3, Int.random(in: 0..<2, using: &random) == 0 {
      context.delete(dogs.remove(at: Int.random(in: dogs.indices, using: &random)))
      try context.processPendingChanges()
    }
    for _ in 0..<Int.random(in: 1..<6, using: &random) {
      guard let dog = dogs.randomElement(using: &random), let other = dogs.randomElement(using: &random) else { return }
      switch Int.random(in: 0..<(changesPeople ? 6 : 5), using: &random) {
      // People with changes of their own have lists, too.
      case 5: people.randomElement(using: &random)?.city = "City \(Int.random(in: 0..<100, using: &random))"
      case 0: dog.age = Int.random(in: 0..<100, using: &random)
      case 1: dog.name = "Name \(Int.random(in: 0..<100, using: &random))"
      case 2: dog.owner = Bool.random(using: &random) ? people.randomElement(using: &random) : nil
      case 3: dog.friends.insert(other)
      default: if let friend = dog.friends.min(by: { ($0.chip ?? 0) < ($1.chip ?? 0) }) { dog.friends.remove(friend) }
      }
    }
  }

  // MARK: Model

  private func merged(_ base: KennelState, _ theirs: KennelState, _ ours: KennelState, _ conflicting: Set<Int64>) -> KennelState {
    var result = theirs
    let changed = ours.changed(since: base)
    var again: Set<Int64> = []
    for (chip, before) in base.dogs {
      switch (theirs.dogs[chip], ours.dogs[chip]) {
      case (let theirValues?, let ourValues?):
        if !changed.contains(chip) { continue }
        result.dogs[chip] = conflicting.contains(chip) ? merged(before, theirValues, ourValues) : ourValues
      case (nil, let ourValues?):
        if !changed.contains(chip) || !policy.prefersOurs { continue }
        result.dogs[chip] = ourValues
        again.insert(chip)
      case (_?, nil):
        if conflicting.contains(chip) && !policy.prefersOurs { continue }
        result.dogs[chip] = nil
      case (nil, nil): break
      }
    }
    func isTaken(_ link: KennelState.Link) -> Bool {
      if ours.dogs[link.from] == nil || ours.dogs[link.to] == nil { return false }
      return policy != .rollback || !conflicting.contains(link.from) && !conflicting.contains(link.to)
    }
    result.links.formUnion(ours.links.subtracting(base.links).filter(isTaken))
    result.links.subtract(base.links.subtracting(ours.links).filter(isTaken))
    result.links = result.links.filter { result.dogs[$0.from] != nil && result.dogs[$0.to] != nil }
    return result
  }

  private func merged(_ base: KennelState.Values, _ theirs: KennelState.Values, _ ours: KennelState.Values) -> KennelState.Values {
    func pick<Value: Equatable>(_ path: WritableKeyPath<KennelState.Values, Value>) -> Value {
      let (before, theirs, ours) = (base[keyPath: path], theirs[keyPath: path], ours[keyPath: path])
      return switch policy {
      case .overwrite: ours
      case .rollback: theirs
      case .objectTrump: ours == before ? theirs : ours
      case .storeTrump: theirs == before ? ours : theirs
      }
    }
    return KennelState.Values(name: pick(\.name), age: pick(\.age), owner: pick(\.owner))
  }
}
