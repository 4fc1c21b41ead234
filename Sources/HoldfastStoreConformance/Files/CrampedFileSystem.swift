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
  /// The same file system, on which no file has room for more than so many bytes: writing more fails as it does on a full disk.
  /// For ``StorePlace/cramped`` of a store that lies in one file.
  public func withRoom(_ byteCount: Int64) -> any StoreFileSystem { CrampedFileSystem(base: self, room: byteCount) }
}

private struct CrampedFileSystem: ForwardingFileSystem {
  let base: any StoreFileSystem
  let room: Int64

  func write(_ file: StoreFileHandle, at offset: Int64, _ bytes: UnsafeRawBufferPointer) throws(FileSystemError) -> Int {
    if offset + Int64(bytes.count) > room { throw FileSystemError(.write, name: file.name, number: ENOSPC) }
    return try base.write(file, at: offset, bytes)
  }

  func allocate(_ byteCount: Int64, for file: StoreFileHandle) throws(FileSystemError) {
    if byteCount > room { throw FileSystemError(.allocate, name: file.name, number: ENOSPC) }
    try base.allocate(byteCount, for: file)
  }
}
