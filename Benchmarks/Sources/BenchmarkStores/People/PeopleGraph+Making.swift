internal import BenchmarkData
internal import Holdfast

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

extension PeopleGraph {
  /// Creates and relates every object of the input, without saving.
  ///
  /// - Returns: The objects, which keep the graph in memory.
  func insert(_ people: PeopleDataset) -> (companies: [StoredCompany], persons: [StoredPerson]) {
    let companies = (0..<people.companyCount).map { insert(people.company($0)) }
    let persons = (0..<people.count).map { index in
      let input = people[index]
      let person = insert(input)
      person.employer = companies[input.employer]
      return person
    }
    for (index, person) in persons.enumerated() {
      for friend in people[index].friends { person.friends.insert(persons[Int(friend)]) }
    }
    return (companies, persons)
  }

  private func insert(_ input: Company) -> StoredCompany {
    let company = context.insert(StoredCompany.self)
    company.name = input.name
    company.founded = Date(timeIntervalSinceReferenceDate: input.founded)
    return company
  }

  private func insert(_ input: Person) -> StoredPerson {
    let person = context.insert(StoredPerson.self)
    person.id = input.id
    person.name = input.name
    person.email = input.email
    person.age = input.age
    person.height = input.height
    person.isActive = input.isActive
    person.birthday = Date(timeIntervalSinceReferenceDate: input.birthday)
    person.uid = UUID(uuid: input.uid)
    person.notes = input.notes
    person.avatar = input.avatar.map { Data($0) }
    return person
  }
}
