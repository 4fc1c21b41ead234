import Foundation

/// Models that Xcode wrote, found through `HOLDFAST_CORPUS`.
enum Corpus {
  static let root = ProcessInfo.processInfo.environment["HOLDFAST_CORPUS"]
  static let isMissing = "HOLDFAST_CORPUS is not set, so there are no models that Xcode wrote."

  /// The `contents` files, relative to the root.
  static let contents: [String] = paths { $0.hasSuffix("/contents") }

  /// The outermost model folders, relative to the root.
  static let bundles: [String] = paths { path in
    let folders = path.split(separator: "/").filter { $0.hasSuffix(".xcdatamodeld") || $0.hasSuffix(".xcdatamodel") }
    return folders.count == 1 && (path.hasSuffix(".xcdatamodeld") || path.hasSuffix(".xcdatamodel"))
  }

  /// The mapping models, relative to the root.
  static let mappingModels: [String] = paths(in: ["xml"]) { $0.hasSuffix(".xcmappingmodel") }

  private static func paths(in folders: [String] = ["models", "sqlite"], _ isWanted: (String) -> Bool) -> [String] {
    guard let root else { return [] }
    return folders.flatMap { folder -> [String] in
      let names = FileManager.default.enumerator(atPath: "\(root)/\(folder)")?.allObjects ?? []
      return names.compactMap { $0 as? String }.map { "\(folder)/\($0)" }.filter(isWanted)
    }.sorted()
  }

  static func path(_ relative: String) -> String { "\(root ?? "")/\(relative)" }

  static func bytes(_ relative: String) throws -> [UInt8] {
    [UInt8](try Data(contentsOf: URL(fileURLWithPath: path(relative))))
  }
}
