import Holdfast
import HoldfastStore
import TestSupport

/// One process of a race.
final class Racer {
  private let race: ProcessRace
  private let process: Int
  private let context: ManagedObjectContext
  private var random: SeededGenerator
  private var accounts: [ManagedObject] = []
  /// The members of this process, by number.
  private var members: [Int: ManagedObject] = [:]
  private var log = RaceLog()
  private var insertions = 0

  private init(_ race: ProcessRace, _ process: Int, _ context: ManagedObjectContext) {
    (self.race, self.process, self.context) = (race, process, context)
    random = SeededGenerator(seed: race.seed &+ UInt64(process))
    context.mergePolicy = race.policy.policy
  }

  /// Runs a process, and returns its log.
  static func run(_ race: ProcessRace, process: Int) -> RaceLog {
    var log = RaceLog()
    do {
      let context = try race.open(), racer = Racer(race, process, context)
      do { try racer.run() } catch { racer.log.fault = "Process \(process) after \(racer.log.saves) saves: \(error)" }
      log = racer.log
      try context.persistentStoreCoordinator.close()
    } catch {
      log.fault = log.fault ?? "\(error)"
    }
    // The other process may wait for this one.
    if log.fault != nil { try? TemporaryFolder.write([], to: race.folder + "/ready\(process)") }
    return log
  }

  private func run() throws {
    try read()
    log.own = try own()
    for step in 0..<race.saves {
      // Otherwise the objects may be older than what the other process has saved.
      if step > 0, Int.random(in: 0..<3, using: &random) == 0 { try readAgain() }
      var intended = log
      try change(step, &intended)
      // Both have read the same version of the first account.
      if step == 0 { try Rendezvous.wait(in: race.folder, process: process, of: ProcessRace.processes) }
      if try save() {
        try accept(intended)
      } else {
        log.refusals += 1
        try readAgain()
      }
    }
  }

  private func read() throws {
    accounts = try ProcessRace.objects("Account", context)
    members = [:]
    for member in try ProcessRace.objects("Member", context) {
      let number = try member.integer("number")
      if number / ProcessRace.stride == process + 1 { members[number] = member }
    }
  }

  private func readAgain() throws {
    context.reset()
    try read()
  }

  /// The own objects as the context has them.
  private func own() throws -> OwnObjects { try OwnObjects(accounts, Array(members.values), of: process) }

  /// - Returns: False if the policy refuses the save because of a conflict.
  private func save() throws -> Bool {
    do {
      try context.save()
      return true
    } catch let error as PersistenceError where race.policy == .error && [.conflict, .constraintConflict].contains(error.code) {
      return false
    }
  }

  /// Compares what the store and the context have with what was to be saved, and adds it to the log.
  private func accept(_ intended: RaceLog) throws {
    let fresh = try ManagedObjectContext(coordinator: context.persistentStoreCoordinator)
    let saved = try OwnObjects(ProcessRace.objects("Account", fresh), ProcessRace.objects("Member", fresh), of: process)
    let kept = try own(), before = log.own
    log = intended
    log.saves += 1
    // The other process may have saved a lower number of its own reading, which this one has incremented.
    if race.policy == .overwrite { log.own.counters.merge(before.counters, uniquingKeysWith: max) }
    let isRight = saved.isPossible(race.policy, before: before, intended: log.own)
    if !isRight { throw RaceFault("The save gave \(saved) instead of \(log.own), after \(before).") }
    // The other process may have overwritten counters since.
    let isKept = kept.members == saved.members && (race.policy == .overwrite || kept.counters == saved.counters)
    if !isKept { throw RaceFault("The context has \(kept), and the store has \(saved).") }
    if race.policy == .rollback { log.own = saved }
  }

  // MARK: Changes

