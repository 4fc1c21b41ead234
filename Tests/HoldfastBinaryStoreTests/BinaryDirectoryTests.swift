import Foundation
import Holdfast
import HoldfastBinaryStore
import HoldfastPropertyList
import HoldfastStore
import TestSupport
import Testing

/// Files whose sections are valid separately but not together: duplicates, unknown sections, wrong order, gaps.
@Suite struct BinaryDirectoryTests {
  private let file: BinaryTestFile
  private let image: BinaryImage

  init() throws {
    file = try BinaryTestFile()
    let context = try file.context()
    try Library.fill(context)
    try context.persistentStoreCoordinator.close()
    image = BinaryImage(try file.bytes())
    try #require(try image.bytes == file.bytes())
  }

  /// Checks that a file is refused, with digests and without, and isn't changed.
  private func expectRefusal(
    _ image: BinaryImage, _ codes: Set<StoreError.Code>, _ reason: String?, _ name: String,
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let bytes = image.bytes
    try file.write(bytes)
    for options in [BinaryStoreOptions(), BinaryTestFile.unverified] {
      let refusal = try #require(file.refusal(options: options), "\(name)", sourceLocation: sourceLocation)
      #expect(
        codes.contains(refusal.code) && refusal.path == file.path && refusal.reason.contains(reason ?? refusal.reason),
        "\(name): \(refusal)",
        sourceLocation: sourceLocation)
    }
    #expect(try file.bytes() == bytes, "\(name)", sourceLocation: sourceLocation)
  }

  // MARK: Names

  @Test(arguments: ["entities", "relationships", "constraints"])
  func whatTheInfoNamesTwiceIsDamage(list: String) throws {
    var changed = image, names: [PropertyList] = []
    try changed.changeInfo { info in
      names = info[list]?.array ?? []
      info[list] = .array(names + [names[0]])
    }
    try expectRefusal(changed, [.damaged], "twice", "\(list): one more")
    // Replaces another name, so that their number stays the same. There is only one constraint.
    if names.count > 1 {
      for place in names.indices.dropFirst() {
        changed = image
        try changed.changeInfo { info in
          var others = names
          others[place] = names[0]
          info[list] = .array(others)
        }
        try expectRefusal(changed, [.damaged], "twice", "\(list): \(place)")
      }
    }
    // Values that aren't names aren't reported as duplicates either.
    changed = image
    try changed.changeInfo { $0[list] = .array(names + [.integer(7), .integer(8)]) }
    try expectRefusal(changed, [.damaged], "twice", "\(list): no names")
  }

  /// The model can't have a constraint that names a property twice, so its index is unknown.
  @Test func theIndexOfAConstraintThatNamesAPropertyTwiceIsOfANewerFormat() throws {
    var changed = image
    try changed.changeInfo { $0["constraints"] = .array([.array([.string("Book"), .string("number"), .string("number")])]) }
    try expectRefusal(changed, [.newerFormat], "isn't in the model", "constraint")
  }

  @Test(arguments: ["hashes", "layouts", "nextKeys", "entities", "relationships", "constraints", "metadata"])
  func anInfoWithoutWhatEveryFileSaysIsDamage(key: String) throws {
    for value in [nil, .integer(1), .string(key)] as [PropertyList?] {
      var changed = image
      try changed.changeInfo { $0[key] = value }
      try expectRefusal(changed, [.damaged], nil, "\(key): \(String(describing: value))")
    }
  }

  @Test(arguments: [Int64.min, -1, 0, 1 << 62 + 2, .max]) func aNextKeyThatNoObjectCanHaveIsDamage(key: Int64) throws {
    var changed = image
    try changed.changeInfo { info in
      var keys = info["nextKeys"]?.dictionary ?? [:]
      for name in keys.keys { keys[name] = .integer(key) }
      info["nextKeys"] = .dictionary(keys)
    }
    try expectRefusal(changed, [.damaged], "next key", "\(key)")
  }

  // MARK: Subjects

  @Test(arguments: [3, 4, 5, 6] as [UInt32]) func aSectionOfANumberThatTheInfoHasNotIsOfANewerFormat(kind: UInt32) throws {
    let place = try #require(image.places(of: kind).last)
    for subject in [20, 1 << 31 - 1, 1 << 31, .max - 1, .max] as [UInt32] {
      var changed = image
      changed.sections[place].subject = subject
      try expectRefusal(changed, [.newerFormat], "newer version", "\(kind), \(subject)")
    }
  }

  @Test(arguments: ["entities", "relationships", "constraints"])
  func aSectionOfANameThatTheModelHasNotIsOfANewerFormat(list: String) throws {
    let kind: UInt32 = ["entities": 3, "relationships": 4, "constraints": 6][list] ?? 0
    let place = try #require(image.places(of: kind).last)
    for name in [.string("Lamp"), .array([.string("Lamp"), .string("books")]), .integer(1)] as [PropertyList] {
      var changed = image
      try changed.changeInfo { info in
        var names = info[list]?.array ?? []
        names[Int(image.sections[place].subject)] = name
        info[list] = .array(names)
      }
      try expectRefusal(changed, [.newerFormat], "newer version", "\(list), \(name)")
    }
  }

  /// A number of another kind of relationship: links for one that stores none itself, lists for an unordered one.
  @Test func linksAndListsOfRelationshipsWithoutSuchAreRefused() throws {
    let names = try relationshipNames()
    for (kind, strangers) in [4: ["Shelf books", "Author books"], 5: ["Shelf signs", "Book similar"]] as [UInt32: [String]] {
      for stranger in strangers {
        let number = try #require(names.firstIndex(of: stranger))
        for place in image.places(of: kind) {
          var changed = image
          changed.sections[place].subject = UInt32(number)
          // It is damage if it breaks the order or replaces a required section.
          try expectRefusal(changed, [.newerFormat, .damaged], nil, "\(stranger) as \(kind)")
        }
      }
    }
  }

  private func relationshipNames() throws -> [String] {
    let list = try PropertyList(binary: image.sections[0].bytes)["relationships"]?.array ?? []
    return list.map { ($0.array ?? []).compactMap(\.string).joined(separator: " ") }
  }

  @Test func rowsOfAnAbstractEntityAreOfANewerFormat() throws {
    let abstract = try BinaryTestFile()
    let context = try abstract.context(BinaryStoreProperty.model)
    _ = try context.insert(entityNamed: "D")
    try context.save()
    try context.persistentStoreCoordinator.close()
    var changed = BinaryImage(try abstract.bytes())
    let names = try PropertyList(binary: changed.sections[0].bytes)["entities"]?.array?.compactMap(\.string) ?? []
    let place = try #require(changed.places(of: 3).first)
    changed.sections[place].subject = UInt32(try #require(names.firstIndex(of: "C")))
    try abstract.write(changed.bytes)
    let refusal = try #require(throws: StoreError.self) { try abstract.open(BinaryStoreProperty.model) }
    #expect(refusal.code == .newerFormat && refusal.path == abstract.path, "\(refusal)")
  }

  // MARK: Duplicates and other orders

  @Test func aSectionThatIsListedTwiceIsRefused() throws {
    for place in image.sections.indices {
      // Again behind itself, with a copy of its bytes or sharing them.
      for gap in [0, -image.sections[place].bytes.count] {
        var changed = image
        var copy = image.sections[place]
        copy.gap = gap
        changed.sections.insert(copy, at: place + 1)
        try expectRefusal(changed, [.damaged], nil, "\(place), \(gap)")
      }
      // Again at the end.
      var changed = image
      changed.sections.append(image.sections[place])
      try expectRefusal(changed, [.damaged], nil, "\(place) at the end")
    }
  }

  /// The info and the model exist once, whatever the subject of the second one is.
  @Test(arguments: [1, 2] as [UInt32]) func aSecondInfoOrModelIsOfANewerFormat(kind: UInt32) throws {
    let place = try #require(image.places(of: kind).first)
    var second = image.sections[place]
    second.subject = 1
    var changed = image
    changed.sections.insert(second, at: place + 1)
    try expectRefusal(changed, [.newerFormat], "an unexpected section of store information or of the model", "\(kind)")
  }

  @Test func sectionsOutOfOrderAreDamage() throws {
    for one in image.sections.indices {
      for other in image.sections.indices where one < other {
        var changed = image
        changed.sections.swapAt(one, other)
        try expectRefusal(changed, [.damaged], "sections are out of order", "\(one) and \(other)")
      }
    }
  }

  @Test func sectionsThatOverlapOrLeaveGapsAreDamage() throws {
    for place in image.sections.indices {
      let shared = place > 0 ? min(image.sections[place - 1].bytes.count, image.sections[place].bytes.count) : 0
      for gap in [1, 7, 4096, -1, -shared] where gap != 0 && gap >= -shared {
        var changed = image
        changed.sections[place].gap = gap
        try expectRefusal(changed, [.damaged], "entry of the directory is invalid", "\(place), \(gap)")
      }
    }
    var changed = image
    changed.lastGap = 8
    try expectRefusal(changed, [.damaged], "don't fill the file", "at the end")
  }

  /// Rows with the same key in the sections of an entity and its subentity. Neither section shows the error alone.
  @Test func anObjectInSectionsOfTwoEntitiesIsDamage() throws {
    let rows = image.places(of: 3).map { image.sections[$0] }
    let pair = rows.first { book in rows.contains { $0.subject != book.subject && $0.count == 1 && $0.first == book.last + 1 } }
    let book = try #require(pair)
    let place = try #require(
      image.places(of: 3).first { image.sections[$0].subject != book.subject && image.sections[$0].first == book.last + 1 })
    var changed = image
    (changed.sections[place].first, changed.sections[place].last) = (book.last, book.last)
    // Without the index, which doesn't match the rows either, the rows contradict each other.
    try expectRefusal(changed, [.damaged], nil, "\(place)")
    #expect(file.refusal(options: BinaryTestFile.unverified)?.reason.contains("contradicts itself") == true)
  }

  // MARK: Missing sections

  @Test func aFileWithoutOneOfItsSectionsIsReadWithoutItOrDamage() throws {
    var opened: [UInt32] = []
    for place in image.sections.indices {
      var changed = image
      changed.sections.remove(at: place)
      let kind = image.sections[place].kind
      try file.write(changed.bytes)
      guard let refusal = file.refusal() else {
        opened.append(kind)
        continue
      }
      #expect(refusal.code == .damaged && refusal.path == file.path, "\(kind), \(place): \(refusal)")
      #expect(kind != 2, "A file without its model was refused.")
    }
    // Links may point to missing objects. An index or a list must match the existing rows and links.
    #expect(Set(opened).isSubset(of: [2, 3, 4]) && opened.contains(2), "\(opened)")
  }

  @Test func aFileWithoutSectionsIsDamage() throws {
    var changed = image
    changed.sections = []
    try expectRefusal(changed, [.damaged], nil, "no sections")
    changed.sections = Array(image.sections.dropFirst())
    try expectRefusal(changed, [.damaged], "store information or the model is missing", "no info")
  }

  /// The model is only read on request.
  @Test func aFileWhoseModelIsNoneOpensAndSaysSoWhenItIsAskedForIt() throws {
    let twice = String(decoding: image.sections[1].bytes, as: UTF8.self).replacingOccurrences(of: "\"sold\"", with: "\"pages\"")
    for bytes in [Array("{}".utf8), [0], [UInt8](repeating: 0x5B, count: 10_000), Array(twice.utf8)] {
      var changed = image
      changed.sections[1].bytes = bytes
      try file.write(changed.bytes)
      #expect(file.refusal() == nil)
      let administration = StoreDescription.binary(at: file.path).administration
      let error = try #require(throws: StoreError.self) { _ = try administration.perform(StoredModelRequest()) }
      #expect(error.code == .damaged && error.path == file.path, "\(error)")
    }
  }
}
