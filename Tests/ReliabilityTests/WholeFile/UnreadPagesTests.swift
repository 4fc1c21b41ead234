import Foundation
import Holdfast
import HoldfastAtomicStore
import HoldfastFiles
import HoldfastStoreConformance
import TestSupport
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Open stores that haven't read all of their file yet, when the disk fails or another program changes the file in place.
///
/// JSON and XML stores read the entire file when they open it, so later changes don't affect their answers.
@Suite struct UnreadPagesTests {
  /// Whether a store reads its file page by page.
  private static func readsLater(_ store: FileStore) -> Bool { store == .binary }

  /// A file with twelve saves, and the result of each reading without faults.
  private struct Sample {
    let contents: [UInt8]
    let ids: HarbourIDs
    let answers: [Reading: [String]]
    /// How often each reading calls read.
    let readCounts: [Reading: Int]

    init(_ store: FileStore) throws {
      contents = try SimulatedHarbour.contents(store)
      let first = try SimulatedHarbour(store, contents: contents).context()
      let ids = try HarbourIDs(first)
      self.ids = ids
      try first.persistentStoreCoordinator.close()
      var answers: [Reading: [String]] = [:], counts: [Reading: Int] = [:]
      for reading in Reading.allCases {
        let harbour = SimulatedHarbour(store, contents: contents)
        let context = try harbour.context(), before = harbour.disk.count(of: .read)
        answers[reading] = try reading.perform(in: context, ids)
        counts[reading] = harbour.disk.count(of: .read) - before
        try context.persistentStoreCoordinator.close()
      }
      (self.answers, readCounts) = (answers, counts)
    }
  }

  private static let samples = Result { () throws -> [FileStore: Sample] in
    Dictionary(uniqueKeysWithValues: try FileStore.wholeFile.map { ($0, try Sample($0)) })
  }

