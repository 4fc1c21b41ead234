import Foundation
import Holdfast
import HoldfastAtomicStore
import HoldfastStoreConformance
import TestSupport
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// System calls that fail or transfer less than requested, through the entire stack on a simulated disk.
@Suite struct WholeFileFaultTests {
  /// The values of `errno` of failing calls. The tests of files use all of them, so a few are enough here.
  static let numbers =
    [EIO, ENOSPC, EINTR, EACCES] + (TestTier.isFull ? [EDQUOT, EAGAIN, EPERM, EROFS, EMFILE, ENFILE, ENOMEM, ESTALE, EFBIG] : [])
  /// Calls whose failure doesn't fail a save: they only clean up.
  private static let harmless: Set<StoreFileOperation> = [.names, .unlink, .close, .unlock]
  /// The name of a temporary file that a killed process left.
  private static let stale = ".harbour.0123456789abcdef.tmp"

  /// A disk with a store and a stale temporary file.
  private static func harbour(_ store: FileStore, _ contents: [UInt8]) -> SimulatedHarbour {
    let harbour = SimulatedHarbour(store, contents: contents)
    harbour.disk.setContents(of: stale, [1])
    return harbour
  }

  /// How often `body` makes each call.
  private static func calls(_ disk: SimulatedFileSystem, _ body: () throws -> Void) rethrows -> [StoreFileOperation: Int] {
    let before = StoreFileOperation.allCases.map { disk.count(of: $0) }
    try body()
    let counts = zip(StoreFileOperation.allCases, before).map { ($0, disk.count(of: $0) - $1) }
    return Dictionary(uniqueKeysWithValues: counts.filter { $0.1 > 0 })
  }

  /// Checks the details that every error of a failing call must have.
  private static func expectTyped(_ error: StoreError, _ operation: StoreFileOperation, _ number: Int32, _ name: String) {
    let cause = error.cause as? FileSystemError
    #expect(cause?.operation == operation && cause?.number == number && cause?.name.isEmpty == false, "\(name): \(error)")
    #expect(error.path == SimulatedHarbour.path && error.description.contains("(errno \(number))"), "\(name): \(error)")
    #expect(error.code != .general && error.code != .damaged, "\(name): \(error)")
  }

  private static func refusal(_ body: () throws -> Void) throws -> StoreError? {
    do {
      try body()
      return nil
    } catch let error as StoreError {
      return error
    }
  }

  // MARK: RC1, saving

  @Test(arguments: FileStore.wholeFile, Self.numbers)
  func RC1_everyFailingCallOfASaveIsATypedErrorAndLosesNothing(store: FileStore, number: Int32) throws {
    let contents = try SimulatedHarbour.contents(store)
    let made = try calls(ofSaveWith: contents, store)
    #expect(Set(made.keys).isSuperset(of: [.openLockFile, .lock, .create, .write, .synchronize, .rename, .setPermissions, .statusOfName]))
    var cases = 0
    // Once, or from then on. With these numbers, a random one of both, or each in the full tier.
    let ways = TestTier.isFull ? [false, true] : [Bool.random()]
    for (operation, count) in made {
      for nth in 1...count {
        for isPersistent in [EIO, ENOSPC].contains(number) ? ways : [false] {
          let fault = FileFault(operation, nth: nth, .error(number), isPersistent: isPersistent)
          try check(fault, number, Self.harbour(store, contents))
          cases += 1
        }
      }
    }
    print("RC1, \(store), saving: \(cases) cases with errno \(number)")
    #expect(cases > 20)
  }

  private func calls(ofSaveWith contents: [UInt8], _ store: FileStore) throws -> [StoreFileOperation: Int] {
    let harbour = Self.harbour(store, contents)
    let context = try harbour.context()
    _ = try Voyage.changeNext(context)
    return try Self.calls(harbour.disk) { try context.save() }
  }

