/// Shows the progress of a long operation: a bar in a terminal, a line per step elsewhere.
///
/// The bar is redrawn at most ten times a second, so it can be advanced frequently.
public struct ProgressBar {
  private let label: String
  private let total: Int
  private let unit: String
  private let isTerminal: Bool
  private let columns: Int
  private let write: (String) -> Void
  private let clock: () -> Double
  private let start: Double
  private var done = 0
  private var lastDrawn = -Double.infinity

  /// Creates a progress bar.
  ///
  /// - Parameters:
  ///   - label: The name of the operation.
  ///   - total: The number of units.
  ///   - unit: The name of the units, in the plural.
  ///   - output: The output for the bar.
  public init(_ label: String, total: Int, unit: String, output: Output = .standardError) {
    self.init(label, total: total, unit: unit, isTerminal: output.isTerminal, columns: output.columns, write: output.write)
  }

  /// Creates a progress bar for any output.
  init(
    _ label: String, total: Int, unit: String, isTerminal: Bool, columns: Int, clock: @escaping () -> Double = { Mark.now },
    write: @escaping (String) -> Void
  ) {
    self.label = label
    self.total = total
    self.unit = unit
    self.isTerminal = isTerminal
    self.columns = columns
    self.write = write
    self.clock = clock
    start = clock()
  }

  /// Adds completed units. In a terminal, this redraws the bar.
  public mutating func advance(by count: Int = 1) {
    done += count
    let now = clock()
    guard isTerminal, now - lastDrawn >= 0.1 || done >= total else { return }
    lastDrawn = now
    write("\r" + picture(elapsed: now - start) + eraseToEnd)
  }

  /// Begins a named step. Outside a terminal, this writes a line.
  public mutating func begin(step: String) {
    if isTerminal {
      write("\r" + picture(elapsed: clock() - start, step: step) + eraseToEnd)
    } else {
      write("\(label): \(done + 1) of \(total) \(unit): \(step)\n")
    }
  }

  /// Ends the operation. Replaces the bar with a line that contains the elapsed time.
  public func finish() {
    let text = "\(label): \(done) \(unit) in \(decimal(clock() - start, places: 1)) s"
    write(isTerminal ? "\r" + text + eraseToEnd + "\n" : text + "\n")
  }

  /// The bar as text: label, bar, percentage, count, step or unit, rate, remaining time.
  func picture(elapsed: Double, step: String? = nil) -> String {
    let share = total > 0 ? min(1, Double(done) / Double(total)) : 1
    let filled = Int(share * Double(barWidth))
    let bar = String(repeating: "#", count: filled) + String(repeating: ".", count: barWidth - filled)
    var text = "\(label) [\(bar)] \(Int(share * 100)) % \(done)/\(total) \(step ?? unit)"
    if done > 0, elapsed > 0 {
      text += ", \(rate(Double(done) / elapsed)), \(clock(elapsed / Double(done) * Double(max(0, total - done)))) to go"
    }
    return String(text.prefix(max(10, columns - 1)))
  }

  private func rate(_ perSecond: Double) -> String { "\(decimal(perSecond, places: perSecond < 100 ? 1 : 0))/s" }

  private func clock(_ seconds: Double) -> String {
    let whole = Int(min(seconds, 359_999) + 0.5)
    let rest = String(whole % 60)
    return "\(whole / 60):" + (rest.utf8.count < 2 ? "0" : "") + rest
  }
}

private let barWidth = 24
private let eraseToEnd = "\u{1B}[K"