  private static func sample(_ store: FileStore) throws -> Sample { try #require(try samples.get()[store]) }

  // MARK: RC1

  @Test(arguments: FileStore.wholeFile, Reading.allCases)
  func RC1_everyFailingReadWhileOpenIsATypedErrorAndTheSameRequestSucceedsLater(store: FileStore, reading: Reading) throws {
    let sample = try Self.sample(store), count = sample.readCounts[reading] ?? 0
    #expect((count > 0) == (Self.readsLater(store) && reading.readsPages))
    for nth in 1..<count + 1 {
      for (isPersistent, number) in WholeFileFaultTests.numbers.flatMap({ [(false, $0), (true, $0)] }) {
        let name = "read \(nth) of \(count) fails with \(number)\(isPersistent ? " from then on" : "")"
        let harbour = SimulatedHarbour(store, contents: sample.contents)
        let context = try harbour.context()
        harbour.disk.inject(FileFault(.read, nth: nth, .error(number), isPersistent: isPersistent))
        for _ in 0..<(isPersistent ? 3 : 1) {
          let error = try #require(throws: StoreError.self, "\(name)") { try reading.perform(in: context, sample.ids) }
          let cause = error.cause as? FileSystemError
          #expect(cause?.operation == .read && cause?.number == number && error.path == SimulatedHarbour.path, "\(name): \(error)")
          #expect(error.code != .damaged && error.code != .general && error.operation == "read the store", "\(name): \(error)")
        }
        if isPersistent { harbour.disk.clearFaults() }
        #expect(try reading.perform(in: context, sample.ids) == sample.answers[reading], "\(name)")
        // The failed attempts don't affect the next save.
        #expect(!context.hasChanges && harbour.contents == sample.contents)
        #expect(try Voyage.saveNext(context) == 13 && harbour.found() == (13, nil), "\(name)")
        try context.persistentStoreCoordinator.close()
        #expect(harbour.disk.openCount == 0, "\(name)")
      }
    }
  }

  /// An object whose row couldn't be read has no values. Setting a value and saving doesn't overwrite its row.
  @Test(arguments: FileStore.wholeFile.filter(readsLater))
  func RC1_anObjectThatCouldNotBeReadIsNotSavedWithValuesItNeverHad(store: FileStore) throws {
    let sample = try Self.sample(store), harbour = SimulatedHarbour(store, contents: sample.contents)
    let context = try harbour.context()
    let ship = try #require(context.object(with: sample.ids.ship) as? Ship)
    harbour.disk.inject(FileFault(.read, .error(EIO)))
    #expect(ship.name == "" && ship.isInaccessible)
    #expect((context.faultError as? StoreError)?.code == .inputOutput)
    ship.tons = 7
    #expect(throws: (any Error).self) { try context.save() }
    #expect(context.hasChanges && harbour.contents == sample.contents)
    context.rollback()
    try context.refresh(ship, mergeChanges: false)
    #expect(ship.name == "Ship 7" && !ship.isInaccessible)
    #expect(try Voyage.check(context) == (12, nil))
    try context.persistentStoreCoordinator.close()
  }

  // MARK: RD3

  /// Changes of the bytes of a file, without replacing the file.
  enum Overwriting: String, CaseIterable, Codable, Sendable {
    case cutOffByOne, cutInHalf, cutToAQuarter, cutTo100, emptied, zeroed, turned, otherStore, laterVersion, earlierVersion

    func apply(to bytes: [UInt8], _ store: FileStore) throws -> [UInt8] {
      switch self {
      case .cutOffByOne: bytes.dropLast()
      case .cutInHalf: Array(bytes.prefix(bytes.count / 2))
      case .cutToAQuarter: Array(bytes.prefix(bytes.count / 4))
      case .cutTo100: Array(bytes.prefix(100))
      case .emptied: []
      case .zeroed: Array(repeating: 0, count: bytes.count)
      case .turned: bytes.map { $0 ^ 0x11 }
      case .otherStore: try SimulatedHarbour.contents(store, saves: 12)
      case .laterVersion: try Self.changed(bytes, store) { try Voyage.saveNext($0) }
      case .earlierVersion: bytes
      }
    }

    static func changed(_ bytes: [UInt8], _ store: FileStore, _ body: (ManagedObjectContext) throws -> Void) throws -> [UInt8] {
      let harbour = SimulatedHarbour(store, contents: bytes)
      let context = try harbour.context()
      try body(context)
      try context.persistentStoreCoordinator.close()
      return harbour.contents ?? []
    }
  }

  /// Opens a real file with these bytes. The store has read only its beginning and end.
  private func opened(_ contents: [UInt8], _ store: FileStore, in folder: TemporaryFolder) throws -> ManagedObjectContext {
    try TemporaryFolder.write(contents, to: folder.file("harbour"))
    return try Harbour.context(store.description(at: folder.file("harbour")))
  }

  @Test(arguments: FileStore.wholeFile, Overwriting.allCases)
  func RD3_readingAFileThatWasOverwrittenInPlaceIsCorrectOrATypedError(store: FileStore, overwriting: Overwriting) throws {
    let sample = try Self.sample(store), other = try overwriting.apply(to: sample.contents, store)
    let contents = overwriting == .earlierVersion ? try Overwriting.changed(sample.contents, store) { try Voyage.saveNext($0) } : nil
    let answers = try contents.map { try SampleAnswers(store, $0, sample.ids).answers } ?? sample.answers
    var refused = 0
    for reading in Reading.allCases {
      let folder = TemporaryFolder()
      let context = try opened(contents ?? sample.contents, store, in: folder)
      try TemporaryFolder.overwrite(folder.file("harbour"), other)
      for _ in 0..<2 {
        do {
          #expect(try reading.perform(in: context, sample.ids) == answers[reading], "\(reading)")
        } catch let error as StoreError {
          #expect([.damaged, .inputOutput].contains(error.code) && error.path == folder.file("harbour"), "\(reading): \(error)")
          refused += 1
        }
      }
      try context.persistentStoreCoordinator.close()
      #expect(folder.openDescriptors == 0)
    }
    // All readings that read from the file. If only the last byte is missing, none.
    let most = 2 * Reading.allCases.count { (sample.readCounts[$0] ?? 0) > 0 }
    let isAll = [.cutTo100, .emptied, .zeroed, .turned].contains(overwriting)
    #expect(isAll ? refused == most : refused <= most)
    #expect((overwriting == .cutInHalf || overwriting == .laterVersion) == false || (refused > 0) == Self.readsLater(store))
  }

  /// A store that has read only part of its file doesn't write a file from that part: the save is refused, and the file stays unchanged.
  @Test(arguments: FileStore.wholeFile, Overwriting.allCases.filter { ![.laterVersion, .earlierVersion].contains($0) })
  func RD3_aSaveOverAFileThatWasOverwrittenInPlaceIsRefusedUntilItIsRestored(store: FileStore, overwriting: Overwriting) throws {
    let sample = try Self.sample(store), other = try overwriting.apply(to: sample.contents, store)
    let folder = TemporaryFolder(), path = folder.file("harbour")
    let context = try opened(sample.contents, store, in: folder)
    // Reads the page of one ship, or nothing.
    let ship = try #require(context.object(with: sample.ids.ship) as? Ship)
    ship.tons = 77
    context.insert(Ship.self).name = "New"
    try TemporaryFolder.overwrite(path, other)
    for _ in 0..<2 {
      let error = try #require(throws: StoreError.self) { try context.save() }
      #expect([.damaged, .notAStore, .storeReplaced].contains(error.code) && error.path == path && context.hasChanges, "\(error)")
      let isAsItWas = try TemporaryFolder.read(path) == other
      #expect(isAsItWas)
    }
    #expect(throws: StoreError.self) { try context.persistentStoreCoordinator.setMetadata(["owner": .string("Ada")]) }
    let isAsItWas = try TemporaryFolder.read(path) == other
    #expect(isAsItWas)

    try TemporaryFolder.overwrite(path, sample.contents)
    try context.save()
    try context.persistentStoreCoordinator.close()
    let again = try Harbour.context(store.description(at: path))
    let ships = try again.fetch(FetchRequest<Ship>())
    #expect(ships.filter { $0.tons == 77 }.map(\.name) == ["Ship 7"] && ships.count { $0.name == "New" } == 1 && ships.count == 11)
    ships.filter { $0.name == "New" }.forEach { again.delete($0) }
    #expect(try Voyage.check(again) == (12, nil))
    try again.persistentStoreCoordinator.close()
  }

  /// Copying a later version over the file destroys pages that the store hasn't read. The next save reads the later version instead.
  @Test(arguments: FileStore.wholeFile)
  func RD3_aLaterVersionCopiedOverTheFileInPlaceIsNeverLost(store: FileStore) throws {
    let sample = try Self.sample(store)
    let later = try Overwriting.laterVersion.apply(to: sample.contents, store)
    let folder = TemporaryFolder(), path = folder.file("harbour")
    let context = try opened(sample.contents, store, in: folder)
    context.insert(Ship.self).name = "New"
    try TemporaryFolder.overwrite(path, later)
    try context.save()
    try context.persistentStoreCoordinator.close()
    let again = try Harbour.context(store.description(at: path))
    let added = try again.fetch(FetchRequest<Ship> { $0.name == "New" })
    #expect(added.count == 1)
    added.forEach { again.delete($0) }
    #expect(try Voyage.check(again) == (13, nil))
    try again.persistentStoreCoordinator.close()
  }

  /// The results of all readings of other bytes.
  private struct SampleAnswers {
    var answers: [Reading: [String]] = [:]

    init(_ store: FileStore, _ contents: [UInt8], _ ids: HarbourIDs) throws {
      for reading in Reading.allCases {
        let context = try SimulatedHarbour(store, contents: contents).context()
        answers[reading] = try reading.perform(in: context, ids)
        try context.persistentStoreCoordinator.close()
      }
    }
  }
}

/// The objects that readings start from. Their IDs are equal in every store of the same file.
struct HarbourIDs: Sendable {
  let ship: ManagedObjectID
  let berth: ManagedObjectID

