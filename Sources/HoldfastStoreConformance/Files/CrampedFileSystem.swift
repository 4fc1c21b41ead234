public import HoldfastFiles

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#else
  import Darwin
#endif

extension StoreFileSystem {
  /// Returns the same file system with a maximum file size. Writing more fails as on a full disk.
  ///
  /// Use it for ``StorePlace/cramped`` of a store that consists of one file.
  public func withRoom(_ byteCount: Int64) -> any StoreFileSystem { CrampedFileSystem(base: self, room: byteCount) }
}

private struct CrampedFileSystem: ForwardingFileSystem {
  let base: any StoreFileSystem
  let room: Int64

  func write(_ file: StoreFileHandle, at offset: Int64, _ bytes: RawSpan) throws(FileSystemError) -> Int {
    if offset + Int64(bytes.byteCount) > room { throw FileSystemError(.write, name: file.name, number: ENOSPC) }
    return try base.write(file, at: offset, bytes)
  }

  func allocate(_ byteCount: Int64, for file: StoreFileHandle) throws(FileSystemError) {
    if byteCount > room { throw FileSystemError(.allocate, name: file.name, number: ENOSPC) }
    try base.allocate(byteCount, for: file)
  }
}
