/// The 16 bytes of a UUID, in the order in which they are written.
public typealias UUIDBytes = (
  UInt8, UInt8, UInt8, UInt8, UInt8, UInt8, UInt8, UInt8, UInt8, UInt8, UInt8, UInt8, UInt8, UInt8, UInt8, UInt8
)

/// A person of a ``PeopleDataset``. Strings and arrays are created from raw values on demand.
public struct Person: Sendable {
  @usableFromInline let storage: PeopleDataset.Storage
  /// The position in the dataset, from 0.
  public let index: Int

  @inlinable init(storage: PeopleDataset.Storage, index: Int) {
    self.storage = storage
    self.index = index
  }

  @inlinable var record: PersonRecord { storage.persons[index] }

  /// The unique id.
  @inlinable public var id: Int64 { PeopleDataset.id(at: index) }
  /// Given name, family name and a unique tag.
  @inlinable public var name: String { storage.arena.string(record.name) }
  /// The email address.
  @inlinable public var email: String { storage.arena.string(record.email) }
  /// 18 to 89.
  @inlinable public var age: Int16 { record.age }
  /// The height in meters, with four decimals.
  @inlinable public var height: Double { record.height }
  /// True for 70 percent of the persons.
  @inlinable public var isActive: Bool { record.isActive }
  /// Whole seconds since 2001-01-01 UTC.
  @inlinable public var birthday: Double { record.birthday }
  /// A random UUID of version 4.
  @inlinable public var uid: UUIDBytes { record.uid }
  /// A line of text for 30 percent of the persons.
  @inlinable public var notes: String? { record.notes.map(storage.arena.string) }
  /// 64 bytes for 10 percent of the persons.
  @inlinable public var avatar: [UInt8]? { record.avatar.map { storage.arena.withBytes($0, Array.init) } }
  /// The index of the company that this person works for.
  @inlinable public var employer: Int { Int(record.employer) }
  /// The indexes of this person's friends, without duplicates and without the person itself.
  @inlinable public var friends: ArraySlice<UInt32> {
    let first = Int(record.firstFriend)
    return storage.friends[first..<first + Int(record.friendCount)]
  }

  /// Calls a closure with the UTF-8 bytes of the name, without creating a string.
  @inlinable public func withNameUTF8<R, E>(_ body: (UnsafeBufferPointer<UInt8>) throws(E) -> R) throws(E) -> R {
    try storage.arena.withBytes(record.name, body)
  }

  /// Calls a closure with the UTF-8 bytes of the email address, without creating a string.
  @inlinable public func withEmailUTF8<R, E>(_ body: (UnsafeBufferPointer<UInt8>) throws(E) -> R) throws(E) -> R {
    try storage.arena.withBytes(record.email, body)
  }

  /// Calls a closure with the UTF-8 bytes of the notes, or nil if there are none.
  @inlinable public func withNotesUTF8<R, E>(_ body: (UnsafeBufferPointer<UInt8>?) throws(E) -> R) throws(E) -> R {
    guard let notes = record.notes else { return try body(nil) }
    return try storage.arena.withBytes(notes, body)
  }

  /// Calls a closure with the bytes of the avatar, or nil if there is none.
  @inlinable public func withAvatarBytes<R, E>(_ body: (UnsafeBufferPointer<UInt8>?) throws(E) -> R) throws(E) -> R {
    guard let avatar = record.avatar else { return try body(nil) }
    return try storage.arena.withBytes(avatar, body)
  }
}

/// A company of a ``PeopleDataset``.
public struct Company: Sendable {
  @usableFromInline let storage: PeopleDataset.Storage
  /// The position in the dataset, from 0.
  public let index: Int

  @inlinable init(storage: PeopleDataset.Storage, index: Int) {
    self.storage = storage
    self.index = index
  }

  /// The name, which ends in the index.
  @inlinable public var name: String { storage.arena.string(storage.companies[index].name) }
  /// Whole seconds since 2001-01-01 UTC.
  @inlinable public var founded: Double { storage.companies[index].founded }
}