  private func check(_ fault: FileFault, _ number: Int32, _ harbour: SimulatedHarbour) throws {
    let name = "\(fault.operation) \(fault.nth) fails with \(number)\(fault.isPersistent ? " from then on" : "")"
    let context = try harbour.context()
    let journal = try Voyage.changeNext(context)
    let inserted = context.insertedObjects.count
    let (openCount, old) = (harbour.disk.openCount, harbour.contents)
    harbour.disk.inject(fault)
    let error = try Self.refusal { try context.save() }
    harbour.disk.clearFaults()
    if let error {
      Self.expectTyped(error, fault.operation, number, name)
      if error.code == .durabilityUnknown {
        #expect(try !context.hasChanges && journal.saves == 13 && harbour.found() == (13, nil), "\(name)")
      } else {
        #expect(context.hasChanges && context.insertedObjects.count == inserted && journal.saves == 13 && journal.isUpdated, "\(name)")
        #expect(harbour.contents == old, "\(name)")
      }
      #expect(harbour.disk.openCount == openCount, "\(name): a descriptor stays open")
    } else {
      let isWithoutRights = [EACCES, EPERM].contains(number) && [.setOwner, .copyAttributes].contains(fault.operation)
      // A store that can't identify the saved file reads it again. Parts that can't be copied from the old file are written from memory.
      let isMadeUpFor = [.status, .read].contains(fault.operation)
      #expect(Self.harmless.contains(fault.operation) || isWithoutRights || isMadeUpFor, "\(name): no error")
      #expect(try !context.hasChanges && harbour.found() == (13, nil), "\(name): no error, and not saved")
    }
    let isUntidy = [.names, .unlink].contains(fault.operation)
    #expect(isUntidy || harbour.temporaryNames.allSatisfy { $0 == Self.stale }, "\(name): \(harbour.disk.names)")
    try expectUsable(context, harbour, name)
  }

  /// Without the fault, the same save succeeds, and so does the next one.
  private func expectUsable(_ context: ManagedObjectContext, _ harbour: SimulatedHarbour, _ name: String) throws {
    do {
      try context.save()
      #expect(try !context.hasChanges && harbour.found() == (13, nil), "\(name): the repeated save")
      #expect(try Voyage.saveNext(context) == 14)
    } catch {
      Issue.record("\(name): the next save fails with \(error)")
    }
    #expect(try Voyage.check(context) == (14, nil), "\(name)")
    #expect(try harbour.found() == (14, nil), "\(name)")
    #expect(harbour.disk.names == SimulatedHarbour.names, "\(name): \(harbour.disk.names)")
    try context.persistentStoreCoordinator.close()
    #expect(harbour.disk.openCount == 0, "\(name): a descriptor stays open")
  }

  // MARK: RC1, opening

  @Test(arguments: FileStore.wholeFile, [true, false])
  func RC1_everyFailingCallOfOpeningIsATypedErrorAndLeavesNoPartialFile(store: FileStore, exists: Bool) throws {
    let contents = exists ? try SimulatedHarbour.contents(store) : nil
    let sample = SimulatedHarbour(store, contents: contents)
    let made = try Self.calls(sample.disk) { try sample.context().persistentStoreCoordinator.close() }
    #expect(Set(made.keys).isSuperset(of: exists ? [.resolve, .openDirectory, .openForReading, .read] : [.create, .write, .rename]))
    var cases = 0
    for (operation, count) in made {
      for (nth, number) in (1...count).flatMap({ nth in Self.numbers.map { (nth, $0) } }) {
        let harbour = SimulatedHarbour(store, contents: contents)
        harbour.disk.inject(FileFault(operation, nth: nth, .error(number)))
        try checkOpening(harbour, contents, operation, number, "\(operation) \(nth) fails with \(number)")
        cases += 1
      }
    }
    print("RC1, \(store), \(exists ? "opening" : "making"): \(cases) cases")
  }

  private func checkOpening(
    _ harbour: SimulatedHarbour, _ contents: [UInt8]?, _ operation: StoreFileOperation, _ number: Int32, _ name: String
  ) throws {
    let error = try Self.refusal { try harbour.context().persistentStoreCoordinator.close() }
    harbour.disk.clearFaults()
    if let error {
      Self.expectTyped(error, operation, number, name)
      #expect(harbour.contents == contents || error.code == .durabilityUnknown, "\(name)")
    } else {
      let isWithoutRights = [EACCES, EPERM].contains(number) && [.setOwner, .copyAttributes].contains(operation)
      #expect(Self.harmless.contains(operation) || isWithoutRights || operation == .status, "\(name): no error")
    }
    #expect(harbour.disk.openCount == 0 && harbour.temporaryNames.isEmpty, "\(name): \(harbour.disk.names)")
    // The store isn't considered open, and the failed attempt doesn't prevent opening it.
    let context = try harbour.context()
    #expect(try Voyage.check(context) == (contents == nil ? 0 : 12, nil), "\(name)")
    try Voyage.saveNext(context)
    try context.persistentStoreCoordinator.close()
    #expect(try harbour.found() == (contents == nil ? 1 : 13, nil), "\(name)")
  }

  // MARK: RC1, metadata

