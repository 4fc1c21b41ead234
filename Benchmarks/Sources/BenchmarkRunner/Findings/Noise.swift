/// How much the rounds of a comparison differ.
public struct Noise: Hashable, Codable, Sendable {
  /// The median, over all figures of a millisecond or more, of the spread of their wall times as a share of their median.
  public var spread: Double
  /// Above this share differences between stores say more of the machine than of them.
  public static let limit = 0.25

  /// Whether the machine was too busy with other things to say much.
  public var isTooGreat: Bool { spread > Noise.limit }

  /// Looks at figures; nil when no workload ran more than once.
  public init?(_ summaries: [Summary], rounds: Int) {
    let spreads = summaries.filter { $0.wall.median >= 1e-3 }.map(\.wall.relative)
    if rounds < 2 || spreads.isEmpty { return nil }
    spread = Spread(spreads).median
  }

  /// One sentence.
  public var text: String {
    let share = decimal(spread * 100, places: 0)
    return isTooGreat
      ? "Between rounds times differ by \(share) % on the median: this machine was too busy for differences below that to mean anything."
      : "Between rounds times differ by \(share) % on the median."
  }
}
