/// A recommendation for choosing a store, with the figures it is based on.
public struct Finding: Hashable, Codable, Sendable {
  /// The question, such as "Fastest to the first object".
  public var question: String
  /// The stores that answer it, the best first. Several stores are within measurement error of each other.
  public var stores: [String]
  /// The value of the first store, with a no-break space before its unit.
  public var value: String
  /// The best store with a file, if the first store has none; otherwise nil.
  public var bestWithFile: String?
  /// The value of that store.
  public var bestValueWithFile: String?

  /// The finding as one sentence.
  public var text: String {
    var text =
      "\(question): \(stores.count > 1 ? stores.joined(separator: " and ") + ", within measurement error" : stores[0]) (\(value))"
    if let bestWithFile, let bestValueWithFile { text += "; among stores with a file, \(bestWithFile) (\(bestValueWithFile))" }
    return text + "."
  }

  /// The answers to all questions, at the largest size.
  public static func of(_ summaries: [Summary]) -> [Finding] {
    // Figures that were only counted have no times to compare.
    let summaries = summaries.filter(\.isTimed)
    let keepers = Set(summaries.filter { $0.fileBytes != nil }.map(\.store))
    return questions.compactMap { question in
      // Uses the first of the phases that was measured.
      for phase in question.phases {
        let all = summaries.filter { $0.input == question.input && $0.phase == phase && question.value($0) != nil }
        guard let size = all.map(\.size).max() else { continue }
        return Finding(question, all.filter { $0.size == size }, keepers)
      }
      return nil
    }
  }

  private struct Question: Sendable {
    let text: String
    var input = MeasurementInput.people
    let phases: [String]
    let value: @Sendable (Summary) -> Spread?
    let write: @Sendable (Double) -> String
  }

  private init?(_ question: Question, _ summaries: [Summary], _ keepers: Set<String>) {
    func best(_ some: [Summary]) -> [(store: String, spread: Spread)] {
      let sorted = some.compactMap { one in question.value(one).map { (store: one.store, spread: $0) } }
        .sorted { $0.spread.median < $1.spread.median }
      guard let first = sorted.first else { return [] }
      // Stores within measurement error of each other share the answer.
      return sorted.filter { $0.spread.overlaps(first.spread) }
    }
    let all = best(summaries)
    // With one store, there is no choice.
    guard let first = all.first, summaries.count > 1 else { return nil }
    self.question = question.text
    stores = all.map(\.store)
    value = Finding.unbroken(question.write(first.spread.median))
    if !all.contains(where: { keepers.contains($0.store) }), let kept = best(summaries.filter { keepers.contains($0.store) }).first {
      bestWithFile = kept.store
      bestValueWithFile = Finding.unbroken(question.write(kept.spread.median))
    }
  }

  /// Keeps a number and its unit on one line.
  private static func unbroken(_ text: String) -> String {
    let words = text.split(separator: " ", maxSplits: 1)
    return words.joined(separator: "\u{A0}")
  }

  @Sendable private static func exact(_ value: Double?) -> Spread? { value.map { Spread([$0]) } }

  private static let questions: [Question] = [
    Question(text: "Smallest memory with everything loaded", phases: ["W2"]) {
      exact($0.keptBytes)
    } write: {
      Units.bytes($0)
    },
    Question(text: "Fastest to the first object", phases: ["W3"]) {
      $0.wall
    } write: {
      Units.seconds($0)
    },
    Question(text: "Fastest to load everything", phases: ["W2"]) {
      $0.wall
    } write: {
      Units.seconds($0)
    },
    Question(text: "Fastest to make and save everything", phases: ["W1"]) {
      $0.wall
    } write: {
      Units.seconds($0)
    },
    Question(text: "For many small saves", phases: ["S1"]) {
      $0.wall
    } write: {
      Units.seconds($0 / 20) + " per save"
    },
    Question(text: "To search without an index", phases: ["W4"]) {
      $0.wall
    } write: {
      Units.seconds($0)
    },
    Question(text: "To follow relationships", phases: ["W5"]) {
      $0.wall
    } write: {
      Units.seconds($0) + " for a thousand objects"
    },
    Question(text: "To count and average", phases: ["W8"]) {
      $0.wall
    } write: {
      Units.seconds($0)
    },
    Question(text: "Smallest file", phases: ["W1"]) {
      exact($0.fileBytes.map(Double.init))
    } write: {
      Units.bytes($0)
    },
    Question(text: "To load a package index", input: .packages, phases: ["load"]) {
      $0.wall
    } write: {
      Units.seconds($0)
    },
  ]
}
