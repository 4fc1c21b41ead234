import Foundation
import Holdfast
import HoldfastJSONStore
import HoldfastSQLiteStore
import HoldfastStore
import HoldfastStoreConformance
import TestSupport
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Stores are recovered from damaged SQLite files.
@Suite struct RepairTests {
  private let folder = TemporaryFolder()
  private var damaged: String { folder.file("damaged.sqlite") }
  private var repaired: String { folder.file("repaired.sqlite") }

  fileprivate static let pageSize = 4096

  /// A file, and the contents of its store.
  private struct Original {
    var bytes: [UInt8]
    var contents: [String: ArchiveContent]
    var pageCount: Int { bytes.count / RepairTests.pageSize }

    /// What a damaged page can contain besides objects, by the entry that names its parent.
    func loss(ofPage page: Int) -> ArchiveContent.Loss {
      // The second page has the entries of the following ones, each of five bytes.
      guard page >= 2 else { return .none }
      return [3, 4].contains(bytes[RepairTests.pageSize + 5 * (page - 2)]) ? .values : .links
    }
  }

  /// A file in which a page has less than a hundredth of the objects.
  private static let original = Result { try made(items: 3600) }
  /// A file for damage of one place, in which the number of objects doesn't matter. Its tables have pages below their roots.
  private static let smallOriginal = Result { try made(items: 1200) }

  /// Without external files, so that a copy is one file.
  private static func made(items count: Int) throws -> Original {
    let folder = TemporaryFolder(), path = folder.file("archive.sqlite")
    try Archive.makeFile(.sqlite(at: path), items: count)
    return Original(bytes: try TemporaryFolder.read(path), contents: try Archive.contents(.sqlite(at: path)))
  }

  /// Repairs the damaged file, and checks that it is unchanged and that the new store can be used. Returns what is lost.
  ///
  /// - Parameters:
  ///   - isSmall: Whether it was the small file.
  ///   - loss: What may differ in objects that aren't lost.
  private func repair(
    _ bytes: [UInt8], isSmall: Bool = false, model: ManagedObjectModel? = nil, _ loss: ArchiveContent.Loss = .none, _ what: String
  ) throws -> (report: RepairReport, lost: Set<String>) {
    let original = try isSmall ? Self.smallOriginal.get() : Self.original.get()
    try TemporaryFolder.write(bytes, to: damaged)
    let before = try folder.snapshot()
    let report = try PersistentStoreCoordinator.repairPersistentStore(.sqlite(at: damaged), to: .sqlite(at: repaired), model: model)
    defer { for name in folder.names where name.hasPrefix("repaired") { unlink(folder.file(name)) } }
    #expect(try BareDatabase(repaired).rows("PRAGMA integrity_check") == ["ok"], "\(what)")
    #expect(folder.openDescriptors == 0, "\(what)")
    let context = try Archive.context(.sqlite(at: repaired))
    let found = try ArchiveContent.all(in: context), loss = report.suspectCount > 0 ? .suspect : loss
    let (lost, hasOthers, difference) = ArchiveContent.compare(found, with: original.contents, loss)
    #expect(!hasOthers, "\(what): objects that never existed")
    if let difference { Issue.record("\(what): \(difference)") }
    #expect(report.objectCount == found.count, "\(what)")
    // New objects get unused keys.
    try context.insert(entityNamed: "Tag").setValue(.string("new"), forKey: "name")
    try context.save()
    try context.persistentStoreCoordinator.close()
    var after = try folder.snapshot()
    for name in after.keys where name.hasPrefix("repaired") { after[name] = nil }
    #expect(TestBytes.areEqual(after, before), "\(what): the damaged file was changed")
    return (report, lost)
  }

  enum Harm: CaseIterable {
    case zeros, ones, random, secondHalf, otherPage, lostWrite

    var number: Int { Harm.allCases.firstIndex(of: self) ?? 0 }

