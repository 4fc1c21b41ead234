extension PeopleDataset {
  /// The expected checksum of a phase, computed from the plain data without a store.
  ///
  /// The phases are independent: changes of ``PeoplePhase/update`` don't affect the others. The dataset must not be empty.
  public func expected(_ phase: PeoplePhase) -> UInt64 {
    switch phase {
    case .insert: UInt64(count)
    case .readAll: persons.reduce(0) { $0 &+ $1.checksum }
    case .readOne: UInt64(Self.sampleID(count / 2, of: count))
    case .search: expectedSearch()
    case .walk: expectedWalk()
    case .update: expectedUpdate()
    case .delete: expectedDelete()
    case .aggregate: expectedAggregate()
    }
  }

  private var persons: some Sequence<Person> { (0..<count).lazy.map { self[$0] } }

  private func expectedSearch() -> UInt64 {
    let found = persons.filter { (30...40).contains($0.age) && $0.name.utf8.first == UInt8(ascii: "A") }
      .sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
      .prefix(100)
    return found.reduce(UInt64(found.count)) { $0 + UInt64($1.id) }
  }

  private func expectedWalk() -> UInt64 {
    var sum: UInt64 = 0
    for k in 0..<1000 {
      let person = self[k * 7919 % count]
      sum += UInt64(company(person.employer).name.utf8.count)
      for friend in person.friends { sum += 1 + UInt64(self[Int(friend)].name.utf8.count) }
    }
    return sum
  }

  private func expectedUpdate() -> UInt64 {
    persons.filter { $0.id % 100 == 11 }.reduce(0) { $0 + 2 + UInt64($1.age) }
  }

  private func expectedDelete() -> UInt64 {
    func isDeleted(_ index: Int) -> Bool { Self.id(at: index) % 100 == 37 }
    let deleted = (0..<count).count(where: isDeleted)
    let remaining = persons.reduce(0) { sum, person in
      isDeleted(person.index) ? sum : sum + person.friends.count { !isDeleted(Int($0)) }
    }
    return UInt64(deleted + 7 * remaining)
  }

  private func expectedAggregate() -> UInt64 {
    var ages = [Int](repeating: 0, count: companyCount)
    var employees = ages
    for person in persons {
      ages[person.employer] += Int(person.age)
      employees[person.employer] += 1
    }
    return zip(ages, employees).reduce(UInt64(count)) { sum, company in
      guard company.1 > 0 else { return sum }
      return sum + UInt64(company.1) + UInt64(Double(company.0) / Double(company.1) * 1000)
    }
  }
}
