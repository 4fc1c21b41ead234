import Foundation

/// The index that comes with the example. It is small and has known answers, two libraries that need each other, alternatives, virtual
/// packages, and invalid entries.
enum PackageFixture {
  /// Its path in the repository, which the example's page names.
  static let path = "Examples/Sources/Packages/sample-index"

  static let text: String = {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent().deletingLastPathComponent()
    do { return try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8) } catch { fatalError("\(error)") }
  }()
}
