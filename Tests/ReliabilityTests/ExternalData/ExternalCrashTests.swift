import Foundation
import HoldfastAtomicStore
import HoldfastFiles
import HoldfastSQLiteStore
import HoldfastStore
import HoldfastStoreConformance
import TestSupport
import Testing

@testable import Holdfast

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Killed processes, power losses, failing calls and full disks while values are stored in external files.
@Suite(.serialized, .ownThreads) struct ExternalCrashTests {
  /// 6 times, 500 with `HOLDFAST_TESTS=full`.
  @Test(arguments: FileStore.all)
  func RA5_afterAKillEveryNamedFileIsCompleteAndNoOtherFileIsLeft(kind: FileStore) async throws {
    let rounds = TestTier.count(6, full: 500)
    let gallery = try GalleryFolder(kind)
    let random = SeededGenerator("External data, kill \(kind), \(rounds) rounds")
    let child = await #expect(processExitsWith: .success, observing: [\.standardErrorContent, \.standardOutputContent]) {
      [kind = kind as FileStore, path = gallery.folder.path as String, seed = random.seed as UInt64, rounds = rounds as Int] in
      var random = SeededGenerator(seed: seed)
      let report = try KilledGallery(kind, path).run(rounds, &random)
      print("REPORT \(report)")
    }
    let output = String(decoding: child?.standardOutputContent ?? [], as: UTF8.self)
    for line in output.split(separator: "\n") where line.contains("REPORT") { print(line) }
    #expect(output.contains("REPORT"), "\(String(decoding: child?.standardErrorContent ?? [], as: UTF8.self))")
  }

  @Test(arguments: FileStore.wholeFile, DurableFileOptions.Durability.allCases)
  func RB1_afterAPowerLossEveryNamedFileExistsAndNoOther(kind: FileStore, durability: DurableFileOptions.Durability) throws {
    for step in PowerLostGallery.Step.allCases {
      var lost = PowerLostGallery(kind, step, durability)
      try lost.run()
      print("power losses: \(lost)")
      #expect(lost.faults.isEmpty, "\(lost)")
      #expect(lost.summary.stateCount > 20 && lost.olds > 0 && lost.news > 0, "\(lost)")
    }
  }

  /// The external files of the former store are removed once it is replaced or destroyed. So that is durable by then, whatever the options
  /// say. The bug: with `normal`, the former store could come back without these files.
  @Test(arguments: FileStore.wholeFile, DurableFileOptions.Durability.allCases)
  func RB1_afterAPowerLossAReplacedOrDestroyedStoreIsWholeOrGone(kind: FileStore, durability: DurableFileOptions.Durability) throws {
    for replaces in [true, false] {
      let disk = SimulatedFileSystem()
      let former = try PowerLostGallery.make(kind, "/gallery", disk, durability, seed: 1)
      let other = try PowerLostGallery.make(kind, "/other", disk, durability, seed: 5)
      func description(_ path: String) -> StoreDescription { PowerLostGallery.description(kind, path, disk, durability) }
      disk.startRecording()
      if replaces {
        try PersistentStoreCoordinator.replacePersistentStore(description("/gallery"), withCopyOf: description("/other"))
      } else {
        try PersistentStoreCoordinator.destroyPersistentStore(description("/gallery"))
      }
      disk.mark(1)
      let expected = replaces ? other : nil
      var faults: [String] = []
      disk.forEachCrashState { state in
        do {
          let found = try PowerLostGallery.images(kind, "/gallery", state.fileSystem, durability)
          if found != former && found != expected { faults.append("neither the former store nor the new state: \(state)") }
          if state.lastMark == 1 && found != expected { faults.append("the change is lost: \(state)") }
        } catch {
          faults.append("\(error): \(state)")
        }
      }
      #expect(faults.isEmpty, "\(replaces): \(faults.count), \(faults.first ?? "")")
    }
  }

  /// It is documented as durable when it returns, whatever the options say.
  @Test(arguments: FileStore.wholeFile) func RB2_theMetadataOfAClosedStoreSurviveAPowerLoss(kind: FileStore) throws {
    let disk = SimulatedFileSystem()
    _ = try PowerLostGallery.make(kind, "/gallery", disk, .normal, seed: 1)
    disk.startRecording()
    try PersistentStoreCoordinator.setMetadata(["port": "Bergen"], for: PowerLostGallery.description(kind, "/gallery", disk, .normal))
    disk.mark(1)
    var lost = 0
    try disk.forEachCrashState { state in
      let found = try PersistentStoreCoordinator.metadata(for: PowerLostGallery.description(kind, "/gallery", state.fileSystem, .normal))
      if state.lastMark == 1 && found.userInfo != ["port": "Bergen"] { lost += 1 }
    }
    #expect(lost == 0)
  }

  /// Every file-system call of a save fails once, with each of a few errors.
  @Test(arguments: FileStore.wholeFile, [ENOSPC, EIO, EACCES])
  func RC1_aCallThatFailsLosesNothingAndLeavesNothingBehind(kind: FileStore, number: Int32) throws {
    var injected = 0
    for operation in StoreFileOperation.allCases {
      var call = 1
      while true {
        let disk = SimulatedFileSystem()
        let context = try PowerLostGallery.context(kind, disk, .full)
        try PowerLostGallery.fill(context)
        disk.inject(FileFault(operation, nth: call, .error(number)))
        let before = disk.count(of: operation)
        let photos = try Gallery.photos(context)
        photos[0].image = Gallery.bytes(50, 30)
        photos[1].image = nil
        Gallery.insert(7, Gallery.bytes(51, 40), context)
        var failure: StoreError?
        do { try context.save() } catch let error as StoreError { failure = error }
        let reached = disk.count(of: operation) - before >= call
        disk.clearFaults()
        if failure == nil || failure?.code == .durabilityUnknown {
          #expect(failure != nil || !context.hasChanges)
        } else {
          injected += 1
          #expect(context.hasChanges, "\(operation) \(call)")
          try context.save()
        }
        try context.persistentStoreCoordinator.close()
        let fault = try PowerLostGallery.fault(kind, disk, [Gallery.bytes(50, 30), nil, Gallery.bytes(3, 5), Gallery.bytes(51, 40)])
        #expect(fault == nil, "\(operation), call \(call), errno \(number): \(fault ?? "")")
        #expect(disk.openCount == 0)
        if !reached { break }
        call += 1
      }
    }
    print("\(kind): \(injected) saves failed and were repeated, errno \(number)")
    #expect(injected > 15)
  }

  /// On a mounted disk of one megabyte, which needs root.
  @Test(arguments: FileStore.all)
  func RC5_aFullDiskLosesNothingAndTheSameSaveSucceedsOnceThereIsSpace(kind: FileStore) async throws {
    #if os(Linux)
      guard System.isRoot else { return print("Skipped: only root can mount a small disk.") }
      let folder = TemporaryFolder()
      let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
        [path = folder.path as String, kind = kind as FileStore] in
        guard FullDisk.mountSmallDisk(path) else { return print("Skipped: this root may not mount a small disk.") }
        let store = path + "/gallery.store"
        let context = try Gallery.context(kind.description(at: store, Gallery.small))
        let photo = Gallery.insert(1, Gallery.bytes(1, 50_000), context)
        try context.save()
        let data = path + "/" + kind.supportFolderName + "/_EXTERNAL_DATA"
        let files = try FileManager.default.contentsOfDirectory(atPath: data)
        for size in [2_000_000, 900_000] {
          photo.image = Gallery.bytes(2, size)
          Gallery.insert(Int64(size), Gallery.bytes(3, 500_000), context)
          for _ in 0..<2 {
            let error = FullDisk.refusal(of: context)
            precondition(error?.code == .diskFull && error?.isRetryable == true, "\(String(describing: error))")
            precondition(context.hasChanges && photo.image == Gallery.bytes(2, size))
            let left = try FileManager.default.contentsOfDirectory(atPath: data)
            precondition(left == files, "\(left)")
          }
          context.rollback()
          precondition(photo.image == Gallery.bytes(1, 50_000))
        }
        photo.image = Gallery.bytes(2, 200_000)
        try context.save()
        try context.persistentStoreCoordinator.close()
        let again = try Gallery.context(kind.description(at: store, Gallery.small))
        let images = try Gallery.photos(again).map(\.image)
        precondition(images == [Gallery.bytes(2, 200_000)])
        let left = try FileManager.default.contentsOfDirectory(atPath: data).count
        precondition(left == 1)
      }
      for line in String(decoding: child?.standardOutputContent ?? [], as: UTF8.self).split(separator: "\n") where line.contains("Skipped")
      { print(line) }
    #endif
  }

  /// A reader prevents the commit of a rollback journal. The values are in their files by then.
  @Test func aCommitThatASQLiteStoreRefusesLeavesNoFile() throws {
    let gallery = try GalleryFolder(.sqlite(.delete))
    let options = SQLiteStoreOptions(journalMode: .delete, busyTimeout: .seconds(0.05), externalData: Gallery.small)
    let context = try Gallery.context(.sqlite(at: gallery.path, options: options))
    let photo = Gallery.insert(1, Gallery.bytes(1, 4000), context)
    try context.save()
    let before = gallery.files
    photo.image = Gallery.bytes(2, 5000)
    let reader = try BareDatabase(gallery.path)
    try reader.run("BEGIN")
    _ = try reader.rows("SELECT COUNT(*) FROM ZPHOTO")
    for _ in 0..<3 {
      let refused = try #require(throws: StoreError.self) { try context.save() }
      #expect(refused.code == .locked && context.hasChanges, "\(refused)")
      #expect(gallery.files == before && gallery.notes.isEmpty)
    }
    try reader.run("COMMIT")
    try context.save()
    #expect(try gallery.files == GalleryFolder.names(context).compactMap { $0 } && gallery.files != before && gallery.notes.isEmpty)
    try context.persistentStoreCoordinator.close()
  }

  /// Opening the store doesn't remove files of a save that another process is making.
  @Test(arguments: FileStore.all)
  func filesOfAnotherProcessesUnfinishedSaveStay(kind: FileStore) async throws {
    let gallery = try GalleryFolder(kind)
    _ = try gallery.make([Gallery.bytes(1, 4000)])
    let child = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
      [kind = kind as FileStore, path = gallery.path as String] in
      let store = kind.description(at: path, Gallery.small).makeStore()
      _ = try store.open(model: Gallery.model)
      let prepared = try store.preparedInsertion()
      // A second process opens and closes the store meanwhile.
      let other = System.fork()
      if other == 0 {
        let second = try? Gallery.context(kind.description(at: path, Gallery.small))
        try? second?.persistentStoreCoordinator.close()
        _exit(second == nil ? 1 : 0)
      }
      var status: Int32 = 0
      waitpid(other, &status, 0)
      try prepared.commit()
      try store.close()
    }
    #expect(String(decoding: child?.standardErrorContent ?? [], as: UTF8.self).contains("Fatal") == false)
    let context = try gallery.open()
    #expect(try Gallery.photos(context).map(\.image) == [Gallery.bytes(1, 4000), Gallery.bytes(2, 5000)])
    try context.persistentStoreCoordinator.close()
    #expect(gallery.files.count == 2 && gallery.notes.isEmpty)
  }

  /// A forked process inherits the save, its files and its lock. They belong to its parent.
  @Test(arguments: FileStore.all, [false, true])
  func aForkedProcessThatEndsTheSaveOfItsParentRemovesNoFiles(kind: FileStore, commits: Bool) async throws {
    let gallery = try GalleryFolder(kind)
    _ = try gallery.make([Gallery.bytes(1, 4000)])
    await #expect(processExitsWith: .success) {
      [kind = kind as FileStore, path = gallery.path as String, commits = commits as Bool] in
      let store = kind.description(at: path, Gallery.small).makeStore()
      _ = try store.open(model: Gallery.model)
      let prepared = try store.preparedInsertion()
      let ended = System.inForkedChild {
        if commits { return (try? prepared.commit()) == nil ? 0 : 1 }
        prepared.abort()
        return 0
      }
      precondition(ended == 0, "The forked process ended with \(ended).")
      // If the lock were released, this would remove the files as those of an interrupted save.
      let other = System.inForkedChild {
        let second = try? Gallery.context(kind.description(at: path, Gallery.small))
        try? second?.persistentStoreCoordinator.close()
        return second == nil ? 1 : 0
      }
      // SQLite in a forked process believes that the process itself has the locks of its parent.
      precondition(other == 0 || kind == .sqlite(.wal), "The other process couldn't open the store.")
      _ = try prepared.commit()
      try store.close()
    }
    let context = try gallery.open()
    #expect(try Gallery.photos(context).map(\.image) == [Gallery.bytes(1, 4000), Gallery.bytes(2, 5000)])
    try context.persistentStoreCoordinator.close()
    #expect(gallery.files.count == 2 && gallery.notes.isEmpty)
  }
}

