#if Macros
  internal import BenchmarkData
  internal import Holdfast

  #if canImport(FoundationEssentials)
    internal import FoundationEssentials
  #else
    internal import Foundation
  #endif

  /// The people input in classes with macros.
  enum MacroPeople {
    /// A person of the people input.
    @Entity final class Person: ManagedObject {
      var age: Int16
      var avatar: Data?
      var birthday: Date
      var email: String
      var employer: Company?
      var height: Double
      @Attribute(.unique) var id: Int64
      var isActive: Bool
      var name: String
      var notes: String?
      var uid: UUID
      @Relationship(inverse: \Person.friends) var friendOf: ToMany<Person>
      @Relationship var friends: ToMany<Person>

      /// The company's ID, read from the person's own row.
      var employerID: ManagedObjectID? { toOneID(Slots.employer) }
    }

    /// A company of the people input.
    @Entity final class Company: ManagedObject {
      var founded: Date
      var name: String
      @Relationship(inverse: \Person.employer) var employees: ToMany<Person>
    }
  }

  /// The operations of ``PeopleGraph`` that are compared, word for word, on classes with macros.
  struct MacroPeopleGraph: ComparedGraph {
    let context: ManagedObjectContext
    let count: Int

    static let classes: [ManagedObject.Type] = [MacroPeople.Person.self, MacroPeople.Company.self]

    static func model() throws -> ManagedObjectModel { try .declared(by: classes) }

    func make(_ people: PeopleDataset) -> [ManagedObject] {
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
      return companies + persons
    }

    func readAll() throws -> UInt64 { try context.fetch(MacroPeople.Person.self).reduce(0) { $0 &+ checksum($1) } }

    func walk() throws -> UInt64 {
      try (0..<1000).reduce(0) { sum, k in sum + relatives(of: try person(PeopleDataset.sampleID(k, of: count))) }
    }

    private func person(_ id: Int64) throws -> MacroPeople.Person {
      guard let person = try context.fetch(MacroPeople.Person.self, where: { $0.id == id }).first else {
        throw MissingObject("person \(id)")
      }
      return person
    }

    private func insert(_ input: Company) -> MacroPeople.Company {
      let company = context.insert(MacroPeople.Company.self)
      company.name = input.name
      company.founded = Date(timeIntervalSinceReferenceDate: input.founded)
      return company
    }

    private func insert(_ input: Person) -> MacroPeople.Person {
      let person = context.insert(MacroPeople.Person.self)
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

    private func checksum(_ person: MacroPeople.Person) -> UInt64 {
      let uid = person.uid.uuid
      let avatar = person.avatar
      return personChecksum(
        id: person.id, name: person.name, email: person.email, age: person.age, height: person.height, isActive: person.isActive,
        birthday: person.birthday.timeIntervalSinceReferenceDate, uidFirst: uid.0, uidLast: uid.15, notes: person.notes,
        avatar: avatar.map { ($0.count, $0.first ?? 0) }, employerKey: person.employerID?.key.rawValue ?? 0)
    }

    private func relatives(of person: MacroPeople.Person) -> UInt64 {
      person.friends.reduce(UInt64(person.employer?.name.utf8.count ?? 0)) { $0 + 1 + UInt64($1.name.utf8.count) }
    }
  }
#endif
