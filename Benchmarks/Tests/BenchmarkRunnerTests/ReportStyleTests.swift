import Foundation
import Testing

@testable import BenchmarkRunner

@Suite struct ReportStyleTests {
  /// The variables of the light scheme and of the dark one.
  static let palettes: [[String: String]] = ReportStyle.css.split(separator: "{").filter { $0.contains("--ground: #") }.map { block in
    let pairs = block.matches(of: /--([a-z0-9-]+): (#[0-9a-f]{6})/).map { (String($0.output.1), String($0.output.2)) }
    return Dictionary(pairs) { first, _ in first }
  }

  @Test("There is a light and a dark scheme with the same variables")
  func schemes() {
    #expect(Self.palettes.count == 2)
    #expect(Set(Self.palettes.map { Set($0.keys) }).count == 1)
    #expect(Self.palettes.first?.count == 13)
  }

  @Test("Text has a contrast of at least 4.5 to its background, and graphics of at least 3", arguments: ReportStyleTests.palettes)
  func contrast(scheme: [String: String]) throws {
    for (text, grounds) in [
      ("ink", ["ground", "raised", "alarm-ground"]), ("faint", ["ground", "raised"]), ("link", ["ground"]), ("alarm", ["alarm-ground"]),
    ] {
      for ground in grounds { #expect(try contrast(scheme, text, ground) >= 4.5, "\(text) on \(ground)") }
    }
    for color in 0..<StoreLook.colorCount {
      for ground in ["ground", "raised"] { #expect(try contrast(scheme, "c\(color)", ground) >= 3, "c\(color) on \(ground)") }
    }
  }

  /// The contrast ratio of WCAG 2.
  func contrast(_ scheme: [String: String], _ one: String, _ other: String) throws -> Double {
    let both = [try luminance(#require(scheme[one])), try luminance(#require(scheme[other]))].sorted()
    return (both[1] + 0.05) / (both[0] + 0.05)
  }

  func luminance(_ color: String) throws -> Double {
    let value = try #require(UInt32(color.dropFirst(), radix: 16))
    let parts = [16, 8, 0].map { shift -> Double in
      let part = Double(value >> UInt32(shift) & 0xFF) / 255
      return part <= 0.04045 ? part / 12.92 : pow((part + 0.055) / 1.055, 2.4)
    }
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]
  }
}
