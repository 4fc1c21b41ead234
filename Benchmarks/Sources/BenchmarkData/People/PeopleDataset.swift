/// The people input: persons, companies, employers and friends, the same for a given count on every machine.
///
/// Each field is a pure function of (seed, index, field), so that any number of people can be made. There are
/// `max(1, count / 100)` companies, one employer per person, and 1 to 5 friends per person, on average three.
/// The figures are those of the C programs that serve as floors; ``PeopleDataset/expected(_:)`` gives the checksums
/// that every store must reach.
///
/// It is not a model: nothing here knows the library under test.
public struct PeopleDataset: Sendable {
  /// What does not change: one reference, so that a ``Person`` costs one retain and not four.
  @usableFromInline
  final class Storage: Sendable {
    /// All names, addresses, notes and avatars.
    @usableFromInline let arena: ByteArena
    /// One record per person, in order of their ids.
    @usableFromInline let persons: [PersonRecord]
    /// One record per company.
    @usableFromInline let companies: [CompanyRecord]
    /// The friends of all persons as indexes into `persons`; each record says which part is its own.
    @usableFromInline let friends: [UInt32]

    init(arena: ByteArena, persons: [PersonRecord], companies: [CompanyRecord], friends: [UInt32]) {
      self.arena = arena
      self.persons = persons
      self.companies = companies
      self.friends = friends
    }
  }

  @usableFromInline let storage: Storage

  /// Makes the input for a number of people.
  ///
  /// - Complexity: O(`count`), below a microsecond per person.
  public init(count: Int) {
    precondition(count >= 0, "The number of people cannot be negative.")
    var maker = PeopleMaker(count: count)
    storage = maker.make()
  }

  /// How many persons there are.
  @inlinable public var count: Int { storage.persons.count }
  /// How many companies there are.
  @inlinable public var companyCount: Int { storage.companies.count }
  /// How many friend links there are.
  @inlinable public var friendLinkCount: Int { storage.friends.count }
  /// The bytes of all texts and blobs.
  public var byteCount: Int { storage.arena.count }

  /// The person at an index.
  @inlinable public subscript(index: Int) -> Person { Person(storage: storage, index: index) }

  /// The company at an index.
  @inlinable public func company(_ index: Int) -> Company { Company(storage: storage, index: index) }

  /// The id of the person at an index.
  @inlinable public static func id(at index: Int) -> Int64 { 1_000_003 + 7 * Int64(index) }

  /// The id of the k-th person that a workload asks for, spread over all of them.
  @inlinable public static func sampleID(_ k: Int, of count: Int) -> Int64 { id(at: k * 7919 % count) }
}

/// The fields of one person without its texts.
@usableFromInline
struct PersonRecord: Sendable {
  @usableFromInline var name: ByteRange
  @usableFromInline var email: ByteRange
  @usableFromInline var notes: ByteRange?
  @usableFromInline var avatar: ByteRange?
  @usableFromInline var height: Double
  @usableFromInline var birthday: Double
  /// The 16 bytes as they lie in memory.
  @usableFromInline var uid: UUIDBytes
  @usableFromInline var age: Int16
  @usableFromInline var isActive: Bool
  @usableFromInline var friendCount: UInt8
  @usableFromInline var employer: UInt32
  @usableFromInline var firstFriend: UInt32
}

/// The fields of one company without its name.
@usableFromInline
struct CompanyRecord: Sendable {
  @usableFromInline var name: ByteRange
  @usableFromInline var founded: Double
}
