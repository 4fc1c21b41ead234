import Holdfast
import HoldfastMemoryStore
import TestSupport
import Testing

#if canImport(Glibc)
  import Glibc
#endif

/// A new store gets a UUID of its own, also in a process that can't open any more files: Foundation reads those of `UUID()` from a device
/// file, and ignores that it can't be opened.
@Suite(.serialized, .ownThreads) struct StoreUUIDTests {
  private let folder = TemporaryFolder()

  #if os(Linux)
    @Test func memoryStoresThatAreCreatedWithoutFreeDescriptorsHaveDifferentUUIDs() async {
      let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
        let model = Harbour.model
        let coordinator = try Limits.with(RLIMIT_NOFILE, 3) {
          try PersistentStoreCoordinator(model: model, stores: [.memory(), .memory()])
        }
        demand(Set(coordinator.persistentStores.map(\.identifier)).count == 2, "Two stores have one UUID.")
        print("REPORT Two memory stores were created without descriptors")
      }
      report(child)
    }

    /// A file that was created remains, also if the store couldn't be opened.
    @Test(arguments: FileStore.all) func storesThatAreCreatedWithFewDescriptorsHaveDifferentUUIDs(store: FileStore) async {
      let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
        [folder = folder.path as String, store = store as FileStore] in
        var uuids: Set<String> = [], count = 0
        for budget in 3...40 {
          for name in ["a", "b"] {
            let description = store.description(at: "\(folder)/\(name)\(budget)")
            _ = Limits.with(RLIMIT_NOFILE, budget) { try? Harbour.context(description) }
            let context = try Harbour.context(description)
            uuids.insert(context.persistentStoreCoordinator.storeIdentifier)
            try context.persistentStoreCoordinator.close()
            count += 1
          }
        }
        demand(uuids.count == count, "\(count) stores have \(uuids.count) UUIDs.")
        print("REPORT \(store): \(count) stores were created with few descriptors")
      }
      report(child)
    }
  #endif
}
