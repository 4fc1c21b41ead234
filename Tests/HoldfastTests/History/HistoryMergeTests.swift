import Foundation
import Holdfast
import HoldfastStore
import TestSupport
import Testing

/// Contexts and readers that were away, and catch up by the history. Prints its seed; HOLDFAST_SEED repeats a run.
@Suite struct HistoryMergeTests {
  typealias Policy = MergePolicyTests.Policy

  // MARK: Contexts

  /// The policies; nil is `error`, which merges only what is not in conflict.
  private static let policies: [Policy?] = Policy.allCases.map(Optional.some) + [nil]

  /// The objects of a context, which stay in it.
  private struct Held {
    let dogs: [Dog]
    let people: [Person]

    init(_ context: ManagedObjectContext) throws {
      dogs = try context.fetch(FetchRequest<Dog>(sortedBy: [.ascending(\.chip)]))
      people = try context.fetch(FetchRequest<Person>(sortedBy: [.ascending(\.name)]))
    }

    /// The state of each object, with its values and links.
    var lines: [String] { dogs.map { state($0) ?? line($0) } + people.map { state($0) ?? line($0) } }

    private func state(_ object: ManagedObject) -> String? { object.isInaccessible ? "missing" : object.isDeleted ? "deleted" : nil }

    private func line(_ dog: Dog) -> String {
      let owner = dog.owner?.name ?? "-", links = "\(chips(dog.friends)) \(chips(dog.friendOf))"
      return "\(dog.chip ?? -1) \(dog.name) \(dog.age) \(owner) \(links)"
    }

    private func line(_ person: Person) -> String {
      "\(person.name) \(person.city ?? "-") \(chips(person.dogs))"
    }

    private func chips(_ dogs: ToMany<Dog>) -> [Int64] { dogs.map { $0.chip ?? -1 }.sorted() }
  }

  /// What a context shows after it has merged, and what its save then gives.
  private struct Outcome: Equatable {
    var merged: [String] = []
    var error: PersistenceError.Code?
    var conflictCount = 0
    var saved: KennelState
  }

  /// Saves three people and six dogs.
  private func fill(_ context: ManagedObjectContext, _ random: inout SeededGenerator) throws {
    let people = ["Ann", "Bob", "Cleo"].map { context.person($0) }
    let dogs = (0..<6).map { number in
      let dog = context.dog("Dog \(number)", age: number, owner: Bool.random(using: &random) ? people.randomElement(using: &random) : nil)
      dog.chip = Int64(number)
      return dog
    }
    for dog in dogs { for friend in dogs where Int.random(in: 0..<4, using: &random) == 0 { dog.friends.insert(friend) } }
    try context.save()
  }

  /// A context with unsaved changes merges up to three saves of another one, at once.
  private func outcome(_ store: HistoryStore, _ policy: MergePolicy, seed: UInt64, byHistory: Bool) throws -> Outcome {
    var random = SeededGenerator(seed: seed)
    let folder = TemporaryFolder(), coordinator = try store.coordinator(Kennel.model, folder)
    func context() throws -> ManagedObjectContext { try ManagedObjectContext(coordinator: coordinator, classes: Kennel.classes) }
    try fill(context(), &random)
    let ours = try context(), theirs = try context(), held = try Held(ours)
    ours.mergePolicy = policy
    // Everything is read.
    _ = held.lines
    let token = try coordinator.currentPersistentHistoryToken()
    ours.automaticallyMergesChanges = !byHistory
    try MergeRound.change(ours, &random)
    for save in 0..<Int.random(in: 1...3, using: &random) {
      try MergeRound.change(theirs, &random)
      if Bool.random(using: &random) { theirs.dog("New", age: 50).chip = Int64(100 + save) }
      try theirs.save()
    }
    if byHistory {
      for transaction in try coordinator.fetchHistory(after: token).transactions { try ours.mergeChanges(from: transaction.savedChanges) }
    }
    try ours.processPendingChanges()
    let merged = held.lines
    var error: PersistenceError?
    do { try ours.save() } catch let failure as PersistenceError { error = failure }
    let outcome = Outcome(
      merged: merged, error: error?.code, conflictCount: error?.objectIDs.count ?? 0, saved: try KennelState(context()))
    try coordinator.close()
    return outcome
  }

  @Test(arguments: HistoryStore.allCases, policies)
  func RD9_aContextThatMergesTheHistoryGetsWhatAutomaticMergingGives(_ store: HistoryStore, _ policy: Policy?) throws {
    var random = SeededGenerator()
    for round in 0..<TestTier.count(4, full: 300) {
      let seed = random.next(), title = "seed \(random.seed), round \(round) on \(store), \(policy?.rawValue ?? "error")"
      do {
        let automatic = try outcome(store, policy?.policy ?? .error, seed: seed, byHistory: false)
        let byHistory = try outcome(store, policy?.policy ?? .error, seed: seed, byHistory: true)
        #expect(byHistory == automatic, Comment(rawValue: title))
      } catch { Issue.record("\(title): \(error)") }
    }
  }