extension IncrementalStore {
  /// A prepared save that inserts a photo with an external file.
  fileprivate func preparedInsertion() throws -> any PreparedSave {
    let builder = RowBatchBuilder(entity: Gallery.model.entities[0], identity: try identityForTests())
    let key = try reserveKeys(entity: 0, count: 1)[0]
    try builder.append(key: key, version: 1, values: [.data(Gallery.bytes(2, 5000)), .int64(2), .int64(0), .null])
    var request = SaveRequest()
    var changes = SaveRequest.EntityChanges(entity: 0)
    changes.inserted = [builder.seal()]
    request.entities = [changes]
    return try prepare(request)
  }

  /// The identity of an open store, for rows that a test builds itself.
  fileprivate func identityForTests() throws -> StoreIdentity {
    let view = try beginRead(.latest)
    defer { view.end() }
    let sink = IdentitySink()
    try fetch(FetchPlan(entity: 0, concreteEntities: [0]), in: view, into: sink)
    guard let identity = sink.identity else { throw StoreError(.general, operation: "look", reason: "The store has no rows.") }
    return identity
  }
}

private final class IdentitySink: RowSink {
  var identity: StoreIdentity?

  func take(_ batch: RowBatch, _ rows: RowSelection) -> SinkDemand {
    identity = batch.idPrefix?.identity
    return .enough
  }
}

