package import HoldfastStore
package import HoldfastStoreConformance

extension StoreConformance {
  /// The cases for a wrapper, whose store passes all cases in a suite of its own: a random one of each rule, or all in the full tier.
  package static func share(for capabilities: StoreCapabilities) -> [StoreConformanceCase] {
    let cases = cases(for: capabilities)
    guard !TestTier.isFull else { return cases }
    var random = SeededGenerator("A case of each rule")
    let rules = Dictionary(grouping: cases.indices) { cases[$0].rule }
    // A dictionary has another order in each process.
    let chosen = rules.values.sorted { $0[0] < $1[0] }.compactMap { $0.randomElement(using: &random) }
    return chosen.sorted().map { cases[$0] }
  }
}
