import Foundation
import Holdfast
import HoldfastAtomicStore
import HoldfastBinaryStore
import HoldfastFiles
import HoldfastJSONStore
import HoldfastMemoryStore
import HoldfastStore
import HoldfastXMLStore
import TestSupport
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Stores are recovered from damaged JSON, XML and binary files.
@Suite struct WholeFileRepairTests {
  enum Kind: String, CaseIterable, Sendable {
    case json, xml, binary

    func store(_ path: String, externalData: ExternalDataOptions = ExternalDataOptions()) -> StoreDescription {
      var options = WholeFileOptions()
      options.externalData = externalData
      switch self {
      case .json: return .json(at: path, options: JSONStoreOptions(wholeFile: options))
      case .xml: return .xml(at: path, options: XMLStoreOptions(wholeFile: options))
      case .binary: return .binary(at: path, options: BinaryStoreOptions(wholeFile: options))
      }
    }
  }

  private struct Original {
    var bytes: [UInt8]
    var contents: [String: ArchiveContent]
  }

  /// Files in which a page has less than a hundredth of the objects.
  private static let originals = Result { try made(items: 3600) }
  /// Files for damage of one place, in which the number of objects doesn't matter.
  private static let smallOriginals = Result { try made(items: 600) }

  private static func made(items count: Int) throws -> [Kind: Original] {
    let folder = TemporaryFolder()
    return Dictionary(
      uniqueKeysWithValues: try Kind.allCases.map { kind in
        let path = folder.file("archive.\(kind)")
        try Archive.makeFile(kind.store(path), items: count)
        return (kind, Original(bytes: try TemporaryFolder.read(path), contents: try Archive.contents(kind.store(path))))
      })
  }

  private let folder = TemporaryFolder()

  /// Repairs a file, and checks that the file is unchanged and that the new store can be used. Returns what is lost.
  ///
  /// - Parameter isSmall: Whether it was one of the small files.
  private func repair(
    _ kind: Kind, _ bytes: [UInt8], isSmall: Bool = false, model: ManagedObjectModel? = nil, _ what: String
  ) throws -> (report: RepairReport, lost: Set<String>) {
    let originals = isSmall ? Self.smallOriginals : Self.originals, original = try #require(try originals.get()[kind])
    let damaged = folder.file("damaged.\(kind)"), repaired = folder.file("repaired.\(kind)")
    try TemporaryFolder.write(bytes, to: damaged)
    let report = try PersistentStoreCoordinator.repairPersistentStore(kind.store(damaged), to: kind.store(repaired), model: model)
    defer { for name in folder.names where name.hasPrefix("repaired") { unlink(folder.file(name)) } }
    #expect(try TestBytes.areEqual(TemporaryFolder.read(damaged), bytes), "\(what)")
    let context = try Archive.context(kind.store(repaired)), found = try ArchiveContent.all(in: context)
    let (lost, hasOthers, difference) = ArchiveContent.compare(found, with: original.contents, .links)
    #expect(!hasOthers, "\(what): objects that never existed")
    if let difference { Issue.record("\(what): \(difference)") }
    #expect(report.objectCount == found.count, "\(what)")
    let tag = try context.insert(entityNamed: "Tag")
    try tag.setValue(.string("new"), forKey: "name")
    try context.save()
    #expect(original.contents["Tag/p\(tag.objectID.key)"] == nil, "\(what)")
    try context.persistentStoreCoordinator.close()
    return (report, lost)
  }

  @Test(arguments: Kind.allCases) func RE6_anIntactFileIsCopied(_ kind: Kind) throws {
    let original = try #require(try Self.originals.get()[kind]), (report, lost) = try repair(kind, original.bytes, "intact")
    #expect(lost.isEmpty && report.isComplete, "\(report)")
  }

