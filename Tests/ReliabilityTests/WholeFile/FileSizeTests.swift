import Holdfast
import HoldfastAtomicStore
import HoldfastStoreConformance
import Testing

/// The maximum file size that a whole-file store reads and writes.
@Suite struct FileSizeTests {
  private func description(_ harbour: SimulatedHarbour, _ largest: Int) -> StoreDescription {
    harbour.store.description(
      at: SimulatedHarbour.path,
      file: DurableFileOptions(lockTimeout: .seconds(0), maximumByteCount: Int64(largest), fileSystem: harbour.disk))
  }

  @Test(arguments: FileStore.wholeFile)
  func RG4_aFileOfTheLargestSizeIsReadAndALargerOneRefused(store: FileStore) throws {
    let contents = try SimulatedHarbour.contents(store)
    for largest in [contents.count + 1, contents.count] {
      let context = try Harbour.context(description(SimulatedHarbour(store, contents: contents), largest))
      #expect(try Voyage.check(context) == (12, nil))
      try context.persistentStoreCoordinator.close()
    }
    let harbour = SimulatedHarbour(store, contents: contents)
    let error = try #require(throws: StoreError.self) { try Harbour.context(description(harbour, contents.count - 1)) }
    #expect(error.code == .tooLarge && error.path == SimulatedHarbour.path && error.operation == "open the store", "\(error)")
    #expect(harbour.contents == contents && harbour.disk.openCount == 0)
    #expect(DurableFileOptions().maximumByteCount == 256 << 20)
  }

  @Test(arguments: FileStore.wholeFile)
  func RG4_aFileOfTheLargestSizeIsWrittenAndALargerOneRefused(store: FileStore) throws {
    // Repeating a save of the same file gives the same size.
    let contents = try SimulatedHarbour.contents(store)
    let size = try saved(SimulatedHarbour(store, contents: contents), .max).contents?.count ?? 0
    #expect(size > contents.count)
    for largest in [size + 1, size] {
      let harbour = try saved(SimulatedHarbour(store, contents: contents), largest)
      #expect(try harbour.contents?.count == size && harbour.found() == (13, nil), "\(largest) bytes")
    }
    let harbour = SimulatedHarbour(store, contents: contents)
    let context = try Harbour.context(description(harbour, size - 1))
    _ = try Voyage.changeNext(context)
    for _ in 0..<2 {
      let error = try #require(throws: StoreError.self) { try context.save() }
      #expect([.tooLarge, .unstorableValue].contains(error.code) && error.path == SimulatedHarbour.path && context.hasChanges, "\(error)")
      #expect(harbour.contents == contents && harbour.temporaryNames.isEmpty)
    }
    // A save that fits succeeds.
    context.rollback()
    try context.persistentStoreCoordinator.close()
    let other = try Harbour.context(description(harbour, size))
    try Voyage.saveNext(other)
    try other.persistentStoreCoordinator.close()
    #expect(try harbour.found() == (13, nil))
  }

  private func saved(_ harbour: SimulatedHarbour, _ largest: Int) throws -> SimulatedHarbour {
    let context = try Harbour.context(description(harbour, largest))
    try Voyage.saveNext(context)
    try context.persistentStoreCoordinator.close()
    return harbour
  }
}