/// A store whose writers are killed.
private struct KilledGallery {
  let kind: FileStore
  let folder: String
  private var path: String { folder + "/gallery.store" }
  private static let photoCount: Int64 = 6

  init(_ kind: FileStore, _ folder: String) {
    self.kind = kind
    self.folder = folder
  }

  func run(_ rounds: Int, _ random: inout SeededGenerator) throws -> String {
    var saves: Int64 = 0, interrupted = 0, round = 0
    // Further rounds follow until a kill has interrupted a save. Their kills come later, because a slow machine begins to save later.
    while round < rounds || interrupted == 0 {
      var acks: [Int32] = [0, 0]
      precondition(pipe(&acks) == 0)
      let child = System.fork()
      if child == 0 {
        try? save(acks[1])
        _exit(1)
      }
      close(acks[1])
      // Some processes are killed while they open the store, others after one or two saves, however long those take.
      var byte: UInt8 = 0
      for _ in 0..<round % 3 { precondition(read(acks[0], &byte, 1) == 1, "A process ended by itself in round \(round).") }
      close(acks[0])
      usleep(UInt32.random(in: 0...150_000 * UInt32(1 + round / rounds), using: &random))
      kill(child, SIGKILL)
      var status: Int32 = 0
      waitpid(child, &status, 0)
      precondition(status & 0x7F == SIGKILL, "A process ended by itself in round \(round).")
      let support = folder + "/" + kind.supportFolderName
      let notes = ((try? FileManager.default.contentsOfDirectory(atPath: support)) ?? []).filter { $0 != "_EXTERNAL_DATA" }
      if !notes.isEmpty { interrupted += 1 }
      saves = try apart { try survey(round) }
      round += 1
    }
    precondition(saves > round / 10, "Only \(saves) saves were made.")
    return "\(round) kills, \(saves) saves, \(interrupted) times a save with files was interrupted"
  }

