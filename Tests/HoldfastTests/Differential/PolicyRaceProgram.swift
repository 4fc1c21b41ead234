import TestSupport

/// The seed of a race, which determines its model and its contexts, and the steps.
struct PolicyRaceProgram {
  struct Step {
    enum Kind {
      case insert, link, unlink, tag, number, move, delete, read, refresh, discard, save, merge, saveAll
    }

    let kind: Kind
    /// The number of a context, counted round and round.
    let context: Int
    let numbers: [Int]
  }

  private let store: TestStore
  private let setup: PolicyRace.Setup
  private let seed: UInt64
  private var steps: [Step]

  init(_ store: TestStore, _ setup: PolicyRace.Setup, seed: UInt64) {
    (self.store, self.setup, self.seed) = (store, setup, seed)
    var random = SeededGenerator(seed: seed &+ 1)
    let kinds: [Step.Kind] =
      [.insert, .insert, .link, .link, .link, .link, .unlink, .tag, .move, .delete, .read, .read, .refresh, .discard]
      + [.save, .save, .save, .merge, .saveAll] + (setup.hasUniqueValues ? [.number, .number] : [])
    steps = (0..<120).map { _ in
      Step(
        kind: kinds.randomElement(using: &random) ?? .save, context: Int.random(in: 0..<60, using: &random),
        numbers: (0..<4).map { _ in Int.random(in: 0..<10_000, using: &random) })
    }
  }

  /// What goes wrong; nil if nothing does.
  func failure() -> String? {
    do {
      let race = try PolicyRace(store, setup, seed: seed)
      do {
        for step in steps { try race.run(step) }
        return nil
      } catch {
        return "\(error)\n\(race.log.joined(separator: "\n"))\n\(race.model)"
      }
    } catch {
      return "\(error)"
    }
  }

  /// A program that fails as well, without steps that it doesn't need.
  func shortened() -> PolicyRaceProgram {
    var (program, size) = (self, steps.count / 2)
    while size > 0 {
      var start = 0
      while start < program.steps.count {
        var fewer = program
        fewer.steps.removeSubrange(start..<min(start + size, program.steps.count))
        if fewer.failure() != nil { program = fewer } else { start += size }
      }
      size /= 2
    }
    return program
  }
}
