/// The offsets and sizes of the chunks in an encrypted file.
///
/// On disk: do not change.
///
/// ```text
/// ┌────────┬───────────────┬───────────────┬─────┬──────────────────┐
/// │ header │ chunk 0       │ chunk 1       │  …  │ last chunk       │
/// │ 64     │ 28 + 16,384   │ 28 + 16,384   │     │ 28 + 1 to 16,384 │
/// └────────┴───────────────┴───────────────┴─────┴──────────────────┘
/// ```
///
/// A chunk's number, and whether it is the last one, are authenticated. So chunks can't be exchanged, left out or appended. A file without
/// contents has no chunks.
enum SealedLayout {
  /// The size of the header in bytes.
  static let headerByteCount: Int64 = 64
  /// The size of a chunk's contents in bytes, except for the last chunk.
  static let chunkByteCount: Int64 = 16_384
  /// The number of bytes by which a sealed chunk is longer than its contents.
  static let overhead: Int64 = 28
  private static let sealedChunkByteCount = chunkByteCount + overhead

  /// The size of the contents of a file with the given size.
  ///
  /// An incomplete chunk of at most 28 bytes at the end has no contents. Opening such a file fails if there is a chunk before it.
  static func byteCount(ofSealed size: Int64) -> Int64 {
    let chunks = max(size - headerByteCount, 0)
    return chunks / sealedChunkByteCount * chunkByteCount + max(chunks % sealedChunkByteCount - overhead, 0)
  }

  /// The size of a file with the given number of bytes of contents.
  static func sealedByteCount(of byteCount: Int64) -> Int64 {
    guard byteCount > 0 else { return headerByteCount }
    return headerByteCount + byteCount + (lastChunk(of: byteCount) + 1) * overhead
  }

  /// The number of the last chunk. `byteCount` isn't 0.
  static func lastChunk(of byteCount: Int64) -> Int64 { (byteCount - 1) / chunkByteCount }

  /// The offset of a chunk in the file.
  static func offset(ofChunk chunk: Int64) -> Int64 { headerByteCount + chunk * sealedChunkByteCount }

  /// The contents that a chunk has in a file with the given number of bytes.
  static func range(ofChunk chunk: Int64, in byteCount: Int64) -> Range<Int64> {
    let start = chunk * chunkByteCount
    return start..<max(min(start + chunkByteCount, byteCount), start)
  }

  /// The bytes that are authenticated together with a chunk: its number, little-endian, and 1 for the last chunk.
  static func associatedBytes(ofChunk chunk: Int64, isLast: Bool) -> [UInt8] {
    (0..<8).map { UInt8(truncatingIfNeeded: chunk >> (8 * $0)) } + [isLast ? 1 : 0]
  }
}
