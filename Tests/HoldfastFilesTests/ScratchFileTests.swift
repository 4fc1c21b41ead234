import Foundation
import HoldfastFiles
import HoldfastStore
import TestSupport
import Testing

/// Temporary files whose bytes are mapped into memory.
@Suite struct ScratchFileTests {
  @Test func bytesAreTheSameAfterTheyWereEvicted() throws {
    let folder = TemporaryFolder(), file = try DurableFile(path: folder.file("store"))
    defer { file.close() }
    var pieces: [(byte: UInt8, count: Int, base: UnsafeRawPointer, segment: ScratchFile.Segment)] = []
    do {
      let scratch = try #require(ScratchFile(beside: file))
      #expect(folder.names.isEmpty, "\(folder.names)")
      // More than one segment, and a piece that is larger than one.
      for (number, count) in [1, 8, 100_000, 7 << 20, 20 << 20, 0, 9 << 20, 3].enumerated() {
        let byte = UInt8(number + 1), bytes = [UInt8](repeating: byte, count: count)
        guard let (base, segment) = bytes.withUnsafeBytes({ scratch.append($0) }) else {
          Issue.record("\(count) bytes weren't written.")
          return
        }
        #expect(Int(bitPattern: base) % 8 == 0)
        pieces.append((byte, count, base, segment))
      }
    }
    // The segments outlast the file.
    for _ in 0..<2 {
      for (byte, count, base, segment) in pieces {
        let bytes = UnsafeRawBufferPointer(start: base, count: count)
        #expect(bytes.allSatisfy { $0 == byte }, "\(count) bytes")
        segment.evict(bytes)
      }
    }
    #expect(folder.names.isEmpty, "\(folder.names)")
  }

  @Test func nothingIsWrittenBesideAFileOfAnotherFileSystem() throws {
    struct Other: ForwardingFileSystem { let base: any StoreFileSystem = POSIXFileSystem() }
    let folder = TemporaryFolder()
    let file = try DurableFile(path: folder.file("store"), options: DurableFileOptions(fileSystem: Other()))
    defer { file.close() }
    #expect(ScratchFile(beside: file) == nil)
  }

  @Test func aClosedFileHasNone() throws {
    let folder = TemporaryFolder(), file = try DurableFile(path: folder.file("store"))
    file.close()
    #expect(ScratchFile(beside: file) == nil)
  }
}
