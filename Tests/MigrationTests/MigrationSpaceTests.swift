import Foundation
import Holdfast
import HoldfastAtomicStore
import HoldfastCoreData
import HoldfastStore
import TestSupport
import Testing

#if canImport(Glibc)
  import Glibc
#endif

/// Migrations, plans, mapping models, copies and moves on disks of any size.
@Suite(.serialized, .ownThreads) struct MigrationSpaceTests {
  #if os(Linux)
    @Test(arguments: MigratedStore.allCases)
    func RC5_onADiskOfAnySizeAMigrationIsCompleteOrLeavesTheOldStore(store: MigratedStore) async throws {
      guard System.isRoot else { return print("Skipped: only root can mount a small disk.") }
      let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
        [store = store as MigratedStore] in
        guard System.leaveMounts() else { return print("Skipped: this root may not mount a small disk.") }
        let filled = try FilledStore(store)
        for kind in SmallDiskMigration.Kind.migrations(of: store) { try SmallDiskMigration(filled, kind).run() }
      }
      report(child)
    }

    @Test(arguments: MigratedStore.allCases)
    func RC5_onADiskOfAnySizeACopyOrAMoveIsCompleteOrChangesNothing(store: MigratedStore) async throws {
      guard System.isRoot else { return print("Skipped: only root can mount a small disk.") }
      let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
        [store = store as MigratedStore] in
        guard System.leaveMounts() else { return print("Skipped: this root may not mount a small disk.") }
        let filled = try FilledStore(store)
        for kind in SmallDiskMigration.Kind.copies(of: store) { try SmallDiskMigration(filled, kind).run() }
      }
      report(child)
    }

    /// The file is replaced by a migrated copy.
    @Test(arguments: [MigratedStore.sqlite, .coreData])
    func RC5_onADiskOfAnySizeAMigrationWithoutALogIsCompleteOrLeavesTheOldStore(store: MigratedStore) async throws {
      guard System.isRoot else { return print("Skipped: only root can mount a small disk.") }
      let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
        [store = store as MigratedStore] in
        guard System.leaveMounts() else { return print("Skipped: this root may not mount a small disk.") }
        let filled = try FilledStore(store, hasLog: false)
        for kind in [SmallDiskMigration.Kind.automatic, .plan] { try SmallDiskMigration(filled, kind).run() }
      }
      report(child)
    }

    @Test(arguments: [MigratedStore.json, .xml, .binary])
    func RC5_onADiskOfFewInodesAMigrationOrACopyIsCompleteOrChangesNothing(store: MigratedStore) async throws {
      guard System.isRoot else { return print("Skipped: only root can mount a small disk.") }
      let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
        [store = store as MigratedStore] in
        guard System.leaveMounts() else { return print("Skipped: this root may not mount a small disk.") }
        let filled = try FilledStore(store), other = store == .json ? MigratedStore.binary : .json
        let kinds: [SmallDiskMigration.Kind] = [.automatic, .plan, .mappingModel, .copy(other), .replacement(store), .move(other)]
        for kind in kinds { try SmallDiskMigration(filled, kind).runWithFewInodes() }
      }
      report(child)
    }

    @Test(arguments: MigratedStore.allCases)
    func RC5_theEstimatedSpaceIsEnoughAndNotFarTooMuch(store: MigratedStore) async throws {
      guard System.isRoot else { return print("Skipped: only root can mount a small disk.") }
      let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
        [store = store as MigratedStore] in
        guard System.leaveMounts() else { return print("Skipped: this root may not mount a small disk.") }
        try SmallDiskMigration(FilledStore(store), .automatic).compareEstimate()
      }
      report(child)
    }
  #endif
}