  private func change(_ step: Int, _ intended: inout RaceLog) throws {
    try count(accounts[step == 0 ? 0 : randomPlace()], &intended)
    for _ in 0..<Int.random(in: 1...4, using: &random) {
      let account = accounts[randomPlace()], text = "\(process) \(step)"
      switch Int.random(in: 0..<8, using: &random) {
      case 0: try count(account, &intended)
      case 1: try add(to: account, &intended)
      case 2: try write(text, account, &intended)
      case 3: try insert(text, home: account, &intended)
      case 4: try delete(&intended)
      case 5: try link(account, &intended)
      case 6: try move(in: account)
      default: try insertShared(text, account, &intended)
      }
    }
  }

  private func randomPlace() -> Int { Int.random(in: accounts.indices, using: &random) }

  /// One of the own members; nil if there are none.
  private func randomMember() -> (number: Int, object: ManagedObject)? {
    guard let number = members.keys.sorted().randomElement(using: &random), let object = members[number] else { return nil }
    return (number, object)
  }

  private func count(_ account: ManagedObject, _ intended: inout RaceLog) throws {
    let name = "counter\(process)", count = try account.integer(name) + 1, number = try account.integer("number")
    try account.setValue(.int64(Int64(count)), forKey: name)
    intended.own.counters[number] = count
  }

  private func add(to account: ManagedObject, _ intended: inout RaceLog) throws {
    if !race.policy.keepsSums { return }
    let number = try account.integer("number"), amount = Int.random(in: 1...9, using: &random)
    try account.setValue(.int64(Int64(account.integer("sum") + amount)), forKey: "sum")
    intended.added[number, default: 0] += amount
  }

  private func write(_ text: String, _ account: ManagedObject, _ intended: inout RaceLog) throws {
    let number = try account.integer("number")
    try account.setValue(.string(text), forKey: "text")
    intended.texts[number, default: []].insert(text)
  }

  private func insert(_ text: String, home: ManagedObject, _ intended: inout RaceLog) throws {
    let number = (process + 1) * ProcessRace.stride + insertions, object = try insert(number, text)
    insertions += 1
    var member = OwnObjects.Member()
    if Bool.random(using: &random) {
      try object.setValue(home, forKey: "home")
      member.home = try home.integer("number")
    }
    for account in accounts where Bool.random(using: &random) {
      let list = try account.ordered(forKey: "members")
      list.insert(object, at: Int.random(in: 0...list.count, using: &random))
      let accountNumber = try account.integer("number")
      member.accounts.insert(accountNumber)
    }
    members[number] = object
    intended.own.members[number] = member
  }

  private func insert(_ number: Int, _ text: String) throws -> ManagedObject {
    let member = try context.insert(entityNamed: "Member")
    try member.setValue(.int64(Int64(number)), forKey: "number")
    try member.setValue(.string(text), forKey: "text")
    return member
  }

  private func delete(_ intended: inout RaceLog) throws {
    guard let member = randomMember() else { return }
    context.delete(member.object)
    members[member.number] = nil
    intended.own.members[member.number] = nil
  }

  /// Adds or removes a link of an own member.
  private func link(_ account: ManagedObject, _ intended: inout RaceLog) throws {
    guard let member = randomMember(), var links = intended.own.members[member.number] else { return }
    let number = try account.integer("number"), list = try member.object.toMany(forKey: "accounts")
    if links.accounts.remove(number) != nil {
      list.remove(account)
    } else {
      links.accounts.insert(number)
      list.insert(account)
    }
    intended.own.members[member.number] = links
  }

  private func move(in account: ManagedObject) throws {
    let list = try account.ordered(forKey: "members")
    guard let member = randomMember(), let place = list.firstIndex(of: member.object) else { return }
    list.move(from: place, to: Int.random(in: 0..<list.count, using: &random))
  }

  /// Inserts a member that may exist already.
  private func insertShared(_ text: String, _ account: ManagedObject, _ intended: inout RaceLog) throws {
    let number = Int.random(in: 0..<ProcessRace.sharedNumbers, using: &random), accountNumber = try account.integer("number")
    try insert(number, text).toMany(forKey: "accounts").insert(account)
    intended.sharedTexts[number, default: []].insert(text)
    intended.sharedAccounts[number, default: []].insert(accountNumber)
  }
}

/// An error of a race: what isn't as it must be.
struct RaceFault: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}
