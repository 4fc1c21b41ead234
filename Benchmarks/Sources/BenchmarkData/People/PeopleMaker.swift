/// Creates the records of a ``PeopleDataset``, field by field.
///
/// The field numbers and the order of the random draws match the generator in C. Changing one changes every checksum.
struct PeopleMaker {
  private let count: Int
  private let companyCount: Int
  private var arena: ByteArena
  private var persons: [PersonRecord] = []
  private var companies: [CompanyRecord] = []
  private var friends: [UInt32] = []
  /// The string being built.
  private var text: [UInt8] = []

  init(count: Int) {
    self.count = count
    companyCount = max(1, count / 100)
    arena = ByteArena(capacity: count * 80 + companyCount * 24)
    persons.reserveCapacity(count)
    companies.reserveCapacity(companyCount)
    friends.reserveCapacity(count * 3 + count / 50)
  }

  mutating func make() -> PeopleDataset.Storage {
    for index in 0..<companyCount { companies.append(company(UInt64(index))) }
    for index in 0..<count { persons.append(person(UInt64(index))) }
    return PeopleDataset.Storage(arena: arena, persons: persons, companies: companies, friends: friends)
  }

  private mutating func company(_ index: UInt64) -> CompanyRecord {
    text.removeAll(keepingCapacity: true)
    text += pick(PeopleWords.family, random(index, 40))
    text.append(space)
    text += pick(PeopleWords.trade, random(index, 41))
    text.append(space)
    text += String(index).utf8
    return CompanyRecord(name: arena.append(text), founded: -Double(random(index, 42) % 3_000_000_000))
  }

  private mutating func person(_ index: UInt64) -> PersonRecord {
    let given = Int(random(index, 1) % UInt64(PeopleWords.given.count))
    let firstFriend = friends.count
    let name = name(index, given: given)
    let email = email(index, given: given)
    let notes = notes(index)
    let avatar = avatar(index)
    appendFriends(index)
    return PersonRecord(
      name: name,
      email: email,
      notes: notes,
      avatar: avatar,
      height: Double(14000 + random(index, 4) % 7000) / 10000,
      birthday: -Double(random(index, 6) % 1_900_000_000) + 200_000_000,
      uid: uid(index),
      age: Int16(18 + random(index, 3) % 72),
      isActive: random(index, 5) % 10 < 7,
      friendCount: UInt8(friends.count - firstFriend),
      employer: UInt32(random(index, 12) % UInt64(companyCount)),
      firstFriend: UInt32(firstFriend))
  }

  private mutating func name(_ index: UInt64, given: Int) -> ByteRange {
    text.removeAll(keepingCapacity: true)
    text += PeopleWords.given[given]
    text.append(space)
    text += pick(PeopleWords.family, random(index, 2))
    text.append(space)
    text += String(index + 46656, radix: 36).utf8  // 36³, so that every tag has at least four characters
    return arena.append(text)
  }

  private mutating func email(_ index: UInt64, given: Int) -> ByteRange {
    text.removeAll(keepingCapacity: true)
    text += PeopleWords.login[given]
    let digits = String(index).utf8
    text += repeatElement(UInt8(ascii: "0"), count: max(0, 7 - digits.count))
    text += digits
    text += "@example.org".utf8
    return arena.append(text)
  }

  private mutating func notes(_ index: UInt64) -> ByteRange? {
    guard random(index, 9) % 10 < 3 else { return nil }
    let wanted = 65 + Int(random(index, 10) % 30)
    text.removeAll(keepingCapacity: true)
    var word: UInt64 = 0
    while text.count < wanted {
      if !text.isEmpty { text.append(space) }
      text += pick(PeopleWords.notes, random(index, 4096 + word))
      word += 1
    }
    return arena.append(text)
  }

  private mutating func avatar(_ index: UInt64) -> ByteRange? {
    guard random(index, 11) % 10 == 0 else { return nil }
    text.removeAll(keepingCapacity: true)
    for word in 0..<8 { appendLittleEndian(random(index, 20 + UInt64(word))) }
    return arena.append(text)
  }

  private mutating func uid(_ index: UInt64) -> UUIDBytes {
    text.removeAll(keepingCapacity: true)
    appendLittleEndian(random(index, 7))
    appendLittleEndian(random(index, 8))
    text[6] = text[6] & 0x0F | 0x40
    text[8] = text[8] & 0x3F | 0x80
    return (
      text[0], text[1], text[2], text[3], text[4], text[5], text[6], text[7],
      text[8], text[9], text[10], text[11], text[12], text[13], text[14], text[15]
    )
  }

  /// Draws friends until the person has enough. A small dataset can have too few people, so the number of draws is limited.
  private mutating func appendFriends(_ index: UInt64) {
    let first = friends.count
    let wanted = 1 + Int(random(index, 13) % 5)
    var draws: UInt64 = 0
    while friends.count - first < wanted, draws < 64 {
      let friend = UInt32(random(index, 8192 + draws) % UInt64(count))
      draws += 1
      if UInt64(friend) != index, !friends[first...].contains(friend) { friends.append(friend) }
    }
  }

  private mutating func appendLittleEndian(_ word: UInt64) {
    for byte in 0..<8 { text.append(UInt8(truncatingIfNeeded: word >> (8 * UInt64(byte)))) }
  }

  private func pick(_ words: [[UInt8]], _ number: UInt64) -> [UInt8] { words[Int(number % UInt64(words.count))] }

  /// The only source of randomness: a function of the index and the field number.
  private func random(_ index: UInt64, _ field: UInt64) -> UInt64 {
    splitMix64(splitMix64(index &* 64 &+ field) ^ 20_260_101)
  }
}
