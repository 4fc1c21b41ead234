internal import CBenchmarkSupport

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// The file of a store with everything that a store keeps beside it.
public struct StoreFiles: Sendable {
  /// The path of the store itself.
  public let path: String

  /// The file and what may lie beside it.
  private var all: [String] {
    let place = path.lastIndex(of: "/").map(path.index(after:)) ?? path.startIndex
    return ["", "-wal", "-shm", "-journal"].map { path + $0 } + ["\(path[..<place]).\(path[place...]).lock"]
  }

  /// Names a store.
  public init(_ path: String) { self.path = path }

  /// Whether the store itself is there.
  public var exists: Bool { FileManager.default.fileExists(atPath: path) }

  /// The bytes of all files that are there; nil when there is none.
  public var size: Int64? {
    let sizes = all.map { holdfast_benchmark_file_size($0) }.filter { $0 >= 0 }
    return sizes.isEmpty ? nil : sizes.reduce(0, +)
  }

  /// Removes all files that are there.
  public func remove() throws {
    for file in present { try FileManager.default.removeItem(atPath: file) }
  }

  /// Copies all files that are there; what was at the other place is replaced.
  public func copy(to other: StoreFiles) throws {
    try other.remove()
    for (file, copy) in zip(all, other.all) where FileManager.default.fileExists(atPath: file) {
      try FileManager.default.copyItem(atPath: file, toPath: copy)
    }
  }

  private var present: [String] {
    all.filter(FileManager.default.fileExists)
  }
}