#if os(Linux)
  /// The store that is put on each disk.
  private struct FilledStore {
    let store: MigratedStore
    let hasLog: Bool
    let old: ManagedObjectModel
    let place: MigratedStore.Place
    /// Its contents.
    let lines: [String]

    init(_ store: MigratedStore, hasLog: Bool = true) throws {
      (self.store, self.hasLog) = (store, hasLog)
      old = try model(EntityDescription("Dog", attributes: [.init("name", .string, default: ""), Self.photo]))
      place = MigratedStore.Place(store, hasLog: hasLog)
      // External files aren't copied, so they are a small part.
      let name = String(repeating: "n", count: 2_000)
      try place.fill(old) { context in
        for number in 0..<200 { try context.add("Dog", "\(number)", ["name": .string(name)]) }
        try context.add("Dog", "large", ["photo": .data(Data(repeating: 7, count: 200_000))])
      }
      lines = try place.contents(old)
    }

    static let photo = AttributeDescription("photo", .binaryData, isOptional: true, allowsExternalBinaryDataStorage: true)
  }

  /// Runs in a separate process.
  private struct SmallDiskMigration {
    enum Kind {
      case automatic
      case plan
      /// A plan whose code changes so few objects that a whole file is written only when it is closed.
      case planOfFewChanges
      /// A plan whose rows are in a temporary file.
      case spilledPlan
      /// A plan with a stage without code and a resumable one.
      case stages
      case mappingModel
      /// A mapping model that inserts all objects again.
      case insertingMappingModel
      /// A copy in a store of some type.
      case copy(MigratedStore)
      /// A copy over another store.
      case replacement(MigratedStore)
      /// A move over another store.
      case move(MigratedStore)

      static func migrations(of store: MigratedStore) -> [Kind] {
        let isWhole = store != .sqlite && store != .coreData
        return [.automatic, .plan, .stages, .mappingModel, .insertingMappingModel] + (isWhole ? [.planOfFewChanges, .spilledPlan] : [])
      }

      static func copies(of store: MigratedStore) -> [Kind] {
        let all = [MigratedStore.json, .xml, .binary, .sqlite], same = store == .coreData ? .sqlite : store
        let some = TestTier.isFull ? all : [same, same == .sqlite ? .json : .sqlite]
        let copies = TestTier.isFull ? all : Array(all.shuffled().prefix(2))
        return copies.map(Kind.copy) + some.map(Kind.replacement) + some.map(Kind.move)
      }

      /// The type of the store to which another one is copied.
      var destination: MigratedStore? {
        switch self {
        case .copy(let store), .replacement(let store), .move(let store): store
        default: nil
        }
      }

      /// Whether there is another store at the destination.
      var replaces: Bool {
        switch self {
        case .replacement, .move: true
        default: false
        }
      }

      /// The note of an object after a migration.
      ///
      /// - Parameter line: The object's former contents.
      func note(_ line: String) -> String {
        switch self {
        case .automatic: "?"
        case .planOfFewChanges: line.contains("0:") ? "X" : "?"
        default: "X"
        }
      }

      /// What is enough for everything, in sizes of the store.
      var sufficientRoom: Int {
        switch self {
        case .automatic, .plan, .copy(.json): 4
        default: 12
        }
      }
    }

    private static let former = ["Dog former: name= photo=200000 bytes 8"]

    private let store: MigratedStore
    private let kind: Kind
    private let hasLog: Bool
    private let old: ManagedObjectModel
    /// A version between both.
    private let between: ManagedObjectModel
    private let new: ManagedObjectModel
    /// The store that is put on each disk, with the store at its destination.
    private let original: MigratedStore.Place
    private let lines: (old: [String], new: [String])

    init(_ filled: FilledStore, _ kind: Kind) throws {
      (store, self.kind, hasLog, old) = (filled.store, kind, filled.hasLog, filled.old)
      let photo = FilledStore.photo
      between = try model(EntityDescription("Ant"), EntityDescription("Dog", attributes: [.init("name", .string, default: ""), photo]))
      new = try model(
        EntityDescription("Ant"),
        EntityDescription("Dog", attributes: [.init("name", .string, default: ""), photo, .init("note", .string, default: "?")]))
      original = try kind.replaces ? filled.place.copied() : filled.place
      lines = (filled.lines, filled.lines.map { $0.replacing(" photo=", with: " note=\(kind.note($0)) photo=") })
      if kind.replaces, let destination = Self.destination(kind, original) {
        let lines = try Self.contents(of: destination, old) {
          try $0.add("Dog", "former", ["photo": .data(Data(repeating: 8, count: 200_000))])
        }
        demand(lines == Self.former, "The destination has \(lines).")
      }
    }

    // MARK: Disks

    func run() throws {
      let size = byteCount
      let rooms = rooms
      var refused = 0, whole = 0
      for room in rooms {
        let kilobytes = (size + room) / 1_024 + 16
        let place = MigratedStore.Place(store, hasLog: hasLog)
        System.mountDisk(at: place.folder.path, "size=\(kilobytes)k")
        defer { System.unmountDisk(at: place.folder.path) }
        copyFiles(to: place)
        if try succeeds(place, "\(kilobytes) kB", "size=64m") { whole += 1 } else { refused += 1 }
      }
      demand(refused >= 1 && whole >= 1, "\(kind): \(refused) refused, \(whole) whole")
      print(
        "REPORT RC5, \(store), \(kind): \(refused) disks too small, \(whole) large enough, for a store of \(size) bytes, free: \(rooms)")
    }

    /// The free space of each disk: too little, a random one that may be enough for a part of the work, and enough.
    private var rooms: [Int] {
      let size = byteCount
      if TestTier.isFull { return Array(stride(from: 0, through: 6 * size, by: size / 8)) + [kind.sufficientRoom * size] }
      return [0, Int.random(in: 1...20) * (size / 8), kind.sufficientRoom * size]
    }

    /// The free inodes of each disk: too few, each third number from a random one, and enough.
    private static var inodes: [Int] {
      if TestTier.isFull { return Array(0...40) }
      return [0] + stride(from: Int.random(in: 1...3), through: 15, by: 3) + [40]
    }

    func runWithFewInodes() throws {
      let inodes = Self.inodes
      var refused = 0, whole = 0
      for free in inodes {
        let place = MigratedStore.Place(store)
        System.mountDisk(at: place.folder.path, "size=64m,nr_inodes=1000")
        defer { System.unmountDisk(at: place.folder.path) }
        copyFiles(to: place)
        var status = statvfs()
        demand(statvfs(place.folder.path, &status) == 0, "The disk can't be examined.")
        let used = Int(status.f_files) - Int(status.f_ffree)
        System.mountDisk(at: place.folder.path, "size=64m,nr_inodes=\(used + free)", again: true)
        if try succeeds(place, "\(free) inodes", "size=64m,nr_inodes=1000") { whole += 1 } else { refused += 1 }
      }
      demand(refused >= 1 && whole >= 1, "\(kind): \(refused) refused, \(whole) whole")
      print("REPORT RC5, \(store), \(kind): \(refused) disks with too few inodes, \(whole) with enough, free: \(inodes)")
    }

    /// Changes a store on a small disk. If that is refused, nothing is changed, and it succeeds on a larger one.
    private func succeeds(_ place: MigratedStore.Place, _ disk: String, _ larger: String) throws -> Bool {
      var isRefused = false
      do { try change(place) } catch let error as StoreError {
        isRefused = true
        demand(error.code == .diskFull && error.isRetryable, "\(kind), \(disk): \(error)")
        let names = place.folder.namesOfAllLevels
        System.mountDisk(at: place.folder.path, larger, again: true)
        demand(try place.contents(old) == lines.old, "\(kind), \(disk): the old store has other contents.")
        // If only the original of a move couldn't be removed, the copy remains.
        let hasCopy = try isMoveWithCopy(place), left = names.filter { isLeft($0) && !hasCopy }
        demand(left.isEmpty, "\(kind), \(disk): \(left)")
        if kind.replaces && !hasCopy {
          demand(try contentsOfDestination(place) == Self.former, "\(kind), \(disk): the destination has other contents.")
        }
        try change(place)
      }
      System.mountDisk(at: place.folder.path, larger, again: true)
      try survey(place, disk)
      return !isRefused
    }

    /// Whether a file or folder is neither the store's nor one that may remain: a lock, a log of SQLite's, a folder for external files.
    private func isLeft(_ name: String) -> Bool {
      !original.folder.namesOfAllLevels.contains(name)
        && !["-wal", "-shm", ".lock", "_SUPPORT", "_EXTERNAL_DATA"].contains { name.hasSuffix($0) }
    }

    private func isMoveWithCopy(_ place: MigratedStore.Place) throws -> Bool {
      guard case .move = kind else { return false }
      return try contentsOfDestination(place) == lines.old
    }

    // MARK: Files

    /// What the files take on a disk, which has whole pages.
    private var byteCount: Int {
      original.folder.namesOfAllLevels.reduce(0) { size, name in
        size + (TestFile.status(original.folder.file(name)).map { (Int($0.st_size) + 4_095) & ~4_095 } ?? 0)
      }
    }

    private func copyFiles(to place: MigratedStore.Place) {
      for name in original.folder.namesOfAllLevels {
        // A folder is copied with its contents.
        try? FileManager.default.copyItem(atPath: original.folder.file(name), toPath: place.folder.file(name))
      }
    }

    /// Finds the smallest disk, and compares it with the preview.
    func compareEstimate() throws {
      let description = original.description.migrating(from: [old])
      guard let estimate = try PersistentStoreCoordinator.previewMigration(of: description, to: new)?.estimatedByteCount else {
        complain("There is no estimate.")
      }
      let size = byteCount
      func isEnough(_ byteCount: Int) throws -> Bool {
        let place = MigratedStore.Place(store)
        System.mountDisk(at: place.folder.path, "size=\((size + byteCount) / 1_024)k")
        defer { System.unmountDisk(at: place.folder.path) }
        copyFiles(to: place)
        do { try change(place) } catch let error as StoreError where error.code == .diskFull { return false }
        return true
      }
      // Lock files, an index of the log and folders.
      let others = 64 << 10
      demand(try isEnough(Int(estimate) + others), "\(estimate) bytes aren't enough for \(size) bytes.")
      demand(try !isEnough(Int(estimate) / 4), "A quarter of \(estimate) bytes is enough for \(size) bytes.")
      var (least, most) = (0, Int(estimate) + others)
      while most - least > 16_384 {
        let middle = (least + most) / 2
        if try isEnough(middle) { most = middle } else { least = middle }
      }
      print("REPORT RC5, \(store), a store of \(size) bytes needs \(most), estimated \(estimate)")
    }

    // MARK: Changes

    private func change(_ place: MigratedStore.Place) throws {
      typealias Coordinator = PersistentStoreCoordinator
      let source = place.description, destination = Self.destination(kind, place) ?? source
      switch kind {
      case .automatic: try Coordinator.migratePersistentStore(source.migrating(from: [old]), to: new)
      case .plan: try Coordinator.migratePersistentStore(source, with: plan())
      case .planOfFewChanges:
        var plan = MigrationPlan(from: old)
        plan.add(new, named: "notes") { stage in
          try stage.forEach("Dog") { old, new in
            if case .string(let tag) = old["tag"], tag.hasSuffix("0") { try new.setValue("X", forKey: "note") }
          }
        }
        try Coordinator.migratePersistentStore(source, with: plan)
      case .spilledPlan: try RowSpill.$residentByteCount.withValue(0) { try Coordinator.migratePersistentStore(source, with: plan()) }
      case .stages:
        var plan = MigrationPlan(from: old)
        plan.add(between)
        plan.add(new, named: "notes", isResumable: true) { stage in
          try stage.forEach("Dog", savingEvery: 50) { _, new in try new.setValue("X", forKey: "note") }
        }
        try Coordinator.migratePersistentStore(source, with: plan)
      case .mappingModel: try Coordinator.migratePersistentStore(source, with: mappingPlan(filter: nil))
      case .insertingMappingModel: try Coordinator.migratePersistentStore(source, with: mappingPlan(filter: "tag != nil"))
      case .copy: try Coordinator.copyPersistentStore(source, to: destination, model: old)
      case .replacement: try Coordinator.replacePersistentStore(destination, withCopyOf: source, model: old)
      case .move: try Coordinator.movePersistentStore(source, to: destination, model: old)
      }
    }

    private func plan() -> MigrationPlan {
      var plan = MigrationPlan(from: old)
      plan.add(new, named: "notes") { stage in try stage.forEach("Dog") { _, new in try new.setValue("X", forKey: "note") } }
      return plan
    }

    /// - Parameter filter: A filter of a mapping, whose objects are inserted; nil if they keep their keys.
    private func mappingPlan(filter: String?) throws -> MigrationPlan {
      typealias Property = MappingModelText.Property
      let folder = TemporaryFolder(), note = TestExpression.function("uppercase:", [.text("x")]).archive
      var text = MappingModelText()
      text.map(
        "Dog", to: "Dog", filter: filter,
        attributes: [Property("name"), Property("note", expression: note), Property("photo"), Property("tag")])
      var plan = MigrationPlan(from: old)
      try withExtendedLifetime(folder) { try plan.add(new, mappingModelsAt: [try text.write(to: folder)]) }
      return plan
    }

    // MARK: Contents

    /// The store to which another one is copied.
    private static func destination(_ kind: Kind, _ place: MigratedStore.Place) -> StoreDescription? {
      kind.destination.map { $0.description(at: place.folder.file("copy")) }
    }

    /// Opens a store of the old model, changes and saves objects, and returns its contents.
    private static func contents(
      of description: StoreDescription, _ model: ManagedObjectModel, _ body: (ManagedObjectContext) throws -> Void = { _ in }
    ) throws -> [String] {
      let coordinator = try PersistentStoreCoordinator(model: model, store: description)
      defer { try? coordinator.close() }
      let context = try ManagedObjectContext(coordinator: coordinator, classes: [])
      try body(context)
      try context.save()
      return try Contents(of: context).lines
    }

    private func contentsOfDestination(_ place: MigratedStore.Place) throws -> [String] {
      try Self.destination(kind, place).map { try Self.contents(of: $0, old) } ?? []
    }

    private func survey(_ place: MigratedStore.Place, _ disk: String) throws {
      guard let destination = Self.destination(kind, place) else {
        return demand(try place.contents(new) == lines.new, "\(kind), \(disk): the new store has other contents.")
      }
      demand(try Self.contents(of: destination, old) == lines.old, "\(kind), \(disk): the copy has other contents.")
      if case .move = kind { return demand(!place.folder.exists("Store"), "\(kind), \(disk): the original exists.") }
      demand(try place.contents(old) == lines.old, "\(kind), \(disk): the source has other contents.")
      let digests = try [place.description, destination].map { try PersistentStoreCoordinator.graphDigest(of: $0, model: old) }
      demand(digests[0] == digests[1], "\(kind), \(disk): the copy has another digest.")
    }
  }
#endif
