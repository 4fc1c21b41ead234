import Foundation
import HoldfastFiles
import HoldfastStore
import TestSupport
import Testing

/// Temporary files whose pieces are read again when they are used.
@Suite struct ScratchFileTests {
  private func piece(_ byte: UInt8, _ count: Int, in scratch: ScratchFile) throws -> ScratchFile.Piece {
    let piece = [UInt8](repeating: byte, count: count).withUnsafeBytes { scratch.append($0) }
    return try #require(piece, "\(count) bytes weren't written.")
  }

  private func bytes(_ piece: ScratchFile.Piece, _ count: Int) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(start: piece.base, count: count)
  }

  @Test func bytesAreTheSameAfterTheyWereEvicted() throws {
    let folder = TemporaryFolder(), file = try DurableFile(path: folder.file("store"))
    defer { file.close() }
    var pieces: [(byte: UInt8, count: Int, piece: ScratchFile.Piece)] = []
    do {
      let scratch = try #require(ScratchFile(beside: file))
      #expect(folder.names.isEmpty, "\(folder.names)")
      for (number, count) in [1, 8, 100_000, 1 << 16, 20 << 20, 0, 9 << 20, 3].enumerated() {
        pieces.append((UInt8(number + 1), count, try piece(UInt8(number + 1), count, in: scratch)))
      }
    }
    // The pieces outlast the file.
    for _ in 0..<2 {
      for (byte, count, piece) in pieces {
        #expect(Int(bitPattern: piece.base) % 8 == 0)
        piece.load()
        piece.load()
        #expect(TestBytes.areAll(byte, bytes(piece, count)), "\(count) bytes")
        piece.evict()
        piece.evict()
      }
    }
    #expect(folder.names.isEmpty, "\(folder.names)")
  }

  #if os(Linux)
    /// A folder that is only read, for example by a preview, has the same contents and the same time.
    @Test func theFolderDoesNotChange() throws {
      let folder = TemporaryFolder(), file = try DurableFile(path: folder.file("store"))
      defer { file.close() }
      func time() throws -> Date? { try FileManager.default.attributesOfItem(atPath: folder.path)[.modificationDate] as? Date }
      let long = Date(timeIntervalSince1970: 1_000_000)
      try FileManager.default.setAttributes([.modificationDate: long], ofItemAtPath: folder.path)
      let scratch = try #require(ScratchFile(beside: file))
      _ = try piece(1, 100_000, in: scratch)
      // Some file systems have no files without names: O_TMPFILE.
      let unnamed = open(folder.path, O_RDWR | O_DIRECTORY | 0o20_000_000, 0o600)
      if unnamed < 0 { return }
      close(unnamed)
      #expect(try time() == long)
    }

    @Test func bytesThatAreLostAreZeroAndAFailure() throws {
      let folder = TemporaryFolder(), file = try DurableFile(path: folder.file("store"))
      defer { file.close() }
      let scratch = try #require(ScratchFile(beside: file))
      let lost = try piece(1, 1_000, in: scratch)
      #expect(folder.truncateUnnamedFiles() == 1)
      // Behind the gap.
      let kept = try piece(2, 1_000, in: scratch)
      kept.load()
      #expect(bytes(kept, 1_000).allSatisfy { $0 == 2 } && scratch.failure == nil)
      lost.load()
      #expect(bytes(lost, 1_000).allSatisfy { $0 == 0 } && scratch.failure?.number == ErrorNumber.wrongContents)
    }
  #endif

  @Test(.ownThreads) func usingEvictedBytesEndsTheProcess() async {
    await #expect(processExitsWith: .failure) {
      mustTrap {
        let folder = TemporaryFolder(), file = try DurableFile(path: folder.file("store"))
        let piece = [UInt8](repeating: 1, count: 8).withUnsafeBytes { ScratchFile(beside: file)?.append($0) }
        if let piece { print(piece.base.load(as: UInt8.self)) }
      }
    }
  }

  @Test(.ownThreads) func allPiecesThatWereLoadedAreEvictedTogether() async {
    for number in 0..<2 {
      await #expect(processExitsWith: .failure) { [number = number as Int] in
        mustTrap {
          let folder = TemporaryFolder(), file = try DurableFile(path: folder.file("store"))
          let scratch = try #require(ScratchFile(beside: file, recordsLoaded: true)), tests = ScratchFileTests()
          let pieces = try [tests.piece(1, 8, in: scratch), tests.piece(2, 8, in: scratch)]
          for _ in 0..<2 {
            // Only those that were loaded since the last time are recorded.
            for piece in pieces { piece.load() }
            if pieces.map({ $0.base.load(as: UInt8.self) }) != [1, 2] { _exit(0) }
            scratch.evictLoaded()
          }
          print(pieces[number].base.load(as: UInt8.self))
        }
      }
    }
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
