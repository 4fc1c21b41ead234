import Foundation
import Holdfast
import HoldfastBinaryStore
import HoldfastCommands
import HoldfastSQLiteStore
import HoldfastStore
import Testing

/// Damage that only a comparison of what a store contains twice finds.
@Suite struct StoreDamageTests {
  /// A store in which Fido has the walks 1 and 2, and Rex has walk 3.
  private func makeStore(_ kind: Fixture.Kind, _ fixture: Fixture) throws -> String {
    let path = fixture.path("zoo")
    let coordinator = try PersistentStoreCoordinator(model: Fixture.model(), store: kind.description(at: path))
    let context = try ManagedObjectContext(coordinator: coordinator)
    let dogs = try ["Fido", "Rex"].map { name in
      let dog = try context.insert(entityNamed: "Dog")
      try dog.setValue(.string(name), forKey: "name")
      return dog
    }
    for number in 0..<3 { try context.insert(entityNamed: "Walk").setValue(dogs[number / 2], forKey: "dog") }
    try context.save()
    try coordinator.close()
    return path
  }

  private func bytes(_ path: String) throws -> [UInt8] { Array(try Data(contentsOf: URL(fileURLWithPath: path))) }

  private func damage(_ path: String) throws -> StoreError {
    let error = try #require(throws: CommandError.self) { try StoreSource(path: path).check() }
    #expect(error.path == path && error.reason.contains("damaged"))
    return try #require(error.cause as? StoreError)
  }

  @Test(arguments: Fixture.Kind.allCases) func anUndamagedStoreIsChecked(kind: Fixture.Kind) throws {
    let fixture = try Fixture(), path = try makeStore(kind, fixture), before = try bytes(path)
    #expect(try StoreSource(path: path).check().objectCount == 5)
    #expect(try bytes(path) == before)
  }

  /// The digests are valid, and reading all objects doesn't need the inverse links.
  @Test func inverseLinksThatContradictTheRowsAreReported() throws {
    let fixture = try Fixture(), path = try makeStore(.binary, fixture)
    var file = BinaryBytes(try bytes(path))
    // See the format: owner 1 with the walks 1 and 2, and owner 2 with walk 3. Walk 2 becomes one of owner 2.
    try file.replaceSection(ofKind: 8, [0, 0, 3, 0b0111_1000, 0b1000_1010], by: [0, 0, 3, 0b1101_1000, 0b1001_1000])
    try Data(file.bytes).write(to: URL(fileURLWithPath: path))
    #expect(try PersistentStoreCoordinator.graphDigest(of: .binary(at: path, isReadOnly: true)).objectCount == 5)
    let error = try damage(path)
    #expect(error.code == .damaged && error.reason.contains("inverse links of walks of Dog"), "\(error)")
    #expect(try bytes(path) == file.bytes)
  }

  /// A letter of a name is another one in the unique index. SQLite reads all rows without it.
  @Test func anIndexThatContradictsItsTableIsReported() throws {
    let fixture = try Fixture(), path = try makeStore(.sqlite, fixture)
    var file = Data(try bytes(path))
    let name = Data("Fido".utf8)
    let (first, last) = (try #require(file.range(of: name)), try #require(file.range(of: name, options: .backwards)))
    try #require(first != last)
    file.replaceSubrange(last, with: Data("Fidp".utf8))
    try file.write(to: URL(fileURLWithPath: path))
    #expect(try PersistentStoreCoordinator.graphDigest(of: .sqlite(at: path, isReadOnly: true)).objectCount == 5)
    let error = try damage(path)
    #expect(error.code == .damaged && error.reason.contains("missing from index Z_Dog_UNIQUE_name"), "\(error)")
  }
}

/// The file of a binary store, as its format is documented. A changed section gets a valid digest.
private struct BinaryBytes {
  private(set) var bytes: [UInt8]

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// Replaces the only section of a kind by bytes of the same length.
  mutating func replaceSection(ofKind kind: UInt8, _ old: [UInt8], by new: [UInt8]) throws {
    let footer = bytes.count - 64, directory = number(at: footer)
    let entries = stride(from: directory, to: footer, by: 56).filter { bytes[$0] == kind }
    let entry = try #require(entries.first), offset = number(at: entry + 8)
    let section = offset..<offset + number(at: entry + 16)
    let isExpected = entries.count == 1 && Array(bytes[section]) == old && new.count == old.count
    try #require(isExpected, "\(bytes[section])")
    bytes.replaceSubrange(section, with: new)
    setDigest(of: [section], at: entry + 24)
    setDigest(of: [directory..<footer], at: footer + 40)
    setDigest(of: [0..<32, footer..<footer + 48], at: footer + 48)
  }

  private func number(at place: Int) -> Int { (0..<8).reduce(0) { $0 | Int(bytes[place + $1]) << (8 * $1) } }

  private mutating func setDigest(of ranges: [Range<Int>], at place: Int) {
    var digest = ContentDigest()
    for range in ranges { digest.update(bytes[range]) }
    for byte in 0..<8 { bytes[place + byte] = UInt8(truncatingIfNeeded: digest.value >> UInt64(8 * byte)) }
  }
}
