import Foundation
import Holdfast
import HoldfastSQLiteStore
import HoldfastStore
import TestSupport
import Testing

#if os(Linux)
  /// The memory that copies take, as the operating system counts it, in a process of their own.
  @Suite(.serialized, .ownThreads) struct CopyMemoryTests {
    private static func fill(_ path: String, _ count: Int) throws {
      let model = try ManagedObjectModel(entities: [
        EntityDescription("Photo", attributes: [.init("image", .binaryData, allowsExternalBinaryDataStorage: true)])
      ])
      let coordinator = try PersistentStoreCoordinator(model: model, store: .sqlite(at: path))
      let context = try ManagedObjectContext(coordinator: coordinator, classes: [])
      for number in 0..<count {
        try context.insert(entityNamed: "Photo").setValue(.data(Data(repeating: UInt8(number), count: 8 << 20)), forKey: "image")
        try context.save()
        context.reset()
      }
      try coordinator.close()
    }

    /// The source's rows have only the names of their files, so the size of a part of the copy follows from the files.
    @Test func aCopyOfLargeValuesDoesNotTakeMemoryForAllOfThem() async throws {
      if TestTier.isThreadSanitized { return }
      let folder = TemporaryFolder(), path = folder.file("Photos.sqlite"), small = folder.file("Small.sqlite")
      try Self.fill(path, 16)
      try Self.fill(small, 1)
      let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
        [path = path as String, small = small as String] in
        // Running code for the first time takes memory too.
        try PersistentStoreCoordinator.copyPersistentStore(.sqlite(at: small), to: .sqlite(at: small + ".copy.sqlite"))
        let taken = try ProcessMemory.taken {
          let copy = try PersistentStoreCoordinator.copyPersistentStore(.sqlite(at: path), to: .sqlite(at: path + ".copy.sqlite"))
          demand(copy.digest.objectCount == 16, "\(copy.digest)")
        }
        demand(taken <= 96 << 20, "\(taken) bytes for 16 values of 8 MiB.")
        print("REPORT copy of large values: \(taken >> 20) MiB for 16 values of 8 MiB")
      }
      report(child)
    }
  }
#endif