  /// Saves in a loop. Each save gives all photos the next revision, deletes one and inserts one, and then writes a byte.
  private func save(_ acks: Int32) throws {
    // The later bytes aren't read.
    signal(SIGPIPE, SIG_IGN)
    let context = try Gallery.context(kind.description(at: path, Gallery.small))
    while true {
      var photos = try Gallery.photos(context)
      let revision = (photos.map(\.revision).max() ?? 0) + 1
      if photos.count >= Self.photoCount, let first = photos.first {
        context.delete(first)
        photos.removeFirst()
      }
      for photo in photos {
        photo.revision = revision
        photo.image = Gallery.image(photo.number, revision)
      }
      let number = (photos.last?.number ?? 0) + 1
      Gallery.insert(number, Gallery.image(number, revision), context).revision = revision
      try context.save()
      var byte: UInt8 = 1
      _ = write(acks, &byte, 1)
    }
  }

  /// Checks that all values belong to one save, that every file is named by a row, and that no note is left.
  private func survey(_ round: Int) throws -> Int64 {
    let context = try Gallery.context(kind.description(at: path, Gallery.small))
    let photos = try Gallery.photos(context)
    precondition(Set(photos.map(\.revision)).count <= 1, "Round \(round): parts of two saves.")
    for photo in photos {
      let expected = Gallery.image(photo.number, photo.revision)
      let found = try photo.value(forKey: "image")
      precondition(found == (expected.map { .data($0) } ?? .null), "Round \(round): photo \(photo.number).")
    }
    let names = try GalleryFolder.names(context).compactMap { $0 }.sorted()
    try context.persistentStoreCoordinator.close()
    let support = folder + "/" + kind.supportFolderName
    let files = ((try? FileManager.default.contentsOfDirectory(atPath: support + "/_EXTERNAL_DATA")) ?? []).sorted()
    precondition(files == names, "Round \(round): \(files) where rows name \(names).")
    let notes = ((try? FileManager.default.contentsOfDirectory(atPath: support)) ?? []).filter { $0 != "_EXTERNAL_DATA" }
    precondition(notes.isEmpty, "Round \(round): \(notes)")
    return photos.first?.revision ?? 0
  }
}

