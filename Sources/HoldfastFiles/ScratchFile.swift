internal import CHoldfastPOSIX

/// A temporary file without a name, whose bytes are mapped into memory as they are written.
///
/// Mapped bytes can be evicted from memory, and are read again when they are used. The file takes space on the disk until it is released with
/// all its segments. When the process ends, nothing remains of it.
///
/// Not thread-safe, except for the segments.
public final class ScratchFile {
  private let handle: StoreFileHandle
  private var segment: Segment?
  /// The offset of the segment in the file.
  private var start: Int64 = 0
  /// The number of bytes of the segment that are used.
  private var used = 0

  private static let segmentByteCount = 16 << 20
  /// A multiple of the page size of every system.
  private static let alignment = 1 << 16

  /// Creates the file in the folder of another one. Only its owner can access it.
  ///
  /// - Returns: Nil if the file can't be created, or if the other one isn't a file of the operating system: what is in an encrypted file
  ///   must not be in another one.
  public init?(beside file: DurableFile) {
    guard file.options.fileSystem is POSIXFileSystem, let folder = file.openFolder else { return nil }
    let fileSystem = POSIXFileSystem(), name = TemporaryName.random(for: folder.name)
    do throws(FileSystemError) { handle = try fileSystem.create(name, in: folder.directory) } catch { return nil }
    // If that fails, `deinit` closes the file.
    do throws(FileSystemError) { try fileSystem.unlink(name, in: folder.directory) } catch { return nil }
  }

  deinit { try? POSIXFileSystem().close(handle) }

  /// Appends bytes.
  ///
  /// - Returns: Their address, which is aligned to 8 bytes, and the segment that must be kept while they are used. Nil if they can't be
  ///   written, for example because the disk is full.
  public func append(_ bytes: UnsafeRawBufferPointer) -> (base: UnsafeRawPointer, segment: Segment)? {
    let count = (bytes.count + 7) & ~7
    guard let segment = segment(for: count) else { return nil }
    do throws(FileSystemError) { try POSIXFileSystem().writeAll(bytes.bytes, to: handle, at: start + Int64(used)) } catch { return nil }
    defer { used += count }
    return (segment.base + used, segment)
  }

  /// A segment with room for a number of bytes; nil if it can't be mapped.
  private func segment(for count: Int) -> Segment? {
    if let segment, used + count <= segment.byteCount { return segment }
    let byteCount = max(Self.segmentByteCount, (count + Self.alignment - 1) / Self.alignment * Self.alignment)
    let next = start + Int64(segment?.byteCount ?? 0)
    guard let base = holdfast_map(handle.number, next, byteCount) else { return nil }
    let mapped = Segment(base, byteCount)
    (segment, start, used) = (mapped, next, 0)
    return mapped
  }

  /// A range of the file in memory.
  public final class Segment: @unchecked Sendable {  // because nothing writes to the bytes through this address
    fileprivate let base: UnsafeRawPointer
    fileprivate let byteCount: Int

    fileprivate init(_ base: UnsafeRawPointer, _ byteCount: Int) { (self.base, self.byteCount) = (base, byteCount) }

    deinit { holdfast_unmap(base, byteCount) }

    /// Evicts bytes of the segment from memory, and others of the same pages.
    public func evict(_ bytes: UnsafeRawBufferPointer) {
      guard let address = bytes.baseAddress else { return }
      let offset = address - base, first = offset & ~(ScratchFile.alignment - 1)
      let end = min((offset + bytes.count + ScratchFile.alignment - 1) & ~(ScratchFile.alignment - 1), byteCount)
      if first < end { holdfast_evict(base + first, end - first) }
    }
  }
}
