internal import Holdfast
internal import HoldfastStore

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// A person of the people input.
final class StoredPerson: ManagedObject {
  enum Slot {
    static let age: SlotIndex = 0, avatar: SlotIndex = 1, birthday: SlotIndex = 2, email: SlotIndex = 3, employer: SlotIndex = 4
    static let height: SlotIndex = 5, id: SlotIndex = 6, isActive: SlotIndex = 7, name: SlotIndex = 8, notes: SlotIndex = 9
    static let uid: SlotIndex = 10
    static let friendOf = 0, friends = 1
  }
  override class var entityName: String { "Person" }
  var age: Int16 {
    get { self[Slot.age] }
    set { self[Slot.age] = newValue }
  }
  var avatar: Data? {
    get { self[Slot.avatar] }
    set { self[Slot.avatar] = newValue }
  }
  var birthday: Date {
    get { self[Slot.birthday] }
    set { self[Slot.birthday] = newValue }
  }
  var email: String {
    get { self[Slot.email] }
    set { self[Slot.email] = newValue }
  }
  var employer: StoredCompany? {
    get { toOne(Slot.employer) }
    set { setToOne(Slot.employer, newValue) }
  }
  /// The company's ID, read from the person's own row.
  var employerID: ManagedObjectID? { toOneID(Slot.employer) }
  var height: Double {
    get { self[Slot.height] }
    set { self[Slot.height] = newValue }
  }
  var id: Int64 {
    get { self[Slot.id] }
    set { self[Slot.id] = newValue }
  }
  var isActive: Bool {
    get { self[Slot.isActive] }
    set { self[Slot.isActive] = newValue }
  }
  var name: String {
    get { self[Slot.name] }
    set { self[Slot.name] = newValue }
  }
  var notes: String? {
    get { self[Slot.notes] }
    set { self[Slot.notes] = newValue }
  }
  var uid: UUID {
    get { self[Slot.uid] }
    set { self[Slot.uid] = newValue }
  }
  var friendOf: ToMany<StoredPerson> { toMany(Slot.friendOf) }
  var friends: ToMany<StoredPerson> { toMany(Slot.friends) }

  override class var properties: [PropertyBinding] {
    [
      .attribute("age", \StoredPerson.age, slot: Slot.age), .attribute("avatar", \StoredPerson.avatar, slot: Slot.avatar),
      .attribute("birthday", \StoredPerson.birthday, slot: Slot.birthday), .attribute("email", \StoredPerson.email, slot: Slot.email),
      .toOne("employer", \StoredPerson.employer, slot: Slot.employer), .attribute("height", \StoredPerson.height, slot: Slot.height),
      .attribute("id", \StoredPerson.id, slot: Slot.id), .attribute("isActive", \StoredPerson.isActive, slot: Slot.isActive),
      .attribute("name", \StoredPerson.name, slot: Slot.name), .attribute("notes", \StoredPerson.notes, slot: Slot.notes),
      .attribute("uid", \StoredPerson.uid, slot: Slot.uid), .toMany("friendOf", \StoredPerson.friendOf, index: Slot.friendOf),
      .toMany("friends", \StoredPerson.friends, index: Slot.friends),
    ]
  }
}

/// A company of the people input.
final class StoredCompany: ManagedObject {
  enum Slot {
    static let founded: SlotIndex = 0, name: SlotIndex = 1
    static let employees = 0
  }
  override class var entityName: String { "Company" }
  var founded: Date {
    get { self[Slot.founded] }
    set { self[Slot.founded] = newValue }
  }
  var name: String {
    get { self[Slot.name] }
    set { self[Slot.name] = newValue }
  }
  var employees: ToMany<StoredPerson> { toMany(Slot.employees) }

  override class var properties: [PropertyBinding] {
    [
      .attribute("founded", \StoredCompany.founded, slot: Slot.founded), .attribute("name", \StoredCompany.name, slot: Slot.name),
      .toMany("employees", \StoredCompany.employees, index: Slot.employees),
    ]
  }
}