  /// Without an inverse, an object that gets another owner leaves the former one's list, and only the new owner's row changes.
  ///
  /// The bug: the former owner's list kept the object.
  @Test(arguments: HistoryStore.allCases) func aFormerOwnerLosesWhatAMergedTransactionGivesAway(_ store: HistoryStore) throws {
    let folder = TemporaryFolder(), coordinator = try store.coordinator(Albums.model(), folder)
    let ours = try ManagedObjectContext(coordinator: coordinator), theirs = try ManagedObjectContext(coordinator: coordinator)
    let albums = try (0..<2).map { _ in try ours.insert(entityNamed: "Album") }, photo = try ours.insert(entityNamed: "Photo")
    try albums[0].toMany(forKey: "photos").insert(photo)
    try ours.save()
    #expect(try albums.map { try $0.toMany(forKey: "photos").count } == [1, 0])
    let token = try coordinator.currentPersistentHistoryToken()
    let new = try theirs.existingObject(with: albums[1].objectID)
    try new.toMany(forKey: "photos").insert(theirs.existingObject(with: photo.objectID))
    try theirs.save()
    for transaction in try coordinator.fetchHistory(after: token).transactions { try ours.mergeChanges(from: transaction.savedChanges) }
    #expect(try albums.map { try $0.toMany(forKey: "photos").count } == [0, 1] && !ours.hasChanges)
    try coordinator.close()
  }

  // MARK: Readers of saved changes

  private struct Change: Hashable {
    let id: ManagedObjectID
    let type: PersistentHistoryChange.ChangeType
  }

  /// Saves a change of one to three dogs. Returns the changes.
  private func saveChanges(_ context: ManagedObjectContext, _ dogs: inout [Dog], _ random: inout SeededGenerator) throws -> Set<Change> {
    var inserted: [Dog] = [], others: Set<Change> = []
    for _ in 0..<Int.random(in: 1...3, using: &random) {
      guard Int.random(in: 0..<3, using: &random) > 0, let dog = dogs.randomElement(using: &random),
        !others.contains(where: { $0.id == dog.objectID })
      else {
        inserted.append(context.dog("Dog \(Int.random(in: 0..<1000, using: &random))"))
        continue
      }
      if Bool.random(using: &random) {
        dog.age += 1
        others.insert(Change(id: dog.objectID, type: .update))
      } else {
        others.insert(Change(id: dog.objectID, type: .delete))
        dogs.removeAll { $0 === dog }
        context.delete(dog)
      }
    }
    try context.save()
    dogs += inserted
    return others.union(inserted.map { Change(id: $0.objectID, type: .insert) })
  }

  /// Several contexts save. The history has their saves in the order in which readers receive them.
  @Test(arguments: HistoryStore.allCases) func RD8_theHistoryHasTheOrderOfTheSavedChanges(_ store: HistoryStore) async throws {
    let folder = TemporaryFolder(), coordinator = try store.coordinator(Kennel.model, folder), times = TestTier.count(20, full: 300)
    let setup = try ManagedObjectContext(coordinator: coordinator, classes: Kennel.classes), fido = setup.dog("Fido")
    try setup.save()
    let token = try coordinator.currentPersistentHistoryToken(), dog = fido.objectID
    let changes = coordinator.savedChanges(bufferingNewest: 3 * times)
    async let received = SavedChangesTests.read(changes, of: dog, through: 3 * times)
    try await SavedChangesTests.countUpInThreeContexts(coordinator, dog, times: times)
    let all = await received
    #expect(all == SavedChangesTests.Received(saves: 3 * times))
    let transactions = try coordinator.fetchHistory(after: token).transactions
    #expect(transactions.map { $0.contextName ?? "" } == (1...3 * times).map { "\($0)" })
    #expect(transactions.allSatisfy { $0.changes.map(\.changedObjectID) == [dog] })
    try coordinator.close()
  }

  /// A reader that fetches the history after its token for each element, also for a gap, gets each change once, in order.
  @Test(arguments: HistoryStore.allCases) func RD8_theHistoryFillsTheGapsOfASlowReader(_ store: HistoryStore) async throws {
    var random = SeededGenerator()
    let folder = TemporaryFolder(), coordinator = try store.coordinator(Kennel.model, folder), limit = 3
    let context = try ManagedObjectContext(coordinator: coordinator, classes: Kennel.classes)
    var elements = coordinator.savedChanges(bufferingNewest: limit).makeAsyncIterator()
    var token = try coordinator.currentPersistentHistoryToken()
    var dogs: [Dog] = [], saved: [Set<Change>] = [], received: [Set<Change>] = []
    var (waiting, hasGap, gaps) = (0, false, 0)
    let count = TestTier.count(40, full: 1000)
    while saved.count < count || waiting > 0 {
      for _ in 0..<(saved.count < count ? Int.random(in: 1...6, using: &random) : 0) {
        saved.append(try saveChanges(context, &dogs, &random))
        waiting += 1
        if waiting > limit { (waiting, hasGap) = (limit, true) }
      }
      for _ in 0..<min(waiting, Int.random(in: 1...3, using: &random)) {
        let element = try #require(await elements.next(isolation: #isolation))
        #expect(element.mayIncludeOthers == hasGap, "seed \(random.seed)")
        if hasGap { gaps += 1 } else { waiting -= 1 }
        hasGap = false
        let history = try coordinator.fetchHistory(after: token)
        token = history.token
        received += history.transactions.map { Set($0.changes.map { Change(id: $0.changedObjectID, type: $0.changeType) }) }
        // A gap is filled at once.
        #expect(received == saved, "seed \(random.seed)")
      }
    }
    #expect(gaps > 0 && received == saved, "seed \(random.seed)")
    try coordinator.close()
  }
}