  /// 4 KiB of a file are zeros or something else.
  @Test(arguments: Kind.allCases) func RE6_aDamagedPageLosesOnlyItsOwnObjects(_ kind: Kind) throws {
    let original = try #require(try Self.originals.get()[kind])
    var random = SeededGenerator()
    let pages = original.bytes.count / 4096
    // One of the others, or all in the full tier.
    let step = TestTier.step(pages - 2), first = 2 + Int.random(in: 0..<step, using: &random)
    for page in [0, 1, pages - 1, pages] + stride(from: first, to: pages, by: step) {
      var bytes = original.bytes
      let range = page * 4096..<min(page * 4096 + 4096, bytes.count), isZero = Bool.random(using: &random)
      for place in range { bytes[place] = isZero ? 0 : .random(in: 0...255, using: &random) }
      let what = "\(kind), page \(page + 1) of \(pages), HOLDFAST_SEED=\(random.seed)"
      let (report, lost) = try repair(kind, bytes, model: Archive.model, what)
      // A section of a binary file has 64 KiB of rows, which are lost together. A page may be in several of them. The directory is in the last
      // pages.
      let most = kind != .binary ? 1 : page >= pages - 1 ? 100 : 8 * min(report.damagedPlaceCount, 3)
      #expect(
        lost.count * 100 <= most * original.contents.count, "\(what): \(lost.count) of \(original.contents.count) are lost; \(report)")
      #expect(!report.isComplete, "\(what)")
      // In the middle of the file, objects of different sizes are lost.
      if kind != .binary, (2..<pages - 1).contains(page), lost.count > 1 {
        #expect(
          report.estimatedLostCount >= lost.count / 8 && report.estimatedLostCount <= 8 * lost.count, "\(what): \(lost.count); \(report)")
      }
    }
  }

  /// The first or the last objects of the file are among those that are lost, so no object before or behind them shows where they were.
  @Test(arguments: [Kind.json, .xml], [false, true]) func RE6_lossesAtTheEndsOfTheObjectsAreEstimated(_ kind: Kind, _ isLast: Bool) throws {
    let original = try #require(try Self.originals.get()[kind])
    let places = TestBytes.places(of: Array((kind == .json ? "\n{\"$key\":" : "\n<object type=").utf8), in: original.bytes)
    let (first, last) = (try #require(places.first), try #require(places.last))
    var bytes = original.bytes
    for place in isLast ? last - 20_000..<last + 40 : first + 30..<first + 20_000 { bytes[place] = 0 }
    let (report, lost) = try repair(kind, bytes, model: Archive.model, "\(kind)")
    #expect(lost.count > 10 && report.estimatedLostCount >= lost.count / 8 && report.estimatedLostCount <= 8 * lost.count, "\(report)")
  }

  @Test(arguments: [Kind.json, .xml]) func RE6_aTruncatedFileIsRecoveredUpToItsEnd(_ kind: Kind) throws {
    let original = try #require(try Self.originals.get()[kind])
    for share in [1, 5, 9] {
      let (report, lost) = try repair(kind, Array(original.bytes[..<(original.bytes.count * share / 10)]), model: Archive.model, "\(share)")
      #expect(lost.count < original.contents.count && !lost.isEmpty && !report.isComplete, "\(share): \(lost.count) lost; \(report)")
    }
  }

  /// No object is damaged, and nothing else is beside the objects. The bug: the report said that nothing was damaged.
  @Test(arguments: [Kind.json, .xml]) func RE6_aFileThatEndsBehindAnObjectIsNotComplete(_ kind: Kind) throws {
    let bytes = try #require(try Self.smallOriginals.get()[kind]).bytes
    let places = TestBytes.places(of: Array((kind == .json ? ",\n{\"$key\":" : "\n<object type=").utf8), in: bytes)
    let place = try #require(places.isEmpty ? nil : places[places.count / 2])
    for end in place...place + 2 {
      let (report, lost) = try repair(kind, Array(bytes[..<end]), isSmall: true, model: Archive.model, "\(end) of \(bytes.count) bytes")
      #expect(!lost.isEmpty && !report.isComplete, "\(lost.count) lost; \(report)")
      #expect(report.notes.contains { $0.contains("end of the file") }, "\(report)")
    }
    // Only a part of the digest is missing.
    let (report, lost) = try repair(kind, Array(bytes.dropLast(8)), isSmall: true, model: Archive.model, "without the digest")
    #expect(lost.isEmpty && report.damagedPlaceCount == 1 && !report.isComplete, "\(report)")
  }

  /// The bug: if another place was damaged, the objects in comments were recovered as well.
  @Test func RE6_anObjectInACommentIsNotRecovered() throws {
    let bytes = try #require(try Self.smallOriginals.get()[.xml]).bytes
    let places = TestBytes.places(of: Array("\n<object type=".utf8), in: bytes)
    try #require(places.count > 20)
    var text = Array(bytes[..<places[10]]) + Array("\n<!--".utf8) + Array(bytes[places[10]..<places[11]])
    text += Array("-->".utf8) + Array(bytes[places[11]...])
    // The beginning of another object.
    text[places[5] + 3] = 0
    let (report, lost) = try repair(.xml, text, isSmall: true, model: Archive.model, "a comment")
    #expect(lost.count == 2 && !report.isComplete, "\(lost.count) lost; \(report)")
  }

  /// Replaces the first occurrence of a text in a small file, and repairs it.
  private func repair(_ kind: Kind, replacing text: String, by new: String, model: ManagedObjectModel? = nil) throws -> (
    report: RepairReport, lost: Set<String>
  ) {
    var bytes = try #require(try Self.smallOriginals.get()[kind]).bytes
    let place = try #require(TestBytes.places(of: Array(text.utf8), in: bytes).first, "\(text)")
    bytes.replaceSubrange(place..<place + text.utf8.count, with: new.utf8)
    return try repair(kind, bytes, isSmall: true, model: model, "\(text) is \(new)")
  }

  /// A changed letter of a name isn't a newer format or another model.
  @Test func RE6_aChangedNameIsDamage() throws {
    for (text, new) in [
      ("\"Map\":[", "\"Mpp\":["), ("\"Book\":[", "Book\":["), ("\"hashes\"", "\"hbshes\""), ("\"version\":2", "\"version\":7"),
    ] {
      let (report, lost) = try repair(.json, replacing: text, by: new)
      #expect(lost.isEmpty && !report.isComplete, "\(text): \(lost.count) lost; \(report)")
    }
    for (kind, text, new) in [
      (.json, "\"title\":\"item 100 ", "\"tittl\":\"item 100 "), (.xml, "type=\"BOOK\"", "type=\"BOOL\""),
      (.xml, "name=\"title\"", "name=\"titel\""),
    ] as [(Kind, String, String)] {
      let (report, lost) = try repair(kind, replacing: text, by: new)
      #expect(lost.count == 1 && report.unreadableCount == 1, "\(text): \(lost.count) lost; \(report)")
    }
    let (report, lost) = try repair(.xml, replacing: "<version>1", by: "<version>9", model: Archive.model)
    #expect(lost.isEmpty && !report.isComplete, "\(report)")
  }

  /// The line that begins an entity is lost, and joins the objects before and behind it.
  @Test(arguments: ["Page", "Shelf", "Tag"]) func RE6_zerosInsteadOfABeginningLoseOnlyTheirObjects(_ entity: String) throws {
    var bytes = try #require(try Self.smallOriginals.get()[.json]).bytes
    let begin = Array("\n\"\(entity)\":[".utf8), place = try #require(TestBytes.places(of: begin, in: bytes).first)
    for place in place - 20..<place + begin.count + 20 { bytes[place] = 0 }
    let (report, lost) = try repair(.json, bytes, isSmall: true, model: Archive.model, "zeros before \(entity)")
    #expect(lost.count == 2 && !report.isComplete, "\(lost.count) lost; \(report)")
  }

  /// Damage to the model in a file must not be taken for another model.
  @Test func RE6_aChangedModelIsDamage() throws {
    let original = try #require(try Self.smallOriginals.get()[.json])
    for header in ["\"version\":2", "\"hashes\"", "\"generation\""] {
      var text = String(decoding: original.bytes, as: UTF8.self)
      for name in [header, "\"heading\""] {
        let place = try #require(text.range(of: name))
        text.replaceSubrange(place, with: name.replacingOccurrences(of: "e", with: "3"))
      }
      let error = #expect(throws: StoreError.self) { try repair(.json, Array(text.utf8), isSmall: true, header) }
      #expect(error?.code == .damaged && !folder.exists("repaired.json"))
      let (report, lost) = try repair(.json, Array(text.utf8), isSmall: true, model: Archive.model, header)
      #expect(lost.isEmpty && !report.isComplete, "\(report)")
    }
  }

  /// Another program has changed the white space.
  @Test func RE6_aReformattedFileIsRead() throws {
    let original = try #require(try Self.smallOriginals.get()[.json])
    let minified = original.bytes.filter { $0 != UInt8(ascii: "\n") }
    let lines = original.bytes.flatMap { $0 == UInt8(ascii: "\n") ? [UInt8(ascii: "\r"), $0] : [$0] }
    for bytes in [minified, lines] {
      let (report, lost) = try repair(.json, bytes, isSmall: true, "white space")
      #expect(lost.isEmpty && report.notes.count == 1 && report.unreadableCount == 0, "\(report)")
    }
    var damaged = lines
    damaged[lines.count / 2] = 0
    let (report, lost) = try repair(.json, damaged, isSmall: true, "white space")
    #expect(lost.count == 1 && report.unreadableCount == 1, "\(report)")
  }

  /// The directory of a binary file is found without its footer.
  @Test func RE6_aBinaryFileWithoutItsEndIsRecovered() throws {
    let original = try #require(try Self.smallOriginals.get()[.binary])
    for missing in [1, 8, 63, 64, 65] {
      let (report, lost) = try repair(
        .binary, Array(original.bytes.dropLast(missing)), isSmall: true, model: Archive.model, "\(missing) bytes are missing")
      #expect(missing > 64 || lost.isEmpty, "\(missing): \(lost.count) lost; \(report)")
    }
    var changed = original.bytes
    changed[changed.count - 1] ^= 1
    let first = try repair(.binary, changed, isSmall: true, "the last byte")
    let second = try repair(.binary, original.bytes + [1, 2, 3], isSmall: true, "more bytes")
    #expect(first.lost.isEmpty && second.lost.isEmpty && !first.report.isComplete && !second.report.isComplete)
    // The entry of the store information, with which the directory begins.
    let info = Array([1, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0, 0, 0, 0, 0, 0] as [UInt8])
    let place = try #require(TestBytes.places(of: info, in: changed).last)
    changed[place] = 9
    let third = try repair(.binary, changed, isSmall: true, model: Archive.model, "the first entry")
    #expect(third.lost.isEmpty && !third.report.isComplete, "\(third.report)")
  }

  /// At least one of two objects with the same key has a wrong one.
  @Test(arguments: [Kind.json, .xml]) func RE6_objectsWithOneKeyAreNotRecovered(_ kind: Kind) throws {
    let contents = try #require(try Self.smallOriginals.get()[kind]).contents
    let key = try #require((12..<99).first { contents["Book/p\($0)"] != nil && contents["Book/p\($0 + 1)"] != nil })
    let (text, new) =
      kind == .json ? ("{\"$key\":\(key),", "{\"$key\":\(key + 1),") : (" id=\"z\(key)\"", " id=\"z\(key + 1)\"")
    let (report, lost) = try repair(kind, replacing: text, by: new)
    #expect(lost.count == 2 && report.unreadableCount == 2, "\(lost); \(report)")
  }

  /// A digest covers the entire file, so a changed value isn't found, but it is known that one may be wrong.
  @Test(arguments: [Kind.json, .xml]) func aChangedValueIsReported(_ kind: Kind) throws {
    var bytes = try #require(try Self.originals.get()[kind]).bytes
    let text = Array("item 1000 ".utf8)
    let place = try #require(TestBytes.places(of: text, in: bytes).first)
    bytes[place + 5] = UInt8(ascii: "2")
    try TemporaryFolder.write(bytes, to: folder.file("damaged"))
    let report = try PersistentStoreCoordinator.repairPersistentStore(
      kind.store(folder.file("damaged")), to: kind.store(folder.file("repaired")))
    #expect(report.damagedPlaceCount == 0 && report.notes.count == 1 && !report.isComplete, "\(report)")
  }

  @Test(arguments: Kind.allCases) func RE6_externalFilesAreCopiedAndLostOnesCounted(_ kind: Kind) throws {
    let path = folder.file("archive.\(kind)"), other = TemporaryFolder(), copy = other.file("copy.\(kind)")
    func store(_ path: String) -> StoreDescription { kind.store(path, externalData: Archive.external) }
    try Archive.makeFile(store(path), items: 400)
    let contents = try Archive.contents(store(path))
    let files = folder.file(".archive.\(kind)_SUPPORT/_EXTERNAL_DATA"), names = TemporaryFolder.names(in: files)
    try #require(names.count >= 3, "\(folder.namesOfAllLevels)")
    let report = try PersistentStoreCoordinator.repairPersistentStore(store(path), to: store(copy))
    #expect(report.isComplete && TemporaryFolder.names(in: other.file(".copy.\(kind)_SUPPORT/_EXTERNAL_DATA")) == names)
    #expect(try Archive.contents(store(copy)) == contents)
    unlink(files + "/" + names[0])
    try TemporaryFolder.write([1, 2, 3], to: files + "/" + names[1])
    let second = other.file("second.\(kind)"), lossy = try PersistentStoreCoordinator.repairPersistentStore(store(path), to: store(second))
    #expect(lossy.lostValueCounts == ["Map.image": 2] && !lossy.isComplete && lossy.damagedPlaceCount == 0, "\(lossy)")
    let found = try Archive.contents(store(second))
    #expect(found.count == contents.count && found.count { contents[$0.key] != $0.value } == 2)
  }

  @Test(arguments: Kind.allCases) func whatCantBeRepairedIsRefused(_ kind: Kind) throws {
    let path = folder.file("archive.\(kind)"), repaired = folder.file("repaired.\(kind)")
    func expect(_ code: StoreError.Code, model: ManagedObjectModel? = nil) {
      let error = #expect(throws: StoreError.self) {
        try PersistentStoreCoordinator.repairPersistentStore(kind.store(path), to: kind.store(repaired), model: model)
      }
      #expect(error?.code == code, "\(error.map { "\($0)" } ?? "")")
      #expect(code == .invalidPath || !folder.exists("repaired.\(kind)"))
    }
    expect(.notFound)
    try Harbour.makeFile(kind.store(path), saves: 2)
    expect(.incompatibleModel, model: Archive.model)
    try TemporaryFolder.write([1], to: repaired)
    expect(.invalidPath)
    unlink(repaired)
    try TemporaryFolder.write(Array(repeating: 65, count: 100_000), to: path)
    expect(kind == .binary ? .notAStore : .damaged)
  }

  /// Hostile or heavily damaged files end in an error or a sound store.
  @Test(arguments: Kind.allCases) func RE6_manyDamagedBytesNeverTrap(_ kind: Kind) throws {
    let path = folder.file("archive.\(kind)"), repaired = folder.file("repaired.\(kind)")
    try Archive.makeFile(kind.store(path), items: 60)
    let bytes = try TemporaryFolder.read(path)
    var random = SeededGenerator(), recovered = 0
    for round in 0..<TestTier.count(40, full: 2000) {
      var damaged = bytes
      for _ in 0..<Int.random(in: 1...200, using: &random) {
        damaged[Int.random(in: 0..<damaged.count, using: &random)] = .random(in: 0...255, using: &random)
      }
      if round % 4 == 0 { damaged.removeSubrange(Int.random(in: 0..<damaged.count, using: &random)...) }
      if round % 5 == 0 { damaged += damaged.prefix(Int.random(in: 0...damaged.count, using: &random)) }
      try TemporaryFolder.write(damaged, to: path)
      let model = round % 3 == 0 ? nil : Archive.model
      do {
        try PersistentStoreCoordinator.repairPersistentStore(kind.store(path), to: kind.store(repaired), model: model)
      } catch is StoreError { continue }
      recovered += 1
      do { _ = try Archive.contents(kind.store(repaired)) } catch { Issue.record("HOLDFAST_SEED=\(random.seed), round \(round): \(error)") }
      unlink(repaired)
    }
    #expect(recovered > 0)
  }
}
