import Holdfast
import HoldfastStore

/// What a process of a race has saved.
struct RaceLog: Codable {
  var own = OwnObjects()
  /// What it has added to the sums, by account.
  var added: [Int: Int] = [:]
  /// The texts that it has given to accounts.
  var texts: [Int: Set<String>] = [:]
  /// The texts of the members that both processes insert, by number.
  var sharedTexts: [Int: Set<String>] = [:]
  /// Their accounts, by number.
  var sharedAccounts: [Int: Set<Int>] = [:]
  var saves = 0
  /// The number of saves that failed with a conflict.
  var refusals = 0
  /// What went wrong; nil if nothing did.
  var fault: String?
}

/// What only one of the processes changes.
struct OwnObjects: Codable, Equatable {
  struct Member: Codable, Equatable {
    var home: Int?
    var accounts: Set<Int> = []
  }

  /// The values of the process's counters, by account.
  var counters: [Int: Int] = [:]
  /// The members that the process has inserted, by number.
  var members: [Int: Member] = [:]

  init() {}

  /// - Parameter members: The members. Only those of the process count.
  init(_ accounts: [ManagedObject], _ members: [ManagedObject], of process: Int) throws {
    let numbers = try OwnObjects.numbers(accounts)
    for account in accounts {
      let number = try account.integer("number")
      counters[number] = try account.integer("counter\(process)")
    }
    for member in members {
      let number = try member.integer("number")
      if number / ProcessRace.stride == process + 1 { self.members[number] = try OwnObjects.member(member, numbers) }
    }
  }

  /// The numbers of accounts.
  static func numbers(_ accounts: [ManagedObject]) throws -> [ManagedObjectID: Int] {
    var numbers: [ManagedObjectID: Int] = [:]
    for account in accounts { numbers[account.objectID] = try account.integer("number") }
    return numbers
  }

  /// The links of a member. An unknown account has the number -1.
  static func member(_ object: ManagedObject, _ numbers: [ManagedObjectID: Int]) throws -> Member {
    var member = Member()
    if case .single(.objectID(let home)) = try object.value(forKey: "home") { member.home = numbers[home] ?? -1 }
    for account in try object.value(forKey: "accounts").objects ?? [] { member.accounts.insert(numbers[account.objectID] ?? -1) }
    return member
  }

  /// Whether a save under a policy may have this result.
  func isPossible(_ policy: ProcessRace.Policy, before: OwnObjects, intended: OwnObjects) -> Bool {
    switch policy {
    case .error, .storeTrump, .objectTrump, .adding: return self == intended
    case .overwrite:
      // The other process has saved all values of an account as it had read them.
      return members == intended.members && counters.allSatisfy { $0.value <= intended.counters[$0.key] ?? -1 }
    case .rollback:
      // Accounts in conflict lose the changes of their counters and links.
      let areCountersRight = counters.allSatisfy { [before.counters[$0.key], intended.counters[$0.key]].contains($0.value) }
      return areCountersRight && Set(members.keys) == Set(intended.members.keys)
        && members.allSatisfy { isPartly($0.value, before.members[$0.key] ?? Member(), intended.members[$0.key] ?? Member()) }
    }
  }

  /// Whether each link of a member is as before or as intended.
  private func isPartly(_ member: Member, _ before: Member, _ intended: Member) -> Bool {
    let discarded = member.accounts.symmetricDifference(intended.accounts)
    return [before.home, intended.home].contains(member.home)
      && discarded.allSatisfy { member.accounts.contains($0) == before.accounts.contains($0) }
  }
}