    func apply(to bytes: inout [UInt8], page: Int, _ random: inout SeededGenerator) {
      let pageSize = RepairTests.pageSize
      let start = page * pageSize, range = start..<start + pageSize
      switch self {
      case .zeros: bytes.replaceSubrange(range, with: [UInt8](repeating: 0, count: pageSize))
      case .ones: bytes.replaceSubrange(range, with: [UInt8](repeating: 0xFF, count: pageSize))
      case .random: for place in range { bytes[place] = .random(in: 0...255, using: &random) }
      case .secondHalf: for place in range.suffix(pageSize / 2) { bytes[place] = .random(in: 0...255, using: &random) }
      case .otherPage, .lostWrite:
        let other = Int.random(in: 0..<bytes.count / pageSize, using: &random) * pageSize
        let source = Array(bytes[other..<other + pageSize])
        // A disk that writes only some sectors of a page.
        bytes.replaceSubrange(self == .otherPage ? range : start..<start + 512, with: source.prefix(self == .otherPage ? pageSize : 512))
      }
    }
  }

  /// Which pages each harm gets in a share of the tests.
  private static let turn = Int.random(in: 0..<TestTier.step(6))

  @Test(arguments: Harm.allCases) func RE6_aDamagedPageLosesOnlyItsOwnObjects(_ harm: Harm) throws {
    var random = SeededGenerator()
    let original = try Self.original.get()
    // The pages with the header, the parents of pages and the system tables, which a share of the tests harms in one way each, and others.
    let first = (0..<8).filter { ($0 + harm.number) % TestTier.step(6) == Self.turn }
    let others = stride(from: 8 + Int.random(in: 0..<TestTier.step(600), using: &random), to: original.pageCount, by: TestTier.step(600))
    for page in first + others {
      var bytes = original.bytes
      harm.apply(to: &bytes, page: page, &random)
      if TestBytes.areEqual(bytes, original.bytes) { continue }
      let what = "\(harm), page \(page + 1), HOLDFAST_SEED=\(random.seed)"
      let (report, lost) = try repair(bytes, model: Archive.model, original.loss(ofPage: page), what)
      #expect(
        lost.count * 100 <= original.contents.count, "\(what): \(lost.count) of \(original.contents.count) objects are lost; \(report)")
      #expect(lost.isEmpty || !report.isComplete, "\(what)")
    }
  }

  @Test func RE6_anIntactStoreIsCopied() throws {
    let original = try Self.original.get()
    let (report, lost) = try repair(original.bytes, .none, "intact")
    #expect(lost.isEmpty && report.isComplete && report.estimatedLostCount == 0, "\(report)")
  }

  /// Hostile or heavily damaged files end in an error or a sound store.
  @Test func RE6_manyDamagedBytesNeverTrap() throws {
    try Archive.makeFile(.sqlite(at: damaged), items: 200)
    let bytes = try TemporaryFolder.read(damaged)
    var random = SeededGenerator(), recovered = 0
    for round in 0..<TestTier.count(60, full: 5000) {
      var harmed = bytes
      for _ in 0..<Int.random(in: 1...300, using: &random) {
        // Mostly in the first bytes of pages, which have the structure.
        let page = Int.random(in: 0..<harmed.count / Self.pageSize, using: &random) * Self.pageSize
        let place = page + Int.random(in: 0..<(Bool.random(using: &random) ? 64 : Self.pageSize), using: &random)
        harmed[place] = .random(in: 0...255, using: &random)
      }
      if round % 4 == 0 { harmed.removeSubrange(Int.random(in: 0..<harmed.count, using: &random)...) }
      try TemporaryFolder.write(harmed, to: damaged)
      let model = round % 3 == 0 ? nil : Archive.model, what = "HOLDFAST_SEED=\(random.seed), round \(round)"
      let report: RepairReport
      do {
        report = try PersistentStoreCoordinator.repairPersistentStore(.sqlite(at: damaged), to: .sqlite(at: repaired), model: model)
      } catch let error as StoreError {
        #expect([.damaged, .notAStore, .incompatibleModel, .newerFormat].contains(error.code), "\(what): \(error)")
        continue
      }
      // The metadata and definitions may be lost together. Then it isn't known which program laid out the tables.
      let hasTables = !report.notes.contains { $0.contains("doesn't have the model's tables") }
      recovered += 1
      #expect(try BareDatabase(repaired).rows("PRAGMA integrity_check") == ["ok"], "\(what)")
      if model != nil && hasTables {
        do { _ = try Archive.contents(.sqlite(at: repaired)) } catch { Issue.record("\(what): \(error)") }
      }
      unlink(repaired)
    }
    #expect(recovered > 0)
  }

  // MARK: The log and the journal

  /// The last saves are only in the log, whose pages are whole even where the database is damaged.
  @Test(.ownThreads, arguments: [false, true]) func RE6_theLogIsApplied(harmsHeader: Bool) async throws {
    let path = folder.file("harbour.sqlite")
    try Harbour.makeFile(path, saves: 9)
    await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
      let context = try Harbour.context(.sqlite(at: path))
      for _ in 0..<3 { try Voyage.saveNext(context) }
      kill(getpid(), SIGKILL)
    }
    if harmsHeader {
      var bytes = try TemporaryFolder.read(path)
      for place in 0..<Self.pageSize { bytes[place] = 0 }
      try TemporaryFolder.write(bytes, to: path)
    }
    let report = try PersistentStoreCoordinator.repairPersistentStore(.sqlite(at: path), to: .sqlite(at: repaired), model: Harbour.model)
    let context = try Harbour.context(.sqlite(at: repaired)), found = try Voyage.check(context)
    // The first page is in the log if a save changed it. Otherwise the tables are found without their definitions.
    #expect(found.fault == nil && found.saves == 12, "\(found); \(report)")
    try context.persistentStoreCoordinator.close()
  }

  @Test(.ownThreads) func RE6_aJournalIsRolledBack() async throws {
    let path = folder.file("harbour.sqlite")
    try Harbour.makeFile(path, options: SQLiteStoreOptions(journalMode: .delete), saves: 9)
    let before = try TemporaryFolder.read(path)
    await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
      let database = try BareDatabase(path)
      // A small cache makes SQLite write pages before the commit.
      try database.run("PRAGMA cache_size=1; BEGIN; UPDATE ZSHIP SET ZNAME = 'changed'; CREATE TABLE ZNEW (a); DELETE FROM ZBERTH")
      try database.run("INSERT INTO ZNEW SELECT randomblob(5000) FROM ZSHIP")
      kill(getpid(), SIGKILL)
    }
    let after = try TemporaryFolder.read(path)
    try #require(folder.exists("harbour.sqlite-journal") && after != before)
    let left = try folder.snapshot()
    let report = try PersistentStoreCoordinator.repairPersistentStore(.sqlite(at: path), to: .sqlite(at: repaired))
    #expect(report.isComplete, "\(report)")
    let context = try Harbour.context(.sqlite(at: repaired)), found = try Voyage.check(context)
    #expect(found.fault == nil && found.saves == 9, "\(found)")
    try context.persistentStoreCoordinator.close()
    #expect(try folder.snapshot().filter { !$0.key.hasPrefix("repaired") } == left)
  }

  // MARK: Deleted rows

  /// The pages that are leaves of tables, by what the entries of parents say of them.
  private func leaves(_ original: Original, entry type: UInt8) -> [Int] {
    (2..<original.pageCount).filter { page in
      original.bytes[page * Self.pageSize] == 13 && original.bytes[Self.pageSize + 5 * (page - 2)] == type
    }
  }

  /// A write to the wrong place puts a page that isn't used any more where a table's root was.
  @Test func RE6_aRootThatIsAnOldLeafRestoresNoDeletedRow() throws {
    let original = try Self.original.get(), free = leaves(original, entry: 2)
    try TemporaryFolder.write(original.bytes, to: damaged)
    let database = try BareDatabase(damaged)
    let root = try #require(try database.rows("SELECT rootpage FROM sqlite_master WHERE name = 'ZITEM'").first.flatMap { Int($0) }) - 1
    database.close()
    try #require(free.count > 3)
    for page in free.prefix(TestTier.count(2, full: 1000)) {
      var bytes = original.bytes
      bytes.replaceSubrange(
        root * Self.pageSize..<(root + 1) * Self.pageSize, with: bytes[page * Self.pageSize..<(page + 1) * Self.pageSize])
      let (report, lost) = try repair(bytes, .none, "root \(root + 1) is page \(page + 1)")
      #expect(lost.isEmpty && report.damagedPlaceCount == 1, "\(lost.count) lost; \(report)")
    }
  }

  /// The first sectors of a leaf have offsets that lead into a space where rows were deleted.
  @Test func RE6_offsetsOfAnotherPageRestoreNoDeletedRow() throws {
    let original = try Self.original.get(), size = Self.pageSize
    // The page ends with a free block, so its first row was deleted. A block begins with the place of the next one and its own size.
    let harmed = leaves(original, entry: 5).filter { page in
      let bytes = Array(original.bytes[page * size..<(page + 1) * size])
      func number(_ place: Int) -> Int { Int(bytes[place]) << 8 | Int(bytes[place + 1]) }
      var block = number(1), last = 0
      while block > 0 { (last, block) = (block, number(block)) }
      return last > 0 && last + number(last + 2) == size && size - last >= 200
    }
    try #require(harmed.count > 5)
    for page in harmed.prefix(TestTier.count(2, full: 100)) {
      var bytes = original.bytes
      // The contents begin at the 600th byte.
      var header: [UInt8] = [13, 0, 0, 0, 240, 2, 88, 60]
      for offset in size - 243..<size - 3 { header += [UInt8(offset >> 8), UInt8(offset & 255)] }
      bytes.replaceSubrange(page * size..<page * size + header.count, with: header)
      let (report, lost) = try repair(bytes, .links, "page \(page + 1)")
      #expect(lost.count < 60 && report.damagedPlaceCount == 1, "page \(page + 1): \(lost.count) lost; \(report)")
    }
  }

  // MARK: Other files

  /// Without entries of parents, leaves below a damaged page are found by their contents.
  @Test func RE6_aDatabaseWithoutAutoVacuumIsRecovered() throws {
    let original = try Self.original.get(), path = folder.file("plain.sqlite")
    try TemporaryFolder.write(original.bytes, to: path)
    let database = try BareDatabase(path)
    try database.run("PRAGMA journal_mode=delete; PRAGMA auto_vacuum=0; VACUUM")
    let root = try #require(Int(try database.rows("SELECT rootpage FROM sqlite_master WHERE name = 'ZITEM'")[0]))
    #expect(try database.rows("PRAGMA auto_vacuum") == ["0"])
    database.close()
    var bytes = try TemporaryFolder.read(path)
    for place in (root - 1) * Self.pageSize..<root * Self.pageSize { bytes[place] = 0 }
    let (report, lost) = try repair(bytes, .none, "root \(root)")
    #expect(lost.isEmpty && report.damagedPlaceCount == 1 && report.notes.count == 1, "\(report)")
  }

  /// The definitions of all tables, and the file's header, are lost with the first page.
  @Test func RE6_aTruncatedFileIsRecoveredUpToItsEnd() throws {
    let original = try Self.original.get()
    for share in [9, 5, 2] {
      let count = original.bytes.count * share / 10
      try TemporaryFolder.write(Array(original.bytes[..<count]), to: damaged)
      let report = try PersistentStoreCoordinator.repairPersistentStore(
        .sqlite(at: damaged), to: .sqlite(at: repaired), model: Archive.model)
      let found = try Archive.contents(.sqlite(at: repaired))
      #expect(found.keys.allSatisfy { original.contents[$0]?.entity == found[$0]?.entity })
      #expect(!found.isEmpty && report.objectCount == found.count && report.damagedPlaceCount > 0, "\(share): \(report)")
      unlink(repaired)
    }
  }

  /// SQLite ignores a log or journal that it takes for an old one, so the report says that changes may be missing.
  @Test(.ownThreads) func RE6_aDamagedLogIsReported() async throws {
    let path = folder.file("harbour.sqlite")
    try Harbour.makeFile(path, saves: 9)
    await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
      let context = try Harbour.context(.sqlite(at: path))
      for _ in 0..<3 { try Voyage.saveNext(context) }
      kill(getpid(), SIGKILL)
    }
    let log = try TemporaryFolder.read(path + "-wal")
    for place in [0, 10, 17, 25, 32 + 8, 32 + 24 + 4096 + 24 + 100] {
      var bytes = log
      bytes[place] ^= 1
      try TemporaryFolder.write(bytes, to: path + "-wal")
      let report = try PersistentStoreCoordinator.repairPersistentStore(.sqlite(at: path), to: .sqlite(at: repaired))
      // A changed salt of the first frame makes it an old one, as after a reset.
      #expect(report.notes.contains { $0.contains("The log beside the file is damaged") } || place == 40, "\(place): \(report)")
      let context = try Harbour.context(.sqlite(at: repaired)), found = try Voyage.check(context)
      #expect(found.fault == nil && found.saves >= 9, "\(place): \(found)")
      try context.persistentStoreCoordinator.close()
      unlink(repaired)
    }
  }

  /// Pages have entries that name their parents. A changed one doesn't hide pages that the tree has.
  @Test func RE6_aChangedEntryOfAParentLosesNothing() throws {
    let original = try Self.smallOriginal.get()
    try TemporaryFolder.write(original.bytes, to: damaged)
    let database = try BareDatabase(damaged), size = Self.pageSize
    let roots = try database.rows("SELECT rootpage FROM sqlite_master WHERE name IN ('ZITEM', 'ZPAGE', 'Z_1TAGS')").compactMap { Int($0) }
    let index = try #require(Int(try database.rows("SELECT rootpage FROM sqlite_master WHERE type = 'index' ORDER BY 1 LIMIT 1")[0]))
    database.close()
    func entry(_ page: Int) -> Int { size + 5 * (page - 3) }
    let children = (3...original.pageCount).filter { original.bytes[entry($0)] == 5 }
    try #require(roots.count == 3 && !children.isEmpty)
    // A share of the tests has each page and each entry.
    for (number, page) in (roots + [children[0], children[children.count / 2]]).enumerated() {
      let entries: [(UInt8, Int)] = [(1, 0), (2, 0), (3, 5), (4, 9), (5, index)]
      for (kind, (type, parent)) in entries.enumerated() where (number + kind) % TestTier.step(3) == 0 {
        var bytes = original.bytes
        bytes[entry(page)] = type
        for place in 0..<4 { bytes[entry(page) + 1 + place] = UInt8(truncatingIfNeeded: parent >> (24 - 8 * place)) }
        if TestBytes.areEqual(bytes, original.bytes) { continue }
        let (report, lost) = try repair(bytes, isSmall: true, .none, "page \(page) has the entry \(type) \(parent)")
        #expect(lost.isEmpty, "page \(page), \(type): \(lost.count) lost; \(report)")
      }
    }
  }

  /// Tables of other programs, large values and many definitions.
  @Test func RE6_aSoundFileOfSeveralProgramsIsCopied() throws {
    let path = folder.file("archive.sqlite")
    try Archive.makeFile(.sqlite(at: path), items: 200)
    let database = try BareDatabase(path)
    for number in 0..<40 { try database.run("CREATE TABLE other\(number) (a, b TEXT, c INTEGER NOT NULL, d, UNIQUE (a, b))") }
    for number in 0..<30 { try database.run("INSERT INTO other\(number) VALUES (randomblob(64000), 'x', 1, 2.5), (NULL, '', 0, x'00')") }
    try database.run("DELETE FROM other3; DELETE FROM other4 WHERE c = 1; UPDATE other5 SET a = randomblob(90)")
    database.close()
    let report = try PersistentStoreCoordinator.repairPersistentStore(.sqlite(at: path), to: .sqlite(at: repaired))
    #expect(report.isComplete, "\(report)")
    for number in 0..<40 {
      let rows = "SELECT rowid, quote(a), quote(b), quote(c), quote(d) FROM other\(number) ORDER BY 1"
      #expect(try BareDatabase(repaired).rows(rows) == BareDatabase(path).rows(rows))
    }
  }

  /// A repair that followed each chain to its end would take hours.
  @Test(arguments: ["100001 + n", "100000 + (n + 1) % 60000"]) func aLongChainOfEntitiesIsFollowedOnce(superentity: String) throws {
    let path = folder.file("archive.sqlite"), count = "SELECT COUNT(*) FROM Z_PRIMARYKEY WHERE Z_ENT >= 100000"
    try Archive.makeFile(.sqlite(at: path), items: 200)
    let database = try BareDatabase(path)
    try database.run(
      "INSERT INTO Z_PRIMARYKEY WITH RECURSIVE c(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM c WHERE n < 59999) "
        + "SELECT 100000 + n, 'Other' || n, \(superentity), 0 FROM c")
    database.close()
    let report = try PersistentStoreCoordinator.repairPersistentStore(.sqlite(at: path), to: .sqlite(at: repaired))
    #expect(report.objectCounts["Tag"] == 10, "\(report)")
    #expect(try BareDatabase(repaired).rows(count) == ["60000"])
  }

  // MARK: Definitions

  /// Replaces all occurrences of a text in the small file by one of the same length, and repairs it.
  private func repair(replacing text: String, by new: String, model: ManagedObjectModel? = Archive.model) throws -> (
    report: RepairReport, lost: Set<String>
  ) {
    var bytes = try Self.smallOriginal.get().bytes
    precondition(text.utf8.count == new.utf8.count)
    let places = TestBytes.places(of: Array(text.utf8), in: bytes)
    for place in places { bytes.replaceSubrange(place..<place + text.utf8.count, with: new.utf8) }
    try #require(!places.isEmpty, "\(text)")
    return try repair(bytes, isSmall: true, model: model, .links, "\(text) is \(new)")
  }

  @Test func RE6_aChangedLetterOfADefinitionLosesNothing() throws {
    for (text, new) in [
      ("CREATE TABLE ZITEM ", "CREATE TABLE ZJTEM "), ("CREATE TABLE ZTAG ", "CREATE TABZE ZTAG "), ("ZTITLE VARCHAR", "ZTITLE VARCIAR"),
      ("ZITEM ( Z_PK INTEGER", "ZITEM ( Z_PK INTEGFR"), ("ZITEM ( Z_PK INTEGER PRIMARY", "ZITEM ( Z_PK INTEGER PRJMARY"),
      ("ZHEADING VARCHAR", "ZHEBDING VARCHAR"), ("CREATE TABLE Z_METADATA ", "CREATE TABLE Z_METAFATA "),
      ("CREATE TABLE Z_PRIMARYKEY ", "CREATE TABLE Z_PRIMARYKEZ "),
    ] {
      let (report, lost) = try repair(replacing: text, by: new)
      #expect(lost.isEmpty && !report.isComplete, "\(text): \(lost.count) lost; \(report)")
    }
  }

  /// The root of one table is that of another one, an index or a page that can't be one.
  @Test func RE6_aChangedRootIsFound() throws {
    let original = try Self.smallOriginal.get()
    try TemporaryFolder.write(original.bytes, to: damaged)
    for (name, root) in [
      ("ZITEM", "1"), ("ZITEM", "99999"), ("ZITEM", "(SELECT rootpage FROM sqlite_master WHERE name = 'ZTAG')"),
      ("ZTAG", "(SELECT rootpage FROM sqlite_master WHERE type = 'index' LIMIT 1)"), ("ZPAGE", "0 - 5"),
      ("Z_1TAGS", "(SELECT rootpage FROM sqlite_master WHERE name = 'Z_6RELATED')"),
    ] {
      try TemporaryFolder.write(original.bytes, to: damaged)
      let database = try BareDatabase(damaged)
      try database.run(
        "PRAGMA journal_mode=delete; PRAGMA writable_schema=1; UPDATE sqlite_master SET rootpage = \(root) WHERE name = '\(name)'")
      database.close()
      let bytes = try TemporaryFolder.read(damaged)
      let (report, lost) = try repair(bytes, isSmall: true, model: Archive.model, .links, "the root of \(name) is \(root)")
      #expect(lost.isEmpty && !report.isComplete, "\(name) \(root): \(lost.count) lost; \(report)")
    }
  }

  /// No statement of the file runs: neither a trigger nor a query in a definition.
  @Test func RE6_codeInTheFileDoesNotRun() throws {
    let path = folder.file("archive.sqlite"), other = TemporaryFolder(), copy = other.file("copy.sqlite")
    try Archive.makeFile(Archive.description(path), items: 200)
    let files = folder.file(".archive_SUPPORT/_EXTERNAL_DATA")
    unlink(files + "/" + TemporaryFolder.names(in: files)[0])
    let database = try BareDatabase(path)
    try database.run("CREATE TRIGGER ZT AFTER UPDATE ON ZITEM BEGIN DELETE FROM ZTAG; END")
    try database.run("CREATE TABLE ZEVIL (a)")
    // SQLite takes a byte order mark for white space.
    let query = "CREATE TABLE ZEVIL \u{FEFF}AS WITH RECURSIVE c(x) \u{FEFF}AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c"
    try database.run("PRAGMA writable_schema=1; UPDATE sqlite_master SET sql = '\(query)' WHERE name = 'ZEVIL'")
    database.close()
    let report = try PersistentStoreCoordinator.repairPersistentStore(Archive.description(path), to: Archive.description(copy))
    #expect(report.lostValueCounts == ["Map.image": 1] && report.objectCounts["Tag"] == 10, "\(report)")
    #expect(report.notes.count { $0.contains("ZEVIL") } == 1, "\(report)")
    #expect(try BareDatabase(copy).rows("SELECT name FROM sqlite_master WHERE name IN ('ZT', 'ZEVIL')") == ["ZT"])
  }

  // MARK: External files

  @Test func RE6_externalFilesAreCopiedAndLostOnesCounted() throws {
    let path = folder.file("archive.sqlite"), other = TemporaryFolder(), copy = other.file("copy.sqlite")
    try Archive.makeFile(Archive.description(path), items: 400)
    let contents = try Archive.contents(Archive.description(path))
    let files = folder.file(".archive_SUPPORT/_EXTERNAL_DATA"), names = TemporaryFolder.names(in: files)
    try #require(names.count >= 3)
    let report = try PersistentStoreCoordinator.repairPersistentStore(Archive.description(path), to: Archive.description(copy))
    #expect(report.isComplete && TemporaryFolder.names(in: other.file(".copy_SUPPORT/_EXTERNAL_DATA")) == names)
    #expect(try Archive.contents(Archive.description(copy)) == contents)
    unlink(files + "/" + names[0])
    try TemporaryFolder.write([1, 2, 3], to: files + "/" + names[1])
    let second = other.file("second.sqlite")
    let lossy = try PersistentStoreCoordinator.repairPersistentStore(Archive.description(path), to: Archive.description(second))
    #expect(lossy.lostValueCounts == ["Map.image": 2] && !lossy.isComplete && lossy.damagedPlaceCount == 0, "\(lossy)")
    #expect(TemporaryFolder.names(in: other.file(".second_SUPPORT/_EXTERNAL_DATA")) == Array(names.dropFirst(2)))
    let found = try Archive.contents(Archive.description(second))
    #expect(found.count == contents.count && found.count { contents[$0.key] != $0.value } == 2)
    #expect(found.allSatisfy { contents[$0.key] == $0.value || $0.value.values["image"] == .null })
    // The files would be those of the damaged store.
    #expect(throws: StoreError.self) {
      try PersistentStoreCoordinator.repairPersistentStore(Archive.description(path), to: Archive.description(folder.file("archive.db")))
    }
    #expect(!folder.exists("archive.db"))
  }

  // MARK: Refusals

  private func expectRefusal(_ code: StoreError.Code, _ body: () throws -> RepairReport) throws {
    let before = try folder.snapshot()
    let error = #expect(throws: StoreError.self) { _ = try body() }
    #expect(error?.code == code, "\(error.map { "\($0)" } ?? "")")
    #expect(try folder.snapshot() == before)
  }

  @Test func nothingIsReplaced() throws {
    try Harbour.makeFile(damaged)
    try TemporaryFolder.write([1], to: repaired)
    try expectRefusal(.invalidPath) {
      try PersistentStoreCoordinator.repairPersistentStore(.sqlite(at: damaged), to: .sqlite(at: repaired))
    }
    try expectRefusal(.invalidPath) { try PersistentStoreCoordinator.repairPersistentStore(.sqlite(at: damaged), to: .sqlite(at: damaged)) }
  }

  @Test func aStoreOfAnotherTypeIsRefused() throws {
    try Harbour.makeFile(damaged)
    try expectRefusal(.unsupportedRequest) {
      try PersistentStoreCoordinator.repairPersistentStore(.sqlite(at: damaged), to: .json(at: folder.file("repaired.json")))
    }
    let isReadOnly = SQLiteStoreOptions(isReadOnly: true)
    try expectRefusal(.readOnly) {
      try PersistentStoreCoordinator.repairPersistentStore(.sqlite(at: damaged), to: .sqlite(at: repaired, options: isReadOnly))
    }
  }

  @Test func aMissingOrEmptyFileIsRefused() throws {
    try expectRefusal(.notFound) { try PersistentStoreCoordinator.repairPersistentStore(.sqlite(at: damaged), to: .sqlite(at: repaired)) }
    try TemporaryFolder.write([], to: damaged)
    try expectRefusal(.notAStore) { try PersistentStoreCoordinator.repairPersistentStore(.sqlite(at: damaged), to: .sqlite(at: repaired)) }
    try TemporaryFolder.write(Array(repeating: 65, count: 100_000), to: damaged)
    try expectRefusal(.damaged) { try PersistentStoreCoordinator.repairPersistentStore(.sqlite(at: damaged), to: .sqlite(at: repaired)) }
  }

  @Test(.ownThreads) func aStoreInUseIsRefused() async throws {
    try Harbour.makeFile(damaged)
    let context = try Harbour.context(.sqlite(at: damaged))
    let error = #expect(throws: StoreError.self) {
      try PersistentStoreCoordinator.repairPersistentStore(.sqlite(at: damaged), to: .sqlite(at: repaired))
    }
    #expect(error?.code == .alreadyOpen)
    try context.persistentStoreCoordinator.close()
    let other = try BareDatabase(damaged)
    _ = try other.rows("SELECT COUNT(*) FROM ZSHIP")
    // A connection of another process.
    await #expect(processExitsWith: .success) { [damaged = damaged as String, repaired = repaired as String] in
      let error = #expect(throws: StoreError.self) {
        try PersistentStoreCoordinator.repairPersistentStore(.sqlite(at: damaged), to: .sqlite(at: repaired))
      }
      #expect(error?.code == .locked)
    }
    other.close()
    #expect(!folder.exists("repaired.sqlite"))
  }

  @Test func anotherModelIsRefused() throws {
    try Harbour.makeFile(damaged)
    try expectRefusal(.incompatibleModel) {
      try PersistentStoreCoordinator.repairPersistentStore(.sqlite(at: damaged), to: .sqlite(at: repaired), model: Archive.model)
    }
  }
}
