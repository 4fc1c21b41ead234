import Foundation
import HoldfastModelFile
import HoldfastStore
import Testing

@Suite struct ModelCacheTests {
  private static func failure(_ bytes: [UInt8], _ options: ModelFileOptions = ModelFileOptions()) -> ModelFileError? {
    do throws(ModelFileError) {
      _ = try CompiledModel(modelCache: bytes, path: "store", options: options)
      return nil
    } catch { return error }
  }

  /// Bytes in an uncompressed DEFLATE stream. Each block contains its length and the complement of its length.
  private static func stored(_ bytes: [UInt8]) -> [UInt8] {
    var out: [UInt8] = [], rest = bytes[...]
    repeat {
      let block = rest.prefix(65_535)
      rest = rest.dropFirst(65_535)
      let size = UInt16(block.count)
      out += [rest.isEmpty ? 1 : 0, UInt8(size & 255), UInt8(size >> 8), UInt8(~size & 255), UInt8(~size >> 8)] + block
    } while !rest.isEmpty
    return out
  }

  @Test func aPackedArchiveIsAModel() throws {
    let bytes = ZooArchive().bytes()
    #expect(try CompiledModel(modelCache: Self.stored(bytes)).model == CompiledModel(bytes: bytes).model)
  }

  @Test func damagedStreamsAreRefused() {
    let packed = Self.stored(ZooArchive().bytes())
    for count in stride(from: 0, to: packed.count, by: 97) { #expect(Self.failure(Array(packed[..<count]))?.code == .malformed) }
    #expect(Self.failure(packed + [0])?.reason == "There are bytes after the end of the compressed data.")
    #expect(Self.failure([7])?.path == "store")
  }

  @Test func whatWouldUnpackToFarTooMuchIsRefused() {
    // A block with fixed codes: one zero, then copies of 258 zeros, each with a code of 8 bits and a distance of 5.
    var bits: [Bool] = [true, true, false] + [false, false, true, true, false, false, false, false]
    for _ in 0..<8_000 { bits += [true, true, false, false, false, true, false, true] + Array(repeating: false, count: 5) }
    bits += Array(repeating: false, count: 7)
    while bits.count % 8 != 0 { bits.append(false) }
    let bomb = stride(from: 0, to: bits.count, by: 8).map { start in
      (0..<8).reduce(UInt8(0)) { $0 | (bits[start + $1] ? 1 << UInt8($1) : 0) }
    }
    #expect(bomb.count < 14_000)
    let error = Self.failure(bomb)
    // 2,064,001 zeros aren't an archive. Streams that expand more than 200 times aren't even unpacked.
    #expect(error?.code == .notAModel || error?.code == .tooLarge)
    var small = ModelFileOptions()
    small.maximumByteCount = 100_000
    #expect(Self.failure(bomb, small)?.code == .tooLarge)
  }
}
