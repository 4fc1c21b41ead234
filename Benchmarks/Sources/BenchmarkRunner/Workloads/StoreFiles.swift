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

  private static let companions = ["", "-wal", "-shm", "-journal", ".tmp", ".lock"]

  /// Names a store.
  public init(_ path: String) { self.path = path }

  /// Whether the store itself is there.
  public var exists: Bool { FileManager.default.fileExists(atPath: path) }

  /// The bytes of all files that are there; nil when there is none.
  public var size: Int64? {
    let sizes = Self.companions.map { holdfast_benchmark_file_size(path + $0) }.filter { $0 >= 0 }
    return sizes.isEmpty ? nil : sizes.reduce(0, +)
  }

  /// Removes all files that are there.
  public func remove() throws {
    for file in present { try FileManager.default.removeItem(atPath: file) }
  }

  /// Copies all files that are there; what was at the other place is replaced.
  public func copy(to other: StoreFiles) throws {
    try other.remove()
    for companion in Self.companions where FileManager.default.fileExists(atPath: path + companion) {
      try FileManager.default.copyItem(atPath: path + companion, toPath: other.path + companion)
    }
  }

  private var present: [String] {
    Self.companions.map { path + $0 }.filter(FileManager.default.fileExists)
  }
}