  @Test(arguments: FileStore.wholeFile)
  func RC1_everyFailingCallOfWritingMetadataIsATypedErrorAndLosesNothing(store: FileStore) throws {
    let contents = try SimulatedHarbour.contents(store)
    let sample = SimulatedHarbour(store, contents: contents)
    let opened = try sample.context()
    let made = try Self.calls(sample.disk) { try opened.persistentStoreCoordinator.setMetadata(["owner": .string("Ada")]) }
    #expect(Set(made.keys).isSuperset(of: [.lock, .create, .write, .synchronize, .rename]))
    for (operation, count) in made {
      for (nth, number) in (1...count).flatMap({ nth in Self.numbers.map { (nth, $0) } }) {
        try checkMetadata(
          FileFault(operation, nth: nth, .error(number)), number, SimulatedHarbour(store, contents: contents),
          "\(operation) \(nth) fails with \(number)")
      }
    }
  }

  private func checkMetadata(_ fault: FileFault, _ number: Int32, _ harbour: SimulatedHarbour, _ name: String) throws {
    let (context, old) = (try harbour.context(), harbour.contents)
    let coordinator = context.persistentStoreCoordinator
    harbour.disk.inject(fault)
    let error = try Self.refusal { try coordinator.setMetadata(["owner": .string("Ada")]) }
    harbour.disk.clearFaults()
    if let error {
      Self.expectTyped(error, fault.operation, number, name)
      #expect(coordinator.metadata == (error.code == .durabilityUnknown ? ["owner": .string("Ada")] : [:]), "\(name)")
      #expect(harbour.contents == old || error.code == .durabilityUnknown, "\(name)")
    }
    #expect(fault.operation == .unlink || harbour.temporaryNames.isEmpty, "\(name)")
    try coordinator.setMetadata(["owner": .string("Eve")])
    try Voyage.saveNext(context)
    try coordinator.close()
    let again = try harbour.context()
    #expect(again.persistentStoreCoordinator.metadata == ["owner": .string("Eve")], "\(name)")
    #expect(try Voyage.check(again) == (13, nil), "\(name)")
    try again.persistentStoreCoordinator.close()
  }

  // MARK: RC1, the folder

  /// The file was replaced, but a power loss may bring the old one back.
  @Test(arguments: FileStore.wholeFile)
  func RC1_afterAnUnconfirmedSaveTheNextSaveHasNoConflictWithIt(store: FileStore) throws {
    let (context, harbour) = try unconfirmed(store)
    try expectUsable(context, harbour, "unconfirmed")
  }

  /// The store also can't identify the file that it saved, so it reads the file again and finds its own changes.
  @Test(arguments: FileStore.wholeFile)
  func RC1_afterAnUnconfirmedSaveOfAnUnidentifiedFileNothingIsLost(store: FileStore) throws {
    let statuses = try calls(ofSaveWith: try SimulatedHarbour.contents(store), store)[.status] ?? 0
    let (context, harbour) = try unconfirmed(store, FileFault(.status, nth: statuses, .error(EIO)))
    #expect(try Voyage.check(context) == (13, nil))
    try expectUsable(context, harbour, "unconfirmed and unknown")
  }

  /// Repeating an unconfirmed save keeps changes that another process saved in between.
  @Test(arguments: FileStore.wholeFile)
  func RC1_aRepeatedUnconfirmedSaveKeepsChangesOfOtherProcesses(store: FileStore) throws {
    let harbour = SimulatedHarbour(store, contents: try SimulatedHarbour.contents(store))
    let context = try harbour.context()
    let mine = try ship(10, context)
    mine.name = "Unconfirmed"
    harbour.disk.inject(FileFault(.synchronize, nth: 2, .error(EIO)))
    #expect(try #require(try Self.refusal { try context.save() }).code == .durabilityUnknown)
    harbour.disk.clearFaults()
    try renameElsewhere(11, "Theirs", harbour)
    // A program repeats a save whose durability is unknown, and continues.
    try context.save()
    mine.name = "Confirmed"
    try context.save()
    try renameElsewhere(12, "Theirs too", harbour)
    try ship(9, context).name = "Last"
    try context.save()
    try context.persistentStoreCoordinator.close()
    let found = try harbour.context()
    #expect(try (9...12).map { try ship($0, found).name } == ["Last", "Confirmed", "Theirs", "Theirs too"])
    try found.persistentStoreCoordinator.close()
  }

  private func ship(_ number: Int64, _ context: ManagedObjectContext) throws -> Ship {
    try #require(try context.fetch(FetchRequest<Ship> { $0.number == number }).first)
  }

  /// Another process saves, which replaces the file.
  private func renameElsewhere(_ number: Int64, _ name: String, _ harbour: SimulatedHarbour) throws {
    let other = SimulatedHarbour(harbour.store, contents: harbour.contents)
    let context = try other.context()
    try ship(number, context).name = name
    try context.save()
    try context.persistentStoreCoordinator.close()
    harbour.disk.setContents(of: SimulatedHarbour.name, other.contents ?? [])
  }