/// A store on a simulated disk that loses power during a save.
private struct PowerLostGallery: CustomStringConvertible {
  /// The changes of the save.
  enum Step: CaseIterable {
    /// Stores the first external value, which also creates the folders.
    case firstFile
    /// Replaces an external value, removes another one and adds a third.
    case replacing
    /// Deletes two photos.
    case deleting
  }

  static let options = ExternalDataOptions(threshold: 8)
  let kind: FileStore
  let step: Step
  let durability: DurableFileOptions.Durability
  var summary = CrashSummary(stateCount: 0, isExhaustive: true, seed: 0)
  var faults: [String] = []
  var olds = 0
  var news = 0

  init(_ kind: FileStore, _ step: Step, _ durability: DurableFileOptions.Durability) {
    self.kind = kind
    self.step = step
    self.durability = durability
  }

  var description: String {
    "\(kind), \(step), \(durability): HOLDFAST_SEED=\(summary.seed), \(summary.stateCount) states, old \(olds), new \(news), "
      + "faults \(faults.count): \(faults.first ?? "none")"
  }

  static func context(
    _ kind: FileStore, _ disk: SimulatedFileSystem, _ durability: DurableFileOptions.Durability
  ) throws -> ManagedObjectContext {
    try Gallery.context(description(kind, "/gallery", disk, durability))
  }

  static func description(
    _ kind: FileStore, _ path: String, _ disk: SimulatedFileSystem, _ durability: DurableFileOptions.Durability
  ) -> StoreDescription {
    let file = DurableFileOptions(durability: durability, lockTimeout: .seconds(0), fileSystem: disk)
    return kind.description(at: path, WholeFileOptions(file: file, externalData: options))
  }

