package import Testing

extension WholeFileProperty {
  /// Changes a fuzzer's seed file at random. Each result must be accepted or refused, and most must be refused.
  package static func expectOutcomes(
    ofChanged seed: [UInt8], _ purpose: String, file: StaticString = #fileID, sourceLocation: SourceLocation = #_sourceLocation,
    _ outcome: ([UInt8]) -> Outcome
  ) {
    var numbers = SeededGenerator(purpose, file: file), refused = 0, round = 0
    let rounds = TestTier.count(200, full: 1_000, file: file)
    // Further rounds follow until a file is accepted.
    while round < rounds || refused == round && round < 1_000 {
      round += 1
      var changed = seed
      for _ in 0..<Int.random(in: 1...3, using: &numbers) {
        let place = Int.random(in: 0..<changed.count, using: &numbers)
        switch Int.random(in: 0..<3, using: &numbers) {
        case 0: changed[place] = UInt8.random(in: 0...255, using: &numbers)
        case 1: changed.remove(at: place)
        default: changed.insert(contentsOf: seed[min(place, seed.count)..<min(place + 20, seed.count)], at: place)
        }
      }
      switch outcome(changed) {
      case .accepted: break
      case .refused: refused += 1
      case .violation(let violation):
        Issue.record("\(violation)\n\(String(decoding: changed, as: UTF8.self))", sourceLocation: sourceLocation)
        return
      }
    }
    #expect((round * 8 / 10..<round).contains(refused), "\(refused) of \(round) refused", sourceLocation: sourceLocation)
  }
}
