#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// A short Markdown table, for example for a README: common questions, with the largest number of people.
public struct ComparisonMarkdown {
  private let report: ComparisonReport

  /// Prepares the table of a report.
  public init(_ report: ComparisonReport) { self.report = report }

  /// The phases of the table.
  private static let phases = ["W3", "W2", "W1", "S1", "W6", "W7", "W4", "W5", "W8"]

  /// The table, preceded by a line with the date and the machine. Empty if people weren't measured.
  public var text: String {
    let people = report.summaries.filter { $0.input == .people && $0.isTimed }
    guard let size = people.map(\.size).max() else { return "" }
    let summaries = people.filter { $0.size == size }, stores = unique(summaries.map(\.store))
    var lines = [heading, "", line(["\(Units.count(size)) people"] + stores), line(["-"] + stores.map { _ in "-:" })]
    func add(_ title: String, _ phase: String, _ value: (Summary) -> String?) {
      let cells = stores.map { store in summaries.first { $0.store == store && $0.phase == phase }.flatMap(value) ?? "" }
      if cells.contains(where: { !$0.isEmpty }) { lines.append(line([title] + cells)) }
    }
    for phase in Self.phases { add(PhaseText.of(phase, .people).title, phase) { Units.seconds($0.wall.median) } }
    add("memory for each object, all loaded", "W2") { $0.keptBytes.map { Units.bytes($0 / Double(size + size / 100)) } }
    add("file", "W1") { $0.fileBytes.map { Units.bytes(Double($0)) } }
    return lines.joined(separator: "\n") + "\n"
  }

  private var heading: String {
    let machine = [report.machine.processor, "\(report.machine.processorCount) processors", report.machine.system].compactMap { $0 }
    return "Measured \(report.date.prefix(10)) on \(machine.joined(separator: ", ")): medians of \(report.rounds) rounds, wall time."
  }

  private func line(_ cells: [String]) -> String { "| " + cells.joined(separator: " | ") + " |" }

  /// Writes the table to a file, replacing it.
  public func write(to path: String) throws { try Data(text.utf8).write(to: URL(filePath: path)) }
}
