/// An open file, closed when the last reference is released.
final class KeptFile: Sendable {
  let handle: StoreFileHandle
  let fileSystem: any StoreFileSystem

  init(_ handle: StoreFileHandle, of fileSystem: any StoreFileSystem) {
    self.handle = handle
    self.fileSystem = fileSystem
  }

  deinit { try? fileSystem.close(handle) }
}
