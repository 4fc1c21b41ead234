/// A person's contribution to the checksum of workload W2, with a part of every attribute.
///
/// Every store computes it from the data that it read, and sums it over all persons with wrapping. `employerKey` is the index of
/// the employer plus one.
@inlinable
public func personChecksum(
  id: Int64, name: String, email: String, age: Int16, height: Double, isActive: Bool, birthday: Double,
  uidFirst: UInt8, uidLast: UInt8, notes: String?, avatar: (count: Int, first: UInt8)?, employerKey: Int64
) -> UInt64 {
  var sum = UInt64(bitPattern: id) &+ UInt64(age) &* 3 &+ (isActive ? 1 : 0)
  sum &+= UInt64(bitPattern: Int64(birthday))
  sum &+= UInt64(bitPattern: Int64(height * 10000 + 0.5))
  sum &+= UInt64(name.utf8.count) &* 5 &+ UInt64(name.utf8.first ?? 0)
  sum &+= UInt64(email.utf8.count) &* 7 &+ UInt64(email.utf8.last ?? 0)
  sum &+= UInt64(uidFirst) &+ UInt64(uidLast) << 8
  if let notes { sum &+= UInt64(notes.utf8.count) &* 11 }
  if let avatar { sum &+= UInt64(avatar.count) &* 13 &+ UInt64(avatar.first) }
  return sum &+ UInt64(bitPattern: employerKey) &* 17
}

extension Person {
  /// This person's contribution to the checksum of workload W2.
  public var checksum: UInt64 {
    let avatar = avatar
    return personChecksum(
      id: id, name: name, email: email, age: age, height: height, isActive: isActive, birthday: birthday,
      uidFirst: uid.0, uidLast: uid.15, notes: notes, avatar: avatar.map { ($0.count, $0.first ?? 0) },
      employerKey: Int64(employer) + 1)
  }
}
