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

  /// Copies all existing files, replacing those at the destination, and waits until they are on the disk.
  ///
  /// Otherwise, the first fsync of a measured store would write the copy, too.
  public func copy(to other: StoreFiles) throws {
    try other.remove()
    for (file, copy) in zip(all, other.all) where FileManager.default.fileExists(atPath: file) {
      try FileManager.default.copyItem(atPath: file, toPath: copy)
      let error = holdfast_benchmark_synchronize(copy)
      if error != 0 { throw UnwrittenCopy(path: copy, errorNumber: error) }
    }
  }

  private var present: [String] {
    all.filter(FileManager.default.fileExists)
  }
}

/// A copy of a store's file that couldn't be written to the disk.
struct UnwrittenCopy: Error, CustomStringConvertible {
  let path: String
  let errorNumber: Int32

  var description: String { "The copy \(path) couldn't be written to the disk: error \(errorNumber)." }
}
