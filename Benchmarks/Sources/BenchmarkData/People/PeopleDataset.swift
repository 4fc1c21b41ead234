/// The people input: persons, companies, employers and friends. It is the same for a given count on every machine.
///
/// Each field is a pure function of seed, index and field, so the number of people isn't limited. There are `max(1, count / 100)`
/// companies, one employer per person, and 1 to 5 friends per person, three on average. The reference programs in C use the same
/// data. ``PeopleDataset/expected(_:)`` returns the checksums that every store must produce.
///
/// The dataset isn't a model, and doesn't depend on the library under test.
public struct PeopleDataset: Sendable {
  /// The immutable data, as one reference, so that a ``Person`` costs one retain rather than four.
  @usableFromInline
  final class Storage: Sendable {
    /// All names, addresses, notes and avatars.
    @usableFromInline let arena: ByteArena
    /// One record per person, sorted by id.
    @usableFromInline let persons: [PersonRecord]
    /// One record per company.
    @usableFromInline let companies: [CompanyRecord]
    /// The friends of all persons as indexes into `persons`. Each record contains the range of its own friends.
    @usableFromInline let friends: [UInt32]

    init(arena: ByteArena, persons: [PersonRecord], companies: [CompanyRecord], friends: [UInt32]) {
      self.arena = arena
      self.persons = persons
      self.companies = companies
      self.friends = friends
    }
  }

  @usableFromInline let storage: Storage

  /// Creates the input for a number of people.
  ///
  /// - Complexity: O(`count`), less than a microsecond per person.
  public init(count: Int) {
    precondition(count >= 0, "The number of people can't be negative.")
    var maker = PeopleMaker(count: count)
    storage = maker.make()
  }

  /// The number of persons.
  @inlinable public var count: Int { storage.persons.count }
  /// The number of companies.
  @inlinable public var companyCount: Int { storage.companies.count }
  /// The number of friend links.
  @inlinable public var friendLinkCount: Int { storage.friends.count }
  /// The number of bytes of all strings and blobs.
  public var byteCount: Int { storage.arena.count }

  /// The person at an index.
  @inlinable public subscript(index: Int) -> Person { Person(storage: storage, index: index) }

  /// The company at an index.
  @inlinable public func company(_ index: Int) -> Company { Company(storage: storage, index: index) }

  /// The id of the person at an index.
  @inlinable public static func id(at index: Int) -> Int64 { 1_000_003 + 7 * Int64(index) }

  /// The id of the k-th person in the sample of a workload, distributed over all persons.
  @inlinable public static func sampleID(_ k: Int, of count: Int) -> Int64 { id(at: k * 7919 % count) }
}

/// The fields of a person without the text.
@usableFromInline
struct PersonRecord: Sendable {
  @usableFromInline var name: ByteRange
  @usableFromInline var email: ByteRange
  @usableFromInline var notes: ByteRange?
  @usableFromInline var avatar: ByteRange?
  @usableFromInline var height: Double
  @usableFromInline var birthday: Double
  /// The 16 bytes in memory order.
  @usableFromInline var uid: UUIDBytes
  @usableFromInline var age: Int16
  @usableFromInline var isActive: Bool
  @usableFromInline var friendCount: UInt8
  @usableFromInline var employer: UInt32
  @usableFromInline var firstFriend: UInt32
}

/// The fields of a company without the name.
@usableFromInline
struct CompanyRecord: Sendable {
  @usableFromInline var name: ByteRange
  @usableFromInline var founded: Double
}
