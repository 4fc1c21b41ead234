/// How much a property list may hold before reading it is refused.
///
/// Within a binary list and a keyed archive, a part may stand in many places and be kept once, so that a small file could
/// describe a huge tree. All limits therefore hold for the tree: what is shared counts wherever it stands.
public struct PropertyListLimits: Sendable, Hashable {
  /// The most bytes of the file, and the most bytes of text and data of the tree.
  public var bytes: Int
  /// How many lists may lie in one another.
  public var depth: Int
  /// The most values of the tree, keys included.
  public var objects: Int

  /// Makes limits.
  ///
  /// - Parameters:
  ///   - bytes: 64 MiB unless said.
  ///   - depth: 128 unless said. Reading uses the stack for each level, so more than a few hundred need a large one.
  ///   - objects: 1,000,000 unless said.
  public init(bytes: Int = 64 << 20, depth: Int = 128, objects: Int = 1_000_000) {
    self.bytes = bytes
    self.depth = depth
    self.objects = objects
  }
}

/// How large a part of a tree is, with everything that is shared counted wherever it stands.
struct PropertyListExtent {
  private(set) var objects = 1
  private(set) var bytes = 0
  /// How many lists lie in one another: 0 for a value that is no list.
  private(set) var height = 0

  /// A value that is no list, of so many bytes of text or data.
  init(bytes: Int = 0) { self.bytes = bytes }

  /// A list without values.
  static var emptyList: PropertyListExtent {
    var extent = PropertyListExtent()
    extent.height = 1
    return extent
  }

  /// Counts a value in a list.
  mutating func add(_ part: PropertyListExtent) {
    objects = Self.sum(objects, part.objects)
    bytes = Self.sum(bytes, part.bytes)
    height = max(height, Self.sum(part.height, 1))
  }

  /// The sum, or the largest number when it is larger: limits may be as large as that.
  private static func sum(_ first: Int, _ second: Int) -> Int {
    let (sum, isLarger) = first.addingReportingOverflow(second)
    return isLarger ? Int.max : sum
  }

  /// Refuses what is beyond the limits.
  func check(_ limits: PropertyListLimits, at place: PropertyListError.Place?) throws(PropertyListError) {
    if objects > limits.objects { throw PropertyListError(.tooLarge, at: place, "There are more than \(limits.objects) values.") }
    if bytes > limits.bytes { throw PropertyListError(.tooLarge, at: place, "Texts and data have more than \(limits.bytes) bytes.") }
    if height > limits.depth { throw PropertyListError(.tooDeep, at: place, "More than \(limits.depth) lists lie in one another.") }
  }
}
