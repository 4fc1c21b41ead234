import Holdfast
import HoldfastStore

extension ProcessRace {
  /// What the logs of all processes don't explain in the closed store.
  func faults(_ logs: [RaceLog]) throws -> [String] {
    let context = try open()
    let accounts = try ProcessRace.objects("Account", context), members = try ProcessRace.objects("Member", context)
    var faults = try faultsOfLinks(accounts, members) + faultsOfSharedMembers(accounts, members, logs)
    for account in accounts { faults += try faultsOfValues(account, logs) }
    for (process, log) in logs.enumerated() {
      let own = try OwnObjects(accounts, members, of: process)
      let isRight = policy == .overwrite ? own.isPossible(policy, before: log.own, intended: log.own) : own == log.own
      if !isRight { faults.append("Process \(process) saved \(log.own), and the store has \(own).") }
    }
    try context.persistentStoreCoordinator.close()
    return faults
  }

  private func faultsOfValues(_ account: ManagedObject, _ logs: [RaceLog]) throws -> [String] {
    var faults: [String] = []
    let number = try account.integer("number"), sum = try account.integer("sum"), text = try account.text("text")
    let added = logs.compactMap { $0.added[number] }.reduce(0, +)
    if sum != added { faults.append("Account \(number) has the sum \(sum), and the processes added \(added).") }
    let texts = Set(logs.flatMap { $0.texts[number] ?? [] })
    // These policies can bring the first text back, or discard one.
    let mayBeEmpty = texts.isEmpty || policy == .overwrite || policy == .rollback
    if !texts.contains(text) && !(text.isEmpty && mayBeEmpty) { faults.append("Account \(number) has a text that no process saved.") }
    return faults
  }

  /// Members with few numbers are inserted again and again, and become one. Their links are never removed.
  private func faultsOfSharedMembers(_ accounts: [ManagedObject], _ members: [ManagedObject], _ logs: [RaceLog]) throws -> [String] {
    var faults: [String] = []
    let numbers = try members.map { try $0.integer("number") }, shared = numbers.filter { $0 < ProcessRace.stride }
    let inserted = Set(logs.flatMap(\.sharedTexts.keys)), accountNumbers = try OwnObjects.numbers(accounts)
    if Set(numbers).count != numbers.count { faults.append("Members have the same number: \(numbers)") }
    if Set(shared) != inserted { faults.append("The members \(inserted.sorted()) were saved, and the store has \(shared).") }
    for (number, member) in zip(numbers, members) where number < ProcessRace.stride {
      let text = try member.text("text"), links = try OwnObjects.member(member, accountNumbers)
      let expected = Set(logs.flatMap { $0.sharedAccounts[number] ?? [] })
      if !logs.contains(where: { $0.sharedTexts[number]?.contains(text) == true }) {
        faults.append("Member \(number) has a text that no process saved.")
      }
      let isRight = policy == .rollback ? links.accounts.isSubset(of: expected) : links.accounts == expected
      if !isRight || links.home != nil { faults.append("Member \(number) has \(links) instead of the accounts \(expected.sorted()).") }
    }
    return faults
  }

  /// Both ends of each relationship agree.
  private func faultsOfLinks(_ accounts: [ManagedObject], _ members: [ManagedObject]) throws -> [String] {
    var faults: [String] = []
    let known = Set(members)
    for account in accounts {
      let number = try account.integer("number"), list = Array(try account.ordered(forKey: "members"))
      let guests = Set(try account.toMany(forKey: "guests"))
      if Set(list).count != list.count { faults.append("Account \(number) has a member twice.") }
      if !known.isSuperset(of: list) || !known.isSuperset(of: guests) { faults.append("Account \(number) has a missing member.") }
      for member in members {
        let isListed = list.contains(member), isGuest = guests.contains(member)
        let isLinked = try member.toMany(forKey: "accounts").contains(account)
        let isHome = try member.value(forKey: "home") == .single(.objectID(account.objectID))
        if isListed != isLinked || isGuest != isHome { faults.append("Account \(number) and \(member) don't agree.") }
      }
    }
    return faults
  }
}
