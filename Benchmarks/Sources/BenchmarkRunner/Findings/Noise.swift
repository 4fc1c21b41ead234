/// The variation between the rounds of a comparison.
public struct Noise: Hashable, Codable, Sendable {
  /// The median of the relative spreads of all figures that take at least a millisecond.
  public var spread: Double
  /// Above this limit, differences between stores reflect the machine rather than the stores.
  public static let limit = 0.25

  /// Whether the machine was too busy for meaningful times.
  public var isTooGreat: Bool { spread > Noise.limit }

  /// Computes the variation; nil if no workload ran more than once.
  public init?(_ summaries: [Summary], rounds: Int) {
    let spreads = summaries.filter { $0.wall.median >= 1e-3 }.map(\.wall.relative)
    if rounds < 2 || spreads.isEmpty { return nil }
    spread = Spread(spreads).median
  }

  /// The variation as text.
  public var text: String {
    let share = decimal(spread * 100, places: 0)
    return isTooGreat
      ? "Times vary by \(share) % between rounds (median). This machine was too busy for smaller differences to be meaningful."
      : "Times vary by \(share) % between rounds (median)."
  }
}
