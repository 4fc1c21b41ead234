/// The table that a comparison prints: a block per phase, a line per store.
public struct ComparisonTable: Sendable {
  private let samples: [Sample]

  /// Makes the table of some samples.
  public init(_ samples: [Sample]) { self.samples = samples }

  /// The lines for one input.
  public func text(for input: MeasurementInput) -> String {
    var table = TextTable([
      ("phase", .left), ("store", .left), ("wall ms", .right), ("CPU ms", .right), ("x fastest", .right), ("peak RSS MB", .right),
      ("heap MB", .right), ("file MB", .right), ("requests", .right), ("statements", .right),
    ])
    var phase: String?
    for summary in Summary.of(samples.filter { $0.input == input }) {
      if let phase, phase != summary.phase { table.appendBlankLine() }
      table.append(cells(summary, isFirst: phase != summary.phase))
      phase = summary.phase
    }
    return table.text
  }

  private func cells(_ summary: Summary, isFirst: Bool) -> [String] {
    [
      isFirst ? summary.phase : "",
      summary.store,
      decimal(summary.seconds * 1e3, places: 3),
      decimal(summary.cpuSeconds * 1e3, places: 3),
      summary.ratio.map { decimal($0, places: 2) } ?? "",
      decimal(Double(summary.peakKilobytes) * 1024 / 1e6, places: 1),
      decimal(Double(summary.heapDeltaBytes) / 1e6, places: 1),
      summary.fileBytes.map { decimal(Double($0) / 1e6, places: 2) } ?? "",
      summary.requests.map(String.init) ?? "",
      summary.statements.map(String.init) ?? "",
    ]
  }
}
