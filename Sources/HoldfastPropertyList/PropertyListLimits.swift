/// Limits for reading a property list.
///
/// A binary list or keyed archive stores a shared part only once, so a small file can describe a huge tree. All limits therefore apply to
/// the tree: a shared part counts each time it occurs.
public struct PropertyListLimits: Sendable, Hashable {
  /// The maximum number of bytes in the file, and in the tree's text and data.
  public var bytes: Int
  /// The maximum nesting of lists.
  public var depth: Int
  /// The maximum number of values in the tree, including keys.
  public var objects: Int

  /// Creates limits.
  ///
  /// - Parameters:
  ///   - bytes: The maximum number of bytes. Defaults to 64 MiB.
  ///   - depth: The maximum nesting of lists. Defaults to 128. Each level uses stack space, so more than a few hundred levels require a
  ///     large stack.
  ///   - objects: The maximum number of values. Defaults to 1,000,000.
  public init(bytes: Int = 64 << 20, depth: Int = 128, objects: Int = 1_000_000) {
    self.bytes = bytes
    self.depth = depth
    self.objects = objects
  }
}

/// The size of a part of a tree. A shared part counts each time it occurs.
struct PropertyListExtent {
  private(set) var objects = 1
  private(set) var bytes = 0
  /// The nesting of lists; 0 for a value that isn't a list.
  private(set) var height = 0

  /// The extent of a value that isn't a list, with its number of text or data bytes.
  init(bytes: Int = 0) { self.bytes = bytes }

  /// The extent of an empty list.
  static var emptyList: PropertyListExtent {
    var extent = PropertyListExtent()
    extent.height = 1
    return extent
  }

  /// Adds a value of the list.
  mutating func add(_ part: PropertyListExtent) {
    objects = Self.sum(objects, part.objects)
    bytes = Self.sum(bytes, part.bytes)
    height = max(height, Self.sum(part.height, 1))
  }

  /// Adds values that are read but not kept.
  mutating func add(missingValues count: Int) { objects = Self.sum(objects, count) }

  /// The sum, or `Int.max` if it overflows, because limits may be that large.
  private static func sum(_ first: Int, _ second: Int) -> Int {
    let (sum, isLarger) = first.addingReportingOverflow(second)
    return isLarger ? Int.max : sum
  }

  /// Throws if a limit is exceeded.
  func check(_ limits: PropertyListLimits, at place: PropertyListError.Place?) throws(PropertyListError) {
    if objects > limits.objects { throw PropertyListError(.tooLarge, at: place, "The list has more than \(limits.objects) values.") }
    if bytes > limits.bytes { throw PropertyListError(.tooLarge, at: place, "Text and data have more than \(limits.bytes) bytes.") }
    if height > limits.depth { throw PropertyListError(.tooDeep, at: place, "Lists are nested more than \(limits.depth) deep.") }
  }
}