  private func unconfirmed(_ store: FileStore, _ other: FileFault? = nil) throws -> (ManagedObjectContext, SimulatedHarbour) {
    let harbour = SimulatedHarbour(store, contents: try SimulatedHarbour.contents(store))
    let context = try harbour.context()
    _ = try Voyage.changeNext(context)
    harbour.disk.inject(FileFault(.synchronize, nth: 2, .error(EIO)))
    if let other { harbour.disk.inject(other) }
    let error = try #require(try Self.refusal { try context.save() })
    #expect(error.code == .durabilityUnknown && error.coreDataCode == 134_030 && !context.hasChanges, "\(error)")
    #expect(try harbour.found() == (13, nil))
    harbour.disk.clearFaults()
    return (context, harbour)
  }

  // MARK: RC3

  /// 10,000 saves with `HOLDFAST_TESTS=full`.
  @Test(arguments: FileStore.wholeFile)
  func RC3_shortReadingsAndWritingsMakeTheSameFiles(store: FileStore) throws {
    let random = SeededGenerator("RC3, \(store)")
    // Copies of one store, so that the files are equal to the last byte.
    let contents = try SimulatedHarbour.contents(store, saves: 1)
    let (whole, short) = (SimulatedHarbour(store, contents: contents), SimulatedHarbour(store, contents: contents))
    short.disk.shortenAllTransfers(seed: random.seed)
    let contexts = [try whole.context(), try short.context()]
    let saves = TestTier.count(200, full: 10_000)
    for save in 2...saves {
      for context in contexts { #expect(try Voyage.saveNext(context) == save) }
      guard let expected = whole.contents, let found = short.contents, store.withoutLineage(expected) == store.withoutLineage(found) else {
        Issue.record("Save \(save) made another file.")
        return
      }
      if save % 100 == 0 { for context in contexts { context.reset() } }
      if save % 20 == 0 {
        let (context, other) = (try Self.reopened(contexts[1], short), save)
        #expect(try Voyage.check(context) == (other, nil))
        try context.persistentStoreCoordinator.close()
      }
    }
    #expect(short.disk.count(of: .write) > 3 * whole.disk.count(of: .write))
    #expect(short.disk.count(of: .read) > whole.disk.count(of: .read) && short.disk.names == SimulatedHarbour.names)
  }

  /// Opens a copy of the file, also with short transfers.
  private static func reopened(_ context: ManagedObjectContext, _ harbour: SimulatedHarbour) throws -> ManagedObjectContext {
    let other = SimulatedHarbour(harbour.store, contents: harbour.contents)
    other.disk.shortenAllTransfers(seed: 7)
    return try other.context()
  }

  @Test(arguments: FileStore.wholeFile)
  func RC3_oneByteAtATimeIsEnough(store: FileStore) throws {
    let harbour = SimulatedHarbour(store, contents: try SimulatedHarbour.contents(store))
    harbour.disk.inject(FileFault(.read, .short(1), isPersistent: true))
    harbour.disk.inject(FileFault(.write, .short(1), isPersistent: true))
    let context = try harbour.context()
    try Voyage.saveNext(context)
    #expect(try Voyage.check(context) == (13, nil))
    #expect(try harbour.found() == (13, nil))
    #expect(harbour.disk.count(of: .write) > (harbour.contents?.count ?? .max))
  }

  // MARK: RC6

  @Test(arguments: FileStore.wholeFile)
  func RC6_aFileThatFailedToSynchronizeIsNeverSynchronizedAgain(store: FileStore) throws {
    for number in Self.numbers {
      let harbour = SimulatedHarbour(store, contents: try SimulatedHarbour.contents(store))
      let context = try harbour.context()
      _ = try Voyage.changeNext(context)
      harbour.disk.startRecording()
      harbour.disk.inject(FileFault(.synchronize, .error(number)))
      let error = try #require(try Self.refusal { try context.save() })
      #expect((error.cause as? FileSystemError)?.operation == .synchronize)
      let failed = try #require(harbour.disk.calls.first { $0.operation == .synchronize }).name
      try context.save()
      let synchronized = harbour.disk.calls.filter { $0.operation == .synchronize }.map(\.name)
      #expect(synchronized.count == 3 && synchronized.count { $0 == failed } == 1, "\(number): \(synchronized)")
      #expect(try harbour.found() == (13, nil))
      try context.persistentStoreCoordinator.close()
    }
  }
}
