import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension StoreDescription {
  /// The path of the store's file without symbolic links; nil if it isn't in a file.
  var resolvedPath: String? { location?.path.map { URL(fileURLWithPath: $0).resolvingSymlinksInPath().path } }

  /// Whether two stores are in the same file, however their paths are spelled. False if it doesn't exist.
  func isInSameFile(as other: StoreDescription) -> Bool {
    guard let file, let otherFile = other.file else { return false }
    return file == otherFile
  }

  /// What identifies the store's file: its volume and number; nil if it doesn't exist.
  private var file: [String]? {
    guard let path = resolvedPath, let found = try? FileManager.default.attributesOfItem(atPath: path) else { return nil }
    return ["\(found[.systemNumber] ?? 0)", "\(found[.systemFileNumber] ?? 0)"]
  }
}
