package import HoldfastFiles
import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// A file system that counts the bytes read, and fails beyond a limit.
///
/// Tests use it to limit the work of a store. Unlike a measured time, the count is the same on every machine.
package final class ReadCountingFileSystem: ForwardingFileSystem {
  package let base: any StoreFileSystem
  private let limit: Int
  private let count = Atomic<Int>(0)

  /// - Parameter limit: The maximum number of bytes; reading more fails with `EIO`. Defaults to 1 GiB.
  package init(_ base: any StoreFileSystem = POSIXFileSystem(), limit: Int = 1 << 30) {
    self.base = base
    self.limit = limit
  }

  /// The number of bytes that were read.
  package var byteCount: Int { count.load(ordering: .relaxed) }

  package func read(_ file: StoreFileHandle, at offset: Int64, into output: inout OutputRawSpan) throws(FileSystemError) {
    guard byteCount < limit else { throw FileSystemError(.read, name: file.name, number: EIO) }
    let before = output.byteCount
    try base.read(file, at: offset, into: &output)
    count.add(output.byteCount - before, ordering: .relaxed)
  }
}
