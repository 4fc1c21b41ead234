import HoldfastStore

/// The two stores of a comparison.
enum Side: Int, CaseIterable {
  case first
  case second

  var other: Side { self == .first ? .second : .first }
}

/// Which object of one store is which object of another one. Objects are named by their root entity and rank.
///
/// Paired objects have the same concrete entity. Each object is in one state, and leaves only the first one:
///
/// | state | meaning |
/// |---|---|
/// | unpaired | no partner has been found yet |
/// | single | the other store has no partner, because no object has its key |
/// | paired | it has a partner |
final class ObjectPairs {
  private static let unpaired = -1
  private static let single = -2

  /// The partner's rank or the state, by side, root entity and rank.
  private(set) var partners: [[[Int]]]

  init(_ first: GraphReader, _ second: GraphReader) {
    partners = [first, second].map { $0.keys.map { Array(repeating: Self.unpaired, count: $0.count) } }
  }

  func pair(_ root: EntityIndex, _ first: Int, _ second: Int) {
    partners[Side.first.rawValue][root][first] = second
    partners[Side.second.rawValue][root][second] = first
  }

  /// Restores former pairs.
  func restore(_ partners: [[[Int]]]) { self.partners = partners }

  /// Marks an object that has no partner.
  func setSingle(_ side: Side, _ root: EntityIndex, _ rank: Int) { partners[side.rawValue][root][rank] = Self.single }

  /// The rank of the partner in the other store.
  func partner(_ side: Side, _ root: EntityIndex, _ rank: Int) -> Int? {
    let partner = partners[side.rawValue][root][rank]
    return partner < 0 ? nil : partner
  }

  func isUnpaired(_ side: Side, _ root: EntityIndex, _ rank: Int) -> Bool { partners[side.rawValue][root][rank] == Self.unpaired }
}
