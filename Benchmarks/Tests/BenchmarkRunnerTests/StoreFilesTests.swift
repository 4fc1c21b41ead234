import BenchmarkRunner
import Foundation
import Testing

@Suite struct StoreFilesTests {
  @Test("A store is measured, copied and removed together with the files beside it")
  func companions() throws {
    let folder = NSTemporaryDirectory() + "store-files-" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let store = StoreFiles(folder + "/store")
    #expect(store.size == nil)
    try Data(count: 100).write(to: URL(filePath: store.path))
    try Data(count: 11).write(to: URL(filePath: store.path + "-wal"))
    try Data(count: 7).write(to: URL(filePath: store.path + "-other"))
    #expect(store.size == 111)
    let copy = StoreFiles(folder + "/copy")
    try Data(count: 5).write(to: URL(filePath: copy.path + "-shm"))
    try store.copy(to: copy)
    #expect(copy.size == 111)
    try store.remove()
    #expect(!store.exists)
    #expect(copy.exists)
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder).sorted() == ["copy", "copy-wal", "store-other"])
  }
}
