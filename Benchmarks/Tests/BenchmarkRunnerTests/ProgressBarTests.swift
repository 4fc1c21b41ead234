import Testing

@testable import BenchmarkRunner

@Suite struct ProgressBarTests {
  /// The output of a bar.
  final class Screen {
    var text = ""
  }

  func bar(_ screen: Screen, isTerminal: Bool, total: Int = 4, columns: Int = 120) -> ProgressBar {
    ProgressBar("Import", total: total, unit: "packages", isTerminal: isTerminal, columns: columns) { screen.text += $0 }
  }

  @Test("A terminal shows one line with the share, the rate and the remaining time")
  func picture() {
    var bar = bar(Screen(), isTerminal: true)
    bar.advance()
    #expect(bar.picture(elapsed: 2) == "Import [######..................] 25 % 1/4 packages, 0.5/s, 0:06 to go")
    #expect(bar.picture(elapsed: 2, step: "sqlite").hasSuffix("1/4 sqlite, 0.5/s, 0:06 to go"))
  }

  @Test("The line fits a narrow terminal")
  func narrow() {
    #expect(bar(Screen(), isTerminal: true, columns: 20).picture(elapsed: 1).count == 19)
  }

  @Test("Elsewhere, each step is a line")
  func lines() {
    let screen = Screen()
    var bar = bar(screen, isTerminal: false)
    bar.begin(step: "first")
    bar.advance()
    bar.begin(step: "second")
    bar.advance()
    bar.finish()
    #expect(screen.text.hasPrefix("Import: 1 of 4 packages: first\nImport: 2 of 4 packages: second\nImport: 2 packages in "))
    #expect(!screen.text.contains("\r"))
  }

  @Test("In a terminal, everything stays on one line until the end")
  func oneLine() {
    let screen = Screen()
    var bar = bar(screen, isTerminal: true)
    for _ in 0..<4 { bar.advance() }
    #expect(!screen.text.contains("\n"))
    bar.finish()
    #expect(screen.text.hasSuffix("\n"))
  }

  @Test("Without work, the bar is complete at once")
  func nothing() {
    #expect(bar(Screen(), isTerminal: true, total: 0).picture(elapsed: 0).contains("100 % 0/0"))
  }
}
