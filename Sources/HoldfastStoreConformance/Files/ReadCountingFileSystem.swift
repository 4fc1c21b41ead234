package import HoldfastFiles
import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#elseif canImport(Darwin)
  import Darwin
#endif

/// The operating system's files. It counts the bytes read, and fails beyond a limit.
///
/// Tests use it to limit the work of a store. Unlike a measured time, the count is the same on every machine.
package final class ReadCountingFileSystem: ForwardingFileSystem {
  package let base: any StoreFileSystem = POSIXFileSystem()
  /// The maximum number of bytes. Reading more fails with `EIO`.
  private static let limit = 1 << 30
  private let count = Atomic<Int>(0)

  package init() {}

  /// The number of bytes that were read.
  package var byteCount: Int { count.load(ordering: .relaxed) }

  package func read(_ file: StoreFileHandle, at offset: Int64, into output: inout OutputRawSpan) throws(FileSystemError) {
    guard byteCount < Self.limit else { throw FileSystemError(.read, name: file.name, number: EIO) }
    let before = output.byteCount
    try base.read(file, at: offset, into: &output)
    count.add(output.byteCount - before, ordering: .relaxed)
  }
}
