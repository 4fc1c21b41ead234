import Foundation
import Holdfast
import HoldfastJSONStore
import HoldfastStore
import TestSupport
import Testing

/// Migrations, plans and copies on disks of any size.
@Suite(.serialized, .ownThreads) struct MigrationSpaceTests {
  #if os(Linux)
    @Test(arguments: MigratedStore.allCases)
    func RC5_onADiskOfAnySizeAMigrationIsCompleteOrLeavesTheOldStore(store: MigratedStore) async throws {
      guard System.isRoot else { return print("Skipped: only root can mount a small disk.") }
      let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
        [store = store as MigratedStore] in
        guard System.leaveMounts() else { return print("Skipped: this root may not mount a small disk.") }
        for kind in SmallDiskMigration.Kind.allCases { try SmallDiskMigration(store, kind).run() }
      }
      report(child)
    }

    @Test(arguments: MigratedStore.allCases)
    func RC5_theEstimatedSpaceIsEnoughAndNotFarTooMuch(store: MigratedStore) async throws {
      guard System.isRoot else { return print("Skipped: only root can mount a small disk.") }
      let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
        [store = store as MigratedStore] in
        guard System.leaveMounts() else { return print("Skipped: this root may not mount a small disk.") }
        try SmallDiskMigration(store, .automatic).compareEstimate()
      }
      report(child)
    }
  #endif
}

#if os(Linux)
  /// Runs in a separate process.
  private struct SmallDiskMigration {
    enum Kind: CaseIterable {
      case automatic
      case plan
      case copy
    }

    private let store: MigratedStore
    private let kind: Kind
    private let old: ManagedObjectModel
    private let new: ManagedObjectModel
    /// The store that is put on each disk.
    private let original: MigratedStore.Place
    private let lines: (old: [String], new: [String])

    init(_ store: MigratedStore, _ kind: Kind) throws {
      (self.store, self.kind) = (store, kind)
      let photo = AttributeDescription("photo", .binaryData, isOptional: true, allowsExternalBinaryDataStorage: true)
      old = try model(EntityDescription("Dog", attributes: [.init("name", .string, default: ""), photo]))
      new = try model(
        EntityDescription("Ant"),
        EntityDescription("Dog", attributes: [.init("name", .string, default: ""), photo, .init("note", .string, default: "?")]))
      original = MigratedStore.Place(store)
      // External files aren't copied, so they are a small part.
      let name = String(repeating: "n", count: 2_000)
      try original.fill(old) { context in
        for number in 0..<200 { try context.add("Dog", "\(number)", ["name": .string(name)]) }
        try context.add("Dog", "large", ["photo": .data(Data(repeating: 7, count: 200_000))])
      }
      let before = try original.contents(old)
      lines = (before, before.map { $0.replacing(" photo=", with: " note=? photo=") })
    }

    func run() throws {
      let names = original.folder.namesOfAllLevels,
        size = names.reduce(0) { $0 + (TestFile.status(original.folder.file($1)).map { Int($0.st_size) } ?? 0) }
      var refused = 0, whole = 0
      // Larger disks have space for everything.
      let step = TestTier.isFull ? size / 1_024 / 8 : 2 * size / 1_024
      for kilobytes in stride(from: size / 1_024 + 16, through: 7 * size / 1_024, by: step) {
        let place = MigratedStore.Place(store)
        System.mountDisk(at: place.folder.path, "size=\(kilobytes)k")
        defer { System.unmountDisk(at: place.folder.path) }
        for name in names {
          try? FileManager.default.copyItem(atPath: original.folder.file(name), toPath: place.folder.file(name))
        }
        do {
          try change(place)
          whole += 1
        } catch let error as StoreError {
          refused += 1
          demand(error.code == .diskFull, "\(kind), \(kilobytes) kB: \(error)")
          let left = place.folder.namesOfAllLevels.filter { $0.contains(".holdfast-") || $0.hasPrefix("copy") }
          demand(left.isEmpty, "\(kind), \(kilobytes) kB: \(left)")
          System.mountDisk(at: place.folder.path, "size=64m", again: true)
          demand(try place.contents(old) == lines.old, "\(kind), \(kilobytes) kB: the old store has other contents.")
          try change(place)
        }
        System.mountDisk(at: place.folder.path, "size=64m", again: true)
        try survey(place, kilobytes)
      }
      demand(refused >= 1 && whole >= 1, "\(kind): \(refused) refused, \(whole) whole")
      print("REPORT RC5, \(store), \(kind): \(refused) disks too small, \(whole) large enough, for a store of \(size) bytes")
    }

    /// Finds the smallest disk, and compares it with the preview.
    func compareEstimate() throws {
      let description = original.description.migrating(from: [old])
      guard let estimate = try PersistentStoreCoordinator.previewMigration(of: description, to: new)?.estimatedByteCount else {
        complain("There is no estimate.")
      }
      let names = original.folder.namesOfAllLevels
      // Files take whole pages.
      let size = names.reduce(0) { $0 + (TestFile.status(original.folder.file($1)).map { (Int($0.st_size) + 4_095) & ~4_095 } ?? 0) }
      func isEnough(_ byteCount: Int) throws -> Bool {
        let place = MigratedStore.Place(store)
        System.mountDisk(at: place.folder.path, "size=\((size + byteCount) / 1_024)k")
        defer { System.unmountDisk(at: place.folder.path) }
        for name in names {
          try? FileManager.default.copyItem(atPath: original.folder.file(name), toPath: place.folder.file(name))
        }
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

    private func change(_ place: MigratedStore.Place) throws {
      switch kind {
      case .automatic: try PersistentStoreCoordinator.migratePersistentStore(place.description.migrating(from: [old]), to: new)
      case .plan:
        var plan = MigrationPlan(from: old)
        plan.add(new, named: "notes") { stage in try stage.forEach("Dog") { _, new in try new.setValue("?", forKey: "note") } }
        try PersistentStoreCoordinator.migratePersistentStore(place.description, with: plan)
      case .copy: try PersistentStoreCoordinator.copyPersistentStore(place.description, to: copy(of: place), model: old)
      }
    }

    private func copy(of place: MigratedStore.Place) -> StoreDescription { .json(at: place.folder.file("copy.json")) }

    private func survey(_ place: MigratedStore.Place, _ kilobytes: Int) throws {
      if kind != .copy {
        return demand(try place.contents(new) == lines.new, "\(kind), \(kilobytes) kB: the new store has other contents.")
      }
      demand(try place.contents(old) == lines.old, "\(kilobytes) kB: the source has other contents.")
      let digests = try [place.description, copy(of: place)].map { try PersistentStoreCoordinator.graphDigest(of: $0, model: old) }
      demand(digests[0] == digests[1], "\(kilobytes) kB: the copy has other contents.")
    }
  }
#endif