  /// Makes and closes a store with two photos, whose images are in files.
  static func make(
    _ kind: FileStore, _ path: String, _ disk: SimulatedFileSystem, _ durability: DurableFileOptions.Durability, seed: Int64
  ) throws -> [StoreValue?] {
    let context = try Gallery.context(description(kind, path, disk, durability))
    let images = [Gallery.bytes(seed, 30), Gallery.bytes(seed + 1, 40)]
    for (number, image) in images.enumerated() { Gallery.insert(Int64(number), image, context) }
    try context.save()
    try context.persistentStoreCoordinator.close()
    return images.map { .data($0) }
  }

  /// The images in a store, with those in files; nil if the store doesn't exist.
  static func images(
    _ kind: FileStore, _ path: String, _ disk: SimulatedFileSystem, _ durability: DurableFileOptions.Durability
  ) throws -> [StoreValue?]? {
    if disk.contents(of: String(path.dropFirst())) == nil { return nil }
    let context = try Gallery.context(description(kind, path, disk, durability))
    defer { try? context.persistentStoreCoordinator.close() }
    return try Gallery.photos(context).map { try $0.value(forKey: "image").storeValue }
  }

  /// Inserts two values that are stored in files, and a small one.
  static func fill(_ context: ManagedObjectContext) throws {
    for (number, size) in [20, 25, 5].enumerated() { Gallery.insert(Int64(number), Gallery.bytes(Int64(number + 1), size), context) }
    try context.save()
  }

  mutating func run() throws {
    let disk = SimulatedFileSystem()
    let context = try Self.context(kind, disk, durability)
    if step == .firstFile { Gallery.insert(0, nil, context) } else { try Self.fill(context) }
    try context.save()
    let before = try Gallery.photos(context).map(\.image)
    disk.startRecording()
    let photos = try Gallery.photos(context)
    switch step {
    case .firstFile: photos[0].image = Gallery.bytes(9, 30)
    case .replacing:
      photos[0].image = Gallery.bytes(9, 30)
      photos[1].image = nil
      photos[2].image = Gallery.bytes(10, 12)
    case .deleting: for photo in photos.prefix(2) { context.delete(photo) }
    }
    try context.save()
    disk.mark(1)
    let after = try Gallery.photos(context).map(\.image)
    try context.persistentStoreCoordinator.close()
    let seed = ProcessInfo.processInfo.environment["HOLDFAST_SEED"].flatMap { UInt64($0) }
    summary = disk.forEachCrashState(seed: seed) { state in
      do {
        let context = try Self.context(kind, state.fileSystem, durability)
        let images = try Gallery.photos(context).map { try $0.value(forKey: "image").storeValue }
        try context.persistentStoreCoordinator.close()
        let found = images.map { value -> Data? in if case .data(let data)? = value { data } else { nil } }
        if found == before { olds += 1 }
        if found == after { news += 1 }
        if found != before && found != after { faults.append("a mixture: \(state)") }
        // A save removes replaced files after it is durable, so it synchronizes whatever the options say.
        if state.lastMark == 1 && found != after { faults.append("the save is lost: \(state)") }
        if let fault = try Self.fault(kind, state.fileSystem, found) { faults.append("\(fault): \(state)") }
      } catch {
        faults.append("\(error): \(state)")
      }
    }
  }

  /// A description of the first difference between a closed store and the expected images; nil if there is none.
  static func fault(_ kind: FileStore, _ disk: SimulatedFileSystem, _ images: [Data?]) throws -> String? {
    let context = try context(kind, disk, .full)
    let found = try Gallery.photos(context).map(\.image)
    let names = try GalleryFolder.names(context).compactMap { $0 }.sorted()
    try context.persistentStoreCoordinator.close()
    if found != images { return "other images" }
    let support = ".gallery_SUPPORT/", data = support + "_EXTERNAL_DATA/"
    let files = disk.names.filter { $0.hasPrefix(data) && $0 != data.dropLast() }.map { String($0.dropFirst(data.count)) }
    if files != names { return "\(files) where rows name \(names)" }
    let left = disk.names.filter { $0.hasPrefix(support) && !$0.hasPrefix(data) && $0 + "/" != data }
    return left.isEmpty ? nil : "left: \(left)"
  }
}
