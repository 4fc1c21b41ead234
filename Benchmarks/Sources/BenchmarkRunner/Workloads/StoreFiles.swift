internal import CBenchmarkSupport

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// The file of a store and its auxiliary files.
public struct StoreFiles: Sendable {
  /// The path of the store's file.
  public let path: String

  /// The file and all possible auxiliary files.
  private var all: [String] {
    let place = path.lastIndex(of: "/").map(path.index(after:)) ?? path.startIndex
    return ["", "-wal", "-shm", "-journal"].map { path + $0 } + ["\(path[..<place]).\(path[place...]).lock"]
  }

  /// Creates a value for a store's path.
  public init(_ path: String) { self.path = path }

  /// Whether the store's file exists.
  public var exists: Bool { FileManager.default.fileExists(atPath: path) }

  /// The total size of all existing files in bytes; nil if there are none.
  public var size: Int64? {
    let sizes = all.map { holdfast_benchmark_file_size($0) }.filter { $0 >= 0 }
    return sizes.isEmpty ? nil : sizes.reduce(0, +)
  }

  /// Removes all existing files.
  public func remove() throws {
    for file in present { try FileManager.default.removeItem(atPath: file) }
  }

  /// Copies all existing files, replacing those at the destination.
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
