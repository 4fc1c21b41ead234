import TestSupport
import Testing

@testable import Holdfast

/// The memory of changed objects.
@Suite struct BlockPoolTests {
  /// Blocks of random sizes, each filled with a pattern of its own, in random order. Prints its seed.
  @Test func blocksNeverOverlap() {
    var random = SeededGenerator()
    let pool = BlockPool()
    var blocks: [(address: UnsafeMutableRawPointer, count: Int, mark: UInt8)] = []
    func check(_ block: (address: UnsafeMutableRawPointer, count: Int, mark: UInt8)) {
      let bytes = UnsafeRawBufferPointer(start: block.address, count: block.count)
      #expect(bytes.allSatisfy { $0 == block.mark }, "seed \(random.seed)")
    }
    for step in 0..<TestTier.count(20_000, full: 400_000) {
      // Phases of growing and shrinking, so that chunks become full and empty.
      if blocks.isEmpty || Int.random(in: 0..<100, using: &random) < (step / 3000 % 2 == 0 ? 70 : 30) {
        let count = Int.random(in: 1...(Bool.random(using: &random) ? 600 : 64), using: &random)
        let address = pool.allocate(count), mark = UInt8.random(in: 0...255, using: &random)
        #expect(UInt(bitPattern: address) % 16 == 0)
        address.initializeMemory(as: UInt8.self, repeating: mark, count: count)
        blocks.append((address, count, mark))
      } else {
        blocks.swapAt(Int.random(in: blocks.indices, using: &random), blocks.count - 1)
        let block = blocks.removeLast()
        check(block)
        pool.deallocate(block.address, block.count)
      }
    }
    for block in blocks {
      check(block)
      pool.deallocate(block.address, block.count)
    }
    // One chunk of each size is kept.
    #expect(pool.chunkCount <= 16)
  }

  @Test(arguments: TestStore.allCases) func theMemoryOfSavedObjectsIsReturned(_ store: TestStore) throws {
    let place = try store.makePlace(), context = try place.context()
    func run() throws {
      let dogs = (0..<2000).map { context.dog("A dog with a name of about forty characters \($0)") }
      for dog in dogs { dog.friends.insert(dogs[0]) }
      let count = context.core.pool.chunkCount
      try context.save()
      // The lists stay in memory, the rows don't.
      #expect(count > 30)
      #expect(context.core.pool.chunkCount <= count * 2 / 3)
      for dog in dogs { dog.age += 1 }
      context.rollback()
      #expect(context.core.pool.chunkCount <= count * 2 / 3)
    }
    try run()
    // One chunk of each size is kept.
    #expect(context.core.pool.chunkCount <= 16)
  }
}