  init(_ context: ManagedObjectContext) throws {
    ship = try #require(try context.fetch(FetchRequest<Ship> { $0.number == 7 }).first).objectID
    berth = try #require(try context.fetch(FetchRequest<Berth> { $0.number == 1 }).first).objectID
  }
}

/// A request that reads from a store.
enum Reading: String, CaseIterable, Codable, Sendable {
  case fetch, sortedFetch, filteredFetch, lookUp, fault, existingObject, toOne, toMany, manyToMany, count

  /// Whether the request reads pages of a paged file. Counts are in the directory, which is already read.
  var readsPages: Bool { self != .count }

  /// Performs the request. Also throws errors of accessors that can't throw.
  func perform(in context: ManagedObjectContext, _ ids: HarbourIDs) throws -> [String] {
    context.acknowledgeFaultErrors()
    let found = try found(in: context, ids)
    if let error = context.faultError { throw error }
    return found
  }

  private func found(in context: ManagedObjectContext, _ ids: HarbourIDs) throws -> [String] {
    switch self {
    case .fetch: try context.fetch(FetchRequest<Ship>()).map(\.name).sorted()
    case .sortedFetch: try context.fetch(FetchRequest<Ship>(sortedBy: [.ascending(\.number)])).map(\.name)
    case .filteredFetch: try context.fetch(FetchRequest<Ship> { $0.name == "Ship 9" }).map { "\($0.number ?? 0)" }
    case .lookUp: try context.fetch(FetchRequest<Ship> { $0.number == 8 }).map(\.name)
    case .fault: [try ship(context, ids).name]
    case .existingObject: ["\(try context.existingObject(with: ids.ship).value(forKey: "name"))"]
    case .toOne: [try ship(context, ids).berth.map { "\($0.number)" } ?? "none"]
    case .toMany: try berth(context, ids).ships.map(\.name).sorted()
    case .manyToMany: try ship(context, ids).routes.map { "\($0.number)" }.sorted()
    case .count: ["\(try context.count(for: FetchRequest<Ship>()))"]
    }
  }

  /// The ship, turned into a fault again if it couldn't be read before.
  private func ship(_ context: ManagedObjectContext, _ ids: HarbourIDs) throws -> Ship {
    let ship = try #require(context.object(with: ids.ship) as? Ship)
    if ship.isInaccessible { try context.refresh(ship, mergeChanges: false) }
    return ship
  }

  private func berth(_ context: ManagedObjectContext, _ ids: HarbourIDs) throws -> Berth {
    let berth = try #require(context.object(with: ids.berth) as? Berth)
    if berth.isInaccessible { try context.refresh(berth, mergeChanges: false) }
    return berth
  }
}

extension TemporaryFolder {
  /// Overwrites a file in place, as `cp` does. `mv` would replace the file.
  static func overwrite(_ path: String, _ bytes: [UInt8]) throws {
    let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
    try file.truncate(atOffset: 0)
    try file.write(contentsOf: Data(bytes))
    try file.close()
  }
}
