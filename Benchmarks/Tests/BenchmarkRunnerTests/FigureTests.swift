import Testing

@testable import BenchmarkRunner

@Suite struct FigureTests {
  let figure = Figure(
    workload: "W2", seconds: 0.000543739, cpuSeconds: 0.000545, check: 18_446_669_235_901_002_875, residentDeltaKilobytes: -12,
    peakKilobytes: 34567, heapDeltaBytes: 890)

  @Test("A line has exactly the format that the floors print")
  func line() {
    let expected =
      #"{"w":"W2","t":0.000543739,"cpu":0.000545,"check":18446669235901002875,"rss_delta_kb":-12,"maxrss_kb":34567,"heap_delta":890}"#
    #expect(figure.line == expected)
  }

  @Test("A printed line can be read, with and without counts")
  func parse() throws {
    var counted = figure
    counted.requests = 7
    counted.statements = 9
    #expect(try Figure.parse(figure.line + "\n" + counted.line + "\n") == [figure, counted])
    #expect(try Figure.parse("").isEmpty)
  }

  @Test("A line that isn't a figure is an error that shows it")
  func noFigure() {
    #expect { try Figure.parse("hello") } throws: { "\($0)" == "A measuring process printed a line that isn't a figure: hello" }
  }

  @Test(
    "Decimals are written as printf writes them",
    arguments: [
      (0, 9, "0.000000000"), (1.5, 0, "2"), (0.062204986, 9, "0.062204986"), (-0.25, 1, "-0.2"), (1e-10, 6, "0.000000"),
      (1234.999, 2, "1235.00"), (.infinity, 2, "inf"),
    ] as [(Double, Int, String)])
  func decimals(_ value: Double, _ places: Int, _ text: String) {
    #expect(decimal(value, places: places) == text)
  }

  @Test("A mark measures time, processor time and memory since its creation")
  func mark() {
    func measured() -> Figure {
      let mark = Mark.begin()
      var bytes = [UInt8](repeating: 1, count: 64 << 20)
      bytes[Int(mark.time) % bytes.count] = 2
      return withExtendedLifetime(bytes) { mark.figure("W1", check: UInt64(bytes.count)) }
    }
    let figure = measured()
    #expect(figure.seconds > 0)
    #expect(figure.cpuSeconds >= 0)
    #if os(Linux)
      #expect(figure.peakKilobytes > 32 << 10)
      // Only half of it, in one of several attempts, because other tests allocate and free memory at the same time.
      #expect((0..<10).contains { _ in measured().heapDeltaBytes > 32 << 20 })
    #endif
  }

  /// The bug: the second figure was taken after the first one, so it included reading the memory and printing.
  @Test("A part of an interval ends with the interval")
  func part() {
    let earlier = Mark(time: 1, cpu: 2, residentKilobytes: 30, heapBytes: 400)
    let later = Mark(time: 1.25, cpu: 2.5, residentKilobytes: 33, heapBytes: 410)
    let whole = Figure(
      workload: "W1", seconds: 2, cpuSeconds: 3, check: 7, residentDeltaKilobytes: 10, peakKilobytes: 90, heapDeltaBytes: 100)
    let part = Figure(
      workload: "W1save", seconds: 1.75, cpuSeconds: 2.5, check: 7, residentDeltaKilobytes: 7, peakKilobytes: 90, heapDeltaBytes: 90)
    #expect(later.figure("W1save", endingWith: whole, since: earlier) == part)
  }
}
