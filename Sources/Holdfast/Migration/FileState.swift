#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// What shows that a file was changed: its number, size and time, and those of its log. Equal for files that can't be examined. The path has
/// no symbolic links.
struct FileState: Codable, Equatable {
  private var values: [String] = []

  init(_ path: String?) {
    guard let path else { return }
    for name in [path, path + "-wal"] {
      guard let found = try? FileManager.default.attributesOfItem(atPath: name) else { continue }
      let time = (found[.modificationDate] as? Date)?.timeIntervalSinceReferenceDate ?? 0, size = "\(found[.size] ?? 0)"
      // Readers create an empty log.
      if name != path && size == "0" { continue }
      values.append("\(name) \(found[.systemFileNumber] ?? 0) \(size) \(time)")
    }
  }
}
