import Foundation
public import Holdfast
import HoldfastStore

/// A comparison of two stores, for the command that shows it.
public struct StoreDifference: Sendable {
  /// How the objects of both stores are matched.
  public enum Method: String, Sendable, CaseIterable {
    /// By object ID.
    case id
    /// By the values of unique keys.
    case unique
    /// By values and links.
    case structure
  }

  /// The differences.
  public let difference: GraphDifference
  private let includesValues: Bool

  /// Compares two stores.
  ///
  /// - Parameters:
  ///   - first: The first store. Its model is that of both.
  ///   - path: The path of the second store's file.
  ///   - method: How objects are matched. Defaults to unique keys if there are `keys`, and to IDs otherwise.
  ///   - keys: Unique keys for the method `unique`, in the form `Entity=property,property`. Entities without one use the model's uniqueness
  ///     constraints.
  ///   - includesValues: Whether the text contains the values that differ. Defaults to false.
  ///   - limit: The maximum number of differences in the text. Defaults to 1,000.
  /// - Throws: ``CommandError`` if a key is invalid, a store can't be read, or the stores have different versions of the model.
  public init(
    _ first: StoreSource, _ path: String, by method: Method? = nil, keys: [String] = [], includesValues: Bool = false, limit: Int = 1_000
  ) throws(CommandError) {
    self.includesValues = includesValues
    let matching = try Self.matching(first.path, method, keys)
    difference = try first.difference(from: path, matching: matching, includesValues: includesValues, maximumCount: limit)
  }

  private static func matching(
    _ path: String, _ method: Method?, _ keys: [String]
  ) throws(CommandError) -> GraphDifference.Matching {
    switch method ?? (keys.isEmpty ? .id : .unique) {
    case .id where keys.isEmpty: return .objectIDs
    case .structure where keys.isEmpty: return .structure
    case .id, .structure:
      throw CommandError(path: path, reason: "Keys are used only if objects are matched by unique keys. Remove them, or pass --by unique.")
    case .unique:
      var names: [String: [String]] = [:]
      for key in keys {
        let parts = key.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, !parts[0].isEmpty, !parts[1].isEmpty, names[String(parts[0])] == nil else {
          throw CommandError(
            path: path, reason: "The key \(key) doesn't have the form Entity=property,property, or its entity is repeated.")
        }
        names[String(parts[0])] = parts[1].split(separator: ",", omittingEmptySubsequences: false).map(String.init)
      }
      return .uniqueKeys(names)
    }
  }

  /// A summary, one line for each entity, and one for each object that differs.
  public func text() -> String {
    let count = difference.differenceCount
    let summary =
      difference.isEmpty ? "The stores are equal." : "The stores differ: \(count) \(count == 1 ? "difference" : "differences")."
    let details = includesValues ? difference.text { Self.text($0) } : difference.description
    return [summary, details].filter { !$0.isEmpty }.joined(separator: "\n") + "\n"
  }

  /// A value in one line. A long text is truncated.
  private static func text(_ value: StoreValue) -> String {
    guard case .string(let text) = value else { return Words.value(value) }
    let start = text.prefix(maximumTextCount), end = start.endIndex == text.endIndex ? "" : "…"
    return "\"\(String(start).debugDescription.dropFirst().dropLast())\(end)\""
  }

  private static let maximumTextCount = 100
}
