internal import BenchmarkData
internal import Holdfast
internal import HoldfastStore

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// The operations of the workloads on people. Each returns the checksum of its ``/BenchmarkData/PeoplePhase``.
///
/// Everything uses objects and requests, as in any other program, without shortcuts.
struct PeopleGraph {
  let context: ManagedObjectContext
  /// The number of persons in the store.
  let count: Int

  /// All persons, in no particular order.
  func all() throws -> [StoredPerson] { try context.fetch(StoredPerson.self) }

  /// Reads every attribute of persons.
  func read(_ persons: [StoredPerson]) -> UInt64 { persons.reduce(0) { $0 &+ checksum($1) } }

  /// The person with an id, which must be in the store.
  func person(_ id: Int64) throws -> StoredPerson {
    guard let person = try context.fetch(StoredPerson.self, where: { $0.id == id }).first else { throw MissingObject("person \(id)") }
    return person
  }

  /// The person in the middle of the sample.
  func one() throws -> UInt64 { UInt64(try person(PeopleDataset.sampleID(count / 2, of: count)).id) }

  /// The first hundred persons of age 30 to 40 whose name begins with "A", sorted by name.
  func search() throws -> UInt64 {
    let found = try context.fetch(StoredPerson.self, sortedBy: \.name, limit: 100) {
      $0.age.isIn(30...40) && $0.name.beginsWith("A")
    }
    return found.reduce(UInt64(found.count)) { $0 + UInt64($1.id) }
  }

  /// Visits a thousand persons one by one, with employer and friends.
  func walk() throws -> UInt64 {
    try (0..<sampleSize).reduce(0) { sum, k in sum + relatives(of: try person(PeopleDataset.sampleID(k, of: count))) }
  }

  /// Does the same with one request for all persons.
  func walkTogether() throws -> UInt64 {
    let ids = (0..<sampleSize).map { PeopleDataset.sampleID($0, of: count) }
    let persons = try context.fetch(StoredPerson.self) { $0.id.isIn(Set(ids)) }
    let found = Dictionary(uniqueKeysWithValues: persons.map { ($0.id, $0) })
    return try ids.reduce(0) { sum, id in
      guard let person = found[id] else { throw MissingObject("person \(id)") }
      return sum + relatives(of: person)
    }
  }

  /// The number of persons, and the average age by company.
  func aggregate() throws -> UInt64 {
    let groups = try context.fetch(
      DictionaryFetchRequest<StoredPerson>(
        columns: ["employer": .property("employer"), "employees": .count(), "age": .average("age")], groupedBy: ["employer"]))
    return try groups.reduce(UInt64(try context.count(StoredPerson.self))) { sum, group in
      guard case .int64(let employees) = group["employees"], case .double(let age) = group["age"] else {
        throw MissingObject("the average age of a company")
      }
      return sum + UInt64(employees) + UInt64(age * 1000)
    }
  }

  /// Adds a year to each person, without saving.
  func celebrate(_ persons: [StoredPerson]) -> UInt64 {
    persons.reduce(0) { sum, person in
      person.age += 1
      return sum + 1 + UInt64(person.age)
    }
  }

  /// The sum of the ages of some persons, as the store computes it. 0 if there are none.
  func totalAge(where predicate: FetchPredicate<StoredPerson>) throws -> Int64 {
    try context.fetch(DictionaryFetchRequest<StoredPerson>(where: predicate, columns: ["age": .sum("age")])).first?["age"]?.integer ?? 0
  }

  /// The number of friend links, counted through the objects.
  func linkCount() throws -> Int { try all().reduce(0) { $0 + $1.friends.count } }

  private func checksum(_ person: StoredPerson) -> UInt64 {
    let uid = person.uid.uuid
    let avatar = person.avatar
    return personChecksum(
      id: person.id, name: person.name, email: person.email, age: person.age, height: person.height, isActive: person.isActive,
      birthday: person.birthday.timeIntervalSinceReferenceDate, uidFirst: uid.0, uidLast: uid.15, notes: person.notes,
      avatar: avatar.map { ($0.count, $0.first ?? 0) }, employerKey: person.employerID?.key.rawValue ?? 0)
  }

  private func relatives(of person: StoredPerson) -> UInt64 {
    person.friends.reduce(UInt64(person.employer?.name.utf8.count ?? 0)) { $0 + 1 + UInt64($1.name.utf8.count) }
  }
}

/// The number of persons that a walk visits.
private let sampleSize = 1000

/// A store didn't return data that was saved.
struct MissingObject: Error, CustomStringConvertible {
  private let name: String

  init(_ name: String) { self.name = name }

  /// What is missing, as one sentence.
  var description: String { "The store doesn't contain \(name), although it was saved." }
}

/// A store has other values than those that were saved.
struct UnsavedValues: Error, CustomStringConvertible {
  private let name: String
  private let saved: Int64
  private let expected: Int64

  init(_ name: String, saved: Int64, expected: Int64) { (self.name, self.saved, self.expected) = (name, saved, expected) }

  /// What the store has, and should have, as one sentence.
  var description: String { "In the store, \(name) are \(saved) in total, although \(expected) were saved." }
}
